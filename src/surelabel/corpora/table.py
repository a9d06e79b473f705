"""A user's table as a corpus: text, label, id and part columns; also the forms of Annif."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from surelabel._core import progress
from surelabel._core.files import sha256
from surelabel._core.formatting import count
from surelabel.corpora.corpus import PARTS, Corpus, Provenance, Scores
from surelabel.corpora.download import read_text
from surelabel.corpora.labels import (
    Separation,
    as_indicators,
    as_label_set,
    as_list,
    clean_name,
    columns_of,
    separation,
    suspicious_names,
)
from surelabel.exceptions import CorpusError, DataWarning, InvalidInputError
from surelabel.tables.columns import filled, is_file, join_texts
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
from surelabel.tables.scores import as_scores, read_scores

FORMATS = tuple(suffix for suffix, kind in SUFFIXES.items() if kind != "txt")

_ALIASES = {"dev": "validation", "val": "validation", "valid": "validation", "training": "train", "cal": "calibration"}
_ANNIF_COLUMNS = ("subject_uris", "subjects")


@dataclass(frozen=True)
class _Asked:
    """Which columns hold what; `is_one` if labels are names in one column."""

    text: tuple[str, ...]
    labels: tuple[str, ...]
    is_one: bool
    id: str | None
    part: str | None
    more: tuple[str, ...]
    scores: str | None

    @property
    def needed(self) -> tuple[str, ...]:
        """All columns but those of labels."""
        return tuple(dict.fromkeys([*self.text, *filter(None, (self.id, self.part, self.scores)), *self.more]))


class _Record(NamedTuple):
    """A text of the corpus."""

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
    sources: dict[str | None, str] = _sources(path)
    beside = Path(scores or "").expanduser() if is_file(scores) else None
    asked = _Asked(
        (text,) if isinstance(text, str) else tuple(text),
        (labels,) if isinstance(labels, str) else tuple(labels),
        isinstance(labels, str),
        id,
        part,
        tuple(dict.fromkeys(columns)),
        None if beside else scores,
    )
    _check_options(asked, separator, on_error)
    check_encoding(encoding)
    rows, asked = _read(sources, asked, encoding, require_labels=require_labels)
    split = _separation([row for _, row in rows], asked, separator)
    records: list[_Record] = []
    problems: list[str] = []
    for own, row in rows:
        try:
            records.append(_record(row, own, asked, split, several=len(sources) > 1))
        except ValueError as error:
            problems.append(f"{row.place} {error}")
    files = ", ".join(map(file_name, sources.values()))
    _report(problems, on_error, files)
    if not records:
        raise CorpusError(f"{files!r} must have at least one text. Got none.")
    notes = [split.note]
    given = [record.scores for record in records] if asked.scores else None
    if beside is not None:
        given, note = _scores_beside(beside, records, encoding)
        notes.append(note)
    first = Path(next(iter(sources.values()))).expanduser()
    corpus = Corpus.from_label_sets(
        name or files.partition(".")[0],
        [record.text for record in records],
        [record.labels for record in records],
        [record.id for record in records],
        {column: [record.more[k] for record in records] for k, column in enumerate(asked.more)},
        label_names=None if asked.is_one else list(dict.fromkeys(map(clean_name, asked.labels))),
        provenance=Provenance(
            files,
            f"texts from {', '.join(asked.text)}; labels from {labels if isinstance(labels, str) else list(labels)}",
            checksum=sha256(first.resolve()) if len(sources) == 1 and first.is_file() else None,
            notes=tuple(notes),
        ),
        scores=given,
    )
    for message in (*filter(None, [split.warning]), *suspicious_names(corpus.label_names)):
        warnings.warn(message, DataWarning, stacklevel=2)
    if require_labels:
        _check_labels(corpus)
    tagged = [(k, record.part) for k, record in enumerate(records) if record.labels is not None]
    return corpus.with_parts({name: [k for k, one in tagged if one == name] for name in PARTS})


def _sources(path: str | Path | Mapping[str, str | Path]) -> dict[str | None, str]:
    """Return files by the part that each of them is (None: as its rows say)."""
    if isinstance(path, Mapping):
        unknown = [name for name in path if name not in PARTS]
        if unknown or not path:
            raise InvalidInputError(f"Files must be named by part: {', '.join(PARTS)}. Got {(*unknown, None)[0]!r}.")
        return {name: str(file) for name, file in path.items()}
    if format_of(path) in {None, "txt"} and not any(Path(path).expanduser().glob("*.txt")):
        raise CorpusError(f"A corpus must be a file that ends in {', '.join(FORMATS)}. Got {file_name(path)!r}.")
    return {None: str(path)}


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
    sources: Mapping[str | None, str], asked: _Asked, encoding: str, *, require_labels: bool
) -> tuple[list[tuple[str | None, Row]], _Asked]:
    """Return the rows with their part, without cells that nobody asked for, and label columns without patterns."""
    rows: list[tuple[str | None, Row]] = []
    for own, source in sources.items():
        headings: dict[str, None] = {}
        with progress.step("reading texts") as advance:
            for row in _annif_rows(Path(source).expanduser()) or read_rows(
                source, encoding=encoding, needed=asked.needed
            ):
                advance()
                if row.problem is None and not headings:
                    asked = _with_columns(asked, list(row.cells))
                headings.update(dict.fromkeys(row.cells))
                wanted = {*asked.needed, *asked.labels, "id"}
                rows.append((own, row._replace(cells={key: row.cells[key] for key in row.cells if key in wanted})))
        if headings:
            needed = (*asked.needed, *(asked.labels if require_labels else ()))
            check_headings(list(headings), needed, file_name(source))
    return rows, asked


def _with_columns(asked: _Asked, headings: list[str]) -> _Asked:
    """Resolve patterns of label columns; Annif's columns stand in for the default one."""
    found = tuple(columns_of(asked.labels, headings, {*asked.needed, asked.id or "id"}))
    if found == ("labels",) and "labels" not in headings:
        found = next(((column,) for column in _ANNIF_COLUMNS if column in headings), found)
    id_ = "document_id" if asked.id is None and "id" not in headings and "document_id" in headings else asked.id
    return replace(asked, labels=found, is_one=asked.is_one and len(found) == 1, id=id_)


