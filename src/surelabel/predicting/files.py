"""Answers in a file: whole or not there, and resumed after an interruption.

Records go into a part as JSONL, whole batches at a time; a journal beside it says how much of it counts, and of which
rows, model and settings. What a kill leaves beyond that is cut off when the run is resumed, so that no row is lost or
written twice. At the end the part becomes the file, in one step.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import itertools
import json
import logging
import os
import shutil
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any, BinaryIO, Self, TypeAlias, TypeVar

from surelabel._core.storage import atomic_file, clean_up, locked
from surelabel.exceptions import CorpusError, DataWarning, InvalidInputError
from surelabel.models import Bundle, load_bundle
from surelabel.predicting.models import bundle_folder, model_checksum
from surelabel.predicting.records import Answerer, Record, answer_writer
from surelabel.predicting.settings import AnswerSettings
from surelabel.predicting.sources import TextBatch, TextList, TextSource
from surelabel.tables.writing import output_format, to_json

_log = logging.getLogger(__name__)

Source: TypeAlias = TextSource | TextList
_ROWS_AT_A_TIME = 1_000
_Item = TypeVar("_Item")
_END: Any = object()


@dataclasses.dataclass(frozen=True)
class Summary:
    """What a run has made.

    Attributes
    ----------
    out, skipped : str
        The output file or folder, and the file that lists rows without an answer, None if there are none.
    n_partitions, n_found : int
        Partitions in all, and those that an earlier run had finished. A file is one partition.
    n_rows, n_skipped, n_marked : int
        Rows with an answer; rows without one that are listed in `skipped`, and that are marked in the output.
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


@dataclasses.dataclass
class _Journal:
    """What counts of a part: rows of the input and their hash, those that cannot be read, bytes, names of fields."""

    rows: int = 0
    problems: int = 0
    first_problem: str = ""
    bytes: int = 0
    digest: str | None = None
    fields: list[str] = dataclasses.field(default_factory=list)
    identity: dict[str, Any] = dataclasses.field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> _Journal:
        """Read a journal; raise if it is damaged."""
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            kinds: dict[str, Any] = {"rows": int, "problems": int, "bytes": int, "first_problem": str}
            kinds |= {"fields": list, "identity": dict}
            return cls(digest=document["digest"], **{name: kind(document[name]) for name, kind in kinds.items()})
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInputError(f"{path} is damaged ({error}). Start over without --resume.") from error


class PartialFile:
    """Records on their way into a file: `part`, and the journal `<part>.json` beside it.

    The caller keeps others from writing it at the same time. `identity` is what records depend on beside the texts;
    what an interrupted run left with another identity is an error if `strict`, and dropped if not.
    """

    def __init__(self, part: Path, identity: Mapping[str, Any], *, resume: bool, strict: bool = True) -> None:
        self.part = part
        self._path = part.with_name(f"{part.name}.json")
        self.journal = _Journal(identity=json.loads(json.dumps(identity)))
        part.parent.mkdir(parents=True, exist_ok=True)
        clean_up(self._path)
        if resume and self._path.is_file() and part.is_file():
            self._take_over(_Journal.load(self._path), strict=strict)
        self._file: BinaryIO = part.open("r+b" if part.exists() else "w+b")
        self._file.truncate(self.journal.bytes)
        self._file.seek(self.journal.bytes)
        self._note()

    def write(self, batch: TextBatch, records: list[Record]) -> None:
        """Write the records of a batch; from now on they count."""
        self._file.write("".join(f"{to_json(record)}\n" for record in records).encode())
        self._file.flush()
        os.fsync(self._file.fileno())
        now = self.journal
        now.rows, now.digest, now.bytes = batch.n_read, batch.digest, self._file.tell()
        now.problems += len(batch.problems)
        now.first_problem = now.first_problem or next((reason for _, reason in batch.problems), "")
        now.fields = list(dict.fromkeys(itertools.chain(now.fields, *records)))
        self._note()

    def _note(self) -> None:
        """Write into the journal what counts."""
        with atomic_file(self._path, clean=False) as temporary:
            temporary.write_text(json.dumps(dataclasses.asdict(self.journal)), encoding="utf-8")

    def _take_over(self, earlier: _Journal, *, strict: bool) -> None:
        """Continue what an earlier run left, if it has the same identity and is complete."""
        mine = self.journal.identity
        names = {*earlier.identity, *mine}
        differing = sorted(name for name in names if earlier.identity.get(name) != mine.get(name))
        if differing and strict:
            raise InvalidInputError(
                f"{self.part} was begun with another {', '.join(differing)}. Use the same, or start over without "
                "--resume."
            )
        is_whole = earlier.bytes <= self.part.stat().st_size
        if not is_whole and strict:
            raise InvalidInputError(f"{self.part} is shorter than it was. Start over without --resume.")
        if is_whole and not differing:
            self.journal = earlier

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

        if kind == "jsonl" and not (self.journal.problems and settings.on_error == "skip"):
            shutil.copyfileobj(self._file, stream)
            return []
        records = kept()
        writer = answer_writer(stream, kind, settings, self.journal.fields)
        while some := list(itertools.islice(records, _ROWS_AT_A_TIME)):
            writer.write(some)
        writer.close()
        return skipped

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End writing; remove part and journal if all went well, or if there is nothing to resume."""
        self._file.close()
        if kind is None or self.journal.rows == 0:
            self._path.unlink(missing_ok=True)
            self.part.unlink(missing_ok=True)


@contextlib.contextmanager
def reporting_empty_texts() -> Iterator[None]:
    """Silence the warnings about empty texts, one per batch: they are reported once, with their rows."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r".*are empty; they are kept", DataWarning)
        yield


