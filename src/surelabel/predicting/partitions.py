"""The partitions of a data set: which rows of which file, and how to read them."""

from __future__ import annotations

import codecs
import contextlib
import dataclasses
import gzip
import hashlib
import itertools
import logging
import os
import posixpath
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, cast

from surelabel._core.extras import of_extra
from surelabel.exceptions import CorpusError, InvalidInputError
from surelabel.predicting.reading import TextBatch, batched_rows, file_format
from surelabel.predicting.rows import InputColumns, Row, RowParser
from surelabel.predicting.storage import file_system

__all__ = ["Partition", "PartitionSource", "Skipped", "plan_partitions"]

_log = logging.getLogger(__name__)

_KINDS = ("jsonl", "parquet")
_SAMPLED_BYTES = 1 << 16
_TO_THE_END = -1


@dataclasses.dataclass(frozen=True)
class Partition:
    """Some rows of one file.

    Attributes
    ----------
    url : str
        Of the file.
    kind : {"jsonl", "parquet"}
    start, stop : int
        Bytes of a JSONL file (a row belongs where its first byte is; -1: to the end), row groups of a Parquet file.
    first_row : int
        Number of the first row in the data set, from 0.
    first_in_file : int
        Its number in the file, from 0.
    n_rows : int
    fingerprint : str
        Of the file: changes when the file does.
    """

    url: str
    kind: str
    start: int
    stop: int
    first_row: int = 0
    first_in_file: int = 0
    n_rows: int = 0
    fingerprint: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class Skipped:
    """Rows without an answer, by their numbers in the data set from 1, and why."""

    file: str
    first_row: int
    last_row: int
    reason: str


class PartitionSource:
    """Read the texts of a partition.

    Parameters
    ----------
    partition : Partition
    columns : InputColumns
    """

    def __init__(self, partition: Partition, columns: InputColumns) -> None:
        self.partition = partition
        self.name = posixpath.basename(partition.url)
        self._columns = columns
        self._parser = RowParser(columns, self.name)

    def count(self) -> int:
        """Return the number of rows."""
        if self.partition.kind == "parquet":
            return self.partition.n_rows
        return sum(1 for _ in self._lines())

    def batches(self, batch_size: int, skipped: list[Skipped] | None = None) -> Iterator[TextBatch]:
        """Yield the texts in batches.

        Parameters
        ----------
        batch_size : int
        skipped : list of Skipped, optional
            Rows that cannot be read are entered here and passed over; without it the first is an error.
        """
        partition = self.partition
        rows = self._parquet_rows() if partition.kind == "parquet" else self._jsonl_rows()
        start, taken = partition.first_row, list[Row]()
        try:
            for number, found in enumerate(rows, partition.first_row):
                if isinstance(found, CorpusError):
                    if skipped is None:
                        raise found
                    skipped.append(Skipped(partition.url, number + 1, number + 1, str(found)))
                    yield from batched_rows(iter(taken), batch_size, start)
                    start, taken = number + 1, []
                    continue
                taken.append(found)
                if len(taken) == batch_size:
                    yield from batched_rows(iter(taken), batch_size, start)
                    start, taken = number + 1, []
        except CorpusError as error:
            if skipped is None:
                raise
            yield from batched_rows(iter(taken), batch_size, start)
            after = start + len(taken)
            skipped.append(Skipped(partition.url, after + 1, partition.first_row + partition.n_rows, str(error)))
            return
        yield from batched_rows(iter(taken), batch_size, start)

    def _place(self, k: int) -> str:
        return f"Row {self.partition.first_in_file + k + 1} of {self.name!r}"

    def _jsonl_rows(self) -> Iterator[Row | CorpusError]:
        """Yield text and id of each JSON object, or what is wrong with it."""
        if self.partition.n_rows == 0:  # a packed file that could not be counted is damaged: no row of it is used
            self.count()
            return
        for k, line in enumerate(self._lines()):
            try:
                yield self._parser.from_line(self._decoded(line, k), self._place(k))
            except CorpusError as error:
                yield error

    def _decoded(self, line: bytes, k: int) -> str:
        encoding = self._columns.encoding
        try:
            return line.decode(encoding)
        except UnicodeDecodeError as error:
            raise CorpusError(
                f"{self._place(k)} must be text in {encoding}. Got byte 0x{line[error.start]:02x} instead; name the "
                "right encoding with --encoding."
            ) from error

    def _lines(self) -> Iterator[bytes]:
        """Yield the lines that begin in the range, without empty ones."""
        start, stop = self.partition.start, self.partition.stop
        with contextlib.ExitStack() as opened:
            stream = self._open(opened)
            if start > 0:
                stream.seek(start - 1)
                start += len(stream.readline()) - 1
            try:
                for line in stream if stop == _TO_THE_END or start < stop else ():
                    content = line.removeprefix(codecs.BOM_UTF8) if start == 0 else line
                    start += len(line)
                    if not _is_blank(content, self._columns.encoding):
                        yield content
                    if stop != _TO_THE_END and start >= stop:
                        return
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise CorpusError(
                    f"{self.name!r} must be a whole gzip file. Got a damaged one instead: {error}."
                ) from error

    def _open(self, opened: contextlib.ExitStack) -> IO[bytes]:
        """Open the file, unpacked where it is packed."""
        files, path = file_system(self.partition.url)
        raw = opened.enter_context(files.open(path, "rb"))
        if path.lower().endswith(".gz"):
            return opened.enter_context(cast(IO[bytes], gzip.open(raw, "rb")))
        return cast(IO[bytes], raw)

    def _parquet_rows(self) -> Iterator[Row | CorpusError]:
        """Yield text and id of each row, or what is wrong with it."""
        files, path = file_system(self.partition.url)
        with files.open(path, "rb") as stream:
            file = _parquet_file(stream, self.name)
            wanted = self._parser.wanted(list(file.schema_arrow.names))
            groups = range(self.partition.start, self.partition.stop)
            k = 0
            for batch in file.iter_batches(1024, row_groups=list(groups), columns=wanted) if groups else ():
                for record in batch.to_pylist():
                    try:
                        yield self._parser.from_record(record, self._place(k))
                    except CorpusError as error:
                        yield error
                    k += 1


