"""Promises on random parts of corpora, from `results/promises.json` (`benchmarks/promises.py` writes it)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from surelabel._core.formatting import markdown_table

Document: TypeAlias = dict[str, Any]
LEVELS = ("0.05", "0.1", "0.2")
_NAMES = {
    "reuters": "Reuters news",
    "ctdc": "Czech news (CTDC)",
    "arxiv": "arXiv abstracts",
    "arxiv-joined": "arXiv abstracts, tags joined",
    "eurlex": "EU laws, sampled from EURLEX57K",
}
_SPACE = "\N{NO-BREAK SPACE}"
_VERSIONS = {"before": "summary before", "now": "summary"}


def _measured(document: Document) -> list[tuple[str, Document]]:
    """Return the corpora that have figures, with their names for people."""
    corpora = document.get("corpora", {})
    return [(name, corpora[key]) for key, name in _NAMES.items() if corpora.get(key, {}).get("summary")]


def _percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f}{_SPACE}%"


def _with_error(figures: Document | None) -> str:
    """Write a share in percent with its standard error, and what is remarkable about it."""
    if not figures:
        return "-"
    text = f"{100 * figures['mean']:.1f}{_SPACE}±{_SPACE}{_percent(figures['standard_error'])}"
    if not figures["promised"]:
        return f"{text} (not promised)"
    return f"**{text}**" if figures["flagged"] else text


def _draws(entry: Document, key: str, levels: str, promise: str, level: str = "0.1") -> list[float]:
    """Return a figure of every draw that has it."""
    found = [draw.get(levels, {}).get(level, {}).get(promise, {}).get(key) for draw in entry["draws"].values()]
    return [value for value in found if value is not None]


def _share_filed(entry: Document, levels: str = "levels") -> float:
    return float(np.mean(_draws(entry, "share", levels, "wrong of filed") or [0.0]))


def _tags(figures: Document) -> str:
    """Write the mean length of lists."""
    n_tags = float(figures["n_tags"])
    return f"{n_tags:.1f}" if n_tags < 100 else f"{n_tags:,.0f}"


def _divisions(*numbers: int) -> str:
    least, most = min(numbers), max(numbers)
    if most == 1:
        return "one random division"
    return f"{most} random divisions" if least == most else f"{least} to {most} random divisions"


def _n_labels(entry: Document) -> int:
    return int(next(iter(entry["draws"].values()))["labels"])


def _table(header: Sequence[str], rows: Iterable[Sequence[str]], n_names: int = 1) -> str:
    return markdown_table(header, rows, n_names)


def _by_level(document: Document, promise: str, with_tags: bool) -> list[tuple[str, ...]]:
    """Return a row for each corpus and version, with the figures of a promise by level."""
    rows = []
    for name, entry in _measured(document):
        for version, key in _VERSIONS.items():
            found = entry.get(key, {}).get(promise)
            if not found:
                continue
            cells = []
            for level in LEVELS:
                figures = found.get(level)
                tags = f"; {_tags(figures)}{_SPACE}tags" if with_tags and figures and "n_tags" in figures else ""
                cells.append(_with_error(figures) + tags)
            rows.append((f"{name}, {_n_labels(entry):,} labels", version, *cells))
    return rows


def lists(document: Document) -> str:
    """Tabulate the lists of texts that people see, before and now: tags missed and tags listed."""
    rows = _by_level(document, "missed of seen", with_tags=True)
    return _table(("corpus", "version", *(f"at {level}" for level in LEVELS)), rows, 2)


def filed(document: Document) -> str:
    """Tabulate filed texts, before and now: how many, and how many of them are wrong."""
    rows = []
    for name, entry in _measured(document):
        for version, key in _VERSIONS.items():
            if entry.get(key):
                figures = entry[key].get("wrong of filed", {}).get("0.1")
                share = _share_filed(entry, "levels" if version == "now" else "before")
                rows.append((name, version, _percent(share), _with_error(figures)))
    return _table(("corpus", "version", "filed", "wrong among them"), rows, 2)


def label_sets(document: Document) -> str:
    """Tabulate errors of prediction sets: of all texts, of those that people see, and of filed ones."""
    promises = {"all texts": "errors of all", "seen by people": "errors of seen", "filed": "errors of filed"}
    rows = []
    for name, entry in _measured(document):
        for texts, promise in promises.items():
            found = entry["summary"].get(promise)
            if found:
                rows.append((name, texts, *(_with_error(found.get(level)) for level in LEVELS)))
    return _table(("corpus", "texts", *(f"at {level}" for level in LEVELS)), rows, 2)


def training(document: Document) -> str:
    """Tabulate micro-F1 of the classifier, on the same test texts, before and now."""
    rows = []
    for name, entry in _measured(document):
        cells = []
        for key in ("f1_micro_before", "f1_micro"):
            values = [draw[key] for draw in entry["draws"].values() if draw.get(key) is not None]
            cells.append(f"{np.mean(values):.3f}" if values else "-")
        rows.append((name, *cells, str(len(entry["draws"]))))
    return _table(("corpus", "micro-F1 before", "now", "draws"), rows)


def brief(document: Document) -> str:
    """Tabulate what a user gets at the defaults: filed texts, and lists for the others."""
    rows = []
    for name, entry in _measured(document):
        missed = entry["summary"]["missed of seen"].get("0.1")
        wrong = entry["summary"].get("wrong of filed", {}).get("0.1")
        tags = f"{_tags(missed)} of {_n_labels(entry):,}" if missed and "n_tags" in missed else "-"
        rows.append((name, _percent(_share_filed(entry)), _with_error(wrong), tags, _with_error(missed)))
    header = ("corpus", "filed", "wrong among them", "tags in a list", "true tags missed")
    n_draws = [len(entry["draws"]) for _, entry in _measured(document)]
    return (
        f"{_table(header, rows)}\n\nAt the defaults (5 % wrong, 10 % missed), new texts of {_divisions(*n_draws)}: "
        "means ± standard errors."
    )


def in_short(document: Document) -> str:
    """Write README's figure in words, with what other corpora gave."""
    found = dict(_measured(document))
    news = found.pop(_NAMES["reuters"], None)
    if news is None:
        return ""
    wrong, missed = news["summary"]["wrong of filed"]["0.1"], news["summary"]["missed of seen"]["0.1"]
    share = _share_filed(news)
    n_new = next(iter(news["draws"].values()))["texts"]["test"]
    picture = (
        f"![Of 100 news texts {100 * share:.0f} are filed, {100 * share * wrong['mean']:.0f} of them wrongly; for the "
        "others people get a short list of tags](results/figures/news.svg)"
    )
    words = (
        f"*Reuters news of 1987, {_n_labels(news)} tags, {_divisions(len(news['draws']))}: of "
        f"{n_new:,} new texts {100 * share:.0f} % are filed, and {_percent(wrong['mean'])} of these are wrong (5 % "
        f"allowed). For each other text a person gets {missed['n_tags']:.1f} of {_n_labels(news)} tags to choose from; "
        f"these lists miss {_percent(missed['mean'])} of the true tags (10 % allowed).*"
    )
    lines = [picture, "", words]
    others = []
    for name in (_NAMES["ctdc"], _NAMES["arxiv"]):
        entry = found.get(name, {"summary": {}})
        lists = entry["summary"].get("missed of seen", {}).get("0.1", {})
        if "n_tags" in lists:
            filed = f"{100 * _share_filed(entry):.0f} %" if _share_filed(entry) >= 0.005 else "nothing"
            others.append(f"{filed} of {name}, with lists of {_tags(lists)} of {_n_labels(entry):,} tags")
    if others:
        lines += ["", f"Not every corpus is that easy. Filed at the same levels: {'; '.join(others)}."]
    return "\n".join(lines)


