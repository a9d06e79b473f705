"""Rows of tables: plain text, JSONL, CSV, TSV, Parquet and XLSX, from a disk, a remote store or standard input.

A row that cannot be read comes with its problem instead of its cells: whoever reads decides what that leads to. What
concerns the whole file (it is damaged, or not what its name says) is a CorpusError.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import gzip
import io
import itertools
import json
import os
import posixpath
import re
import sys
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from surelabel._core.extras import import_extra
from surelabel.exceptions import CorpusError, DataWarning, InvalidInputError
from surelabel.tables.stores import is_url, open_binary

FORMATS = ("txt", "jsonl", "csv", "tsv", "parquet", "xlsx")
SUFFIXES = {f".{name}": name for name in FORMATS} | {".ndjson": "jsonl"}
STDIN = "-"
TO_THE_END = -1

_LONGEST_CELL = 2**31 - 1
_ROWS_AT_A_TIME = 1_024
# What stands between columns if it is not a comma or a tab: many spreadsheets write semicolons.
_OTHER_DELIMITERS = (";", "\t")
_LONE_RETURN = re.compile(r"(?<=\r)(?!\n)")
_SIGNATURES = {
    b"PK\x03\x04": "a zip archive",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook (.xls); save it as .xlsx or CSV",
    b"PAR1": "a Parquet file; let its name end in .parquet, or say --input-format parquet",
    b"\x1f\x8b": "a gzip file; let its name end in .gz",
    b"%PDF": "a PDF document",
    b"\xff\xfe": "text in UTF-16; say --encoding utf-16",
    b"\xfe\xff": "text in UTF-16; say --encoding utf-16",
}
_WORKBOOK = "an Excel workbook (.xlsx); let its name end in .xlsx, or save it as CSV UTF-8"

Choose = Callable[[list[str]], Sequence[str]]
"""Takes the headings of a table and returns the columns to read; raises if one is missing."""

_Read = Iterator[tuple[dict[str, Any], str | None, int | None]]
"""Cells, problem and line of each row."""


class Row(NamedTuple):
    """A row of a table: its number in the file (from 1), cells by column, why it cannot be read, and its line."""

    number: int
    cells: dict[str, Any]
    problem: str | None = None
    line: int | None = None


@dataclasses.dataclass(frozen=True)
class Partition:
    """Some rows of one file, or all of them.

    `start` and `stop` are bytes of a text file (a line belongs where its first byte is) or row groups of a Parquet
    file; `first_row` is the number of the first row in the file, from 1; `digest` is a hash of the rows.
    """

    url: str
    kind: str
    start: int = 0
    stop: int = TO_THE_END
    first_row: int = 1
    n_rows: int = 0
    digest: str = ""

    @property
    def name(self) -> str:
        """The file's name for messages."""
        return "standard input" if self.url == STDIN else posixpath.basename(self.url.replace(os.sep, "/"))

    @property
    def is_whole(self) -> bool:
        """Whether it is a whole file."""
        return (self.start, self.stop) == (0, TO_THE_END)

    @property
    def is_packed(self) -> bool:
        """Whether the file is compressed by gzip."""
        return self.url.lower().endswith(".gz")


def format_of(name: str | os.PathLike[str]) -> str | None:
    """Return a file's format by its suffix, None if the suffix does not say.

    Examples
    --------
    >>> format_of("news.csv.gz"), format_of("answers.ndjson"), format_of("photo.jpg")
    ('csv', 'jsonl', None)
    """
    suffixes = [suffix.lower() for suffix in Path(name).suffixes]
    if suffixes[-1:] == [".gz"]:
        suffixes.pop()
    return SUFFIXES.get(suffixes[-1] if suffixes else "")


