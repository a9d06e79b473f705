"""How addresses are added to the service: token, JSON body up to a limit, description."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from fastapi import Depends, FastAPI, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from surelabel.service.documentation import body_of, statuses
from surelabel.service.errors import ServiceError, as_validation_error
from surelabel.service.guard import check_token
from surelabel.service.settings import ServiceSettings

_Handler = TypeVar("_Handler", bound=Callable[..., Any])
_Body = TypeVar("_Body", bound=BaseModel)
# Larger bodies are parsed in a thread.
_SMALL_BODY = 2**16
# Times the limit on bodies that are read, but not kept.
_READ_ON = 4


class Routes:
    """Adds addresses that need the token to an application, and keeps what bodies they take."""

    def __init__(self, app: FastAPI, settings: ServiceSettings) -> None:
        self.app = app
        self.settings = settings
        self.bodies: list[type[BaseModel]] = []

    def post(
        self,
        path: str,
        body: type[BaseModel] | None,
        work: Callable[[Any], Awaitable[Any]],
        summary: str,
        *errors: int,
        basic: bool = False,
        response: type[BaseModel] | None = None,
        operation_id: str | None = None,
    ) -> None:
        """Add an address that takes a body; `work` turns it into JSON, as bytes or as plain values."""

        async def answer(request: Request) -> Response:
            check_token(request, self.settings.token, basic=basic)
            content = await work(None if body is None else await _read_body(request, body, self.settings))
            is_written = isinstance(content, bytes)
            return Response(content, media_type="application/json") if is_written else JSONResponse(content)

        if body is not None:
            self.bodies.append(body)
        self.app.add_api_route(
            path,
            answer,
            methods=["POST"],
            response_model=response,
            responses=statuses(400, 401, 408, 413, 415, 422, *errors),
            openapi_extra=None if body is None else body_of(body),
            summary=summary,
            name=path.rpartition("/")[2],
            operation_id=operation_id,
        )

    def get(
        self, path: str, summary: str, *errors: int, basic: bool = False, **described: Any
    ) -> Callable[[_Handler], _Handler]:
        """Return the decorator of what answers at an address, after the token; with `basic`, see `check_token`."""

        async def check(request: Request) -> None:
            check_token(request, self.settings.token, basic=basic)

        responses = statuses(401, *errors) | described.pop("responses", {})
        return self.app.get(path, summary=summary, dependencies=[Depends(check)], responses=responses, **described)


async def _read_limited(request: Request, limit: int) -> bytes:
    """Read a body that may have `limit` bytes, whatever its head claims.

    A larger one is read on for a while, without being kept: most clients read an answer only after they have sent all,
    and would see a broken connection instead of the error.
    """
    # The rest of the body is not read, so nothing can follow on this connection.
    headers, words = {"Connection": "close"}, f"A body can have {limit:,} bytes."
    too_large = ServiceError(413, "body_too_large", words, "Send fewer or shorter texts.", headers=headers)
    most = _READ_ON * limit
    claimed = request.headers.get("content-length", "")
    if claimed.isdigit() and int(claimed) > most:
        raise too_large
    body = bytearray()
    n_bytes = 0
    async for chunk in request.stream():
        n_bytes += len(chunk)
        if n_bytes > most:
            break
        if n_bytes <= limit:
            body += chunk
    if n_bytes > limit:
        raise too_large
    return bytes(body)


async def _read_body(request: Request, model: type[_Body], settings: ServiceSettings) -> _Body:
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
