"""What the scores of a text's other labels say about each label: one small regression per label on all log-odds.

A fit per label does not see that "machine learning" makes "statistics" likelier. This second step does. It learns from
training texts, each scored by a fit that has not seen it.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Self

import numpy as np
from scipy.special import expit
from threadpoolctl import threadpool_limits

from surelabel._core.validation import BoolArray, FloatArray
from surelabel.text.curve import ScoreCurve

LEAST_TEXTS = 100
"""Fewer training texts are not refined."""

# With many labels the regressions learn from fewer texts: texts times squared labels stay below this.
_MOST_WORK = 4_000_000_000
_CLIP = 1e-6
_LARGEST = math.log((1.0 - _CLIP) / _CLIP)
# Penalties of squared offsets and slopes, less the common ones, and of the weights of other labels.
_RIDGES = (1.0, 10.0, 100.0)
# So that there is one solution, whatever the labels.
_LEAST_RIDGE = 1e-6
_STEPS, _SMALLEST_GAIN = 200, 1e-8


@dataclasses.dataclass(frozen=True, eq=False)
class Refinement:
    """A curve from scores to log-odds, and a table (1 + d, d) of how those of all labels count for each.

    Row 0 of the table has offsets, row 1 + j the weights of label j.
    """

    curve: ScoreCurve
    table: FloatArray

    @classmethod
    def fit(cls, scores: FloatArray, labels: BoolArray, shares: FloatArray, slope: float) -> Self:
        """Fit on scores (n, d) of texts that the fits have not seen; shares (d,) of training texts with each label."""
        most = max(LEAST_TEXTS, _MOST_WORK // scores.shape[1] ** 2)
        curve = ScoreCurve.fit(scores, labels, shares, slope)
        return cls(curve, _fit_table(_clipped_odds(curve, scores[:most]), labels[:most]))

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return refined scores (n, d), each text's computed alone."""
        # einsum adds in one order: a text's log-odds are the same to the last bit, alone or among others.
        refined = self.table[0] + np.einsum("nj,jk->nk", _clipped_odds(self.curve, scores), self.table[1:])
        return np.asarray(np.clip(refined, -_LARGEST, _LARGEST))


def _clipped_odds(curve: ScoreCurve, scores: FloatArray) -> FloatArray:
    return np.clip(curve.logits(scores), -_LARGEST, _LARGEST)


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
