"""Errors and warnings: each message says who, what was expected, what came, and what to do.

    Exception
      SurelabelError
        InvalidInputError        (ValueError)   an argument is not what it must be
        NotCalibratedError       (RuntimeError, sklearn NotFittedError)   a prediction came before calibration
        SearchLimitError         (RuntimeError) an exact answer would pass the work limit
          ProhibitiveSearchError                a text is out of reach for the chosen search
        ArtifactError            (ValueError)   a file is damaged, too new, or not ours
        MissingDependencyError   (ImportError)  an optional dependency is not installed
        CorpusError              (ValueError)   a corpus cannot be read or used as asked
          DownloadError                         a corpus could not be fetched
        TrainingError            (RuntimeError) a text classifier could not be trained
        DatasetError             (RuntimeError) prediction over a data set did not finish
        ReviewConflictError      (RuntimeError) a text is decided already, or is with another reviewer
        TaggerError              (RuntimeError) an outside tagger gave no usable suggestions

    UserWarning
      SurelabelWarning
        CalibrationWarning       the calibration texts limit what can be promised
        TruncationWarning        a prediction set was cut at the limit asked for
        DataWarning              the data can be used, but the user should know something about it

Messages name the parameter and the first offending place.
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
    "ReviewConflictError",
    "SearchLimitError",
    "SurelabelError",
    "SurelabelWarning",
    "TaggerError",
    "TrainingError",
    "TruncationWarning",
]


class SurelabelError(Exception):
    """Root of every error that the package raises on purpose."""


class InvalidInputError(SurelabelError, ValueError):
    """An argument is not what it must be; the message names it and the first offending place."""


class SearchLimitError(SurelabelError, RuntimeError):
    """An exact answer would pass the work limit; `bounds` has certified (lower, upper) bounds of a size, or None."""

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
    """A corpus cannot be read, or cannot be used as asked."""


class DownloadError(CorpusError):
    """A corpus could not be fetched; the message lists what was tried and how to do it by hand."""


class TrainingError(SurelabelError, RuntimeError):
    """A text classifier could not be trained, or its run could not be resumed."""


class DatasetError(SurelabelError, RuntimeError):
    """Prediction over a data set did not finish: a cluster is missing or lost, or a file could not be written."""


class ReviewConflictError(SurelabelError, RuntimeError):
    """A decision cannot be saved: the text is decided already, or is with another reviewer."""


class TaggerError(SurelabelError, RuntimeError):
    """An outside tagger could not be reached, or its suggestions cannot be used."""


class SurelabelWarning(UserWarning):
    """Root of the package's warnings."""


class CalibrationWarning(SurelabelWarning):
    """The calibration texts limit what can be promised."""


class TruncationWarning(SurelabelWarning):
    """A prediction set was cut at the limit that was asked for."""


class DataWarning(SurelabelWarning):
    """The data can be used, but the user should know something about it."""


if TYPE_CHECKING:

    class NotCalibratedError(SurelabelError, RuntimeError):
        """A prediction was asked for before calibration."""

else:

    @functools.cache
    def _not_calibrated_error() -> type[Exception]:
        """Make NotCalibratedError on first use: its base class costs an import of scikit-learn."""
        from sklearn.exceptions import NotFittedError  # noqa: PLC0415

        class NotCalibratedError(SurelabelError, NotFittedError, RuntimeError):
            """A prediction was asked for before calibration."""

        NotCalibratedError.__module__ = __name__
        NotCalibratedError.__qualname__ = "NotCalibratedError"
        return NotCalibratedError

    def __getattr__(name: str) -> Any:
        if name == "NotCalibratedError":
            return _not_calibrated_error()
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
