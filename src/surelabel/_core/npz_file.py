"""Arrays with a header in one `.npz`, never a pickle: the one place that writes and reads such files.

The header is JSON, in an array named `header`. Predictors of earlier versions have it in an entry `header.json`
instead; they are read too.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import math
import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from surelabel._core.storage import atomic_file
from surelabel._version import __version__
from surelabel.exceptions import ArtifactError

Arrays: TypeAlias = dict[str, npt.NDArray[Any]]

_HEADER, _EARLIER_HEADER = "header.npy", "header.json"
# What an archive unpacks to may be this large without question; more must be in proportion to what is packed.
_FREE_BYTES = 64 * 2**20
_MOST_RATIO = 100


@dataclasses.dataclass(frozen=True)
class NpzFormat:
    """A format of files: its name, its newest version (all from 1 are read), and what a file is, for errors."""

    name: str
    version: int
    what: str
    arrays: tuple[str, ...] = ()  # must be in a file
    optional: tuple[str, ...] | None = ()  # can be in a file; None stands for any

    def write(self, path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        """Write a file whole or not at all; its version is the newest unless the header names another."""
        with atomic_file(path) as temporary, temporary.open("wb") as stream:
            self._write(stream, header, arrays)

    def to_bytes(self, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> bytes:
        """Return what `write` writes."""
        buffer = io.BytesIO()
        self._write(buffer, header, arrays)
        return buffer.getvalue()

    def _write(self, stream: IO[bytes], header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
        described = {"format": self.name, "version": self.version, "surelabel": __version__, **header}
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, array in {"header": np.array(json.dumps(described)), **arrays}.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                    np.lib.format.write_array(entry, np.asanyarray(array), allow_pickle=False)

    def read(self, path: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays]:
        """Return header and arrays of a file; anything else is refused with ArtifactError."""
        file = Path(path)
        with file.open("rb") as stream:
            return self._read(stream, file)

    def from_bytes(self, data: bytes, file: Path) -> tuple[dict[str, Any], Arrays]:
        """Do what `read` does for bytes; `file` is where they come from, for errors."""
        return self._read(io.BytesIO(data), file)

    def _read(self, stream: IO[bytes], file: Path) -> tuple[dict[str, Any], Arrays]:
        with _opened(stream, file, f"{self.what} of format {self.name!r}") as archive:
            header = self._checked_header(archive, file)
            return header, _arrays(archive)

    def _checked_header(self, archive: zipfile.ZipFile, file: Path) -> dict[str, Any]:
        """Return the header; refuse other files, and versions that are newer than we are."""
        names = archive.namelist()
        held = {name.removesuffix(".npy") for name in names if name.endswith(".npy")} - {"header"}
        headers = {_HEADER, _EARLIER_HEADER} & set(names)
        is_known = self.optional is None or held <= {*self.arrays, *self.optional}
        # Every entry is an array or the header, and no name comes twice.
        is_whole = len(names) == len(set(names)) == len(held) + len(headers) and len(headers) == 1
        if not (is_known and is_whole and set(self.arrays) <= held):
            raise ArtifactError(f"{file} is not {self.what} of format {self.name!r}: it holds {sorted(names)[:5]}.")
        header: dict[str, Any] = json.loads(
            str(_array(archive, _HEADER)) if _HEADER in headers else archive.read(_EARLIER_HEADER)
        )
        named = header.get("format") if isinstance(header, dict) else None
        if named != self.name:
            raise ArtifactError(f"{file} is not {self.what}: its format is {named!r}, not {self.name!r}.")
        if type(header.get("version")) is not int or not 1 <= header["version"] <= self.version:
            raise ArtifactError(
                f"{file} is {self.what} of format version {header.get('version')!r}, written by surelabel "
                f"{header.get('surelabel')!r}; this is surelabel {__version__}, which reads versions 1 to "
                f"{self.version}. Update surelabel to load it."
            )
        return header


@contextlib.contextmanager
def _opened(stream: IO[bytes], file: Path, what: str) -> Iterator[zipfile.ZipFile]:
    """Yield an archive whose arrays are as large as they claim to be; whatever is wrong is an ArtifactError."""
    try:
        with zipfile.ZipFile(stream) as archive:
            _check_arrays(archive, file)
            yield archive
    except ArtifactError:
        raise
    except Exception as error:  # decompressors and parsers of damaged bytes raise what they like
        raise ArtifactError(f"{file} is not {what}, or it is damaged: {error}.") from error


def _array(archive: zipfile.ZipFile, name: str) -> npt.NDArray[Any]:
    """Read one array; Python objects are refused."""
    with archive.open(name) as stream:
        array: npt.NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
    return array


def _arrays(archive: zipfile.ZipFile) -> Arrays:
    """Read all arrays but the header."""
    names = [name for name in archive.namelist() if name not in (_HEADER, _EARLIER_HEADER)]
    return {name.removesuffix(".npy"): _array(archive, name) for name in names}


def read_arrays(path: Path) -> Arrays:
    """Read an `.npz` without a header: the arrays of a file that another file describes."""
    with path.open("rb") as stream, _opened(stream, path, "an archive of arrays") as archive:
        return _arrays(archive)


def _check_arrays(archive: zipfile.ZipFile, path: Path) -> None:
    """Raise ArtifactError unless every array of an open `.npz` is of plain values and as large as its header says."""
    for entry in archive.infolist():
        try:
            _check_entry(archive, entry)
        except ArtifactError as error:
            raise ArtifactError(f"{path} is refused: {error}") from None


def _check_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> None:
    """Check one member: its packed size against its claimed size, and that against the array's header."""
    if entry.file_size > max(_FREE_BYTES, _MOST_RATIO * entry.compress_size):
        raise ArtifactError(
            f"{entry.filename} claims {entry.file_size:,} bytes, but there are {entry.compress_size:,} packed ones."
        )
    if not entry.filename.endswith(".npy"):
        return
    with archive.open(entry) as stream:
        shape, dtype = _npy_header(stream)
        declared = stream.tell() + math.prod(shape) * dtype.itemsize
    if dtype.hasobject:
        raise ArtifactError(f"{entry.filename} holds Python objects, which only running code could read.")
    if declared != entry.file_size:
        raise ArtifactError(f"the array {entry.filename} claims {declared:,} bytes, but has {entry.file_size:,}.")


def _npy_header(stream: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Read the header of an array; leave the stream where its values begin."""
    version = np.lib.format.read_magic(stream)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in read:
        raise ArtifactError(f"an array of format {version}, which surelabel does not write.")
    shape, _, dtype = read[version](stream)
    return shape, dtype
