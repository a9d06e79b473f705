"""Folders of files that are described by one of them: written whole, and read as the bytes that were checked.

A description lists size and SHA-256 of every other file, and has a checksum of its own. A folder is opened once: its
files are copied while they are hashed, so that what is loaded is what was checked, even if the folder is replaced at
the same moment.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any

from surelabel._core.storage import atomic_folder, leads_outside
from surelabel._version import __version__
from surelabel.exceptions import ArtifactError, InvalidInputError

# The description lists files and settings; one that is larger is not ours.
_MAX_DESCRIPTION = 64 * 2**20
_COPIED = 2**20
# A folder that is replaced while it is read is read again, for this many seconds.
_PATIENCE = 20.0
# Folders that this process has copied and checked.
_private: set[Path] = set()


@dataclasses.dataclass(frozen=True)
class FolderFormat:
    """One kind of described folder: its description says `format` and `version`; lower versions are read too."""

    what: str  # for messages
    description: str  # the file that describes the others
    format: str
    version: int
    oldest: int
    advice: str  # what to do if there is no such folder
    check_name: Callable[[str], bool] | None = None
    needed: tuple[str, ...] = ()
    without_checksum: int = 0  # the last version whose description has no checksum of its own

    def check_target(self, folder: Path) -> Path:
        """Return where a folder is written, links followed; raise unless it is absent, empty, or of this kind."""
        target = folder.resolve()
        if not target.exists():
            return target
        if not target.is_dir():
            raise InvalidInputError(f"A {self.what} is a folder, and {folder} is a file. Choose another name.")
        if any(target.iterdir()) and not (target / self.description).is_file():
            raise InvalidInputError(
                f"A {self.what} cannot be written to {folder}: it holds something else than a {self.what}. Choose a "
                "new folder."
            )
        if Path.cwd().is_relative_to(target):
            raise InvalidInputError(
                f"The {self.what} {target} cannot be replaced while it is the current folder. Run the command from "
                "another folder, or write to another one (--out)."
            )
        return target

    @contextlib.contextmanager
    def write(self, folder: Path, description: dict[str, Any]) -> Iterator[Path]:
        """Yield a folder to write files into; it is described and takes the place of `folder` at the end."""
        with atomic_folder(self.check_target(folder)) as temporary:
            yield temporary
            names = sorted(path.relative_to(temporary).as_posix() for path in temporary.rglob("*") if not path.is_dir())
            document = {
                "format": self.format,
                "version": self.version,
                "written_by": f"surelabel {__version__}",
                **description,
                "files": {name: _fingerprint(temporary / name) for name in names},
            }
            document["sha256"] = own_checksum(document)
            text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
            (temporary / self.description).write_text(text, encoding="utf-8")

    @contextlib.contextmanager
    def opened(self, folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
        """Yield a private copy of a folder, every byte of it checked, and its description."""
        if any(parent in _private for parent in folder.parents):
            yield folder, self._checked(folder, None)
            return
        with tempfile.TemporaryDirectory(prefix="surelabel-", ignore_cleanup_errors=True) as name:
            copy = Path(name) / "copy"
            _private.add(copy)
            try:
                yield copy, self._checked(folder, copy)
            finally:
                _private.discard(copy)

    def check(self, folder: Path) -> dict[str, Any]:
        """Return the description of a folder after checking every file; raise as `opened` does."""
        return self._checked(folder, None)

    def _checked(self, folder: Path, copy: Path | None) -> dict[str, Any]:
        """Check a folder, and copy what was checked; again if another folder takes its place meanwhile."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            if copy is not None:
                # What an interrupted reading has copied belongs to a folder that is gone.
                shutil.rmtree(copy, ignore_errors=True)
            identity = _identity(folder)
            try:
                return self._check_files(folder, copy)
            except ArtifactError:
                if _identity(folder) == identity or time.monotonic() > deadline:
                    raise

    def _check_files(self, folder: Path, copy: Path | None) -> dict[str, Any]:
        """Check the description, then names, then bytes."""
        if not folder.is_dir():
            raise ArtifactError(f"There is no {self.what} at {folder}. {self.advice}")
        document = self._description(folder)
        files = document["files"]
        for name, expected in files.items():
            self._check_listed(folder, name, expected)
        present = set(self._names(folder)) - {self.description}
        unknown, missing = sorted(present - set(files)), sorted({*files, *self.needed} - present)
        if unknown:
            raise ArtifactError(
                f"The {self.what} {folder} is refused: {unknown[0]!r} does not belong to it. Remove it if it is yours."
            )
        if missing:
            raise self._missing(folder, missing[0])
        for name, expected in files.items():
            size, checksum = self._copied(folder, name, copy)
            sizes = {"bytes": size, "sha256": checksum}
            if (expected if isinstance(expected, dict) else {"bytes": size, "sha256": expected}) != sizes:
                raise self._damaged(folder, f"{name} is not what was written. Get it again")
        return document

    def _description(self, folder: Path) -> dict[str, Any]:
        """Return the description if it is one of ours."""
        try:
            with self._open(folder, self.description) as file:
                content = file.read(_MAX_DESCRIPTION + 1)
        except ArtifactError:
            raise ArtifactError(f"{folder} is not a {self.what}: it has no {self.description}.") from None
        if len(content) > _MAX_DESCRIPTION:
            raise ArtifactError(f"{folder} is not a {self.what}: its {self.description} is too large.")
        try:
            document = json.loads(content.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            raise self._damaged(folder, f"{self.description} is not JSON ({error})") from error
        if not isinstance(document, dict) or document.get("format") != self.format:
            raise ArtifactError(f"{folder} is not a {self.what}: its {self.description} does not say that it is one.")
        version = document.get("version")
        if not isinstance(version, int) or isinstance(version, bool) or not self.oldest <= version <= self.version:
            raise ArtifactError(
                f"The {self.what} {folder} has format version {version!r}, written by {document.get('written_by')!r}; "
                f"this is surelabel {__version__}, which reads version {self.version}. Install a newer surelabel."
            )
        if not isinstance(document.get("files"), dict):
            raise self._damaged(folder, f"{self.description} does not list its files")
        if version > self.without_checksum and document.get("sha256") != own_checksum(document):
            raise self._damaged(folder, f"{self.description} is not what was written. Get it again")
        return document

    def _check_listed(self, folder: Path, name: str, expected: Any) -> None:
        """Raise if a listed name leads out of the folder, is not one of a folder of this kind, or has no checksum."""
        parts = PurePosixPath(name).parts
        if leads_outside(name):
            raise ArtifactError(f"The {self.what} {folder} is refused: it names a file outside itself, {name!r}.")
        is_proper = bool(parts) and PurePosixPath(*parts).as_posix() == name
        if not is_proper or (self.check_name is not None and not self.check_name(name)):
            raise ArtifactError(f"The {self.what} {folder} is refused: {name!r} is not a file of a {self.what}.")
        if not (isinstance(expected, str) or (isinstance(expected, dict) and set(expected) == {"bytes", "sha256"})):
            raise self._damaged(folder, f"{self.description} does not say what {name!r} is")

    def _names(self, folder: Path) -> Iterator[str]:
        """Yield the names of all files, those in folders too; links and other things are refused."""
        for place, folders, files in os.walk(folder):
            inside = PurePosixPath(Path(place).relative_to(folder).as_posix())
            for name in (*folders, *files):
                try:
                    mode = Path(place, name).lstat().st_mode
                except FileNotFoundError:
                    raise self._missing(folder, str(inside / name)) from None
                if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                    raise ArtifactError(f"The {self.what} {folder} is refused: {inside / name} is not a plain file.")
            yield from ((inside / name).as_posix() for name in files)

    def _open(self, folder: Path, name: str) -> IO[bytes]:
        """Open a plain file of a folder for reading; links are not followed."""
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        try:
            return os.fdopen(os.open(folder / name, flags), "rb")
        except FileNotFoundError:
            raise self._missing(folder, name) from None
        except OSError as error:
            raise ArtifactError(
                f"The {self.what} {folder} is refused: {name} is not a plain file ({error.strerror})."
            ) from error

    def _copied(self, folder: Path, name: str, copy: Path | None) -> tuple[int, str]:
        """Read a file once; return its size and SHA-256, and write the same bytes to a copy."""
        checksum, size = hashlib.sha256(), 0
        with contextlib.ExitStack() as files:
            source = files.enter_context(self._open(folder, name))
            target = None
            if copy is not None:
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                target = files.enter_context((copy / name).open("wb"))
            while block := source.read(_COPIED):
                checksum.update(block)
                size += len(block)
                if target is not None:
                    target.write(block)
        return size, checksum.hexdigest()

    def _missing(self, folder: Path, name: str) -> ArtifactError:
        """Return the error of a folder without one of its files."""
        return self._damaged(folder, f"{name} is missing. Get it again")

    def _damaged(self, folder: Path, why: str) -> ArtifactError:
        """Return the error of a damaged folder."""
        return ArtifactError(f"The {self.what} {folder} is damaged: {why}.")


def _identity(folder: Path) -> tuple[int, ...] | None:
    """Return what changes if another folder takes the place of this one, or files come and go."""
    try:
        status = folder.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino, status.st_ctime_ns


def own_checksum(document: dict[str, Any]) -> str:
    """Return the SHA-256 of a description without the checksum in it."""
    rest = {name: value for name, value in document.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _fingerprint(path: Path) -> dict[str, Any]:
    """Return the size and SHA-256 of a file."""
    with path.open("rb") as file:
        return {"bytes": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}
