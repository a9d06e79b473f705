"""Answers in a file: whole or not there, and resumed after an interruption.

Records go into a part as JSONL, whole batches at a time; a journal beside it says how many rows and bytes of it
count, which rows they are of (a running hash), and from which model and settings. A kill between the two leaves more
bytes than count: they are cut off when the run is resumed, so that no row is lost or written twice. At the end the part
becomes the file, in one step. A data set is many such files, see `surelabel.predicting.datasets`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import itertools
import json
import logging
import os
import shutil
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO, TypeAlias

from surelabel._core.storage import atomic_file, clean_up, locked
from surelabel.exceptions import CorpusError, DataWarning, InvalidInputError
from surelabel.models import Bundle, load_bundle
from surelabel.predicting.models import bundle_folder, model_checksum
from surelabel.predicting.overlapping import ahead
from surelabel.predicting.records import Answerer, Record, answer_writer
from surelabel.predicting.settings import AnswerSettings
from surelabel.predicting.sources import TextBatch, TextList, TextSource
from surelabel.tables.writing import output_format, to_json

_log = logging.getLogger(__name__)

Source: TypeAlias = TextSource | TextList
_ROWS_AT_A_TIME = 1_000


@dataclasses.dataclass(frozen=True)
class Summary:
    """What a run has made.

    Attributes
    ----------
    out : str
        The output file or folder.
    n_partitions, n_found : int
        Partitions in all, and those that an earlier run had finished. A file is one partition.
    n_rows, n_skipped, n_marked : int
        Rows with an answer; rows without one that are listed in `skipped`, and that are marked in the output.
    skipped : str or None
        The file that lists rows without an answer.
    notes : tuple of str
        What should be known about the input: empty texts, ids that occur twice.
    """

    out: str
    n_partitions: int
    n_found: int
    n_rows: int
    n_skipped: int = 0
    n_marked: int = 0
    skipped: str | None = None
    notes: tuple[str, ...] = ()


class PartialFile:
    """Records on their way into a file: `part`, and the journal `<part>.json` beside it.

    The caller keeps others from writing it at the same time. `identity` is what records depend on beside the texts;
    what an interrupted run left with another identity is an error if `strict`, and dropped if not. `n_read` rows of the
    input count, with the hash `digest`, `n_problems` of them could not be read; `fields` are the names in the records.
    """

    def __init__(self, part: Path, identity: Mapping[str, Any], *, resume: bool, strict: bool = True) -> None:
        self.part = part
        self._journal = part.with_name(f"{part.name}.json")
        self._identity = json.loads(json.dumps(identity))
        self.n_read = self.n_problems = n_bytes = 0
        self.first_problem = ""
        self.digest: str | None = None
        self.fields: list[str] = []
        part.parent.mkdir(parents=True, exist_ok=True)
        clean_up(self._journal)
        if resume and self._journal.is_file() and part.is_file():
            n_bytes = self._read_journal(strict=strict)
        self._file: BinaryIO = part.open("r+b" if part.exists() else "w+b")
        self._file.truncate(n_bytes)
        self._file.seek(n_bytes)
        self._note()

    def write(self, batch: TextBatch, records: list[Record]) -> None:
        """Write the records of a batch; from now on they count."""
        self._file.write("".join(f"{to_json(record)}\n" for record in records).encode())
        self._file.flush()
        os.fsync(self._file.fileno())
        self.n_read, self.digest = batch.n_read, batch.digest
        self.n_problems += len(batch.problems)
        self.first_problem = self.first_problem or next((reason for _, reason in batch.problems), "")
        self.fields = list(dict.fromkeys(itertools.chain(self.fields, *records)))
        self._note()

    def _note(self) -> None:
        """Say in the journal what counts."""
        document = {
            "rows": self.n_read,
            "problems": self.n_problems,
            "first_problem": self.first_problem,
            "bytes": self._file.tell(),
            "digest": self.digest,
            "fields": self.fields,
            "identity": self._identity,
        }
        with atomic_file(self._journal, clean=False) as temporary:
            temporary.write_text(json.dumps(document), encoding="utf-8")

    def _read_journal(self, *, strict: bool) -> int:
        """Take over what an earlier run left; return how many bytes count."""
        try:
            document = json.loads(self._journal.read_text(encoding="utf-8"))
            n_read, n_problems, n_bytes = (int(document[key]) for key in ("rows", "problems", "bytes"))
            digest, fields, identity = document["digest"], list(document["fields"]), dict(document["identity"])
            first_problem = str(document["first_problem"])
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInputError(f"{self._journal} is damaged ({error}). Start over without --resume.") from error
        differing = sorted(key for key in {*identity, *self._identity} if identity.get(key) != self._identity.get(key))
        if differing and strict:
            raise InvalidInputError(
                f"{self.part} was begun with another {', '.join(differing)}. Use the same, or start over without "
                "--resume."
            )
        if differing or n_bytes > self.part.stat().st_size:
            if strict:
                raise InvalidInputError(f"{self.part} is shorter than it was. Start over without --resume.")
            return 0
        self.n_read, self.n_problems, self.first_problem = n_read, n_problems, first_problem
        self.digest, self.fields = digest, fields
        return n_bytes

    def deliver(self, stream: IO[bytes], kind: str, settings: AnswerSettings) -> list[dict[str, Any]]:
        """Write all records onto a stream in a format; return those of rows that are skipped, with their errors."""
        self._file.seek(0)
        skipped: list[dict[str, Any]] = []

        def kept() -> Iterator[Record]:
            for line in self._file:
                record = json.loads(line)
                if "error" in record and settings.on_error == "skip":
                    skipped.append(record)
                else:
                    yield record

        if kind == "jsonl" and not (self.n_problems and settings.on_error == "skip"):
            shutil.copyfileobj(self._file, stream)
            return []
        records = kept()
        with _as_text(stream) if kind in {"jsonl", "csv"} else contextlib.nullcontext(stream) as out:
            writer = answer_writer(out, kind, settings, self.fields)
            while some := list(itertools.islice(records, _ROWS_AT_A_TIME)):
                writer.write(some)
            writer.close()
        return skipped

    def close(self, *, remove: bool) -> None:
        """End writing; remove part and journal if they are not needed any more."""
        self._file.close()
        if remove:
            self._journal.unlink(missing_ok=True)
            self.part.unlink(missing_ok=True)


@contextlib.contextmanager
def _as_text(stream: IO[bytes]) -> Iterator[IO[str]]:
    """Yield a stream of text onto a stream of bytes, which stays open."""
    wrapper = io.TextIOWrapper(stream, encoding="utf-8", newline="")
    try:
        yield wrapper
    finally:
        wrapper.detach()


def predict_batches(
    bundle: Bundle, batches: Iterable[TextBatch], settings: AnswerSettings | None = None
) -> Iterator[list[Record]]:
    """Yield the records of each batch, as plain values.

    A record has the text's `row` (from 1), its `id` if it has one, and the answer. The answers do not depend on how
    texts are divided into batches (for bert, except for rounding in the classifier).
    """
    answerer = Answerer(bundle, settings or AnswerSettings())
    for batch in batches:
        yield answerer.records(batch, answerer.probabilities(batch))


@contextlib.contextmanager
def reporting_empty_texts() -> Iterator[None]:
    """Silence the warnings about empty texts, one per batch: they are reported once, with their rows."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r".*are empty; they are kept", DataWarning)
        yield


