"""Tables out: JSONL, CSV, Parquet and XLSX."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Protocol

from surelabel._core.extras import import_extra
from surelabel._core.wording import printable
from surelabel.exceptions import DataWarning, InvalidInputError

OUTPUT_FORMATS = ("jsonl", "csv", "parquet", "xlsx")
_SUFFIXES = {f".{name}": name for name in OUTPUT_FORMATS} | {".ndjson": "jsonl"}
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_C1_CONTROLS = re.compile("[\x7f-\x9f\u2028\u2029]")
_LONGEST_CELL, _MOST_SHEET_ROWS = 32_767, 1_048_576

Record = Mapping[str, Any]


class TableWriter(Protocol):
    """Takes records until it is closed; its stream stays open."""

    def write(self, records: Iterable[Record]) -> None:
        """Write some records."""

    def close(self) -> None:
        """Write what is left."""


def output_format(path: str | os.PathLike[str], *, strict: bool = True) -> str | None:
    """Return the format of an output file by its suffix; None or an error if the suffix does not say."""
    kind = _SUFFIXES.get(Path(path).suffix.lower())
    if kind is None and strict:
        raise InvalidInputError(
            f"An output file must end in one of {', '.join(_SUFFIXES)}. Got {Path(path).name!r} instead."
        )
    return kind


def to_json(record: Record) -> str:
    """Return a record as one line of JSON, without characters that control a terminal."""
    line = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    return line if line.isascii() else _C1_CONTROLS.sub(lambda mark: f"\\u{ord(mark.group()):04x}", line)


def neutral(cell: Any) -> Any:
    """Return a cell that no spreadsheet takes for a formula: with an apostrophe before it if it begins like one.

    Examples
    --------
    >>> neutral("=1+1"), neutral("oil"), neutral(-1)
    ("'=1+1", 'oil', -1)
    """
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell


class _JsonlWriter:
    """One JSON object per line, onto a stream of text or of bytes."""

    def __init__(self, stream: IO[Any]) -> None:
        self._wraps = not isinstance(stream, io.TextIOBase)
        self._stream: Any = io.TextIOWrapper(stream, "utf-8", "surrogateescape", "") if self._wraps else stream

    def write(self, records: Iterable[Record]) -> None:
        self._stream.writelines(to_json(record) + "\n" for record in records)
        self._stream.flush()

    def close(self) -> None:
        self._stream.flush()
        if self._wraps:
            self._stream.detach()  # which leaves the stream of bytes open


class _CsvWriter(_JsonlWriter):
    """One line per record, after a line of headings."""

    def __init__(self, stream: IO[Any], headings: Sequence[str], *, raw_cells: bool) -> None:
        super().__init__(stream)
        self._writer = csv.writer(self._stream, lineterminator="\n")
        self._headings = headings
        self._shown: Callable[[Any], Any] = (lambda cell: cell) if raw_cells else neutral
        self._writer.writerow(map(self._shown, headings))

    def write(self, records: Iterable[Record]) -> None:
        self._writer.writerows([self._shown(record.get(name)) for name in self._headings] for record in records)
        self._stream.flush()


class _SheetWriter:
    """A workbook of one sheet. Strings are stored as strings, which no spreadsheet takes for formulas."""

    def __init__(self, stream: IO[bytes], headings: Sequence[str]) -> None:
        openpyxl = import_extra("openpyxl", "corpora", "An Excel workbook")
        self._make_cell = import_extra("openpyxl.cell", "corpora", "An Excel workbook").WriteOnlyCell
        self._stream = stream
        self._book = openpyxl.Workbook(write_only=True)
        self._sheet = self._book.create_sheet("answers")
        self._headings = headings
        self._n_rows = 0
        self._append(headings)

    def _append(self, cells: Iterable[Any]) -> None:
        self._n_rows += 1
        if self._n_rows > _MOST_SHEET_ROWS:
            raise InvalidInputError(
                f"A sheet of a workbook must have at most {_MOST_SHEET_ROWS:,} rows. Got more; write .csv or .parquet."
            )
        self._sheet.append([self._cell(cell) for cell in cells])

    def _cell(self, value: Any) -> Any:
        if isinstance(value, int) and abs(value) > 2**53:
            value = str(value)  # a spreadsheet keeps 15 digits of a number
        if not isinstance(value, str):
            return value
        if len(value) > _LONGEST_CELL:
            message = f"A cell of a workbook has at most {_LONGEST_CELL:,} characters: longer ones are cut. Write .csv."
            warnings.warn(message, DataWarning, stacklevel=2)
            value = f"{value[: _LONGEST_CELL - 1]}…"
        cell = self._make_cell(self._sheet, printable(value))
        cell.data_type = "s"
        return cell

    def write(self, records: Iterable[Record]) -> None:
        for record in records:
            self._append(record.get(name) for name in self._headings)

    def close(self) -> None:
        self._book.save(self._stream)


class _ParquetWriter:
    """A file with a schema."""

    def __init__(self, stream: IO[bytes], schema: Mapping[str, Any]) -> None:
        self._pyarrow = import_extra("pyarrow", "corpora", "Parquet")
        parquet = import_extra("pyarrow.parquet", "corpora", "Parquet")
        self._schema = self._pyarrow.schema([(name, self._type(kind)) for name, kind in schema.items()])
        self._writer = parquet.ParquetWriter(stream, self._schema, compression="zstd")

    def _type(self, kind: Any) -> Any:
        """Return the type that a schema means by a Python type, a list of one, or a mapping of fields."""
        if isinstance(kind, list):
            return self._pyarrow.list_(self._type(kind[0]))
        if isinstance(kind, Mapping):
            return self._pyarrow.struct([(name, self._type(inner)) for name, inner in kind.items()])
        kinds = self._pyarrow
        plain = {str: kinds.string(), int: kinds.int64(), float: kinds.float64(), bool: kinds.bool_()}
        return plain[kind]

    def write(self, records: Iterable[Record]) -> None:
        rows = list(records)
        if rows:
            self._writer.write_table(self._pyarrow.Table.from_pylist(rows, schema=self._schema))

    def close(self) -> None:
        self._writer.close()


def open_writer(
    stream: IO[Any],
    kind: str,
    *,
    headings: Sequence[str] = (),
    schema: Mapping[str, Any] | None = None,
    raw_cells: bool = False,
) -> TableWriter:
    """Return a writer onto a stream of bytes, for jsonl and csv also one of text.

    `headings` are the columns of csv and xlsx; `schema` are those of parquet, with their types (or a list of one type,
    or a mapping of fields). With `raw_cells` cells of csv that begin like a formula stay as they are.

    Examples
    --------
    >>> import io
    >>> with io.StringIO() as stream:
    ...     open_writer(stream, "csv", headings=("id", "labels")).write([{"id": "=1+1", "labels": "oil"}])
    ...     print(stream.getvalue())
    id,labels
    '=1+1,oil
    """
    if kind == "jsonl":
        return _JsonlWriter(stream)
    if kind == "csv":
        return _CsvWriter(stream, headings, raw_cells=raw_cells)
    if kind == "xlsx":
        return _SheetWriter(stream, headings)
    if kind == "parquet" and schema is not None:
        return _ParquetWriter(stream, schema)
    raise InvalidInputError(
        f"The format of an output must be one of {', '.join(OUTPUT_FORMATS)}. Got {kind!r} instead."
    )
