"""Tables for people."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from surelabel._core.wording import terminal_words
from surelabel.cli.application import console

__all__ = ["print_json", "print_table"]

_NUMBER = re.compile(r"[\d.,%e+-]*")


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
