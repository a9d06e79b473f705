"""What can be set about a service, checked when it is made."""

from __future__ import annotations

import dataclasses
import ipaddress
import os
from typing import TYPE_CHECKING, Literal

from surelabel.exceptions import InvalidInputError

if TYPE_CHECKING:
    from surelabel.review import IncomingSettings

# Whole numbers must be 1 or more, and these larger.
_LEAST = {"max_body_bytes": 1_024, "max_connections": 8}


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach a host name or address.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclasses.dataclass(frozen=True)
class ReviewPlan:
    """A review that a service shows at /review.

    Attributes
    ----------
    store : path or URL
        Where decisions are kept, see `surelabel.review.ReviewStore`.
    texts : path, optional
        Texts to bring into their queues first.
    incoming : IncomingSettings, optional
        Level, share of the blind check, columns of the texts.
    lease_seconds : float
        How long a text stays with a reviewer who does nothing.

    Examples
    --------
    >>> from surelabel.service import ReviewPlan
    >>> ReviewPlan("june.sqlite", "june.csv").lease_seconds
    300.0
    """

    store: str | os.PathLike[str]
    texts: str | os.PathLike[str] | None = None
    incoming: IncomingSettings | None = None
    lease_seconds: float = 300.0


@dataclasses.dataclass(frozen=True)
class ServiceSettings:
    """Where a service listens, who may ask, and how much.

    Attributes
    ----------
    host, port
        Where it listens; only this machine can reach the default. Port 0 takes a free one.
    token : str, optional
        Bearer token that a client must send. Needed if other machines can reach the host.
    allow_unprotected : bool
        Serve other machines even without a token.
    allowed_hosts : tuple of str, optional
        Host names that a request may be addressed to, ("*",) for any. None: this machine's names if the host is a
        loopback address, which keeps other sites' pages in a browser out; otherwise any.
    max_body_bytes, max_texts, max_text_chars, max_top
        Limits of one request: its body, its texts, characters per text, top label-sets per text.
    max_label_sets : int
        Texts times top of one request.
    max_connections : int
        Connections at once; one more closes the one that has been idle longest.
    max_requests : int
        Requests being answered at once; one more is refused with 503. A request counts once its token is checked and
        its body has been read.
    max_batch_texts : int
        Texts that are computed at once; 1 turns micro-batching off.
    max_wait : float
        Seconds that a request may wait for others to share a batch with.
    max_queue_texts : int
        Texts of admitted requests that may wait; a request beyond that is refused with 503.
    timeout : float
        Seconds a request may take after its body has been read. A request that would take longer, as far as recent
        batches tell, is refused at once with 503.
    head_timeout, body_timeout, send_timeout : float
        Seconds a client may take to send a request's head, to send its body, and to make room for more of an answer.
    workers : int
        Processes that serve; the limits above are those of each. They share metrics, watch and outcomes.
    watch : bool
        Watch whether the texts are like those of calibration, and report it in the metrics.
    adapt : {"aci", "dtaci", "window", "nexcp"}, optional
        Let the level of requests that name none follow the errors that outcomes show; see `OnlineConformal`.
    adapt_significance : str
        Share of errors to keep then.
    state : path, optional
        File that answers under an id and their outcomes are kept in; made if there is none.
    max_pending : int
        Answers under an id that are remembered; if there are more, the oldest are forgotten.

    Examples
    --------
    >>> from surelabel.service import ServiceSettings
    >>> ServiceSettings(max_texts=16).hosts
    ('127.0.0.1', 'localhost', '::1', '127.0.0.1')
    >>> ServiceSettings(host="0.0.0.0")
    Traceback (most recent call last):
        ...
    surelabel.exceptions.InvalidInputError: Other machines may reach '0.0.0.0', so the service needs a ...
    """

    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = dataclasses.field(default=None, repr=False)
    allow_unprotected: bool = False
    allowed_hosts: tuple[str, ...] | None = None
    max_body_bytes: int = 2 * 2**20
    max_texts: int = 256
    max_text_chars: int = 200_000
    max_top: int = 100
    max_label_sets: int = 10_000
    max_connections: int = 1_000
    max_requests: int = 256
    max_batch_texts: int = 32
    max_wait: float = 0.003
    max_queue_texts: int = 8_192
    timeout: float = 60.0
    head_timeout: float = 10.0
    body_timeout: float = 20.0
    send_timeout: float = 10.0
    workers: int = 1
    watch: bool = False
    adapt: Literal["aci", "dtaci", "window", "nexcp"] | None = None
    adapt_significance: str = "0.05"
    state: str | os.PathLike[str] | None = None
    max_pending: int = 20_000

    def __post_init__(self) -> None:
        def check(name: str, holds: bool, expected: str) -> None:
            if not holds:
                got = getattr(self, name)
                raise InvalidInputError(f"The {name!r} setting of a service must be {expected}. Got {got!r} instead.")

        for field in dataclasses.fields(self):
            name, value, least = field.name, getattr(self, field.name), _LEAST.get(field.name, 1)
            is_whole = isinstance(value, int) and not isinstance(value, bool)
            if field.type == "int" and name != "port":
                check(name, is_whole and value >= least, f"a whole number of {least:,} or more")
            elif field.type == "float":
                is_number = is_whole or isinstance(value, float)
                check(name, is_number and 0 <= value < float("inf"), "seconds, 0 or more")
        check("port", isinstance(self.port, int) and 0 <= self.port <= 65_535, "from 0 to 65535")
        check("watch", isinstance(self.watch, bool), "True or False")
        if self.workers > 1 and self.adapt is not None:
            raise InvalidInputError(
                f"A level that adapts ('adapt') is kept by one process. Got 'workers' {self.workers}: serve with one, "
                "or without adapting."
            )
        self._check_token()

    def _check_token(self) -> None:
        """Check the token, and that there is one if others can reach the service."""
        token = self.token
        if token is not None and not (token and token.isascii() and token.isprintable() and token == token.strip()):
            raise InvalidInputError(
                "The 'token' setting of a service must be printable ASCII characters without spaces around them. "
                "Make one with: python -c 'import secrets; print(secrets.token_urlsafe())'"
            )
        if self.token is None and not is_loopback(self.host) and not self.allow_unprotected:
            raise InvalidInputError(
                f"Other machines may reach {self.host!r}, so the service needs a token. Give one (SURELABEL_TOKEN or "
                "'token'), or listen on 127.0.0.1, or insist with 'allow_unprotected'."
            )

    @property
    def hosts(self) -> tuple[str, ...]:
        """Host names that a request may be addressed to; ("*",) for any."""
        if self.allowed_hosts is not None:
            return tuple(host.lower() for host in self.allowed_hosts)
        if is_loopback(self.host):
            return ("127.0.0.1", "localhost", "::1", self.host.lower())
        return ("*",)
