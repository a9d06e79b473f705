"""Corpora in the forms of Annif: TSV, CSV, JSONL, or a folder of texts with files of subjects."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from surelabel.corpora.corpus import Corpus, Provenance
from surelabel.corpora.download import as_path, read_text
from surelabel.corpora.vocabulary import Vocabulary
from surelabel.exceptions import CorpusError
from surelabel.tables.read import read_rows

_BRACKETED = re.compile(r"<([^<>\s]+)>")
_ANNIF_LINE = re.compile(r"[^\t]*\t\s*<[^<>\s]+>(?:\s+<[^<>\s]+>)*\s*")


def is_annif_corpus(path: Path) -> bool:
    """Whether a path is a corpus in one of Annif's own forms: a folder, its TSV, or its CSV."""
    if path.is_dir():
        return any(path.glob("*.txt"))
    if ".tsv" in path.suffixes or ".csv" in path.suffixes:
        row = next(read_rows(path, kind="txt"), None)
        first = "" if row is None else str(row.cells.get("text", ""))
        return bool(_ANNIF_LINE.fullmatch(first)) or "subject_uris" in re.split(r"[,;\t]", first.replace('"', ""))
    return False


def read_annif_corpus(path: str | Path, vocabulary: Vocabulary | None = None) -> Corpus:
    """Read a corpus of Annif: TSV, CSV, JSONL, or a folder of .txt files with .tsv or .key files beside them.

    Labels are URIs; those of .key files are names, which a vocabulary turns into URIs.
    """
    source = as_path(path)
    if source.is_dir():
        texts = list(_folder_texts(source))
    elif ".csv" in source.suffixes or ".jsonl" in source.suffixes:
        texts = [_table_text(row) for row in read_rows(source, needed=("text",))]
    else:
        texts = [_line_text(row) for row in read_rows(source, kind="txt")]
    if not texts:
        raise CorpusError(f"{source.name!r} must have texts in one of Annif's forms. Got none.")
    corpus = Corpus.from_label_sets(
        source.name.partition(".")[0],
        [text for _, text, _ in texts],
        [labels for _, _, labels in texts],
        [identity for identity, _, _ in texts],
        provenance=Provenance(source.name, "a corpus in a form of Annif"),
    )
    return corpus if vocabulary is None else vocabulary.apply(corpus)


_Text = tuple[str, str, list[str] | None]


def _line_text(row: Any) -> _Text:
    """Return id, text and URIs of a line of Annif's TSV."""
    text, tab, subjects = str(row.cells.get("text", "")).partition("\t")
    if row.problem is not None or not tab:
        raise CorpusError(f"{row.place} {row.problem or 'must be a text, a tab and URIs in <>.'}")
    return str(row.number), text, _BRACKETED.findall(subjects)


def _table_text(row: Any) -> _Text:
    """Return id, text and URIs of a row of Annif's CSV or JSONL; without subjects it is not tagged."""
    if row.problem is not None:
        raise CorpusError(f"{row.place} {row.problem}")
    cells = row.cells
    subjects = cells.get("subjects", cells.get("subject_uris"))
    if isinstance(subjects, str):
        subjects = _BRACKETED.findall(subjects) or subjects.split()
    elif subjects is not None:
        if not isinstance(subjects, Sequence) or not all(isinstance(one, Mapping) for one in subjects):
            raise CorpusError(f"{row.place} must have a list of subjects. Got {subjects!r:.60}.")
        subjects = [str(one.get("uri") or one.get("label")) for one in subjects]
    return str(cells.get("document_id") or cells.get("id") or row.number), str(cells.get("text") or ""), subjects


def _folder_texts(folder: Path) -> Iterator[_Text]:
    """Yield the texts of a folder; a text without a file of subjects is not tagged."""
    for file in sorted(folder.glob("*.txt")):
        subjects: list[str] | None = None
        if (key := file.with_suffix(".tsv")).exists():
            lines = [line for line in read_text(key).splitlines() if line.strip()]
            subjects = [line.split("\t")[0].strip().removeprefix("<").removesuffix(">") for line in lines]
        elif (key := file.with_suffix(".key")).exists():
            subjects = [line.strip() for line in read_text(key).splitlines() if line.strip()]
        yield file.stem, read_text(file), subjects
