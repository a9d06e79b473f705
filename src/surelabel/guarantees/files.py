"""The files of promises: one `.npz` of a JSON header and plain arrays, written whole or not at all, never a pickle."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel._core.npz_file import Arrays, NpzFormat
from surelabel.conformal import ConformalLabelSets
from surelabel.exceptions import ArtifactError, InvalidInputError, SearchLimitError
from surelabel.measures import Measure
from surelabel.predictor_file import predictor_from_bytes, predictor_to_bytes

__all__ = ["predictor_from_array", "predictor_to_array", "read_state", "write_state"]


def write_state(path: str | os.PathLike[str], kind: str, version: int, header: dict[str, Any], arrays: Arrays) -> None:
    """Write a header and arrays to one file."""
    NpzFormat(kind, version, "a file").write(path, header, arrays)


def read_state(
    path: str | os.PathLike[str], kind: str, version: int, names: Collection[str], optional: Collection[str] = ()
) -> tuple[dict[str, Any], Arrays]:
    """Read a file of `write_state` that holds arrays of these names; anything else is rejected."""
    return NpzFormat(kind, version, "a file", tuple(names), tuple(optional)).read(path)


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
