"""From the cells and columns of a table to label names."""

from __future__ import annotations

import fnmatch
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from surelabel._core.formatting import count
from surelabel.tables.annif import URIS
from surelabel.tables.columns import clean_name, is_missing, matching_key
from surelabel.tables.read import cell_text

_INDICATORS = {"0": False, "1": True, "false": False, "true": True, "0.0": False, "1.0": True, "": False}
# Usual separators, and the share of cells above which one of them counts as meant.
_SEPARATORS, _COMMON_SHARE = (",", ";", "|"), 0.02
_MISSING_WORDS = {"nan", "none", "null", "n/a", "na", "#n/a"}
_LIST = re.compile(r"(?:\[.*\]|\{.*\}|\(['\"].*\)|set\(\))", re.DOTALL)
_ITEM = re.compile(
    r"""\s*(?:(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')\s*(?:,|(?=["'])|$)|([^,"'\s][^,]*?)\s*(?:,|$))"""
)


class Separation(NamedTuple):
    """How label names are separated in a column: the separator (None: a cell is one label), a note, and a warning."""

    separator: str | None
    note: str
    warning: str | None = None


def columns_of(names: Sequence[str], headings: Sequence[str], taken: set[str]) -> list[str]:
    """Return columns in place of ranges ("first..last") and patterns ("topic_*"); other names stay."""
    found: list[str] = []
    for name in names:
        first, _, last = name.partition("..")
        if name in headings:
            matches = [name]
        elif first in headings and last in headings:
            matches = list(headings[headings.index(first) : headings.index(last) + 1])
        else:
            matches = fnmatch.filter(headings, name)
        found.extend([column for column in matches if column == name or column not in taken] or [name])
    return list(dict.fromkeys(found))


def separation(cells: Iterable[Any], column: str, given: str | None) -> Separation:
    """Return the separator of label names: the given one, or for "auto" the one that most cells have."""
    filled = [cell for cell in cells if not is_missing(cell)]
    strings = [cell for cell in filled if isinstance(cell, str) and as_list(cell) is None]
    if given is None:
        return Separation(None, f"Labels in {column!r}: each cell is one label, as asked for.")
    if not strings:
        return Separation(",", f"Labels in {column!r} are lists." if filled else f"There are no labels in {column!r}.")
    with_mark = {mark: [cell for cell in strings if mark in cell] for mark in (*_SEPARATORS, given)}
    common = [mark for mark in _SEPARATORS if len(with_mark[mark]) > _COMMON_SHARE * len(strings)]
    common.sort(key=lambda mark: -len(with_mark[mark]))
    # A mark that is rarer than that is part of a name.
    taken = given if given != "auto" else common[0] if common else None
    note = f"Labels in {column!r}: no separator was found; each cell is one label."
    if taken is not None:
        n_cells = f"{count(len(with_mark[taken]))} of {count(len(strings))} cells"
        note = f"Labels in {column!r} are separated by {taken!r}, in {n_cells}."
    other = next((mark for mark in common if mark != taken), None)
    if other is not None and (given == "auto" or not with_mark[given]):
        example = f"{count(len(with_mark[other]))} cells have {other!r}, such as {with_mark[other][0]!r:.60}"
        return Separation(taken, note, f"{note} But {example}: give the separator {other!r} if it is meant.")
    if all(re.fullmatch(r"\s*-?\d+(\.\d+)?\s*", cell) for cell in strings):
        return Separation(taken, note, f"Labels in {column!r} are numbers, such as {strings[0]!r:.20}.")
    return Separation(taken, note)


def as_list(cell: str) -> list[str] | None:
    """Return the items of a cell that is a list, in JSON, as Python or a database prints it, or URIs in <>."""
    text = cell.strip()
    if URIS.fullmatch(text):
        return [uri[1:-1] for uri in text.replace("><", "> <").split()]
    if not _LIST.fullmatch(text):
        return None
    if text == "set()":
        return []
    try:
        items = json.loads(text)
    except (ValueError, RecursionError):
        items = None
    if isinstance(items, list) and all(isinstance(item, str | int | float) for item in items):
        return [item if isinstance(item, str) else cell_text(item) for item in items]
    names: list[str] = []
    rest, place = text[1:-1].strip(), 0
    while place < len(rest):
        match = _ITEM.match(rest, place)
        if match is None:
            return None
        item = next(group for group in match.groups() if group is not None)
        names.append(re.sub(r"\\(.)", r"\1", item))
        place = match.end()
    return names


def as_label_set(cell: Any, separator: str | None) -> frozenset[str] | None:
    """Return the labels in a cell, None if nobody has tagged the text; raise ValueError otherwise."""
    if is_missing(cell) and cell != "":
        return None
    if isinstance(cell, str):
        items = None if separator is None else as_list(cell)
        names: list[Any] = items if items is not None else [cell] if separator is None else cell.split(separator)
    else:
        listed = cell if isinstance(cell, list | tuple) else [cell]
        names = [item.get("uri") or item.get("label") if isinstance(item, dict) else item for item in listed]
    if isinstance(cell, dict) or not all(isinstance(n, str | int | float) and not isinstance(n, bool) for n in names):
        raise ValueError(f"must have a list of names, or separated names, as labels. Got {cell!r:.60}.")
    return frozenset(filter(None, (clean_name(n if isinstance(n, str) else cell_text(n)) for n in names)))


def as_indicators(cells: Mapping[str, Any], columns: Iterable[str]) -> frozenset[str] | None:
    """Return the labels whose columns hold 1; None if all of them are null."""
    found = {column: cells.get(column) for column in columns}
    if all(cell is None for cell in found.values()):
        return None
    present = set()
    for column, cell in found.items():
        value = _INDICATORS.get("" if is_missing(cell) else str(cell).strip().lower())
        if value is None:
            raise ValueError(f"must have 0 or 1 in the label column {column!r}. Got {cell!r:.40}.")
        if value:
            present.add(clean_name(column))
    return frozenset(present)


def suspicious_names(label_names: Iterable[str]) -> list[str]:
    """Return warnings about labels that look alike, or like missing values."""
    alike: dict[str, list[str]] = defaultdict(list)
    for name in label_names:
        alike[matching_key(name)].append(name)
    found = [
        f"The labels {', '.join(map(repr, names))} look alike and are kept apart. Use one spelling if they mean one."
        for names in alike.values()
        if len(names) > 1
    ]
    missing = [name for key, names in alike.items() if key in _MISSING_WORDS for name in names]
    return [*found, *(f"The label {name!r} looks like a missing value. It is taken as a label." for name in missing)]
