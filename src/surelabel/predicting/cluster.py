"""A Dask cluster: started or connected to, the model brought to its workers once, files answered there."""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

from distributed import Client, Future, KilledWorker, LocalCluster, as_completed
from distributed.client import FutureCancelledError
from distributed.comm.core import CommClosedError

from surelabel._version import __version__
from surelabel.exceptions import DatasetError, InvalidInputError
from surelabel.models import Bundle, load_bundle
from surelabel.predicting.dataset import Task
from surelabel.predicting.file import Counts, answer_file
from surelabel.predicting.settings import PredictSettings

_CONNECT_SECONDS = 15
_WORKER_SECONDS = 60
_ROUNDS = 4


@contextlib.contextmanager
def client_of(workers: Any) -> Iterator[Client]:
    """Yield a client: of new processes on this machine, of a scheduler's address, or the one that is given."""
    is_number = isinstance(workers, int) and not isinstance(workers, bool)
    if not isinstance(workers, (Client, str)) and not (is_number and workers > 0):
        raise InvalidInputError(f"The 'workers' must be 1 or more, an address, or a client. Got {workers!r} instead.")
    with contextlib.ExitStack() as stack:
        if isinstance(workers, Client):
            client = workers
        elif isinstance(workers, str):
            client = stack.enter_context(_connect(workers))
        else:
            # One thread per process; a process that dies is started again; the dashboard takes any free port.
            settings = {"threads_per_worker": 1, "env": {"SURELABEL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}}
            cluster = LocalCluster(n_workers=workers, processes=True, dashboard_address="127.0.0.1:0", **settings)
            client = stack.enter_context(Client(stack.enter_context(cluster), set_as_default=False))
        _check_versions(client)
        yield client


@contextlib.contextmanager
def _connect(address: str) -> Iterator[Client]:
    """Connect to a scheduler and wait for its first worker."""
    try:
        client = Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise DatasetError(f"There is no Dask scheduler at {address!r}. Start one with: dask scheduler") from error
    with client:
        try:
            client.wait_for_workers(1, timeout=_WORKER_SECONDS)
        except TimeoutError as error:
            message = f"The Dask scheduler at {address!r} has no workers. Start some with: dask worker {address}"
            raise DatasetError(message) from error
        yield client


def _version() -> str:
    return __version__


def _check_versions(client: Client) -> None:
    """Raise unless every worker has the same surelabel."""
    try:
        versions = client.run(_version, on_error="return")
    except Exception as error:  # Dask raises anything when a scheduler goes away
        raise DatasetError(f"The Dask workers cannot be asked for their version: {error}") from error
    for worker, version in sorted(versions.items()):
        if version != __version__:
            found = f"surelabel {version}" if isinstance(version, str) else f"an error: {version}"
            raise DatasetError(f"The worker {worker} has {found}. Install surelabel {__version__} on all workers.")


class _Model:
    """The files of a bundle, equal to another if the checksum is."""

    def __init__(self, checksum: str, files: dict[str, bytes]) -> None:
        self.checksum = checksum
        self.files = files

    def __hash__(self) -> int:
        return hash(self.checksum)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Model) and other.checksum == self.checksum


@functools.lru_cache(maxsize=1)
def _load(model: _Model) -> tuple[Bundle, Any]:
    """Load a bundle on a worker, once; its folder lives as long as the bundle."""
    folder = tempfile.TemporaryDirectory(prefix="surelabel-model-")
    for name, content in model.files.items():
        path = Path(folder.name, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return load_bundle(folder.name), folder


def _answer(task: Task, model: _Model, settings: PredictSettings) -> Counts:
    """Answer a file on a worker."""
    return answer_file(_load(model)[0], task.source, task.out, settings)


def answer_files(
    client: Client, folder: Path, checksum: str, tasks: list[Task], settings: PredictSettings
) -> Iterator[Counts]:
    """Answer files on the workers and yield the counts of each when it is done."""
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    todo = set(tasks)
    for attempt in range(_ROUNDS):
        try:
            for task, counts in _round(client, _Model(checksum, files), sorted(todo), settings):
                todo.discard(task)
                yield counts
        except _ModelLostError as error:
            if attempt == _ROUNDS - 1:
                raise DatasetError("The workers died again and again. Give them more memory.") from error
        if not todo:
            return


class _ModelLostError(Exception):
    """All workers that had the model are gone."""


def _round(
    client: Client, model: _Model, tasks: list[Task], settings: PredictSettings
) -> Iterator[tuple[Task, Counts]]:
    """Bring the model to the workers and answer files there; an error stops those that have not begun."""
    futures: dict[Future[Counts], Task] = {}
    try:
        client.wait_for_workers(1, timeout=_WORKER_SECONDS)  # a worker that died is started again
        [place] = client.scatter([model], broadcast=True, hash=False)
        futures = {client.submit(_answer, task, place, settings, pure=False): task for task in tasks}
        for future in as_completed(futures, loop=client.loop):
            yield futures[future], future.result()
    except KilledWorker as error:
        raise DatasetError(f"Workers died again and again on one file, perhaps for lack of memory: {error}") from error
    except (CancelledError, FutureCancelledError) as error:
        raise _ModelLostError from error
    except (CommClosedError, TimeoutError) as error:
        raise DatasetError("The Dask scheduler went away. Start it again.") from error
    finally:
        with contextlib.suppress(Exception):
            client.cancel(list(futures))
