"""A user's own data: a table with named text and label columns."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from surelabel.corpora.corpus import PARTS, Corpus, Provenance
from surelabel.corpora.places import as_path, sha256
from surelabel.exceptions import CorpusError, DataWarning, InvalidInputError
from surelabel.tables.reading import SUFFIXES, Partition, Row, TableReader, format_of
from surelabel.tables.texts import check_encoding, group_of, join_texts, looks_like_data

FORMATS = tuple(suffix for suffix, kind in SUFFIXES.items() if kind != "txt")

_PART_ALIASES = {"dev": "validation", "val": "validation", "valid": "validation", "training": "train"}
_INDICATORS = {"0": False, "1": True, "false": False, "true": True, "0.0": False, "1.0": True, "": False}

# What the command line calls the parameters of `read_table`.
_OPTIONS = {"text": "--text", "labels": "--labels", "id": "--id", "part": "--split-column"}
# Marks that people put between label names, and the least share of cells with one of them that leads to a warning.
_SEPARATORS, _SUSPICIOUS_SHARE = (",", ";", "|"), 0.02


def read_table(
    path: str | Path | Mapping[str, str | Path],
    *,
    text: str | Sequence[str] = "text",
    labels: str | Sequence[str] = "labels",
    separator: str | None = ",",
    id: str | None = None,  # noqa: A002  # the column's name in most data
    part: str | None = None,
    encoding: str = "utf-8",
    numeric_labels: bool = False,
    on_error: str = "stop",
    columns: Sequence[str] = (),
    name: str | None = None,
) -> Corpus:
    r"""Read a corpus from a JSONL, CSV, TSV, Parquet or XLSX file, compressed with gzip or not.

    Parameters
    ----------
    path : path, or mapping of part name to path
        ``{"train": "a.csv", "test": "b.csv"}`` reads one file per part.
    text : str or list of str, default="text"
        The text column, or several to join by line breaks.
    labels : str or list of str, default="labels"
        A column that holds lists of label names or separated names; or several columns of 0 and 1, whose
        names are the labels.
    separator : str or None, default=","
        What separates label names in a cell. None: a cell is one label. If no cell has it and several have
        another usual one, a DataWarning says so.
    id : str, optional
        A column of unique ids. Default: "id" if there is such a column, else the row's number from 1.
    part : str, optional
        A column that says train, validation, calibration or test.
    encoding : str, default="utf-8"
    numeric_labels : bool, default=False
        Whether numbers are label names. If not, a label column of numbers is an error.
    on_error : {"stop", "skip"}
        Whether a row that cannot be read is an error, or is left out with a DataWarning that names it.
    columns : sequence of str
        Further columns to keep with the texts, such as a source or a date. Each row must have a value in them.
    name : str, optional
        The corpus's name, default the file's.

    Returns
    -------
    Corpus
        All texts in the training part, unless the data says otherwise.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "news.csv"
    >>> _ = path.write_text("body,tags\nOil rose,oil\nGold and oil fell,gold;oil\n")
    >>> corpus = read_table(path, text="body", labels="tags", separator=";")
    >>> corpus.label_names, corpus.label_sets[0]
    (('gold', 'oil'), frozenset({'oil'}))
    """
    files = {None: as_path(path)} if not isinstance(path, Mapping) else _check_part_files(path)
    check_encoding(encoding)
    if on_error not in {"stop", "skip"}:
        raise InvalidInputError(f"The 'on_error' of load must be 'stop' or 'skip'. Got {on_error!r} instead.")
    asked = _Asked(
        tuple([text] if isinstance(text, str) else text),
        tuple([labels] if isinstance(labels, str) else labels),
        id,
        part,
        separator,
        is_one_column=isinstance(labels, str),
        numeric_labels=numeric_labels,
        more=tuple(dict.fromkeys(columns)),
    )
    for role, named in (("text", asked.text), ("labels", asked.labels)):
        if not named:
            raise InvalidInputError(f"The {role!r} parameter of load must name at least one column. Got none instead.")
    texts: list[_LabelledText] = []
    for part_name, file in files.items():
        texts += _read_file(file, part_name, encoding, asked, skip=on_error == "skip")
    _check_ids(texts)
    parts = np.array([each.part for each in texts], dtype=object)
    first = next(iter(files.values()))
    return Corpus.from_label_sets(
        name or first.name.partition(".")[0],
        [each.text for each in texts],
        [each.labels for each in texts],
        ids=[each.id for each in texts],
        label_names=None if asked.is_one_column else list(labels),
        parts={each: np.flatnonzero(parts == each) for each in PARTS if (parts == each).any()} or None,
        provenance=Provenance(
            source=", ".join(file.name for file in files.values()),
            rule=f"text from {list(asked.text)}, labels from {labels!r}",
            checksum=sha256(*files.values()),
        ),
        columns={column: [each.more[k] for each in texts] for k, column in enumerate(asked.more)},
    )


class _Asked(NamedTuple):
    """Which columns hold what."""

    text: tuple[str, ...]
    labels: tuple[str, ...]
    id: str | None
    part: str | None
    separator: str | None
    is_one_column: bool
    numeric_labels: bool
    more: tuple[str, ...] = ()

    def columns(self) -> dict[str, str]:
        """Return the role of each column that must be there."""
        roles = dict.fromkeys(self.text, "text") | dict.fromkeys(self.labels, "labels")
        roles |= {column: role for role, column in (("id", self.id), ("part", self.part)) if column}
        return dict.fromkeys(self.more, "columns") | roles


class _LabelledText(NamedTuple):
    text: str
    labels: set[str]
    id: str
    part: str
    place: str
    more: tuple[str, ...] = ()


def _read_file(
    path: Path, part_name: str | None, encoding: str, asked: _Asked, *, skip: bool
) -> Iterator[_LabelledText]:
    """Yield the texts of a file with their labels; warn of rows that are left out."""
    kind = format_of(path)
    if kind is None or kind == "txt":
        raise CorpusError(f"A corpus file must end in one of {list(FORMATS)} (or these and .gz). Got {path.name!r}.")
    reader = TableReader(Partition(str(path), kind), encoding)
    rows, problems = _rows(reader, asked)
    cells = [(row, row.cells.get(asked.labels[0])) for row in rows]
    if asked.is_one_column:
        if not asked.numeric_labels:
            _check_not_numeric(cells, asked.labels[0], reader)
        _warn_of_separators([cell for _, cell in cells], asked.labels[0], asked.separator, path)
    prefix = "" if part_name is None else f"{part_name}-"
    for row in rows:
        try:
            yield _labelled_text(reader, row, asked, prefix, part_name or "train")
        except CorpusError as error:
            problems.append(str(error))
        if problems and not skip:
            raise CorpusError(problems[0])
    if not rows and problems and not skip:
        raise CorpusError(problems[0])
    if not rows:
        raise CorpusError(f"{path.name!r} must have at least one text. Got an empty file instead.")
    if problems:
        shown = " ".join(problems[:3]) + (f" And {len(problems) - 3:,} more." if len(problems) > 3 else "")
        warnings.warn(f"{len(problems):,} rows of {path.name!r} are left out. {shown}", DataWarning, stacklevel=4)


class Event(NamedTuple):
    """A row of a stream: a text that arrives, with its labels if they are known; or the labels of an earlier text.

    `labels` are None if they are not known yet, `text` is None if only labels arrive; `group` is that of the text, if
    a column of groups was named.
    """

    place: str
    id: str | None
    text: str | None
    labels: frozenset[str] | None
    group: str | None = None


def read_events(
    path: str | Path,
    *,
    text: str | Sequence[str] = "text",
    labels: str | Sequence[str] = "labels",
    separator: str | None = ",",
    id: str | None = None,  # noqa: A002  # the column's name in most data
    encoding: str = "utf-8",
    numeric_labels: bool = False,
    on_error: str = "stop",
    group: str | None = None,
) -> Iterator[Event]:
    r"""Yield the rows of a table as a stream of texts and of labels that become known.

    A row with a text and labels is both. A row whose label cell is empty is a text that waits for its labels; a row
    without a text has the labels of an earlier text with its id. In JSONL and Parquet a list without names is the empty
    label-set. `group` is the column that says the group of each text; other parameters are those of `read_table`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "stream.csv"
    >>> _ = path.write_text("id,text,labels\na,Oil rose,oil\nb,Gold fell,\nb,,gold\n")
    >>> [(event.id, event.text, event.labels) for event in read_events(path)]
    [('a', 'Oil rose', frozenset({'oil'})), ('b', 'Gold fell', None), ('b', None, frozenset({'gold'}))]
    """
    file = as_path(path)
    columns = [
        (labels,) if isinstance(labels, str) else tuple(labels),
        (text,) if isinstance(text, str) else tuple(text),
    ]
    more = () if group is None else (group,)
    asked = _Asked(columns[1], columns[0], id, None, separator, isinstance(labels, str), numeric_labels, more)
    kind = format_of(file)
    if kind is None or kind == "txt":
        raise CorpusError(f"A stream must be a file that ends in one of {list(FORMATS)}. Got {file.name!r}.")
    reader = TableReader(Partition(str(file), kind), encoding)
    rows, problems = _rows(reader, asked)
    for row in rows:
        try:
            yield _event(reader, row, asked)
        except CorpusError as error:
            problems.append(str(error))
        if problems and on_error != "skip":
            break
    if problems and on_error != "skip":
        raise CorpusError(problems[0])
    if problems:
        warnings.warn(f"{len(problems):,} rows are left out. {problems[0]}", DataWarning, stacklevel=2)


def _event(reader: TableReader, row: Row, asked: _Asked) -> Event:
    """Return what a row of a stream says, or raise."""
    place = reader.place(row)
    cells = [row.cells.get(column) for column in asked.labels]
    text, wrong = join_texts([row.cells.get(column) for column in asked.text])
    if wrong is not None:
        raise CorpusError(f"{place} must hold text. Got {wrong} instead.")
    identity = row.cells.get(asked.id or "id")
    name = None if _is_missing(identity) else str(identity)
    names = None
    if not all(_is_missing(cell) for cell in cells):
        pairs = zip(asked.labels, cells, strict=True)
        several = {column for column, cell in pairs if not asked.is_one_column and _is_present(cell, column, place)}
        names = frozenset(_as_label_set(cells[0], asked.separator, place) if asked.is_one_column else several)
    if not text and names is None:
        raise CorpusError(f"{place} must have a text, labels, or both. Got neither.")
    if not text and name is None:
        raise CorpusError(f"{place} has labels and no text, so it must have the id of an earlier text. Got none.")
    group = _filled(row.cells.get(asked.more[0]), asked.more[0], place) if asked.more and text else None
    return Event(place, name, text or None, names, group)


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


def _labelled_text(reader: TableReader, row: Row, asked: _Asked, prefix: str, part: str) -> _LabelledText:
    """Return what a row says, or raise."""
    place = reader.place(row)
    text, wrong = join_texts([row.cells.get(column) for column in asked.text])
    if wrong is not None:
        raise CorpusError(f"{place} must hold text. Got {wrong} instead.")
    if asked.is_one_column:
        names = _as_label_set(row.cells.get(asked.labels[0]), asked.separator, place)
    else:
        names = {column for column in asked.labels if _is_present(row.cells.get(column), column, place)}
    identity = row.cells.get(asked.id or "id")
    if asked.part is not None:
        part = _part_name(row.cells.get(asked.part), place)
    more = tuple(_filled(row.cells.get(column), column, place) for column in asked.more)
    known = f"{prefix}{row.number}" if identity is None else str(identity)
    return _LabelledText(text, names, known, part, place, more)


def _filled(cell: Any, column: str, place: str) -> str:
    """Return what a further column says, which must be something."""
    value, problem = group_of(cell, column)
    if problem is not None:
        raise CorpusError(f"{place} {problem}")
    return value


def _check_ids(texts: list[_LabelledText]) -> None:
    """Raise if two rows have one id, and say which."""
    seen: dict[str, _LabelledText] = {}
    for each in texts:
        other = seen.setdefault(each.id, each)
        if other is not each:
            raise CorpusError(f"Ids must be unique. Got {each.id!r:.60} twice: {other.place} and {each.place}.")


def _check_part_files(paths: Mapping[str, str | Path]) -> dict[str | None, Path]:
    unknown = [name for name in paths if name not in PARTS]
    if unknown or not paths:
        raise InvalidInputError(
            f"The files of load must be named by part, of {list(PARTS)}. Got {list(paths)} instead."
        )
    return {name: as_path(path) for name, path in paths.items()}


def _check_not_numeric(cells: list[tuple[Row, Any]], column: str, reader: TableReader) -> None:
    """Raise if a label column holds numbers: a rating or a class code is seldom a label's name."""
    filled = [(row, cell) for row, cell in cells if not _is_missing(cell)]
    numbers = [(row, cell) for row, cell in filled if _is_number(cell)]
    typed = [(row, cell) for row, cell in numbers if not isinstance(cell, str)]
    if typed or (numbers and len(numbers) == len(filled)):
        row, cell = (typed or numbers)[0]
        raise CorpusError(
            f"The label column {column!r} of {reader.name!r} must hold label names (lists, or separated names). "
            f"{reader.place(row)} has the number {cell!r}; if numbers are the names, say numeric_labels=True "
            "(--numeric-labels)."
        )


