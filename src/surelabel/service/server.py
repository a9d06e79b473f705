"""Running the service until it is told to stop."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn

from surelabel.exceptions import CalibrationWarning, InvalidInputError
from surelabel.models import load_bundle
from surelabel.service.app import create_app
from surelabel.service.connections import limited_connections, raise_file_limit
from surelabel.service.settings import ReviewPlan, ServiceSettings
from surelabel.service.workers import HEALTH_TIMEOUT, run_workers

if TYPE_CHECKING:
    from surelabel.models import Bundle
    from surelabel.service.reviewing import Reviewing

_log = logging.getLogger(__name__)
TOKEN_VARIABLE = "SURELABEL_TOKEN"  # noqa: S105 (the variable's name)
_SHORT_TOKEN = 16


def _listen(settings: ServiceSettings) -> socket.socket:
    """Open the socket, so that a port in use is reported before anything is loaded."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # The protocol is named for asyncio to see that it is TCP: it then sends small answers without delay.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((settings.host, settings.port))
        listening.listen(512)
    except OSError as error:
        listening.close()
        raise InvalidInputError(
            f"The service cannot listen on {settings.host} port {settings.port}: {error.strerror or error}. "
            "Choose another port, or end what uses this one."
        ) from error
    return listening


def _address(listening: socket.socket) -> str:
    """Return the address that a browser can open."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def _prepared(
    plan: ReviewPlan, bundle: Bundle, bundle_path: str | os.PathLike[str], opened: contextlib.ExitStack
) -> Reviewing:
    """Open a review, and bring its texts into their queues."""
    from surelabel.review import ReviewStore  # noqa: PLC0415 (SQLAlchemy, which may be missing)
    from surelabel.service.reviewing import Reviewing  # noqa: PLC0415

    store = opened.enter_context(ReviewStore(plan.store, lease_seconds=plan.lease_seconds))
    folder = Path(bundle_path)
    used = store.note("model")
    if used is not None and Path(used).resolve() != folder.resolve():
        _log.warning("The review was last done with the model %s; now it is %s.", used, folder)
        store.set_note("model", str(folder))
    reviewing = Reviewing(store, bundle, folder, plan.incoming)
    n_new = reviewing.take_in(plan.texts if plan.texts is not None else ())
    counts = ", ".join(f"{queue} {count.waiting:,}" for queue, count in store.counts().items())
    _log.info("%d new texts are in their queues. Waiting: %s.", n_new, counts)
    return reviewing


def run(
    bundle_path: str | os.PathLike[str],
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    *,
    allow_unprotected: bool = False,
    review: ReviewPlan | None = None,
    **limits: Any,
) -> None:
    """Serve a bundle until SIGINT or SIGTERM; what is running then is finished first.

    Parameters
    ----------
    bundle_path : path
        Folder of a bundle.
    host, port
        Where to listen; port 0 takes a free one. The log says the address.
    token : str, optional
        Bearer token; by default that of the environment variable SURELABEL_TOKEN.
    allow_unprotected : bool
        Serve other machines without a token.
    review : ReviewPlan, optional
        A review to show at /review.
    **limits
        Other fields of `ServiceSettings`.

    Examples
    --------
    It serves until Ctrl-C, so this example shows only what it refuses:

    >>> from surelabel.service import run
    >>> run("models/tickets", host="0.0.0.0")
    Traceback (most recent call last):
        ...
    surelabel.exceptions.InvalidInputError: Other machines may reach '0.0.0.0', so the service needs a ...
    """
    token = token or os.environ.get(TOKEN_VARIABLE) or None
    settings = ServiceSettings(host=host, port=port, token=token, allow_unprotected=allow_unprotected, **limits)
    if review is not None and settings.workers > 1:
        raise InvalidInputError(
            f"A review is served by one process. Got 'workers' {settings.workers}: serve the review without them, or "
            "start a second service for it."
        )
    if token is not None and len(token) < _SHORT_TOKEN:
        _log.warning("The token has fewer than %d characters: it can be guessed.", _SHORT_TOKEN)
    # A client chooses the level, and /v1/model says whether there are enough calibration texts for it.
    warnings.filterwarnings("ignore", category=CalibrationWarning)
    raise_file_limit(settings.max_connections)
    with _listen(settings) as listening, contextlib.ExitStack() as opened:
        if settings.workers > 1:
            _log.info("Serving on %s with %d processes (Ctrl-C ends it).", _address(listening), settings.workers)
            run_workers(bundle_path, settings, _config(settings), listening)
            return
        bundle = load_bundle(bundle_path)
        reviewing = None if review is None else _prepared(review, bundle, bundle_path, opened)
        app = create_app(bundle, settings, reviewing)
        app.state.has_process = True
        _log.info("Serving on %s%s (Ctrl-C ends it).", _address(listening), "" if review is None else "review")
        uvicorn.Server(_config(settings, app)).run(sockets=[listening])


def _config(settings: ServiceSettings, app: Any = None) -> uvicorn.Config:
    """Return what uvicorn needs to know; without an application, one that makes it in several processes."""
    return uvicorn.Config(
        app,
        factory=app is None,
        workers=settings.workers,
        http=limited_connections(settings),
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=int(settings.timeout) + 1,
        timeout_worker_healthcheck=HEALTH_TIMEOUT,
        ws="none",
    )
