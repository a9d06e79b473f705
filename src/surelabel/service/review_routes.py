"""The addresses of a review: under /v1/review for its page and for programs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from surelabel.exceptions import InvalidInputError, ReviewConflictError
from surelabel.review.databases import DatabaseError
from surelabel.service.bodies import read_body
from surelabel.service.documentation import body_of, statuses
from surelabel.service.errors import ServiceError
from surelabel.service.guard import check_token
from surelabel.service.reviewing import MOST_LEASED, Reviewing
from surelabel.service.settings import ServiceSettings

__all__ = ["REVIEW_BODIES", "add_review"]

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


# What can be posted: its body, what it does, and how.
_POSTS: dict[str, tuple[type[BaseModel] | None, str, Callable[[Reviewing, Any], Any]]] = {
    "lease": (
        LeaseRequest,
        "Texts of a queue for a reviewer",
        lambda reviewing, body: {"texts": reviewing.lease(body.reviewer, body.queue, body.n)},
    ),
    "renew": (
        ReviewerRequest,
        "Keep a reviewer's texts for longer",
        lambda reviewing, body: {"leased": reviewing.store.renew(body.reviewer)},
    ),
    "decisions": (
        DecisionRequest,
        "Save a decision; sending it again changes nothing",
        lambda reviewing, body: reviewing.decide(
            body.key, body.number, body.reviewer, body.action, body.labels, body.seconds
        ),
    ),
    "undo": (
        UndoRequest,
        "Take back the last decision of a reviewer",
        lambda reviewing, body: reviewing.undo(body.key, body.reviewer),
    ),
    "calibration": (
        None,
        "Make a new model from the blind check, without using it yet",
        lambda reviewing, _: reviewing.update_calibration(),
    ),
    "switch": (
        SwitchRequest,
        "Use the new model from now on",
        lambda reviewing, body: reviewing.switch(body.model),
    ),
}
REVIEW_BODIES = tuple(body for body, _, _ in _POSTS.values() if body is not None)


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
    for name, (body, words_for_it, work) in _POSTS.items():
        app.add_api_route(
            f"/v1/review/{name}",
            _poster(body, work, reviewing, settings),
            methods=["POST"],
            responses=statuses(400, 401, 408, 409, 413, 415, 422),
            openapi_extra=None if body is None else body_of(body),
            summary=words_for_it,
            operation_id=f"review_{name}",
        )

    @app.get("/v1/review", responses=statuses(401), summary="What waits in a review, and what its blind check says")
    async def state(request: Request) -> Response:
        check_token(request, settings.token)
        return JSONResponse(await _in_thread(reviewing.state))

    @app.get(
        "/v1/review/words",
        responses=statuses(401, 409, 422),
        summary="Words of a text that speak for a label",
    )
    async def words(request: Request, number: int, label: str) -> Response:
        check_token(request, settings.token)
        return JSONResponse(await _in_thread(reviewing.words, number, label))

    @app.get("/v1/review/summary", responses=statuses(401), summary="What the work was")
    async def summary(request: Request) -> Response:
        check_token(request, settings.token)
        return JSONResponse(await _in_thread(reviewing.summary))

    @app.get("/v1/review/export", responses=statuses(401, 422), summary="The decisions as a file")
    async def export(request: Request, kind: str = "csv", separator: str = ",") -> Response:
        check_token(request, settings.token, basic=True)
        content = await _in_thread(reviewing.export, kind, separator)
        headers = {"Content-Disposition": f'attachment; filename="reviewed.{kind}"'}
        return Response(content, media_type=_TYPES[kind], headers=headers)


def _poster(
    model: type[BaseModel] | None,
    work: Callable[[Reviewing, Any], Any],
    reviewing: Reviewing,
    settings: ServiceSettings,
) -> Callable[[Request], Awaitable[Response]]:
    """Return what answers one kind of posted request."""

    async def answer(request: Request) -> Response:
        check_token(request, settings.token)
        body = None if model is None else await read_body(request, model, settings)
        return JSONResponse(await _in_thread(work, reviewing, body))

    return answer
