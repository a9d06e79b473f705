"""Writers of tables: JSONL, CSV, TSV, Parquet and XLSX. No cell of a CSV file or workbook begins a formula."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any

from surelabel._core.extras import require
from surelabel._core.formatting import encodable, printable
from surelabel.exceptions import DataWarning, InvalidInputError

OUTPUT_FORMATS = ("jsonl", "csv", "tsv", "parquet", "xlsx")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001  # full-width ones are formulas too
# Control and direction characters that JSON would write as they are.
_UNSAFE = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_LONGEST_CELL, _MOST_SHEET_ROWS = 32_767, 1_048_576

Record = Mapping[str, Any]
Schema = Mapping[str, Any]
"""Columns with their types: str, int, float or bool, a list of one type, or a mapping of fields."""


class Writer:
    """Writes records until it is closed; this one writes a JSON object per line."""

    def __init__(self, stream: IO[Any]) -> None:
        is_text = isinstance(stream, io.TextIOBase)
        self._stream: Any = stream if is_text else codecs.getwriter("utf-8")(stream, "replace")

    def write(self, records: Iterable[Record]) -> None:
        """Write records."""
        for record in records:
            self._stream.write(to_json(record) + "\n")
        self._stream.flush()

    def close(self) -> None:
        """Complete the file."""
        self._stream.flush()


def open_writer(stream: IO[Any], kind: str, headings: Sequence[str] | Schema = ()) -> Writer:
    """Return a writer onto a stream, which stays open: of bytes, or for jsonl, csv and tsv also of text.

    Parameters
    ----------
    kind : str
        One of `OUTPUT_FORMATS`.
    headings : sequence of str, or mapping of name to type
        The columns; Parquet needs types (see `Schema`), JSONL needs none.
    """
    if kind == "jsonl":
        return Writer(stream)
    if kind in {"csv", "tsv"}:
        return _CsvWriter(stream, headings, "," if kind == "csv" else "\t")
    if kind == "xlsx":
        return _SheetWriter(stream, headings)
    if kind == "parquet":
        return _ParquetWriter(stream, headings)
    raise InvalidInputError(f"The format of an output must be one of {', '.join(OUTPUT_FORMATS)}. Got {kind!r}.")


def to_json(record: Record) -> str:
    """Return a record as one line of JSON; control and direction characters are escaped, NaN is refused."""
    line = json.dumps(record, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return line if line.isascii() else _UNSAFE.sub(_escape, line)


def _escape(mark: re.Match[str]) -> str:
    return "?" if "\ud800" <= mark[0] <= "\udfff" else f"\\u{ord(mark[0]):04x}"


def neutral(cell: Any) -> Any:
    """Return a cell that no spreadsheet takes for a formula: with an apostrophe before it if it begins like one."""
    if not isinstance(cell, str):
        return str(cell) if isinstance(cell, int) and abs(cell) > 2**53 else cell
    # A carriage return begins a row for some spreadsheets, and csv.writer does not quote it.
    text = cell.replace("\r\n", "\n").replace("\r", "\n")
    text = _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", encodable(text))
    return f"'{text}" if text.lstrip(" \xa0\ufeff\u200b").startswith(_FORMULA) else text


class _CsvWriter(Writer):
    """One line per record after a line of headings."""

    def __init__(self, stream: IO[Any], headings: Iterable[str], delimiter: str) -> None:
        super().__init__(stream)
        self._headings = list(headings)
        self._writer = csv.writer(self._stream, delimiter=delimiter, lineterminator="\n")
        self._writer.writerow(map(neutral, self._headings))

    def write(self, records: Iterable[Record]) -> None:
        self._writer.writerows([neutral(record.get(name)) for name in self._headings] for record in records)
        self._stream.flush()


class _SheetWriter(Writer):
    """A workbook of one sheet; strings are stored as strings, and protected as in CSV, which they may become."""

    def __init__(self, stream: IO[bytes], headings: Iterable[str]) -> None:
        openpyxl = require("openpyxl", "corpora", "An Excel workbook")
        self._make_cell = require("openpyxl.cell", "corpora", "An Excel workbook").WriteOnlyCell
        self._stream, self._headings, self._n_rows = stream, list(headings), 0
        self._book = openpyxl.Workbook(write_only=True)
        self._sheet = self._book.create_sheet("answers")
        self.write([dict(zip(self._headings, self._headings, strict=True))])

    def _cell(self, value: Any) -> Any:
        text = neutral(value)
        if not isinstance(text, str):
            return text
        if len(text) > _LONGEST_CELL:
            message = f"A cell of a workbook holds {_LONGEST_CELL:,} characters: longer ones are cut. Write .csv."
            warnings.warn(message, DataWarning, stacklevel=2)
        cell = self._make_cell(self._sheet, printable(text[:_LONGEST_CELL]))
        cell.data_type = "s"
        return cell

    def write(self, records: Iterable[Record]) -> None:
        for record in records:
            self._n_rows += 1
            if self._n_rows > _MOST_SHEET_ROWS:
                raise InvalidInputError(f"A workbook holds at most {_MOST_SHEET_ROWS:,} rows. Write .csv or .parquet.")
            self._sheet.append([self._cell(record.get(name)) for name in self._headings])

    def close(self) -> None:
        self._book.save(self._stream)


class _ParquetWriter(Writer):
    """A Parquet file with typed columns."""

    def __init__(self, stream: IO[bytes], schema: Any) -> None:
        if not isinstance(schema, Mapping):
            raise InvalidInputError("Parquet needs the types of its columns. Got names only.")
        self._arrow = require("pyarrow", "corpora", "Parquet")
        self._schema = self._arrow.schema([(name, self._type(kind)) for name, kind in schema.items()])
        parquet = require("pyarrow.parquet", "corpora", "Parquet")
        self._writer = parquet.ParquetWriter(stream, self._schema, compression="zstd")

    def _type(self, kind: Any) -> Any:
        if isinstance(kind, list):
            return self._arrow.list_(self._type(kind[0]))
        if isinstance(kind, Mapping):
            return self._arrow.struct([(name, self._type(inner)) for name, inner in kind.items()])
        names = {str: "string", int: "int64", float: "float64", bool: "bool_"}
        return getattr(self._arrow, names[kind])()

    def write(self, records: Iterable[Record]) -> None:
        rows = [{name: record.get(name) for name in self._schema.names} for record in records]
        if rows:
            rows = json.loads(json.dumps(rows, ensure_ascii=False).encode("utf-8", "replace"))  # no lone surrogates
            self._writer.write_table(self._arrow.Table.from_pylist(rows, schema=self._schema))

    def close(self) -> None:
        self._writer.close()
