"""An output file that is whole or not there, and that an interrupted run goes on with.

Records go into `<file>.part` as JSONL, whole batches at a time; `<file>.part.json` says how many rows and bytes of it
count, and of which input, model and settings they are. A kill between the two leaves more bytes than count: they
are cut off when the run goes on, so that no row is lost or written twice. At the end the part becomes the file, in one
step.
"""

from __future__ import annotations

import itertools
import json
import os
import types
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO, Self

from surelabel._core.storage import atomic_file, clean_up, lock_file
from surelabel.exceptions import InvalidInputError
from surelabel.predicting.writing import Record, open_writer, output_format, to_json

__all__ = ["ResumableOutput"]

_ROWS_AT_A_TIME = 1_000


class ResumableOutput:
    """Write records to a file, and go on with it after an interruption.

    Parameters
    ----------
    target : path
        File to write; its suffix says the format (.jsonl, .csv, .parquet).
    identity : mapping of plain values
        What the records depend on; a part of another identity is not gone on with.
    resume : bool
        Go on with what an interrupted run left; False starts anew.
    top, separator
        As in `open_writer`.

    Attributes
    ----------
    n_rows : int
        Rows that are written.
    """

    def __init__(
        self,
        target: str | os.PathLike[str],
        identity: Mapping[str, Any],
        *,
        resume: bool = False,
        top: int = 5,
        separator: str = ",",
    ) -> None:
        self.target = Path(target)
        self._kind = output_format(self.target)
        self._identity = json.loads(json.dumps(identity))
        self._resume = resume
        self._top = top
        self._separator = separator
        self.n_rows = 0
        self.part = self.target.with_name(f"{self.target.name}.part")
        self._journal = self.target.with_name(f"{self.target.name}.part.json")
        self._file: BinaryIO | None = None
        if self.target.is_dir():
            raise InvalidInputError(f"The output {self.target} is a folder. Name a file.")

    @property
    def is_interrupted(self) -> bool:
        """Whether an interrupted run left something to go on with."""
        return self._journal.is_file() and self.part.is_file()

    def __enter__(self) -> Self:
        self.target.parent.mkdir(parents=True, exist_ok=True)
        n_bytes = self._counted() if self._resume else 0
        self._file = self.part.open("r+b" if self.part.exists() else "w+b")
        lock_file(self._file, self.target)
        self._file.truncate(n_bytes)
        self._file.seek(n_bytes)
        self._note()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: types.TracebackType | None
    ) -> None:
        assert self._file is not None
        try:
            if kind is None:
                self._finish()
        finally:
            self._file.close()
            if kind is not None and self.n_rows == 0:
                self._remove()

    def write(self, records: Iterable[Record]) -> None:
        """Write a batch; from now on it counts."""
        assert self._file is not None
        lines = [to_json(record) for record in records]
        self._file.write("".join(f"{line}\n" for line in lines).encode())
        self._file.flush()
        os.fsync(self._file.fileno())
        self.n_rows += len(lines)
        self._note()

    def _note(self) -> None:
        """Say in the journal what counts."""
        assert self._file is not None
        document = {"rows": self.n_rows, "bytes": self._file.tell(), "identity": self._identity}
        with atomic_file(self._journal, clean=self.n_rows == 0) as temporary:
            temporary.write_text(json.dumps(document), encoding="utf-8")

    def _counted(self) -> int:
        """Read the journal; return the bytes that count, and set the rows."""
        clean_up(self._journal)
        if not self.is_interrupted:
            return 0
        try:
            document = json.loads(self._journal.read_text(encoding="utf-8"))
            rows, n_bytes, identity = int(document["rows"]), int(document["bytes"]), document["identity"]
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInputError(f"{self._journal} is damaged ({error}). Start anew, without --resume.") from error
        differing = sorted(key for key in {*identity, *self._identity} if identity.get(key) != self._identity.get(key))
        if differing:
            raise InvalidInputError(
                f"{self.part} was begun with another {', '.join(differing)}. Use the same, or start anew, without "
                "--resume."
            )
        if n_bytes > self.part.stat().st_size:
            raise InvalidInputError(f"{self.part} is shorter than it was. Start anew, without --resume.")
        self.n_rows = rows
        return n_bytes

    def _finish(self) -> None:
        """Turn the part into the file."""
        assert self._file is not None
        if self._kind == "jsonl":
            self.part.replace(self.target)
        else:
            self._convert()
        self._remove()

    def _convert(self) -> None:
        """Write the part in the format of the file, some rows at a time."""
        assert self._file is not None
        self._file.seek(0)
        lines = (json.loads(line) for line in self._file)
        with atomic_file(self.target) as temporary, _open_for(temporary, self._kind) as out:
            writer = open_writer(out, self._kind, top=self._top, separator=self._separator)
            while records := list(itertools.islice(lines, _ROWS_AT_A_TIME)):
                writer.write(records)
            writer.close()

    def _remove(self) -> None:
        """Remove part and journal."""
        self._journal.unlink(missing_ok=True)
        self.part.unlink(missing_ok=True)


def _open_for(path: Path, kind: str) -> IO[Any]:
    """Open a file for writing a format: text, or bytes for parquet."""
    return path.open("wb") if kind == "parquet" else path.open("w", encoding="utf-8", newline="")
