"""Answers as cards, tables, JSON and progress."""

from __future__ import annotations

import contextlib
import json
import logging
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from surelabel._core.formatting import bounds, plain
from surelabel._core.progress import reporting_to
from surelabel.cli.app import console, errors, state

_log = logging.getLogger("surelabel")
_NUMBER = re.compile(r"[\d.,%e+ -]*")
_MOST_TAGS = 12


def print_table(headings: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str | None = None) -> None:
    """Print a table as wide as the terminal, or as wide as it needs to be in a pipe."""
    table = Table(title=title, title_justify="left", header_style="bold")
    cells = [[plain(cell) for cell in row] for row in rows]
    for column, heading in enumerate(headings):
        numeric = all(_NUMBER.fullmatch(row[column]) for row in cells)
        table.add_column(heading, justify="right" if numeric else "left")
    for row in cells:
        table.add_row(*map(Text, row))
    (console if console.is_terminal else Console(width=1_000)).print(table)


def print_json(value: Mapping[str, Any] | Sequence[Any]) -> None:
    """Print a value as JSON."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=1))


def excerpt(text: str, width: int = 100) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(plain(text[: 4 * width]).split())
    return line if len(line) <= width else f"{line[: width - 1].rstrip()}…"


def card(record: Mapping[str, Any], *, text: str | None = None, width: int = 100) -> str:
    """Return what to do with a text, its tags and one sentence why, in a few lines."""
    lines = [] if text is None else [_wrapped(record.get("id") or "", excerpt(text), width)]
    decision = record["decision"] or "read"
    choices = [f"{name} (sure)" if name in set(record["assign"]) else name for name in record["consider"]]
    # A text to read shows no guess as if it were sure.
    tags = {"file": _names(record["labels"]), "choose": _names(choices), "read": "no short list"}
    lines.append(_wrapped(decision.capitalize(), tags[decision], width))
    lines.append(_wrapped("", record["reason"], width))
    if record.get("size_bounds"):
        size = bounds(*map(int, record["size_bounds"]))
        answers = f"{size} {'answer' if size == '1' else 'answers'} at significance {record['significance']}"
        members = "; ".join(f"{_names(member['labels'])} {member['p_value']:.3f}" for member in record["top"][:3])
        lines.append(_wrapped("", f"{answers}{': ' if members else ''}{members}", width))
    return "\n".join(lines)


def _names(labels: Sequence[str]) -> str:
    more = f" and {len(labels) - _MOST_TAGS:,} more" if len(labels) > _MOST_TAGS else ""
    return ", ".join(labels[:_MOST_TAGS]) + more or "no tag"


def _wrapped(name: str, content: str, width: int) -> str:
    """Return a name and its content, following lines indented; nothing in it controls a terminal."""
    words = " ".join(plain(content).split())
    start = f"{' '.join(plain(name).split()):<9} "
    return textwrap.fill(words, max(width, 40), initial_indent=start, subsequent_indent=" " * 10) or start.rstrip()


@contextlib.contextmanager
def progress() -> Iterator[None]:
    """Show the progress of the steps inside the block: a bar on a terminal, otherwise a log line per step."""
    if state.quiet:
        yield
    elif errors.is_terminal:
        with _bar() as report, reporting_to(report):
            yield
    else:
        with reporting_to(_one_line_per_step()):
            yield


@contextlib.contextmanager
def _bar() -> Iterator[Callable[[str, int, int | None], None]]:
    """Yield a report that moves the bar of the current step."""
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("left:"), TimeRemainingColumn(), console=errors, transient=True) as bars:
        task = bars.add_task("", total=None)
        current = ""

        def report(name: str, done: int, total: int | None) -> None:
            nonlocal current
            if name != current:
                current = name
                bars.reset(task, total=total, description=plain(name))
            bars.update(task, completed=done, total=total)

        yield report


def _one_line_per_step() -> Callable[[str, int, int | None], None]:
    current = ""

    def report(name: str, done: int, total: int | None) -> None:
        nonlocal current
        if name != current:
            current = name
            _log.info("%s", plain(name) + (f" ({total:,})" if total else ""))

    return report
