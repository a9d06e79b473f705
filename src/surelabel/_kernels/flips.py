"""A row as its cheapest label-set and the flips away from it that a threshold affords.

Flipping label k away from the cheapest assignment adds w_k = |absent[k] - present[k]| >= 0 to its total `base`. So a
label-set is within the threshold iff its flips sum to at most threshold - base.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from surelabel._kernels.exact_sum import N_PARTIALS, band, total_of_members

Array = Any

_SMALL_SORT = 24
# In place of a label where none is flipped.
NO_LABEL = np.int64(-1)


class Scratch(NamedTuple):
    """Memory that rows share: costs (4, d + 1) float64, index (4, d + 1) int64, member (d,), partials."""

    costs: Array
    index: Array
    member: Array
    partials: Array


class Row(NamedTuple):
    """A row under search; `member` is the running label-set, 0/1 uint8.

    Sums of flips within `slack` below the budget are too near the threshold to be decided by a running sum.
    """

    absent: Array
    present: Array
    threshold: float
    slack: float
    member: Array
    partials: Array


class Flips(NamedTuple):
    """Affordable flips, cheapest first (see `_arrange_flips`), and the stack of a depth-first walk over subsets."""

    costs: Array
    index: Array
    position: Array
    remaining: Array


@njit(cache=True, nogil=True)
def make_scratch(n_labels: int) -> Scratch:
    """Allocate what a walk over rows of n_labels needs."""
    return Scratch(
        np.empty((4, n_labels + 1)),
        np.empty((4, n_labels + 1), dtype=np.int64),
        np.empty(n_labels, dtype=np.uint8),
        np.empty(N_PARTIALS),
    )


@njit(cache=True, nogil=True)
def _sort_flips(costs: Array, index: Array) -> None:
    """Sort flips by cost, in place; the flips worth sorting are few as a rule."""
    n = costs.shape[0]
    if n > _SMALL_SORT:
        order = np.argsort(costs, kind="mergesort")
        sorted_costs, sorted_index = costs[order], index[order]
        for i in range(n):
            costs[i] = sorted_costs[i]
            index[i] = sorted_index[i]
        return
    for i in range(1, n):
        cost = costs[i]
        label = index[i]
        j = i - 1
        while j >= 0 and costs[j] > cost:
            costs[j + 1] = costs[j]
            index[j + 1] = index[j]
            j -= 1
        costs[j + 1] = cost
        index[j + 1] = label


@njit(cache=True, nogil=True)
def _arrange_flips(costs: Array, index: Array, combinable: float, near: float) -> None:
    """Put the flips that can be combined with another first, by cost, and those that only stand alone last.

    A flip alone costs more than `combinable`, so no order among such flips is needed: whatever is left after any
    other flip affords none of them. Only where one is over `near`, too close to the threshold for a running sum,
    must they be sorted too, since walks look for such flips at the end.
    """
    front = 0
    sort_all = False
    for j in range(costs.shape[0]):
        if costs[j] <= combinable:
            costs[front], costs[j] = costs[j], costs[front]
            index[front], index[j] = index[j], index[front]
            front += 1
        elif costs[j] > near:
            sort_all = True
    if sort_all:
        front = costs.shape[0]
    _sort_flips(costs[:front], index[:front])


@njit(cache=True, nogil=True)
def cheapest(absent: Array, present: Array, member: Array) -> tuple[int, float]:
    """Fill the cheapest assignment (present where it costs no more); return its size and running total."""
    size = 0
    base = 0.0
    for k in range(absent.shape[0]):
        if present[k] <= absent[k]:
            member[k] = 1
            size += 1
            base += present[k]
        else:
            member[k] = 0
            base += absent[k]
    return size, base


@njit(cache=True, nogil=True, inline="always")
def price_of_flip(absent: float, present: float, maximum: bool) -> float:
    """Return what flipping a label away from the cheapest assignment adds; for a maximum, the cost it comes to."""
    return max(absent, present) if maximum else abs(absent - present)


@njit(cache=True, nogil=True, inline="always")
def _collect_flips(
    absent: Array, present: Array, budget: float, maximum: bool, scratch: Scratch
) -> tuple[int, int, float]:
    """Write affordable additions and removals, rows 0 and 1, unsorted; return how many, and the least price."""
    n_add = 0
    n_remove = 0
    smallest = np.inf
    for k in range(absent.shape[0]):
        cost = price_of_flip(absent[k], present[k], maximum)
        smallest = min(smallest, cost)
        if cost <= budget:
            if scratch.member[k]:
                scratch.costs[1, n_remove] = cost
                scratch.index[1, n_remove] = k
                n_remove += 1
            else:
                scratch.costs[0, n_add] = cost
                scratch.index[0, n_add] = k
                n_add += 1
    return n_add, n_remove, smallest


@njit(cache=True, nogil=True)
def open_flips(absent: Array, present: Array, threshold: float, drift: float, maximum: bool) -> Any:
    """Set a row up for a search that takes flips by their cost, of a sum or a maximum.

    Returns the cheapest assignment (d,) uint8, its running total, and the additions and removals that a threshold
    affords, widened by `drift` of it: two pairs of (labels, prices), cheapest first.
    """
    scratch = make_scratch(absent.shape[0])
    _, base = cheapest(absent, present, scratch.member)
    room = threshold - base + drift * max(threshold, 0.0)
    if maximum:
        base = 0.0
        for k in range(absent.shape[0]):
            base = max(base, min(absent[k], present[k]))
        room = threshold
    n_add, n_remove, _ = _collect_flips(absent, present, room, maximum, scratch)
    additions = scratch.index[0, :n_add], scratch.costs[0, :n_add]
    removals = scratch.index[1, :n_remove], scratch.costs[1, :n_remove]
    _sort_flips(additions[1], additions[0])
    _sort_flips(removals[1], removals[0])
    return scratch.member, base, additions, removals


@njit(cache=True, nogil=True)
def open_row(absent: Array, present: Array, threshold: float, scratch: Scratch) -> tuple[Row, Flips, Flips, int, float]:
    """Set a row up for a walk.

    Returns
    -------
    row : Row
        `member` holds the cheapest assignment.
    additions, removals : Flips
        Flips of labels outside and inside the cheapest assignment.
    size : int
        Number of labels of the cheapest assignment.
    budget : float
        What flips may sum to, half of `slack` above the true budget; negative where nothing fits.
    """
    size, base = cheapest(absent, present, scratch.member)
    margin = band(absent.shape[0]) * threshold
    budget = threshold - base + margin
    n_add, n_remove, smallest = _collect_flips(absent, present, budget, False, scratch)
    row = Row(absent, present, threshold, 2.0 * margin, scratch.member, scratch.partials)
    additions = Flips(scratch.costs[0, :n_add], scratch.index[0, :n_add], scratch.index[2], scratch.costs[2])
    removals = Flips(scratch.costs[1, :n_remove], scratch.index[1, :n_remove], scratch.index[3], scratch.costs[3])
    _arrange_flips(additions.costs, additions.index, budget - smallest, budget - 2.0 * margin)
    _arrange_flips(removals.costs, removals.index, budget - smallest, budget - 2.0 * margin)
    return row, additions, removals, size, budget


@njit(cache=True, nogil=True, inline="always")
def fits(flips: Flips, start: int, need: int, budget: float) -> bool:
    """Tell whether the cheapest `need` flips from `start` on can be afforded."""
    if flips.costs.shape[0] - start < need:
        return False
    total = 0.0
    for j in range(start, start + need):
        total += flips.costs[j]
        if total > budget:
            return False
    return True


@njit(cache=True, nogil=True, inline="always")
def end_of_affordable(flips: Flips, start: int, budget: float) -> int:
    """Return one past the last flip from `start` on that costs at most `budget`, by bisection."""
    low, high = start, flips.costs.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if flips.costs[middle] <= budget:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def is_inside(row: Row, first: int, second: int) -> bool:
    """Decide the running label-set, with labels `first` and `second` flipped where >= 0, by its exact total."""
    if first >= 0:
        row.member[first] ^= 1
    if second >= 0:
        row.member[second] ^= 1
    inside = total_of_members(row.absent, row.present, row.member, row.partials) <= row.threshold
    if first >= 0:
        row.member[first] ^= 1
    if second >= 0:
        row.member[second] ^= 1
    return inside
