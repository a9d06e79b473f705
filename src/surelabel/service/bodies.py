"""Bodies of requests: read up to a limit, parsed, checked."""

from __future__ import annotations

import asyncio
import itertools
from typing import TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from surelabel.service.errors import ServiceError, as_validation_error
from surelabel.service.settings import ServiceSettings

__all__ = ["read_body"]

_Body = TypeVar("_Body", bound=BaseModel)
# Larger bodies are parsed in a thread.
_SMALL_BODY = 2**16
# Times the limit on bodies that are read, but not kept.
_READ_ON = 4


def _too_large(limit: int) -> ServiceError:
    """Build the error of a body that is over the limit."""
    return ServiceError(
        413,
        "body_too_large",
        f"A body can have {limit:,} bytes.",
        "Send fewer or shorter texts.",
        # The rest of the body is not read, so nothing can follow on this connection.
        headers={"Connection": "close"},
    )


async def _read_limited(request: Request, limit: int) -> bytes:
    """Read a body that may have `limit` bytes, whatever its head claims.

    A larger one is read on for a while, without being kept: most clients read an answer only after they have sent all,
    and would see a broken connection instead of the error.
    """
    most = _READ_ON * limit
    claimed = request.headers.get("content-length", "")
    if claimed.isdigit() and int(claimed) > most:
        raise _too_large(limit)
    body = bytearray()
    n_bytes = 0
    async for chunk in request.stream():
        n_bytes += len(chunk)
        if n_bytes > most:
            break
        if n_bytes <= limit:
            body += chunk
    if n_bytes > limit:
        raise _too_large(limit)
    return bytes(body)


async def read_body(request: Request, model: type[_Body], settings: ServiceSettings) -> _Body:
    """Read and check a JSON body."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise ServiceError(
            415,
            "not_json",
            f"The body must be application/json. Got {media_type[:80] or 'no type'!r}.",
            "Send the header 'Content-Type: application/json'.",
        )
    try:
        async with asyncio.timeout(settings.body_timeout):
            body = await _read_limited(request, settings.max_body_bytes)
    except TimeoutError:
        raise ServiceError(
            408,
            "body_timeout",
            f"The body did not come within {settings.body_timeout:g} s.",
            "Send it again over a faster connection.",
            headers={"Connection": "close"},
        ) from None
    if len(body) <= _SMALL_BODY:
        return _checked_body(body, model)
    return await asyncio.to_thread(_checked_body, body, model)


def _checked_body(body: bytes, model: type[_Body]) -> _Body:
    """Parse and check a JSON body; of many things that are wrong only the first few are looked at."""
    try:
        values = from_json(body)
    except ValueError as error:
        raise ServiceError(400, "not_json", f"The body is not JSON: {error}.", "Send JSON in UTF-8.") from None
    if isinstance(values, dict) and model.model_config.get("extra") == "forbid":
        unknown = list(itertools.islice((name for name in values if name not in model.model_fields), 3))
        if unknown:
            raise ServiceError(
                422,
                "invalid_request",
                f"A request has no field {', '.join(repr(name[:80]) for name in unknown)}.",
                f"Fix the request; its fields are {', '.join(model.model_fields)}.",
                field=unknown[0][:200],
            )
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise as_validation_error(error.errors(include_url=False, include_input=False)) from None
