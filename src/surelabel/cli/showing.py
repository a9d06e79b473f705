"""Tables, JSON and progress on the command line: a bar on a terminal, a line now and then in a log."""

from __future__ import annotations

import contextlib
import json
import logging
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from surelabel._core.progress import reporting_to
from surelabel._core.wording import terminal_words
from surelabel.cli.application import console, errors, state

_log = logging.getLogger("surelabel")
_NUMBER = re.compile(r"[\d.,%e+-]*")
# Seconds between two lines about a step (less than two, though a busy interpreter delays them), and how they grow after
# five minutes: hours do not fill the log.
_SILENT, _LONGEST_SILENT, _GROWTH, _OFTEN = 1.2, 60.0, 1.1, 300.0


def print_table(headings: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str | None = None) -> None:
    """Print a table as wide as the terminal, or as wide as it needs to be if there is none."""
    table = Table(title=title, title_justify="left", header_style="bold")
    filled = [[terminal_words(cell) for cell in row] for row in rows]
    for column, heading in enumerate(headings):
        cells = [row[column] for row in filled]
        numeric = all(_NUMBER.fullmatch(cell) for cell in cells)
        table.add_column(heading, justify="right" if numeric else "left")
    for row in filled:
        table.add_row(*(Text(cell) for cell in row))
    target = console if console.is_terminal else Console(width=1_000)
    target.print(table)


def print_json(value: Mapping[str, Any] | Sequence[Any]) -> None:
    """Print a value as JSON."""
    typer.echo(terminal_words(json.dumps(value, ensure_ascii=False, indent=1)))


class _Bar:
    """A bar of the current step on a terminal; it moves and counts seconds by itself."""

    def __init__(self) -> None:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        self.progress = Progress(*columns, TextColumn("left:"), TimeRemainingColumn(), console=errors, transient=True)
        self._task: TaskID | None = None
        self._name: str | None = None
        self._lock = threading.RLock()

    def report(self, name: str, done: int, total: int | None) -> None:
        with self._lock:
            if name != self._name or self._task is None:
                self.rest()
                self._task, self._name = self.progress.add_task(name, total=total), name
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
        # Python started and read the commands in silence: the first line comes sooner.
        wait, begun = _SILENT / 2, self._begun
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
