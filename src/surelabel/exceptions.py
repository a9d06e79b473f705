"""Errors and warnings of the package: an error says who, what was expected, what came, and what to do.

    Exception
      SurelabelError
        InvalidInputError        (ValueError)   an argument is not what it must be
        NotCalibratedError       (sklearn NotFittedError)   a prediction was asked for before calibration
        SearchLimitError         (RuntimeError) an exact answer would pass the stated work limit
          ProhibitiveSearchError                a text is out of reach for the chosen search
        ArtifactError            (ValueError)   a file is damaged, too new, or not ours
        MissingDependencyError   (ImportError)  an optional dependency is not installed
        CorpusError              (ValueError)   a corpus cannot be read or used as asked
          DownloadError                         a corpus could not be fetched
        TrainingError            (RuntimeError) a text classifier could not be trained
        DatasetError             (RuntimeError) prediction over a data set did not finish; what is done is kept
        ReviewConflictError      (RuntimeError) a text is decided already, or is with another reviewer

    UserWarning
      SurelabelWarning
        CalibrationWarning       the calibration data limits what can be guaranteed
        TruncationWarning        a prediction set was cut at the limit asked for
        DataWarning              the data can be used, but the user should know something about it

Examples
--------
>>> from surelabel import ConformalLabelSets, exceptions
>>> try:
...     ConformalLabelSets().predict([[0.9, 0.2]])
... except exceptions.NotCalibratedError as error:
...     print(error)
This ConformalLabelSets is not calibrated yet. ...
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
    "TrainingError",
    "TruncationWarning",
]


class SurelabelError(Exception):
    """Root of every error that the package raises on purpose.

    Examples
    --------
    >>> import surelabel
    >>> try:
    ...     surelabel.LpNorm(0.5)
    ... except surelabel.exceptions.SurelabelError as error:
    ...     print(type(error).__name__)
    InvalidInputError
    """


class InvalidInputError(SurelabelError, ValueError):
    """An argument is not what it must be; the message names it and the first offending place.

    Examples
    --------
    >>> import surelabel
    >>> surelabel.LpNorm(0.5)
    Traceback (most recent call last):
    surelabel.exceptions.InvalidInputError: The 'p' parameter of LpNorm must be a number >= 1. Got 0.5 ...
    """


class SearchLimitError(SurelabelError, RuntimeError):
    """An exact answer would pass the stated work limit.

    Attributes
    ----------
    bounds : tuple of int or None
        Certified (lower, upper) bounds of the size that was asked for, if there are any.

    Examples
    --------
    >>> import numpy as np
    >>> from surelabel import ConformalLabelSets
    >>> probabilities, labels = np.full((99, 40), 0.5), np.tile([True, False], (99, 20))
    >>> predictor = ConformalLabelSets(work_limit=1).calibrate(probabilities, labels)
    >>> predictor.predict_set(np.linspace(0.3, 0.7, 40)[None], significance=0.1)[0].size
    Traceback (most recent call last):
    surelabel.exceptions.SearchLimitError: The size of the prediction set of text 0 lies between ...
    """

    def __init__(self, message: str, bounds: tuple[int, int] | None = None) -> None:
        super().__init__(message)
        self.bounds = bounds

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0], self.bounds)


class ProhibitiveSearchError(SearchLimitError):
    """A text needs more label-sets than the chosen search may consider.

    Examples
    --------
    >>> import numpy as np
    >>> from surelabel import ConformalLabelSets
    >>> probabilities, labels = np.full((99, 40), 0.5), np.tile([True, False], (99, 20))
    >>> predictor = ConformalLabelSets(search="powerset").calibrate(probabilities, labels)
    >>> predictor.predict_set(probabilities[:1], significance=0.1).sizes()
    Traceback (most recent call last):
    surelabel.exceptions.ProhibitiveSearchError: The 'powerset' search would have to consider ...
    """


class ArtifactError(SurelabelError, ValueError):
    """A file is damaged, truncated, of a newer format, or not ours.

    Examples
    --------
    >>> import surelabel
    >>> surelabel.load_bundle("models/that-is-not-there")
    Traceback (most recent call last):
    surelabel.exceptions.ArtifactError: There is no bundle at models/that-is-not-there. Make one with ...
    """


class MissingDependencyError(SurelabelError, ImportError):
    """An optional dependency is not installed; the message says which extra brings it.

    Examples
    --------
    >>> import sys
    >>> from unittest import mock
    >>> from surelabel import plots
    >>> with mock.patch.dict(sys.modules, {"matplotlib.style": None}):  # as if it were not installed
    ...     plots.size_histogram([1, 2])
    Traceback (most recent call last):
    surelabel.exceptions.MissingDependencyError: A figure needs matplotlib, which is not installed. ...
    """


class CorpusError(SurelabelError, ValueError):
    """A corpus cannot be read, or cannot be used as asked.

    Examples
    --------
    >>> from surelabel import corpora
    >>> corpora.load("tickets-that-are-not-there.csv")
    Traceback (most recent call last):
    surelabel.exceptions.CorpusError: The source of load must be a name of ['aapd', 'aapd20', 'arxiv', ...
    """


class DownloadError(CorpusError):
    """A corpus could not be fetched; the message lists what was tried and how to do it by hand.

    Examples
    --------
    >>> import os
    >>> from unittest import mock
    >>> from surelabel import corpora
    >>> with mock.patch.dict(os.environ, SURELABEL_DATA="nowhere", SURELABEL_CACHE="nowhere"):
    ...     corpora.load("reuters", download=False)
    Traceback (most recent call last):
    surelabel.exceptions.DownloadError: Reuters-21578 could not be found or fetched. Tried: ...
    """


class TrainingError(SurelabelError, RuntimeError):
    """A text classifier could not be trained, or its run could not be resumed.

    Examples
    --------
    >>> import os
    >>> from unittest import mock
    >>> from surelabel import corpora
    >>> from surelabel.models import train_to_folder
    >>> with mock.patch.dict(os.environ, WORLD_SIZE="2"):  # as if torchrun had started two processes
    ...     train_to_folder(corpora.load("synthetic", n_texts=300, n_labels=5), "model")
    Traceback (most recent call last):
    surelabel.exceptions.TrainingError: A bundle is written by one process, and torchrun or accelerate ...
    """


class DatasetError(SurelabelError, RuntimeError):
    """Prediction over a data set did not finish: a cluster is missing or lost, or a file could not be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from unittest import mock
    >>> from surelabel import corpora, predict_dataset
    >>> from surelabel.models import TrainingSettings, train_bundle
    >>> bundle = train_bundle(corpora.load("synthetic", n_texts=300, n_labels=5), TrainingSettings(compared={}))
    >>> full = mock.patch("pyarrow.parquet.ParquetWriter", side_effect=OSError("No space left on device"))
    >>> with tempfile.TemporaryDirectory() as folder, full:  # as if the disk were full
    ...     texts = Path(folder) / "texts.jsonl"
    ...     _ = texts.write_text('{"text": "A barrel."}')
    ...     predict_dataset(bundle, texts, Path(folder) / "answers")
    Traceback (most recent call last):
    surelabel.exceptions.DatasetError: Partition 0 could not be finished: No space left on device. ...
    """


class ReviewConflictError(SurelabelError, RuntimeError):
    """A decision cannot be saved: the text is decided already, or is with another reviewer.

    Examples
    --------
    >>> import tempfile
    >>> from surelabel.review import NewText, Offer, ReviewStore
    >>> store = ReviewStore(f"{tempfile.mkdtemp()}/reviews.sqlite")
    >>> store.add([NewText("7", "Crude rose.", Offer("choose", "", ("oil",)), model="0")])
    1
    >>> [text] = store.lease("ann", "choose")
    >>> store.decide("a key", text.number, "bob", "accept")
    Traceback (most recent call last):
    surelabel.exceptions.ReviewConflictError: Text '7' is with another reviewer now. Take another text.
    """


class SurelabelWarning(UserWarning):
    """Root of the package's warnings.

    Examples
    --------
    >>> import warnings
    >>> import surelabel
    >>> with warnings.catch_warnings(action="error", category=surelabel.exceptions.SurelabelWarning):  # stop at one
    ...     surelabel.ConformalLabelSets().calibrate([[0.9, 0.2], [0.3, 0.6]], [[1, 0], [0, 0]])
    Traceback (most recent call last):
    surelabel.exceptions.CalibrationWarning: 1 of 2 calibration texts have a label-set that is not a ...
    """


class CalibrationWarning(SurelabelWarning):
    """The calibration data limits what can be guaranteed.

    Examples
    --------
    >>> import warnings
    >>> from surelabel import ConformalLabelSets
    >>> predictor = ConformalLabelSets().calibrate([[0.9, 0.2], [0.3, 0.6]], [[1, 0], [0, 1]])
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     sets = predictor.predict_set([[0.9, 0.2]], significance=0.05)
    >>> print(caught[0].message)
    2 calibration texts are too few for significance 0.05: the smallest p-value there can be is 0.333333. ...
    """


class TruncationWarning(SurelabelWarning):
    """A prediction set was cut at the limit that was asked for.

    Examples
    --------
    >>> import warnings
    >>> from surelabel import ConformalLabelSets
    >>> predictor = ConformalLabelSets().calibrate([[0.9, 0.2], [0.3, 0.6]], [[1, 0], [1, 1]])
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     best = predictor.predict_set([[0.6, 0.5]], significance=0.4)[0].to_array(limit=1)
    >>> print(caught[0].message)
    The prediction set of text 0 has 3 label-sets or more; the best 1 are returned. Give a larger 'limit' for more.
    """


class DataWarning(SurelabelWarning):
    """The data can be used, but the user should know something about it.

    Examples
    --------
    >>> import warnings
    >>> from surelabel import text
    >>> classifier = text.make("linear").fit(["wheat", "dollar"] * 5, [[1, 0], [0, 1]] * 5)
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     probabilities = classifier.predict_proba(["wheat", ""])
    >>> print(caught[0].message)
    1 of 2 texts in 'texts' are empty; they are kept as texts without words.
    """


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
