"""Norms of the difference between probabilities and a label-set."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from surelabel._core.validation import FloatArray, invalid
from surelabel.measures.base import Aggregate, is_number, register


def _power(values: FloatArray, p: float) -> FloatArray:
    """Return values ** p, by squaring if p is 2, 4 or 8: the paper's norms, on the hot path."""
    if p == 1.0:
        return values.copy()
    if p in (2.0, 4.0, 8.0):
        result = values * values
        for _ in range(int(math.log2(p)) - 1):
            result *= result
        return result
    return np.power(values, p)


@register("lp-norm")
@dataclasses.dataclass(frozen=True)
class LpNorm:
    """The L_p norm of the difference between probabilities and the 0/1 label-set (paper equation 12).

    Parameters
    ----------
    p : float
        1 or more; `math.inf` takes the largest difference. Larger p looks more at the worst label.

    Examples
    --------
    >>> from surelabel import LpNorm
    >>> LpNorm(2).score(np.array([0.25]))
    array([0.5])
    """

    p: float = 2.0

    def __post_init__(self) -> None:
        if not is_number(self.p) or not self.p >= 1:
            raise invalid("p", "LpNorm", "a number >= 1", repr(self.p))

    @property
    def aggregate(self) -> Aggregate:
        """Costs add up; for p = inf the largest counts."""
        return "max" if math.isinf(self.p) else "sum"

    def costs(self, probabilities: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (o^p, (1 - o)^p), for p = inf (o, 1 - o)."""
        p = 1.0 if math.isinf(self.p) else float(self.p)
        return _power(probabilities, p), _power(1.0 - probabilities, p)

    def score(self, totals: FloatArray) -> FloatArray:
        """Return the norm: totals^(1/p)."""
        return totals if math.isinf(self.p) else np.power(totals, 1.0 / self.p)
