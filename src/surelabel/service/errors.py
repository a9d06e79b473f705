"""Errors of requests, all in one shape."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from surelabel.exceptions import CorpusError, InvalidInputError, ReviewConflictError, SearchLimitError

_log = logging.getLogger(__name__)
_KNOWN = {
    400: ("not_json", "The body is not JSON.", "Send JSON in UTF-8."),
    404: ("not_found", "There is nothing at this address.", "GET /openapi.json lists the addresses."),
    405: ("wrong_method", "This address has other methods.", "GET /openapi.json lists the methods of each address."),
}
BUSY = 503


class ServiceError(HTTPException):
    """A request that is refused, with what to do about it."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        what_to_do: str,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, message, headers)
        self.content = {"code": code, "message": message, "what_to_do": what_to_do, "field": field}

    def response(self) -> JSONResponse:
        """Return the error as a client gets it."""
        return JSONResponse({"error": self.content}, self.status_code, self.headers)


def invalid(field: str | None, message: str, what_to_do: str = "Fix the request; see /openapi.json.") -> ServiceError:
    """Build the error of a request with a wrong value."""
    return ServiceError(422, "invalid_request", message, what_to_do, field)


def unknown(field: str, message: str, what_to_do: str) -> ServiceError:
    """Build the error of a name that the model does not have."""
    return ServiceError(404, "unknown_name", message, what_to_do, field)


def do_not_fit(field: str, message: str, what_to_do: str) -> ServiceError:
    """Build the error of values that do not go together, or do not go with the model."""
    return ServiceError(409, "do_not_fit", message, what_to_do, field)


def busy(message: str, seconds: int = 1) -> ServiceError:
    """Build the error that asks a client to come back."""
    headers = {"Retry-After": str(seconds)}
    return ServiceError(BUSY, "busy", message, f"Try again in {seconds} s.", headers=headers)


def as_service_error(error: Exception) -> ServiceError:
    """Return any error as a client may see it; what only the log should have is logged."""
    match error:
        case ServiceError():
            return error
        case RequestValidationError():
            return _of_first(error.errors())
        case HTTPException(status_code=status):
            default = ("refused", str(error.detail), "GET /openapi.json describes the service.")
            return ServiceError(status, *_KNOWN.get(status, default), headers=error.headers)
        case ReviewConflictError():
            return ServiceError(409, "conflict", str(error), "Load the queue again.")
        case InvalidInputError() | CorpusError() | SearchLimitError():
            return invalid(None, str(error))
    _log.error("A request failed.", exc_info=error)
    return ServiceError(500, "internal", "The service failed to answer.", "Ask who runs it: the log has the reason.")


def _of_first(problems: Sequence[Mapping[str, object]]) -> ServiceError:
    """Return the first of several problems of a body; its field is written like texts[1]."""
    first = problems[0]
    if first["type"] == "json_invalid":
        return ServiceError(400, *_KNOWN[400])
    location = first["loc"]
    assert isinstance(location, tuple)
    name = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in _without_unions(location[1:]))
    field = name.lstrip(".")[:200] or None
    message = str(first["msg"]).removeprefix("Value error, ")
    return invalid(field, f"{field}: {message}." if field else f"{message}.")


def _without_unions(location: Sequence[int | str]) -> list[int | str]:
    """Leave out what pydantic adds for members of a union: only the first name and the numbers after it stay."""
    return [part for position, part in enumerate(location) if position == 0 or isinstance(part, int)]
