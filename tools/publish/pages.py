"""Every table, figure and marked place of a page, from result files alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from publish import benchmarks, paper, promises
from surelabel._core.files import atomic_file
from surelabel.experiments.figures import write_figures
from surelabel.experiments.tables import all_tables, load_results, write_tables

# Result files, and the functions that make parts of pages from them.
_FROM_FILES: Mapping[str, Mapping[str, Callable[[Any], str]]] = {
    "promises.json": {
        "news": promises.in_short,
        "promises": promises.brief,
        "promises-lists": promises.lists,
        "promises-filed": promises.filed,
        "promises-sets": promises.label_sets,
        "promises-training": promises.training,
    },
    "engine.json": {"engine": benchmarks.engine},
    "mixture.json": {"mixture": benchmarks.mixture},
    "eurlex.json": {"eurlex": benchmarks.eurlex},
    "annif.json": {"annif": benchmarks.annif},
    "taggers.json": {"taggers": benchmarks.taggers},
    "learn.json": {"learn": benchmarks.learn},
    "corpora.json": {"paper-corpora": paper.corpora_table},
}
_BEGINNING = re.compile(r"<!-- (?P<name>[a-z0-9-]+): made by `make publish` -->\n")
_PLACE = re.compile(rf"({_BEGINNING.pattern}).*?(<!-- /(?P=name) -->)", re.DOTALL)


def _write(path: Path, text: str) -> bool:
    """Write a file if it changes; return whether it did."""
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return False
    with atomic_file(path) as stream:
        stream.write(text)
    return True


def filled(page: str, parts: Mapping[str, str], name: str) -> str:
    """Return a page with its marked places filled."""

    def fill(place: re.Match[str]) -> str:
        if place["name"] not in parts:
            raise SystemExit(f"{name} has a place for {place['name']!r}. Known places: {', '.join(sorted(parts))}.")
        part = parts[place["name"]].strip()
        return f"{place[1]}\n{part}\n\n{place[3]}" if part else f"{place[1]}\n{place[3]}"

    text, n_places = _PLACE.subn(fill, page)
    if n_places != len(_BEGINNING.findall(page)):
        raise SystemExit(f"{name} has a marked place without its end, such as <!-- /promises -->.")
    return text


def parts_of(results: Path) -> dict[str, str]:
    """Return what belongs into each marked place: nothing where the result file is missing."""
    parts = {}
    for name, functions in _FROM_FILES.items():
        document = _read(results / name)
        parts |= {place: function(document) if document else "" for place, function in functions.items()}
    return parts | paper.parts(load_results(results / "runs"))


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def publish(results: Path, pages: Iterable[Path]) -> list[Path]:
    """Write tables and figures into the folder of results, fill pages; return those that changed."""
    runs, measured = load_results(results / "runs"), _read(results / "promises.json")
    write_tables(all_tables(runs), results / "tables")
    drawn = write_figures(paper.shown(runs), results / "figures")
    if measured:
        drawn.append(results / "figures" / "news.svg")
        _write(drawn[-1], promises.figure(measured))
    for path in set((results / "figures").glob("*.svg")) - set(drawn):
        path.unlink()  # no page shows it any more
    parts = parts_of(results)
    return [page for page in pages if _write(page, filled(page.read_text(encoding="utf-8"), parts, page.name))]
