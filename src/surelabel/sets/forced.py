"""Forced predictions: one label-set per text, with confidence and credibility."""

from __future__ import annotations

import dataclasses
from typing import Any

from surelabel._core.validation import FloatArray
from surelabel.engines.base import Engine
from surelabel.labels.label_sets import LabelSet, to_label_sets


@dataclasses.dataclass(frozen=True, eq=False)
class ForcedPredictions:
    """The most plausible label-set of each text, and how far to trust it (paper section 4.1).

    Attributes
    ----------
    labels : (n, d) bool
        A scipy CSR array if probabilities were sparse.
    confidence : (n,) float64
        1 minus the second highest p-value: how unlikely every other label-set is.
    credibility : (n,) float64
        The highest p-value: low if the text is unlike the calibration texts.
    label_names : tuple of str or None

    Examples
    --------
    >>> from surelabel import ConformalLabelSets
    >>> predictor = ConformalLabelSets(label_names=["corn", "grain", "wheat"])
    >>> predictor = predictor.calibrate([[0.1, 0.9, 0.4]] * 9, [["grain"]] * 7 + [["grain", "wheat"]] * 2)
    >>> forced = predictor.predict([[0.1, 0.95, 0.3], [0.4, 0.5, 0.5]])
    >>> [sorted(label_set) for label_set in forced.label_sets]
    [['grain'], ['wheat']]
    >>> forced.confidence.round(2).tolist(), forced.credibility.round(2).tolist()
    ([0.9, 0.9], [1.0, 0.1])
    """

    labels: Any
    confidence: FloatArray
    credibility: FloatArray
    label_names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, engine: Engine, tie_breaks: FloatArray | None = None) -> ForcedPredictions:
        """Return the forced predictions of an engine's texts, smoothed if there is one tie-break per text."""
        labels, p_values = engine.forced_p_values(tie_breaks)
        names = engine.calibration.label_names
        return cls(labels, 1.0 - p_values[:, 1], p_values[:, 0].copy(), names)

    def __len__(self) -> int:
        return len(self.confidence)

    @property
    def label_sets(self) -> list[LabelSet]:
        """The label-sets as frozensets of names, of indices if names are not known."""
        return to_label_sets(self.labels, self.label_names)
