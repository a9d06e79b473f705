"""Rows of tables: plain text, JSONL, CSV, TSV, Parquet and XLSX, from a disk, a URL or standard input.

A row that cannot be read has a problem; an error that concerns the whole file is a CorpusError.
"""

from __future__ import annotations

import contextlib
import csv
import datetime
import gzip
import io
import itertools
import json
import lzma
import math
import os
import re
import sys
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from surelabel._core.extras import require
from surelabel._core.formatting import count, encodable
from surelabel.exceptions import CorpusError, DataWarning, InvalidInputError, MissingDependencyError

FORMATS = ("txt", "jsonl", "csv", "tsv", "parquet", "xlsx")
SUFFIXES = {f".{name}": name for name in FORMATS} | {".ndjson": "jsonl"}
STDIN = "-"

UNPACKED_BYTES, UNPACKED_RATIO = 2**30, 200
"""A compressed file may unpack to the larger of these: 1 GiB, or 200 times its size."""

_PACKED: dict[str, Any] = {".gz": gzip.open, ".tgz": gzip.open, ".xz": lzma.open}
_BAD_BYTE = re.compile("[\udc80-\udcff]")
_QUOTED = re.compile(r'"(?:[^"]|"")*"?')
_SIGNATURES = {
    b"PK\x03\x04": "a zip archive or an Excel workbook; let the name of a workbook end in .xlsx",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook (.xls); save it as .xlsx or CSV",
    b"PAR1": "a Parquet file; let its name end in .parquet",
    b"\x1f\x8b": "a gzip file; let its name end in .gz",
    b"\xfd7zXZ\x00": "an xz file; let its name end in .xz",
    b"%PDF": "a PDF document",
    b"\xff\xfe": "text in UTF-16; give the encoding utf-16",
    b"\xfe\xff": "text in UTF-16; give the encoding utf-16",
}


class Row(NamedTuple):
    """A row of a table.

    `number` counts from 1 in the file; `problem` completes a sentence that begins with `place`
    ("Row 3 of 'news.csv'"), or is None.
    """

    number: int
    cells: dict[str, Any]
    problem: str | None = None
    place: str = ""


def format_of(name: str | os.PathLike[str]) -> str | None:
    """Return a file's format by its suffix; None if the suffix is unknown."""
    path = Path(str(name).lower())
    return SUFFIXES.get(Path(path.stem).suffix if path.suffix in _PACKED else path.suffix)


def read_rows(
    source: str | os.PathLike[str], *, kind: str | None = None, encoding: str = "utf-8", needed: Sequence[str] = ()
) -> Iterator[Row]:
    """Yield the rows of a file, of a URL (by fsspec), or of standard input ("-").

    A file that changes while it is read is an error at its end.

    Parameters
    ----------
    kind : str, optional
        One of `FORMATS`; by default the suffix decides.
    needed : sequence of str
        Columns that a table must have: otherwise a CorpusError is raised at once. (JSONL has no headings.)
    """
    name, is_stdin = file_name(source), os.fspath(source) == STDIN
    kind = kind or (None if is_stdin else format_of(source)) or ""
    allowed = FORMATS[:4] if is_stdin else FORMATS
    if kind not in allowed:
        raise InvalidInputError(f"The format of {name} must be one of {', '.join(allowed)}. Got {kind or 'none'!r}.")
    check_encoding(encoding)
    before = _state(source)
    with contextlib.ExitStack() as opened, file_errors(name, encoding):
        stream = sys.stdin.buffer if is_stdin else open_unpacked(source, opened)
        if kind == "parquet":
            cells = _parquet_rows(stream, name, needed)
        elif kind == "xlsx":
            cells = _sheet_rows(stream, name, needed, opened)
        else:
            readers: dict[str, Any] = {"txt": _text_rows, "jsonl": _json_rows}
            cells = readers.get(kind, _table_rows)(stream, name, encoding, needed, "\t" if kind == "tsv" else ",")
        for number, (record, problem, line) in enumerate(cells, 1):
            place = f"Row {number:,}{f' (line {line:,})' if line not in {None, number} else ''} of {name!r}"
            yield Row(number, record, problem, place)
    if _state(source) != before:
        raise CorpusError(f"{name!r} changed while it was read. Start again when nothing writes to it.")


def _state(source: str | os.PathLike[str]) -> tuple[int, int] | None:
    """Return size and time of change of a plain file, None for anything else."""
    path = Path(source).expanduser()
    return (path.stat().st_size, path.stat().st_mtime_ns) if path.is_file() else None


def file_name(source: str | os.PathLike[str]) -> str:
    """Return a file's name for messages."""
    text = os.fspath(source)
    return "standard input" if text == STDIN else text.replace(os.sep, "/").rstrip("/").rpartition("/")[2]


def cell_text(cell: Any) -> str:
    """Return a cell as text, empty if it is missing; the whole number 1.0 is written as 1."""
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    return encodable(str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell).strip())


def check_encoding(encoding: Any) -> None:
    """Raise unless there is a text encoding of this name."""
    try:
        " ".encode(encoding)
    except (LookupError, TypeError, UnicodeError):
        message = f"The encoding must be a text encoding, such as utf-8 or cp1250. Got {encoding!r}."
        raise InvalidInputError(message) from None


