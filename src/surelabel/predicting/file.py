"""Answers to the texts of one file, in one file that is complete or absent."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias

from surelabel._core.extras import require
from surelabel._core.files import atomic_file, check_outside
from surelabel.answers import Answer
from surelabel.exceptions import CorpusError, InvalidInputError
from surelabel.models import Bundle
from surelabel.predicting.records import AnswerWriter
from surelabel.predicting.settings import PredictSettings
from surelabel.tables.annif import open_rows
from surelabel.tables.columns import Columns, TextRow, text_rows
from surelabel.tables.write import OUTPUT_FORMATS

Location: TypeAlias = str | os.PathLike[str]
"""A path or a URL."""

SKIPPED_SUFFIX = ".skipped.jsonl"
_KINDS = {f".{kind}": kind for kind in OUTPUT_FORMATS} | {".ndjson": "jsonl"}


class Counts(NamedTuple):
    """Rows of a file that were answered and skipped, and where the skipped ones are listed (None if there are none)."""

    n_rows: int
    n_skipped: int = 0
    skipped: str | None = None


def output_kind(out: Location) -> str | None:
    """Return the kind of an output file by its suffix, None if it does not say."""
    return _KINDS.get(Path(os.fspath(out)).suffix.lower())


def read_texts(source: Location, columns: Columns, kind: str | None, encoding: str) -> Iterator[TextRow]:
    """Yield the texts of a file, or of a folder as Annif has it; a table without the columns is an error at once."""
    return text_rows(open_rows(source, kind=kind, encoding=encoding, needed=columns.needed), columns)


def answer_rows(
    bundle: Bundle, rows: Iterable[TextRow], settings: PredictSettings, skipped: list[dict[str, Any]]
) -> Iterator[list[tuple[TextRow, Answer]]]:
    """Yield texts with answers in batches; unusable rows are an error, or are added to `skipped` with the reason."""
    iterator = iter(rows)
    while batch := list(itertools.islice(iterator, settings.batch_size)):
        for row in batch:
            if row.problem is not None and settings.on_error == "stop":
                raise CorpusError(f"{row.problem} Leave such rows out with --on-error skip.")
            if row.problem is not None:
                skipped.append({"row": row.number, "id": row.id, "error": row.problem})
        usable = [row for row in batch if row.problem is None]
        answers = (
            []
            if not usable
            else bundle.answers(
                [row.text for row in usable],
                significance=settings.significance,
                confidence_level=settings.confidence_level,
                groups=groups_of(bundle, usable, settings.group),
                assurance=settings.assurance,
                top=settings.top,
                scores=None if settings.columns.scores is None else [row.scores for row in usable],
            )
        )
        yield list(zip(usable, answers, strict=True))


def groups_of(bundle: Bundle, rows: list[TextRow], group: str | None = None) -> list[str] | None:
    """Return the group of each text, None if the model is not calibrated by groups."""
    if bundle.info.group_column is None:
        if group is not None:
            raise InvalidInputError(f"The model is not calibrated by groups. Got the group {group!r}.")
        return None
    groups = [group or row.group for row in rows]
    if None in groups:
        raise InvalidInputError(
            "The model is calibrated by groups: name the column of the groups with --by, or one group for all texts "
            "with --group."
        )
    return [name for name in groups if name is not None]


def answer_file(
    bundle: Bundle,
    source: Location,
    out: Location,
    settings: PredictSettings | None = None,
    advance: Callable[[int], object] | None = None,
) -> Counts:
    """Answer all texts of a file in another file: .jsonl, .csv, .tsv, .xlsx or .parquet, by path or URL.

    Of a folder, each .txt file is a text, as Annif has it.

    The file appears when all texts are answered; until then an older one stays. Rows that are skipped are listed in
    OUT.skipped.jsonl.

    Parameters
    ----------
    bundle : Bundle
    source, out : path or URL
    settings : PredictSettings, optional
    advance : callable, optional
        Called with the number of texts of each batch that is done.

    Raises
    ------
    CorpusError
        The file has no texts, a row cannot be used, or the file changed while it was read.
    """
    settings = settings or PredictSettings()
    kind = settings.format or output_kind(out)
    if kind is None:
        raise InvalidInputError(f"An output must end in one of {', '.join(_KINDS)}. Got {os.fspath(out)!r} instead.")
    check_output(source, out)
    settings.check_labels(bundle, kind)
    skipped: list[dict[str, Any]] = []
    n_rows = 0
    with atomic_output(out) as stream:
        with contextlib.closing(AnswerWriter(stream, kind, settings, has_uris=bundle.uris is not None)) as writer:
            rows = read_texts(source, settings.columns, settings.kind, settings.encoding)
            for answered in answer_rows(bundle, rows, settings, skipped):
                writer.write(answered)
                n_rows += len(answered)
                if advance is not None:
                    advance(len(answered))
        if not n_rows:
            why = skipped[0]["error"] if skipped else "It is empty."
            raise CorpusError(f"{os.fspath(source)} has no text that can be answered. {why}")
        # First the list: a file of answers that exists is never without it.
        beside = _list_skipped(f"{os.fspath(out)}{SKIPPED_SUFFIX}", skipped)
    return Counts(n_rows, len(skipped), beside)


def check_output(source: Location, out: Location) -> None:
    """Raise if writing would destroy the input or a model, before anything is written."""
    if is_url(source) or is_url(out):
        is_input, target = os.fspath(source) == os.fspath(out), None
    else:
        target = Path(out)
        is_input = target.exists() and Path(source).exists() and target.samefile(source)
    if is_input:
        raise InvalidInputError(f"The output is the input, {os.fspath(out)}. Choose another name.")
    if target is None:
        return
    if target.is_dir():
        raise InvalidInputError(f"The output {out} is a folder. Name a file.")
    check_outside(target)


def is_url(location: Location) -> bool:
    """Whether a location is a URL."""
    return "://" in os.fspath(location)


def filesystem_of(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path there."""
    found: tuple[Any, str] = require("fsspec", "distributed", "A URL").core.url_to_fs(url)
    return found


def exists(location: str) -> bool:
    """Whether a file exists, by path or URL."""
    if not is_url(location):
        return Path(location).is_file()
    filesystem, path = filesystem_of(location)
    return bool(filesystem.exists(path))


@contextlib.contextmanager
def atomic_output(out: Location) -> Iterator[IO[bytes]]:
    """Yield a stream whose content replaces a file, or what a URL names, if the block ends without an error."""
    if not is_url(out):
        with atomic_file(out, "wb") as stream:
            yield stream
        return
    filesystem, path = filesystem_of(os.fspath(out))
    with tempfile.TemporaryDirectory() as folder:
        local = Path(folder, "answers")
        with local.open("wb") as stream:
            yield stream
        filesystem.makedirs(filesystem._parent(path), exist_ok=True)
        # Under another name first where files can be renamed; object stores replace in one step anyway.
        filesystem.put_file(str(local), f"{path}.part")
        filesystem.mv(f"{path}.part", path)


def _list_skipped(beside: str, skipped: list[dict[str, Any]]) -> str | None:
    """Write the list of skipped rows, or remove an older one."""
    if skipped:
        with atomic_output(beside) as stream:
            stream.write("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in skipped).encode())
        return beside
    if exists(beside) and is_url(beside):
        filesystem, path = filesystem_of(beside)
        filesystem.rm_file(path)
    elif exists(beside):
        Path(beside).unlink()
    return None
