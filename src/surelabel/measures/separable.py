"""Measures of the paper: norms of the error, and the log-likelihood (paper section 5.3); and their names."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from surelabel._core.validation import FloatArray, invalid
from surelabel.measures.base import SeparableMeasure, is_number


@dataclass(frozen=True)
class LpNorm(SeparableMeasure):
    """The L_p norm of the difference between probabilities and the 0/1 label-set (paper equation 12).

    Parameters
    ----------
    p : float
        From 1 to 32. Larger p looks more at the worst label. (Beyond, powers of differences are below the unit.)

    Examples
    --------
    >>> LpNorm(2).costs(np.array([[0.5, 1.0]]))
    (array([[0.25, 1.  ]]), array([[0.25, 0.  ]]))
    """

    p: float = 2.0

    def __post_init__(self) -> None:
        if not is_number(self.p) or not 1 <= self.p <= 32:
            raise invalid("p", "LpNorm", "a number from 1 to 32", repr(self.p))
        object.__setattr__(self, "p", float(self.p))

    def costs(self, probabilities: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (o^p, (1 - o)^p)."""
        return _power(probabilities, self.p), _power(1.0 - probabilities, self.p)

    def score(self, totals: FloatArray) -> FloatArray:
        """Return the norm: totals^(1/p)."""
        return np.power(totals, 1.0 / self.p)

    def largest_cost(self, n_labels: int) -> float:
        """Return 1."""
        return 1.0


@dataclass(frozen=True)
class LogLoss(SeparableMeasure):
    """Minus the log-likelihood of the label-set, with labels taken as independent.

    Parameters
    ----------
    clip : float
        Probabilities are clipped to [clip, 1 - clip], 1e-15 <= clip < 0.5.

    Examples
    --------
    >>> LogLoss().costs(np.array([[0.5, 0.0]]))[1].round(3)
    array([[ 0.693, 13.816]])
    """

    clip: float = 1e-6

    def __post_init__(self) -> None:
        if not is_number(self.clip) or not 1e-15 <= self.clip < 0.5:
            raise invalid("clip", "LogLoss", "a number from 1e-15 to 0.5", repr(self.clip))
        object.__setattr__(self, "clip", float(self.clip))

    def costs(self, probabilities: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (-log(1 - o), -log(o)), o clipped."""
        clipped = np.minimum(np.maximum(probabilities, self.clip), 1.0 - self.clip)
        # 1 - clip is rounded, so the larger cost may be a little over -log(clip).
        return np.minimum(-np.log1p(-clipped), -math.log(self.clip)), -np.log(clipped)

    def largest_cost(self, n_labels: int) -> float:
        """Return -log(clip)."""
        return -math.log(self.clip)


def _power(values: FloatArray, p: float) -> FloatArray:
    """Return values ** p, by squaring if p is 2, 4 or 8."""
    if p not in (2, 4, 8):
        return np.asarray(np.power(values, p))
    result = values * values
    for _ in range(int(math.log2(p)) - 1):
        result *= result
    return result


_NAMED = {"l1": LpNorm(1), "l2": LpNorm(2), "l4": LpNorm(4), "l8": LpNorm(8), "log-loss": LogLoss()}


def measure_from_name(name: Any) -> SeparableMeasure:
    """Return the measure of a name: "l1", "l2", "l4", "l8" or "log-loss"."""
    if name not in _NAMED:
        raise invalid("measure", "measure_from_name", f"one of {list(_NAMED)}", repr(name))
    return _NAMED[name]


def measure_name(measure: Any) -> str:
    """Return the name of a measure; its repr if it has none."""
    return next((name for name, known in _NAMED.items() if known == measure), repr(measure))
