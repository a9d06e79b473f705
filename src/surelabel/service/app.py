"""The service as an ASGI application."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import signal
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware

from surelabel._version import __version__
from surelabel.service import schemas
from surelabel.service.answering import Question, Worker, check_groups, check_labels
from surelabel.service.metrics import CountedRequests, ServiceMetrics
from surelabel.service.pages import add_pages
from surelabel.service.security import SecureRequests
from surelabel.service.settings import ServiceSettings
from surelabel.service.tables import add_tables

if TYPE_CHECKING:
    from surelabel.models import Bundle
    from surelabel.review import ReviewStore
    from surelabel.review.background import Learner

_log = logging.getLogger(__name__)
PARENT_VARIABLE = "SURELABEL_SERVICE_PARENT"


def create_app(
    bundle: Bundle,
    settings: ServiceSettings | None = None,
    store: ReviewStore | None = None,
    learner: Learner | None = None,
) -> FastAPI:
    """Return the service of a bundle as an ASGI application.

    Parameters
    ----------
    bundle : Bundle
    settings : ServiceSettings, optional
    store : ReviewStore, optional
        A review to show at /review.
    learner : Learner, optional
        Learns from the review in the background.
    """
    settings = settings or ServiceSettings()
    metrics = ServiceMetrics()
    worker = Worker(bundle, metrics, watches=settings.watch)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        asyncio.get_running_loop().set_exception_handler(_LoopErrors())
        worker.start()
        starting = asyncio.create_task(_warm_up(app, worker))
        following = asyncio.create_task(_end_with_parent())
        yield
        app.state.ready = False
        for task in (starting, following):
            task.cancel()
        await asyncio.gather(starting, following, return_exceptions=True)
        await worker.close()

    app = FastAPI(
        title="Surelabel",
        version=__version__,
        description="Tags of texts, with a promise about how often they are wrong.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        exception_handlers={HTTPException: _refuse, RequestValidationError: _refuse},
    )
    app.state.ready = app.state.is_replaced = False
    app.state.metrics = metrics
    _add_api(app, worker, settings)
    _add_state(app, metrics)
    add_tables(app, worker)
    add_pages(app, worker, has_review=store is not None)
    if store is not None:
        from surelabel.service.review import add_review  # noqa: PLC0415 (SQLAlchemy, which may be missing)

        add_review(app, bundle, store, learner)
    app.add_middleware(SecureRequests, settings=settings)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=settings.hosts, www_redirect=False)
    app.add_middleware(CountedRequests, metrics=metrics)
    return app


def _add_api(app: FastAPI, worker: Worker, settings: ServiceSettings) -> None:
    """Add what programs call."""
    bundle = worker.bundle

    @app.post("/v1/predict", **schemas.posted({"model": schemas.PredictResponse}))
    async def predict(body: schemas.PredictRequest) -> Response:
        """Answer texts."""
        texts, groups, ids = body.of_each_text()
        check_groups(bundle, groups)
        asked = (body.significance, body.confidence_level, body.assurance, body.top)
        answers = await worker.ask(Question(texts, groups, *asked))
        records = [{"id": identity, **answer.record()} for identity, answer in zip(ids, answers, strict=True)]
        return JSONResponse({"answers": records})

    @app.post("/v1/p-value", **schemas.posted())
    async def p_value(body: schemas.PValueRequest) -> Response:
        """Return the p-value of a label-set for a text."""
        check_labels(bundle, body.labels)
        check_groups(bundle, body.groups)
        chosen = sorted(set(body.labels))
        found = await worker.run(lambda: bundle.predict_p([body.text], [frozenset(chosen)], groups=body.groups))
        return JSONResponse({"labels": chosen, "p_value": float(found[0])})

    @app.post("/v1/words", **schemas.posted())
    async def words(body: schemas.WordsRequest) -> Response:
        """Return the words of a text that speak for a label."""
        check_labels(bundle, [body.label], "label")
        explanation = await worker.run(lambda: bundle.explain(body.text, body.label))
        strongest = sorted(explanation.speaking_for(12), key=lambda word: word.start)
        found = [{"start": word.start, "end": word.end, "weight": word.weight} for word in strongest]
        return JSONResponse({"label": body.label, "words": found})

    @app.get("/v1/model", **schemas.described())
    def model() -> Response:
        """Describe the model and the limits of this service."""
        return JSONResponse(describe_model(bundle, settings))


def _add_state(app: FastAPI, metrics: ServiceMetrics) -> None:
    """Add what watches the service."""

    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        """Return 200 while the process is alive."""
        return {"status": "alive"}

    @app.get("/readyz", responses={503: {"model": schemas.ErrorResponse}})
    async def readyz(request: Request) -> dict[str, str]:
        """Return 200 once texts are answered without delay."""
        if not request.app.state.ready:
            raise schemas.busy("The service is starting or stopping.")
        return {"status": "ready"}

    text: dict[int | str, Any] = {200: {"content": {"text/plain": {}}, "description": "Prometheus' text format."}}

    @app.get("/metrics", response_class=Response, **schemas.described(responses=text))
    def exposition() -> Response:
        """Return the metrics for Prometheus."""
        return Response(metrics.exposition(), headers={"Content-Type": CONTENT_TYPE_LATEST})


def describe_model(bundle: Bundle, settings: ServiceSettings) -> dict[str, Any]:
    """Return what the service answers with, and its limits."""
    info, groups = bundle.info, bundle.groups
    n_calibration = bundle.predictor.calibration_.n_texts
    return {
        "version": __version__,
        "name": info.name,
        "classifier": info.classifier,
        "measure": info.measure,
        "corpus": info.corpus,
        "labels": list(bundle.label_names),
        "n_calibration": n_calibration,
        "smallest_p_value": 1 / (n_calibration + 1),
        "group_column": info.group_column,
        "groups": None if groups is None else list(groups),
        "levels": dict(info.levels),
        "verdict": list(info.verdict),
        "notes": list(info.notes),
        "limits": {
            "max_body_bytes": settings.max_body_bytes,
            "max_texts": schemas.MAX_TEXTS,
            "max_text_chars": schemas.MAX_TEXT_CHARS,
            "max_top": schemas.MAX_TOP,
        },
    }


async def _refuse(_: Request, error: Exception) -> Response:
    """Return any error in the one shape of errors."""
    return schemas.as_service_error(error).response()


async def _warm_up(app: FastAPI, worker: Worker) -> None:
    """Answer a text of no client: what is loaded or compiled on first use is then there."""
    groups = worker.bundle.groups
    for level in (None, "0.05"):
        try:
            await worker.ask(Question(["warm up"], groups and groups[:1], level))
        except Exception:
            _log.exception("The first answer failed: the service is alive, but not ready.")
            return
    app.state.ready = True


async def _end_with_parent() -> None:
    """End this worker process when the process that started it is gone, even if it was killed."""
    parent = os.environ.get(PARENT_VARIABLE)
    while parent is not None:
        if os.getppid() != int(parent):
            signal.raise_signal(signal.SIGTERM)
            return
        await asyncio.sleep(1)


class _LoopErrors:
    """Log once a minute, in one line, that no more connections can be opened; log other errors as usual.

    asyncio reports that for every connection that is waiting, and again when it starts to listen on a socket that was
    closed meanwhile.
    """

    def __init__(self) -> None:
        self._silent_until = 0.0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log an error of an event loop."""
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS):
            if loop.time() >= self._silent_until:
                self._silent_until = loop.time() + 60
                _log.warning("No more connections can be opened: %s.", error.strerror)
        elif not (isinstance(error, ValueError) and "_start_serving" in str(context.get("handle"))):
            loop.default_exception_handler(context)
