"""What was decided, as a table: the columns of the file with the labels that each text ends with."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from typing import IO, Any

from surelabel._core.storage import atomic_file
from surelabel.exceptions import InvalidInputError
from surelabel.review.store import ReviewStore
from surelabel.tables.writing import open_writer, output_format

ADDED = ("final_labels", "decided_by", "queue", "changed")
"""Columns that an export adds to those of the file."""
FORMATS = ("csv", "jsonl", "xlsx")


def exported_rows(store: ReviewStore) -> Iterator[dict[str, Any]]:
    """Yield a row per text: its own columns, then `final_labels`, `decided_by`, `queue` and `changed`.

    `decided_by` is the reviewer, "model" if the text was filed without a person, None if nobody has decided; then the
    labels and `changed` are None too. `changed` says whether the labels differ from the best guess.

    Examples
    --------
    >>> import tempfile
    >>> from surelabel.review import NewText, Offer, ReviewStore
    >>> store = ReviewStore(f"{tempfile.mkdtemp()}/reviews.sqlite")
    >>> store.add([NewText("1", "Crude rose.", Offer("file", "", ("oil",)), "0", columns={"id": "1", "title": "Oil"})])
    1
    >>> list(exported_rows(store))
    [{'id': '1', 'title': 'Oil', 'final_labels': ['oil'], 'decided_by': 'model', 'queue': 'filed', 'changed': False}]
    """
    for text in store.texts():
        labels = text.final_labels
        decided_by = text.decision.reviewer if text.decision is not None else "model"
        columns = dict(text.columns) or {"id": text.id, "text": text.text}
        yield {
            # A column of the file that an export adds too is moved out of the way.
            **{f"{name}_before" if name in ADDED else name: value for name, value in columns.items()},
            "final_labels": None if labels is None else list(labels),
            "decided_by": None if labels is None else decided_by,
            "queue": text.queue,
            "changed": None if labels is None else text.decision is not None and text.decision.is_changed,
        }


def export(store: ReviewStore, path: str | os.PathLike[str], *, separator: str = ",") -> int:
    """Write what was decided to a .csv, .jsonl or .xlsx file; return the number of texts.

    Parameters
    ----------
    store : ReviewStore
    path : path
    separator : str
        Between labels in a cell of CSV and XLSX.
    """
    kind = output_format(path)
    if kind not in FORMATS:
        raise InvalidInputError(f"An export must end in .csv, .jsonl or .xlsx. Got {os.fspath(path)!r} instead.")
    with atomic_file(path) as temporary, temporary.open("wb") as stream:
        return _write(stream, kind, store, separator)


def exported_bytes(store: ReviewStore, kind: str, *, separator: str = ",") -> bytes:
    """Return an export as the content of a file."""
    stream = io.BytesIO()
    _write(stream, kind, store, separator)
    return stream.getvalue()


def _write(stream: IO[bytes], kind: str, store: ReviewStore, separator: str) -> int:
    """Write the rows; their columns are those of all texts, in the order in which they first occur."""
    headings: dict[str, None] = {}
    if kind != "jsonl":
        for row in exported_rows(store):
            headings.update(dict.fromkeys(name for name in row if name not in ADDED))
    writer = open_writer(stream, kind, headings=(*headings, *ADDED))
    n_rows = 0
    for row in exported_rows(store):
        labels = row["final_labels"]
        if kind != "jsonl" and labels is not None:
            clash = next((name for name in labels if separator in name), None)
            if clash is not None:
                raise InvalidInputError(
                    f"The label {clash!r} has the separator {separator!r} in it. Choose another separator, or export "
                    "JSONL."
                )
            row["final_labels"], row["changed"] = separator.join(labels), str(row["changed"]).lower()
        writer.write([row])
        n_rows += 1
    writer.close()
    return n_rows
