"""A user's own data: JSONL, CSV, TSV or Parquet with named text and label columns."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import math
import warnings
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surelabel._core.extras import import_extra
from surelabel.corpora.corpus import PARTS, Corpus, Provenance
from surelabel.corpora.places import as_path, sha256
from surelabel.corpora.textfiles import decode, delimiter_of
from surelabel.exceptions import CorpusError, DataWarning, InvalidInputError

FORMATS = (".jsonl", ".ndjson", ".csv", ".tsv", ".parquet")

_PART_ALIASES = {"dev": "validation", "val": "validation", "valid": "validation", "training": "train"}
_INDICATORS = {"0": False, "1": True, "false": False, "true": True, "0.0": False, "1.0": True, "": False}

# What the command line calls the parameters of `read_table`.
_OPTIONS = {"text": "--text", "labels": "--labels", "id": "--id", "part": "--split-column"}
# Marks that people put between label names, and the least share of cells that must have one to be told of.
_SEPARATORS, _SUSPICIOUS_SHARE = (",", ";", "|"), 0.02

_Table = dict[str, list[Any]]


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
    name: str | None = None,
) -> Corpus:
    r"""Read a corpus from a JSONL, CSV, TSV or Parquet file, compressed with gzip or not.

    Parameters
    ----------
    path : path, or mapping of part name to path
        ``{"train": "a.csv", "test": "b.csv"}`` reads one file a part.
    text : str or list of str, default="text"
        The text column, or several to join by line breaks.
    labels : str or list of str, default="labels"
        A column that holds lists of label names or separated names; or several columns of 0 and 1, whose
        names are the labels.
    separator : str or None, default=","
        What separates label names in a cell. None: a cell is one label. Where no cell has it and several have
        another usual one, a DataWarning says so.
    id : str, optional
        A column of unique ids. Default: "id" where there is such a column, else the row's number from 0.
    part : str, optional
        A column that says train, validation, calibration or test.
    encoding : str, default="utf-8"
    numeric_labels : bool, default=False
        Whether numbers are label names. If not, a label column of numbers is an error.
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
    _check_encoding(encoding)
    text_columns = [text] if isinstance(text, str) else list(text)
    rows: dict[str, list[Any]] = {"texts": [], "labels": [], "ids": [], "parts": []}
    for part_name, file in files.items():
        table = _read(file, encoding)
        rows["texts"] += _texts(table, text_columns, file)
        rows["labels"] += _label_sets(table, labels, separator, file, numeric_labels=numeric_labels)
        n_texts = len(rows["texts"]) - len(rows["parts"])
        rows["ids"] += _ids(table, id, n_texts, file, prefix="" if part_name is None else f"{part_name}-")
        rows["parts"] += [part_name or "train"] * n_texts if part is None else _part_names(table, part, file)
    first = next(iter(files.values()))
    parts = np.array(rows["parts"], dtype=object)
    return Corpus.from_label_sets(
        name or first.name.partition(".")[0],
        rows["texts"],
        rows["labels"],
        ids=rows["ids"],
        label_names=None if isinstance(labels, str) else list(labels),
        parts={each: np.flatnonzero(parts == each) for each in PARTS if (parts == each).any()} or None,
        provenance=Provenance(
            source=", ".join(file.name for file in files.values()),
            rule=f"text from {text_columns}, labels from {labels!r}",
            checksum=sha256(*files.values()),
        ),
    )


def _check_part_files(paths: Mapping[str, str | Path]) -> dict[str | None, Path]:
    unknown = [name for name in paths if name not in PARTS]
    if unknown or not paths:
        raise InvalidInputError(
            f"The files of load must be named by part, of {list(PARTS)}. Got {list(paths)} instead."
        )
    return {name: as_path(path) for name, path in paths.items()}


def _check_encoding(encoding: str) -> None:
    try:
        codecs.lookup(encoding)
    except (LookupError, TypeError):
        raise InvalidInputError(
            f"The 'encoding' parameter of load must name a text encoding, e.g. 'utf-8' or 'latin-1'. "
            f"Got {encoding!r} instead."
        ) from None


