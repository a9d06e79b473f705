"""One-vs-rest linear classifiers by coordinate descent on the dual, one label at a time.

Texts are sparse rows (starts, columns, values), row i at starts[i]..starts[i + 1]. The order in which texts are visited
comes from the label's own stream of random numbers, so results depend neither on threads nor on other labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surelabel._kernels.compile import kernel, part

Array = Any

# Constants of Steele, Lea & Flood's SplitMix64.
_STEP, _FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_30, _27, _31 = np.uint64(30), np.uint64(27), np.uint64(31)
# Newton's steps in one dual variable: most, the change that ends them, and the largest log-odds of a dual's share.
_MAX_STEPS, _SETTLED, _FAR = 30, 1e-3, 30.0


@part
def _shuffle(order: Array, n: int, state: Any) -> Any:
    """Shuffle order[:n]; return the stream's next state."""
    for place in range(n - 1):
        state = state + _STEP
        mixed = (state ^ (state >> _30)) * _FIRST
        mixed = (mixed ^ (mixed >> _27)) * _SECOND
        mixed = mixed ^ (mixed >> _31)
        other = place + np.int64(mixed % np.uint64(n - place))
        order[place], order[other] = order[other], order[place]
    return state


@part
def _margin(texts: Any, i: int, weights: Array) -> float:
    """Return w x_i + b; b is the last of the weights."""
    starts, features, values = texts
    total = weights[weights.shape[0] - 1]
    for at in range(starts[i], starts[i + 1]):
        total += weights[features[at]] * values[at]
    return total


@part
def _add(texts: Any, i: int, change: float, weights: Array) -> None:
    """Add change times (x_i, 1) to the weights."""
    starts, features, values = texts
    for at in range(starts[i], starts[i + 1]):
        weights[features[at]] += change * values[at]
    weights[weights.shape[0] - 1] += change


@part
def _dual_step(square: float, margin: float, old: float, most: float) -> float:
    """Minimise the dual of a logistic loss in one variable, 0 < a < most.

    With a = most s(t), s the logistic function, the derivative t + square (most s(t) - old) + margin increases with a
    slope of 1 or more: Newton's steps, kept within a bracket. t is as exact as the next pass over the texts can use.
    """
    shift = margin - square * old
    high = -shift
    low = high - square * most
    t = np.log(old / (most - old))
    for _ in range(_MAX_STEPS):
        share = 1.0 / (1.0 + np.exp(-t))
        derivative = t + square * most * share + shift
        if derivative > 0.0:
            high = min(high, t)
        else:
            low = max(low, t)
        following = t - derivative / (1.0 + square * most * share * (1.0 - share))
        if not low <= following <= high:
            following = 0.5 * (low + high)
        settled = abs(following - t) <= _SETTLED
        t = following
        if settled:
            break
    return most / (1.0 + np.exp(-min(max(t, -_FAR), _FAR)))


@kernel
def fit_svm(texts: Any, squares: Array, rule: Any, is_positive: Array, state: Any, duals: Array, weights: Array) -> int:
    """Fit a support vector machine with squared hinge loss (Hsieh et al. 2008, with shrinking).

    Minimises |w|^2 / 2 + b^2 / 2 + sum over i of cost_i max(0, 1 - y_i (w x_i + b))^2. rule: (cost of a text with the
    label, cost of one without, tolerance, most passes). squares (n,): |x_i|^2 + 1. duals (n,) >= 0 and weights (F + 1,)
    = sum of y_i duals[i] (x_i, 1) are where it starts, and are written. Returns the number of passes.
    """
    positive_cost, negative_cost, tolerance, most_passes = rule
    n = duals.shape[0]
    order = np.arange(n)
    n_active = n
    shrink_above = np.inf
    passes = 0
    while passes < most_passes:
        largest, smallest = -np.inf, np.inf
        state = _shuffle(order, n_active, state)
        place = 0
        while place < n_active:
            i = order[place]
            sign = 1.0 if is_positive[i] else -1.0
            diagonal = 0.5 / (positive_cost if is_positive[i] else negative_cost)
            gradient = sign * _margin(texts, i, weights) - 1.0 + duals[i] * diagonal
            projected = gradient
            if duals[i] == 0.0:
                if gradient > shrink_above:
                    n_active -= 1
                    order[place], order[n_active] = order[n_active], order[place]
                    continue
                projected = min(gradient, 0.0)
            largest, smallest = max(largest, projected), min(smallest, projected)
            if abs(projected) > 1e-12:
                old = duals[i]
                duals[i] = max(old - gradient / (squares[i] + diagonal), 0.0)
                _add(texts, i, sign * (duals[i] - old), weights)
            place += 1
        passes += 1
        if largest - smallest <= tolerance:
            if n_active == n:
                break
            n_active, shrink_above = n, np.inf
            continue
        shrink_above = largest if largest > 0.0 else np.inf
    return passes


@kernel
def fit_logistic(
    texts: Any, squares: Array, rule: Any, is_positive: Array, state: Any, duals: Array, weights: Array
) -> int:
    """Fit a logistic regression with an L2 penalty (Yu, Huang & Lin 2011); arguments as in `fit_svm`.

    Minimises |w|^2 / 2 + b^2 / 2 + sum over i of cost_i log(1 + exp(-y_i (w x_i + b))); 0 < duals[i] < cost_i.
    """
    positive_cost, negative_cost, tolerance, most_passes = rule
    n = duals.shape[0]
    for i in range(n):
        cost = positive_cost if is_positive[i] else negative_cost
        if not 0.0 < duals[i] < cost:
            new = min(1e-3 * cost, 1e-8) if duals[i] <= 0.0 else 0.999 * cost
            _add(texts, i, (1.0 if is_positive[i] else -1.0) * (new - duals[i]), weights)
            duals[i] = new
    order = np.arange(n)
    passes = 0
    while passes < most_passes:
        largest = 0.0
        state = _shuffle(order, n, state)
        for place in range(n):
            i = order[place]
            sign = 1.0 if is_positive[i] else -1.0
            cost = positive_cost if is_positive[i] else negative_cost
            margin = sign * _margin(texts, i, weights)
            if abs(margin + np.log(duals[i] / (cost - duals[i]))) <= 0.1 * tolerance:
                continue
            new = _dual_step(squares[i], margin, duals[i], cost)
            change = sign * (new - duals[i])
            duals[i] = new
            if change != 0.0:
                _add(texts, i, change, weights)
            largest = max(largest, abs(change) / cost)
        passes += 1
        # A pass that moves no text's probability by more than a tenth of the tolerance, or so, is the last.
        if largest <= 0.1 * tolerance * max(1.0, 10.0 / max(positive_cost, negative_cost)):
            break
    return passes
