"""What the files of guarantees share: predictors among their arrays, and one error for damaged values."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel.conformal import ConformalLabelSets
from surelabel.exceptions import ArtifactError
from surelabel.measures import Measure


@contextlib.contextmanager
def damaged(path: str | os.PathLike[str], advice: str) -> Iterator[None]:
    """Refuse a file whose values cannot be used."""
    try:
        yield
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise ArtifactError(f"{os.fspath(path)} is damaged: {error}. {advice}") from error


def predictor_to_array(predictor: ConformalLabelSets) -> npt.NDArray[np.uint8]:
    """Return the file of a calibrated predictor as bytes in an array."""
    return np.frombuffer(predictor._to_bytes(), dtype=np.uint8)


def predictor_from_array(
    array: npt.NDArray[Any], path: str | os.PathLike[str], measure: Measure | None
) -> ConformalLabelSets:
    """Return the inverse of `predictor_to_array`; a measure that a user wrote must be given."""
    if array.dtype != np.uint8 or array.ndim != 1:
        raise ArtifactError(f"{os.fspath(path)} is damaged: it holds no predictor.")
    return ConformalLabelSets._from_bytes(array.tobytes(), path, measure)