def ahead(items: Iterable[_Item], depth: int = 2) -> Generator[_Item]:
    """Yield items in their order, made ahead by a thread; at most `depth` of them wait to be taken.

    An error of the maker is raised when its item would have come. Closing the generator stops the maker, and closes
    `items` if that is a generator.

    Examples
    --------
    >>> list(ahead(n * n for n in range(4)))
    [0, 1, 4, 9]
    """
    iterator = iter(items)
    pool = ThreadPoolExecutor(1, thread_name_prefix="surelabel-ahead")
    waiting = collections.deque(pool.submit(next, iterator, _END) for _ in range(depth))
    try:
        while (item := waiting.popleft().result()) is not _END:
            waiting.append(pool.submit(next, iterator, _END))
            yield item
    finally:
        pool.shutdown(cancel_futures=True)
        if isinstance(items, Generator):
            items.close()


def answer_into(
    partial: PartialFile, answerer: Answerer, source: Source, settings: AnswerSettings
) -> Generator[TextBatch]:
    """Write the records of all texts that are not written yet; yield each batch when it counts.

    Reading and classifying, the conformal step, and writing overlap.
    """
    batches = source.batches(settings.batch_size, partial.journal.rows, partial.journal.digest, settings.on_error)
    classified = ahead((batch, answerer.probabilities(batch)) for batch in batches)
    answered = ahead((batch, answerer.records(batch, probabilities)) for batch, probabilities in classified)
    with reporting_empty_texts(), contextlib.closing(answered):
        for batch, records in answered:
            partial.write(batch, records)
            yield batch


def interrupted(target: str | os.PathLike[str]) -> bool:
    """Whether an interrupted run of an output file could be resumed."""
    return Path(f"{os.fspath(target)}.part.json").is_file()


def predict_file(
    bundle: Bundle | str | os.PathLike[str],
    source: Source,
    target: str | os.PathLike[str],
    settings: AnswerSettings | None = None,
    *,
    resume: bool = False,
    advance: Callable[[TextBatch], None] | None = None,
) -> Summary:
    """Answer to all texts of a source in a file (.jsonl, .csv, .parquet or .xlsx), which is whole or not there.

    `resume` continues an interrupted run of the same texts, model and settings, but not one that read standard input;
    `advance` is called with each batch when it is written.
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
    with (
        locked(target.with_name(f".{target.name}.lock"), target),
        PartialFile(target.with_name(f"{target.name}.part"), identity, resume=resume) as partial,
    ):
        if partial.journal.rows:
            _log.info("resuming after %d rows", partial.journal.rows)
        for batch in answer_into(partial, answerer, source, settings):
            if advance is not None:
                advance(batch)
        summary = _finish(partial, target, kind, settings, source)
    for note in summary.notes:
        warnings.warn(note, DataWarning, stacklevel=2)
    return summary


def _finish(partial: PartialFile, target: Path, kind: str, settings: AnswerSettings, source: Source) -> Summary:
    """Turn the part into the file, and list the rows that are skipped beside it."""
    n_read, n_problems = partial.journal.rows, partial.journal.problems
    if n_read == 0:
        raise CorpusError(f"{source.name!r} must have at least one text. Got none instead.")
    if n_read == n_problems:
        raise CorpusError(f"No row of {source.name!r} can be read. {partial.journal.first_problem}")
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
        n_rows=n_read - n_problems,
        n_skipped=len(skipped),
        n_marked=n_problems - len(skipped),
        skipped=str(beside) if skipped else None,
        notes=tuple(source.findings.messages(source.name)),
    )