def _is_blank(line: bytes, encoding: str) -> bool:
    """Whether a line has nothing but white space."""
    return not line.strip() or (line[:1] not in b"{[" and not line.decode(encoding, "replace").strip())


def _parquet_file(stream: Any, name: str) -> Any:
    """Open a Parquet file."""
    with of_extra("distributed", "Parquet"):
        import pyarrow  # noqa: PLC0415
        from pyarrow import parquet  # noqa: PLC0415
    try:
        return parquet.ParquetFile(stream)
    except pyarrow.ArrowException as error:
        raise CorpusError(f"{name!r} must be a Parquet file. Got an error instead: {error}.") from error


def plan_partitions(
    source: str | os.PathLike[str],
    columns: InputColumns | None = None,
    *,
    partition_bytes: int = 32 * 2**20,
    on_error: str = "stop",
    run: Callable[[Callable[[Any], Any], list[Any]], Iterable[Any]] = map,
) -> list[Partition]:
    """Divide the files of a data set into partitions, in the order of their names.

    Parameters
    ----------
    source : str or path
        A folder, a pattern such as `news/*.jsonl`, or one file; a URL that fsspec knows. JSONL (also .gz) or Parquet.
        Names that begin with a dot or an underscore do not count.
    columns : InputColumns, optional
    partition_bytes : int
        About how much of a file is one partition. A packed file and a row group are never divided.
    on_error : {"stop", "skip"}
        What a file that is no Parquet file leads to: an error, or a partition without rows.
    run : callable
        Like `map`; where rows are counted.
    """
    columns = columns or InputColumns()
    if partition_bytes < 1:
        raise InvalidInputError(f"The 'partition_bytes' must be 1 or more. Got {partition_bytes} instead.")
    if "\n".encode(columns.encoding) != b"\n":
        raise InvalidInputError(
            f"The 'encoding' of a data set must be one where a line feed is one byte. Got {columns.encoding!r} instead."
        )
    partitions: list[Partition] = []
    for url in _list_files(source):
        divide = _divide_parquet if _kind_of(url) == "parquet" else _divide_jsonl
        try:
            partitions += divide(url, partition_bytes)
        except CorpusError:
            if on_error == "stop":
                raise
            partitions.append(Partition(url, _kind_of(url), 0, 0))
    counts = run(count_rows, [(partition, columns) for partition in partitions])
    return _numbered(partitions, counts)


def count_rows(task: tuple[Partition, InputColumns]) -> int:
    """Return the rows of a partition; 0 where that cannot be said, which reading it will tell."""
    try:
        return PartitionSource(*task).count()
    except CorpusError:
        return 0