def _read(path: Path, encoding: str) -> _Table:
    """Read a file into columns."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compressed = suffixes[-1:] == [".gz"]
    suffix = (suffixes[:-1] if compressed else suffixes)[-1:] or [""]
    if suffix[0] not in FORMATS:
        raise CorpusError(f"A corpus file must end in one of {list(FORMATS)} (or these and .gz). Got {path.name!r}.")
    data = _content(path, compressed=compressed)
    if suffix[0] == ".parquet":
        return _read_parquet(data, path)
    string = decode(data, path.name, encoding)
    if suffix[0] in {".jsonl", ".ndjson"}:
        return _read_jsonl(string, path)
    usual = "," if suffix[0] == ".csv" else "\t"
    return _read_csv(string, path, delimiter_of(string.lstrip("\r\n").partition("\n")[0], usual))


def _content(path: Path, *, compressed: bool) -> bytes:
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if compressed else data
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise CorpusError(f"{path.name!r} must be a whole gzip file. Got a damaged one instead: {error}.") from error
    except OSError as error:
        raise CorpusError(f"{path.name!r} cannot be read: {error.strerror or error}.") from error


def _read_jsonl(string: str, path: Path) -> _Table:
    """Read one JSON object a line; a key that a line lacks is None there."""
    records: list[dict[str, Any]] = []
    for number, line in enumerate(io.StringIO(string, newline="\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise CorpusError(f"Line {number} of {path.name!r} must be JSON. Got an error instead: {error}.") from error
        if not isinstance(record, dict):
            raise CorpusError(
                f"Line {number} of {path.name!r} must be a JSON object. Got {type(record).__name__} instead."
            )
        records.append(record)
    columns = dict.fromkeys(key for record in records for key in record)
    return {column: [record.get(column) for record in records] for column in columns}


def _read_csv(string: str, path: Path, delimiter: str) -> _Table:
    """Read every cell as a string: "NA" and "007" are labels and ids like others."""
    pandas = import_extra("pandas", "corpora", "A table of texts")
    try:
        frame = pandas.read_csv(
            io.StringIO(string),
            sep=delimiter,
            dtype=str,
            keep_default_na=False,
            na_filter=False,
            index_col=False,
        )
    except pandas.errors.EmptyDataError:
        return {}
    except (pandas.errors.ParserError, ValueError) as error:
        raise CorpusError(
            f"{path.name!r} must be a table with {delimiter!r} between columns. Got an error instead: {error}."
        ) from error
    return {str(column): frame[column].tolist() for column in frame.columns}


def _read_parquet(data: bytes, path: Path) -> _Table:
    pyarrow, parquet = (import_extra(name, "corpora", "Parquet") for name in ("pyarrow", "pyarrow.parquet"))
    try:
        table: _Table = parquet.read_table(io.BytesIO(data)).to_pydict()
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"{path.name!r} must be a Parquet file. Got an error instead: {error}.") from error
    return table


def _column(table: _Table, column: str, role: str, path: Path) -> list[Any]:
    if not table:
        raise CorpusError(f"{path.name!r} must have one text at least. Got an empty file instead.")
    if column not in table:
        raise CorpusError(
            f"The {role!r} column of load must be one of {list(table)}, the columns of {path.name!r}. "
            f"Got {column!r} instead: say which one it is ({_OPTIONS[role]} on the command line)."
        )
    return table[column]


def _texts(table: _Table, columns: list[str], path: Path) -> list[str]:
    """Join the text columns; a missing cell is an empty text."""
    if not columns:
        raise InvalidInputError("The 'text' parameter of load must name one column at least. Got none instead.")
    cells = [_column(table, column, "text", path) for column in columns]
    for column, values in zip(columns, cells, strict=True):
        for row, value in enumerate(values):
            if not (value is None or isinstance(value, str) or _is_nan(value)):
                raise CorpusError(
                    f"The text column {column!r} of {path.name!r} must hold text. "
                    f"Got {type(value).__name__} {value!r:.40} in row {row + 1} instead."
                )
    rows = zip(*cells, strict=True)
    return ["\n".join(value for value in row if isinstance(value, str) and value) for row in rows]


def _label_sets(
    table: _Table, labels: str | Sequence[str], separator: str | None, path: Path, *, numeric_labels: bool
) -> list[set[str]]:
    if not isinstance(labels, str):
        return _indicator_sets(table, list(labels), path)
    cells = _column(table, labels, "labels", path)
    if not numeric_labels:
        _check_not_numeric(cells, labels, path)
    _warn_of_separators(cells, labels, separator, path)
    return [_as_label_set(cell, separator, f"row {row + 1} of {path.name!r}") for row, cell in enumerate(cells)]


def _check_not_numeric(cells: list[Any], column: str, path: Path) -> None:
    """Raise where a label column holds numbers: a rating or a class code is seldom a label's name."""
    filled = [(row, cell) for row, cell in enumerate(cells) if not _is_missing(cell)]
    numbers = [(row, cell) for row, cell in filled if _is_number(cell)]
    typed = [(row, cell) for row, cell in numbers if not isinstance(cell, str)]
    if typed or (numbers and len(numbers) == len(filled)):
        row, cell = (typed or numbers)[0]
        raise CorpusError(
            f"The label column {column!r} of {path.name!r} must hold label names "
            "(lists, or separated names). "
            f"Got the number {cell!r} in row {row + 1} instead; if numbers are the "
            "names, say numeric_labels=True (--numeric-labels)."
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
            raise CorpusError(f"The labels in {place} must be names. Got {cell!r:.60} instead.")
        names = [str(item) for item in cell]
    elif _is_number(cell):
        names = [str(cell)]
    else:
        raise CorpusError(
            f"The labels in {place} must be a list or separated names. Got {type(cell).__name__} instead."
        )
    return {name.strip() for name in names if name.strip()}


def _indicator_sets(table: _Table, columns: list[str], path: Path) -> list[set[str]]:
    """Read columns of 0 and 1."""
    if not columns:
        raise InvalidInputError("The 'labels' parameter of load must name one column at least. Got none instead.")
    sets: list[set[str]] = [set() for _ in _column(table, columns[0], "labels", path)]
    for column in columns:
        for row, cell in enumerate(_column(table, column, "labels", path)):
            present = _INDICATORS.get("" if _is_missing(cell) else str(cell).strip().lower())
            if present is None:
                raise CorpusError(
                    f"The label column {column!r} of {path.name!r} must hold 0 and 1, as "
                    "one of several columns. "
                    f"Got {cell!r:.40} in row {row + 1} instead."
                )
            if present:
                sets[row].add(column)
    return sets


def _ids(table: _Table, column: str | None, n_texts: int, path: Path, *, prefix: str) -> list[str]:
    if column is None and "id" not in table:
        return [f"{prefix}{row}" for row in range(n_texts)]
    return [str(value) for value in _column(table, column or "id", "id", path)]


def _part_names(table: _Table, column: str, path: Path) -> list[str]:
    names = [str(value).strip().lower() for value in _column(table, column, "part", path)]
    names = [_PART_ALIASES.get(name, name) for name in names]
    for row, name in enumerate(names):
        if name not in PARTS:
            raise CorpusError(
                f"The part column {column!r} of {path.name!r} must hold names of {list(PARTS)}. "
                f"Got {name!r} in row {row + 1} instead."
            )
    return names


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