def _warn_of_separators(cells: list[Any], column: str, separator: str | None, path: Path) -> None:
    """Warn where no cell has the separator and several have another one: "a;b" would be one label."""
    filled = [cell for cell in cells if isinstance(cell, str) and cell]
    if separator is None or any(separator in cell for cell in filled):
        return
    for other in _SEPARATORS:
        count = sum(other in cell for cell in filled)
        if other != separator and count > max(1, _SUSPICIOUS_SHARE * len(filled)):
            example = next(cell for cell in filled if other in cell)
            warnings.warn(
                f"No cell of the label column {column!r} of {path.name!r} has {separator!r} between labels, but "
                f"{count:,} of {len(filled):,} have {other!r}, such as {example!r:.60}: each of them counts as one "
                f"label. If they are several, say separator={other!r} (--separator {other!r} on the command line).",
                DataWarning,
                stacklevel=5,
            )
            return


def _as_label_set(cell: Any, separator: str | None, place: str) -> set[str]:
    """Turn a list or a separated string into label names."""
    if _is_missing(cell):
        return set()
    if isinstance(cell, str):
        names = [cell] if separator is None else cell.split(separator)
    elif isinstance(cell, list | tuple):
        if any(isinstance(item, list | dict) or item is None for item in cell):
            raise CorpusError(f"{place} must have names as labels. Got {cell!r:.60} instead.")
        names = [str(item) for item in cell]
    elif _is_number(cell):
        names = [str(cell)]
    else:
        raise CorpusError(f"{place} must have a list or separated names as labels. Got {type(cell).__name__} instead.")
    return {name.strip() for name in names if name.strip()}


def _is_present(cell: Any, column: str, place: str) -> bool:
    """Read a cell of 0 or 1."""
    present = _INDICATORS.get("" if _is_missing(cell) else str(cell).strip().lower())
    if present is None:
        raise CorpusError(
            f"{place} must have 0 or 1 in the label column {column!r}, as one of several columns. "
            f"Got {cell!r:.40} instead."
        )
    return present


def _part_name(cell: Any, place: str) -> str:
    name = str(cell).strip().lower()
    name = _PART_ALIASES.get(name, name)
    if name not in PARTS:
        raise CorpusError(f"{place} must have a part of {list(PARTS)}. Got {name!r} instead.")
    return name


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _is_missing(cell: Any) -> bool:
    return cell is None or cell == "" or _is_nan(cell)


def _is_number(cell: Any) -> bool:
    """Say whether a cell is one number, written or stored."""
    if isinstance(cell, str):
        try:
            float(cell)
        except ValueError:
            return False
        return True
    return isinstance(cell, int | float)
