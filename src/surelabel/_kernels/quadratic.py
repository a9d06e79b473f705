"""Quadratic forms e' M e of label-sets, to nearly twice the digits of a double, and whether that settles the rounding.

e[k] is what the text's probability of label k is away from absent (0) or present (1). A text's *centre* is one
label-set with all its sums; another label-set differs from it by flips, and costs only as many terms as there are pairs
of flips. Numbers are kept as unevaluated sums of two doubles, high + low (Dekker 1971). Where the error bound leaves
open which double is nearest, the caller adds up in exact arithmetic: so a total is the correctly rounded value of the
form, whatever the order of labels and however it was found.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from surelabel._kernels.compiling import inlined, kernel, part

Array = Any

# Relative error of one operation on pairs of doubles, with much to spare (2^-102 to 2^-104 in the literature).
_PAIR_ERROR = 2.0**-100
# What products below the smallest normal double may lose, each.
_UNDERFLOW = 2.0**-1060
_SPLITTER = 134217729.0


class Centre(NamedTuple):
    """A label-set of a text as the place to flip from.

    errors (d, 2): e where the label is absent, and present; member (d,) uint8; gradient (d, 2): M e as pairs; value
    (2,): e' M e as a pair; sizes (d,): |M| |e|; size (1,): |e|' |M| |e|.
    """

    errors: Array
    member: Array
    gradient: Array
    value: Array
    sizes: Array
    size: Array


@inlined
def _two_sum(a: float, b: float) -> tuple[float, float]:
    """Return a + b without error, as high + low."""
    high = a + b
    virtual = high - a
    return high, (a - (high - virtual)) + (b - virtual)


@inlined
def _two_product(a: float, b: float) -> tuple[float, float]:
    """Return a b without error, as high + low."""
    high = a * b
    split = _SPLITTER * a
    a_high = split - (split - a)
    a_low = a - a_high
    split = _SPLITTER * b
    b_high = split - (split - b)
    b_low = b - b_high
    return high, ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low


@inlined
def _add(a: Any, b: Any) -> tuple[float, float]:
    """Add two pairs; the accurate version, whose error is small beside |a + b| and not only beside |a| + |b|."""
    high, low = _two_sum(a[0], b[0])
    other, rest = _two_sum(a[1], b[1])
    low += other
    total = high + low
    low = (low - (total - high)) + rest
    high = total + low
    return high, low - (high - total)


@inlined
def _multiply(a: Any, b: Any) -> tuple[float, float]:
    """Multiply two pairs."""
    high, low = _two_product(a[0], b[0])
    low += a[0] * b[1] + a[1] * b[0]
    total = high + low
    return total, low - (total - high)


@part
def make_centre(n_labels: int) -> Centre:
    """Allocate a centre."""
    return Centre(
        np.empty((n_labels, 2)),
        np.empty(n_labels, dtype=np.uint8),
        np.empty((n_labels, 2)),
        np.empty(2),
        np.empty(n_labels),
        np.empty(1),
    )


@part
def set_centre(centre: Centre, matrix: Array, probabilities: Array, labels: Array) -> None:
    """Fill a centre: matrix (d, d) symmetric, probabilities (d,), labels (d,)."""
    n_labels = matrix.shape[0]
    for k in range(n_labels):
        centre.errors[k, 0] = probabilities[k]
        centre.errors[k, 1] = 1.0 - probabilities[k]
        centre.member[k] = 1 if labels[k] else 0
    value = (0.0, 0.0)
    size = 0.0
    for k in range(n_labels):
        own = centre.errors[k, centre.member[k]]
        total = (0.0, 0.0)
        magnitude = 0.0
        for j in range(n_labels):
            error = centre.errors[j, centre.member[j]]
            if error != 0.0:
                total = _add(total, _two_product(matrix[k, j], error))
                magnitude += abs(matrix[k, j]) * error
        centre.gradient[k, 0], centre.gradient[k, 1] = total
        centre.sizes[k] = magnitude
        value = _add(value, _multiply((own, 0.0), total))
        size += own * magnitude
    centre.value[0], centre.value[1] = value
    centre.size[0] = size


@kernel
def _settled(value: Any, size: float, n_terms: int) -> bool:
    """Tell whether an error of the sum cannot change the nearest double of a pair."""
    error = n_terms * (_PAIR_ERROR * size + _UNDERFLOW)
    return value[0] + (value[1] + error) == value[0] and value[0] + (value[1] - error) == value[0]


@part
def total_after_flips(centre: Centre, matrix: Array, flips: Array, n_flips: int) -> tuple[float, bool]:
    """Return the form after the first n_flips labels of `flips` are flipped, and whether its rounding is settled."""
    value = (centre.value[0], centre.value[1])
    size = centre.size[0]
    n_labels = matrix.shape[0]
    for i in range(n_flips):
        k = flips[i]
        step = _two_sum(centre.errors[k, 1 - centre.member[k]], -centre.errors[k, centre.member[k]])
        # e' M e grows by step (2 M e + step M_kk + 2 sum over earlier flips j of step_j M_kj).
        slope = _add((2.0 * centre.gradient[k, 0], 2.0 * centre.gradient[k, 1]), _multiply(step, (matrix[k, k], 0.0)))
        magnitude = 2.0 * centre.sizes[k] + abs(matrix[k, k])
        for j in range(i):
            other = flips[j]
            away = _two_sum(centre.errors[other, 1 - centre.member[other]], -centre.errors[other, centre.member[other]])
            slope = _add(slope, _multiply(away, (2.0 * matrix[k, other], 0.0)))
            magnitude += 2.0 * abs(matrix[k, other])
        value = _add(value, _multiply(step, slope))
        size += magnitude
    return value[0], _settled(value, size, (n_labels + n_flips) * (n_labels + n_flips) + 64)


@kernel
def totals_of_rows(matrix: Array, probabilities: Array, labels: Array, totals: Array, settled: Array) -> None:
    """Forms of one label-set a row: probabilities and labels (n, d); totals and settled (n,) are written."""
    centre = make_centre(matrix.shape[0])
    nothing = np.empty(0, dtype=np.int64)
    for i in range(probabilities.shape[0]):
        set_centre(centre, matrix, probabilities[i], labels[i])
        totals[i], settled[i] = total_after_flips(centre, matrix, nothing, np.int64(0))


@kernel
def totals_of_label_sets(matrix: Array, probabilities: Array, labels: Array, totals: Array, settled: Array) -> None:
    """Forms of many label-sets of one text: probabilities (d,), labels (m, d); totals and settled (m,) are written."""
    n_labels = matrix.shape[0]
    centre = make_centre(n_labels)
    set_centre(centre, matrix, probabilities, probabilities >= 0.5)
    flips = np.empty(n_labels, dtype=np.int64)
    for i in range(labels.shape[0]):
        n_flips = np.int64(0)
        for k in range(n_labels):
            if labels[i, k] != centre.member[k]:
                flips[n_flips] = k
                n_flips += 1
        totals[i], settled[i] = total_after_flips(centre, matrix, flips, n_flips)
