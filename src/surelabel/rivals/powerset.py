"""Whole label-sets: this package's method as one of the rivals, and the same over seen label-sets only."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from surelabel._core.packing import pack
from surelabel._core.validation import (
    FloatArray,
    as_labels,
    as_level,
    as_probabilities,
    as_texts,
    invalid,
    not_calibrated,
)
from surelabel._kernels import exact_sum
from surelabel.calibration import threshold_of, totals_of
from surelabel.conformal import ConformalLabelSets
from surelabel.exceptions import CalibrationWarning
from surelabel.measures import LpNorm, Measure, SeparableMeasure, costs_of
from surelabel.rivals.protocol import ListedSets
from surelabel.sets.prediction_sets import PredictionSets

_DEFAULT_MEASURE = LpNorm(2)


class LabelPowerset:
    """`ConformalLabelSets` with one measure, as a rival among others.

    Parameters
    ----------
    measure : measure
    min_labels, max_labels : int
        As of `ConformalLabelSets`.
    name : str, optional
        The measure's by default.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> probabilities = rng.random((300, 3))
    >>> labels = rng.random((300, 3)) < probabilities
    >>> rival = LabelPowerset(min_labels=0).calibrate(probabilities[:200], labels[:200])
    >>> sets = rival.predict_set(probabilities[200:], significance=0.2)
    >>> round(float(sets.contains(labels[200:]).mean()), 2), round(float(sets.sizes().mean()), 2)
    (0.88, 3.12)
    >>> print(rival.guarantee)
    the label-set is missed in at most e of texts
    """

    guarantee = "the label-set is missed in at most e of texts"

    def __init__(
        self,
        measure: Measure = _DEFAULT_MEASURE,
        min_labels: int = 1,
        max_labels: int | None = None,
        name: str | None = None,
    ) -> None:
        self.name = name if name is not None else repr(measure)
        self.predictor = ConformalLabelSets(measure, min_labels, max_labels)

    def calibrate(self, probabilities: Any, labels: Any) -> LabelPowerset:
        """Calibrate the predictor again; label-sets that are not candidates count as errors, without a warning."""
        predictor = ConformalLabelSets(**self.predictor.get_params())
        with warnings.catch_warnings(action="ignore", category=CalibrationWarning):
            self.predictor = predictor.calibrate(probabilities, labels)
        return self

    def predict_set(self, probabilities: Any, *, significance: Any) -> PredictionSets:
        """Return the predictor's sets."""
        with warnings.catch_warnings(action="ignore", category=CalibrationWarning):
            return self.predictor.predict_set(probabilities, significance=significance)


class SeenPowerset:
    """Each label-set of the training texts is a class of its own (Wang et al. 2015, PS-MLCP).

    A calibration text with another label-set is as strange as can be, so that texts with unseen label-sets use up the
    errors that are allowed.

    Parameters
    ----------
    seen : (n, d) 0/1 array-like or sparse matrix
        Labels of training texts; not of calibration texts.
    measure : measure
    name : str

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> probabilities = rng.random((300, 3))
    >>> labels = rng.random((300, 3)) < probabilities
    >>> rival = SeenPowerset(labels[:100]).calibrate(probabilities[:200], labels[:200])
    >>> sets = rival.predict_set(probabilities[200:], significance=0.2)
    >>> round(float(sets.contains(labels[200:]).mean()), 2), round(float(sets.sizes().mean()), 2)
    (0.88, 3.12)
    """

    guarantee = (
        "the label-set is missed in at most e of texts, as long as no more than e have one that was not seen in "
        "training; else in as many as those"
    )

    def __init__(self, seen: Any, measure: SeparableMeasure = _DEFAULT_MEASURE, name: str = "seen label-sets") -> None:
        self.name = name
        self._seen = np.unique(as_labels(seen, who="SeenPowerset", parameter="seen"), axis=0)
        self._measure = measure
        if not isinstance(measure, SeparableMeasure) or measure.aggregate != "sum":
            raise invalid("measure", "SeenPowerset", "one that adds costs up label by label", repr(measure))

    def calibrate(self, probabilities: Any, labels: Any) -> SeenPowerset:
        """Score true label-sets; unseen ones are infinitely strange."""
        checked, truth = as_texts(probabilities, labels, who="calibrate")
        places = {row.tobytes() for row in self._seen}
        is_seen = np.array([row.tobytes() in places for row in truth])
        totals = np.where(is_seen, totals_of(self._measure, checked, truth), np.inf)
        self._scores: FloatArray = np.sort(totals)
        return self

    def predict_set(self, probabilities: Any, *, significance: Any) -> ListedSets:
        """Return the seen label-sets whose p-value is over the significance."""
        return self.predict_sets(probabilities, [significance])[0]

    def predict_sets(self, probabilities: Any, levels: Sequence[Any]) -> list[ListedSets]:
        """Return the same at several significances; every seen label-set is scored once."""
        if not hasattr(self, "_scores"):
            raise not_calibrated(self, "predict_set")
        checked = as_probabilities(probabilities, who="predict_set", n_labels=self._seen.shape[1])
        thresholds = [threshold_of(self._scores, as_level(level, None, who="predict_set")) for level in levels]
        absent, present = costs_of(self._measure, checked)
        words = pack(self._seen)
        totals = np.empty((len(checked), len(words)))
        for i in range(len(checked)):
            exact_sum.totals_of_words(absent[i], present[i], words, totals[i])
        return [ListedSets(totals <= threshold, self._seen) for threshold in thresholds]
