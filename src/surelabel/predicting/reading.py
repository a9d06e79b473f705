"""Texts from files, a batch at a time: a text a line, JSONL, CSV, TSV or Parquet, or standard input."""

from __future__ import annotations

import codecs
import contextlib
import csv
import dataclasses
import gzip
import hashlib
import io
import itertools
import os
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, cast

from surelabel._core.extras import of_extra
from surelabel.corpora import Corpus, Part
from surelabel.corpora.textfiles import delimiter_of
from surelabel.exceptions import CorpusError, InvalidInputError
from surelabel.predicting.rows import InputColumns, Row, RowParser

__all__ = [
    "INPUT_FORMATS",
    "STDIN",
    "InputColumns",
    "PartSource",
    "TextBatch",
    "TextSource",
    "batched_rows",
    "file_format",
    "read_batches",
]

INPUT_FORMATS = ("txt", "jsonl", "csv", "tsv", "parquet")
STDIN = "-"
_SUFFIXES = {".txt": "txt", ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "tsv", ".parquet": "parquet"}
_SAMPLED_BYTES = 1 << 16
_LONGEST_CELL = 2**31 - 1


@dataclasses.dataclass(frozen=True)
class TextBatch:
    """Some texts that follow each other.

    Attributes
    ----------
    first_row : int
        Number of the first text, from 0.
    texts : list of str
    ids : list of str (None for a row without one), or None where no row has one
    position : int
        How much of the source has been read, in the unit of its `total`.
    """

    first_row: int
    texts: list[str]
    ids: Sequence[str | None] | None
    position: int = 0

    def __len__(self) -> int:
        return len(self.texts)


def batched_rows(rows: Iterator[Row], batch_size: int, first_row: int) -> Iterator[TextBatch]:
    """Yield rows that follow each other in batches; `first_row` is the number of the first."""
    while taken := list(itertools.islice(rows, batch_size)):
        ids = [identity for _, identity in taken]
        has_ids = any(each is not None for each in ids)
        yield TextBatch(first_row, [text for text, _ in taken], ids if has_ids else None)
        first_row += len(taken)


