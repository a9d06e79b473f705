"""The texts of a table: which columns hold text, id, group and scores, and each row as a text."""

from __future__ import annotations

import dataclasses
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from surelabel._core.formatting import encodable
from surelabel.exceptions import InvalidInputError
from surelabel.tables.read import Row, cell_text
from surelabel.tables.scores import ANNIF_SUFFIX, Scores, as_scores, read_scores

# Invisible characters that are not part of any name; joiners (U+200C, U+200D) are part of some.
_INVISIBLE = re.compile("[\xad\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")


@dataclasses.dataclass(frozen=True)
class Columns:
    """Which columns hold what; several text columns are joined by line breaks.

    `id` is "id" by default, if there is such a column; `group` and `scores` are optional. `scores` is a column, or a
    file of scores by id (see `surelabel.tables.scores`).
    """

    text: str | tuple[str, ...] = ("text",)
    id: str | None = None
    group: str | None = None
    scores: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", (self.text,) if isinstance(self.text, str) else tuple(self.text))
        if not self.text:
            raise InvalidInputError("At least one text column must be named. Got none.")

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns that a table must have."""
        scores = None if is_file(self.scores) else self.scores
        return tuple(dict.fromkeys([*self.text, *filter(None, (self.id, self.group, scores))]))


class TextRow(NamedTuple):
    """A text of a file; with a `problem` (a sentence) its text is empty. `number` counts rows of the file from 1."""

    number: int
    id: str
    text: str
    group: str | None = None
    problem: str | None = None
    cells: Mapping[str, Any] = {}
    scores: Scores | None = None
    place: str = ""


def text_rows(rows: Iterable[Row], columns: Columns) -> Iterator[TextRow]:
    """Yield each row as a text."""
    beside = read_scores(Path(columns.scores or "").expanduser()) if is_file(columns.scores) else None
    for row in rows:
        name = cell_text(row.cells.get(columns.id or "id")) or str(row.number)
        try:
            text, group, scores = _parts(row, columns)
        except ValueError as error:
            yield TextRow(row.number, name, "", None, f"{row.place} {error}", row.cells, None, row.place)
        else:
            found = beside.get(name) if beside else scores
            yield TextRow(row.number, name, text, group, None, row.cells, found, row.place)


def _parts(row: Row, columns: Columns) -> tuple[str, str | None, Scores | None]:
    """Return the text, group and scores of a row, or raise ValueError with its problem."""
    if row.problem is not None:
        raise ValueError(row.problem)
    for column in filter(None, (*columns.text, columns.id, columns.group)):
        if column not in row.cells:
            shown = ", ".join(f"{heading!r:.60}" for heading in list(row.cells)[:12])
            raise ValueError(f"must have a column {column!r}. It has {shown}.")
    text = join_texts([row.cells[column] for column in columns.text])
    group = None if columns.group is None else filled(row.cells[columns.group], columns.group)
    return text, group, as_scores(row.cells.get(columns.scores), row.place) if columns.scores else None


def is_file(name: str | None) -> bool:
    """Whether there is a file of this name, or a folder with files of `annif index`."""
    path = Path(name or "").expanduser()
    return bool(name) and (path.is_file() or any(path.glob(f"*{ANNIF_SUFFIX}")))


def join_texts(cells: Sequence[Any]) -> str:
    """Join cells by line breaks, missing ones left out; raise ValueError if one is not text."""
    for cell in cells:
        if not isinstance(cell, str) and not is_missing(cell):
            raise ValueError(f"must hold text. Got {type(cell).__name__} {cell!r:.40}.")
    return encodable("\n".join(cell for cell in cells if isinstance(cell, str) and cell))


def filled(cell: Any, column: str) -> str:
    """Return a cell as a string; raise ValueError if it is empty. The numbers 1 and 1.0 are one value."""
    value = cell_text(cell)
    if not value:
        raise ValueError(f"must have a value in the column {column!r}. Got nothing; fill it in, or remove the row.")
    return value


def is_missing(cell: Any) -> bool:
    """Whether a cell is empty, null or not a number."""
    return cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell))


def clean_name(name: str) -> str:
    """Return a label name in NFC, without invisible characters and repeated white space."""
    if name.isascii():
        return " ".join(name.split())
    return " ".join(_INVISIBLE.sub("", unicodedata.normalize("NFC", encodable(name))).split())


def matching_key(name: str) -> str:
    """Return a key under which names match: after NFC and casefold."""
    return unicodedata.normalize("NFC", clean_name(name).casefold())
