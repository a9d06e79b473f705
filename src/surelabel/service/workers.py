"""Several processes that serve one bundle on one socket.

uvicorn starts the processes, and a new one in place of one that dies. All of them load one copy of the bundle, so that
they answer alike even if the bundle is replaced. They add to the same metrics, in files that
prometheus_client keeps, and to the watch and the outcomes of the process that started them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from surelabel.exceptions import CalibrationWarning, InvalidInputError
from surelabel.models import load_bundle
from surelabel.predicting.models import bundle_folder
from surelabel.service.app import create_app
from surelabel.service.computing import BatchWork, warm_up_questions
from surelabel.service.connections import raise_file_limit
from surelabel.service.settings import ServiceSettings
from surelabel.service.sharing import Shared

if TYPE_CHECKING:
    import socket

    import uvicorn
    from fastapi import FastAPI

_log = logging.getLogger(__name__)
_METRICS = "PROMETHEUS_MULTIPROC_DIR"
# Seconds that a process may leave a sign of life unanswered: one that starts on a busy machine needs some.
HEALTH_TIMEOUT = 60


@dataclasses.dataclass(frozen=True)
class Worker:
    """Makes the application in a process of its own, from a copy of the bundle and the address of what is shared."""

    bundle: Path
    settings: ServiceSettings
    hub: str
    log_level: int

    def __call__(self) -> FastAPI:
        """Load the bundle and return the application."""
        logging.basicConfig(level=self.log_level, format="%(message)s")
        warnings.filterwarnings("ignore", category=CalibrationWarning)
        raise_file_limit(self.settings.max_connections)
        threading.Thread(target=_end_with_parent, daemon=True).start()
        shared = Shared.connect(self.hub, has_watch=self.settings.watch)
        app = create_app(load_bundle(self.bundle), self.settings, shared=shared)
        app.state.has_process = True
        return app


def _end_with_parent() -> None:
    """Stop serving if the process that started this one is gone."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


class _Supervisor(Multiprocess):
    """uvicorn's supervisor, which does not wait for processes that are dead or past their grace period."""

    def keep_subprocess_alive(self) -> None:
        """Start a new process in place of one that is dead or gives no sign of life."""
        for process in self.processes:
            # This end of the pipe is the other process's: while it is open here, that process's death goes unnoticed.
            process.child_conn.close()
        super().keep_subprocess_alive()

    def join_all(self) -> None:
        """Wait for the processes to end."""
        deadline = time.monotonic() + (self.config.timeout_graceful_shutdown or 0) + 1
        for process in self.processes:
            process.process.join(max(0.0, deadline - time.monotonic()))
            if process.process.is_alive():
                process.kill()
                process.join()


@contextlib.contextmanager
def _shared_metrics() -> Iterator[None]:
    """Make a folder for the metrics of all processes that are started within the block."""
    before = {name: os.environ[name] for name in (_METRICS,) if name in os.environ}
    with tempfile.TemporaryDirectory(prefix="surelabel-", ignore_cleanup_errors=True) as folder:
        os.environ[_METRICS] = folder
        try:
            yield
        finally:
            del os.environ[_METRICS]
            os.environ.update(before)


def run_workers(
    bundle_path: str | os.PathLike[str], settings: ServiceSettings, config: uvicorn.Config, listening: socket.socket
) -> None:
    """Serve with as many processes as the settings say, until SIGINT or SIGTERM; set the application of `config`."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        # This process imports the program that started it, which serves again: that would never end. The exit code
        # lets the first process end too.
        _log.error("A program that serves with several workers must begin with: if __name__ == '__main__':")
        sys.exit(STARTUP_FAILURE)
    bundle = load_bundle(bundle_path)
    with bundle_folder(bundle) as copy, _shared_metrics():
        # Kernels are compiled here, once; the processes find them in the cache.
        for outcome in BatchWork(bundle, lambda _: None, lambda *_: None)(warm_up_questions(bundle)):
            if isinstance(outcome, Exception):
                raise outcome
        shared = Shared.of(bundle, settings)
        del bundle
        with shared.offered() as hub:
            config.app = Worker(copy, settings, hub, logging.getLogger().getEffectiveLevel())
            supervisor = _Supervisor(config, [listening])
            supervisor.run()
    if any(process.exitcode == STARTUP_FAILURE for process in supervisor.processes):
        raise InvalidInputError("A process of the service could not start; the log says why.")
