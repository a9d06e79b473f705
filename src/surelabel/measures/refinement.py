"""What the log-odds of a text's other labels say about each label: one small regression per label on all log-odds.

A fit per label does not see that "machine learning" makes "statistics" likelier. This second step does. It learns from
texts that the first step has not seen. The classifier `linear` refines its scores with it, and `Mixture` probabilities.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import expit, logit
from threadpoolctl import threadpool_limits

from surelabel._core.validation import BoolArray, FloatArray

LEAST_TEXTS = 100
"""Fewer texts are not refined."""

# With many labels the regressions learn from fewer texts: texts times squared labels stay below this.
_MOST_WORK = 4_000_000_000
_CLIP = 1e-6
_LARGEST = math.log((1.0 - _CLIP) / _CLIP)
# Penalties of squared offsets and slopes, less the common ones, and of the weights of other labels.
_RIDGES = (1.0, 10.0, 100.0)
# So that there is one solution, whatever the labels.
_LEAST_RIDGE = 1e-6
_STEPS, _SMALLEST_GAIN = 200, 1e-8


@dataclass(frozen=True, eq=False)
class Refinement:
    """A table (1 + d, d) of how the log-odds of all labels count for each.

    Row 0 of the table has offsets, row 1 + j the weights of label j.
    """

    table: FloatArray

    def __post_init__(self) -> None:
        table = np.array(self.table, dtype=np.float64, order="C")
        if table.ndim != 2 or len(table) != 1 + table.shape[1] or not np.isfinite(table).all():
            raise ValueError(f"a refinement is a table (1 + d, d) of finite numbers; its shape is {table.shape}")
        table.flags.writeable = False
        object.__setattr__(self, "table", table)

    @classmethod
    def fit(cls, log_odds: FloatArray, labels: BoolArray) -> Self:
        """Fit on log-odds (n, d) of texts that their classifier has not seen, and the texts' labels (n, d)."""
        most = max(LEAST_TEXTS, _MOST_WORK // log_odds.shape[1] ** 2)
        return cls(_fit_table(np.clip(log_odds[:most], -_LARGEST, _LARGEST), labels[:most]))

    @classmethod
    def fit_probabilities(cls, probabilities: FloatArray, labels: BoolArray) -> Self:
        """Fit on probabilities (n, d)."""
        return cls.fit(logit(probabilities), labels)

    def __call__(self, log_odds: FloatArray) -> FloatArray:
        """Return refined log-odds (n, d), each text's computed alone."""
        # einsum adds in one order: a text's log-odds are the same to the last bit, alone or among others.
        clipped = np.clip(log_odds, -_LARGEST, _LARGEST)
        refined = self.table[0] + np.einsum("nj,jk->nk", clipped, self.table[1:])
        return np.asarray(np.clip(refined, -_LARGEST, _LARGEST))

    def probabilities(self, probabilities: FloatArray) -> FloatArray:
        """Return refined probabilities (n, d), each text's computed alone."""
        return np.asarray(expit(self(np.ascontiguousarray(logit(probabilities)))))

    def with_columns(self, order: Any) -> Refinement:
        """Return the refinement with its labels in another order."""
        return Refinement(np.vstack([self.table[:1, order], self.table[1:][order][:, order]]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Refinement) and np.array_equal(self.table, other.table)

    def __hash__(self) -> int:
        return hash(self.table.tobytes())


def _fit_table(odds: FloatArray, labels: BoolArray) -> FloatArray:
    """Fit one penalised logistic regression per label on the log-odds (n, d) of all labels; return (1 + d, d).

    Slopes and offsets are drawn towards those that all labels have in common, and weights of other labels towards 0,
    so a few hundred texts do not spoil what the classifier has learnt.
    """
    own, n_labels = labels.astype(np.float64), odds.shape[1]
    middle, means = odds.mean(), odds.mean(axis=0)
    # The matrices are small: dividing their products among threads takes longer than computing them.
    with threadpool_limits(1, user_api="blas"):
        common = np.full((2, 1), _LEAST_RIDGE), np.array([[0.0], [1.0]])
        offset, slope = _minimise((odds - middle).reshape(-1, 1), own.reshape(-1, 1), *common)[:, 0]
        ridge, target = np.full((1 + n_labels, n_labels), _RIDGES[2]), np.zeros((1 + n_labels, n_labels))
        diagonal = (1 + np.arange(n_labels), np.arange(n_labels))
        ridge[0], ridge[diagonal] = _RIDGES[:2]
        target[0], target[diagonal] = offset + slope * (means - middle), slope
        table = _minimise(odds - means, own, ridge, target)
        table[0] -= means @ table[1:]
    return table


def _minimise(features: FloatArray, labels: FloatArray, ridge: FloatArray, target: FloatArray) -> FloatArray:
    """Return the table (1 + m, d) of d logistic regressions on features (n, m), penalised towards a target."""
    # The loss is the sum of log-losses + ridge (coefficient - target)^2, which is convex. All regressions are fitted
    # at once by L-BFGS, coefficients scaled so that the curvature at the target is about the same for all of them.
    from scipy.optimize import minimize  # noqa: PLC0415 (slow to import, and only fits need it)

    def gradient_of(rest: FloatArray, columns: FloatArray) -> FloatArray:
        return np.vstack([rest.sum(axis=0), columns.T @ rest])

    shares = expit(target[0] + features @ target[1:])
    scale = 1.0 / np.sqrt(2.0 * ridge + gradient_of(shares * (1.0 - shares), features**2))

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        away = flat.reshape(target.shape) * scale
        table = target + away
        z = table[0] + features @ table[1:]
        slopes = gradient_of(expit(z) - labels, features) + 2.0 * ridge * away
        return float((np.logaddexp(0.0, z) - labels * z).sum() + (ridge * away**2).sum()), (slopes * scale).ravel()

    options: Any = {"maxiter": _STEPS, "ftol": _SMALLEST_GAIN, "gtol": 0.0}
    solved = minimize(loss, np.zeros(target.size), jac=True, method="L-BFGS-B", options=options)
    return np.asarray(target + solved.x.reshape(target.shape) * scale)