class TableReader:
    """Reads the rows of a partition; `position` is how much has been read, in the unit of `total`."""

    def __init__(self, partition: Partition, encoding: str = "utf-8") -> None:
        self.partition = partition
        self.name = partition.name
        self.position = 0
        self._encoding = encoding
        self._raw: IO[bytes] | None = None
        self._line = 0
        self._bad_byte: str | None = None

    @property
    def total(self) -> int | None:
        """How much there is to read: bytes of a local text file, rows of a Parquet file; None if that is not known."""
        if self.partition.url == STDIN or is_url(self.partition.url) or self.partition.kind == "xlsx":
            return None
        if self.partition.kind != "parquet":
            return Path(self.partition.url).stat().st_size
        with open_binary(self.partition.url) as stream:
            return int(parquet_file(stream, self.name).metadata.num_rows)

    def place(self, row: Row) -> str:
        """Say where a row is.

        Examples
        --------
        >>> TableReader(Partition("news.csv", "csv")).place(Row(3, {}, line=7))
        "Row 3 (line 7) of 'news.csv'"
        """
        line = f" (line {row.line})" if row.line not in {None, row.number} and self.partition.is_whole else ""
        return f"Row {row.number}{line} of {self.name!r}"

    def rows(self, choose: Choose = list) -> Iterator[Row]:
        """Yield the rows, with the cells of the columns that `choose` returns (of JSONL, all cells)."""
        readers = {"txt": self._texts, "jsonl": self._objects, "parquet": self._parquet_rows, "xlsx": self._sheet_rows}
        read = readers.get(self.partition.kind, self._table_rows)
        try:
            with contextlib.ExitStack() as opened:
                for number, (cells, problem, line) in enumerate(read(opened, choose), self.partition.first_row):
                    yield Row(number, cells, problem, line)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise self._unreadable("a whole gzip file", error) from error
        except UnicodeError as error:
            raise self._unreadable(f"text in {self._encoding}", error) from error
        except OSError as error:
            raise CorpusError(f"{self.name!r} cannot be read: {error.strerror or error}.") from error

    def _unreadable(self, what: str, error: Exception) -> CorpusError:
        """Return the error of a file that is not what it should be."""
        return CorpusError(f"{self.name!r} must be {what}. Got an error instead: {error}.")

    def _open(self, opened: contextlib.ExitStack) -> Any:
        """Open the file, unpacked if it is packed."""
        if self.partition.url == STDIN:
            # Closing the wrapper must not close the process's own standard input.
            return opened.enter_context(os.fdopen(sys.stdin.fileno(), "rb", closefd=False))
        raw = opened.enter_context(open_binary(self.partition.url))
        if not self.partition.is_packed:
            return raw
        self._raw = raw
        return opened.enter_context(gzip.open(raw, "rb"))

    def _lines(self, opened: contextlib.ExitStack) -> Iterator[str]:
        """Yield the lines that begin in the range of bytes, as text; remember a byte that is not text."""
        lines: Any = self._open(opened)
        start, stop = self.partition.start, self.partition.stop
        if start > 0:
            lines.seek(start - 1)
            start += len(lines.readline()) - 1
        elif not has_plain_line_feeds(self._encoding):
            lines = opened.enter_context(io.TextIOWrapper(lines, self._encoding, newline="\n"))
        else:
            lines = lines if hasattr(lines, "peek") else opened.enter_context(io.BufferedReader(lines))
            self._check_is_text(lines)
        for line in lines:
            if stop != TO_THE_END and start >= stop:
                return
            start += len(line)
            self._line += 1
            self.position = self._raw.tell() if self._raw is not None else start
            text = line if isinstance(line, str) else self._decoded(line)
            yield text.removeprefix("\N{BYTE ORDER MARK}") if self._line == 1 and self.partition.start == 0 else text

    def _decoded(self, line: bytes) -> str:
        try:
            return line.decode(self._encoding)
        except UnicodeDecodeError as error:
            self._bad_byte = f"0x{line[error.start]:02x}"
            return line.decode(self._encoding, "replace")

    def _check_is_text(self, stream: Any) -> None:
        """Raise if a text file is a workbook, an archive or the like."""
        head = stream.peek(4096)
        what = next((what for mark, what in _SIGNATURES.items() if head.startswith(mark)), None)
        if what is None:
            return
        if head.startswith(b"PK") and _is_workbook(stream, head):
            what = _WORKBOOK
        raise CorpusError(f"{self.name!r} must be {self.partition.kind.upper()}. It is {what}.")

    def _problem(self) -> str | None:
        """Return what is wrong with the bytes of the row that was read last."""
        byte, self._bad_byte = self._bad_byte, None
        if byte is None:
            return None
        return (
            f"must be text in {self._encoding}. Got byte {byte} instead; name the right encoding, e.g. --encoding "
            "latin-1 (encoding='latin-1' in Python)."
        )

    def _texts(self, opened: contextlib.ExitStack, choose: Choose) -> _Read:
        """Read one text per line."""
        for line in self._lines(opened):
            yield {"text": line.removesuffix("\n").removesuffix("\r")}, self._problem(), self._line

    def _objects(self, opened: contextlib.ExitStack, choose: Choose) -> _Read:
        """Read one JSON object per line; empty lines do not count."""
        for line in self._lines(opened):
            if not line.strip():
                continue
            record: Any = {}
            problem = self._problem()
            if problem is None:
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError) as error:
                    problem = f"must be JSON. Got an error instead: {error}."
            if not isinstance(record, dict):
                record, problem = {}, f"must be a JSON object. Got {type(record).__name__} instead."
            yield record, problem, self._line

    def _table_rows(self, opened: contextlib.ExitStack, choose: Choose) -> _Read:
        """Read a table with a line of headings; every cell is a string, short rows end in empty ones."""
        csv.field_size_limit(_LONGEST_CELL)
        lines = (piece for line in self._lines(opened) for piece in _LONE_RETURN.split(line) if piece)
        first = next((line for line in lines if line.strip()), "")
        delimiter = delimiter_of(first, "," if self.partition.kind == "csv" else "\t")
        reader = csv.reader(itertools.chain([first] if first else [], lines), delimiter=delimiter, strict=True)
        headings: list[str] | None = None
        while True:
            began = self._line + 1
            try:
                cells = next(reader, None)
                problem = self._problem()
            except csv.Error as error:
                cells, problem = [""], f"must be a row of a table with {delimiter!r} between columns. Got: {error}."
            if headings is None:
                if problem is not None:
                    raise CorpusError(f"The headings of {self.name!r} {problem}")
                headings = cells or []
                places = [(name, headings.index(name)) for name in choose(headings)]
                continue
            if cells is None:
                return
            if not cells:
                continue
            if problem is None and len(cells) > len(headings) and any(cells[len(headings) :]):
                problem = f"must have {len(headings)} cells. Got {len(cells)} instead."
            yield {name: cells[at] if at < len(cells) else "" for name, at in places}, problem, began

    def _parquet_rows(self, opened: contextlib.ExitStack, choose: Choose) -> _Read:
        """Read some columns of a Parquet file, a few rows at a time."""
        stream = self._open(opened)
        file = parquet_file(io.BytesIO(stream.read()) if self.partition.is_packed else stream, self.name)
        chosen = list(choose(list(file.schema_arrow.names)))
        stop = file.metadata.num_row_groups if self.partition.stop == TO_THE_END else self.partition.stop
        groups = list(range(self.partition.start, stop))
        arrow = import_extra("pyarrow", "corpora", "Parquet")
        try:
            for batch in file.iter_batches(_ROWS_AT_A_TIME, row_groups=groups, columns=chosen) if groups else ():
                for cells in batch.to_pylist():
                    self.position += 1
                    yield cells, None, None
        except (arrow.ArrowException, UnicodeDecodeError) as error:
            raise self._unreadable("a Parquet file", error) from error

    def _sheet_rows(self, opened: contextlib.ExitStack, choose: Choose) -> _Read:
        """Read the first sheet of an Excel workbook; as in CSV, every cell is a string."""
        openpyxl = import_extra("openpyxl", "corpora", "An Excel workbook")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # styles and extensions that openpyxl does not know
            try:
                book = openpyxl.load_workbook(self._open(opened), read_only=True, data_only=True)
                sheet = book.worksheets[0]
            except Exception as error:  # parsers of damaged bytes raise what they like
                raise self._unreadable("an Excel workbook", error) from error
        opened.callback(book.close)
        if len(book.worksheets) > 1:
            message = f"{self.name!r} has {len(book.worksheets)} sheets; only the first, {sheet.title!r}, is read."
            warnings.warn(message, DataWarning, stacklevel=2)
        rows = ((line, [_cell(cell) for cell in cells]) for line, cells in enumerate(sheet.values, 1))
        filled = ((line, cells) for line, cells in rows if any(cells))
        _, headings = next(filled, (0, []))
        places = [(name, headings.index(name)) for name in choose(headings)]
        try:
            for line, cells in filled:
                yield {name: cells[at] if at < len(cells) else "" for name, at in places}, None, line
        except (zipfile.BadZipFile, SyntaxError, KeyError, ValueError) as error:
            raise self._unreadable("an Excel workbook", error) from error


