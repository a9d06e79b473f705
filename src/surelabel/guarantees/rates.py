"""Levels that follow errors: one with a fixed rate, or several with different rates and a weight each."""

from __future__ import annotations

import math

import numpy as np

from surelabel._core.validation import FloatArray

RATES = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128)
"""Rates that "dtaci" weighs, those of its paper."""

# The number of texts over which weights are to follow what is best (section 3 of the paper).
_HORIZON = 500


class Levels:
    """Levels with different rates, which begin at the share of errors to keep; their weighted mean is used.

    Examples
    --------
    >>> levels = Levels(0.1, (0.01,))
    >>> levels.update(0.02, True)
    >>> round(levels.level, 4)
    0.091
    """

    def __init__(self, target: float, rates: tuple[float, ...]) -> None:
        self.target = target
        self.rates = np.array(rates)
        self.levels: FloatArray = np.full(len(rates), target)
        self.weights: FloatArray = np.full(len(rates), 1.0 / len(rates))
        spread = (1 - target) ** 2 * target**3 + target**2 * (1 - target) ** 3
        self._eagerness = math.sqrt(3 / _HORIZON * (math.log(len(rates) * _HORIZON) + 2) / spread)
        self._share = 1.0 / (2 * _HORIZON)

    @property
    def level(self) -> float:
        """The weighted mean of the levels."""
        return float(self.weights @ self.levels)

    def update(self, p_value: float, missed: bool) -> None:
        """Take the p-value of a true label-set, and whether its set missed it.

        A single level follows the error that was made. Of several, each follows the error that it would have made, and
        weights fall with the pinball loss of their levels.
        """
        if len(self.levels) == 1:
            errors: FloatArray = np.array([float(missed)])
        else:
            errors = (p_value <= self.levels).astype(np.float64)
            losses = self.target * (p_value - self.levels) - np.minimum(0.0, p_value - self.levels)
            weights = self.weights * np.exp(-self._eagerness * (losses - losses.min()))
            self.weights = (1 - self._share) * weights / weights.sum() + self._share / len(weights)
        moved = self.levels + self.rates * (self.target - errors)
        # One step past 0 and 1, and no further: the way back must not be long.
        self.levels = np.clip(moved, -self.rates, 1.0 + self.rates)

    def restore(self, levels: FloatArray, weights: FloatArray) -> None:
        """Continue from levels and weights of an earlier run."""
        if levels.shape != self.levels.shape or weights.shape != levels.shape or not weights.sum() > 0:
            raise ValueError("levels do not belong to rates")
        self.levels, self.weights = levels, weights
