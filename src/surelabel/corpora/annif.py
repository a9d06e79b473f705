"""Corpora in the forms of Annif: TSV, CSV, or a folder of texts with files of subjects.

Its JSONL is an ordinary table, whose label column is "subjects".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from surelabel.corpora.download import read_text
from surelabel.tables.read import Row, read_rows

_BRACKETED = re.compile(r"<([^<>\s]+)>")
_ANNIF_LINE = re.compile(r"[^\t]*\t\s*<[^<>\s]+>(?:\s+<[^<>\s]+>)*\s*")


def is_annif_corpus(path: Path) -> bool:
    """Whether a path is a corpus in one of Annif's own forms: a folder, its TSV, or its CSV."""
    if path.is_dir():
        return any(path.glob("*.txt"))
    if path.is_file() and (".tsv" in path.suffixes or ".csv" in path.suffixes):
        row = next(read_rows(path, kind="txt"), None)
        first = "" if row is None else str(row.cells.get("text", ""))
        return bool(_ANNIF_LINE.fullmatch(first)) or "subject_uris" in re.split(r"[,;\t]", first.replace('"', ""))
    return False


def annif_rows(path: Path) -> Iterator[Row]:
    """Yield the texts of a corpus of Annif as rows with the cells id, text and labels (URIs; None: not tagged)."""
    if path.is_dir():
        yield from _folder_rows(path)
    elif ".csv" in path.suffixes:
        for row in read_rows(path, needed=("text",)):
            subjects = row.cells.get("subject_uris")
            if isinstance(subjects, str):
                subjects = _BRACKETED.findall(subjects) or subjects.split()
            identity = row.cells.get("document_id") or row.cells.get("id")
            yield row._replace(cells={"id": identity, "text": row.cells.get("text"), "labels": subjects})
    else:
        for row in read_rows(path, kind="txt"):
            text, tab, subjects = str(row.cells.get("text", "")).partition("\t")
            problem = row.problem or (None if tab else "must be a text, a tab and URIs in <>.")
            yield Row(row.number, {"text": text, "labels": _BRACKETED.findall(subjects)}, problem, row.place)


def _folder_rows(folder: Path) -> Iterator[Row]:
    """Yield the texts of a folder; a text without a file of subjects is not tagged."""
    for number, file in enumerate(sorted(folder.glob("*.txt")), 1):
        subjects: list[str] | None = None
        if (key := file.with_suffix(".tsv")).exists():
            lines = [line for line in read_text(key).splitlines() if line.strip()]
            subjects = [line.split("\t")[0].strip().removeprefix("<").removesuffix(">") for line in lines]
        elif (key := file.with_suffix(".key")).exists():
            subjects = [line.strip() for line in read_text(key).splitlines() if line.strip()]
        yield Row(number, {"id": file.stem, "text": read_text(file), "labels": subjects}, None, f"{file.name!r}")
