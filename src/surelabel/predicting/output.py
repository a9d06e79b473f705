"""The output folder of a data set: one Parquet file a partition, a note about each, a manifest last.

::

    part-000000.parquet     the answers to a partition, whole or not there
    _surelabel/run.json     model and settings, so that no other run goes on with it
    _surelabel/part-000000.json   what the partition was made of; without it the partition does not count
    _skipped.jsonl          rows without an answer, and why
    _manifest.json          written last: all partitions are there

Names that begin with an underscore are no data to readers of Parquet data sets.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

from surelabel._core.storage import lock_file
from surelabel._version import __version__
from surelabel.exceptions import DatasetError, InvalidInputError
from surelabel.predicting.locks import is_held, remote_lock
from surelabel.predicting.partitions import Partition
from surelabel.predicting.storage import Store

__all__ = ["MANIFEST", "SKIPPED", "OutputFolder"]

MANIFEST, SKIPPED = "_manifest.json", "_skipped.jsonl"
_NOTES = "_surelabel"
_RUN, _LOCK, _REMOTE_LOCK = f"{_NOTES}/run.json", f"{_NOTES}/lock", f"{_NOTES}/lock.json"
_OURS = re.compile(
    r"part-\d{6}\.parquet|_manifest\.json|_skipped\.jsonl|_surelabel/(run|lock(\.[0-9a-f]{16})*|part-\d{6})(\.json)?"
)
_PASSING = re.compile(r"(_surelabel/)?\.[^/]+\.part")


def _file_of(index: int) -> str:
    return f"part-{index:06d}.parquet"


def _note_of(index: int) -> str:
    return f"{_NOTES}/part-{index:06d}.json"


class OutputFolder:
    """Where the answers to a data set go.

    Parameters
    ----------
    url : str or path
        A folder on a disk that all workers see, or in a remote store.
    identity : mapping of plain values
        What every answer depends on beside its text.
    token : str, optional
        Of the lock in a remote store that the run holds.
    """

    def __init__(self, url: str | os.PathLike[str], identity: dict[str, Any], token: str | None = None) -> None:
        self.store = Store(url)
        self.identity = identity
        self.token = token

    def check(self, *, resume: bool) -> None:
        """Raise unless a run may write here: nothing, or an earlier run with the same model and settings to go on with.

        Nothing is changed.
        """
        url = self.store.url
        if self.store.is_file():
            raise InvalidInputError(f"The output {url} is a file. Name a folder.")
        names = self.store.names()
        foreign = [name for name in names if not (_OURS.fullmatch(name) or _PASSING.fullmatch(name))]
        if foreign:
            raise InvalidInputError(
                f"The output folder {url} has files that no run made, such as {foreign[0]!r}. Choose a new folder."
            )
        known = self.store.read_json(_RUN)
        if known is None and any(name.startswith("part-") for name in names):
            raise InvalidInputError(f"The output folder {url} has answers, but {_RUN} is gone. Choose a new folder.")
        if known is None:
            return
        if not resume:
            raise InvalidInputError(
                f"The output folder {url} has an earlier run. Go on with it with --resume, or choose a new folder."
            )
        differing = sorted(key for key in {*known, *self.identity} if known.get(key) != self.identity.get(key))
        if differing:
            raise InvalidInputError(
                f"The run in {url} was begun with another {', '.join(differing)}. Use the same, or choose a new folder."
            )

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other runs out while the block lasts."""
        if self.store.folder is None:
            with remote_lock(self.store, _REMOTE_LOCK) as self.token:
                yield
            return
        path = self.store.folder / _LOCK
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a") as file:
            lock_file(file, self.store.folder)
            yield

    def check_lock(self) -> None:
        """Raise where another run has taken the folder, in a store that cannot keep it out."""
        if self.token is not None and not is_held(self.store, _REMOTE_LOCK, self.token):
            raise DatasetError(f"The output folder {self.store.url} was taken by another run.")

    def begin(self) -> None:
        """Remove what a kill left half-written, and say which run this is."""
        self.check_lock()
        for name in self.store.names():
            if _PASSING.fullmatch(name):
                self.store.remove(name)
        self.store.write_json(_RUN, self.identity)

    def finished(self, partitions: list[Partition]) -> dict[int, dict[str, Any]]:
        """Return the notes of partitions that are done: of the same rows of the same file, and still there."""
        notes = {}
        for index, partition in enumerate(partitions):
            note = self.store.read_json(_note_of(index))
            is_same = note is not None and note.get("input") == partition.to_dict()
            if note is not None and is_same and self.store.size(_file_of(index)) == note.get("bytes"):
                notes[index] = note
        return notes

    @contextlib.contextmanager
    def writing(self, index: int) -> Iterator[Any]:
        """Yield a stream for the answers to a partition."""
        with self.store.writing(_file_of(index)) as stream:
            yield stream
            if self.store.read_json(_RUN) != self.identity:
                raise DatasetError(f"The output folder {self.store.url} was taken by another run.")
            self.check_lock()

    def note(self, index: int, partition: Partition, n_rows: int, skipped: Iterable[Any]) -> dict[str, Any]:
        """Note that a partition is done; from now on it counts."""
        document = {
            "file": _file_of(index),
            "bytes": self.store.size(_file_of(index)),
            "n_rows": n_rows,
            "skipped": [dataclasses.asdict(each) for each in skipped],
            "input": partition.to_dict(),
        }
        self.store.write_json(_note_of(index), document)
        return document

    def open_again(self) -> None:
        """Take back that all partitions are there."""
        self.store.remove(MANIFEST)

    def complete(self, notes: dict[int, dict[str, Any]]) -> None:
        """Remove partitions of an earlier, larger input; list skipped rows; write the manifest."""
        self.check_lock()
        wanted = {name for index in notes for name in (_file_of(index), _note_of(index))}
        for name in self.store.names():
            if re.search(r"part-\d{6}\.", name) and name not in wanted:
                self.store.remove(name)
        ordered = [notes[index] for index in sorted(notes)]
        skipped = [each for note in ordered for each in note["skipped"]]
        if skipped:
            with self.store.writing(SKIPPED) as file:
                file.writelines(json.dumps(each, ensure_ascii=False).encode() + b"\n" for each in skipped)
        else:
            self.store.remove(SKIPPED)
        document = {
            "format": "surelabel-answers",
            "version": 1,
            "written_by": f"surelabel {__version__}",
            **self.identity,
            "n_rows": sum(note["n_rows"] for note in ordered),
            "n_skipped": n_skipped(ordered),
            "partitions": [{key: note[key] for key in ("file", "bytes", "n_rows", "input")} for note in ordered],
        }
        self.store.write_json(MANIFEST, document)


def n_skipped(notes: Iterable[dict[str, Any]]) -> int:
    """Return how many rows have no answer."""
    return sum(each["last_row"] - each["first_row"] + 1 for note in notes for each in note["skipped"])
