"""Progress of long steps: library code reports how far it is, and the caller decides how to show it.

A step reports to the callback of `reporting_to`, from any thread; without one it costs nothing.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Callable, Iterator
from typing import TypeAlias

Report: TypeAlias = Callable[[str, int, int | None], None]
"""Called with a step's name, the amount done, and the total amount (None if unknown)."""

_current: contextvars.ContextVar[Report | None] = contextvars.ContextVar("surelabel_progress", default=None)


@contextlib.contextmanager
def reporting_to(report: Report | None) -> Iterator[None]:
    """Send the progress of all steps inside the block to a callback; None keeps the current one."""
    token = _current.set(report or _current.get())
    try:
        yield
    finally:
        _current.reset(token)


@contextlib.contextmanager
def step(name: str, total: int | None = None) -> Iterator[Callable[..., None]]:
    """Announce a step; yield `advance(n=1)`, which adds to the amount done."""
    report = _current.get()
    done, lock = 0, threading.Lock()

    def advance(n: int = 1) -> None:
        nonlocal done
        if report is not None:
            with lock:
                done += n
                report(name, done, total)

    advance(0)
    yield advance
