"""Progress on the command line: a bar with the time left on a terminal, a line now and then in a log."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator

from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from surelabel._core.progress import reporting_to
from surelabel.cli.application import errors, state

_log = logging.getLogger("surelabel")
# Seconds between two lines about a step (less than two, though a busy interpreter delays them), and how they grow after
# five minutes: hours do not fill the log.
_SILENT, _LONGEST_SILENT, _GROWTH, _OFTEN = 1.2, 60.0, 1.1, 300.0


class _Bar:
    """A bar of the current step on a terminal; it moves and counts seconds by itself."""

    def __init__(self) -> None:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        self.progress = Progress(*columns, TextColumn("left:"), TimeRemainingColumn(), console=errors, transient=True)
        self._task: TaskID | None = None
        self._name: str | None = None
        self._lock = threading.Lock()

    def report(self, name: str, done: int, total: int | None) -> None:
        with self._lock:
            if name != self._name:
                if self._task is not None:
                    self.progress.remove_task(self._task)
                self._task, self._name = self.progress.add_task(name, total=total), name
            assert self._task is not None
            self.progress.update(self._task, completed=done, total=total)

    def rest(self) -> None:
        with self._lock:
            if self._task is not None:
                self.progress.remove_task(self._task)
            self._task = self._name = None


class _Lines:
    """Lines about the current step in a log, none about steps that end soon."""

    def __init__(self) -> None:
        self._step: tuple[str, int, int | None] | None = None
        self._begun = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._speak, daemon=True)
        self._thread.start()

    def report(self, name: str, done: int, total: int | None) -> None:
        if self._step is None or self._step[0] != name:
            self._begun = time.monotonic()
        self._step = (name, done, total)

    def rest(self) -> None:
        self._step = None

    def _speak(self) -> None:
        """Say how far the step is, for as long as it takes."""
        wait, begun = _SILENT, self._begun
        while not self._ended.wait(wait):
            step = self._step
            if step is None:
                continue
            if begun != self._begun:
                wait, begun = _SILENT, self._begun
            else:
                wait = min(_LONGEST_SILENT, wait * _GROWTH) if time.monotonic() - begun > _OFTEN else _SILENT
            _log.info("%s", self._words(*step))

    def _words(self, name: str, done: int, total: int | None) -> str:
        seconds = time.monotonic() - self._begun
        if not total or not done or seconds < 1:
            return f"  {name}: {seconds:.0f} s"
        left = seconds * (total - done) / done
        return f"  {name}: {done / total:.0%}, {seconds:.0f} s, about {left:.0f} s left"

    def end(self) -> None:
        self._ended.set()
        self._thread.join()


@contextlib.contextmanager
def progress_shown() -> Iterator[None]:
    """Show how far the steps inside the block are, unless the command should be quiet."""
    if state.quiet:
        yield
    elif errors.is_terminal:
        bar = _Bar()
        with bar.progress, reporting_to(bar.report, bar.rest):
            yield
    else:
        lines = _Lines()
        try:
            with reporting_to(lines.report, lines.rest):
                yield
        finally:
            lines.end()
