"""Measures with a cost per label, and the names that commands, tables and reports have for measures."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from surelabel._core.validation import FloatArray, invalid
from surelabel.exceptions import InvalidInputError
from surelabel.measures.base import Aggregate, Measure, SeparableMeasure, is_number, register


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


@register("log-loss")
@dataclasses.dataclass(frozen=True)
class LogLoss:
    """Minus the log-likelihood of the label-set with labels taken as independent.

    Parameters
    ----------
    clip : float
        Probabilities are clipped to [clip, 1 - clip], 0 < clip < 0.5.

    Examples
    --------
    >>> from surelabel import LogLoss
    >>> absent, present = LogLoss().costs(np.array([[0.5, 1.0]]))
    >>> absent.round(3), present.round(3)
    (array([[ 0.693, 13.816]]), array([[0.693, 0.   ]]))
    """

    clip: float = 1e-6
    aggregate: ClassVar[Aggregate] = "sum"

    def __post_init__(self) -> None:
        if not is_number(self.clip) or not 0.0 < self.clip < 0.5:
            raise invalid("clip", "LogLoss", "a number in (0, 0.5)", repr(self.clip))

    def costs(self, probabilities: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (-log(1 - o), -log(o)), o clipped."""
        clipped = np.minimum(np.maximum(probabilities, self.clip), 1.0 - self.clip)  # np.clip takes three times as long
        return -np.log1p(-clipped), -np.log(clipped)

    def score(self, totals: FloatArray) -> FloatArray:
        """Return the totals: minus the log-likelihood."""
        return totals


MEASURES: Mapping[str, SeparableMeasure] = {"L2": LpNorm(2), "L4": LpNorm(4), "L8": LpNorm(8), "LogLoss": LogLoss()}


def measure_named(name: str) -> SeparableMeasure:
    """Return the measure of a name: LogLoss, or L and a number from 1 on, or Linf."""
    for own, measure in MEASURES.items():
        if name.lower() == own.lower():
            return measure
    try:
        if name[:1] in {"L", "l"}:
            return LpNorm(float(name[1:]))
    except ValueError:
        pass
    raise InvalidInputError(
        f"A measure must be one of {', '.join(MEASURES)}, or L and a number >= 1. Got {name!r} instead."
    )


def measure_name(measure: Measure) -> str:
    """Return the name of a measure for people."""
    if type(measure) is LpNorm:
        return f"L{measure.p:g}"
    if type(measure) is LogLoss:
        return "LogLoss" if measure == LogLoss() else repr(measure)
    return f"Penalised({measure_name(measure.measure)})" if hasattr(measure, "measure") else type(measure).__name__
