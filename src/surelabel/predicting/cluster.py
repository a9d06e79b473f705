"""A Dask cluster: started or connected to, with the model on every worker, and jobs on it."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import uuid
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

from distributed import Client, KilledWorker, LocalCluster, WorkerPlugin, as_completed
from distributed.comm.core import CommClosedError

from surelabel.exceptions import DatasetError, InvalidInputError
from surelabel.predicting.jobs import Job, run_job, version_here
from surelabel.predicting.models import forget_model, place_model

_CONNECT_SECONDS = 15
_WORKER_SECONDS = 60


@contextlib.contextmanager
def client_of(workers: Any) -> Iterator[Client]:
    """Yield a client: of new processes on this machine, of a scheduler's address, or the one that is given."""
    if not isinstance(workers, (Client, str)) and (not isinstance(workers, int) or workers < 1):
        raise InvalidInputError(f"The 'workers' must be 1 or more, an address, or a client. Got {workers!r} instead.")
    with contextlib.ExitStack() as opened:
        if isinstance(workers, Client):
            client = workers
        elif isinstance(workers, str):
            client = opened.enter_context(_remote_client(workers))
        else:
            # One thread per process; a process that dies is started again; the dashboard takes any free port.
            settings = {"threads_per_worker": 1, "env": {"SURELABEL_NUM_THREADS": "1"}}
            cluster = LocalCluster(n_workers=workers, processes=True, dashboard_address="127.0.0.1:0", **settings)
            client = opened.enter_context(Client(opened.enter_context(cluster), set_as_default=False))
        _check_versions(client)
        yield client


@contextlib.contextmanager
def _remote_client(address: str) -> Iterator[Client]:
    """Connect to a scheduler that runs already, and wait for its first worker."""
    try:
        client = Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise DatasetError(
            f"There is no Dask scheduler at {address!r}: {_first_line(error)}. Start one with `dask scheduler`, or use "
            "--workers."
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=_WORKER_SECONDS)
        except TimeoutError:
            raise DatasetError(
                f"The Dask scheduler at {address!r} has no workers. Start some with `dask worker {address}`."
            ) from None
        yield client


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0].rstrip(".")


def _check_versions(client: Client) -> None:
    """Raise unless every worker has the surelabel that this process has."""
    try:
        versions = client.run(version_here, on_error="return")
    except Exception as error:
        versions = {"": error}
    for worker, version in sorted(versions.items()):
        if version != version_here():
            what = _first_line(version) if isinstance(version, BaseException) else f"it has surelabel {version}"
            raise DatasetError(
                f"The worker {worker} cannot be used: {what}. Install surelabel {version_here()} on all workers."
            )


class _ModelPlugin(WorkerPlugin):
    """Brings a model to every worker, also to those that join later."""

    def __init__(self, checksum: str, folder: Path) -> None:
        self.name = f"surelabel-model-{checksum[:16]}"
        self.checksum = checksum
        self.files = {
            path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
        }

    def _folder(self, worker: Any) -> Path:
        return Path(worker.local_directory) / f"{self.name}-{worker.id}".replace(":", "-").replace("/", "-")

    def setup(self, worker: Any) -> None:
        """Write the model's files; it is loaded when the worker gets its first partition."""
        folder = self._folder(worker)
        for name, content in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        self.files = {}
        place_model(self.checksum, folder)

    def teardown(self, worker: Any) -> None:
        """Free memory and disk."""
        forget_model(self.checksum)
        shutil.rmtree(self._folder(worker), ignore_errors=True)


@contextlib.contextmanager
def model_on_workers(client: Client, checksum: str, folder: Path) -> Iterator[None]:
    """Keep a model on every worker while the block lasts."""
    plugin = _ModelPlugin(checksum, folder)
    client.register_plugin(plugin)
    try:
        yield
    finally:
        with contextlib.suppress(Exception):  # a scheduler that is gone needs no cleaning up
            client.unregister_worker_plugin(plugin.name)


def run_everywhere(client: Client, function: Callable[[Any], Any], items: list[Any]) -> list[Any]:
    """Do what `map` does, on the workers."""
    with _translated_errors():
        results: list[Any] = client.gather(client.map(function, items, pure=False))
    return results


@contextlib.contextmanager
def _translated_errors() -> Iterator[None]:
    """Turn what Dask raises when a cluster fails into one kind of error."""
    try:
        yield
    except KilledWorker as error:
        raise DatasetError(
            f"A partition was given up after its workers died again and again, perhaps for want of memory: "
            f"{_first_line(error)}. Give workers more, or make partitions smaller."
        ) from error
    except (CancelledError, asyncio.CancelledError, CommClosedError, TimeoutError) as error:
        raise DatasetError("The Dask scheduler went away. Start it again.") from error


def do_jobs(client: Client, jobs: list[Job]) -> Generator[tuple[Job, dict[str, Any]]]:
    """Do jobs on the workers, each once, and yield them with their notes; an error stops those that have not begun."""
    token = uuid.uuid4().hex
    futures = client.map(run_job, jobs, key=[f"surelabel-{job.index}-{token}" for job in jobs], pure=False)
    job_of = dict(zip((future.key for future in futures), jobs, strict=True))
    try:
        with _translated_errors():
            for future in as_completed(futures, loop=client.loop):
                yield job_of[future.key], future.result()
                future.release()
    except BaseException:
        with contextlib.suppress(Exception):
            client.cancel(futures)
        raise