def open_binary(source: str | os.PathLike[str]) -> IO[bytes]:
    """Open a path or, by fsspec, a URL for reading."""
    if "://" not in os.fspath(source):
        return Path(source).expanduser().open("rb")
    fsspec = require("fsspec", "distributed", "A URL")
    try:
        stream: IO[bytes] = fsspec.open(os.fspath(source), "rb").open()
    except ImportError as error:
        raise MissingDependencyError(f"{os.fspath(source)!r} needs another package: {error}") from error
    return stream


@contextlib.contextmanager
def file_errors(name: str, encoding: str = "utf-8") -> Iterator[None]:
    """Turn the errors of readers into CorpusErrors."""
    try:
        yield
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise CorpusError(f"{name!r} must be a complete compressed file. Got an error: {error}.") from error
    except UnicodeError as error:
        raise CorpusError(f"{name!r} must be text in {encoding}. Got an error: {error}.") from error
    except OSError as error:
        raise CorpusError(f"{name!r} cannot be read: {error.strerror or error}.") from error


def open_unpacked(source: str | os.PathLike[str], opened: contextlib.ExitStack) -> IO[bytes]:
    """Open a path or URL; what its name says is compressed is unpacked, up to the limit."""
    raw = opened.enter_context(open_binary(source))
    unpack = _PACKED.get(Path(os.fspath(source)).suffix.lower())
    if unpack is None:
        return raw
    n_packed = raw.seek(0, os.SEEK_END)
    raw.seek(0)
    return io.BufferedReader(_Limited(opened.enter_context(unpack(raw, "rb")), file_name(source), n_packed))


def check_unpacked(name: str, n_packed: int, n_unpacked: int) -> None:
    """Raise if a compressed file unpacks to more than the limit: a small file can unpack to terabytes."""
    limit = max(UNPACKED_BYTES, UNPACKED_RATIO * n_packed)
    if n_unpacked > limit:
        raise CorpusError(f"{name!r} unpacks to more than the limit of {count(limit)} bytes.")


class _Limited(io.RawIOBase):
    """An unpacked stream that ends with an error past the limit."""

    def __init__(self, stream: Any, name: str, n_packed: int) -> None:
        self._stream, self._name, self._n_packed, self._n_read = stream, name, n_packed, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n_bytes: int = self._stream.readinto(buffer)
        self._n_read += n_bytes
        check_unpacked(self._name, self._n_packed, self._n_read)
        return n_bytes


_Cells = Iterator[tuple[dict[str, Any], str | None, int | None]]
"""Cells, problem and line of each row."""


def _lines(stream: Any, name: str, encoding: str, newline: str) -> Iterator[str]:
    """Yield lines as text without a byte order mark; bytes that are not text become lone surrogates."""
    stream = stream if hasattr(stream, "peek") else io.BufferedReader(stream)
    head = b"" if encoding.lower().startswith(("utf-16", "utf-32")) else stream.peek(8)
    for mark, what in _SIGNATURES.items():
        if head.startswith(mark):
            raise CorpusError(f"{name!r} is not text: it is {what}.")
    text = io.TextIOWrapper(stream, encoding, "surrogateescape", newline)
    try:
        first = next(text, "")
        yield from itertools.chain([first.removeprefix("\N{BYTE ORDER MARK}")] if first else [], text)
    finally:
        with contextlib.suppress(ValueError):  # after an error the stream is closed already
            text.detach()


def _bad_byte(text: str, encoding: str) -> str | None:
    """Return the problem of a row with bytes that are not text."""
    match = None if text.isascii() else _BAD_BYTE.search(text)
    if match is None:
        return None
    return f"must be text in {encoding}. Got byte 0x{ord(match[0]) - 0xDC00:02x}; give the right encoding, e.g. cp1250."


def _text_rows(stream: Any, name: str, encoding: str, needed: Sequence[str], _: str) -> _Cells:
    """Read one text per line."""
    for column in needed:
        if column != "text":
            raise CorpusError(f"{name!r} has one text per line and no columns, but a column {column!r} is needed.")
    for line in _lines(stream, name, encoding, "\n"):
        yield {"text": line.removesuffix("\n").removesuffix("\r")}, _bad_byte(line, encoding), None


def parse_json(text: str) -> Any:
    """Parse JSON strictly: a repeated key and NaN raise ValueError."""
    return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} comes twice")
    return record


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a JSON number")


def _json_rows(stream: Any, name: str, encoding: str, needed: Sequence[str], _: str) -> _Cells:
    """Read one JSON object per line; empty lines do not count."""
    for line_number, line in enumerate(_lines(stream, name, encoding, "\n"), 1):
        if not line.strip():
            continue
        record: Any = {}
        problem = _bad_byte(line, encoding)
        if problem is None:
            try:
                record = parse_json(line)
            except (ValueError, RecursionError) as error:
                cut = "" if line.endswith("\n") else " The file ends here: is it cut off?"
                problem = f"must be JSON. Got an error: {error}.{cut}"
        if not isinstance(record, dict):
            record, problem = {}, f"must be a JSON object. Got {type(record).__name__}."
        yield record, problem, line_number


