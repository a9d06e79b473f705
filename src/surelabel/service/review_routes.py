"""The addresses of a review: under /v1/review for its page and for programs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from surelabel.exceptions import InvalidInputError, ReviewConflictError
from surelabel.review.databases import DatabaseError
from surelabel.service.bodies import read_body
from surelabel.service.errors import ServiceError
from surelabel.service.guard import check_token
from surelabel.service.reviewing import MOST_LEASED, Reviewing
from surelabel.service.settings import ServiceSettings

__all__ = ["add_review"]

Name = Annotated[str, Field(min_length=1, max_length=200)]
Queue = Literal["choose", "read", "check", "filed"]
_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class ReviewerRequest(_Request):
    """Who asks."""

    reviewer: Name


class LeaseRequest(ReviewerRequest):
    """A reviewer asks for texts of a queue."""

    queue: Queue
    n: int = Field(10, ge=1, le=MOST_LEASED)


class DecisionRequest(ReviewerRequest):
    """A decision about a text; `key` is new for each decision, and the same when it is sent again."""

    key: Name
    number: int = Field(ge=0, lt=2**63)
    action: Literal["accept", "pick", "edit", "none", "skip"]
    labels: list[str] | None = Field(None, max_length=10_000)
    seconds: float | None = Field(None, ge=0, le=10**7, allow_inf_nan=False)


class UndoRequest(ReviewerRequest):
    """Take back the last decision of a reviewer."""

    key: Name


class SwitchRequest(_Request):
    """Use the new model with this fingerprint."""

    model: Name


async def _in_thread(work: Callable[..., Any], *arguments: Any) -> Any:
    """Run what waits for the database or for the model outside the event loop; name what prevents it."""
    try:
        return await asyncio.to_thread(work, *arguments)
    except ReviewConflictError as error:
        raise ServiceError(409, "conflict", str(error), "Reload what waits.") from error
    except InvalidInputError as error:
        raise ServiceError(422, "invalid_request", str(error), "Fix the request.") from error
    except DatabaseError as error:
        raise ServiceError(
            503,
            "store_unavailable",
            "The review store cannot be reached.",
            "Send the same request again; nothing is saved twice.",
            headers={"Retry-After": "2"},
        ) from error


def add_review(app: FastAPI, reviewing: Reviewing, settings: ServiceSettings) -> None:
    """Add the addresses of a review."""

    @app.get("/v1/review", include_in_schema=False)
    async def state(request: Request) -> Response:
        check_token(request, settings.token)
        return JSONResponse(await _in_thread(reviewing.state))

    @app.post("/v1/review/lease", include_in_schema=False)
    async def lease(request: Request) -> Response:
        check_token(request, settings.token)
        body = await read_body(request, LeaseRequest, settings)
        return JSONResponse({"texts": await _in_thread(reviewing.lease, body.reviewer, body.queue, body.n)})

    @app.post("/v1/review/renew", include_in_schema=False)
    async def renew(request: Request) -> Response:
        check_token(request, settings.token)
        body = await read_body(request, ReviewerRequest, settings)
        return JSONResponse({"leased": await _in_thread(reviewing.store.renew, body.reviewer)})

    @app.post("/v1/review/decisions", include_in_schema=False)
    async def decide(request: Request) -> Response:
        check_token(request, settings.token)
        body = await read_body(request, DecisionRequest, settings)
        values = (body.key, body.number, body.reviewer, body.action, body.labels, body.seconds)
        return JSONResponse(await _in_thread(reviewing.decide, *values))

    @app.post("/v1/review/undo", include_in_schema=False)
    async def undo(request: Request) -> Response:
        check_token(request, settings.token)
        body = await read_body(request, UndoRequest, settings)
        return JSONResponse(await _in_thread(reviewing.undo, body.key, body.reviewer))

    @app.get("/v1/review/words", include_in_schema=False)
    async def words(request: Request, number: int, label: str) -> Response:
        check_token(request, settings.token)
        return JSONResponse(await _in_thread(reviewing.words, number, label))

    _add_closing(app, reviewing, settings)


def _add_closing(app: FastAPI, reviewing: Reviewing, settings: ServiceSettings) -> None:
    """Add the summary, the export, and the way to a new calibration."""

    @app.get("/v1/review/summary", include_in_schema=False)
    async def summary(request: Request) -> Response:
        check_token(request, settings.token)
        return JSONResponse(await _in_thread(reviewing.summary))

    @app.get("/v1/review/export", include_in_schema=False)
    async def export(request: Request, kind: str = "csv", separator: str = ",") -> Response:
        check_token(request, settings.token, basic=True)
        content = await _in_thread(reviewing.export, kind, separator)
        headers = {"Content-Disposition": f'attachment; filename="reviewed.{kind}"'}
        return Response(content, media_type=_TYPES[kind], headers=headers)

    @app.post("/v1/review/calibration", include_in_schema=False)
    async def calibration(request: Request) -> Response:
        check_token(request, settings.token)
        return JSONResponse(await _in_thread(reviewing.update_calibration))

    @app.post("/v1/review/switch", include_in_schema=False)
    async def switch(request: Request) -> Response:
        check_token(request, settings.token)
        body = await read_body(request, SwitchRequest, settings)
        return JSONResponse(await _in_thread(reviewing.switch, body.model))
