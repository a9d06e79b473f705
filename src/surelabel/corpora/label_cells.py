"""Which columns and cells of a table say what labels a text has."""

from __future__ import annotations

import fnmatch
import logging
import warnings
from typing import Any

from surelabel.exceptions import CorpusError, DataWarning
from surelabel.tables.reading import Row, TableReader
from surelabel.tables.texts import is_missing

_log = logging.getLogger(__name__)

_INDICATORS = {"0": False, "1": True, "false": False, "true": True, "0.0": False, "1.0": True, "": False}
# Between the first and the last of several columns.
_RANGE = ".."
# Marks that people put between label names, and the share of cells above which one of them is taken to be meant so.
_SEPARATORS, _COMMON_SHARE = (",", ";", "|"), 0.02


def is_pattern(name: str) -> bool:
    """Whether a name may stand for several columns."""
    return any(mark in name for mark in (_RANGE, "*", "?"))


def columns_of(name: str, headings: list[str], taken: set[str]) -> list[str]:
    """Return the columns that a name, a range or a pattern stands for; the name itself if there are none."""
    if name in headings:
        return [name]
    first, _, last = name.partition(_RANGE)
    if first in headings and last in headings:
        found = headings[headings.index(first) : headings.index(last) + 1]
    else:
        found = fnmatch.filter(headings, name)
    return [column for column in found if column not in taken] or [name]


def check_names(rows: list[Row], column: str, reader: TableReader, *, numeric_labels: bool) -> None:
    """Raise if a label column holds numbers, which are seldom names of labels."""
    filled = _filled(rows, column)
    numbers = [(row, cell) for row, cell in filled if _is_number(cell)]
    typed = [(row, cell) for row, cell in numbers if not isinstance(cell, str)]
    if not numeric_labels and (typed or (numbers and len(numbers) == len(filled))):
        row, cell = (typed or numbers)[0]
        raise CorpusError(
            f"The label column {column!r} of {reader.name!r} must hold label names (lists, or separated names). "
            f"{reader.place(row)} has the number {cell!r}; if numbers are the names, say numeric_labels=True "
            "(--numeric-labels)."
        )


def separator_of(rows: list[Row], column: str, reader: TableReader, given: str | None) -> str | None:
    """Return what separates label names: what is given, or for "auto" the mark that most cells have.

    Warns if another one is as likely.
    """
    if given is None:
        return None
    strings = [cell for _, cell in _filled(rows, column) if isinstance(cell, str)]
    cells = {mark: [cell for cell in strings if mark in cell] for mark in _SEPARATORS}
    common = [mark for mark in cells if len(cells[mark]) > _COMMON_SHARE * len(strings)]
    common.sort(key=lambda mark: -len(cells[mark]))
    if given != "auto":
        found, n_found, have = given, "No cell", "has"
        is_sure = any(given in cell for cell in strings)
    else:
        found = common[0] if common else ","
        n_found, have, is_sure = f"{len(cells[found]):,} cells", "have", len(common) < 2
        if found != ",":
            n_cells = f"{len(cells[found]):,} of {len(strings):,}"
            _log.info("labels in column %r are separated by %r, in %s cells", column, found, n_cells)
    other = next((mark for mark in common if mark != found), None)
    if other is not None and not is_sure:
        warnings.warn(
            f"{n_found} of the label column {column!r} of {reader.name!r} {have} {found!r} between labels, and "
            f"{len(cells[other]):,} of {len(strings):,} have {other!r}, such as {cells[other][0]!r:.60}: {found!r} is "
            f"taken as the separator. If it is {other!r}, say separator={other!r} (--separator {other!r} on the "
            "command line).",
            DataWarning,
            stacklevel=5,
        )
    return found


def as_label_set(cell: Any, separator: str | None, place: str) -> set[str]:
    """Turn a list or a separated string into label names."""
    if is_missing(cell):
        return set()
    if isinstance(cell, str):
        names = [cell] if separator is None else cell.split(separator)
    elif isinstance(cell, list | tuple):
        if any(isinstance(item, list | dict) or item is None for item in cell):
            raise CorpusError(f"{place} must have names as labels. Got {cell!r:.60} instead.")
        names = [str(item) for item in cell]
    elif _is_number(cell):
        names = [str(cell)]
    else:
        raise CorpusError(f"{place} must have a list or separated names as labels. Got {type(cell).__name__} instead.")
    return {name.strip() for name in names if name.strip()}


def is_present(cell: Any, column: str, place: str) -> bool:
    """Read a cell of 0 or 1."""
    present = _INDICATORS.get("" if is_missing(cell) else str(cell).strip().lower())
    if present is None:
        raise CorpusError(
            f"{place} must have 0 or 1 in the label column {column!r}, as one of several columns. "
            f"Got {cell!r:.40} instead."
        )
    return present


def _filled(rows: list[Row], column: str) -> list[tuple[Row, Any]]:
    """Return the rows that have something in a column, with it."""
    return [(row, cell) for row in rows if not is_missing(cell := row.cells.get(column))]


def _is_number(cell: Any) -> bool:
    """Say whether a cell is one number, written or stored."""
    if isinstance(cell, str):
        try:
            float(cell)
        except ValueError:
            return False
        return True
    return isinstance(cell, int | float)
