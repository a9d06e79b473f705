"""Decisions out: as a table, and as texts to train with."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from surelabel._core.files import atomic_file
from surelabel.corpora import Corpus
from surelabel.exceptions import CorpusError, InvalidInputError
from surelabel.review.queues import ReviewText
from surelabel.review.store import ReviewStore
from surelabel.tables.write import open_writer

ADDED = ("final_labels", "uris", "decided_by", "queue", "changed", "unknown_labels")
"""Columns that an export adds to those of the file."""
FORMATS = ("csv", "jsonl", "xlsx")


def export_rows(
    store: ReviewStore, *, label_names: Iterable[str] | None = None, uris: Mapping[str, str] | None = None
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
        yield {**_own_columns(text), **_added(text, known, uris)}


def _own_columns(text: ReviewText) -> dict[str, Any]:
    """Return the cells of the file; a column that an export adds too is renamed."""
    columns = dict(text.columns) or {"id": text.id, "text": text.text}
    return {f"{name}_before" if name in ADDED else name: value for name, value in columns.items()}


def _added(text: ReviewText, known: set[str] | None, uris: Mapping[str, str] | None) -> dict[str, Any]:
    """Return the columns that an export adds."""
    labels, decision = text.final_labels, text.decision
    added: dict[str, Any] = {"final_labels": None if labels is None else list(labels)}
    if uris is not None:
        added["uris"] = None if labels is None else [uris.get(label, "") for label in labels]
    decided_by = "model" if decision is None else decision.reviewer
    is_blind = decision is not None and decision.answer is None
    changed = None if labels is None or is_blind else decision is not None and decision.action != "accept"
    added |= {"decided_by": None if labels is None else decided_by, "queue": text.queue, "changed": changed}
    if known is not None:
        added["unknown_labels"] = sorted(set(labels or ()) - known)
    return added


def export_decisions(
    store: ReviewStore,
    path: str | os.PathLike[str] | IO[bytes],
    kind: str | None = None,
    *,
    label_names: Iterable[str] | None = None,
    uris: Mapping[str, str] | None = None,
    separator: str = ",",
) -> int:
    """Write what was decided to a .csv, .jsonl or .xlsx file and return the number of texts.

    Parameters
    ----------
    store : ReviewStore
    path : path, or stream of bytes
    kind : {"csv", "jsonl", "xlsx"}, optional
        By default what the suffix says.
    label_names, uris
        As of `export_rows`.
    separator : str
        Between labels in a cell of CSV and XLSX.
    """
    is_path = isinstance(path, (str, os.PathLike))
    kind = kind or (Path(path).suffix.lower().lstrip(".") if is_path else "")  # type: ignore[arg-type]
    if kind not in FORMATS:
        raise InvalidInputError(f"An export must be .csv, .jsonl or .xlsx. Got {kind!r} instead.")
    names = None if label_names is None else tuple(label_names)
    if is_path:
        with atomic_file(path, "wb") as stream:  # type: ignore[arg-type]
            return _write(stream, kind, store, names, uris, separator)
    return _write(path, kind, store, names, uris, separator)  # type: ignore[arg-type]


def exported_bytes(store: ReviewStore, kind: str, **options: Any) -> bytes:
    """Return an export as the content of a file; `options` as of `export_decisions`."""
    stream = io.BytesIO()
    export_decisions(store, stream, kind, **options)
    return stream.getvalue()


def _write(
    stream: IO[bytes],
    kind: str,
    store: ReviewStore,
    label_names: tuple[str, ...] | None,
    uris: Mapping[str, str] | None,
    separator: str,
) -> int:
    """Write the rows; their columns are those of all texts, in the order in which they first occur."""
    headings: dict[str, Any] = {}
    if kind != "jsonl":
        for row in export_rows(store, label_names=label_names, uris=uris):
            headings.update(dict.fromkeys((name for name in row if name not in ADDED), str))
        absent = {"uris": uris, "unknown_labels": label_names}
        headings |= {name: str for name in ADDED if absent.get(name, ()) is not None}
    writer = open_writer(stream, kind, headings)
    n_rows = 0
    for row in export_rows(store, label_names=label_names, uris=uris):
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


def training_texts(store: ReviewStore, *, checks: bool = False, up_to: int | None = None) -> Corpus:
    """Return decided texts as a corpus to train with.

    Parameters
    ----------
    store : ReviewStore
    checks : bool
        Whether texts of the blind check are among them. They can calibrate a model that has not seen them: leave them
        out unless that model is retired.
    up_to : int, optional
        Only texts with numbers up to this one.
    """
    decided = [
        text
        for text in store.texts()
        if text.decision is not None and (checks or not text.is_check) and (up_to is None or text.number <= up_to)
    ]
    if not decided:
        raise CorpusError("No text of the review has been decided yet.")
    return corpus_of(decided)


def corpus_of(texts: Iterable[ReviewText]) -> Corpus:
    """Return decided texts as a corpus, with their columns."""
    decided = [(text, text.decision.labels or ()) for text in texts if text.decision is not None]
    names = sorted({name for text, _ in decided for name in text.columns})
    columns = {name: tuple(str(text.columns.get(name, "")) for text, _ in decided) for name in names}
    return Corpus.from_label_sets(
        "review",
        [text.text for text, _ in decided],
        [frozenset(labels) for _, labels in decided],
        ids=[text.id for text, _ in decided],
        columns=columns,
    )
