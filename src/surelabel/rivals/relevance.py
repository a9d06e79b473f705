"""One label at a time: binary relevance, Bonferroni's correction, instance reproduction, and recall through MAPIE."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Self

import numpy as np

from surelabel._core.extras import of_extra
from surelabel._core.validation import BoolArray, FloatArray, as_level, as_probabilities, as_texts, not_calibrated
from surelabel.calibration import threshold_of
from surelabel.rivals.protocol import NOTHING_OF_LABEL_SETS, ProductSets, checked_limits

# Thresholds on probabilities that are tried; rare labels need small ones.
_THRESHOLDS = np.concatenate([[0.0], np.geomspace(1e-5, 0.1, 60), np.linspace(0.11, 0.99, 60)])


class OfLabels:
    """What methods share that decide for each label, on its own, whether it may be absent and present."""

    def __init__(self, min_labels: int = 1, max_labels: int | None = None) -> None:
        self._limits = checked_limits(min_labels, max_labels, type(self).__name__)
        self._n_labels: int | None = None

    def calibrate(self, probabilities: Any, labels: Any) -> Self:
        """Learn from held-out texts with known labels; return self."""
        checked, truth = as_texts(probabilities, labels, who="calibrate")
        self._learn(checked, truth)
        self._n_labels = checked.shape[1]
        return self

    def predict_set(self, probabilities: Any, *, significance: Any) -> ProductSets:
        """Return the candidates whose labels are all plausible, for each text."""
        if self._n_labels is None:
            raise not_calibrated(self, "predict_set")
        checked = as_probabilities(probabilities, who="predict_set", n_labels=self._n_labels)
        return self._sets(checked, as_level(significance, None, who="predict_set"))

    def _learn(self, probabilities: FloatArray, labels: BoolArray) -> None:
        """Keep what predictions need of checked texts."""
        raise NotImplementedError

    def _sets(self, probabilities: FloatArray, level: Fraction) -> ProductSets:
        """Return the sets of checked texts."""
        raise NotImplementedError


class PerLabelRelevance(OfLabels):
    """A conformal predictor per label, absent or present, each at the same significance (Wang et al. 2015, BR-MLCP).

    Parameters
    ----------
    min_labels, max_labels : int
        Candidates, as of `ConformalLabelSets`.

    Examples
    --------
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

    _scores: FloatArray

    def _learn(self, probabilities: FloatArray, labels: BoolArray) -> None:
        """Score each label by how far its probability is from what is true."""
        self._scores = np.sort(np.abs(labels - probabilities), axis=0)

    def _label_level(self, level: Fraction) -> Fraction:
        """Return the significance of each label."""
        return level

    def _sets(self, probabilities: FloatArray, level: Fraction) -> ProductSets:
        """Return the product of what is plausible for each label."""
        thresholds = np.array([threshold_of(column, self._label_level(level)) for column in self._scores.T])
        allowed = np.stack([probabilities <= thresholds, 1.0 - probabilities <= thresholds], axis=2)
        return ProductSets(allowed, self._limits)


class BonferroniRelevance(PerLabelRelevance):
    """The same with the significance divided by the number of labels, so that all are right together.

    Lambrou & Papadopoulos 2016. With d labels, 1 / e calibration texts are not enough: d / e are needed before any
    label-set can be left out.

    Examples
    --------
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

    def _label_level(self, level: Fraction) -> Fraction:
        """Divide by the number of labels."""
        return level / len(self._scores.T)


class InstanceReproduction(OfLabels):
    """Each true label of a calibration text is an instance of its own (Wang et al. 2015, IR-MLCP).

    The answer is a set of labels; it stands for all candidates that have no other label.

    Parameters
    ----------
    min_labels, max_labels : int
        Candidates, as of `ConformalLabelSets`.

    Examples
    --------
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

    def _learn(self, probabilities: FloatArray, labels: BoolArray) -> None:
        """Score the true labels by 1 minus their probability."""
        self._scores = np.sort(1.0 - probabilities[labels])

    def _sets(self, probabilities: FloatArray, level: Fraction) -> ProductSets:
        """Return all candidates within the set of plausible labels."""
        return ProductSets.within(1.0 - probabilities <= threshold_of(self._scores, level), self._limits)


def _controller() -> Any:
    """Return MAPIE's class, or say what to install."""
    with of_extra("rivals", "RecallControl"):
        from mapie.risk_control import MultiLabelClassificationController  # noqa: PLC0415
    return MultiLabelClassificationController


class RecallControl(OfLabels):
    """The labels over a threshold that keeps the mean recall (Angelopoulos et al. 2024, as MAPIE has it).

    The answer is a set of labels; it stands for all candidates that have no other label.

    Parameters
    ----------
    min_labels, max_labels : int
        Candidates, as of `ConformalLabelSets`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> probabilities = rng.random((300, 3))
    >>> labels = rng.random((300, 3)) < probabilities
    >>> rival = RecallControl(min_labels=0).calibrate(probabilities[:200], labels[:200])
    >>> sets = rival.predict_set(probabilities[200:], significance=0.2)
    >>> round(float(sets.contains(labels[200:]).mean()), 2), round(float(sets.sizes().mean()), 2)
    (0.81, 3.88)
    >>> print(rival.guarantee)
    the share of a text's true labels that are missed is at most e on average over texts; ...
    """

    name = "recall control"
    guarantee = (
        f"the share of a text's true labels that are missed is at most e on average over texts; {NOTHING_OF_LABEL_SETS}"
    )

    def _learn(self, probabilities: FloatArray, labels: BoolArray) -> None:
        """Keep texts that have labels: recall is not defined for others."""
        _controller()
        labelled = labels.any(axis=1)
        self._data = probabilities[labelled], labels[labelled].astype(np.int64)

    def _sets(self, probabilities: FloatArray, level: Fraction) -> ProductSets:
        """Return all candidates within the labels over the threshold."""
        controller = _controller()(
            predict_function=lambda values: values,
            risk="recall",
            method="crc",
            target_level=float(1 - level),
            predict_params=_THRESHOLDS,
        ).calibrate(*self._data)
        plausible = np.asarray(controller.predict(probabilities), dtype=np.bool_).reshape(probabilities.shape)
        return ProductSets.within(plausible, self._limits)
