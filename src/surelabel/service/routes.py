"""How addresses are added to the service: token, JSON body, description."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from fastapi import Depends, FastAPI, Request
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel

from surelabel.service.bodies import read_body
from surelabel.service.documentation import body_of, statuses
from surelabel.service.guard import check_token
from surelabel.service.settings import ServiceSettings

_Handler = TypeVar("_Handler", bound=Callable[..., Any])


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
        *,
        errors: tuple[int, ...] = (),
        basic: bool = False,
        response: type[BaseModel] | None = None,
        operation_id: str | None = None,
    ) -> None:
        """Add an address that takes a body; `work` turns it into JSON, as bytes or as plain values."""

        async def answer(request: Request) -> Response:
            check_token(request, self.settings.token, basic=basic)
            content = await work(None if body is None else await read_body(request, body, self.settings))
            return (
                Response(content, media_type="application/json")
                if isinstance(content, bytes)
                else JSONResponse(content)
            )

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
