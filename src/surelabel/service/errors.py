"""Errors as clients see them, in one shape: what is wrong and what to do."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from fastapi.responses import Response

STATUS_TEXTS = {
    400: "The body is not JSON.",
    401: "The token is missing or wrong.",
    404: "There is nothing at this address.",
    405: "The address does not take this method.",
    408: "The body did not come in time.",
    409: "The id is in use or settled already; in a review, somebody else has decided or holds the text.",
    413: "The body is larger than the service takes.",
    415: "The body is of a type other than application/json.",
    421: "The request is addressed to a host name that the service does not answer for.",
    422: "The body is JSON, but not a request that can be answered.",
    500: "The service failed. Its log says why.",
    503: "The service is busy, starting or stopping: come back after Retry-After seconds.",
}
"""What every status that the service answers with means."""


@dataclasses.dataclass(eq=False)
class ServiceError(Exception):
    """An answer that is not a success: a `code` for programs, two sentences for people, the `field` that is wrong."""

    status: int
    code: str
    message: str
    what_to_do: str
    field: str | None = None
    headers: dict[str, str] | None = None


def error_response(error: ServiceError) -> Response:
    """Return the response that reports an error."""
    details = {"code": error.code, "message": error.message, "what_to_do": error.what_to_do, "field": error.field}
    # ASCII: a message may quote anything, even half a surrogate pair.
    content = json.dumps({"error": details}).encode("ascii")
    return Response(content, error.status, error.headers, media_type="application/json")


def _place(location: tuple[Any, ...]) -> str:
    """Write where in the body something is, like texts[3]; names of types that pydantic adds are left out."""
    indices = "".join(f"[{part}]" for part in location[1:] if isinstance(part, int))
    return f"{location[0]}{indices}"[:200] if location else ""


def as_validation_error(details: list[Any]) -> ServiceError:
    """Turn pydantic's list of what is wrong into one error about the first of it."""
    first = details[0]
    place = _place(first["loc"])
    others = sorted({_place(one["loc"]) for one in details} - {place})
    more = f" Wrong too: {', '.join(others)[:200]}." if others else ""
    message = str(first["msg"]).removeprefix("Value error, ")
    return ServiceError(
        422,
        "invalid_request",
        f"{place}: {message}.{more}" if place else f"{message[:1].upper()}{message[1:]}.{more}",
        "Fix the request; see /openapi.json.",
        field=place or None,
    )