_INK, _FILED, _WRONG = "#777777", "#2f7fc1", "#d1662c"
_SIDE, _STEP, _COLUMNS = 18, 23, 20


def figure(document: Document) -> str:
    """Draw README's figure: a hundred Reuters texts as squares, filed, wrongly filed, or shown with a list."""
    news = dict(_measured(document)).get(_NAMES["reuters"])
    if news is None:
        return ""
    wrong, missed = news["summary"]["wrong of filed"]["0.1"], news["summary"]["missed of seen"]["0.1"]
    n_filed = round(100 * _share_filed(news))
    n_wrong = round(n_filed * wrong["mean"])
    squares = []
    for place in range(100):
        x, y = 2 + (place % _COLUMNS) * _STEP, 34 + place // _COLUMNS * _STEP
        colour = _FILED if place < n_filed - n_wrong else _WRONG if place < n_filed else "none"
        edge = _INK if colour == "none" else colour
        squares.append(
            f'<rect x="{x}" y="{y}" width="{_SIDE}" height="{_SIDE}" rx="3" fill="{colour}" stroke="{edge}"/>'
        )
    words = [
        (_FILED, f"{n_filed - n_wrong} filed rightly, without a person"),
        (_WRONG, f"{n_wrong} filed wrongly (5 % of filed texts allowed)"),
        ("none", f"{100 - n_filed} for people, with a list of {missed['n_tags']:.1f} tags"),
    ]
    legend = []
    for row, (colour, text) in enumerate(words):
        y = 54 + 32 * row
        edge = _INK if colour == "none" else colour
        legend.append(f'<rect x="484" y="{y}" width="14" height="14" rx="3" fill="{colour}" stroke="{edge}"/>')
        legend.append(f'<text x="506" y="{y + 12}" fill="{_INK}">{text}</text>')
    title = f"Of 100 new Reuters texts with {_n_labels(news)} tags"
    opening = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 830 156" role="img" aria-labelledby="t" '
        'font-family="DejaVu Sans, Verdana, sans-serif" font-size="13.5">'
    )
    return "\n".join(
        [
            opening,
            f'<title id="t">{title}: {"; ".join(text for _, text in words)}</title>',
            f'<text x="2" y="20" font-size="15" fill="{_INK}">{title}</text>',
            *squares,
            *legend,
            "</svg>\n",
        ]
    )
