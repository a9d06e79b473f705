"""A user's table as a corpus: text, label, id and part columns."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from surelabel._core import progress
from surelabel._core.files import sha256
from surelabel._core.formatting import count
from surelabel.corpora.annif import annif_rows, is_annif_corpus
from surelabel.corpora.corpus import PARTS, Corpus, Provenance, Scores
from surelabel.corpora.labels import (
    Separation,
    as_indicators,
    as_label_set,
    clean_name,
    columns_of,
    separation,
    suspicious_names,
)
from surelabel.exceptions import CorpusError, DataWarning, InvalidInputError
from surelabel.tables.columns import filled, join_texts
from surelabel.tables.read import (
    SUFFIXES,
    Row,
    cell_text,
    check_encoding,
    check_headings,
    file_name,
    format_of,
    read_rows,
)
from surelabel.tables.scores import as_pairs, read_scores

FORMATS = tuple(suffix for suffix, kind in SUFFIXES.items() if kind != "txt")

_ALIASES = {"dev": "validation", "val": "validation", "valid": "validation", "training": "train", "cal": "calibration"}


class _Asked(NamedTuple):
    """Which columns hold what."""

    text: tuple[str, ...]
    labels: tuple[str, ...]
    is_one_column: bool
    id: str | None
    part: str | None
    more: tuple[str, ...]
    scores: str | None  # a column

    @property
    def needed(self) -> tuple[str, ...]:
        """All columns but those of labels."""
        return tuple(dict.fromkeys([*self.text, *filter(None, (self.id, self.part, self.scores)), *self.more]))


class _Record(NamedTuple):
    """A text of the corpus."""

    place: str
    id: str
    text: str
    labels: frozenset[str] | None
    part: str
    more: tuple[str, ...]
    scores: Scores | None


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
    r"""Read a corpus from JSONL, CSV, TSV, Parquet or XLSX (JSONL, CSV and TSV also as .gz or .xz), or from a URL.

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
        Whether there must be labels to learn from. False also reads files without labels.
    name : str, optional
        The corpus's name; default the file's.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "news.csv"
    >>> _ = path.write_text("body,tags\nOil rose,oil\nGold and oil fell,gold;oil\n")
    >>> read_table(path, text="body", labels="tags").label_sets[0]
    frozenset({'oil'})
    """
    sources = _sources(path)
    asked = _Asked(_tuple(text), _tuple(labels), isinstance(labels, str), id, part, tuple(dict.fromkeys(columns)), None)
    beside = scores if scores is not None and Path(scores).expanduser().is_file() else None
    asked = asked._replace(scores=scores if beside is None else None)
    _check_options(asked, separator, on_error)
    check_encoding(encoding)
    with progress.step("reading texts") as advance:
        rows, problems, asked = _read(sources, asked, encoding, advance, require_labels=require_labels)
    split = _separation(rows, asked, separator)
    records: list[_Record] = []
    for own, row in rows:
        try:
            records.append(_record(row, own, asked, split, several=len(sources) > 1))
        except ValueError as error:
            problems.append((row.number, f"{row.place} {error}"))
    title = sources[0][0]
    _report(problems, on_error, file_name(title))
    if not records:
        raise CorpusError(f"{file_name(title)!r} must have at least one text. Got none.")
    _check_ids(records)
    notes = [split.note]
    given = [record.scores for record in records] if asked.scores else None
    if beside is not None:
        given, note = _scores_beside(beside, records, encoding)
        notes.append(note)
    corpus = Corpus.from_label_sets(
        name or file_name(title).partition(".")[0],
        [record.text for record in records],
        [record.labels for record in records],
        [record.id for record in records],
        {column: [record.more[k] for record in records] for k, column in enumerate(asked.more)},
        label_names=None if asked.is_one_column else list(dict.fromkeys(map(clean_name, asked.labels))),
        provenance=Provenance(
            ", ".join(file_name(source) for source, _ in sources),
            f"texts from {', '.join(asked.text)}; labels from {labels if isinstance(labels, str) else list(labels)}",
            checksum=_checksum(sources),
            notes=tuple(notes),
        ),
        scores=given,
    )
    for message in (*filter(None, [split.warning]), *suspicious_names(corpus.label_names)):
        warnings.warn(message, DataWarning, stacklevel=2)
    if require_labels:
        _check_labels(corpus)
    rows_of = {
        name: [k for k, one in enumerate(records) if one.part == name and one.labels is not None] for name in PARTS
    }
    return corpus.with_parts(rows_of)


def _tuple(names: str | Sequence[str]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _sources(path: str | Path | Mapping[str, str | Path]) -> list[tuple[str, str | None]]:
    """Return files with the part that each of them is (None: as its rows say)."""
    if isinstance(path, Mapping):
        unknown = [name for name in path if name not in PARTS]
        if unknown or not path:
            raise InvalidInputError(f"Files must be named by part: {', '.join(PARTS)}. Got {(*unknown, None)[0]!r}.")
        return [(str(file), name) for name, file in path.items()]
    kind = format_of(path)
    if (kind is None or kind == "txt") and not is_annif_corpus(Path(path).expanduser()):
        raise CorpusError(f"A corpus must be a file that ends in {', '.join(FORMATS)}. Got {file_name(path)!r}.")
    return [(str(path), None)]


def _check_options(asked: _Asked, separator: Any, on_error: str) -> None:
    """Raise if options make no sense, before anything is read."""
    if not asked.text or not asked.labels:
        raise InvalidInputError("At least one text column and one label column must be named. Got none.")
    if both := sorted(set(asked.text) & set(asked.labels)):
        raise InvalidInputError(f"The text and the labels must be different columns. Got {both[0]!r} for both.")
    if separator is not None and (not isinstance(separator, str) or not separator):
        raise InvalidInputError(f"The separator must be text such as ';', or None. Got {separator!r}.")
    if on_error not in {"stop", "skip"}:
        raise InvalidInputError(f"The on_error must be 'stop' or 'skip'. Got {on_error!r}.")


def _read(
    sources: Sequence[tuple[str, str | None]],
    asked: _Asked,
    encoding: str,
    advance: Callable[..., None],
    *,
    require_labels: bool,
) -> tuple[list[tuple[str | None, Row]], list[tuple[int, str]], _Asked]:
    """Return the readable rows with their part, the problems of the others, and label columns without patterns."""
    rows: list[tuple[str | None, Row]] = []
    problems: list[tuple[int, str]] = []
    for source, own in sources:
        plain = tuple(label for label in asked.labels if not any(mark in label for mark in ("..", "*", "?")))
        needed = (*asked.needed, *(plain if require_labels else ()))
        headings: dict[str, None] = {}
        is_annif = (asked.text, asked.labels) == (("text",), ("labels",)) and is_annif_corpus(Path(source).expanduser())
        rows_of = read_rows(source, encoding=encoding, needed=needed)
        for row in annif_rows(Path(source).expanduser()) if is_annif else rows_of:
            if row.number % 500 == 0:
                advance(500)
            if row.problem is not None:
                problems.append((row.number, f"{row.place} {row.problem}"))
                continue
            if not headings:
                taken = {*asked.needed, asked.id or "id"}
                found = tuple(columns_of(asked.labels, list(row.cells), taken))
                asked = asked._replace(labels=found, is_one_column=asked.is_one_column and found == asked.labels)
                wanted = {*asked.needed, *asked.labels, "id"}
            headings.update(dict.fromkeys(row.cells))
            rows.append((own, row._replace(cells={key: row.cells[key] for key in row.cells if key in wanted})))
        if headings:
            check_headings(
                list(headings), (*asked.needed, *(asked.labels if require_labels else ())), file_name(source)
            )
    return rows, problems, asked


def _separation(rows: Sequence[tuple[str | None, Row]], asked: _Asked, separator: str | None) -> Separation:
    """Return how labels are written."""
    if asked.is_one_column:
        column = asked.labels[0]
        return separation((row.cells.get(column) for _, row in rows), column, separator)
    shown = ", ".join(asked.labels[:4]) + (", ..." if len(asked.labels) > 4 else "")
    return Separation(None, f"Labels are the {count(len(asked.labels))} columns {shown}.")


def _record(row: Row, own: str | None, asked: _Asked, split: Separation, *, several: bool) -> _Record:
    """Return a row as a text of the corpus, or raise ValueError with its problem."""
    cells = row.cells
    default = f"{own}-{row.number}" if several else str(row.number)
    if asked.is_one_column:
        labels = as_label_set(cells.get(asked.labels[0]), split.separator)
    else:
        labels = as_indicators({column: cells.get(column) for column in asked.labels})
    return _Record(
        row.place,
        cell_text(cells.get(asked.id or "id")) or default,
        join_texts([cells.get(column) for column in asked.text]),
        labels,
        own or "train" if asked.part is None else _part_name(cells.get(asked.part)),
        tuple(filled(cells.get(column), column) for column in asked.more),
        as_pairs(cells.get(asked.scores)) if asked.scores else None,
    )


def _part_name(cell: Any) -> str:
    name = str(cell).strip().lower()
    name = _ALIASES.get(name, name)
    if name not in PARTS:
        raise ValueError(f"must have a part: {', '.join(PARTS)}. Got {name!r:.40}.")
    return name


def _report(problems: list[tuple[int, str]], on_error: str, file: str) -> None:
    """Raise the first problem, or warn of all."""
    messages = [message for _, message in sorted(problems)]
    if messages and on_error == "stop":
        raise CorpusError(messages[0])
    if messages:
        more = f" And {count(len(messages) - 3)} more." if len(messages) > 3 else ""
        text = f"{count(len(messages))} rows of {file!r} are skipped. {' '.join(messages[:3])}{more}"
        warnings.warn(text, DataWarning, stacklevel=3)


def _check_ids(records: Sequence[_Record]) -> None:
    """Raise if two rows have one id, and name both."""
    seen: dict[str, _Record] = {}
    for record in records:
        other = seen.setdefault(record.id, record)
        if other is not record:
            raise CorpusError(f"Ids must be unique. Got {record.id!r:.60} twice: {other.place} and {record.place}.")


def _scores_beside(path: str, records: Sequence[_Record], encoding: str) -> tuple[list[Scores | None], str]:
    """Return the scores of a file beside the texts, and a note."""
    scores = read_scores(Path(path).expanduser(), encoding=encoding)
    found: list[Scores | None] = [scores.get(record.id) for record in records]
    n_found, unused = sum(one is not None for one in found), len(set(scores) - {record.id for record in records})
    if n_found == 0:
        raise CorpusError(f"The ids of {file_name(path)!r} must be those of the texts. Got {next(iter(scores))!r:.40}.")
    note = f"Scores of {count(n_found)} of {count(len(records))} texts come from {file_name(path)}"
    return found, f"{note}; {count(unused)} other ids in it have no text." if unused else f"{note}."


def _checksum(sources: Sequence[tuple[str, str | None]]) -> str | None:
    """Return the SHA-256 of a single local file."""
    if len(sources) > 1 or not Path(sources[0][0]).expanduser().is_file():
        return None
    return sha256(Path(sources[0][0]).expanduser().resolve())


def _check_labels(corpus: Corpus) -> None:
    """Raise if there is nothing to learn: no label, or one that every text has."""
    if corpus.labels.nnz == 0:
        raise CorpusError(
            f"Corpus {corpus.name!r} must have at least one label. Got {count(len(corpus))} texts without any: is the "
            "label column the right one?"
        )
    if len(corpus.label_names) == 1 and corpus.labels.nnz == int(corpus.is_labelled.sum()):
        raise CorpusError(
            f"Corpus {corpus.name!r} must have two labels, or texts without its one. Got {corpus.label_names[0]!r} "
            "on every text: is the separator the right one?"
        )