def _cell(value: Any) -> str:
    """Return a spreadsheet's cell as CSV would have it."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _is_workbook(stream: Any, head: bytes) -> bool:
    """Whether a zip archive is an Excel workbook."""
    try:
        return any(name.startswith("xl/") for name in zipfile.ZipFile(stream).namelist())
    except (OSError, ValueError, zipfile.BadZipFile):  # a stream that cannot be read twice
        return any(mark in head for mark in (b"xl/", b"docProps/", b"[Content_Types].xml"))


def has_plain_line_feeds(encoding: str) -> bool:
    """Whether a line feed is one byte: lines can be split before they are decoded."""
    return "\n".encode(encoding) == b"\n"


def delimiter_of(headings: str, usual: str = ",") -> str:
    """Return what stands between the columns of a table, by its line of headings.

    That is the usual delimiter, unless the headings have none of it and have a semicolon or a tab.

    Examples
    --------
    >>> delimiter_of("id,body,tags"), delimiter_of("id;body;tags"), delimiter_of("body")
    (',', ';', ',')
    """
    if usual in headings:
        return usual
    return next((delimiter for delimiter in _OTHER_DELIMITERS if delimiter in headings), usual)


def parquet_file(stream: Any, name: str) -> Any:
    """Open a Parquet file."""
    pyarrow, parquet = (import_extra(module, "corpora", "Parquet") for module in ("pyarrow", "pyarrow.parquet"))
    try:
        return parquet.ParquetFile(stream)
    except (pyarrow.ArrowException, OSError) as error:
        raise CorpusError(f"{name!r} must be a Parquet file. Got an error instead: {error}.") from error


def check_format(kind: str | None, name: str, *, is_stdin: bool = False) -> None:
    """Raise unless there is such a format."""
    allowed = [known for known in FORMATS if not (is_stdin and known in {"parquet", "xlsx"})]
    if kind not in allowed:
        raise InvalidInputError(f"The format of {name} must be one of {', '.join(allowed)}. Got {kind!r}.")
