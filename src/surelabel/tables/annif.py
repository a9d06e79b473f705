"""Annif's own forms of texts: TSV without headings, and folders with a text per file. All else is read as a table."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from surelabel.exceptions import CorpusError
from surelabel.tables.read import Row, file_errors, format_of, read_rows

URIS = re.compile(r"\s*(?:<[^<>\s]+>\s*)+")
"""One or more URIs in <>."""
_SUBJECTS = (".tsv", ".key")


def open_rows(
    source: str | os.PathLike[str], *, kind: str | None = None, encoding: str = "utf-8", needed: Sequence[str] = ()
) -> Iterator[Row]:
    """Return rows as `read_rows` does, also those of Annif's TSV and of a folder with a text per .txt file.

    Their columns are text and labels, and for a folder id, the file's name without its suffix.
    """
    path = Path(source).expanduser()
    if kind is None and has_documents(path):
        return _folder_rows(path, encoding)
    if (kind or format_of(path)) == "tsv" and path.is_file():
        first = next(read_rows(path, kind="txt", encoding=encoding), Row(1, {})).cells.get("text", "")
        if URIS.fullmatch(first.partition("\t")[2]):
            return _tsv_rows(path, encoding)
    return read_rows(source, kind=kind, encoding=encoding, needed=needed)


def has_documents(folder: str | os.PathLike[str]) -> bool:
    """Whether this is a folder with .txt files."""
    return any(Path(folder).expanduser().glob("*.txt"))


def has_subjects(folder: str | os.PathLike[str]) -> bool:
    """Whether .txt files in a folder have their subjects beside them: then each file is one text."""
    return any(_subjects(file) for file in Path(folder).expanduser().glob("*.txt"))


def _subjects(file: Path) -> Path | None:
    """Return the file with the subjects of a text, None if there is none."""
    return next((own for suffix in _SUBJECTS if (own := file.with_suffix(suffix)).exists()), None)


def _tsv_rows(path: Path, encoding: str) -> Iterator[Row]:
    """Yield the rows of Annif's TSV: a text, a tab, and URIs in <>."""
    for row in read_rows(path, kind="txt", encoding=encoding):
        text, tab, subjects = row.cells["text"].partition("\t")
        problem = row.problem or (None if tab else "must be a text, a tab and URIs in <>.")
        yield row._replace(cells={"text": text, "labels": subjects}, problem=problem)


def _folder_rows(folder: Path, encoding: str) -> Iterator[Row]:
    """Yield the texts of a folder; subjects are in .tsv (URI, tab, name) or .key files, otherwise it is not tagged."""
    for number, file in enumerate(sorted(folder.glob("*.txt")), 1):
        problem: str | None = None
        cells: dict[str, Any] = {"id": file.stem, "text": "", "labels": None}
        try:
            cells["text"], key = _content(file, encoding), _subjects(file)
            if key is not None:
                lines = [line.split("\t")[0].strip() for line in _content(key, encoding).splitlines()]
                cells["labels"] = [line.removeprefix("<").removesuffix(">") for line in lines]
        except CorpusError as error:
            problem = f"cannot be used. {error}"
        yield Row(number, cells, problem, f"{file.name!r}")


def _content(file: Path, encoding: str) -> str:
    """Return the text of a file without a byte order mark."""
    with file_errors(file.name, encoding):
        return file.read_text(encoding).removeprefix("\N{BYTE ORDER MARK}")
