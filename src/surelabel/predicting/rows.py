"""From a record of a file to its text and id."""

from __future__ import annotations

import codecs
import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from surelabel.exceptions import CorpusError, InvalidInputError
from surelabel.text.inputs import encodable

__all__ = ["InputColumns", "Row", "RowParser"]

Row: TypeAlias = tuple[str, str | None]
"""Text and id of a row; None where it has no id."""


@dataclasses.dataclass(frozen=True)
class InputColumns:
    """Where the texts of a file stand.

    Parameters
    ----------
    text : tuple of str
        The text column, or several to join by line breaks. A `.txt` file has a text a line and no columns.
    id : str, optional
        A column that tells texts apart; "id" where there is such a column.
    encoding : str
        Of text files.
    """

    text: tuple[str, ...] = ("text",)
    id: str | None = None
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise InvalidInputError(
                f"The 'encoding' must name a text encoding, e.g. utf-8 or latin-1. Got {self.encoding!r} instead."
            ) from None
        if not self.text:
            raise InvalidInputError("The 'text' must name one column at least. Got none instead.")


class RowParser:
    """Turn records into texts and ids, and say what is wrong with those that cannot be.

    Parameters
    ----------
    columns : InputColumns
    name : str
        Of the file, for messages.
    """

    def __init__(self, columns: InputColumns, name: str) -> None:
        self.columns = columns
        self.name = name

    def check_headings(self, headings: Sequence[str]) -> None:
        """Raise where a column that is asked for is not there."""
        if not headings:
            raise CorpusError(f"{self.name!r} must begin with a line of headings. Got an empty file instead.")
        for column in (*self.columns.text, *([self.columns.id] if self.columns.id else [])):
            if column not in headings:
                raise _no_column(column, headings, f"{self.name!r}")

    def wanted(self, headings: Sequence[str]) -> list[str]:
        """Return the columns to read, each once, after checking that they are there."""
        self.check_headings(headings)
        identity = self._id_column(headings)
        return list(dict.fromkeys([*self.columns.text, *([identity] if identity else [])]))

    def from_line(self, line: str, place: str) -> Row:
        """Return text and id from a JSON object; `place` says in messages where it stands."""
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise CorpusError(f"{place} must be JSON. Got an error instead: {error}.") from error
        if not isinstance(record, dict):
            raise CorpusError(f"{place} must be a JSON object. Got {type(record).__name__} instead.")
        missing = [column for column in self.columns.text if column not in record]
        if missing:
            raise _no_column(missing[0], list(record), place)
        return self.from_record(record, place)

    def from_record(self, record: Mapping[str, Any], place: str) -> Row:
        """Join the text cells of a record; a missing cell is an empty text."""
        cells = [record[column] for column in self.columns.text]
        identity = self._id_in(record, place)
        for cell in cells:
            missing = cell is None or (isinstance(cell, float) and math.isnan(cell))
            if not (missing or isinstance(cell, str)):
                raise CorpusError(f"{place} must hold text. Got {type(cell).__name__} {cell!r:.40} instead.")
        text = "\n".join(cell for cell in cells if isinstance(cell, str) and cell)
        return encodable(text), None if identity is None else encodable(identity)

    def _id_column(self, names: Sequence[str]) -> str | None:
        return self.columns.id or ("id" if "id" in names else None)

    def _id_in(self, record: Mapping[str, Any], place: str) -> str | None:
        column = self._id_column(list(record))
        if column is None:
            return None
        if column not in record:
            raise _no_column(column, list(record), place)
        return str(record[column])


def _no_column(column: str, headings: Sequence[str], place: str) -> CorpusError:
    listed = ", ".join(repr(heading) for heading in headings[:12])
    return CorpusError(f"{place} must have a column {column!r}. It has {listed}: name the text column with --text.")