def _numbered(partitions: list[Partition], counts: Iterable[int]) -> list[Partition]:
    """Return partitions that know which rows of the data set and of their file they hold."""
    numbered: list[Partition] = []
    first_row = first_in_file = 0
    for partition, n_rows in zip(partitions, counts, strict=True):
        if numbered and numbered[-1].url != partition.url:
            first_in_file = 0
        numbered.append(dataclasses.replace(partition, first_row=first_row, first_in_file=first_in_file, n_rows=n_rows))
        first_row, first_in_file = first_row + n_rows, first_in_file + n_rows
    return numbered


def _list_files(source: str | os.PathLike[str]) -> list[str]:
    """Return the URLs of a data set's files, sorted."""
    name = os.fspath(source)
    files, path = file_system(name)
    is_one = False
    if any(mark in path for mark in "*?["):
        found = [
            str(each)
            for each in files.glob(path)
            if files.isfile(each) and not _is_hidden(f"/{posixpath.basename(each)}")
        ]
    elif files.isdir(path):
        found = [str(each) for each in files.find(path) if not _is_hidden(str(each)[len(path) :])]
    else:
        is_one = files.isfile(path)
        found = [path] if is_one else []
    known = [each for each in found if _kind_of(each) in _KINDS]
    if not known:
        what = (
            "a file of another format" if is_one else "nothing of the kind" if files.exists(path) else "no such place"
        )
        raise CorpusError(
            f"A data set must be a folder, a pattern or a file of .jsonl, .jsonl.gz or .parquet. {name!r} is {what}."
        )
    if len(known) < len(found):
        _log.warning("%d files in %s are neither JSONL nor Parquet and are left out", len(found) - len(known), name)
    is_local = "://" not in name
    return sorted(each if is_local else str(files.unstrip_protocol(each)) for each in known)


def _is_hidden(relative: str) -> bool:
    return any(part.startswith((".", "_")) for part in relative.split("/"))


def _kind_of(path: str) -> str:
    """Return a file's format by its suffix, an empty string where it says none."""
    try:
        kind = file_format(posixpath.basename(path))
    except InvalidInputError:
        return ""
    return "" if kind == "parquet" and path.lower().endswith(".gz") else kind


def _divide_jsonl(url: str, partition_bytes: int) -> list[Partition]:
    """Divide a file of lines into ranges of bytes."""
    files, path = file_system(url)
    size, fingerprint = _fingerprint(files, path)
    if path.lower().endswith(".gz"):
        return [Partition(url, "jsonl", 0, _TO_THE_END, fingerprint=fingerprint)]
    n_parts = -(-size // partition_bytes)
    edges = [size * part // n_parts for part in range(n_parts + 1)] if n_parts else []
    return [Partition(url, "jsonl", start, stop, fingerprint=fingerprint) for start, stop in itertools.pairwise(edges)]


def _divide_parquet(url: str, partition_bytes: int) -> list[Partition]:
    """Divide a Parquet file between row groups."""
    files, path = file_system(url)
    _, fingerprint = _fingerprint(files, path)
    partitions = []
    with files.open(path, "rb") as stream:
        metadata = _parquet_file(stream, posixpath.basename(url)).metadata
        start = n_rows = n_bytes = 0
        for group in range(metadata.num_row_groups):
            n_rows += metadata.row_group(group).num_rows
            n_bytes += metadata.row_group(group).total_byte_size
            if n_bytes >= partition_bytes or group == metadata.num_row_groups - 1:
                partitions.append(Partition(url, "parquet", start, group + 1, n_rows=n_rows, fingerprint=fingerprint))
                start, n_rows, n_bytes = group + 1, 0, 0
    return partitions


def _fingerprint(files: Any, path: str) -> tuple[int, str]:
    """Return a file's size, and a hash of size, age, beginning and end."""
    info = files.info(path)
    size = int(info["size"])
    age = next((info[key] for key in ("mtime", "ETag", "etag", "LastModified", "updated") if info.get(key)), "")
    digest = hashlib.sha256(f"{size} {age}".encode())
    with files.open(path, "rb") as file:
        digest.update(file.read(_SAMPLED_BYTES))
        file.seek(max(0, size - _SAMPLED_BYTES))
        digest.update(file.read(_SAMPLED_BYTES))
    return size, digest.hexdigest()
