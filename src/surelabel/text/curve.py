"""From the scores of linear classifiers to probabilities: one logistic curve for all labels, fitted on held-out texts.

Platt's curve uses one label's score alone. This one also uses the label's frequency in training and the scores of the
two best other labels of the text. It has nine coefficients, whatever the number of labels.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import scipy.special

from surelabel._core.validation import FloatArray

# Sets of inputs, simplest last: score, frequency, rivals, products, and a bend at 0.
_FULL, _MIDDLE, _PLAIN = (0, 1, 2, 3, 4, 5, 6, 7), (0, 1, 3), (0,)
_N_INPUTS = 8
# (text, label) pairs that a curve is fitted on.
_MOST_PAIRS = 250_000
_RIDGE, _MOST_STEPS, _SMALLEST_GAIN = 1.0, 50, 1e-7
_LEAST_SLOPE = 0.05


def log_loss(logits: FloatArray, labels: Any) -> float:
    """Return the log-loss of logits (n, d), summed over labels, mean over texts."""
    return float(np.logaddexp(0.0, np.where(labels, -logits, logits)).sum() / max(1, len(logits)))


@dataclasses.dataclass(frozen=True, eq=False)
class ScoreCurve:
    """A fitted curve: coefficients (9,) of the eight inputs and the constant, frequencies (d,) and limits (2,).

    Frequencies are logarithms of each label's share of the training texts, less their mean. Scores of rivals are
    clipped to the limits. Within them the curve rises with the score of every label.
    """

    coefficients: FloatArray
    frequencies: FloatArray
    limits: FloatArray

    @classmethod
    def fit(cls, scores: FloatArray, labels: Any, shares: FloatArray, slope: float = 1.0) -> ScoreCurve:
        """Fit on held-out texts: scores (n, d), labels (n, d) bool; shares (d,) of training texts with each label.

        `slope` is the prior slope, which decides if there are few texts.
        """
        step = max(1, -(-scores.size // _MOST_PAIRS))
        scores, labels = scores[::step], np.asarray(labels[::step])
        frequencies = np.log(np.maximum(shares, 1e-7))
        frequencies = frequencies - frequencies.mean()
        rivals = _rivals(scores)[0]
        limits = np.quantile(rivals, (0.005, 0.995))
        target = labels.ravel().astype(np.float64)
        parts = cls(np.zeros(_N_INPUTS + 1), frequencies, limits)._parts(scores)
        inputs = np.stack([part.ravel() for part in parts], axis=1)
        for chosen in (_FULL, _MIDDLE, _PLAIN):
            columns = [*chosen, _N_INPUTS]
            coefficients = np.zeros(_N_INPUTS + 1)
            start = np.zeros(len(columns))
            start[0] = slope
            penalty = np.append(np.full(len(chosen), _RIDGE), 1e-3)
            coefficients[columns] = fit_regression(inputs[:, columns], target, start, penalty)
            curve = cls(coefficients, frequencies, limits)
            if curve._least_slope() > _LEAST_SLOPE * max(coefficients[0], 0.0):
                return curve
        coefficients = np.zeros(_N_INPUTS + 1)
        coefficients[0] = slope
        return cls(coefficients, frequencies, limits)

    def logits(self, scores: FloatArray) -> FloatArray:
        """Return the log-odds (n, d) of scores (n, d)."""
        logits = np.zeros(scores.shape)
        # Term by term, in one order: the result for a text does not depend on the texts beside it.
        for coefficient, part in zip(self.coefficients, self._parts(scores), strict=True):
            logits += coefficient * part
        return logits

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return the probabilities (n, d) of scores (n, d)."""
        return np.asarray(scipy.special.expit(self.logits(scores)), dtype=np.float64)

    def _parts(self, scores: FloatArray) -> tuple[FloatArray, ...]:
        """Return the nine inputs of the curve, (n, d) each; the last is 1."""
        frequency = np.broadcast_to(self.frequencies, scores.shape)
        first, second = (np.clip(rival, *self.limits) for rival in _rivals(scores))
        return (
            scores,
            frequency,
            scores * frequency,
            first,
            scores * first,
            frequency * first,
            np.maximum(scores, 0.0),
            second,
            np.ones(scores.shape),
        )

    def _least_slope(self) -> float:
        """Return the smallest slope in the score over labels and rivals' limits, below and above 0."""
        a = self.coefficients
        slopes = a[0] + a[2] * self.frequencies[:, None] + a[4] * self.limits[None, :]
        return float(slopes.min() + min(0.0, a[6]))


def _rivals(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the highest and the second highest score among the other labels of the text, (n, d) each; 0 if none."""
    n_labels = scores.shape[1]
    if n_labels < 3:
        first = scores[:, ::-1] if n_labels == 2 else np.zeros(scores.shape)
        return first, np.zeros(scores.shape)
    top = -np.partition(-scores, 2, axis=1)[:, :3]
    top.sort(axis=1)
    third, second, best = top[:, :1], top[:, 1:2], top[:, 2:]
    first = np.where(scores >= best, second, best)
    return first, np.where(scores >= second, third, second)


def fit_regression(inputs: FloatArray, target: FloatArray, start: FloatArray, penalty: FloatArray) -> FloatArray:
    """Fit a logistic regression (k,) by Newton's method; a penalty draws each coefficient towards its start."""
    coefficients = start.copy()

    def value(at: FloatArray) -> float:
        logits = inputs @ at
        misfit = np.logaddexp(0.0, logits).sum() - target @ logits
        return float(misfit + 0.5 * (penalty * (at - start) ** 2).sum())

    now = value(coefficients)
    for _ in range(_MOST_STEPS):
        shares = scipy.special.expit(inputs @ coefficients)
        gradient = inputs.T @ (shares - target) + penalty * (coefficients - start)
        curvature = (inputs * (shares * (1.0 - shares))[:, None]).T @ inputs + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        length = 1.0
        while length > 1e-4:
            following = value(coefficients - length * step)
            if following <= now:
                break
            length /= 2.0
        else:
            break
        coefficients = coefficients - length * step
        is_settled = now - following <= _SMALLEST_GAIN * max(1.0, now)
        now = following
        if is_settled:
            break
    return coefficients
