"""Progress of long steps: library code says how far it is, and whoever started the work decides how to show it.

A step reports to the callback that `reporting_to` installed, from any thread; without one it costs nothing.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Callable, Iterator
from typing import TypeAlias

Report: TypeAlias = Callable[[str, int, int | None], None]
"""Called with a step's name, what is done of it, and how much there is to do (None if that is not known)."""

_current: contextvars.ContextVar[Report | None] = contextvars.ContextVar("surelabel_progress", default=None)
_rest: contextvars.ContextVar[Callable[[], None] | None] = contextvars.ContextVar("surelabel_rest", default=None)


@contextlib.contextmanager
def reporting_to(report: Report | None, rest: Callable[[], None] | None = None) -> Iterator[None]:
    """Send the progress of all steps inside the block to a callback; call `rest` when no step is under way."""
    # None keeps the callback that is installed already.
    tokens = _current.set(report or _current.get()), _rest.set(rest or _rest.get())
    try:
        yield
    finally:
        _current.reset(tokens[0])
        _rest.reset(tokens[1])


_inside: contextvars.ContextVar[Callable[[int], None] | None] = contextvars.ContextVar("surelabel_step", default=None)


@contextlib.contextmanager
def step(name: str, total: int | None = None) -> Iterator[Callable[..., None]]:
    """Announce a step; yield a function to call with how much more of it is done, from any thread."""
    outer, report = _inside.get(), _current.get()
    if report is None:
        yield lambda more=1: None
        return
    done, lock = 0, threading.Lock()

    def advance(more: int = 1) -> None:
        nonlocal done
        with lock:
            done += more
            report(name, done, total)

    advance(0)
    token = _inside.set(advance)
    try:
        yield advance
    finally:
        _inside.reset(token)
        if outer is None and (rest := _rest.get()) is not None:
            rest()
    if outer is not None:
        outer(0)  # announced again