class TextSource:
    """A file of texts, or standard input, that is read from its beginning to its end.

    Parameters
    ----------
    source : str or path
        A file by its suffix (.txt, .jsonl, .ndjson, .csv, .tsv, .parquet; all but the last may end in .gz), or "-".
    columns : InputColumns, optional
    kind : str, optional
        One of txt, jsonl, csv, tsv and parquet, where the suffix does not say; txt for standard input.
    """

    def __init__(
        self, source: str | os.PathLike[str], columns: InputColumns | None = None, kind: str | None = None
    ) -> None:
        self.columns = columns or InputColumns()
        self.is_stdin = os.fspath(source) == STDIN
        self.path = Path(source)
        self.name = "standard input" if self.is_stdin else self.path.name
        self.kind = kind or ("txt" if self.is_stdin else file_format(self.path))
        if self.kind not in INPUT_FORMATS or (self.is_stdin and self.kind == "parquet"):
            allowed = [each for each in INPUT_FORMATS if not (self.is_stdin and each == "parquet")]
            raise InvalidInputError(
                f"The format of {self.name} must be one of {', '.join(allowed)}. Got {self.kind!r}."
            )
        if not self.is_stdin and not self.path.is_file():
            what = "is a folder" if self.path.is_dir() else "does not exist"
            raise CorpusError(f"The input {str(source)!r} {what}. Name a file of texts, or - for standard input.")
        self._parser = RowParser(self.columns, self.name)
        self._raw: IO[bytes] | None = None

    @property
    def total(self) -> int | None:
        """How much there is to read: bytes of a text file, texts of a Parquet file, None for standard input."""
        if self.is_stdin:
            return None
        return int(self._parquet().metadata.num_rows) if self.kind == "parquet" else self.path.stat().st_size

    def identity(self) -> dict[str, Any]:
        """Return what a file is known by when a run goes on: size, and a hash of its beginning and end."""
        digest = hashlib.sha256()
        size = self.path.stat().st_size
        with self.path.open("rb") as file:
            digest.update(file.read(_SAMPLED_BYTES))
            file.seek(max(0, size - _SAMPLED_BYTES))
            digest.update(file.read(_SAMPLED_BYTES))
        return {"bytes": size, "sha256": digest.hexdigest(), "columns": dataclasses.asdict(self.columns)}

    def batches(self, batch_size: int = 256, skip: int = 0) -> Iterator[TextBatch]:
        """Yield the texts in batches, after the first `skip` ones."""
        if batch_size < 1:
            raise InvalidInputError(f"The 'batch_size' must be 1 or more. Got {batch_size} instead.")
        rows = self._parquet_rows(skip) if self.kind == "parquet" else itertools.islice(self._text_rows(), skip, None)
        for batch in batched_rows(rows, batch_size, skip):
            yield dataclasses.replace(batch, position=self._position(batch.first_row + len(batch)))

    def _position(self, n_rows: int) -> int:
        """Return how far reading has come."""
        if self.kind == "parquet" or self._raw is None or self.is_stdin:
            return n_rows
        return self.path.stat().st_size if self._raw.closed else self._raw.tell()

    def _text_rows(self) -> Iterator[Row]:
        """Yield text and id of each row of a text file."""
        encoding = "utf-8-sig" if codecs.lookup(self.columns.encoding).name == "utf-8" else self.columns.encoding
        readers = {"txt": self._lines, "jsonl": self._objects, "csv": self._cells, "tsv": self._cells}
        n_rows = 0
        try:
            with contextlib.ExitStack() as opened:
                binary = self._open(opened)
                stream = opened.enter_context(io.TextIOWrapper(binary, encoding, newline=_newline(self.kind)))
                for row in readers[self.kind](stream):
                    yield row
                    n_rows += 1
        except UnicodeDecodeError as error:
            raise CorpusError(
                f"{self.name!r} must be text in {self.columns.encoding}. Got byte 0x{error.object[error.start]:02x} "
                f"after text {n_rows} instead; name the right encoding, e.g. --encoding latin-1 or cp1250."
            ) from error
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise CorpusError(
                f"{self.name!r} must be a whole gzip file. Got a damaged one instead: {error}."
            ) from error

    def _open(self, opened: contextlib.ExitStack) -> IO[bytes]:
        """Open the file, unpacked where it is packed; `opened` closes what there is to close."""
        if self.is_stdin:
            # Closing the wrapper must not close the process' own standard input.
            return opened.enter_context(os.fdopen(sys.stdin.fileno(), "rb", closefd=False))
        self._raw = opened.enter_context(self.path.open("rb"))
        if self.path.suffix.lower() == ".gz":
            return opened.enter_context(cast(IO[bytes], gzip.open(self._raw, "rb")))
        return self._raw

    def _lines(self, stream: IO[str]) -> Iterator[Row]:
        for line in stream:
            yield line.removesuffix("\n").removesuffix("\r"), None

    def _objects(self, stream: IO[str]) -> Iterator[Row]:
        """Read a JSON object a line; empty lines do not count."""
        for number, line in enumerate(stream, start=1):
            if not line.strip():
                continue
            yield self._parser.from_line(line, f"Line {number} of {self.name!r}")

    def _cells(self, stream: IO[str]) -> Iterator[Row]:
        """Read a table with a line of headings; rows that are too short end in empty cells."""
        csv.field_size_limit(_LONGEST_CELL)
        first = stream.readline()
        delimiter = delimiter_of(first, "," if self.kind == "csv" else "\t")
        reader = csv.reader(itertools.chain([first] if first else [], stream), delimiter=delimiter)
        try:
            headings = next(reader, [])
            self._parser.check_headings(headings)
            for cells in reader:
                if not cells:
                    continue
                place = f"Line {reader.line_num} of {self.name!r}"
                if len(cells) > len(headings):
                    raise CorpusError(f"{place} must have {len(headings)} cells. Got {len(cells)} instead.")
                record = dict(itertools.zip_longest(headings, cells, fillvalue=""))
                yield self._parser.from_record(record, place)
        except csv.Error as error:
            raise CorpusError(f"Line {reader.line_num} of {self.name!r} is no row of a table: {error}.") from error

    def _parquet_rows(self, skip: int) -> Iterator[Row]:
        """Read the columns that are asked for, a group of rows at a time."""
        file = self._parquet()
        wanted = self._parser.wanted(list(file.schema_arrow.names))
        n_rows = 0
        groups: list[int] = []
        for group in range(file.metadata.num_row_groups):
            size = file.metadata.row_group(group).num_rows
            if not groups and n_rows + size <= skip:
                n_rows += size
            else:
                groups.append(group)
        left = skip - n_rows
        for batch in file.iter_batches(1024, row_groups=groups, columns=wanted):
            for record in batch.to_pylist():
                n_rows += 1
                if left:
                    left -= 1
                    continue
                place = f"Row {n_rows} of {self.name!r}"
                yield self._parser.from_record(record, place)

    def _parquet(self) -> Any:
        """Open a Parquet file."""
        with of_extra("corpora", "Parquet"):
            import pyarrow  # noqa: PLC0415
            from pyarrow import parquet  # noqa: PLC0415
        try:
            return parquet.ParquetFile(self.path)
        except (pyarrow.ArrowException, OSError) as error:
            raise CorpusError(f"{self.name!r} must be a Parquet file. Got an error instead: {error}.") from error


