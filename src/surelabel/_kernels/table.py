"""Certified bounds on counts from a table over (number of labels, quantised cost).

Each flip cost is rounded to the nearest multiple of a cell. A label-set of c labels has at most c + size flips away
from a cheapest assignment of `size` labels, so its rounded sum is off by at most half as many cells. One table
therefore bounds the count at every threshold, from below and from above.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surelabel._kernels.compiling import kernel, part
from surelabel._kernels.exact_sum import UNIT_ROUNDOFF, band
from surelabel._kernels.flips import cheapest

Array = Any


@part
def _add_shifted(counts: Array, added: Array, first: int, shift: int) -> None:
    """Add a row of the table, from its first cell on, to another one, so many cells further: views that vectorise."""
    source = added[first : max(first, added.shape[0] - shift)]
    target = counts[first + shift :]
    for q in range(source.shape[0]):
        target[q] += source[q]


@part
def _cumulative_table(prices: Array, order: Array, member: Array, shape: Any, cell: float) -> Array:
    """Return T, shape (max labels + 1, cells): label-sets of c labels whose rounded flips sum to at most q cells."""
    size = 0
    for k in range(prices.shape[0]):
        size += member[k]
    hi, n_cells = shape
    table = np.zeros((max(hi, size) + 1, n_cells))
    table[size, 0] = 1.0
    # Dearest flips first: for long, few of them fit together, and most of the table stays empty. A row of it is empty
    # below its first cell.
    first = np.empty(table.shape[0], dtype=np.int64)
    for c in range(first.shape[0]):
        first[c] = 0 if c == size else n_cells
    top = size
    for inside in (1, 0):
        for place in range(order.shape[0]):
            k = order[place]
            if member[k] != inside:
                continue
            steps = np.rint(prices[k] / cell)
            if steps >= n_cells:
                continue
            shift = int(steps)
            if inside:
                for c in range(size):
                    _add_shifted(table[c], table[c + 1], first[c + 1], shift)
                    first[c] = min(first[c], first[c + 1] + shift)
            else:
                top = min(top + 1, hi)
                for c in range(top, 0, -1):
                    _add_shifted(table[c], table[c - 1], first[c - 1], shift)
                    first[c] = min(first[c], first[c - 1] + shift)
    for c in range(hi + 1):
        for q in range(1, n_cells):
            table[c, q] += table[c, q - 1]
    return table


@kernel
def _bounds_row(
    costs: Any, flips: Any, thresholds: Array, limits: Any, n_cells: int, lower: Array, upper: Array
) -> None:
    """Do what `bounds_row` says: costs are absent and present, flips their prices and order."""
    absent, present = costs
    n_labels = absent.shape[0]
    member = np.empty(n_labels, dtype=np.uint8)
    size, base = cheapest(absent, present, member)
    relative = band(n_labels)
    largest = thresholds[thresholds.shape[0] - 1] * (1.0 + relative) - base
    if largest < 0.0:
        return
    lo, hi = limits
    spread = 0.5 * (hi + size) + 1.0
    cell = largest / max(1.0, n_cells - 1.0)
    if cell <= 0.0:
        cell = 1.0
    table = _cumulative_table(flips[0], flips[1], member, (hi, n_cells + int(np.ceil(spread)) + 1), cell)
    last = table.shape[1] - 1
    rounding = 4.0 * (n_labels + table.shape[1]) * UNIT_ROUNDOFF
    for i in range(thresholds.shape[0]):
        margin = relative * thresholds[i]
        below = (thresholds[i] - margin - base) / cell
        above = (thresholds[i] + margin - base) / cell
        if above < 0.0:
            continue
        for c in range(lo, hi + 1):
            # Half a cell a flip, and a little for the divisions.
            error = 0.5 * (c + size) * (1.0 + 1e-9) + 1e-9 * (1.0 + above)
            q = np.floor(below - error)
            if q >= 0.0:
                lower[i] += table[c, min(int(q), last)]
            upper[i] += table[c, min(int(np.floor(above + error)), last)]
        lower[i] *= 1.0 - rounding
        upper[i] *= 1.0 + rounding


def bounds_row(
    absent: Array, present: Array, thresholds: Array, limits: Any, n_cells: int, lower: Array, upper: Array
) -> None:
    """Bound the number of candidates with total <= thresholds[i], for ascending thresholds.

    absent and present (d,), thresholds (m,), limits (lo, hi), lower and upper (m,) float64 are written.
    """
    lower[:] = upper[:] = 0.0
    with np.errstate(invalid="ignore"):  # both infinite: then nothing is within a threshold
        prices = np.abs(absent - present)
    _bounds_row((absent, present), (prices, np.argsort(-prices)), thresholds, limits, n_cells, lower, upper)
