"""Running the service under uvicorn until it is stopped."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import json
import logging
import os
import signal
import socket
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.supervisors import Multiprocess

from surelabel.exceptions import CalibrationWarning, InvalidInputError
from surelabel.models import load_bundle
from surelabel.service.app import PARENT_VARIABLE, create_app
from surelabel.service.metrics import remove_left_behind, shared_by_workers
from surelabel.service.settings import ServiceSettings

if TYPE_CHECKING:
    from fastapi import FastAPI

_log = logging.getLogger(__name__)
_VARIABLE = "SURELABEL_SERVICE"
_CONNECTIONS = 1_000
_OWN_FILES = 64  # files that the process needs besides its connections
_SHUTDOWN_SECONDS = 30


def serve(
    path: str | os.PathLike[str],
    settings: ServiceSettings | None = None,
    *,
    store: str | os.PathLike[str] | None = None,
    training: tuple[str, Mapping[str, Any]] | None = None,
) -> None:
    """Serve a bundle until SIGINT, SIGTERM or SIGHUP; requests that are running then are finished first.

    Parameters
    ----------
    path : path
        Folder of the bundle.
    settings : ServiceSettings, optional
    store : path or URL, optional
        Review store to show at /review.
    training : (str, mapping), optional
        Texts that the model was trained on, and how `corpora.load` reads them: the review can then learn. After a
        switch to another generation of the model the service loads it and goes on; connections wait meanwhile.
    """
    settings = settings or ServiceSettings()
    remove_left_behind()
    if settings.workers > 1 and store is not None:
        raise InvalidInputError("A review is served by one process: leave out the workers.")
    with _listen(settings) as listening, _hang_up_as_terminate(), contextlib.ExitStack() as stack:
        host, port = listening.getsockname()[:2]
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}/{'review' if store is not None else ''}"
        common: dict[str, Any] = {
            "access_log": False,
            "log_config": None,
            "server_header": False,
            "proxy_headers": False,
            "ws": "none",
            "limit_concurrency": _connection_limit(),
            "timeout_keep_alive": 10,
            "timeout_graceful_shutdown": _SHUTDOWN_SECONDS,
        }
        if settings.workers > 1:
            os.environ[_VARIABLE] = json.dumps({"path": os.fspath(path), "settings": dataclasses.asdict(settings)})
            os.environ[PARENT_VARIABLE] = str(os.getpid())
            stack.callback(os.environ.pop, _VARIABLE)
            stack.callback(os.environ.pop, PARENT_VARIABLE)
            stack.enter_context(shared_by_workers())
            _log.info("Serving on %s with %d processes (Ctrl-C ends it).", address, settings.workers)
            config = uvicorn.Config(
                f"{__name__}:from_environment",
                factory=True,
                workers=settings.workers,
                timeout_worker_healthcheck=60,
                **common,
            )
            _Workers(config, [listening]).run()
            return
        _log.info("Serving on %s (Ctrl-C ends it).", address)
        while True:
            with contextlib.ExitStack() as opened:
                app = _load(path, settings, store, opened, training)
                app.state.server = uvicorn.Server(uvicorn.Config(app, **common))
                app.state.server.run([listening.dup()])
            if not app.state.is_replaced:
                return


def from_environment() -> FastAPI:
    """Return the application of a worker process."""
    values = json.loads(os.environ[_VARIABLE])
    return _load(values["path"], ServiceSettings(**values["settings"]), None, contextlib.ExitStack())


class _Workers(Multiprocess):
    """Worker processes that end at SIGHUP, as a single process does."""

    def handle_hup(self) -> None:
        """End as at SIGTERM."""
        self.handle_term()


def _load(
    path: str | os.PathLike[str],
    settings: ServiceSettings,
    store: str | os.PathLike[str] | None,
    stack: contextlib.ExitStack,
    training: tuple[str, Mapping[str, Any]] | None = None,
) -> FastAPI:
    """Load a bundle, and open a review, for the rest of the life of this process."""
    # Requests choose their levels, and /v1/model has the smallest one that means something.
    warnings.filterwarnings("ignore", category=CalibrationWarning)
    bundle = load_bundle(Path(path))
    opened = learner = None
    if store is not None:
        from surelabel.review import ReviewStore  # noqa: PLC0415 (SQLAlchemy, which may be missing)
        from surelabel.review.background import Learner  # noqa: PLC0415

        opened = stack.enter_context(ReviewStore(store))
        learner = Learner(path, store, *(training or ()))
    app = create_app(bundle, settings, opened, learner)
    # What is loaded stays: to search it for garbage would stop all clients for 100 ms each time.
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    return app


def _listen(settings: ServiceSettings) -> socket.socket:
    """Open the socket, so that a port in use is reported before anything is loaded."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((settings.host, settings.port))
        listening.listen(512)
    except OSError as error:
        listening.close()
        raise InvalidInputError(
            f"The service cannot listen on {settings.host} port {settings.port}: {error.strerror or error}. "
            "Choose another port, or end the program that uses this one."
        ) from error
    listening.set_inheritable(True)
    return listening


def _connection_limit() -> int:
    """Return how many connections the limit on open files leaves room for; that limit is raised if it can be."""
    try:
        import resource  # noqa: PLC0415 (not on Windows)
    except ImportError:
        return _CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _CONNECTIONS + _OWN_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return _CONNECTIONS
    limit = max(8, soft - _OWN_FILES)
    _log.warning("This process may open %d files, so the service takes %d connections at once.", soft, limit)
    return limit


@contextlib.contextmanager
def _hang_up_as_terminate() -> Iterator[None]:
    """Let SIGHUP end the service as SIGTERM does, unless it is ignored (nohup)."""
    hang_up = getattr(signal, "SIGHUP", None)
    if hang_up is None or signal.getsignal(hang_up) is signal.SIG_IGN:
        yield
        return
    before = signal.signal(hang_up, lambda *_: signal.raise_signal(signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(hang_up, before)
