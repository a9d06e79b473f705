"""Errors and warnings of the package.

::

    Exception
      SurelabelError
        InvalidInputError        (ValueError)   an argument is not what it must be
        NotCalibratedError       (sklearn NotFittedError)   a prediction was asked for too early
        SearchLimitError         (RuntimeError) an exact answer would pass the stated work limit
          ProhibitiveSearchError                a text is out of reach for the chosen search
        ArtifactError            (ValueError)   a file is damaged, too new, or not ours
        MissingDependencyError   (ImportError)  an optional dependency is not installed
        CorpusError              (ValueError)   a corpus cannot be read or used as asked
          DownloadError                         a corpus could not be fetched
        TrainingError            (RuntimeError) a text classifier could not be trained
        DatasetError             (RuntimeError) a data set was not answered to its end; what is finished stays

    UserWarning
      SurelabelWarning
        CalibrationWarning       the calibration data limits what can be guaranteed
        TruncationWarning        a prediction set was cut at the limit asked for
        DataWarning              the data was usable, but something in it should be known
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

__all__ = [
    "ArtifactError",
    "CalibrationWarning",
    "CorpusError",
    "DataWarning",
    "DatasetError",
    "DownloadError",
    "InvalidInputError",
    "MissingDependencyError",
    "NotCalibratedError",
    "ProhibitiveSearchError",
    "SearchLimitError",
    "SurelabelError",
    "SurelabelWarning",
    "TrainingError",
    "TruncationWarning",
]


class SurelabelError(Exception):
    """Root of every error that the package raises on purpose."""


class InvalidInputError(SurelabelError, ValueError):
    """An argument is not what it must be; the message names it and the first offending place."""


class SearchLimitError(SurelabelError, RuntimeError):
    """An exact answer would pass the stated work limit.

    Attributes
    ----------
    bounds : tuple of int or None
        Certified (lower, upper) bounds of the size that was asked for, where there are any.
    """

    def __init__(self, message: str, bounds: tuple[int, int] | None = None) -> None:
        super().__init__(message)
        self.bounds = bounds

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0], self.bounds)


class ProhibitiveSearchError(SearchLimitError):
    """A text needs more label-sets than the chosen search may consider."""


class ArtifactError(SurelabelError, ValueError):
    """A file is damaged, truncated, of a newer format, or not ours."""


class MissingDependencyError(SurelabelError, ImportError):
    """An optional dependency is not installed; the message says which extra brings it."""


class CorpusError(SurelabelError, ValueError):
    """A corpus cannot be read, or not be used as asked."""


class DownloadError(CorpusError):
    """A corpus could not be fetched; the message lists what was tried and how to do it by hand."""


class TrainingError(SurelabelError, RuntimeError):
    """A text classifier could not be trained, or its run not be resumed."""


class DatasetError(SurelabelError, RuntimeError):
    """A data set was not answered to its end: a cluster is missing or lost, or a file could not be written."""


class SurelabelWarning(UserWarning):
    """Root of the package's warnings."""


class CalibrationWarning(SurelabelWarning):
    """The calibration data limits what can be guaranteed."""


class TruncationWarning(SurelabelWarning):
    """A prediction set was cut at the limit that was asked for."""


class DataWarning(SurelabelWarning):
    """The data was usable, but something in it should be known."""


if TYPE_CHECKING:

    class NotCalibratedError(SurelabelError, ValueError, AttributeError):
        """A prediction was asked for before calibration."""

else:

    @functools.cache
    def _not_calibrated_error() -> type[Exception]:
        """Make NotCalibratedError on first use: its base class costs an import of scikit-learn."""
        from sklearn.exceptions import NotFittedError  # noqa: PLC0415

        class NotCalibratedError(SurelabelError, NotFittedError):
            """A prediction was asked for before calibration."""

        NotCalibratedError.__module__ = __name__
        NotCalibratedError.__qualname__ = "NotCalibratedError"
        return NotCalibratedError

    def __getattr__(name: str) -> Any:
        if name == "NotCalibratedError":
            return _not_calibrated_error()
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
