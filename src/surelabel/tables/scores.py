"""Scores of a tagger: in a cell of a row, in an answer over HTTP, or in a table beside the texts.

The scores of a text are a list of suggestions in the order of their source. A score of None means that the label is
listed without a score. A text without scores has None, which differs from an empty list.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from surelabel.exceptions import CorpusError
from surelabel.tables.read import Row, cell_text, parse_json, read_rows

ANNIF_SUFFIX = ".annif"
"""Suffix of the files that `annif index` writes beside a folder's texts."""


class Suggestion(NamedTuple):
    """A label that a tagger suggests, by its name or URI; `name` is a second name to find the label by."""

    label: str
    score: float | None = None
    name: str | None = None


class Scores(list[Suggestion]):
    """The suggestions for one text; `place` names their row for messages."""

    place = ""


def as_scores(cell: Any, place: str = "") -> Scores | None:
    """Return the scores in a cell; None if it is empty. Raise ValueError (a phrase after the row's place) otherwise.

    A cell is an object of label and score, a list of objects with "label" (or Annif's "uri") and "score", a list of
    pairs, a list of labels, an object with one of these under "results" or "scores", or one of these as JSON text.
    """
    if isinstance(cell, str) and cell.strip():
        try:
            cell = parse_json(cell)
        except (ValueError, RecursionError) as error:
            raise ValueError(f'must have scores in JSON, such as {{"oil": 0.9}}. Got an error: {error}.') from None
    if cell is None or cell == "":
        return None
    found = Scores()
    found.place = place
    if isinstance(cell, Mapping):
        nested = next((cell[key] for key in ("results", "scores") if isinstance(cell.get(key), list | Mapping)), None)
        if nested is not None:
            return as_scores(nested, place)
        # A column of structs in Parquet has every label in every row; null is a label that is not listed.
        found += (Suggestion(str(label), _number(score)) for label, score in cell.items() if score is not None)
    elif isinstance(cell, list | tuple):
        found += map(_suggestion, cell)
    else:
        raise ValueError(f"must have scores as an object or a list. Got {type(cell).__name__}.")  # noqa: TRY004
    return _unique(found)


def _suggestion(item: Any) -> Suggestion:
    """Return one label with its score."""
    if isinstance(item, Mapping):
        names, score = [item[key] for key in ("uri", "label") if item.get(key)], item.get("score")
    else:
        first, score = item if isinstance(item, list | tuple) and len(item) == 2 else (item, None)
        names = [first]
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError(f'must list scores as {{"label": ..., "score": ...}}. Got {item!r:.60}.')
    return Suggestion(names[0].strip(), None if score is None or score == "" else _number(score), *names[1:])


def _number(score: Any) -> float:
    """Return a finite score."""
    try:
        value = float(score) if not isinstance(score, bool) else math.nan
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"must have finite numbers as scores. Got {score!r:.40}.")
    return value


def _unique(scores: Scores) -> Scores:
    """Raise if a label has two scores."""
    seen: set[str] = set()
    for one in scores:
        if one.label in seen:
            raise ValueError(f"must score each label once. Got {one.label!r:.60} twice.")
        seen.add(one.label)
    return scores


def read_scores(path: str | os.PathLike[str], *, encoding: str = "utf-8") -> dict[str, Scores]:
    """Read scores by id of the text: JSONL, a long table (id, label, score) or a wide one (id, a column per label).

    In a wide table an empty cell is a label that is not listed. Annif's "document_id" is an id too, and so is the name
    of a file that `annif index` wrote into a folder.
    """
    scores: dict[str, Scores] = {}
    for row in _annif_rows(Path(path)) if Path(path).is_dir() else read_rows(path, encoding=encoding):
        cells = {name: cell for name, cell in row.cells.items() if cell not in (None, "") and name != "text"}
        identity = cell_text(cells.pop("document_id", cells.pop("id", None)))
        is_long = "score" in row.cells and ("label" in row.cells or "uri" in row.cells)
        try:
            if row.problem is not None:
                raise ValueError(row.problem)
            if not identity or (identity in scores and not is_long):
                raise ValueError(f"must have an id of its own in the column 'id'. Got {identity!r:.60}.")
            found = as_scores([cells] if is_long else cells, row.place) or Scores()
            scores[identity] = _unique(Scores([*scores[identity], *found])) if identity in scores else found
            scores[identity].place = row.place
        except ValueError as error:
            raise CorpusError(f"{row.place} {error}") from error
    if not scores:
        raise CorpusError(f"{os.fspath(path)!r} must have scores. Got an empty file.")
    return scores


def _annif_rows(folder: Path) -> Iterator[Row]:
    """Yield the lines of a folder's .annif files: <uri>, label, perhaps a notation, and score, with tabs between."""
    for file in sorted(folder.glob(f"*{ANNIF_SUFFIX}")):
        for row in read_rows(file, kind="txt"):
            uri, *names, score = row.cells["text"].split("\t")
            cells = {"id": file.stem, "uri": uri.strip("<>"), "label": "".join(names[:1]), "score": score}
            yield row._replace(cells=cells)
