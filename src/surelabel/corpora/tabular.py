"""A user's own data: a table with named text and label columns."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from surelabel._core import progress
from surelabel.corpora import label_cells
from surelabel.corpora.corpus import PARTS, Corpus
from surelabel.corpora.files import as_path, provenance_of
from surelabel.exceptions import CorpusError, DataWarning, InvalidInputError
from surelabel.tables.reading import SUFFIXES, Partition, Row, TableReader, format_of
from surelabel.tables.texts import check_encoding, group_of, is_missing, join_texts, looks_like_data

_Text = TypeVar("_Text")

FORMATS = tuple(suffix for suffix, kind in SUFFIXES.items() if kind != "txt")

_PART_ALIASES = {"dev": "validation", "val": "validation", "valid": "validation", "training": "train"}

# What the command line calls the parameters of `read_table`.
_OPTIONS = {"text": "--text", "labels": "--labels", "id": "--id", "part": "--split-column"}


def read_table(
    path: str | Path | Mapping[str, str | Path],
    *,
    text: str | Sequence[str] = "text",
    labels: str | Sequence[str] = "labels",
    separator: str | None = "auto",
    id: str | None = None,  # noqa: A002  # the column's name in most data
    part: str | None = None,
    encoding: str = "utf-8",
    numeric_labels: bool = False,
    on_error: str = "stop",
    columns: Sequence[str] = (),
    name: str | None = None,
) -> Corpus:
    r"""Read a corpus from a JSONL, CSV, TSV, Parquet or XLSX file, compressed with gzip or not.

    All texts are in the training part, unless the data says otherwise.

    Parameters
    ----------
    path : path, or mapping of part name to path
        ``{"train": "a.csv", "test": "b.csv"}`` reads one file per part.
    text : str or list of str, default="text"
        The text column, or several to join by line breaks.
    labels : str or list of str, default="labels"
        A column that holds lists of label names or separated names; or several columns of 0 and 1, whose names are the
        labels. ``"first..last"`` stands for all columns between two, ``"topic_*"`` for all that fit the pattern.
    separator : str or None, default="auto"
        What separates label names in a cell: by default whichever of ``,``, ``;`` and ``|`` most cells have. None: a
        cell is one label. If a separator is given that no cell has, and several have another usual one, a DataWarning
        says so.
    id : str, optional
        A column of unique ids. Default: "id" if there is such a column, else the row's number from 1.
    part : str, optional
        A column that says train, validation, calibration or test.
    numeric_labels : bool, default=False
        Whether numbers are label names. If not, a label column of numbers is an error.
    on_error : {"stop", "skip"}
        Whether a row that cannot be read is an error, or is left out with a DataWarning that names it.
    columns : sequence of str
        Further columns to keep with the texts, such as a source or a date. Each row must have a value in them.
    name : str, optional
        The corpus's name, default the file's.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "news.csv"
    >>> _ = path.write_text("body,tags\nOil rose,oil\nGold and oil fell,gold;oil\n")
    >>> corpus = read_table(path, text="body", labels="tags")
    >>> corpus.label_names, corpus.label_sets[0]
    (('gold', 'oil'), frozenset({'oil'}))
    """
    files = {None: as_path(path)} if not isinstance(path, Mapping) else _check_part_files(path)
    more = tuple(dict.fromkeys(columns))
    asked = _asked(text, labels, id=id, part=part, separator=separator, numeric_labels=numeric_labels, more=more)
    asked = asked.expanded(next(iter(files.values())), encoding)
    with progress.step("reading texts"):
        read = [_read_file(file, part_name, encoding, asked, on_error) for part_name, file in files.items()]
    texts = [one for of_file in read for one in of_file]
    _check_ids(texts)
    parts = np.array([one.part for one in texts], dtype=object)
    return Corpus.from_label_sets(
        name or next(iter(files.values())).name.partition(".")[0],
        [one.text for one in texts],
        [one.labels for one in texts],
        ids=[one.id for one in texts],
        label_names=None if asked.is_one_column else asked.labels,
        parts={name: np.flatnonzero(parts == name) for name in PARTS if (parts == name).any()} or None,
        provenance=provenance_of(list(files.values()), f"text from {list(asked.text)}, labels from {labels!r}"),
        columns={column: [one.more[k] for one in texts] for k, column in enumerate(asked.more)},
    )


class _Asked(NamedTuple):
    """Which columns hold what."""

    text: tuple[str, ...]
    labels: tuple[str, ...]
    is_one_column: bool
    id: str | None
    separator: str | None
    numeric_labels: bool
    part: str | None = None
    more: tuple[str, ...] = ()

    def columns(self) -> dict[str, str]:
        """Return the role of each column that must be there."""
        roles = dict.fromkeys(self.text, "text") | dict.fromkeys(self.labels, "labels")
        roles |= {column: role for role, column in (("id", self.id), ("part", self.part)) if column}
        return dict.fromkeys(self.more, "columns") | roles

    def expanded(self, path: Path, encoding: str) -> _Asked:
        """Return the same with names of columns in place of ranges and patterns, as far as a file has such columns."""
        if not any(map(label_cells.is_pattern, self.labels)):
            return self
        headings = _headings(_reader(path, encoding))
        taken = {name for name, role in self.columns().items() if role != "labels"} | {self.id or "id"}
        names = [column for name in self.labels for column in label_cells.columns_of(name, headings, taken)]
        is_one_column = self.is_one_column and names == list(self.labels)
        return self._replace(labels=tuple(dict.fromkeys(names)), is_one_column=is_one_column)


def _asked(text: str | Sequence[str], labels: str | Sequence[str], **more: Any) -> _Asked:
    """Return what a caller asked for."""
    texts, names = ((columns,) if isinstance(columns, str) else tuple(columns) for columns in (text, labels))
    for role, columns in (("text", texts), ("labels", names)):
        if not columns:
            raise InvalidInputError(f"The {role!r} parameter of load must name at least one column. Got none instead.")
    return _Asked(texts, names, isinstance(labels, str), **more)


def _headings(reader: TableReader) -> list[str]:
    """Return the columns of a file, of JSONL those of its first row."""
    headings: list[str] = []

    def choose(names: list[str]) -> list[str]:
        headings.extend(names)
        return names

    first = next(reader.rows(choose), None)
    return headings or ([] if first is None else list(first.cells))


class _Parsed(NamedTuple):
    """What a row says: its place for messages, its text and labels, whether any label cell is filled, and its cells."""

    place: str
    text: str
    labels: set[str]
    is_labelled: bool
    row: Row


class _LabelledText(NamedTuple):
    """A text of a corpus."""

    text: str
    labels: set[str]
    id: str
    part: str
    place: str
    more: tuple[str, ...]


def _reader(path: Path, encoding: str) -> TableReader:
    """Return a reader of a corpus file; raise if it is none."""
    kind = format_of(path)
    if kind is None or kind == "txt":
        raise CorpusError(f"A corpus file must end in one of {list(FORMATS)} (or these and .gz). Got {path.name!r}.")
    check_encoding(encoding)
    return TableReader(Partition(str(path), kind), encoding)


def _converted(
    path: Path,
    encoding: str,
    asked: _Asked,
    on_error: str,
    convert: Callable[[_Parsed], _Text],
) -> Iterator[_Text]:
    """Yield what `convert` makes of each row; a row that it refuses is an error, or is left out with a warning."""
    if on_error not in {"stop", "skip"}:
        raise InvalidInputError(f"The 'on_error' of load must be 'stop' or 'skip'. Got {on_error!r} instead.")
    reader = _reader(path, encoding)
    rows, problems = _rows(reader, asked)
    if asked.is_one_column:
        label_cells.check_names(rows, asked.labels[0], reader, numeric_labels=asked.numeric_labels)
        asked = asked._replace(separator=label_cells.separator_of(rows, asked.labels[0], reader, asked.separator))
    for row in rows:
        try:
            yield convert(_parsed(reader, row, asked))
        except CorpusError as error:
            problems.append(str(error))
        if problems and on_error == "stop":
            break
    if problems and on_error == "stop":
        raise CorpusError(problems[0])
    if problems:
        shown = " ".join(problems[:3]) + (f" And {len(problems) - 3:,} more." if len(problems) > 3 else "")
        warnings.warn(f"{len(problems):,} rows of {path.name!r} are left out. {shown}", DataWarning, stacklevel=4)


def _parsed(reader: TableReader, row: Row, asked: _Asked) -> _Parsed:
    """Return the text and the labels of a row, or raise."""
    place = reader.place(row)
    text, wrong = join_texts([row.cells.get(column) for column in asked.text])
    if wrong is not None:
        raise CorpusError(f"{place} must hold text. Got {wrong} instead.")
    cells = {column: row.cells.get(column) for column in asked.labels}
    if asked.is_one_column:
        names = label_cells.as_label_set(cells[asked.labels[0]], asked.separator, place)
    else:
        names = {column for column, cell in cells.items() if label_cells.is_present(cell, column, place)}
    return _Parsed(place, text, names, not all(map(is_missing, cells.values())), row)


def _read_file(path: Path, part_name: str | None, encoding: str, asked: _Asked, on_error: str) -> list[_LabelledText]:
    """Return the texts of a file with their labels."""

    def convert(parsed: _Parsed) -> _LabelledText:
        cells, place = parsed.row.cells, parsed.place
        identity = cells.get(asked.id or "id")
        if identity is None:
            identity = f"{'' if part_name is None else f'{part_name}-'}{parsed.row.number}"
        part = part_name or "train" if asked.part is None else _part_name(cells.get(asked.part), place)
        more = tuple(_filled(cells.get(column), column, place) for column in asked.more)
        return _LabelledText(parsed.text, parsed.labels, str(identity), part, place, more)

    texts = list(_converted(path, encoding, asked, on_error, convert))
    if not texts:
        raise CorpusError(f"{path.name!r} must have at least one text. Got an empty file instead.")
    return texts


class Event(NamedTuple):
    """A row of a stream: a text that arrives, with its labels if they are known; or the labels of an earlier text."""

    place: str
    id: str | None
    text: str | None  # None if only labels arrive
    labels: frozenset[str] | None  # None if they are not known yet
    group: str | None = None  # of the text, if a column of groups was named


def read_events(
    path: str | Path,
    *,
    text: str | Sequence[str] = "text",
    labels: str | Sequence[str] = "labels",
    separator: str | None = "auto",
    id: str | None = None,  # noqa: A002  # the column's name in most data
    encoding: str = "utf-8",
    numeric_labels: bool = False,
    on_error: str = "stop",
    group: str | None = None,
) -> Iterator[Event]:
    """Yield the rows of a table as a stream of texts and of labels that become known."""
    # A row with a text and labels is both. A row whose label cell is empty is a text that waits for its labels; a row
    # without a text has the labels of an earlier text with its id. In JSONL and Parquet a list without names is the
    # empty label-set. `group` is the column that says the group of each text; other parameters are those of
    # `read_table`.
    more = () if group is None else (group,)
    asked = _asked(text, labels, id=id, separator=separator, numeric_labels=numeric_labels, more=more)
    asked = asked.expanded(as_path(path), encoding)

    def convert(parsed: _Parsed) -> Event:
        cells, place, text = parsed.row.cells, parsed.place, parsed.text
        identity = cells.get(asked.id or "id")
        name = None if is_missing(identity) else str(identity)
        if not text and not parsed.is_labelled:
            raise CorpusError(f"{place} must have a text, labels, or both. Got neither.")
        if not text and name is None:
            raise CorpusError(f"{place} has labels and no text, so it must have the id of an earlier text. Got none.")
        of = _filled(cells.get(group), group, place) if group is not None and text else None
        return Event(place, name, text or None, frozenset(parsed.labels) if parsed.is_labelled else None, of)

    yield from _converted(as_path(path), encoding, asked, on_error, convert)


def _rows(reader: TableReader, asked: _Asked) -> tuple[list[Row], list[str]]:
    """Return the rows with the columns that are asked for, and what is wrong with those that cannot be read."""
    roles = asked.columns()
    rows: list[Row] = []
    problems: list[str] = []
    headings: dict[str, None] = {}

    def choose(names: list[str]) -> list[str]:
        headings.update(dict.fromkeys(names))
        if names:
            _check_columns(roles, names, reader.name)
        return [name for name in headings if name in roles or name == "id"]

    for row in reader.rows(choose):
        if row.problem is not None:
            problems.append(f"{reader.place(row)} {row.problem}")
            continue
        headings.update(dict.fromkeys(row.cells))
        rows.append(row._replace(cells={name: row.cells[name] for name in row.cells if name in roles or name == "id"}))
    if rows:
        _check_columns(roles, list(headings), reader.name)
    return rows, problems


def _check_columns(roles: Mapping[str, str], headings: list[str], file: str) -> None:
    for column, role in roles.items():
        if column not in headings:
            hint = " Its first line looks like data: has the file no headings?" if looks_like_data(headings) else ""
            if role == "columns":
                raise CorpusError(f"{file!r} must have a column {column!r}. It has {headings}.{hint}")
            raise CorpusError(
                f"The {role!r} column of load must be one of {headings}, the columns of {file!r}. "
                f"Got {column!r} instead: say which one it is ({_OPTIONS[role]} on the command line).{hint}"
            )


def _filled(cell: Any, column: str, place: str) -> str:
    """Return what a further column says, which must be something."""
    value, problem = group_of(cell, column)
    if problem is not None:
        raise CorpusError(f"{place} {problem}")
    return value


def _check_ids(texts: list[_LabelledText]) -> None:
    """Raise if two rows have one id, and say which."""
    seen: dict[str, _LabelledText] = {}
    for one in texts:
        other = seen.setdefault(one.id, one)
        if other is not one:
            raise CorpusError(f"Ids must be unique. Got {one.id!r:.60} twice: {other.place} and {one.place}.")


def _check_part_files(paths: Mapping[str, str | Path]) -> dict[str | None, Path]:
    if not paths or not set(paths) <= set(PARTS):
        raise InvalidInputError(
            f"The files of load must be named by part, of {list(PARTS)}. Got {list(paths)} instead."
        )
    return {name: as_path(path) for name, path in paths.items()}


def _part_name(cell: Any, place: str) -> str:
    name = str(cell).strip().lower()
    name = _PART_ALIASES.get(name, name)
    if name not in PARTS:
        raise CorpusError(f"{place} must have a part of {list(PARTS)}. Got {name!r} instead.")
    return name
