"""Minus the log-likelihood of a label-set."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from surelabel._core.validation import FloatArray, invalid
from surelabel.measures.base import Aggregate, is_number, register


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
        clipped = np.minimum(np.maximum(probabilities, self.clip), 1.0 - self.clip)  # np.clip takes thrice the time
        return -np.log1p(-clipped), -np.log(clipped)

    def score(self, totals: FloatArray) -> FloatArray:
        """Return the totals: minus the log-likelihood."""
        return totals
