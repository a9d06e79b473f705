"""Decisions out: as a table, and as texts to train with."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from surelabel._core.files import atomic_file
from surelabel.corpora import Corpus
from surelabel.exceptions import InvalidInputError
from surelabel.review.queues import ReviewText
from surelabel.review.store import ReviewStore
from surelabel.tables.write import open_writer

ADDED = ("final_labels", "uris", "decided_by", "queue", "changed", "unknown_labels")
"""Columns that an export adds to those of the file."""
FORMATS = ("csv", "jsonl", "xlsx")


def export_rows(
    store: ReviewStore, *, label_names: Iterable[str] | None = None, uris: Mapping[str, str | None] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield a row per text: its own columns, then those of `ADDED`.

    Parameters
    ----------
    store : ReviewStore
    label_names : iterable of str, optional
        Labels that the model knows: `unknown_labels` has those that people typed and it does not know.
    uris : mapping, optional
        The URI of each label, for a model with a vocabulary: the column `uris`.

    `decided_by` is the reviewer, "model" for a filed text that nobody has changed, None for a pending text. `changed`
    tells whether the labels differ from the best guess; it is None where the reviewer did not see it.
    """
    known = None if label_names is None else set(label_names)
    for text in store.texts():
        columns = dict(text.columns) or {"id": text.id, "text": text.text}
        own = {f"{name}_before" if name in ADDED else name: value for name, value in columns.items()}
        labels, decision = text.final_labels, text.decision
        by = "model" if decision is None else decision.reviewer
        is_blind = decision is not None and decision.answer is None
        row = {
            "final_labels": None if labels is None else list(labels),
            "uris": None if labels is None or uris is None else [uris.get(label) or "" for label in labels],
            "decided_by": None if labels is None else by,
            "queue": text.queue,
            "changed": None if labels is None or is_blind else decision is not None and decision.action != "accept",
            "unknown_labels": None if known is None else sorted(set(labels or ()) - known),
        }
        yield own | {name: value for name, value in row.items() if name in _added(label_names, uris)}


def _added(label_names: Any, uris: Any) -> list[str]:
    """Return the columns that are added: those about a vocabulary or a model only if there is one."""
    absent = {"uris": uris, "unknown_labels": label_names}
    return [name for name in ADDED if absent.get(name, ()) is not None]


def export_decisions(
    store: ReviewStore,
    path: str | os.PathLike[str],
    *,
    label_names: Iterable[str] | None = None,
    uris: Mapping[str, str | None] | None = None,
    separator: str = ",",
) -> int:
    """Write what was decided to a .csv, .jsonl or .xlsx file and return the number of texts.

    Parameters
    ----------
    store : ReviewStore
    path : path
    label_names, uris
        As of `export_rows`.
    separator : str
        Between labels in a cell of CSV and XLSX.
    """
    kind = Path(path).suffix.lower().lstrip(".")
    if kind not in FORMATS:
        raise InvalidInputError(f"An export must be .csv, .jsonl or .xlsx. Got {os.fspath(path)!r} instead.")
    with atomic_file(path, "wb") as stream:
        return _write(stream, kind, store, label_names, uris, separator)


def exported_bytes(
    store: ReviewStore,
    kind: str,
    *,
    label_names: Iterable[str] | None = None,
    uris: Mapping[str, str | None] | None = None,
    separator: str = ",",
) -> bytes:
    """Return an export of a kind of `FORMATS` as the content of a file; see `export_decisions`."""
    stream = io.BytesIO()
    _write(stream, kind, store, label_names, uris, separator)
    return stream.getvalue()


def _write(stream: IO[bytes], kind: str, store: ReviewStore, label_names: Any, uris: Any, separator: str) -> int:
    """Write the rows; their columns are those of all texts, in the order in which they first occur."""
    names = None if label_names is None else tuple(label_names)
    headings: dict[str, Any] = {}
    if kind != "jsonl":
        for row in export_rows(store):
            headings.update((name, str) for name in row if name not in ADDED)
        headings |= dict.fromkeys(_added(names, uris), str)
    writer = open_writer(stream, kind, headings)
    n_rows = 0
    for row in export_rows(store, label_names=names, uris=uris):
        writer.write([row if kind == "jsonl" else {name: _cell(value, separator) for name, value in row.items()}])
        n_rows += 1
    writer.close()
    return n_rows


def _cell(value: Any, separator: str) -> Any:
    """Return a value as a cell: a list joined, a truth value in lower case."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, list):
        return value
    clash = next((item for item in value if separator in str(item)), None)
    if clash is not None and len(value) > 1:
        raise InvalidInputError(
            f"The label {clash!r} contains the separator {separator!r}. Choose another separator, or export .jsonl."
        )
    return separator.join(map(str, value))


def training_texts(decided: Iterable[ReviewText]) -> Corpus:
    """Return decided texts as a corpus to train with, with their columns."""
    texts = [(text, text.decision.labels or ()) for text in decided if text.decision is not None]
    names = sorted({name for text, _ in texts for name in text.columns})
    return Corpus.from_label_sets(
        "review",
        [text.text for text, _ in texts],
        [frozenset(labels) for _, labels in texts],
        ids=[text.id for text, _ in texts],
        columns={name: [str(text.columns.get(name, "")) for text, _ in texts] for name in names},
    )
