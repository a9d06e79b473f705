"""The partitions of a data set: which rows of which file."""

from __future__ import annotations

import dataclasses
import itertools
import logging
import os
import posixpath
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from surelabel.exceptions import CorpusError
from surelabel.predicting.settings import AnswerSettings
from surelabel.predicting.sources import TextSource
from surelabel.tables.reading import Partition, format_of, has_plain_line_feeds, parquet_file
from surelabel.tables.stores import file_system, is_url

_log = logging.getLogger(__name__)

_COUNTED_AT_A_TIME = 4_096

Run: TypeAlias = Callable[[Callable[[Any], Any], list[Any]], Iterable[Any]]
"""Like `map`, here or on the workers of a cluster."""


def plan_partitions(
    source: str | os.PathLike[str], settings: AnswerSettings | None = None, run: Run = map
) -> list[Partition]:
    """Divide the files of a data set into partitions, in the order of their names.

    All rows are read once, to count them and to tell later whether they have changed.

    A data set is a folder, a pattern such as `news/*.jsonl`, or one file; or a URL that fsspec knows. Names that begin
    with a dot or an underscore do not count, nor do files of other formats. JSONL and plain text are divided between
    lines, Parquet between row groups; tables (CSV, TSV, XLSX) and packed files are not divided.
    """
    settings = settings or AnswerSettings()
    partitions: list[Partition] = []
    for url, file_kind in _list_files(source, settings.input_format):
        whole = Partition(url, file_kind)
        try:
            partitions += _divide(whole, settings.partition_bytes, settings.columns.encoding)
        except CorpusError:
            if settings.on_error == "stop":
                raise
            partitions.append(whole)
    counts = run(_count, [(partition, settings) for partition in partitions])
    return _numbered(partitions, counts)


def _count(task: tuple[Partition, AnswerSettings]) -> tuple[int, str]:
    """Return the number of rows of a partition, and their hash. Whoever answers them says what is wrong with them."""
    partition, settings = task
    n_rows, digest = 0, ""
    for batch in TextSource(partition, settings.columns).batches(_COUNTED_AT_A_TIME, on_error="mark"):
        n_rows, digest = batch.n_read, batch.digest
    return n_rows, digest


def _numbered(partitions: list[Partition], counts: Iterable[tuple[int, str]]) -> list[Partition]:
    """Return partitions that know which rows of their file they hold."""
    numbered: list[Partition] = []
    for partition, (n_rows, digest) in zip(partitions, counts, strict=True):
        before = numbered[-1] if numbered and numbered[-1].url == partition.url else None
        first_row = 1 if before is None else before.first_row + before.n_rows
        numbered.append(dataclasses.replace(partition, first_row=first_row, n_rows=n_rows, digest=digest))
    return numbered


def _list_files(source: str | os.PathLike[str], kind: str | None) -> list[tuple[str, str]]:
    """Return the URLs and formats of a data set's files, sorted."""
    name = os.fspath(source)
    files, path = file_system(name)
    if any(mark in path for mark in "*?["):
        listed = [place for place in map(str, files.glob(path)) if files.isfile(place)]
        listed = [place for place in listed if not _is_hidden(f"/{posixpath.basename(place)}")]
    elif files.isdir(path):
        listed = [str(place) for place in files.find(path) if not _is_hidden(str(place)[len(path) :])]
    else:
        listed = [path] if files.isfile(path) else []
    readable = [(place, kind or format_of(posixpath.basename(place))) for place in listed]
    usable = [(place, file_kind) for place, file_kind in readable if file_kind is not None]
    if not usable:
        what = "has no file of these formats" if listed or files.exists(path) else "does not exist"
        raise CorpusError(
            "A data set must be a folder, a pattern or a file of .txt, .jsonl, .csv, .tsv, .parquet or .xlsx. "
            f"{name!r} {what}."
        )
    if len(usable) < len(listed):
        _log.warning("%d files in %s are of other formats and are left out", len(listed) - len(usable), name)
    urls = {place: str(files.unstrip_protocol(place)) if is_url(name) else place for place, _ in usable}
    return sorted((urls[place], file_kind) for place, file_kind in usable)


def _is_hidden(relative: str) -> bool:
    return any(part.startswith((".", "_")) for part in relative.split("/"))


def _divide(whole: Partition, partition_bytes: int, encoding: str) -> list[Partition]:
    """Divide a file if its format allows it."""
    if whole.kind == "parquet" and not whole.is_packed:
        return _divide_parquet(whole, partition_bytes)
    files, path = file_system(whole.url)
    size = int(files.info(path)["size"])
    is_divisible = whole.kind in {"txt", "jsonl"} and not whole.is_packed and has_plain_line_feeds(encoding)
    n_parts = -(-size // partition_bytes) if is_divisible else min(size, 1)
    if n_parts <= 1:
        return [whole] if size else []
    edges = [size * part // n_parts for part in range(n_parts + 1)]
    return [dataclasses.replace(whole, start=start, stop=stop) for start, stop in itertools.pairwise(edges)]


def _divide_parquet(whole: Partition, partition_bytes: int) -> list[Partition]:
    """Divide a Parquet file between row groups."""
    files, path = file_system(whole.url)
    partitions = []
    with files.open(path, "rb") as stream:
        metadata = parquet_file(stream, whole.name).metadata
        start = n_bytes = 0
        for group in range(metadata.num_row_groups):
            n_bytes += metadata.row_group(group).total_byte_size
            if n_bytes >= partition_bytes or group == metadata.num_row_groups - 1:
                partitions.append(dataclasses.replace(whole, start=start, stop=group + 1))
                start, n_bytes = group + 1, 0
    return partitions
