"""From the cells and columns of a table to label names."""

from __future__ import annotations

import fnmatch
import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from surelabel._core.formatting import count, encodable
from surelabel.tables.columns import is_missing

_INDICATORS = {"0": False, "1": True, "false": False, "true": True, "0.0": False, "1.0": True, "": False}
# Between the first and the last of several columns.
_RANGE = ".."
# Usual separators, and the share of cells above which one of them counts as meant.
_SEPARATORS, _COMMON_SHARE = (",", ";", "|"), 0.02
_MISSING_WORDS = {"nan", "none", "null", "n/a", "na", "#n/a"}
# Invisible characters that are not part of any name; joiners (U+200C, U+200D) are part of some.
_INVISIBLE = re.compile("[\xad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
_JOINERS = re.compile("[\u200c\u200d]")
_LIST = re.compile(r"(?:\[.*\]|\{.*\}|\(['\"].*\)|set\(\))", re.DOTALL)
_ITEM = re.compile(
    r"""\s*(?:(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')\s*(?:,|(?=["'])|$)|([^,"'\s][^,]*?)\s*(?:,|$))"""
)


class Separation(NamedTuple):
    """How label names are separated in a column: the separator (None: a cell is one label), a note, and a warning."""

    separator: str | None
    note: str
    warning: str | None = None


def clean_name(name: str) -> str:
    """Return a label name in NFC, without invisible characters and repeated white space."""
    if name.isascii():
        return " ".join(name.split())
    return " ".join(_INVISIBLE.sub("", unicodedata.normalize("NFC", encodable(name))).split())


def matching_key(name: str) -> str:
    """Return a key under which names match: after NFC and casefold."""
    return unicodedata.normalize("NFC", clean_name(name).casefold())


def _look(name: str) -> str:
    """Return a key that names share which look alike: compatibility forms and joiners do not count either."""
    return _JOINERS.sub("", unicodedata.normalize("NFKC", clean_name(name)).casefold())


def columns_of(names: Sequence[str], headings: Sequence[str], taken: set[str]) -> list[str]:
    """Return columns in place of ranges ("first..last") and patterns ("topic_*"); other names stay."""
    found: list[str] = []
    for name in names:
        first, _, last = name.partition(_RANGE)
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
    if given is None:
        return Separation(None, f"Labels in {column!r}: each cell is one label, as asked for.")
    strings = [cell for cell in filled if isinstance(cell, str) and as_list(cell) is None]
    n_lists = len(filled) - len(strings)
    if not strings:
        return Separation(",", f"Labels in {column!r} are lists.")
    with_mark = {mark: [cell for cell in strings if mark in cell] for mark in _SEPARATORS}
    common = [mark for mark in with_mark if len(with_mark[mark]) > _COMMON_SHARE * len(strings)]
    common.sort(key=lambda mark: -len(with_mark[mark]))
    taken: str | None = given if given != "auto" else (common or [","])[0]
    n_cells = sum(str(taken) in cell for cell in strings)
    note = f"Labels in {column!r} are separated by {taken!r}, in {count(n_cells)} of {count(len(strings))} cells."
    if given == "auto" and not common:
        # A mark that is rarer than that is part of a name.
        taken = None
        note = f"Labels in {column!r}: no separator was found; each cell is one label."
    if n_lists:
        note += f" {count(n_lists)} more cells are lists."
    other = next((mark for mark in common if mark != taken), None)
    warning = None
    if other is not None and (given == "auto" or n_cells == 0):
        example = with_mark[other][0]
        warning = (
            f"{note} But {count(len(with_mark[other]))} cells have {other!r}, such as {example!r:.60}: give the "
            f"separator {other!r} if it is meant."
        )
    elif all(_is_number(cell) for cell in strings):
        warning = f"Labels in {column!r} are numbers, such as {strings[0]!r:.20}: each number is taken as a label."
    return Separation(taken, note, warning)


def as_list(cell: str) -> list[str] | None:
    """Return the items of a cell that is written as a list, in JSON or as Python or a database prints it."""
    text = cell.strip()
    if not _LIST.fullmatch(text):
        return None
    if text == "set()":
        return []
    try:
        items = json.loads(text)
    except (ValueError, RecursionError):
        items = None
    if isinstance(items, list) and all(isinstance(item, str | int | float) for item in items):
        return [_as_name(item) for item in items]
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
    if cell is None or (is_missing(cell) and cell != ""):
        return None
    if isinstance(cell, str):
        items = None if separator is None else as_list(cell)
        names = items if items is not None else [cell] if separator is None else cell.split(separator)
    elif isinstance(cell, list | tuple):
        cell = [item.get("uri") or item.get("label") if isinstance(item, dict) else item for item in cell]
        if not all(isinstance(item, str | int | float) and not isinstance(item, bool) for item in cell):
            raise ValueError(f"must have names as labels. Got {cell!r:.60}.")
        names = [_as_name(item) for item in cell]
    elif isinstance(cell, int | float) and not isinstance(cell, bool):
        names = [_as_name(cell)]
    else:
        raise ValueError(f"must have a list or separated names as labels. Got {type(cell).__name__}.")  # noqa: TRY004
    return frozenset(filter(None, map(clean_name, names)))


def as_indicators(cells: dict[str, Any]) -> frozenset[str] | None:
    """Return the labels whose columns hold 1; None if all of them are null."""
    if all(cell is None for cell in cells.values()):
        return None
    present = set()
    for column, cell in cells.items():
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
        alike[_look(name)].append(name)
    found = [
        f"The labels {', '.join(map(repr, names))} look alike and are kept apart. Use one spelling if they mean one."
        for names in alike.values()
        if len(names) > 1
    ]
    missing = [name for key, names in alike.items() if key in _MISSING_WORDS for name in names]
    if missing:
        found.append(f"The label {missing[0]!r} looks like a missing value. It is taken as a label.")
    return found


def _as_name(item: Any) -> str:
    return str(int(item)) if isinstance(item, float) and item.is_integer() else str(item)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
