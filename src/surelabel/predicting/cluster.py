"""A Dask cluster: started or connected to, the model brought to its workers once, files answered there."""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections.abc import Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

from distributed import Client, KilledWorker, LocalCluster, WorkerPlugin, as_completed, get_worker
from distributed.comm.core import CommClosedError

from surelabel._version import __version__
from surelabel.exceptions import DatasetError, InvalidInputError
from surelabel.models import Bundle, load_bundle
from surelabel.predicting.dataset import Task
from surelabel.predicting.file import Counts, answer_file
from surelabel.predicting.settings import PredictSettings

_CONNECT_SECONDS = 15
_WORKER_SECONDS = 60


@contextlib.contextmanager
def client_of(workers: Any) -> Iterator[Client]:
    """Yield a client: of new processes on this machine, of a scheduler's address, or the one that is given."""
    with contextlib.ExitStack() as stack:
        if isinstance(workers, Client):
            yield workers
        elif isinstance(workers, str):
            yield stack.enter_context(_connect(workers))
        elif isinstance(workers, int) and not isinstance(workers, bool) and workers > 0:
            # One thread per process; a process that dies is started again; the dashboard takes any free port.
            settings = {"threads_per_worker": 1, "env": {"SURELABEL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}}
            cluster = LocalCluster(n_workers=workers, processes=True, dashboard_address="127.0.0.1:0", **settings)
            yield stack.enter_context(Client(stack.enter_context(cluster), set_as_default=False))
        else:
            raise InvalidInputError(f"The 'workers' must be 1 or more, an address, or a client. Got {workers!r}.")


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


class _Model(WorkerPlugin):
    """The files of a bundle on every worker, also on one that is started later."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._version = __version__
        paths = [path for path in folder.rglob("*") if path.is_file()]
        self._files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}

    def setup(self, worker: Any) -> None:
        """Write the files into a folder that is removed with the worker."""
        if self._version != __version__:
            raise DatasetError(f"A worker has surelabel {__version__}. Install {self._version} on all workers.")
        self._folder = Path(tempfile.mkdtemp(prefix="surelabel-model-", dir=worker.local_directory))
        for name, content in self._files.items():
            path = self._folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        self._files = {}

    @functools.cached_property
    def bundle(self) -> Bundle:
        """The bundle, loaded when it is first needed."""
        return load_bundle(self._folder)


def _answer(task: Task, model: str, settings: PredictSettings) -> Counts:
    """Answer a file on a worker."""
    plugin = get_worker().plugins[model]
    assert isinstance(plugin, _Model)
    return answer_file(plugin.bundle, task.source, task.out, settings)


def answer_files(
    client: Client, folder: Path, checksum: str, tasks: list[Task], settings: PredictSettings
) -> Iterator[Counts]:
    """Answer files on the workers and yield the counts of each when it is done; an error stops those not begun."""
    model = _Model(f"surelabel-{checksum}", folder)
    futures = []
    try:
        client.register_plugin(model, name=model.name)
        futures = [client.submit(_answer, task, model.name, settings, pure=False) for task in tasks]
        for future in as_completed(futures, loop=client.loop):
            yield future.result()
    except KilledWorker as error:
        raise DatasetError(f"Workers died again and again on one file, perhaps for lack of memory: {error}") from error
    except (CancelledError, CommClosedError, TimeoutError) as error:
        raise DatasetError("The Dask scheduler went away. Start it again.") from error
    finally:
        with contextlib.suppress(Exception):
            client.cancel(futures)
            client.unregister_worker_plugin(model.name)
