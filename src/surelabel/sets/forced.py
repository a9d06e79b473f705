"""Forced predictions: the label-set with the highest p-value for each text (paper section 4.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surelabel._core.validation import BoolArray, FloatArray, IntArray, Names
from surelabel.labels.label_sets import LabelSet, as_label_sets, order_rows
from surelabel.sets.prediction_sets import Texts


@dataclass(frozen=True, eq=False)
class ForcedPredictions:
    """The label-set with the highest p-value for each text.

    Attributes
    ----------
    labels : (n, n_labels) bool
    label_sets : list of frozenset
    confidence : (n,) float64
        1 minus the second highest p-value: how unlikely every other label-set is.
    credibility : (n,) float64
        The highest p-value: low if the text is unlike the calibration texts.
    scores : (n,) float64
        The total of the label-set, in the scale of the measure's costs: low if the guess is sure; inf if there is no
        candidate.
    """

    members: BoolArray
    confidence: FloatArray
    credibility: FloatArray
    scores: FloatArray
    columns: IntArray | None
    n_labels: int
    label_names: Names | None

    def __len__(self) -> int:
        return len(self.confidence)

    @property
    def labels(self) -> BoolArray:
        """The label-sets as 0/1 rows (n, n_labels)."""
        if self.columns is None:
            return self.members
        rows = np.zeros((len(self), self.n_labels + 1), dtype=np.bool_)
        np.put_along_axis(rows, self.columns, self.members, axis=1)
        return rows[:, :-1]

    @property
    def label_sets(self) -> list[LabelSet]:
        """The label-sets as frozensets of names, of indices if labels have no names."""
        return as_label_sets(self.members, self.columns, self.label_names)

    @classmethod
    def from_texts(cls, texts: Texts) -> ForcedPredictions:
        """Compare the two best candidates of each class by p-value, then by total, then lexicographically."""
        calibration, n = texts.calibration, len(texts)
        bests = [texts.search.best(limits) for _, limits in calibration.classes]
        whole = np.concatenate([best.whole for best in bests], axis=1)
        totals = texts.search.costs.totals(whole)
        p_values = np.empty(totals.shape)
        for i, (_, limits) in enumerate(calibration.classes):
            two = slice(2 * i, 2 * i + 2)
            p_values[:, two] = calibration.p_values(totals[:, two].ravel(), limits[0], texts.groups.repeat(2)).reshape(
                n, 2
            )
        p_values[np.isinf(totals)] = 0.0
        rows, members, chosen = np.arange(n), bests[0].members, np.zeros(n, dtype=np.int64)
        if len(bests) > 1:
            every = np.concatenate([best.members for best in bests])
            of, by_p, by_total = np.tile(rows, len(bests)), -p_values[:, ::2].T.ravel(), whole[:, ::2].T.ravel()
            order = order_rows(every, of, by_p, by_total)[:: len(bests)]
            members, chosen = every[order], order // n * 2
        credibility, confidence = p_values[rows, chosen], 1.0 - np.sort(p_values, axis=1)[:, -2]
        scores, shared = totals[rows, chosen] / calibration.units, (calibration.n_labels, calibration.label_names)
        return cls(members, confidence, credibility, scores, texts.columns, *shared)
