"""The texts of a table: which columns hold them, and each row as a text with its id."""

from __future__ import annotations

import codecs
import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from surelabel._core.wording import encodable
from surelabel.exceptions import CorpusError, InvalidInputError
from surelabel.tables.reading import Row, TableReader


@dataclasses.dataclass(frozen=True)
class InputColumns:
    """Which columns of a file hold the texts.

    `text` names the text column, or several to join by line breaks; a `.txt` file has one text per line and no columns.
    `id` is a column that tells texts apart, "id" by default. `group` is a column with the group of each text, for a
    model that is calibrated by groups; `groups` are those that the model knows, None if others are allowed.

    Examples
    --------
    >>> InputColumns(("title", "body"), id="number").text
    ('title', 'body')
    """

    text: tuple[str, ...] = ("text",)
    id: str | None = None
    encoding: str = "utf-8"
    group: str | None = None
    groups: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", tuple(self.text))
        check_encoding(self.encoding)
        if not self.text:
            raise InvalidInputError("The 'text' must name at least one column. Got none instead.")


def check_encoding(encoding: Any) -> None:
    """Raise unless there is an encoding of that name."""
    try:
        codecs.lookup(encoding)
    except (LookupError, TypeError):
        raise InvalidInputError(
            f"The 'encoding' must name a text encoding, e.g. utf-8 or latin-1. Got {encoding!r} instead."
        ) from None


class TextRow(NamedTuple):
    """A text, its row in the file from 1, id and group; or, with an empty text, why the row cannot be used.

    `cells` are those of all columns, if they were asked for.
    """

    number: int
    text: str
    id: str | None = None
    problem: str | None = None
    cells: Mapping[str, Any] | None = None
    group: str | None = None


def is_missing(cell: Any) -> bool:
    """Whether a cell says nothing: it is empty, null, or not a number."""
    return cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell))


def group_of(cell: Any, column: str) -> tuple[str, str | None]:
    """Return what a cell of a column says as a string, or what is wrong with it.

    Examples
    --------
    >>> group_of(" mail ", "source"), group_of(None, "source")[1]
    (('mail', None), "must have a value in the column 'source'. Got nothing; fill it in, or remove the row.")
    """
    value = "" if is_missing(cell) else str(cell).strip()
    if value:
        return value, None
    return "", f"must have a value in the column {column!r}. Got nothing; fill it in, or remove the row."


def unknown_group(group: str, groups: Sequence[str]) -> str:
    """Say that a model does not know a group, and what to do.

    Examples
    --------
    >>> unknown_group("fax", ["chat", "mail"])
    "the group 'fax' has no calibration texts; the model has chat, mail. Calibrate with texts of it (surelabel ..."
    """
    shown = ", ".join(f"{name:.40}" for name in groups[:8]) + (", ..." if len(groups) > 8 else "")
    return (
        f"the group {group!r:.60} has no calibration texts; the model has {shown}. Calibrate with texts of it "
        "(surelabel calibrate --add), or join small and new groups (--min-texts)."
    )


def read_texts(reader: TableReader, columns: InputColumns, *, all_columns: bool = False) -> Iterator[TextRow]:
    """Yield the text and id of each row, with the cells of all columns if they are asked for."""

    def choose(headings: list[str]) -> list[str]:
        identity = columns.id or ("id" if "id" in headings else None)
        wanted = list(dict.fromkeys([*columns.text, *filter(None, (identity, columns.group))]))
        if not headings:
            raise CorpusError(f"{reader.name!r} must begin with a line of headings. Got an empty file instead.")
        for column in wanted:
            if headings.count(column) != 1:
                raise CorpusError(_no_column(column, headings, f"{reader.name!r}", columns, is_first_line=True))
        return list(dict.fromkeys(headings)) if all_columns else wanted

    is_plain = reader.partition.kind == "txt"
    if is_plain and columns.group is not None:
        raise CorpusError(
            f"{reader.name!r} has one text per line and no columns, but the model needs a group for each text (column "
            f"{columns.group!r}). Give a table with that column, or one group for all texts with --group."
        )
    for row in reader.rows(choose):
        cells = row.cells if all_columns else None
        if row.problem is not None:
            yield TextRow(row.number, "", None, f"{reader.place(row)} {row.problem}", cells)
        elif is_plain:
            yield TextRow(row.number, encodable(row.cells["text"]), cells=cells)
        else:
            yield _text_row(reader, row, columns)._replace(cells=cells)


def _text_row(reader: TableReader, row: Row, columns: InputColumns) -> TextRow:
    """Return the text, id and group of a row of a table, or what is wrong with it."""
    for column in filter(None, (*columns.text, columns.id)):
        if column not in row.cells:
            return TextRow(row.number, "", None, _no_column(column, list(row.cells), reader.place(row), columns))
    text, wrong = join_texts([row.cells[column] for column in columns.text])
    if wrong is not None:
        return TextRow(row.number, "", None, f"{reader.place(row)} must hold text. Got {wrong} instead.")
    cell = row.cells.get(columns.id or "id")
    identity = None if cell is None else encodable(str(cell))
    if columns.group is None:
        return TextRow(row.number, encodable(text), identity)
    group, problem = group_of(row.cells.get(columns.group), columns.group)
    if problem is None and columns.groups is not None and group not in columns.groups:
        problem = f"cannot be answered (column {columns.group!r}): {unknown_group(group, columns.groups)}"
    if problem is not None:
        return TextRow(row.number, "", identity, f"{reader.place(row)} {problem}")
    return TextRow(row.number, encodable(text), identity, group=encodable(group))


def join_texts(cells: Sequence[Any]) -> tuple[str, str | None]:
    r"""Join cells by line breaks, missing ones left out; return the text, and what is not text among them.

    Examples
    --------
    >>> join_texts(["Oil", None, "It rose."]), join_texts([3])
    (('Oil\nIt rose.', None), ('', 'int 3'))
    """
    texts = []
    for cell in cells:
        if isinstance(cell, str):
            texts.append(cell)
        elif not is_missing(cell):
            return "", f"{type(cell).__name__} {cell!r:.40}"
    return "\n".join(filter(None, texts)), None


def looks_like_data(headings: Sequence[str]) -> bool:
    """Whether a first line has what headings seldom have: a sentence, or a number.

    Examples
    --------
    >>> looks_like_data(["id", "body"]), looks_like_data(["7", "The price of wheat rose again today."])
    (False, True)
    """
    return any(len(name) > 60 or len(name.split()) > 5 or name.replace(".", "", 1).isdigit() for name in headings)


def _no_column(
    column: str, headings: Sequence[str], place: str, columns: InputColumns, *, is_first_line: bool = False
) -> str:
    shown = ", ".join(f"{heading!r:.60}" for heading in headings[:12])
    if is_first_line and column in headings:
        return f"{place} must have one column {column!r}. It has several of that name: rename all but one."
    if is_first_line and looks_like_data(headings):
        return (
            f"{place} must begin with a line of headings, such as 'id,text'. Its first line looks like data: {shown}. "
            f"Add headings, one of them {column!r}, or give a .txt file with one text per line."
        )
    if column == columns.group:
        return (
            f"{place} must have a column {column!r}: the model is calibrated by it. It has {shown}: name the column of "
            "groups with --by, or one group for all texts with --group."
        )
    return f"{place} must have a column {column!r}. It has {shown}: name the text column with --text."
