"""Connections with limits: how many, and how long a client may take to send a request's head or to read an answer.

uvicorn limits none of these itself. A client that stays silent, sends a head byte by byte, or never reads what it asked
for holds a connection open for ever; enough of them and nobody else gets in.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import sys
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from surelabel.service.settings import ServiceSettings

if sys.platform != "win32":
    import resource

# Files that a service holds open beside its connections: its socket, logs, the model.
_OTHER_FILES = 128


def raise_file_limit(max_connections: int) -> None:
    """Let the process open a file per connection, as far as the system allows it."""
    if sys.platform == "win32":
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max_connections + _OTHER_FILES
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class LimitedConnection(H11Protocol):
    """An HTTP connection that is closed if its client is too slow, or if it is idle and another one needs its place.

    `settings` says when: `max_connections`, `head_timeout` and `send_timeout`. uvicorn makes an object per connection.
    """

    def __init__(self, settings: ServiceSettings, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.settings = settings
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._last_used = self.loop.time()

    def _start_timer(self, name: str, seconds: float, call: Callable[[], None]) -> None:
        """Call a function unless the timer is stopped in time; one that runs already goes on."""
        if name not in self._timers:
            self._timers[name] = self.loop.call_later(seconds, call)

    def _stop_timer(self, name: str) -> None:
        """Count no more."""
        if (timer := self._timers.pop(name, None)) is not None:
            timer.cancel()

    @property
    def is_idle(self) -> bool:
        """Whether no request is under way."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def _waits_for_client(self) -> bool:
        """Whether a request is under way whose client sends no body, or does not read."""
        return bool(self.flow.write_paused or (self.cycle is not None and self.cycle.more_body))

    @property
    def _is_closing(self) -> bool:
        """Whether the connection is about to end."""
        return self.transport is None or self.transport.is_closing()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection; if there are too many, close the one that has kept the service waiting longest.

        Idle ones go first, then those that do not send their body or do not read their answer, then this one.
        """
        super().connection_made(transport)
        here = [one for one in self.connections if isinstance(one, LimitedConnection) and not one._is_closing]
        if len(here) > self.settings.max_connections:
            others = [one for one in here if one is not self and (one.is_idle or one._waits_for_client)]
            min(others or [self], key=lambda one: (not one.is_idle, one._last_used)).transport.abort()
        self._start_timer("head", self.settings.head_timeout, self._close_if_idle)

    def data_received(self, data: bytes) -> None:
        """Read; a head must be whole in time."""
        self._last_used = self.loop.time()
        if self.is_idle:
            self._start_timer("head", self.settings.head_timeout, self._close_if_idle)
        super().data_received(data)
        if not self.is_idle:
            self._stop_timer("head")

    def _close_if_idle(self) -> None:
        """Close a connection on which no request has begun."""
        self._stop_timer("head")
        if self.is_idle:
            self.transport.abort()

    def pause_writing(self) -> None:
        """Wait for the client to read, but not for ever."""
        super().pause_writing()
        self._start_timer("send", self.settings.send_timeout, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on writing."""
        self._stop_timer("send")
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timers with the connection."""
        self._stop_timer("head")
        self._stop_timer("send")
        super().connection_lost(exc)
        # uvicorn leaves this timer running if the connection broke.
        self._unset_keepalive_if_required()


def limited_connections(settings: ServiceSettings) -> Any:
    """Return what makes a service's connections, for uvicorn, which says that it takes classes only."""
    return functools.partial(LimitedConnection, settings)
