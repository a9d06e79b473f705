"""What a stream's next texts are compared with: scores with weights, and categories whose thresholds follow errors."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from surelabel._core.validation import FloatArray, IntArray
from surelabel.calibration import Calibration
from surelabel.exceptions import InvalidInputError
from surelabel.taxonomies.categories import Categories


class WeightedTotals:
    """Totals with weights; p(Y) = (weight of totals at least as large + 1) / (all weight + 1)."""

    def __init__(self, totals: FloatArray, weights: FloatArray) -> None:
        order = np.argsort(totals, kind="stable")
        self.totals = totals[order]
        # Weight of the totals from each one on, and 0.
        self._tails = np.append(np.cumsum(weights[order][::-1])[::-1], 0.0)

    def threshold(self, level: float) -> float:
        """Return the largest total whose p-value is over the level; inf if every total's is."""
        if 1.0 / (self._tails[0] + 1.0) > level:
            return float("inf")
        above = np.flatnonzero(self.p_values(self.totals) > level)
        return float(self.totals[above[-1]]) if len(above) else float("-inf")

    def p_values(self, totals: Any) -> FloatArray:
        """Return weighted p-values of totals of any shape."""
        places = np.searchsorted(self.totals, totals, side="left")
        return np.asarray((self._tails[places] + 1.0) / (self._tails[0] + 1.0))


@dataclasses.dataclass(frozen=True, eq=False)
class WeightedCalibration(Calibration):
    """A calibration whose totals have weights."""

    weighted: WeightedTotals = dataclasses.field(kw_only=True)

    def threshold(self, level: Fraction, assurance: Fraction | None = None) -> float:
        """Return the largest total whose p-value is over the level; inf if every total's is."""
        return self.weighted.threshold(float(level))

    def p_values(self, totals: Any, tie_breaks: Any = None) -> FloatArray:
        """Return weighted p-values of totals of any shape."""
        if tie_breaks is not None:
            raise InvalidInputError("Weighted p-values cannot be smoothed; leave 'smoothing' out.")
        return self.weighted.p_values(totals)


@dataclasses.dataclass(frozen=True, eq=False)
class AdaptedCategories(Categories):
    """Categories with thresholds of their own, whatever the level that is asked for.

    `adapted` has the threshold and what p-values are counted in, by (category row, joined kind). Categories without
    calibration texts are not in it: all their candidates are members.
    """

    adapted: Mapping[tuple[int, int], tuple[float, WeightedTotals]] = dataclasses.field(default_factory=dict)

    def thresholds(
        self,
        levels: Sequence[Fraction],
        which: IntArray,
        codes: IntArray,
        assurance: Fraction | None = None,
        tie_breaks: FloatArray | None = None,
    ) -> FloatArray:
        """Return the thresholds of each text's categories, (n, n_kinds)."""
        if assurance is not None or tie_breaks is not None:
            raise InvalidInputError("Levels that follow errors take no 'assurance' and no 'smoothing'; leave them out.")
        cuts = {key: cut for key, (cut, _) in self.adapted.items()}
        rows = [[cuts.get((code, kind), np.inf) for kind in self.kind_codes] for code in codes.tolist()]
        return np.array(rows).reshape(len(codes), self.taxonomy.n_kinds)

    def among(self, code: int, kind: int, totals: FloatArray, tie_breaks: FloatArray | None = None) -> FloatArray:
        """Return weighted p-values."""
        key = (code, self.kind_codes[kind])
        return self.adapted[key][1].p_values(totals) if key in self.adapted else np.ones(np.shape(totals))

    def warn_of_small(self, *_: Any) -> None:
        """Say nothing: categories follow their errors, however few their texts are."""
