"""Log-odds of labels, refined on validation texts, and the measure that they make: still one cost per label."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from surelabel._core.validation import BoolArray, FloatArray
from surelabel._kernels import odds as kernel
from surelabel.exceptions import InvalidInputError
from surelabel.measures.base import Aggregate, trusted

__all__ = ["RefinedLogLoss", "RefinedOdds"]

# Penalties of squared offsets and slopes, less the common ones, and of the weights of other labels. Several were tried
# on halves of the validation parts of five corpora: three times less or more changes the likelihood little.
_RIDGES = (1.0, 10.0, 100.0)
# So that systems of equations have one solution, whatever the labels.
_LEAST_RIDGE = 1e-9
# Newton's steps: their number, the smallest share of one that is tried, and the smallest gain that is worth another.
_STEPS, _SMALLEST_STEP, _SMALLEST_GAIN = 30, 1e-4, 1e-6


def log_odds(probabilities: FloatArray, clip: float) -> FloatArray:
    """Return log(o / (1 - o)), o clipped to [clip, 1 - clip]."""
    clipped = np.clip(probabilities, clip, 1.0 - clip)
    return np.asarray(np.log(clipped / (1.0 - clipped)))


@dataclasses.dataclass(frozen=True, eq=False)
class RefinedOdds:
    """Log-odds of each label as a line in its own log-odds, or in those of all labels.

    A classifier that is too sure of some labels and not sure enough of others, or that misses what one label says about
    another, is put right label by label: the result is again one probability per label.

    Attributes
    ----------
    table : (1 + m, d) float64
        Row 0 has offsets. With m = 1, row 1 has slopes; with m = d, row 1 + j has how the log-odds of label j count.

    Examples
    --------
    >>> RefinedOdds(np.array([[0.0, 0.5], [1.0, 2.0]])).n_labels
    2
    """

    table: FloatArray

    def __post_init__(self) -> None:
        table = np.array(self.table, dtype=np.float64, order="C")
        fits = table.ndim == 2 and table.shape[1] >= 1 and table.shape[0] in (2, 1 + table.shape[1])
        if not fits or not np.all(np.isfinite(table)):
            raise InvalidInputError(
                "Refined odds must be finite numbers, 2 rows or one more than labels (columns). Got shape "
                f"{table.shape} instead."
            )
        table.flags.writeable = False
        object.__setattr__(self, "table", table)

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return int(self.table.shape[1])

    def __eq__(self, other: object) -> bool:
        return np.array_equal(self.table, other.table) if isinstance(other, RefinedOdds) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.table.tobytes())

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.table.flags.writeable = False

    @classmethod
    def of(
        cls, probabilities: FloatArray, labels: BoolArray, *, clip: float = 1e-6, across: bool = False
    ) -> RefinedOdds:
        """Fit by penalised likelihood: one logistic regression on log-odds per label.

        Slopes and offsets are drawn towards those that all labels have in common, and the weights of other labels
        towards 0, so a few hundred texts do not spoil what a classifier has learnt.

        Parameters
        ----------
        probabilities : (n, d) float64
            Of validation texts.
        labels : (n, d) bool
        clip : float
            As of `LogLoss`.
        across : bool
            Whether the log-odds of all labels count for each label.
        """
        given, own = log_odds(probabilities, clip), np.asarray(labels, dtype=np.float64)
        common = _solve(np.stack([np.ones(given.size), given.ravel()], axis=1), own.ravel(), np.zeros(2), [0.0, 1.0])
        if not across:
            ridge, features = np.array(_RIDGES[:2]), np.ones((len(given), 2))
            columns = []
            for k in range(given.shape[1]):
                features[:, 1] = given[:, k]
                columns.append(_solve(features, own[:, k], ridge, common))
            return cls(np.stack(columns, axis=1))
        means = given.mean(axis=0)
        features = np.column_stack([np.ones(len(given)), given - means])
        columns = []
        for k in range(given.shape[1]):
            ridge = np.full(features.shape[1], _RIDGES[2])
            ridge[[0, 1 + k]] = _RIDGES[:2]
            target = np.zeros(features.shape[1])
            target[[0, 1 + k]] = common[0] + common[1] * means[k], common[1]
            column = _solve(features, own[:, k], ridge, target)
            column[0] -= means @ column[1:]
            columns.append(column)
        return cls(np.stack(columns, axis=1))


def _solve(features: FloatArray, labels: FloatArray, ridge: FloatArray, target: Any) -> FloatArray:
    """Return the coefficients (m,) of a logistic regression of labels (n,) on features (n, m), drawn to a target (m,).

    The loss is the sum of log-losses + ridge (coefficient - target)^2, which is convex: Newton's steps, each halved
    until the loss falls.
    """
    aim = np.asarray(target, dtype=np.float64)
    at = aim.copy()
    least = np.full(len(at), _LEAST_RIDGE)

    def loss_of(coefficients: FloatArray) -> float:
        z = features @ coefficients
        return float((np.logaddexp(0.0, z) - labels * z).sum() + (ridge * (coefficients - aim) ** 2).sum())

    loss = loss_of(at)
    for _ in range(_STEPS):
        shares = expit(features @ at)
        gradient = features.T @ (shares - labels) + 2.0 * ridge * (at - aim)
        curvature = (features * (shares * (1.0 - shares))[:, None]).T @ features + np.diag(2.0 * ridge + least)
        step = np.linalg.solve(curvature, gradient)
        size = 1.0
        while size > _SMALLEST_STEP and loss_of(at - size * step) > loss:
            size *= 0.5
        new = loss_of(at - size * step)
        if new > loss - _SMALLEST_GAIN:
            break
        at, loss = at - size * step, new
    return at


@trusted
@dataclasses.dataclass(frozen=True)
class RefinedLogLoss:
    """`LogLoss` of refined log-odds; the independent part of a `Mixture` that has them."""

    clip: float
    odds: RefinedOdds
    aggregate: ClassVar[Aggregate] = "sum"

    def costs(self, probabilities: FloatArray) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Return costs (n, d) for probabilities (n, d)."""
        refined = np.empty(probabilities.shape)
        kernel.refine_rows(
            log_odds(probabilities, self.clip), math.log((1.0 - self.clip) / self.clip), self.odds.table, refined
        )
        rest = np.log1p(np.exp(-np.abs(refined)))
        return np.maximum(refined, 0.0) + rest, np.maximum(-refined, 0.0) + rest

    def score(self, totals: FloatArray) -> FloatArray:
        """Return the totals: minus the log-likelihood."""
        return totals
