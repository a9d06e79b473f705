"""The files of promises: one `.npz` of a JSON header and plain arrays, written whole or not at all, never a pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel._core.declared_sizes import check_npz
from surelabel._core.storage import atomic_file
from surelabel._version import __version__
from surelabel.conformal import ConformalLabelSets
from surelabel.exceptions import ArtifactError, InvalidInputError, SearchLimitError
from surelabel.measures import Measure
from surelabel.predictor_file import predictor_from_bytes, predictor_to_bytes

__all__ = ["predictor_from_array", "predictor_to_array", "read_state", "write_state"]

Arrays = dict[str, npt.NDArray[Any]]


def write_state(path: str | os.PathLike[str], kind: str, version: int, header: dict[str, Any], arrays: Arrays) -> None:
    """Write a header and arrays to one file."""
    described = json.dumps({"format": kind, "version": version, "surelabel": __version__, **header})
    entries: dict[str, Any] = {"header": np.array(described), **arrays}
    with atomic_file(path) as temporary, temporary.open("wb") as stream:
        np.savez_compressed(stream, **entries)


def read_state(
    path: str | os.PathLike[str], kind: str, version: int, names: Collection[str], optional: Collection[str] = ()
) -> tuple[dict[str, Any], Arrays]:
    """Read a file of `write_state` that holds arrays of these names; anything else is rejected."""
    file = Path(path)
    try:
        check_npz(file)
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as entries:
            present = set(entries.files)
            if not {"header", *names} <= present <= {"header", *names, *optional}:
                raise ArtifactError(f"it holds {sorted(present)[:5]}")
            header = json.loads(str(entries["header"]))
            if not isinstance(header, dict) or header.get("format") != kind:
                raise ArtifactError("its header is of another format")
            if header.get("version") != version:
                raise ArtifactError(
                    f"it is of version {header.get('version')!r}, written by surelabel {header.get('surelabel')!r}, "
                    f"and this is surelabel {__version__}"
                )
            return header, {name: entries[name] for name in present - {"header"}}
    except (FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except Exception as error:  # decompressors and parsers of damaged bytes raise what they like
        raise ArtifactError(
            f"{file} is not a file of format {kind!r}, version {version}, or it is damaged: {error}."
        ) from error


def predictor_to_array(predictor: ConformalLabelSets) -> npt.NDArray[np.uint8]:
    """Return the file of a calibrated predictor as bytes in an array."""
    return np.frombuffer(predictor_to_bytes(predictor.get_params(), predictor.calibration_), dtype=np.uint8)


def predictor_from_array(array: npt.NDArray[Any], file: Path, measure: Measure | None) -> ConformalLabelSets:
    """Return the inverse of `predictor_to_array`; a measure of a user's own must be given."""
    if array.dtype != np.uint8 or array.ndim != 1:
        raise ArtifactError(f"{file} is damaged: it holds no predictor.")
    parameters, calibration = predictor_from_bytes(array.tobytes(), file, measure)
    try:
        predictor = ConformalLabelSets(**parameters)
    except (InvalidInputError, SearchLimitError) as error:
        raise ArtifactError(f"{file} is damaged: {error}.") from error
    predictor.calibration_ = calibration
    return predictor
