"""Conformal risk control of recall, through MAPIE."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from surelabel._core.extras import of_extra
from surelabel._core.validation import BoolArray, FloatArray
from surelabel.rivals.protocol import NOTHING_OF_LABEL_SETS, ProductSets
from surelabel.rivals.relevance import OfLabels

# Thresholds on probabilities that are tried; rare labels need small ones.
_THRESHOLDS = np.concatenate([[0.0], np.geomspace(1e-5, 0.1, 60), np.linspace(0.11, 0.99, 60)])


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