def answer_into(
    partial: PartialFile, answerer: Answerer, source: Source, settings: AnswerSettings
) -> Generator[TextBatch]:
    """Write the records of all texts that are not written yet; yield each batch when it counts.

    Reading and classifying, the conformal step, and writing overlap: each is at most a few batches ahead of the next.
    """
    batches = source.batches(settings.batch_size, partial.n_read, partial.digest, settings.on_error)
    classified = ahead((batch, answerer.probabilities(batch)) for batch in batches)
    answered = ahead((batch, answerer.records(batch, probabilities)) for batch, probabilities in classified)
    with reporting_empty_texts(), contextlib.closing(answered):
        for batch, records in answered:
            partial.write(batch, records)
            yield batch


def interrupted(target: str | os.PathLike[str]) -> bool:
    """Whether an interrupted run of an output file could be resumed."""
    return _part_of(Path(target)).with_name(f"{Path(target).name}.part.json").is_file()


def _part_of(target: Path) -> Path:
    return target.with_name(f"{target.name}.part")


def predict_file(
    bundle: Bundle | str | os.PathLike[str],
    source: Source,
    target: str | os.PathLike[str],
    settings: AnswerSettings | None = None,
    *,
    resume: bool = False,
    advance: Callable[[TextBatch], None] | None = None,
) -> Summary:
    """Answer to all texts of a source in a file, which is whole or not there.

    Parameters
    ----------
    bundle : Bundle or path
    source : TextSource or TextList
        Not standard input if the run is to be resumed after an interruption.
    target : path
        Its suffix says the format: .jsonl, .csv, .parquet or .xlsx.
    settings : AnswerSettings, optional
    resume : bool
        Continue an interrupted run of the same texts, model and settings.
    advance : callable, optional
        Called with each batch when it is written.

    Raises
    ------
    CorpusError
        There are no texts, or one cannot be read and `settings.on_error` is "stop".
    InvalidInputError
        Another process writes the file, or what is there cannot be resumed: it is of another model, other settings, or
        other texts.
    """
    settings = settings or AnswerSettings()
    target = Path(target)
    kind = output_format(target) or ""
    if settings.format not in {None, kind}:
        raise InvalidInputError(f"The format of {target.name!r} must be {kind}. Got {settings.format!r} instead.")
    if target.is_dir():
        raise InvalidInputError(f"The output {target} is a folder. Name a file.")
    with bundle_folder(bundle) as folder:
        model = bundle if isinstance(bundle, Bundle) else load_bundle(folder)
        identity = {"model": model_checksum(folder), "settings": settings.identity()}
    settings.check_model(model.predictor, kind)
    answerer = Answerer(model, settings)
    with locked(target.with_name(f".{target.name}.lock"), target):
        partial = PartialFile(_part_of(target), identity, resume=resume)
        is_done = False
        try:
            if partial.n_read:
                _log.info("resuming after %d rows", partial.n_read)
            for batch in answer_into(partial, answerer, source, settings):
                if advance is not None:
                    advance(batch)
            summary = _finish(partial, target, kind, settings, source)
            is_done = True
        finally:
            partial.close(remove=is_done or partial.n_read == 0)
    for note in summary.notes:
        warnings.warn(note, DataWarning, stacklevel=2)
    return summary


def _finish(partial: PartialFile, target: Path, kind: str, settings: AnswerSettings, source: Source) -> Summary:
    """Turn the part into the file, and list the rows that are skipped beside it."""
    if partial.n_read == 0:
        raise CorpusError(f"{source.name!r} must have at least one text. Got none instead.")
    if partial.n_read == partial.n_problems:
        raise CorpusError(f"No row of {source.name!r} can be read. {partial.first_problem}")
    with atomic_file(target) as temporary, temporary.open("wb") as stream:
        skipped = partial.deliver(stream, kind, settings)
    beside = target.with_name(f"{target.name}.skipped.jsonl")
    if skipped:
        with atomic_file(beside) as temporary:
            temporary.write_text("".join(f"{to_json(record)}\n" for record in skipped), encoding="utf-8")
    else:
        beside.unlink(missing_ok=True)
    return Summary(
        out=str(target),
        n_partitions=1,
        n_found=0,
        n_rows=partial.n_read - partial.n_problems,
        n_skipped=len(skipped),
        n_marked=partial.n_problems - len(skipped),
        skipped=str(beside) if skipped else None,
        notes=tuple(source.findings.messages(source.name)),
    )
