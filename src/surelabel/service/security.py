"""What every request passes before it is read: token, other sites, size of its body; and safe headers."""

from __future__ import annotations

import base64
import binascii
import hmac
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from surelabel.service.schemas import ServiceError, as_service_error

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from surelabel.service.settings import ServiceSettings

MAX_TABLE_BYTES = 64 * 2**20
TABLE_PATH = "/v1/table"
_READ_ON = 4  # times the limit
_OPEN = ("/static/", "/healthz", "/readyz", "/openapi.json")
_NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
PAGE_POLICY = (
    f"{_NOTHING}; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "require-trusted-types-for 'script'; trusted-types surelabel"
)
REPORT_POLICY = f"{_NOTHING}; style-src 'unsafe-inline'; img-src data:; sandbox allow-popups allow-top-navigation"
_HEADERS = [
    (b"content-security-policy", _NOTHING.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"cache-control", b"no-store"),
]
_STATIC_HEADERS = [*_HEADERS[:-1], (b"cache-control", b"no-cache")]


class SecureRequests:
    """ASGI middleware: refuses what must not reach the application, and adds headers to every response."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self.app = app
        self.settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        has_begun = False

        async def send_secured(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                own = {name for name, _ in message["headers"]}
                safe = _STATIC_HEADERS if scope["path"].startswith("/static/") else _HEADERS
                message["headers"] += [header for header in safe if header[0] not in own]
            await send(message)

        headers = Headers(scope=scope)
        try:
            self._check_token(scope["path"], headers)
            if scope["method"] not in ("GET", "HEAD"):
                _check_site(headers)
            limit = MAX_TABLE_BYTES if scope["path"] == TABLE_PATH else self.settings.max_body_bytes
            await self.app(scope, _limited(receive, headers, limit), send_secured)
        except Exception as error:
            if has_begun:
                raise
            await as_service_error(error).response()(scope, receive, send_secured)

    def _check_token(self, path: str, headers: Headers) -> None:
        """Refuse a request without the token, unless its address is open to all."""
        token = self.settings.token
        if token is None or path.startswith(_OPEN):
            return
        if not hmac.compare_digest(_given_token(headers).encode("utf-8", "surrogateescape"), token.encode()):
            scheme = "Bearer" if path.startswith("/v1/") else "Basic"
            raise ServiceError(
                401,
                "unauthorized",
                "This service needs a token.",
                "Send 'Authorization: Bearer TOKEN'; in a browser give it as the password.",
                headers={"WWW-Authenticate": f'{scheme} realm="surelabel"'},
            )


def _given_token(headers: Headers) -> str:
    """Return the bearer token or the password of HTTP Basic that a request brings."""
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value.strip(), validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return ""
    return ""


def _check_site(headers: Headers) -> None:
    """Refuse what a page of another site sends: browsers say where a request comes from."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None:
        is_own = site in ("same-origin", "none")
    else:
        is_own = origin is None or urlsplit(origin).netloc == headers.get("host")
    if not is_own:
        raise ServiceError(403, "other_site", "The request comes from another site.", "Open the service's own page.")


def _limited(receive: Receive, headers: Headers, limit: int) -> Receive:
    """Return what receives a body up to a limit, whatever its head claims.

    A somewhat larger body is read to its end before it is refused: a client that is still sending would see a broken
    connection instead of the error.
    """
    claimed = headers.get("content-length", "")
    if claimed.isdigit() and int(claimed) > _READ_ON * limit:
        raise _too_large(limit)
    n_bytes = 0

    async def receive_limited() -> Message:
        nonlocal n_bytes
        while True:
            message = await receive()
            n_bytes += len(message.get("body", b""))
            if n_bytes <= limit:
                return message
            if not message.get("more_body") or n_bytes > _READ_ON * limit:
                raise _too_large(limit)

    return receive_limited


def _too_large(limit: int) -> ServiceError:
    """Build the error of a body past the limit."""
    message = f"A body can have {limit:,} bytes."
    return ServiceError(413, "body_too_large", message, "Send fewer or shorter texts.", headers={"Connection": "close"})
