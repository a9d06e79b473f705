"""Files on a disk or, through fsspec, in a remote store."""

from __future__ import annotations

import contextlib
import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from surelabel._core.extras import of_extra
from surelabel._core.storage import atomic_file
from surelabel.exceptions import MissingDependencyError


def is_url(name: str | os.PathLike[str]) -> bool:
    """Whether a name is a URL rather than a path."""
    return "://" in os.fspath(name)


def file_system(url: str | os.PathLike[str]) -> tuple[Any, str]:
    """Return the file system of a path or URL, and the path in it."""
    with of_extra("distributed", "A data set"):
        import fsspec  # noqa: PLC0415
    try:
        system, path = fsspec.core.url_to_fs(os.fspath(url))
    except ImportError as error:
        raise MissingDependencyError(f"{os.fspath(url)!r} needs another package: {error}") from error
    return system, str(path)


def open_binary(url: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file for reading; a path needs no fsspec."""
    if not is_url(url):
        return Path(url).open("rb")
    files, path = file_system(url)
    stream: IO[bytes] = files.open(path, "rb")
    return stream


class Store:
    """A folder of files, on a disk or in a remote store; a reader sees a file whole or not at all."""

    def __init__(self, url: str | os.PathLike[str]) -> None:
        self.url = os.fspath(url)
        self._files, self._path = file_system(url)
        protocol = self._files.protocol
        is_local = "file" in (protocol if isinstance(protocol, tuple) else (protocol,))
        self.folder = Path(self._path) if is_local else None

    def names(self) -> list[str]:
        """Return the names of all files, relative to the folder."""
        self._files.invalidate_cache()
        if not self._files.exists(self._path):
            return []
        prefix = len(self._path.rstrip("/")) + 1
        return sorted(path[prefix:] for path in self._files.find(self._path, withdirs=False))

    def is_file(self) -> bool:
        """Whether there is a file where the folder should be."""
        return bool(self._files.isfile(self._path))

    def size(self, name: str) -> int | None:
        """Return the bytes of a file, None if there is no such file."""
        try:
            return int(self._files.info(self._at(name))["size"])
        except FileNotFoundError:
            return None

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        with contextlib.suppress(FileNotFoundError):
            self._files.rm_file(self._at(name))

    @contextlib.contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]:
        """Yield a stream; what is written becomes the file when the block ends without an error."""
        if self.folder is not None:
            with atomic_file(self.folder / name, clean=False) as temporary, temporary.open("wb") as file:
                yield file
            return
        temporary_name = self._at(f".{Path(name).name}.{uuid.uuid4().hex}.part")
        try:
            with self._files.open(temporary_name, "wb") as file:
                yield file
            self._files.mv(temporary_name, self._at(name))
        except BaseException:
            with contextlib.suppress(Exception):
                self._files.rm_file(temporary_name)
            raise

    def write_json(self, name: str, document: dict[str, Any]) -> None:
        """Write a JSON file."""
        with self.writing(name) as file:
            file.write(json.dumps(document, indent=1, ensure_ascii=False).encode() + b"\n")

    def create_json(self, name: str, document: dict[str, Any]) -> bool | None:
        """Write a JSON file only if there is none.

        Returns True if it was written and False if there was one. None if the store cannot keep two writers from
        doing so at once: the file may have been written then, or not.
        """
        path = self._at(name)
        content = json.dumps(document).encode()

        def is_made() -> bool:
            try:
                with self._files.open(path, "xb") as file:
                    file.write(content)
            except FileExistsError:
                return False
            return True

        with contextlib.suppress(Exception):  # some stores have no folders, and need none
            self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
        self._files.invalidate_cache()
        if self._files.exists(path):
            return False
        try:
            # A store that ignores "only if there is none" writes the file a second time.
            return is_made() and (None if is_made() else True)
        except (NotImplementedError, TypeError, ValueError):
            return None

    def read_json(self, name: str) -> dict[str, Any] | None:
        """Return a JSON object; None if there is no such file, or it is damaged."""
        try:
            with self._files.open(self._at(name), "rb") as file:
                document = json.loads(file.read())
        except (FileNotFoundError, ValueError, RecursionError):
            return None
        return document if isinstance(document, dict) else None

    def _at(self, name: str) -> str:
        return f"{self._path.rstrip('/')}/{name}"
