"""The output folder of a data set: one file per partition, a note about each, a manifest last.

::

    part-000000.parquet     the answers to a partition, whole or not there (or .jsonl, .csv)
    _surelabel/run.json     model and settings, so that no other run resumes it
    _surelabel/part-000000.json   what the partition was made of; without it the partition does not count
    _skipped.jsonl          rows without an answer, and why
    _manifest.json          written last: all partitions are there

Readers of data sets pass over names that begin with an underscore.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from surelabel._core.storage import locked
from surelabel._version import __version__
from surelabel.exceptions import DatasetError, InvalidInputError
from surelabel.predicting.locks import is_held, remote_lock
from surelabel.tables.reading import Partition
from surelabel.tables.stores import Store
from surelabel.tables.writing import to_json

MANIFEST, SKIPPED = "_manifest.json", "_skipped.jsonl"
_NOTES = "_surelabel"
_RUN, _LOCK, _REMOTE_LOCK = f"{_NOTES}/run.json", f"{_NOTES}/lock", f"{_NOTES}/lock.json"
_OURS = re.compile(
    r"part-\d{6}\.(parquet|jsonl|csv)|_manifest\.json|_skipped\.jsonl"
    r"|_surelabel/(run|lock(\.[0-9a-f]{16})*|part-\d{6}(\.part)?)(\.json)?"
)
_PASSING = re.compile(r"(_surelabel/)?\.[^/]+\.part")


class OutputFolder:
    """Where the answers to a data set go: a folder on a disk that all workers see, or in a remote store.

    `identity` is what every answer depends on beside its text; `token` is that of the lock in a remote store.
    """

    def __init__(self, url: str | os.PathLike[str], identity: dict[str, Any]) -> None:
        self.store = Store(url)
        self.identity = identity
        self.token: str | None = None

    def file_of(self, index: int) -> str:
        """Return the name of a partition's file."""
        return f"part-{index:06d}.{self.identity['format']}"

    def part_of(self, index: int) -> Path | None:
        """Return where records of a partition wait; None in a remote store, whose files cannot grow."""
        return None if self.store.folder is None else self.store.folder / _NOTES / f"part-{index:06d}.part"

    def check(self, *, resume: bool) -> None:
        """Raise unless a run may write here: an empty place, or an earlier run with the same model and settings.

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
        earlier = self.store.read_json(_RUN)
        if earlier is None and any(name.startswith("part-") for name in names):
            raise InvalidInputError(f"The output folder {url} has answers, but {_RUN} is gone. Choose a new folder.")
        if earlier is None:
            return
        if not resume:
            raise InvalidInputError(
                f"The output folder {url} has an earlier run. Resume it with --resume, or choose a new folder."
            )
        differing = sorted(key for key in {*earlier, *self.identity} if earlier.get(key) != self.identity.get(key))
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
        with locked(self.store.folder / _LOCK, self.store.folder):
            yield

    def check_lock(self) -> None:
        """Raise if another run has taken the folder, in a store that cannot keep it out."""
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
            note = self.store.read_json(f"{_NOTES}/part-{index:06d}.json")
            is_same = note is not None and note.get("input") == dataclasses.asdict(partition)
            if note is not None and is_same and self.store.size(self.file_of(index)) == note.get("bytes"):
                notes[index] = note
        return notes

    @contextlib.contextmanager
    def writing(self, index: int) -> Iterator[Any]:
        """Yield a stream for the answers to a partition."""
        with self.store.writing(self.file_of(index)) as stream:
            yield stream
            if self.store.read_json(_RUN) != self.identity:
                raise DatasetError(f"The output folder {self.store.url} was taken by another run.")
            self.check_lock()

    def note(self, index: int, partition: Partition, **result: Any) -> dict[str, Any]:
        """Note that a partition is done, and what became of its rows; from now on it counts."""
        name = self.file_of(index)
        document = {"file": name, "bytes": self.store.size(name), **result, "input": dataclasses.asdict(partition)}
        self.store.write_json(f"{_NOTES}/part-{index:06d}.json", document)
        return document

    def complete(self, notes: dict[int, dict[str, Any]]) -> None:
        """Remove partitions of an earlier, larger input; list skipped rows; write the manifest."""
        self.check_lock()
        wanted = {name for index in notes for name in (self.file_of(index), f"{_NOTES}/part-{index:06d}.json")}
        for name in self.store.names():
            if re.search(r"part-\d{6}\.", name) and name not in wanted:
                self.store.remove(name)
        ordered = [notes[index] for index in sorted(notes)]
        skipped = [entry for note in ordered for entry in note["skipped"]]
        if skipped:
            with self.store.writing(SKIPPED) as file:
                file.writelines(f"{to_json(entry)}\n".encode() for entry in skipped)
        else:
            self.store.remove(SKIPPED)
        document = {
            "format": "surelabel-answers",
            "version": 2,
            "written_by": f"surelabel {__version__}",
            "run": self.identity,
            "n_rows": sum(note["n_rows"] for note in ordered),
            "n_skipped": len(skipped),
            "partitions": [{key: note[key] for key in ("file", "bytes", "n_rows", "input")} for note in ordered],
        }
        self.store.write_json(MANIFEST, document)
