"""A user's table as a corpus: text, label, id and part columns; also the forms of Annif."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from surelabel._core import progress
from surelabel._core.files import sha256
from surelabel._core.formatting import count
from surelabel.corpora.corpus import PARTS, Corpus, Provenance
from surelabel.corpora.labels import (
    Separation,
    as_indicators,
    as_label_set,
    columns_of,
    separation,
    suspicious_names,
)
from surelabel.exceptions import CorpusError, DataWarning, InvalidInputError
from surelabel.tables.annif import has_documents, open_rows
from surelabel.tables.columns import Columns, TextRow, clean_name, filled, is_file, is_missing, text_rows
from surelabel.tables.read import SUFFIXES, check_encoding, check_headings, file_name, format_of

FORMATS = tuple(suffix for suffix, kind in SUFFIXES.items() if kind != "txt")

_ALIASES = {"dev": "validation", "val": "validation", "valid": "validation", "training": "train", "cal": "calibration"}
_ANNIF_COLUMNS = ("subject_uris", "subjects")


def read_table(
    path: str | Path | Mapping[str, str | Path],
    *,
    text: str | Sequence[str] = "text",
    labels: str | Sequence[str] = "labels",
    separator: str | None = "auto",
    id: str | None = None,  # noqa: A002  # the column's name in most data
    part: str | None = None,
    columns: Sequence[str] = (),
    scores: str | None = None,
    on_error: str = "stop",
    encoding: str = "utf-8",
    require_labels: bool = True,
    name: str | None = None,
) -> Corpus:
    """Read a corpus from JSONL, CSV, TSV, Parquet or XLSX (JSONL, CSV and TSV also as .gz or .xz), or from a URL.

    Annif's own forms are recognised: TSV of text and URIs, CSV with subject_uris, a folder of .txt files.
    Tagged texts are in the part "train" unless a part column says otherwise. `Corpus.notes` says how labels were read.

    Parameters
    ----------
    path : path, or mapping of part name to path
        ``{"train": "a.csv", "test": "b.csv"}`` reads one file per part.
    text : str or list of str, default="text"
        The text column, or several to join by line breaks.
    labels : str or list of str, default="labels"
        A column with lists of label names, or separated names; or several columns of 0 and 1, named like the labels.
        ``"first..last"`` stands for all columns between two, ``"topic_*"`` for all that match. Null or absent labels
        mean that the text is not tagged; an empty list or an empty cell means that no label applies.
    separator : str or None, default="auto"
        The separator of label names in a cell; by default the one of ``,``, ``;`` and ``|`` that most cells have.
        None: a cell is one label.
    id : str, optional
        A column of unique ids. Default: "id" if there is such a column, otherwise the row's number from 1.
    part : str, optional
        A column with train, validation, filing, calibration or test.
    columns : sequence of str
        Further columns to keep, such as a source or a date; each row must have a value.
    scores : str, optional
        The column with the scores of a tagger, or a file of scores by id (see `tables.scores`).
    on_error : {"stop", "skip"}
        Whether an unreadable row is an error, or is skipped with a DataWarning that names it.
    require_labels : bool, default=True
        Whether the file must have the label columns. False also reads files without labels.
    name : str, optional
        The corpus's name; default the file's.
    """
    sources = _sources(path)
    asked = (labels,) if isinstance(labels, str) else tuple(labels)
    texts = Columns(text if isinstance(text, str) else tuple(text), id, group=part, scores=scores)
    _check_options(texts.text, asked, separator, on_error)
    check_encoding(encoding)
    rows: list[tuple[str | None, TextRow]] = []
    for own, source in sources.items():
        found, names, headings = _read(source, own, texts, columns, asked, encoding)
        rows += found
        if headings:
            needed = (*texts.needed, *columns, *(names if require_labels else ()))
            check_headings(headings, needed, file_name(source))
    is_one = isinstance(labels, str) and len(names) == 1
    split = _separation([row for _, row in rows], names, separator, is_one=is_one)
    records, problems = [], []
    for own, row in rows:
        if row.problem is not None:
            problems.append(row.problem)
            continue
        cells = row.cells
        try:
            label_set = as_label_set(cells.get(names[0]), split.separator) if is_one else as_indicators(cells, names)
            kept = {column: filled(cells.get(column), column) for column in columns}
            records.append((row, label_set, kept, _part(own or row.group or "train")))
        except ValueError as error:
            problems.append(f"{row.place} {error}")
    files = ", ".join(map(file_name, sources.values()))
    _report(problems, on_error, files)
    if not records:
        raise CorpusError(f"{files!r} must have at least one text. Got none.")
    notes = [split.note]
    if scores is not None and is_file(scores):
        n_found = sum(row.scores is not None for row, *_ in records)
        notes.append(f"Scores of {count(n_found)} of {count(len(records))} texts come from {file_name(scores)}.")
        if n_found == 0:
            raise CorpusError(f"The ids of {file_name(scores)!r} must be those of the texts. Got none of them.")
    first = Path(next(iter(sources.values()))).expanduser()
    corpus = Corpus.from_label_sets(
        name or files.partition(".")[0],
        [row.text for row, *_ in records],
        [label_set for _, label_set, *_ in records],
        [row.id for row, *_ in records],
        {column: [kept[column] for _, _, kept, _ in records] for column in columns},
        label_names=None if is_one else list(dict.fromkeys(map(clean_name, names))),
        provenance=Provenance(
            files,
            f"texts from {', '.join(texts.text)}; labels from {labels if isinstance(labels, str) else list(labels)}",
            checksum=sha256(first.resolve()) if len(sources) == 1 and first.is_file() else None,
            notes=tuple(notes),
        ),
        scores=None if scores is None else [row.scores for row, *_ in records],
    )
    for message in (*filter(None, [split.warning]), *suspicious_names(corpus.label_names)):
        warnings.warn(message, DataWarning, stacklevel=2)
    tagged = [(k, one) for k, (_, label_set, _, one) in enumerate(records) if label_set is not None]
    return corpus.with_parts({name: [k for k, one in tagged if one == name] for name in PARTS})


def _sources(path: str | Path | Mapping[str, str | Path]) -> dict[str | None, str]:
    """Return files by the part that each of them is (None: as its rows say)."""
    if isinstance(path, Mapping):
        unknown = [name for name in path if name not in PARTS]
        if unknown or not path:
            raise InvalidInputError(f"Files must be named by part: {', '.join(PARTS)}. Got {(*unknown, None)[0]!r}.")
        return {name: str(file) for name, file in path.items()}
    if format_of(path) in {None, "txt"} and not has_documents(path):
        raise CorpusError(f"A corpus must be a file that ends in {', '.join(FORMATS)}. Got {file_name(path)!r}.")
    return {None: str(path)}


def _check_options(text: Sequence[str], labels: Sequence[str], separator: Any, on_error: str) -> None:
    """Raise if options make no sense, before anything is read."""
    if not labels:
        raise InvalidInputError("At least one label column must be named. Got none.")
    if both := sorted(set(text) & set(labels)):
        raise InvalidInputError(f"The text and the labels must be different columns. Got {both[0]!r} for both.")
    if separator is not None and (not isinstance(separator, str) or not separator):
        raise InvalidInputError(f"The separator must be text such as ';', or None. Got {separator!r}.")
    if on_error not in {"stop", "skip"}:
        raise InvalidInputError(f"The on_error must be 'stop' or 'skip'. Got {on_error!r}.")


def _read(
    source: str, own: str | None, texts: Columns, others: Sequence[str], labels: tuple[str, ...], encoding: str
) -> tuple[list[tuple[str | None, TextRow]], tuple[str, ...], list[str]]:
    """Return the texts of a file with the cells that are needed, its label columns without patterns, and headings."""
    needed, id_column = (*texts.needed, *others), texts.id or "id"
    found = open_rows(source, encoding=encoding, needed=needed)
    rows: list[tuple[str | None, TextRow]] = []
    headings: dict[str, None] = {}
    with progress.step("reading texts") as advance:
        for row in text_rows(found, texts):
            advance()
            if row.cells and not headings:
                labels = _label_columns(labels, list(row.cells), {*needed, id_column})
            headings.update(dict.fromkeys(row.cells))
            name = f"{own}-{row.number}" if own and is_missing(row.cells.get(id_column)) else row.id
            kept = {key: row.cells[key] for key in row.cells if key in labels or key in others}
            rows.append((own, row._replace(id=name, cells=kept)))
    return rows, labels, list(headings)


def _label_columns(labels: tuple[str, ...], headings: list[str], taken: set[str]) -> tuple[str, ...]:
    """Resolve patterns of label columns; Annif's columns stand in for the default one."""
    found = tuple(columns_of(labels, headings, taken))
    if found == ("labels",) and "labels" not in headings:
        return next(((column,) for column in _ANNIF_COLUMNS if column in headings), found)
    return found


def _separation(rows: Sequence[TextRow], names: Sequence[str], separator: str | None, *, is_one: bool) -> Separation:
    """Return how labels are written."""
    if is_one:
        given = " " if names[0] == "subject_uris" and separator == "auto" else separator
        return separation((row.cells.get(names[0]) for row in rows), names[0], given)
    shown = ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")
    return Separation(None, f"Labels are the {count(len(names))} columns {shown}.")


def _part(cell: str) -> str:
    """Return the part that a cell names."""
    name = cell.lower()
    if (part := _ALIASES.get(name, name)) not in PARTS:
        raise ValueError(f"must have a part: {', '.join(PARTS)}. Got {name!r:.40}.")
    return part


def _report(problems: Sequence[str], on_error: str, file: str) -> None:
    """Raise the first problem, or warn of all."""
    if problems and on_error == "stop":
        raise CorpusError(problems[0])
    if problems:
        more = f" And {count(len(problems) - 3)} more." if len(problems) > 3 else ""
        text = f"{count(len(problems))} rows of {file!r} are skipped. {' '.join(problems[:3])}{more}"
        warnings.warn(text, DataWarning, stacklevel=3)
