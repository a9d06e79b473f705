"""Answers to a data set: many files, on one process or on a cluster."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

from surelabel._core.extras import of_extra
from surelabel.exceptions import CorpusError, DatasetError, InvalidInputError
from surelabel.models import Bundle
from surelabel.predicting.files import Summary
from surelabel.predicting.jobs import Job, run_job
from surelabel.predicting.models import bundle_folder, forget_model, model_checksum, place_model, predictor_of
from surelabel.predicting.output import MANIFEST, SKIPPED, OutputFolder
from surelabel.predicting.partitions import Run, plan_partitions
from surelabel.predicting.settings import AnswerSettings
from surelabel.tables.reading import Partition
from surelabel.tables.stores import is_url
from surelabel.tables.writing import output_format


def predict_dataset(
    bundle: Bundle | str | os.PathLike[str],
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    settings: AnswerSettings | None = None,
    *,
    workers: Any = None,
    resume: bool = False,
    advance: Callable[[int, int], None] | None = None,
) -> Summary:
    r"""Answer to all texts of a data set in another data set: one file per partition, a manifest last.

    With workers partitions are answered in parallel, otherwise sequentially; the answers are the same, row by row. A
    partition is written once, however often a worker dies: its file has a name of its own and takes its place in one
    step. Records name the `file` if there are several, and the `row` in it.

    Parameters
    ----------
    bundle : Bundle or path
    source : str or path
        A folder, a pattern, or a file; see `plan_partitions`.
    out : str or path
        A new folder; if workers are on other machines, one that all of them see, or a URL.
    settings : AnswerSettings, optional
    workers : int, str or distributed.Client, optional
        How many processes to start on this machine; the address of a Dask scheduler, e.g. `tcp://10.0.0.1:8786`; or a
        Dask client. A script that starts processes must call this under ``if __name__ == "__main__":``.
    resume : bool
        Continue what an earlier run left in `out`; partitions whose rows have changed are done again.
    advance : callable, optional
        Called with rows done and rows in all, when a partition is done.

    Raises
    ------
    CorpusError
        There are no texts, or some cannot be read.
    DatasetError
        The cluster is missing, is lost, or has other versions; or an output could not be written. What is finished
        stays, and `resume` continues from there.
    InvalidInputError
        An argument is wrong, or the output folder holds something else or is in use.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> from surelabel import corpora, predict_dataset
    >>> from surelabel.models import TrainingSettings, train_bundle
    >>> from surelabel.predicting import AnswerSettings
    >>> bundle = train_bundle(corpora.load("synthetic", n_texts=300, n_labels=5), TrainingSettings(compared={}))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     texts = Path(folder) / "texts.jsonl"
    ...     _ = texts.write_text("".join(json.dumps({"text": text}) + "\n" for text in ["A barrel.", "A ballot."]))
    ...     summary = predict_dataset(bundle, texts, Path(folder) / "answers", AnswerSettings(0.1))
    >>> summary.n_partitions, summary.n_rows
    (1, 2)
    """
    settings = settings or AnswerSettings()
    kind = settings.format or "parquet"
    if kind == "xlsx":
        raise InvalidInputError("The files of a data set must be Parquet, JSONL or CSV. Got 'xlsx' instead.")
    if output_format(os.fspath(out), strict=False) is not None:
        raise InvalidInputError(
            f"The answers to a data set go into a folder. Got {os.fspath(out)!r}, a file's name; name a folder, and "
            "the format of its files with --format."
        )
    with bundle_folder(bundle) as folder:
        checksum = model_checksum(folder)
        settings.check_model(predictor_of(folder), kind)
        identity = {"model": checksum, "settings": settings.identity(), "format": kind}
        # Workers have another current folder.
        output = OutputFolder(out if is_url(out) else Path(out).absolute(), identity)
        output.check(resume=resume)
        with output.locked(), _workplace(workers, checksum, folder) as place:
            output.check(resume=resume)
            partitions = plan_partitions(source, settings, place.run)
            if not any(partition.n_rows for partition in partitions):
                raise CorpusError(f"{os.fspath(source)!r} must have at least one text. Got none instead.")
            output.begin()
            names = _file_names(partitions)
            jobs = [
                Job(index, partition, names.get(partition.url), settings, output, is_here=place.is_here)
                for index, partition in enumerate(partitions)
            ]
            return _finish(output, partitions, jobs, place, advance)


def _file_names(partitions: list[Partition]) -> dict[str, str]:
    """Return the names that records call files by, without the folder that all share; none if there is one file."""
    urls = sorted({partition.url for partition in partitions})
    if len(urls) == 1:
        return {}
    folders = [url.split("/")[:-1] for url in urls]
    n_shared = sum(1 for _ in itertools.takewhile(lambda parts: len(set(parts)) == 1, zip(*folders, strict=False)))
    return {url: "/".join(url.split("/")[n_shared:]) for url in urls}


def _finish(
    output: OutputFolder,
    partitions: list[Partition],
    jobs: list[Job],
    place: _Workplace,
    advance: Callable[[int, int], None] | None,
) -> Summary:
    """Do the jobs that are not done yet, then write the manifest."""
    notes = output.finished(partitions)
    n_found = len(notes)
    total = sum(partition.n_rows for partition in partitions)

    def report() -> None:
        if advance is not None:
            advance(sum(partitions[index].n_rows for index in notes), total)

    left = [job for job in jobs if job.index not in notes]
    report()
    try:
        if left:
            output.store.remove(MANIFEST)
            with contextlib.closing(place.do(left)) as done:
                for job, note in done:
                    notes[job.index] = note
                    report()
        output.complete(notes)
    except (CorpusError, DatasetError, OSError) as error:
        stays = f"{len(notes)} of {len(jobs)} partitions are finished; --resume continues from there."
        if isinstance(error, OSError):
            raise DatasetError(f"The output {output.store.url} could not be written: {error}. {stays}") from error
        raise type(error)(f"{error} {stays}") from error
    ordered = [notes[index] for index in sorted(notes)]
    n_skipped = sum(len(note["skipped"]) for note in ordered)
    return Summary(
        out=output.store.url,
        n_partitions=len(jobs),
        n_found=n_found,
        n_rows=sum(note["n_rows"] for note in ordered),
        n_skipped=n_skipped,
        n_marked=sum(note["n_marked"] for note in ordered),
        skipped=f"{output.store.url.rstrip('/')}/{SKIPPED}" if n_skipped else None,
        notes=tuple(said for note in ordered for said in note["notes"]),
    )


@dataclasses.dataclass(frozen=True)
class _Workplace:
    """Where functions and jobs run; `do` yields each job with its note when it is done."""

    run: Run
    do: Callable[[list[Job]], Generator[tuple[Job, dict[str, Any]]]]
    is_here: bool


@contextlib.contextmanager
def _workplace(workers: Any, checksum: str, folder: Path) -> Iterator[_Workplace]:
    """Yield this process, or the cluster that was asked for, with the model in place."""
    if workers is None:
        place_model(checksum, folder)
        try:
            yield _Workplace(map, lambda jobs: ((job, run_job(job)) for job in jobs), is_here=True)
        finally:
            forget_model(checksum)
        return
    with of_extra("distributed", "A run on workers"):
        from surelabel.predicting import cluster  # noqa: PLC0415 (needs Dask)
    with cluster.client_of(workers) as client, cluster.model_on_workers(client, checksum, folder):
        run, do = functools.partial(cluster.run_everywhere, client), functools.partial(cluster.do_jobs, client)
        yield _Workplace(run, do, is_here=False)
