"""The service as an ASGI application."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from surelabel._version import __version__
from surelabel.service import schemas
from surelabel.service.answering import Answerer
from surelabel.service.documentation import complete_description, statuses
from surelabel.service.errors import ServiceError, as_validation_error, error_response
from surelabel.service.guard import PAGE_POLICY, REPORT_POLICY, Guard, has_token
from surelabel.service.label_studio import add_label_studio
from surelabel.service.metrics import ServiceMetrics
from surelabel.service.pages import GENERIC_TEXTS, static_files
from surelabel.service.routes import Routes
from surelabel.service.settings import ServiceSettings
from surelabel.service.sharing import Shared

if TYPE_CHECKING:
    from surelabel.models import Bundle
    from surelabel.service.reviewing import Reviewing

_log = logging.getLogger(__name__)


def _add_api(routes: Routes, answerer: Answerer) -> None:
    """Add what programs call."""
    words = "Plausible label-sets of texts"
    routes.post("/v1/predict", schemas.PredictRequest, answerer.predict, words, 409, response=schemas.PredictResponse)
    words = "How plausible one label-set is for a text"
    routes.post("/v1/p-value", schemas.PValueRequest, answerer.p_value, words, response=schemas.PValueResponse)
    words = "True label-sets of texts that were answered under an id"
    answered = schemas.OutcomesResponse
    routes.post("/v1/outcomes", schemas.OutcomesRequest, answerer.settle, words, 404, 409, response=answered)
    described: dict[Bundle, bytes] = {}

    @routes.get("/v1/model", "What the service answers with", response_model=schemas.ModelResponse)
    async def get_model(request: Request) -> Response:
        bundle = answerer.bundle
        if bundle not in described:
            described.clear()
            model = schemas.describe_model(bundle, routes.settings, has_review=request.app.state.has_review)
            described[bundle] = model.model_dump_json().encode()
        return Response(described[bundle], media_type="application/json")


def _add_watching(routes: Routes, metrics: ServiceMetrics) -> None:
    """Add what watches the service."""
    app = routes.app

    @app.get("/healthz", responses=statuses(), summary="Whether the process is alive")
    async def healthz() -> schemas.HealthResponse:
        return schemas.HealthResponse(status="alive")

    @app.get("/readyz", responses=statuses(503), summary="Whether it can answer without delay")
    async def readyz(request: Request) -> schemas.HealthResponse:
        if not request.app.state.ready:
            wait = {"Retry-After": "1"}
            raise ServiceError(503, "not_ready", "The service is starting or stopping.", "Try again soon.", None, wait)
        return schemas.HealthResponse(status="ready")

    described = {200: {"content": {"text/plain": {}}, "description": "Prometheus' text format."}}

    @routes.get("/metrics", "Metrics for Prometheus", basic=True, response_class=Response, responses=described)
    async def get_metrics() -> Response:
        return Response(metrics.exposition(), headers={"Content-Type": CONTENT_TYPE_LATEST})


def _add_pages(routes: Routes, report: bytes | None) -> None:
    """Add what a browser shows."""
    app, files = routes.app, static_files()

    @app.get("/static/{name}", include_in_schema=False)
    async def send(name: str, request: Request) -> Response:
        if name not in files:
            raise HTTPException(404)
        file = files[name]
        headers = {"ETag": file.etag, "Cache-Control": "no-cache"}
        if name.endswith(".html"):
            headers["Content-Security-Policy"] = PAGE_POLICY
        if request.headers.get("if-none-match") == file.etag:
            return Response(status_code=304, headers=headers)
        return Response(file.content, media_type=file.media_type, headers=headers)

    @app.get("/", include_in_schema=False)
    async def page(request: Request) -> Response:
        return await send("index.html", request)

    @app.get("/review", include_in_schema=False)
    async def review_page(request: Request) -> Response:
        return await send("review.html" if app.state.has_review else "", request)

    described = {200: {"content": {"text/html": {}}, "description": "The report."}}

    @routes.get(
        "/report", "The evaluation report of the model", 404, basic=True, response_class=Response, responses=described
    )
    async def get_report() -> Response:
        if report is None:
            raise ServiceError(
                404, "no_report", "The bundle has no report.", "Make one with 'surelabel evaluate', and serve again."
            )
        policy = {"Content-Security-Policy": REPORT_POLICY}
        return Response(report, media_type="text/html; charset=utf-8", headers=policy)


def _as_service_error(error: Exception) -> ServiceError:
    """Return an error as a client sees it, without what only the log should have."""
    if isinstance(error, ServiceError):
        return error
    if isinstance(error, RequestValidationError):
        # Of parameters in the address; bodies are read by hand. The first part of a place says where it is.
        return as_validation_error([{**one, "loc": one["loc"][1:]} for one in error.errors()])
    if isinstance(error, HTTPException):
        code, what_to_do = {
            404: ("not_found", "See /openapi.json for what there is."),
            405: ("wrong_method", "See /openapi.json for the methods of each address."),
        }.get(error.status_code, ("refused", "See /openapi.json."))
        message = "There is nothing at this address." if error.status_code == 404 else str(error.detail)
        return ServiceError(error.status_code, code, message, what_to_do, None, dict(error.headers or {}))
    return ServiceError(500, "internal", "The service failed to answer.", "Tell whoever runs it; the log says why.")


async def _report(request: Request, error: Exception) -> Response:
    """Report an error in the one shape that all of them have."""
    return error_response(_as_service_error(error))


async def _hung_up(request: Request, error: Exception) -> Response:
    """Answer a client that is gone: nobody reads this; the status is for the metrics, as nginx counts it."""
    return Response(status_code=499)


def create_app(
    bundle: Bundle,
    settings: ServiceSettings | None = None,
    reviewing: Reviewing | None = None,
    *,
    shared: Shared | None = None,
) -> FastAPI:
    """Make the service of a bundle.

    Parameters
    ----------
    bundle : Bundle
        As `surelabel.load_bundle` gives it.
    settings : ServiceSettings, optional
        Limits, token, batching.
    reviewing : Reviewing, optional
        A review of texts with the same bundle, from `surelabel.service.reviewing`: adds its page at /review.
    shared : Shared, optional
        Watch and outcomes of several processes, see `surelabel.service.workers`; by default the service's own.

    Returns
    -------
    FastAPI
        An ASGI application; `surelabel.service.run` runs it.

    Examples
    --------
    >>> from surelabel import corpora
    >>> from surelabel.models import TrainingSettings, train_bundle
    >>> from surelabel.service import ServiceSettings, create_app
    >>> bundle = train_bundle(corpora.load("synthetic", n_texts=300, n_labels=5), TrainingSettings(compared={}))
    >>> app = create_app(bundle, ServiceSettings(max_texts=16))
    >>> app.title, sorted(path for path in app.openapi()["paths"] if path.startswith("/v1"))
    ('Surelabel', ['/v1/model', '/v1/outcomes', '/v1/p-value', '/v1/predict'])
    """
    settings = settings or ServiceSettings()
    metrics = ServiceMetrics()
    answerer = Answerer(bundle, settings, metrics, shared or Shared.of(bundle, settings))

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        answerer.start()
        warming = asyncio.create_task(_warm_up(app, answerer))
        if shared is not None:  # other processes take the connections until this one is ready
            await warming
        yield
        app.state.ready = False
        metrics.ready.set(0)
        await warming
        await answerer.close()
        if shared is None:
            await asyncio.to_thread(answerer.outcomes.save)

    app = FastAPI(
        title="Surelabel",
        version=__version__,
        description="Which sets of labels a text can plausibly have, with a guarantee.",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=lifespan,
        exception_handlers={
            **dict.fromkeys((ServiceError, RequestValidationError, HTTPException, Exception), _report),
            ClientDisconnect: _hung_up,
        },
    )
    app.state.ready = False
    app.state.has_process = False
    app.state.metrics = metrics
    app.state.has_review = reviewing is not None
    routes = Routes(app, settings)
    _add_api(routes, answerer)
    _add_watching(routes, metrics)
    _add_pages(routes, bundle.report)
    add_label_studio(routes, answerer)
    if reviewing is not None:
        from surelabel.service.review_routes import add_review  # noqa: PLC0415 (SQLAlchemy, which may be missing)

        add_review(routes, reviewing)
        reviewing.on_switch = answerer.switch
    app.add_middleware(Guard, settings=settings, metrics=metrics)
    _add_description(routes, schemas.describe_model(bundle, settings))
    return app


async def _warm_up(app: FastAPI, answerer: Answerer) -> None:
    """Get ready, and say so."""
    try:
        await answerer.warm_up()
    except Exception:
        _log.exception("The first answer failed: the service is alive, but not ready.")
        return
    if app.state.has_process:
        # What is loaded by now stays: collections that went through all of it would stop every client for 100 ms.
        gc.collect()
        gc.freeze()
    app.state.ready = True
    answerer.metrics.ready.set(1)


def _add_description(routes: Routes, model: schemas.ModelResponse) -> None:
    """Add the OpenAPI description, made once; without the token it has neither texts of the corpus nor label names."""
    app, settings = routes.app, routes.settings
    shown: dict[bool, bytes] = {}

    @app.get("/openapi.json", include_in_schema=False)
    async def description(request: Request) -> Response:
        return Response(shown[has_token(request, settings.token)], media_type="application/json")

    # After the last route: FastAPI describes an application anew when it has got another one.
    plain, by_groups = app.openapi(), model.groups is not None
    whole, generic = (
        complete_description(plain, settings, texts, labels, bodies=routes.bodies, by_groups=by_groups)
        for texts, labels in ((model.examples, model.labels), (list(GENERIC_TEXTS), []))
    )
    app.openapi_schema = whole
    shown |= {True: json.dumps(whole).encode(), False: json.dumps(generic).encode()}
