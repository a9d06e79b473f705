"""What a worker does: answer to the texts of one partition."""

from __future__ import annotations

import contextlib
import dataclasses
import warnings
from typing import Any

from surelabel import _version
from surelabel.exceptions import CorpusError, DatasetError, DataWarning
from surelabel.predicting.files import AnswerSettings, predict_batches
from surelabel.predicting.models import model_of
from surelabel.predicting.output import OutputFolder, n_skipped
from surelabel.predicting.partitions import Partition, PartitionSource, Skipped
from surelabel.predicting.rows import InputColumns
from surelabel.predicting.writing import open_writer

__all__ = ["Job", "run_job", "version_here"]


@dataclasses.dataclass(frozen=True)
class Job:
    """A partition to answer to, and how; plain values, to be sent anywhere."""

    index: int
    partition: Partition
    columns: InputColumns
    settings: AnswerSettings
    out: str
    identity: dict[str, Any]
    model: str
    batch_size: int
    on_error: str
    token: str | None = None
    version: str = dataclasses.field(default_factory=lambda: _version.__version__)


def version_here() -> str:
    """Return the version of this process's surelabel."""
    return _version.__version__


def run_job(job: Job) -> dict[str, Any]:
    """Write the answers to a partition and the note about it; return the note.

    Doing it twice, even at the same time, does no harm: the file is the same, and takes its place in one step.
    """
    if job.version != version_here():
        raise DatasetError(
            f"A worker has surelabel {version_here()}, and the run is of surelabel {job.version}. Install the same "
            "version on all workers."
        )
    output = OutputFolder(job.out, job.identity, job.token)
    skipped: list[Skipped] | None = [] if job.on_error == "skip" else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # empty texts: one warning a batch would be too many
            n_rows = _write_answers(job, output, skipped)
        note = output.note(job.index, job.partition, n_rows, skipped or ())
    except OSError as error:
        raise DatasetError(f"Partition {job.index} could not be finished: {error}.") from error
    return note


def _write_answers(job: Job, output: OutputFolder, skipped: list[Skipped] | None) -> int:
    """Write the Parquet file; return how many rows it has."""
    bundle = model_of(job.model)
    source = PartitionSource(job.partition, job.columns)
    n_rows = 0
    with output.writing(job.index) as stream:
        with contextlib.closing(open_writer(stream, "parquet", top=job.settings.top)) as writer:
            for records in predict_batches(bundle, source.batches(job.batch_size, skipped), job.settings):
                writer.write(records)
                n_rows += len(records)
        found = n_rows + n_skipped([{"skipped": [dataclasses.asdict(each) for each in skipped or ()]}])
        if found != job.partition.n_rows:
            raise CorpusError(
                f"{source.name!r} must not change while it is read. It had {job.partition.n_rows} rows in partition "
                f"{job.index}, and has {found} now."
            )
    return n_rows