def _annif_rows(path: Path) -> Iterator[Row] | None:
    """Return the rows of a folder of Annif, or of its TSV, which has no headings; None for other files."""
    if path.is_dir():
        return _folder_rows(path)
    if ".tsv" in path.suffixes and path.is_file():
        first = next(read_rows(path, kind="txt"), Row(1, {})).cells.get("text", "").partition("\t")[2]
        if first.startswith("<") and as_list(first) is not None:
            return _tsv_rows(path)
    return None


def _tsv_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of Annif's TSV: a text, a tab, and URIs in <>."""
    for row in read_rows(path, kind="txt"):
        text, tab, subjects = row.cells["text"].partition("\t")
        problem = row.problem or (None if tab else "must be a text, a tab and URIs in <>.")
        yield row._replace(cells={"text": text, "labels": subjects}, problem=problem)


def _folder_rows(folder: Path) -> Iterator[Row]:
    """Yield the texts of a folder; subjects are in .tsv (URI, tab, name) or .key files, otherwise it is not tagged."""
    for number, file in enumerate(sorted(folder.glob("*.txt")), 1):
        keys = [key for suffix in (".tsv", ".key") if (key := file.with_suffix(suffix)).exists()]
        lines = [line.split("\t")[0].strip() for key in keys[:1] for line in read_text(key).splitlines()]
        subjects = [line.removeprefix("<").removesuffix(">") for line in lines] if keys else None
        yield Row(number, {"id": file.stem, "text": read_text(file), "labels": subjects}, None, f"{file.name!r}")


def _separation(rows: Sequence[Row], asked: _Asked, separator: str | None) -> Separation:
    """Return how labels are written."""
    column = asked.labels[0]
    if asked.is_one:
        given = " " if column == "subject_uris" and separator == "auto" else separator
        return separation((row.cells.get(column) for row in rows), column, given)
    shown = ", ".join(asked.labels[:4]) + (", ..." if len(asked.labels) > 4 else "")
    return Separation(None, f"Labels are the {count(len(asked.labels))} columns {shown}.")


def _record(row: Row, own: str | None, asked: _Asked, split: Separation, *, several: bool) -> _Record:
    """Return a row as a text of the corpus, or raise ValueError with its problem."""
    if row.problem is not None:
        raise ValueError(row.problem)
    cells = row.cells
    if asked.is_one:
        labels = as_label_set(cells.get(asked.labels[0]), split.separator)
    else:
        labels = as_indicators({column: cells.get(column) for column in asked.labels})
    part = own or "train"
    if asked.part is not None:
        part = str(cells.get(asked.part)).strip().lower()
        part = _ALIASES.get(part, part)
        if part not in PARTS:
            raise ValueError(f"must have a part: {', '.join(PARTS)}. Got {part!r:.40}.")
    return _Record(
        cell_text(cells.get(asked.id or "id")) or (f"{own}-{row.number}" if several else str(row.number)),
        join_texts([cells.get(column) for column in asked.text]),
        labels,
        part,
        tuple(filled(cells.get(column), column) for column in asked.more),
        as_scores(cells.get(asked.scores), row.place) if asked.scores else None,
    )


def _report(problems: Sequence[str], on_error: str, file: str) -> None:
    """Raise the first problem, or warn of all."""
    if problems and on_error == "stop":
        raise CorpusError(problems[0])
    if problems:
        more = f" And {count(len(problems) - 3)} more." if len(problems) > 3 else ""
        text = f"{count(len(problems))} rows of {file!r} are skipped. {' '.join(problems[:3])}{more}"
        warnings.warn(text, DataWarning, stacklevel=3)


def _scores_beside(path: Path, records: Sequence[_Record], encoding: str) -> tuple[list[Scores | None], str]:
    """Return the scores of a file beside the texts, and a note."""
    scores = read_scores(path, encoding=encoding)
    found: list[Scores | None] = [scores.get(record.id) for record in records]
    n_found = sum(one is not None for one in found)
    if n_found == 0:
        raise CorpusError(f"The ids of {path.name!r} must be those of the texts. Got {next(iter(scores))!r:.40}.")
    note = f"Scores of {count(n_found)} of {count(len(records))} texts come from {path.name}"
    unused = len(set(scores) - {record.id for record in records})
    return found, f"{note}; {count(unused)} other ids in it have no text." if unused else f"{note}."


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
