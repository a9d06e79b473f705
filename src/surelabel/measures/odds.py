"""Log-odds of labels, refined on validation texts, and the measure that they make: still one cost per label."""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import numpy as np
from scipy.special import expit
from threadpoolctl import threadpool_limits

from surelabel._core.validation import BoolArray, FloatArray
from surelabel.exceptions import InvalidInputError
from surelabel.measures.base import Aggregate, Frozen, trusted

# Penalties of squared offsets and slopes, less the common ones, and of the weights of other labels. Several were tried
# on halves of the validation parts of five corpora: three times less or more changes the likelihood little.
_RIDGES = (1.0, 10.0, 100.0)
# So that there is one solution, whatever the labels.
_LEAST_RIDGE = 1e-6
# Steps of a fit at most, and the smallest share of the loss that is worth another.
_STEPS, _SMALLEST_GAIN = 200, 1e-8


def log_odds(probabilities: FloatArray, clip: float) -> FloatArray:
    """Return log(o / (1 - o)), o clipped to [clip, 1 - clip]."""
    clipped = np.clip(probabilities, clip, 1.0 - clip)
    return np.asarray(np.log(clipped / (1.0 - clipped)))


def costs_of_odds(odds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return what labels of these log-odds cost absent and present: minus the logarithms of their probabilities."""
    rest = np.log1p(np.exp(-np.abs(odds)))
    return np.maximum(odds, 0.0) + rest, np.maximum(-odds, 0.0) + rest


@dataclasses.dataclass(frozen=True, eq=False)
class RefinedOdds(Frozen):
    """Log-odds of each label as a line in its own log-odds, or in those of all labels.

    A classifier that is too sure of some labels and not sure enough of others, or that misses what one label says about
    another, is corrected label by label: the result is again one probability per label.

    Row 0 of `table`, (1 + m, d), has offsets. With m = 1, row 1 has slopes; with m = d, row 1 + j has how the log-odds
    of label j count.
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
        self._freeze(table=table)

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return int(self.table.shape[1])

    @classmethod
    def of(
        cls, probabilities: FloatArray, labels: BoolArray, *, clip: float = 1e-6, across: bool = False
    ) -> RefinedOdds:
        """Fit by penalised likelihood to validation texts: one logistic regression on log-odds per label.

        Slopes and offsets are drawn towards those that all labels have in common, and the weights of other labels
        towards 0, so a few hundred texts do not spoil what a classifier has learnt. With `across`, the log-odds of all
        labels count for each label.
        """
        given, own = log_odds(probabilities, clip), np.asarray(labels, dtype=np.float64)
        n_labels, middle, means = given.shape[1], given.mean(), given.mean(axis=0)
        n_rows = n_labels if across else 1
        # Products of matrices are small here: dividing each among threads takes longer than the work itself.
        with threadpool_limits(1, user_api="blas"):
            pooled = (given - middle).reshape(-1, 1), own.reshape(-1, 1)
            offset, slope = _fit(*pooled, np.full((2, 1), _LEAST_RIDGE), np.array([[0.0], [1.0]]))[:, 0]
            ridge, target = np.full((1 + n_rows, n_labels), _RIDGES[2]), np.zeros((1 + n_rows, n_labels))
            slopes = (1 + np.arange(n_labels) if across else 1, np.arange(n_labels))
            ridge[0], ridge[slopes] = _RIDGES[:2]
            target[0], target[slopes] = offset + slope * (means - middle), slope
            table = _fit(given - means, own, ridge, target)
        table[0] -= means @ table[1:] if across else means * table[1]
        return cls(table)

    def refined(self, probabilities: FloatArray, clip: float) -> FloatArray:
        """Return the refined log-odds (n, d) of probabilities (n, d); they stay within those of clip and 1 - clip."""
        given, offsets, rest = log_odds(probabilities, clip), self.table[0], self.table[1:]
        # einsum adds in one order: a text's log-odds are the same to the last bit, alone or among others.
        refined = offsets + (given * rest if len(rest) == 1 else np.einsum("nj,jk->nk", given, rest))
        largest = math.log((1.0 - clip) / clip)
        return np.asarray(np.clip(refined, -largest, largest))


def _fit(features: FloatArray, labels: FloatArray, ridge: FloatArray, target: FloatArray) -> FloatArray:
    """Return the table (1 + m, d) of d logistic regressions on features (n, d): on one's own (m = 1) or all (m = d)."""
    # The loss is the sum of log-losses + ridge (coefficient - target)^2, which is convex. All regressions are fitted at
    # once by L-BFGS, coefficients scaled so that the curvature at the target is about the same for all of them.
    from scipy.optimize import minimize  # noqa: PLC0415 (slow to import, and only those who fit need it)

    is_own = len(target) == 2

    def predicted(table: FloatArray) -> FloatArray:
        return np.asarray(table[0] + (features * table[1] if is_own else features @ table[1:]))

    def pulled_back(rest: FloatArray, columns: FloatArray) -> FloatArray:
        return np.vstack([rest.sum(axis=0), (columns * rest).sum(axis=0) if is_own else columns.T @ rest])

    shares = expit(predicted(target))
    scale = 1.0 / np.sqrt(2.0 * ridge + pulled_back(shares * (1.0 - shares), features**2))

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        away = flat.reshape(target.shape) * scale
        z = predicted(target + away)
        slopes = pulled_back(expit(z) - labels, features) + 2.0 * ridge * away
        return float((np.logaddexp(0.0, z) - labels * z).sum() + (ridge * away**2).sum()), (slopes * scale).ravel()

    solved = minimize(
        loss,
        np.zeros(target.size),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": _STEPS, "ftol": _SMALLEST_GAIN, "gtol": 0.0},
    )
    return np.asarray(target + solved.x.reshape(target.shape) * scale)


@trusted
@dataclasses.dataclass(frozen=True)
class RefinedLogLoss:
    """`LogLoss` of refined log-odds; the independent part of a `Mixture` that has them."""

    clip: float
    odds: RefinedOdds
    aggregate: ClassVar[Aggregate] = "sum"

    def costs(self, probabilities: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return costs (n, d) for probabilities (n, d)."""
        return costs_of_odds(self.odds.refined(probabilities, self.clip))

    def score(self, totals: FloatArray) -> FloatArray:
        """Return the totals: minus the log-likelihood."""
        return totals
