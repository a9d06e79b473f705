"""What every request passes: the host name, headers of the response, metrics; and the token."""

from __future__ import annotations

import base64
import contextlib
import hmac
import time
from typing import TYPE_CHECKING

from fastapi import Request

from surelabel.service.errors import ServiceError, error_response
from surelabel.service.metrics import ServiceMetrics
from surelabel.service.settings import ServiceSettings

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
PAGE_POLICY = (
    f"{_NOTHING}; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Content-security policy of the page: its own files, and pictures that it was sent, in which nothing runs."""
REPORT_POLICY = f"{_NOTHING}; style-src 'unsafe-inline'; img-src data:; sandbox allow-popups allow-top-navigation"
"""Content-security policy of the report: its inline style, no script."""

_HEADERS = {
    b"content-security-policy": _NOTHING.encode(),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"permissions-policy": b"camera=(), geolocation=(), microphone=()",
    b"cache-control": b"no-store",
}
_OTHER_HOST = "Use the address it was started with, or add the name to 'allowed_hosts'."


def _host_name(scope: Scope) -> str:
    """Return the host name that a request is addressed to, without port."""
    value = next((value for name, value in scope["headers"] if name == b"host"), b"").decode("latin-1").lower()
    if value.startswith("["):
        return value[1:].partition("]")[0]
    return value.rpartition(":")[0] if ":" in value else value


class Guard:
    """ASGI middleware around the whole service."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings, metrics: ServiceMetrics) -> None:
        self.app = app
        self.metrics = metrics
        self._hosts = frozenset(settings.hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start = time.perf_counter()
        status = 500

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                present = {name.lower() for name, _ in message["headers"]}
                more = [header for header in _HEADERS.items() if header[0] not in present]
                message["headers"] = [*message["headers"], *more]
            await send(message)

        self.metrics.requests_now.inc()
        try:
            app = self.app
            if "*" not in self._hosts and (host := _host_name(scope)) not in self._hosts:
                what, what_to_do = f"This service does not answer for the host {host[:100]!r}.", _OTHER_HOST
                app = error_response(ServiceError(421, "wrong_host", what, what_to_do))
            await app(scope, receive, send_with_headers)
        finally:
            self.metrics.requests_now.dec()
            endpoint = getattr(scope.get("route"), "path", "other")
            self.metrics.requests.labels(endpoint, str(status)).inc()
            self.metrics.request_seconds.labels(endpoint).observe(time.perf_counter() - start)


def has_token(request: Request, token: str | None, *, basic: bool = False) -> bool:
    """Tell whether a request brings the token, if there is one; the comparison takes as long for a wrong one.

    With `basic`, the password of HTTP Basic counts too, which a browser can ask for.
    """
    if token is None:
        return True
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    given = value.strip() if scheme.lower() == "bearer" else ""
    if basic and scheme.lower() == "basic":
        with contextlib.suppress(ValueError):
            given = base64.b64decode(value.strip(), validate=True).decode("utf-8").partition(":")[2]
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), token.encode())


def check_token(request: Request, token: str | None, *, basic: bool = False) -> None:
    """Raise unless a request brings the token, if there is one; with `basic` as the password of HTTP Basic too."""
    if not has_token(request, token, basic=basic):
        challenge = 'Basic realm="surelabel", charset="UTF-8"' if basic else 'Bearer realm="surelabel"'
        other_way = ", or the token as password of any user" if basic else ""
        raise ServiceError(
            401,
            "unauthorized",
            "This service needs a token, and the request has none or a wrong one.",
            f"Send the header 'Authorization: Bearer <token>'{other_way}.",
            headers={"WWW-Authenticate": challenge},
        )
