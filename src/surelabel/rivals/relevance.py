"""One label at a time: binary relevance with and without Bonferroni's correction, and instance reproduction."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from surelabel._core.validation import FloatArray, as_level, as_probabilities
from surelabel.rivals.protocol import (
    NOTHING_OF_LABEL_SETS,
    ProductSets,
    checked_data,
    checked_limits,
    not_calibrated,
    rank_threshold,
)

__all__ = ["BonferroniRelevance", "InstanceReproduction", "PerLabelRelevance"]


class PerLabelRelevance:
    """A conformal predictor per label, absent or present, each at the same significance (Wang et al. 2015, BR-MLCP).

    Parameters
    ----------
    min_labels, max_labels : int
        Candidates, as of `ConformalLabelSets`.

    Examples
    --------
    >>> import numpy as np
    >>> from surelabel.rivals import PerLabelRelevance
    >>> rng = np.random.default_rng(0)
    >>> probabilities = rng.random((300, 3))
    >>> labels = rng.random((300, 3)) < probabilities
    >>> rival = PerLabelRelevance(min_labels=0).calibrate(probabilities[:200], labels[:200])
    >>> sets = rival.predict_set(probabilities[200:], significance=0.2)
    >>> round(float(sets.contains(labels[200:]).mean()), 2), round(float(sets.sizes().mean()), 2)
    (0.53, 1.47)
    >>> print(rival.guarantee)
    each label, for itself, is wrong in at most e of texts; of whole label-sets nothing is said
    """

    name = "per label"
    guarantee = f"each label, for itself, is wrong in at most e of texts; {NOTHING_OF_LABEL_SETS}"

    def __init__(self, min_labels: int = 1, max_labels: int | None = None) -> None:
        self._limits = checked_limits(min_labels, max_labels, type(self).__name__)
        self._scores: FloatArray | None = None

    def calibrate(self, probabilities: Any, labels: Any) -> PerLabelRelevance:
        """Score each label by how far its probability is from what is true."""
        checked, known = checked_data(probabilities, labels, "calibrate")
        self._scores = np.sort(np.abs(known - checked), axis=0)
        return self

    def _label_level(self, level: Fraction, n_labels: int) -> Fraction:
        """Return the significance of each label."""
        return level

    def predict_set(self, probabilities: Any, *, significance: Any) -> ProductSets:
        """Return the product of what is plausible for each label."""
        if self._scores is None:
            raise not_calibrated(self)
        n_labels = self._scores.shape[1]
        checked = as_probabilities(probabilities, who="predict_set", n_labels=n_labels)
        level = self._label_level(as_level(significance, None, who="predict_set"), n_labels)
        thresholds = np.array([rank_threshold(column, level) for column in self._scores.T])
        allowed = np.stack([checked <= thresholds, 1.0 - checked <= thresholds], axis=2)
        return ProductSets(allowed, self._limits)


class BonferroniRelevance(PerLabelRelevance):
    """The same with the significance divided by the number of labels, so that all are right together.

    Lambrou & Papadopoulos 2016. With d labels, 1 / e calibration texts are not enough: d / e are needed before any
    label-set can be left out.

    Examples
    --------
    >>> import numpy as np
    >>> from surelabel.rivals import BonferroniRelevance
    >>> rng = np.random.default_rng(0)
    >>> probabilities = rng.random((300, 3))
    >>> labels = rng.random((300, 3)) < probabilities
    >>> rival = BonferroniRelevance(min_labels=0).calibrate(probabilities[:200], labels[:200])
    >>> sets = rival.predict_set(probabilities[200:], significance=0.2)
    >>> round(float(sets.contains(labels[200:]).mean()), 2), round(float(sets.sizes().mean()), 2)
    (0.85, 3.61)
    """

    name = "Bonferroni"
    guarantee = "the label-set is missed in at most e of texts; with many labels far fewer, at the price of large sets"

    def _label_level(self, level: Fraction, n_labels: int) -> Fraction:
        """Divide by the number of labels."""
        return level / n_labels


class InstanceReproduction:
    """Each true label of a calibration text is an instance of its own (Wang et al. 2015, IR-MLCP).

    The answer is a set of labels; it stands for all candidates that have no other label.

    Parameters
    ----------
    min_labels, max_labels : int
        Candidates, as of `ConformalLabelSets`.

    Examples
    --------
    >>> import numpy as np
    >>> from surelabel.rivals import InstanceReproduction
    >>> rng = np.random.default_rng(0)
    >>> probabilities = rng.random((300, 3))
    >>> labels = rng.random((300, 3)) < probabilities
    >>> rival = InstanceReproduction(min_labels=0).calibrate(probabilities[:200], labels[:200])
    >>> sets = rival.predict_set(probabilities[200:], significance=0.2)
    >>> round(float(sets.contains(labels[200:]).mean()), 2), round(float(sets.sizes().mean()), 2)
    (0.8, 3.76)
    >>> print(rival.guarantee)
    of the true labels of all texts, taken one by one, at most e are missed; of whole label-sets nothing is said
    """

    name = "instance reproduction"
    guarantee = f"of the true labels of all texts, taken one by one, at most e are missed; {NOTHING_OF_LABEL_SETS}"

    def __init__(self, min_labels: int = 1, max_labels: int | None = None) -> None:
        self._limits = checked_limits(min_labels, max_labels, type(self).__name__)
        self._scores: FloatArray | None = None
        self._n_labels = 0

    def calibrate(self, probabilities: Any, labels: Any) -> InstanceReproduction:
        """Score the true labels by 1 minus their probability."""
        checked, known = checked_data(probabilities, labels, "calibrate")
        self._scores, self._n_labels = np.sort(1.0 - checked[known]), checked.shape[1]
        return self

    def predict_set(self, probabilities: Any, *, significance: Any) -> ProductSets:
        """Return all candidates within the set of plausible labels."""
        if self._scores is None:
            raise not_calibrated(self)
        checked = as_probabilities(probabilities, who="predict_set", n_labels=self._n_labels)
        threshold = rank_threshold(self._scores, as_level(significance, None, who="predict_set"))
        plausible = 1.0 - checked <= threshold
        return ProductSets.within(plausible, self._limits)
