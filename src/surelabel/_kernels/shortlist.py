"""Very many labels by shortlists: the labels nearest to a text, and a logistic regression a label among those texts.

Matrices are sparse rows: (starts, columns, values), row i at starts[i]..starts[i + 1]. Texts are rows of features,
as are labels' centroids and weights; an index holds centroids by feature.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surelabel._kernels.compiling import inlined, kernel, part

Array = Any

# Newton steps for one dual variable, and passes over a label's texts.
_MAX_STEPS = 30
_MAX_PASSES = 60
# Change of a dual variable's logit that ends its search, and the largest logit.
_SETTLED = 1e-3
_FAR = 30.0


@inlined
def _is_later(keys: Array, item: int, other: int) -> bool:
    """Tell whether an item comes after another one: its key is lower, or equal and its number higher."""
    return keys[item] < keys[other] or (keys[item] == keys[other] and item > other)


@inlined
def _sink(keys: Array, heap: Array, place: int, size: int) -> None:
    """Move an item of a heap, whose top comes last of all, down to its place."""
    while 2 * place + 1 < size:
        below = 2 * place + 1
        if below + 1 < size and _is_later(keys, heap[below + 1], heap[below]):
            below += 1
        if not _is_later(keys, heap[below], heap[place]):
            break
        heap[place], heap[below] = heap[below], heap[place]
        place = below


@part
def _take_first(keys: Array, items: Array, first: Array) -> None:
    """Write those of the items with the highest keys, the highest first; of equal keys the lowest items.

    With a heap, since numba takes seconds to compile numpy's partition.
    """
    n = first.shape[0]
    for place in range(n):
        first[place] = items[place]
    for place in range(n // 2 - 1, -1, -1):
        _sink(keys, first, place, n)
    for place in range(n, items.shape[0]):
        if _is_later(keys, first[0], items[place]):
            first[0] = items[place]
            _sink(keys, first, 0, n)
    for end in range(n - 1, 0, -1):
        first[0], first[end] = first[end], first[0]
        _sink(keys, first, 0, end)


@kernel
def nearest_labels(texts: Any, index: Any, n_labels: int, labels: Array, similarities: Array) -> None:
    """Write the labels whose centroids are most similar to each text, the most similar first, -1 where none is left.

    texts (starts, features, values), index (starts, labels, values) by feature; labels (n, k) int64 and similarities
    (n, k) float64 are written. Of equally similar labels the first are taken.
    """
    starts, features, values = texts
    index_starts, index_labels, index_values = index
    k = labels.shape[1]
    sums = np.zeros(n_labels)
    is_touched = np.zeros(n_labels, dtype=np.bool_)
    touched = np.empty(n_labels, dtype=np.int64)
    for i in range(starts.shape[0] - 1):
        n_touched = 0
        for at in range(starts[i], starts[i + 1]):
            for place in range(index_starts[features[at]], index_starts[features[at] + 1]):
                label = index_labels[place]
                # Not told by a sum of 0: values may be 0, or cancel each other.
                if not is_touched[label]:
                    is_touched[label] = True
                    touched[n_touched] = label
                    n_touched += 1
                sums[label] += values[at] * index_values[place]
        n_kept = min(n_touched, k)
        _take_first(sums, touched[:n_touched], labels[i, :n_kept])
        labels[i, n_kept:] = -1
        similarities[i] = 0.0
        for place in range(n_kept):
            similarities[i, place] = sums[labels[i, place]]
        for place in range(n_touched):
            sums[touched[place]] = 0.0
            is_touched[touched[place]] = False


@kernel
def score_labels(texts: Any, weights: Any, intercepts: Array, labels: Array, scores: Array) -> None:
    """Write the logits of some labels a text: labels (n, k) int64, -1 for none, scores (n, k) float64.

    weights (starts, features, values) by label; intercepts (d,). A label without a text is scored -inf.
    """
    starts, features, values = texts
    weight_starts, weight_features, weight_values = weights
    n_features = 0
    for feature in weight_features:
        n_features = max(n_features, feature + 1)
    for feature in features:
        n_features = max(n_features, feature + 1)
    row = np.zeros(n_features)
    for i in range(starts.shape[0] - 1):
        for at in range(starts[i], starts[i + 1]):
            row[features[at]] = values[at]
        for place in range(labels.shape[1]):
            label = labels[i, place]
            if label < 0:
                scores[i, place] = -np.inf
                continue
            total = intercepts[label]
            for at in range(weight_starts[label], weight_starts[label + 1]):
                total += weight_values[at] * row[weight_features[at]]
            scores[i, place] = total
        for at in range(starts[i], starts[i + 1]):
            row[features[at]] = 0.0


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
def fit_regression(texts: Any, rows: Array, signs: Array, costs: Array, tolerance: float, weights: Array) -> float:
    """Fit one logistic regression with an L2 penalty, by coordinate descent on its dual (Yu, Huang & Lin 2011).

    Minimises |w|^2 / 2 + b^2 / 2 + sum over i of costs[i] log(1 + exp(-signs[i] (w x_i + b))). texts (starts, features,
    values); rows (m,) are the texts of it, signs (m,) +1 or -1, costs (m,) > 0. weights (n_features,), zeros, are
    written; returns the intercept.
    """
    starts, features, values = texts
    n = rows.shape[0]
    duals = np.empty(n)
    squares = np.ones(n)
    intercept = 0.0
    for i in range(n):
        duals[i] = min(1e-3 * costs[i], 1e-8)
        for at in range(starts[rows[i]], starts[rows[i] + 1]):
            squares[i] += values[at] * values[at]
            weights[features[at]] += signs[i] * duals[i] * values[at]
        intercept += signs[i] * duals[i]
    for _ in range(_MAX_PASSES):
        largest = 0.0
        for i in range(n):
            margin = intercept
            for at in range(starts[rows[i]], starts[rows[i] + 1]):
                margin += weights[features[at]] * values[at]
            new = _dual_step(squares[i], signs[i] * margin, duals[i], costs[i])
            change = signs[i] * (new - duals[i])
            duals[i] = new
            if change != 0.0:
                for at in range(starts[rows[i]], starts[rows[i] + 1]):
                    weights[features[at]] += change * values[at]
                intercept += change
            largest = max(largest, abs(change) * np.sqrt(squares[i]))
        if largest <= tolerance:
            break
    return intercept


@kernel
def fit_labels(texts: Any, n_features: int, samples: Any, tolerance: float, most: int, out: Any) -> None:
    """Fit one regression a label and keep its largest weights.

    samples (starts, rows, signs, costs) by label; out (features (L, most) int64, values (L, most) float32, counts (L,),
    intercepts (L,)) is written, features ascending.
    """
    sample_starts, rows, signs, costs = samples
    starts, features, _ = texts
    kept_features, kept_values, counts, intercepts = out
    weights = np.zeros(n_features)
    seen = np.zeros(n_features, dtype=np.bool_)
    for label in range(sample_starts.shape[0] - 1):
        part = slice(sample_starts[label], sample_starts[label + 1])
        intercepts[label] = fit_regression(texts, rows[part], signs[part], costs[part], tolerance, weights)
        n_used = 0
        for row in rows[part]:
            n_used += starts[row + 1] - starts[row]
        used = np.empty(n_used, dtype=np.int64)
        n_used = 0
        for row in rows[part]:
            for at in range(starts[row], starts[row + 1]):
                if not seen[features[at]]:
                    seen[features[at]] = True
                    used[n_used] = features[at]
                    n_used += 1
        used = np.sort(used[:n_used])
        if n_used > most:
            places = np.empty(most, dtype=np.int64)
            _take_first(np.abs(weights[used]), np.arange(n_used), places)
            chosen = used[np.sort(places)]
        else:
            chosen = used
        counts[label] = chosen.shape[0]
        for place in range(chosen.shape[0]):
            kept_features[label, place] = chosen[place]
            kept_values[label, place] = weights[chosen[place]]
        weights[used] = 0.0
        seen[used] = False
