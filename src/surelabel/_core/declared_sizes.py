"""Sizes that files declare, checked against the bytes that are there before anything of that size is allocated."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np

from surelabel.exceptions import ArtifactError

# What an archive unpacks to may be this large without question; more must be in proportion to what is packed.
_FREE_BYTES = 64 * 2**20
_MOST_RATIO = 100


def check_arrays(archive: zipfile.ZipFile, path: Path) -> None:
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
