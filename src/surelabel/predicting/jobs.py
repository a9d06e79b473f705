"""What a worker does: answer to the texts of one partition."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import Any

from surelabel import _version
from surelabel.exceptions import CorpusError, DatasetError
from surelabel.predicting.files import PartialFile, answer_into
from surelabel.predicting.models import model_of
from surelabel.predicting.output import OutputFolder
from surelabel.predicting.records import Answerer
from surelabel.predicting.settings import AnswerSettings
from surelabel.predicting.sources import TextSource
from surelabel.tables.reading import Partition


@dataclasses.dataclass(frozen=True)
class Job:
    """A partition to answer to, and how; plain values, to be sent anywhere."""

    index: int
    partition: Partition
    file: str | None
    settings: AnswerSettings
    output: OutputFolder
    is_here: bool
    version: str = dataclasses.field(default_factory=lambda: _version.__version__)


def version_here() -> str:
    """Return the version of this process's surelabel."""
    return _version.__version__


def run_job(job: Job) -> dict[str, Any]:
    """Write the answers to a partition and the note about it; return the note.

    In this process records wait in the output folder, and an interrupted partition is resumed. On a worker they wait in
    a folder of its own: doing a job twice, even at the same time, does no harm.
    """
    if job.version != version_here():
        raise DatasetError(
            f"A worker has surelabel {version_here()}, and the run is of surelabel {job.version}. Install the same "
            "version on all workers."
        )
    part = job.output.part_of(job.index) if job.is_here else None
    try:
        if part is not None:
            return _answer(job, part)
        with tempfile.TemporaryDirectory(prefix="surelabel-") as folder:
            return _answer(job, Path(folder) / "part")
    except OSError as error:
        raise DatasetError(f"Partition {job.index} could not be finished: {error}.") from error


def _answer(job: Job, part: Path) -> dict[str, Any]:
    """Write the file of a partition; return the note about it."""
    output = job.output
    answerer = Answerer(model_of(output.identity["model"]), job.settings, job.file)
    source = TextSource(job.partition, job.settings.columns)
    identity = {**output.identity, "input": dataclasses.asdict(job.partition)}
    with PartialFile(part, identity, resume=True, strict=False) as partial:
        for _ in answer_into(partial, answerer, source, job.settings):
            pass
        journal = partial.journal
        if (journal.rows, journal.digest or "") != (job.partition.n_rows, job.partition.digest):
            journal.rows = 0  # nothing to resume
            raise CorpusError(f"{source.name!r} must not change while it is read. It changed in partition {job.index}.")
        with output.writing(job.index) as stream:
            skipped = partial.deliver(stream, output.identity["format"], job.settings)
    return output.note(
        job.index,
        job.partition,
        n_rows=journal.rows - journal.problems,
        n_marked=journal.problems - len(skipped),
        skipped=[{"file": job.partition.url, **entry} for entry in skipped],
        notes=source.findings.messages(source.name),
    )
