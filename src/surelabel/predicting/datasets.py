"""Answers to a data set."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from surelabel._core.extras import of_extra
from surelabel.answers import exact_level
from surelabel.exceptions import CorpusError, DatasetError, InvalidInputError
from surelabel.models import Bundle
from surelabel.predicting.files import AnswerSettings
from surelabel.predicting.jobs import Job, run_job
from surelabel.predicting.models import bundle_folder, forget_model, model_checksum, place_model
from surelabel.predicting.output import SKIPPED, OutputFolder, n_skipped
from surelabel.predicting.partitions import Partition, plan_partitions
from surelabel.predicting.rows import InputColumns

__all__ = ["DatasetSummary", "predict_dataset"]


@dataclasses.dataclass(frozen=True)
class DatasetSummary:
    """What a run has made.

    Attributes
    ----------
    out : str
        The output folder.
    n_partitions, n_found : int
        Partitions in all, and those that an earlier run had finished.
    n_rows, n_skipped : int
        Rows with an answer, and without.
    skipped : str or None
        The file that lists rows without an answer.
    """

    out: str
    n_partitions: int
    n_found: int
    n_rows: int
    n_skipped: int
    skipped: str | None


def predict_dataset(
    bundle: Bundle | str | os.PathLike[str],
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    client: Any = None,
    workers: int | None = None,
    scheduler: str | None = None,
    significance: Any = None,
    confidence_level: Any = None,
    top: int = 5,
    with_text: bool = False,
    describe: bool = False,
    columns: InputColumns | None = None,
    resume: bool = False,
    on_error: str = "stop",
    batch_size: int = 1024,
    partition_bytes: int = 32 * 2**20,
    advance: Callable[[int, int], None] | None = None,
) -> DatasetSummary:
    r"""Answer to all texts of a data set in a Parquet data set: one file a partition, a manifest last.

    With a Dask client, workers or a scheduler partitions are answered side by side, without one after the other;
    the answers are the same, row by row. A partition is done once however often a worker dies: its file has a
    name of its own and takes its place in one step. A script that uses `workers` must call this under
    ``if __name__ == "__main__":``.

    Parameters
    ----------
    bundle : Bundle or path
    source : str or path
        A folder, a pattern, or a file of JSONL or Parquet; see `plan_partitions`.
    out : str or path
        A new folder; where workers are on other machines, one that all of them see, or a URL.
    client : distributed.Client, optional
    workers : int, optional
        Processes to start on this machine.
    scheduler : str, optional
        Address of a Dask scheduler, e.g. `tcp://10.0.0.1:8786`.
    significance, confidence_level
        One of the two; significance 0.05 where neither is given.
    top, with_text, describe
        As in `AnswerSettings`.
    columns : InputColumns, optional
    resume : bool
        Go on with what an earlier run left in `out`; partitions whose input has changed are done again.
    on_error : {"stop", "skip"}
        What a row that cannot be read leads to: an error, or an entry in `_skipped.jsonl`.
    batch_size, partition_bytes : int
        Texts at a time; about how much of a file is one partition.
    advance : callable, optional
        Called with rows done and rows in all, whenever a partition is done.

    Raises
    ------
    CorpusError
        Texts are not there or cannot be read.
    DatasetError
        The cluster is not there, is lost, or has other versions; or an output could not be written. What is finished
        stays, and `resume` goes on with it.
    InvalidInputError
        An argument is wrong, or the output folder holds something else or is in use.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> from surelabel import corpora, predict_dataset
    >>> from surelabel.models import TrainingSettings, train_bundle
    >>> bundle = train_bundle(corpora.load("synthetic", n_texts=300, n_labels=5), TrainingSettings(compared={}))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     texts = Path(folder) / "texts.jsonl"
    ...     _ = texts.write_text("".join(json.dumps({"text": text}) + "\n" for text in ["A barrel.", "A ballot."]))
    ...     summary = predict_dataset(bundle, texts, Path(folder) / "answers")
    >>> summary.n_partitions, summary.n_rows
    (1, 2)
    """
    if on_error not in {"stop", "skip"}:
        raise InvalidInputError(f"The 'on_error' must be 'stop' or 'skip'. Got {on_error!r} instead.")
    if batch_size < 1:
        raise InvalidInputError(f"The 'batch_size' must be 1 or more. Got {batch_size} instead.")
    if significance is None and confidence_level is None:
        significance = "0.05"
    settings = AnswerSettings(exact_level(significance, confidence_level), top, with_text, describe)
    columns = columns or InputColumns()
    with bundle_folder(bundle if isinstance(bundle, Bundle) else os.fspath(bundle)) as folder:
        checksum = model_checksum(folder)
        identity = {
            "model": checksum,
            "settings": dataclasses.asdict(settings),
            "columns": {**dataclasses.asdict(columns), "text": list(columns.text)},
            "on_error": on_error,
        }
        output = OutputFolder(out, identity)
        output.check(resume=resume)
        with output.locked(), _workplace(client, workers, scheduler, checksum, folder) as place:
            output.check(resume=resume)
            partitions = plan_partitions(
                source, columns, partition_bytes=partition_bytes, on_error=on_error, run=place.run
            )
            if not any(partition.n_rows for partition in partitions) and on_error == "stop":
                raise CorpusError(f"{os.fspath(source)!r} must have one text at least. Got none instead.")
            output.begin()
            jobs = [
                Job(
                    index,
                    each,
                    columns,
                    settings,
                    _absolute(out),
                    identity,
                    checksum,
                    batch_size,
                    on_error,
                    output.token,
                )
                for index, each in enumerate(partitions)
            ]
            return _finish(output, partitions, jobs, place, advance)


def _finish(
    output: OutputFolder,
    partitions: list[Partition],
    jobs: list[Job],
    place: _Workplace,
    advance: Callable[[int, int], None] | None,
) -> DatasetSummary:
    """Do the jobs that are not done yet, then write the manifest."""
    notes = output.finished(partitions)
    n_found = len(notes)
    total = sum(partition.n_rows for partition in partitions)
    done = sum(partitions[index].n_rows for index in notes)

    def is_done(job: Job, note: dict[str, Any]) -> None:
        nonlocal done
        notes[job.index] = note
        done += job.partition.n_rows
        if advance is not None:
            advance(done, total)

    left = [job for job in jobs if job.index not in notes]
    if advance is not None:
        advance(done, total)
    try:
        if left:
            output.open_again()
            place.do(left, is_done)
        output.complete(notes)
    except (CorpusError, DatasetError) as error:
        raise type(error)(f"{error} {_what_stays(len(notes), len(jobs))}") from error
    except OSError as error:
        raise DatasetError(
            f"The output {output.store.url} could not be written: {error}. {_what_stays(len(notes), len(jobs))}"
        ) from error
    return DatasetSummary(
        out=output.store.url,
        n_partitions=len(jobs),
        n_found=n_found,
        n_rows=sum(note["n_rows"] for note in notes.values()),
        n_skipped=n_skipped(notes.values()),
        skipped=f"{output.store.url.rstrip('/')}/{SKIPPED}" if n_skipped(notes.values()) else None,
    )


def _what_stays(n_finished: int, n_partitions: int) -> str:
    return f"Finished are {n_finished} of {n_partitions} partitions; --resume goes on with them."


def _absolute(out: str | os.PathLike[str]) -> str:
    """Return a place that means the same to workers, whose current folder is another."""
    name = os.fspath(out)
    return name if "://" in name else str(Path(name).absolute())


@dataclasses.dataclass(frozen=True)
class _Workplace:
    """Where functions and jobs run."""

    run: Callable[[Callable[[Any], Any], list[Any]], Any]
    do: Callable[[list[Job], Callable[[Job, dict[str, Any]], None]], None]


@contextlib.contextmanager
def _workplace(
    client: Any, workers: int | None, scheduler: str | None, checksum: str, folder: Path
) -> Iterator[_Workplace]:
    """Yield this process, or the cluster that was asked for, with the model in place."""
    asked = [name for name, value in (("client", client), ("workers", workers), ("scheduler", scheduler)) if value]
    if len(asked) > 1:
        raise InvalidInputError(f"Only one of client, workers and scheduler may be given. Got {' and '.join(asked)}.")
    if workers is not None and workers < 1:
        raise InvalidInputError(f"The 'workers' must be 1 or more. Got {workers} instead.")
    if not asked:
        place_model(checksum, folder)
        try:
            yield _Workplace(map, _do_here)
        finally:
            forget_model(checksum)
        return
    with of_extra("distributed", "A run on workers"):
        from surelabel.predicting import cluster  # noqa: PLC0415 (needs Dask)
    with contextlib.ExitStack() as opened:
        if workers:
            client = opened.enter_context(cluster.local_client(workers))
        elif scheduler:
            client = opened.enter_context(cluster.remote_client(scheduler))
        cluster.check_versions(client)
        opened.enter_context(cluster.model_on_workers(client, checksum, folder))
        yield _Workplace(cluster.everywhere(client), lambda jobs, is_done: cluster.do_jobs(client, jobs, is_done))


def _do_here(jobs: list[Job], is_done: Callable[[Job, dict[str, Any]], None]) -> None:
    """Do jobs one after the other in this process."""
    for job in jobs:
        is_done(job, run_job(job))
