"""The addresses of a review: under /v1/review for its page and for programs."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Annotated, Any, Literal

from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field

from surelabel.exceptions import InvalidInputError, ReviewConflictError
from surelabel.review.databases import DatabaseError
from surelabel.service.errors import ServiceError
from surelabel.service.reviewing import MOST_LEASED, Reviewing
from surelabel.service.routes import Routes
from surelabel.service.schemas import StrictRequest

__all__ = ["add_review"]

Name = Annotated[str, Field(min_length=1, max_length=200)]
Queue = Literal["choose", "read", "check", "filed"]
_TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
}


class ReviewerRequest(StrictRequest):
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


class SwitchRequest(StrictRequest):
    """Use the new model with this fingerprint."""

    model: Name


# What can be posted: its body, the method that takes the fields of the body, and what it does.
_POSTS: dict[str, tuple[type[BaseModel] | None, Callable[..., Any], str]] = {
    "lease": (LeaseRequest, Reviewing.lease, "Texts of a queue for a reviewer"),
    "renew": (ReviewerRequest, Reviewing.renew, "Keep a reviewer's texts for longer"),
    "decisions": (DecisionRequest, Reviewing.decide, "Save a decision; sending it again changes nothing"),
    "undo": (UndoRequest, Reviewing.undo, "Take back the last decision of a reviewer"),
    "calibration": (None, Reviewing.update_calibration, "Make a new model from the blind check, without using it yet"),
    "switch": (SwitchRequest, Reviewing.switch, "Use the new model from now on"),
}


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


def add_review(routes: Routes, reviewing: Reviewing) -> None:
    """Add the addresses of a review."""
    for name, (body, method, summary) in _POSTS.items():
        work = functools.partial(_in_thread, lambda body, method=method: method(reviewing, **dict(body or ())))
        routes.post(f"/v1/review/{name}", body, work, summary, 409, operation_id=f"review_{name}")

    @routes.get("/v1/review", "What waits in a review, and what its blind check says")
    async def state() -> Response:
        return JSONResponse(await _in_thread(reviewing.state))

    @routes.get("/v1/review/words", "Words of a text that speak for a label", 409, 422)
    async def words(number: int, label: str) -> Response:
        return JSONResponse(await _in_thread(reviewing.words, number, label))

    @routes.get("/v1/review/summary", "Figures of the work so far")
    async def summary_of_work() -> Response:
        return JSONResponse(await _in_thread(reviewing.summary))

    @routes.get("/v1/review/export", "The decisions as a file", 422, basic=True)
    async def export(kind: str = "csv", separator: str = ",") -> Response:
        content = await _in_thread(reviewing.export, kind, separator)
        headers = {"Content-Disposition": f'attachment; filename="reviewed.{kind}"'}
        return Response(content, media_type=_TYPES[kind], headers=headers)