def _table_rows(stream: Any, name: str, encoding: str, needed: Sequence[str], usual: str) -> _Cells:
    """Read a table with a line of headings; every cell is a string, short rows end in empty ones."""
    csv.field_size_limit(2**31 - 1)
    lines = _lines(stream, name, encoding, "")
    first = next((line for line in lines if line.strip()), "")
    reader = csv.reader(itertools.chain([first], lines), delimiter=delimiter_of(first, usual), strict=True)
    headings: list[str] | None = None
    while True:
        began = reader.line_num + 1
        try:
            cells = next(reader, None)
            problem = _bad_byte("".join(cells or []), encoding)
        except csv.Error as error:
            cells, problem = [], f"must be a row with {reader.dialect.delimiter!r} between columns. Got {error}."
        if headings is None:
            if problem:
                raise CorpusError(f"The headings of {name!r} {problem}")
            headings = cells or []
            check_headings(headings, needed, name)
        elif cells is None:
            return
        elif cells or problem:
            if problem is None and any(cells[len(headings) :]):
                problem = f"must have {len(headings)} cells. Got {len(cells)}."
            yield _record(headings, cells), problem, began


def _record(headings: Sequence[str], cells: Sequence[str]) -> dict[str, Any]:
    """Return cells by heading; of two columns with one name the first counts."""
    pairs = list(itertools.zip_longest(headings, cells[: len(headings)], fillvalue=""))
    return dict(pairs) if len(set(headings)) == len(headings) else dict(pairs[::-1])


def delimiter_of(headings: str, usual: str = ",") -> str:
    """Return the delimiter of a table: the most frequent one outside quotes in its first line."""
    return max(dict.fromkeys([usual, ",", ";", "\t"]), key=_QUOTED.sub("", headings).count)


def check_headings(headings: Sequence[str], needed: Sequence[str], name: str) -> None:
    """Raise unless each needed column is there once."""
    column = next((column for column in needed if headings.count(column) != 1), None)
    if column is None:
        return
    if column in headings:
        raise CorpusError(f"{name!r} has several columns {column!r}: rename all but one.")
    if not headings:
        raise CorpusError(f"{name!r} is empty: it must begin with a line of headings, one of them {column!r}.")
    # Cells that headings seldom have: a sentence or a number.
    is_data = any(len(cell) > 60 or len(cell.split()) > 5 or cell.replace(".", "", 1).isdigit() for cell in headings)
    hint = "Its first line looks like data: add headings." if is_data else "Name the right column."
    shown = ", ".join(f"{heading!r:.60}" for heading in headings[:12])
    raise CorpusError(f"{name!r} must have a column {column!r}. It has {shown}. {hint}")


def _parquet_rows(stream: Any, name: str, needed: Sequence[str]) -> _Cells:
    """Read a Parquet file, some rows at a time."""
    pyarrow, parquet = (require(module, "corpora", "Parquet") for module in ("pyarrow", "pyarrow.parquet"))
    try:
        file = parquet.ParquetFile(stream)
        sizes = [file.metadata.row_group(k).total_byte_size for k in range(file.num_row_groups)]
        check_unpacked(name, stream.seek(0, os.SEEK_END), sum(sizes))
        check_headings(list(file.schema_arrow.names), needed, name)
        for batch in file.iter_batches(1_024):
            for cells in batch.to_pylist():
                yield cells, None, None
    except (pyarrow.ArrowException, UnicodeDecodeError, OSError) as error:
        raise CorpusError(f"{name!r} must be a Parquet file. Got an error: {error}.") from error


def _sheet_rows(stream: Any, name: str, needed: Sequence[str], opened: contextlib.ExitStack) -> _Cells:
    """Read the first sheet of an Excel workbook; as in CSV, every cell is a string."""
    openpyxl = require("openpyxl", "corpora", "An Excel workbook")
    try:
        with zipfile.ZipFile(stream) as archive:
            check_unpacked(name, stream.seek(0, os.SEEK_END), sum(entry.file_size for entry in archive.infolist()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # styles and extensions that openpyxl does not know
            book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
        sheet = book.worksheets[0]
        opened.callback(book.close)
        if len(book.worksheets) > 1:
            message = f"{name!r} has {len(book.worksheets)} sheets; only the first, {sheet.title!r}, is read."
            warnings.warn(message, DataWarning, stacklevel=2)
        filled = ((line, cells) for line, row in enumerate(sheet.values, 1) if any(cells := [_cell(c) for c in row]))
        _, headings = next(filled, (0, []))
        check_headings(headings, needed, name)
        for line, cells in filled:
            yield _record(headings, cells), None, line
    except (CorpusError, DataWarning):
        raise
    except Exception as error:  # parsers of damaged bytes raise anything
        raise CorpusError(f"{name!r} must be an Excel workbook. Got an error: {error}.") from error


def _cell(value: Any) -> str:
    """Return a spreadsheet's cell as CSV would have it."""
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        value = value.date()  # a date without a time
    return value if isinstance(value, str) else cell_text(value)