def _newline(kind: str) -> str:
    """Return how lines end: the csv module looks for itself, elsewhere a line feed does."""
    return "" if kind in {"csv", "tsv"} else "\n"


def file_format(path: str | os.PathLike[str]) -> str:
    """Return a file's format by its suffix."""
    path = Path(path)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes[-1:] == [".gz"]:
        suffixes.pop()
    kind = _SUFFIXES.get(suffixes[-1] if suffixes else "")
    if kind is None:
        raise InvalidInputError(
            f"A file of texts must end in one of {', '.join(_SUFFIXES)}, or say its format. Got {path.name!r} instead. "
            "To ask about one text: echo 'the text' | surelabel predict DIR -"
        )
    return kind


def read_batches(
    source: str | os.PathLike[str], columns: InputColumns | None = None, batch_size: int = 256
) -> Iterator[TextBatch]:
    r"""Yield the texts of a file in batches; see `TextSource`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "texts.txt"
    >>> _ = path.write_text("wheat rose\ngold fell\noil rose\n")
    >>> [(batch.first_row, batch.texts) for batch in read_batches(path, batch_size=2)]
    [(0, ['wheat rose', 'gold fell']), (2, ['oil rose'])]
    """
    return TextSource(source, columns).batches(batch_size)


class PartSource:
    """The texts of a part of a corpus, read like those of a file.

    Parameters
    ----------
    corpus : Corpus
    part : Part
        One of its parts.
    """

    is_stdin = False

    def __init__(self, corpus: Corpus, part: Part) -> None:
        self.name = f"{corpus.name}, {part.name}"
        self.total = len(part)
        self._part = part
        self._fingerprint = corpus.fingerprint()

    def identity(self) -> dict[str, Any]:
        """Return what the part is known by when a run goes on."""
        return {"fingerprint": self._fingerprint, "part": self._part.name}

    def batches(self, batch_size: int = 256, skip: int = 0) -> Iterator[TextBatch]:
        """Yield the texts in batches, after the first `skip` ones."""
        for start in range(skip, len(self._part), batch_size):
            end = min(start + batch_size, len(self._part))
            yield TextBatch(start, list(self._part.texts[start:end]), list(self._part.ids[start:end]), end)
