"""Metrics in Prometheus' text format; with several workers, those of all of them. And temporary folders."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from surelabel.answers import Answer

_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
_SCRATCH = "surelabel-service-"
_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
_TENTHS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_COUNTS = (1, 2, 4, 8, 16, 32, 64)


class ServiceMetrics:
    """The metrics of one service."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        of: dict[str, Any] = {"registry": self.registry}
        self.requests = Counter("surelabel_requests", "Requests.", ("endpoint", "status"), **of)
        self.seconds = Histogram(
            "surelabel_request_seconds", "Time of requests.", ("endpoint",), buckets=_SECONDS, **of
        )
        self.texts = Counter("surelabel_texts", "Texts answered, by decision.", ("decision",), **of)
        self.credibility = Histogram("surelabel_credibility", "Credibility of best guesses.", buckets=_TENTHS, **of)
        self.batch_texts = Histogram("surelabel_batch_texts", "Texts of batches.", buckets=_COUNTS, **of)
        self.batch_seconds = Histogram("surelabel_batch_seconds", "Time of batches.", buckets=_SECONDS, **of)
        of["multiprocess_mode"] = "max"
        self.watch_alarm = Gauge("surelabel_watch_alarm", "1 once texts have drifted.", **of)
        self.watch_capital = Gauge("surelabel_watch_log10_capital", "Evidence of drift; 2 raises the alarm.", **of)

    def saw_answers(self, answers: Iterable[Answer]) -> None:
        """Count answers."""
        for answer in answers:
            self.texts.labels(answer.decision or "none").inc()
            self.credibility.observe(answer.credibility)

    def exposition(self) -> bytes:
        """Return the metrics, of all workers if there are several."""
        if _FOLDER not in os.environ:
            return generate_latest(self.registry)
        everyone = CollectorRegistry()
        MultiProcessCollector(everyone)  # type: ignore[no-untyped-call]
        return generate_latest(everyone)


class CountedRequests:
    """ASGI middleware that counts requests and their time."""

    def __init__(self, app: ASGIApp, metrics: ServiceMetrics) -> None:
        self.app = app
        self.metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and count it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500

        async def send_counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, send_counted)
        finally:
            endpoint = getattr(scope.get("route"), "path", "other")
            self.metrics.requests.labels(endpoint, str(status)).inc()
            self.metrics.seconds.labels(endpoint).observe(time.perf_counter() - start)


@contextlib.contextmanager
def shared_by_workers() -> Iterator[None]:
    """Keep the metrics of several processes in a temporary folder."""
    with scratch_folder() as folder:
        os.environ[_FOLDER] = folder
        try:
            yield
        finally:
            del os.environ[_FOLDER]


def scratch_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a temporary folder whose name has the number of this process."""
    return tempfile.TemporaryDirectory(prefix=f"{_SCRATCH}{os.getpid()}-")


def remove_left_behind() -> None:
    """Remove the temporary folders of services that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_SCRATCH}*"):
        process = folder.name.removeprefix(_SCRATCH).partition("-")[0]
        try:
            os.kill(int(process), 0)  # raises unless the process exists
        except ProcessLookupError:
            shutil.rmtree(folder, ignore_errors=True)
        except (OSError, ValueError):  # it belongs to somebody else
            continue
