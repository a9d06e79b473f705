"""Texts in batches: from a file, standard input, or a part of a corpus."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from surelabel.corpora import Corpus, Part
from surelabel.exceptions import CorpusError, InvalidInputError
from surelabel.tables.reading import STDIN, SUFFIXES, Partition, TableReader, check_format, format_of
from surelabel.tables.stores import is_url
from surelabel.tables.texts import InputColumns, TextRow, read_texts

# Ids that are compared with each other, so that memory does not grow with the input.
_MOST_IDS = 250_000
_MOST_NAMED = 5


@dataclasses.dataclass(frozen=True)
class TextBatch:
    """Some texts that follow each other: row in the file (from 1), text, id and group of each.

    `problems` are rows among these that cannot be read, and why; `position` is how much of the source has been read, in
    the unit of its `total`; `n_read` and `digest` count all rows since the beginning, and are their hash.
    """

    rows: Sequence[int]
    texts: list[str]
    ids: Sequence[str | None] | None = None
    problems: Sequence[tuple[int, str]] = ()
    position: int = 0
    n_read: int = 0
    digest: str = ""
    groups: Sequence[str] | None = None

    def __len__(self) -> int:
        return len(self.texts)


class Findings:
    """What should be known about the rows that were read: empty texts, and ids that occur more than once."""

    def __init__(self) -> None:
        self._empty, self._twice = _Examples(), _Examples()
        self._ids: set[int] = set()

    def note(self, row: TextRow) -> None:
        """Look at a row."""
        if row.problem is None and (not row.text or row.text.isspace()):
            self._empty.add(str(row.number))
        if row.id is None:
            return
        mark = hash(row.id)
        if mark in self._ids:
            self._twice.add(f"{row.id!r:.40} (row {row.number})")
        elif len(self._ids) < _MOST_IDS:
            self._ids.add(mark)

    def messages(self, name: str) -> list[str]:
        """Return what there is to say about the rows of a file."""
        said = []
        if self._empty.count:
            said.append(f"Empty or missing texts of {name!r}: {self._empty.count:,}, in row {self._empty}.")
        if self._twice.count:
            limit = f" The first {_MOST_IDS:,} ids were compared." if len(self._ids) == _MOST_IDS else ""
            said.append(f"Ids of {name!r} that occur again: {self._twice.count:,}, such as {self._twice}.{limit}")
        return said


class _Examples:
    """The first few of many names, and how many there are."""

    def __init__(self) -> None:
        self.count = 0
        self._names: list[str] = []

    def add(self, name: str) -> None:
        self.count += 1
        if self.count <= _MOST_NAMED:
            self._names.append(name)

    def __str__(self) -> str:
        n_more = self.count - len(self._names)
        return ", ".join(self._names) + (f" and {n_more:,} more" if n_more else "")


class _Texts:
    """Texts that are read from beginning to end, in batches."""

    name: str

    def __init__(self) -> None:
        self.findings = Findings()

    def _rows(self, on_error: str) -> Iterator[tuple[TextRow, int]]:
        """Yield rows, and how much of the source has been read with each."""
        raise NotImplementedError

    def batches(
        self, batch_size: int = 256, skip: int = 0, digest: str | None = None, on_error: str = "stop"
    ) -> Iterator[TextBatch]:
        """Yield the texts in batches, after the first `skip` rows, which must have the hash `digest` if it is given."""
        if batch_size < 1:
            raise InvalidInputError(f"The 'batch_size' must be 1 or more. Got {batch_size} instead.")
        self.findings = Findings()
        running = hashlib.sha256()
        taken: list[TextRow] = []
        n_read = position = 0
        for row, position in self._rows(on_error):
            n_read += 1
            group = "" if row.group is None else f"{len(row.group)}:{row.group}"
            running.update(f"{len(row.text)},{row.id},{row.problem}:{row.text}{group}".encode())
            self.findings.note(row)
            if n_read < skip:
                continue
            if n_read == skip:
                if digest not in {None, running.hexdigest()}:
                    raise _other_rows(skip)
                continue
            if row.problem is not None and on_error == "stop":
                raise CorpusError(row.problem)
            taken.append(row)
            if len(taken) == batch_size:
                yield _batch(taken, position, n_read, running.hexdigest())
                taken = []
        if n_read < skip:
            raise _other_rows(skip)
        if taken:
            yield _batch(taken, position, n_read, running.hexdigest())


def _batch(taken: list[TextRow], position: int, n_read: int, digest: str) -> TextBatch:
    """Return rows as a batch, those that cannot be read as its problems."""
    good = [row for row in taken if row.problem is None]
    problems = [(row.number, row.problem) for row in taken if row.problem is not None]
    ids = [row.id for row in good]
    has_ids = any(identity is not None for identity in ids)
    groups = [row.group for row in good if row.group is not None] or None
    numbers, texts = [row.number for row in good], [row.text for row in good]
    return TextBatch(numbers, texts, ids if has_ids else None, problems, position, n_read, digest, groups)


def _other_rows(skip: int) -> InvalidInputError:
    return InvalidInputError(
        f"The first {skip:,} rows of the input are not those that were answered. Start over without --resume."
    )


class TextSource(_Texts):
    r"""A file of texts, some rows of one, or standard input, read from beginning to end.

    Parameters
    ----------
    source : str, path or Partition
        A file (.txt, .jsonl, .ndjson, .csv, .tsv, .parquet, .xlsx; the text formats may end in .gz), or "-".
    columns : InputColumns, optional
    kind : str, optional
        One of txt, jsonl, csv, tsv, parquet and xlsx, if the suffix does not say; txt for standard input.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "texts.txt"
    >>> _ = path.write_text("wheat rose\ngold fell\noil rose\n")
    >>> [(batch.rows, batch.texts) for batch in TextSource(path).batches(2)]
    [([1, 2], ['wheat rose', 'gold fell']), ([3], ['oil rose'])]
    """

    def __init__(
        self, source: str | os.PathLike[str] | Partition, columns: InputColumns | None = None, kind: str | None = None
    ) -> None:
        super().__init__()
        self.columns = columns or InputColumns()
        self.partition = source if isinstance(source, Partition) else _whole_file(os.fspath(source), kind)
        self.name = self.partition.name

    @property
    def total(self) -> int | None:
        """How much there is to read: bytes of a text file, rows of a Parquet file, None if that is not known."""
        return TableReader(self.partition).total

    def _rows(self, on_error: str) -> Iterator[tuple[TextRow, int]]:
        """Yield the rows; unless it stops there, what is wrong with the whole file is the problem of its last row."""
        reader = TableReader(self.partition, self.columns.encoding)
        number = self.partition.first_row - 1
        try:
            for row in read_texts(reader, self.columns):
                number = row.number
                yield row, reader.position
        except CorpusError as error:
            if on_error == "stop":
                raise
            yield TextRow(number + 1, "", None, f"{error} The rest of the file is left out."), reader.position


def _whole_file(source: str, kind: str | None) -> Partition:
    """Return a file as one partition, after checking that it is there."""
    name = "standard input" if source == STDIN else Path(source).name
    kind = kind or ("txt" if source == STDIN else format_of(source))
    if kind is None:
        raise InvalidInputError(
            f"A file of texts must end in one of {', '.join(SUFFIXES)}, or say its format with --input-format. "
            f"Got {name!r} instead."
        )
    check_format(kind, name, is_stdin=source == STDIN)
    if source != STDIN and not is_url(source) and not Path(source).is_file():
        what = "is a folder" if Path(source).is_dir() else "does not exist"
        raise CorpusError(f"The input {source!r} {what}. Name a file of texts, or - for standard input.")
    return Partition(source, kind)


class TextList(_Texts):
    """Texts in memory, such as a part of a corpus, read like those of a file."""

    def __init__(
        self, name: str, texts: Sequence[str], ids: Sequence[str] | None = None, groups: Sequence[str] | None = None
    ) -> None:
        super().__init__()
        self.name, self.total = name, len(texts)
        self._texts, self._ids, self._groups = texts, ids, groups

    @classmethod
    def of_part(cls, corpus: Corpus, part: Part, group: str | None = None) -> TextList:
        """Return the texts of a part of a corpus, with the column that says their groups if there is one."""
        groups = None if group is None else part.column(group)
        return cls(f"{corpus.name}, {part.name}", part.texts, part.ids, groups)

    def _rows(self, on_error: str) -> Iterator[tuple[TextRow, int]]:
        """Yield the texts as rows."""
        for k, text in enumerate(self._texts):
            identity, group = (None if values is None else values[k] for values in (self._ids, self._groups))
            yield TextRow(k + 1, text, identity, group=group), k + 1
