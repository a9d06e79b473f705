"""Answers to many files: one output per input, on this process or on a cluster."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from surelabel._core.extras import require
from surelabel._core.files import MANIFEST
from surelabel.exceptions import CorpusError, InvalidInputError
from surelabel.models import Bundle, load_bundle
from surelabel.predicting.file import (
    SKIPPED_SUFFIX,
    Counts,
    Location,
    answer_file,
    atomic_output,
    check_output,
    exists,
    filesystem_of,
    is_url,
    output_kind,
)
from surelabel.predicting.settings import PredictSettings
from surelabel.tables.annif import has_subjects
from surelabel.tables.read import SUFFIXES, format_of, open_binary

SETTINGS_FILE = "surelabel.json"
_WILDCARDS = frozenset("*?[")


class Summary(NamedTuple):
    """Files of answers, those of them that an earlier run had finished, and the rows that this run answered or skipped.

    `skipped` names the lists of skipped rows that this run has written.
    """

    n_files: int
    n_found: int
    n_rows: int
    n_skipped: int
    skipped: tuple[str, ...] = ()


class Task(NamedTuple):
    """A file to answer and where the answers go."""

    source: str
    out: str


def predict_dataset(
    bundle: Bundle | Location,
    source: Location,
    out: Location,
    settings: PredictSettings | None = None,
    *,
    workers: Any = None,
    resume: bool = False,
    advance: Callable[[int], object] | None = None,
) -> Summary:
    """Answer all texts of a folder, a pattern such as "texts/*.csv", or a file, by path or URL.

    The answers to monday.parquet in a folder are OUT/monday.parquet. A file of answers appears when it is complete, and
    `resume` skips those that exist. A file is never divided: split files of more than a few million rows.

    Parameters
    ----------
    bundle : Bundle or path of its folder
    source : path or URL
    out : path or URL
        A folder, which keeps the settings in surelabel.json.
    settings : PredictSettings, optional
    workers : int, str or distributed.Client, optional
        Processes to start on this machine, the address of a Dask scheduler, or a Dask client. Workers on other machines
        must see `source` and `out`.
    resume : bool
    advance : callable, optional
        Called with the number of texts that were answered since the last call.

    Raises
    ------
    CorpusError
        There are no texts, or a row cannot be used.
    DatasetError
        The cluster is absent, is lost, or has another surelabel. Finished files stay; `resume` continues.
    InvalidInputError
        An argument is wrong, or the folder holds answers of another model or with other settings.
    """
    settings = settings or PredictSettings()
    if output_kind(out) is not None:
        raise InvalidInputError(f"Answers to files go into a folder. Got {os.fspath(out)!r}, a file's name.")
    with _folder_of(bundle) as folder:
        model = bundle if isinstance(bundle, Bundle) else load_bundle(folder)
        tasks = _plan(source, out, settings)
        for task in tasks:
            check_output(task.source, task.out)
            settings.check_labels(model, output_kind(task.out) or "jsonl")
        check_output(tasks[0].source, f"{os.fspath(out)}/{SETTINGS_FILE}")
        _begin(os.fspath(out).rstrip("/"), {"model": model_checksum(folder), **settings.identity()}, resume=resume)
        todo = [task for task in tasks if not (resume and exists(task.out))]
        counts = list(_answered(model, folder, todo, settings, workers, advance))
    return Summary(
        n_files=len(tasks),
        n_found=len(tasks) - len(todo),
        n_rows=sum(count.n_rows for count in counts),
        n_skipped=sum(count.n_skipped for count in counts),
        skipped=tuple(sorted(count.skipped for count in counts if count.skipped is not None)),
    )


def _answered(
    model: Bundle,
    folder: Path,
    tasks: list[Task],
    settings: PredictSettings,
    workers: Any,
    advance: Callable[[int], object] | None,
) -> Iterator[Counts]:
    """Answer files here, or on workers; yield the counts of each when it is done."""
    if workers is None:
        for task in tasks:
            yield answer_file(model, task.source, task.out, settings, advance)
        return
    require("distributed", "distributed", "A run on workers")
    from surelabel.predicting import cluster  # noqa: PLC0415 (needs Dask)

    with cluster.client_of(workers) as client:
        for counts in cluster.answer_files(client, folder, model_checksum(folder), tasks, settings):
            if advance is not None:
                advance(counts.n_rows)
            yield counts


@contextlib.contextmanager
def _folder_of(bundle: Bundle | Location) -> Iterator[Path]:
    """Yield the folder of a bundle, a temporary one if it is in memory."""
    if not isinstance(bundle, Bundle):
        yield Path(bundle)
        return
    with tempfile.TemporaryDirectory(prefix="surelabel-") as folder:
        yield Path(bundle.save(Path(folder, "model")))


def model_checksum(folder: Path) -> str:
    """Return a checksum of a bundle: of its manifest, which has those of all files."""
    return hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()


def _files_of(source: Location) -> list[str]:
    """Return the files that a path, a folder, a pattern or a URL names, sorted."""
    name = os.fspath(source)
    has_wildcard = bool(_WILDCARDS & set(name))
    if is_url(name):
        filesystem, place = filesystem_of(name)
        found = filesystem.glob(place) if has_wildcard else filesystem.find(place)
        found = [filesystem.unstrip_protocol(item) for item in found]
    elif Path(name).is_dir():
        if has_subjects(name):
            raise InvalidInputError(
                f"In {name} each .txt file is a text, with its subjects beside it. Name one file for the answers, such "
                "as answers.jsonl."
            )
        found = [str(item) for item in Path(name).rglob("*") if item.is_file()]
    elif has_wildcard and not Path(name).exists():
        found = [item for item in glob.glob(name, recursive=True) if Path(item).is_file()]  # noqa: PTH207
    else:
        found = [name]
    files = sorted(item for item in found if item == name or _is_input(item.rpartition("/")[2]))
    if not files:
        raise CorpusError(f"{name} has no files of texts ({', '.join(SUFFIXES)}).")
    return files


def _is_input(name: str) -> bool:
    """Whether a file in a folder is one of texts: not hidden, not written by a run of predict."""
    return not name.startswith((".", "_")) and not name.endswith(SKIPPED_SUFFIX) and format_of(name) is not None


def _plan(source: Location, out: Location, settings: PredictSettings) -> list[Task]:
    """Return where the answers to each file go; an output has its input's name, and its kind unless `format` says."""
    sources = _files_of(source)
    common = os.path.commonpath([str(PurePosixPath(Path(file).as_posix()).parent) for file in sources])
    tasks = []
    for file in sources:
        relative = PurePosixPath(os.path.relpath(Path(file).as_posix(), common))
        relative = relative.with_suffix("") if relative.suffix in {".gz", ".xz"} else relative
        kind = settings.format or output_kind(relative) or "jsonl"
        target = f"{os.fspath(out).rstrip('/')}/{relative.with_suffix('.' + kind)}"
        # A path that means the same in the current folder of another process.
        tasks.append(Task(*(place if is_url(place) else str(Path(place).absolute()) for place in (file, target))))
    outs = [task.out for task in tasks]
    twice = next((name for name in outs if outs.count(name) > 1), None)
    if twice is not None:
        raise InvalidInputError(f"Two files would both be answered in {twice}. Rename one, or answer them apart.")
    return tasks


def _begin(out: str, identity: dict[str, Any], *, resume: bool) -> None:
    """Write the settings of a folder; raise if answers of another model, or with other settings, are there."""
    settings = f"{out}/{SETTINGS_FILE}"
    if not exists(settings):
        if not is_url(out) and Path(out).is_dir() and any(Path(out).iterdir()):
            raise InvalidInputError(f"{out} holds something other than answers. Choose a new folder.")
    elif resume:
        with open_binary(settings) as stream:
            try:
                earlier = dict(json.load(stream))
            except (ValueError, TypeError) as error:
                raise InvalidInputError(f"{settings} is damaged ({error}). Choose a new folder.") from error
        differing = sorted(name for name in {*identity, *earlier} if identity.get(name) != earlier.get(name))
        if differing:
            raise InvalidInputError(
                f"{out} was begun with another {' and '.join(differing)}. Use the same, or leave out --resume."
            )
    with atomic_output(settings) as stream:
        stream.write((json.dumps(identity, indent=1, ensure_ascii=False) + "\n").encode())
