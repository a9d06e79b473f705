"""Answers for people: one block of lines per text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from surelabel._core.wording import label_sets_words, terminal_words

_EXCERPT = 100
_INDENT = 14
# Open labels in a block; files name more.
_MOST_SHOWN = 10


def answer_block(record: Mapping[str, Any], text: str, width: int) -> str:
    """Return what there is to say about one text, in lines of at most `width` characters."""
    name = f"{record['file']}, " if "file" in record else ""
    title = f"{name}{record['id']} (row {record['row']})" if "id" in record else f"{name}row {record['row']}"
    lines = [_line(title, excerpt(text), width, indent=0)]
    lines += [_line(f"  {what}", said, width) for what, said in _said(record)]
    return "\n".join(lines)


def _said(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the names and contents of a block's lines."""
    if "error" in record:
        yield "no answer", record["error"]
        return
    if record["decision"] is not None:
        yield record["decision"], record["reason"]
    yield "best guess", f"{_names(record['labels'])}, confidence {record['confidence']:.3f}"
    lower, upper = record["size_bounds"]
    unlike = ": unlike the calibration texts" if upper == 0 else ""
    yield "plausible", f"{label_sets_words(lower, upper)} at significance {record['significance']}{unlike}"
    if record.get("category"):
        yield "compared", f"with calibration texts of {record['category']}"
    if record["certain"]:
        yield "certain", ", ".join(record["certain"])
    if record["open"]:
        chances = [f"{name} (probability {record['probabilities'][name]:.2g})" for name in record["open"]]
        yield "open", _some(chances, record["n_more_open"])
    elif record["n_more_open"]:
        yield "open", f"{record['n_more_open']:,} labels"
    if record["consider"]:
        yield "consider", _some(record["consider"])
    for k, member in enumerate(record["top"]):
        yield "" if k else "p-values", f"{member['p_value']:.3f}  {_names(member['labels'])}"
    if "p_value" in record:
        is_in = "plausible" if record["p_value"] > float(record["significance"]) else "not plausible"
        yield "asked for", f"{record['p_value']:.3f}  {_names(record['p_value_of'])}: {is_in}"
    if record.get("description"):
        yield "in words", record["description"]


def _some(names: list[str], n_more: int = 0) -> str:
    """Write the first names of a list, and how many more there are."""
    n_more += len(names[_MOST_SHOWN:])
    return f"{', '.join(names[:_MOST_SHOWN])}{f' and {n_more:,} more' if n_more else ''}"


def _names(labels: list[str]) -> str:
    return ", ".join(labels) or "(no label)"


def _line(name: str, content: str, width: int, indent: int = _INDENT) -> str:
    """Return a name and what it stands for, the following lines indented; nothing in it controls a terminal."""
    start = f"{terminal_words(name).replace(chr(10), ' '):<{indent}}" if indent else f"{terminal_words(name)}  "
    words = terminal_words(content).replace("\n", " ")
    filled = textwrap.wrap(
        words, max(width, 40), initial_indent=start, subsequent_indent=" " * (indent or 2), break_on_hyphens=False
    )
    return "\n".join(filled) or start.rstrip()


def excerpt(text: str) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(terminal_words(text[: 4 * _EXCERPT]).split())
    return line if len(line) <= _EXCERPT else f"{line[: _EXCERPT - 1]}…"
