"""A row as its cheapest label-set and the flips away from it that a threshold affords.

Flipping label k away from the cheapest assignment adds w_k = |absent[k] - present[k]| >= 0 to its total `base`. So a
label-set is within the threshold iff its flips sum to at most threshold - base.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from surelabel._kernels.compiling import inlined, part
from surelabel._kernels.exact_sum import N_PARTIALS, total_of_members

Array = Any

# Flips that are sorted by insertion; longer runs of them are merged.
_SMALL_SORT = 24
# Of a row whose totals are sums: `maximum` is false; and whether flips are wanted `in_order`.
IS_SUM: Any = np.bool_(False)
IN_ORDER, IN_PART = np.bool_(True), np.bool_(False)
# Stands for a flip if none is made.
NO_FLIP = np.int64(-1)


# Rows of `Scratch.costs` and `Scratch.index`: the additions and the removals that a threshold affords, and the stack
# of a walk over sets of each: what is left of the budget, and which flips were made.
ADDITIONS, REMOVALS, ADDED, REMOVED = 0, 1, 2, 3


class Scratch(NamedTuple):
    """Memory that rows share: costs (4, d + 1) float64, index (4, d + 1) int64, member (d,) uint8, partials.

    `member` is the cheapest label-set, without the removals of a walk.
    """

    costs: Array
    index: Array
    member: Array
    partials: Array


class Row(NamedTuple):
    """A row under search: its costs (d,), and how many additions and removals the threshold affords.

    Sums of flips within `slack` below the budget are too near the threshold to be decided by a running sum.
    """

    absent: Array
    present: Array
    threshold: float
    slack: float
    n_add: int
    n_remove: int


@part
def make_scratch(n_labels: int) -> Scratch:
    """Allocate what a walk over rows of n_labels needs."""
    return Scratch(
        np.empty((4, n_labels + 1)),
        np.empty((4, n_labels + 1), dtype=np.int64),
        np.empty(n_labels, dtype=np.uint8),
        np.empty(N_PARTIALS),
    )


@part
def _sort_flips(costs: Array, index: Array, n_flips: int) -> None:
    """Sort the first flips by cost, in place: by insertion in short runs, which are merged; they are few as a rule."""
    for i in range(1, n_flips):
        cost, label = costs[i], index[i]
        first = i - i % _SMALL_SORT
        j = i - 1
        while j >= first and costs[j] > cost:
            costs[j + 1] = costs[j]
            index[j + 1] = index[j]
            j -= 1
        costs[j + 1] = cost
        index[j + 1] = label
    width = _SMALL_SORT
    while width < n_flips:
        old_costs, old_index = costs.copy(), index.copy()
        left, right = 0, width
        for i in range(n_flips):
            if i % (2 * width) == 0:
                left, right = i, i + width
            end = i - i % (2 * width) + width
            takes_right = left >= end or (right < min(end + width, n_flips) and old_costs[right] < old_costs[left])
            taken = right if takes_right else left
            costs[i], index[i] = old_costs[taken], old_index[taken]
            if takes_right:
                right += 1
            else:
                left += 1
        width *= 2


@inlined
def _arrange_flips(costs: Array, index: Array, n_flips: int, combinable: float, near: float) -> None:
    """Put the flips that can be combined with another first, by cost, and those that only stand alone last.

    A flip alone costs more than `combinable`, so no order among such flips is needed: whatever is left after any
    other flip affords none of them. Only where one is over `near`, too close to the threshold for a running sum,
    must they be sorted too, since walks look for such flips at the end.
    """
    front = 0
    sort_all = False
    for j in range(n_flips):
        if costs[j] <= combinable:
            costs[front], costs[j] = costs[j], costs[front]
            index[front], index[j] = index[j], index[front]
            front += 1
        elif costs[j] > near:
            sort_all = True
    _sort_flips(costs, index, n_flips if sort_all else front)


@part
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


@inlined
def price_of_flip(absent: float, present: float, maximum: bool) -> float:
    """Return what flipping a label away from the cheapest assignment adds; for a maximum, the cost it comes to."""
    return max(absent, present) if maximum else abs(absent - present)


@part
def open_flips(
    absent: Array, present: Array, threshold: float, drift: float, maximum: bool, in_order: bool, scratch: Scratch
) -> Any:
    """Set a row up for a search: write its cheapest assignment and the flips that a threshold affords to `scratch`.

    The threshold is widened by `drift` of it. Additions and removals come cheapest first if they are wanted `in_order`,
    else as `_arrange_flips` puts them. With `maximum`, totals are maxima instead of sums. Returns the number of each,
    the assignment's number of labels and running total, and what flips may sum to, negative if nothing fits.
    """
    size, base = cheapest(absent, present, scratch.member)
    budget = threshold - base + drift * max(threshold, 0.0)
    if maximum:
        base, budget = 0.0, threshold
        for k in range(absent.shape[0]):
            base = max(base, min(absent[k], present[k]))
    n_add, n_remove, smallest = np.int64(0), np.int64(0), np.inf
    for k in range(absent.shape[0]):
        cost = price_of_flip(absent[k], present[k], maximum)
        smallest = min(smallest, cost)
        if cost <= budget:
            if scratch.member[k]:
                scratch.costs[REMOVALS, n_remove] = cost
                scratch.index[REMOVALS, n_remove] = k
                n_remove += 1
            else:
                scratch.costs[ADDITIONS, n_add] = cost
                scratch.index[ADDITIONS, n_add] = k
                n_add += 1
    for side in range(2):
        n_flips = n_remove if side else n_add
        if n_flips > 1:
            combinable, near = np.inf, budget
            if not in_order:
                combinable, near = budget - smallest, budget - 2.0 * drift * threshold
            _arrange_flips(scratch.costs[side], scratch.index[side], n_flips, combinable, near)
    return n_add, n_remove, size, base, budget


@inlined
def fits(costs: Array, start: int, end: int, budget: float) -> bool:
    """Tell whether all flips from `start` to `end` can be afforded together."""
    total = 0.0
    for j in range(start, end):
        total += costs[j]
    return total <= budget


@part
def is_inside(row: Row, scratch: Scratch, depth: int, first: int, second: int) -> bool:
    """Decide the running label-set, with additions `first` and `second` where >= 0, by its exact total.

    The running one has the first `depth` additions of the stack, and no label that `member` leaves out.
    """
    labels, added = scratch.index[ADDITIONS], scratch.index[ADDED]
    for i in range(depth):
        scratch.member[labels[added[i]]] ^= 1
    for place in (first, second):
        if place >= 0:
            scratch.member[labels[place]] ^= 1
    inside = total_of_members(row.absent, row.present, scratch.member, scratch.partials) <= row.threshold
    for i in range(depth):
        scratch.member[labels[added[i]]] ^= 1
    for place in (first, second):
        if place >= 0:
            scratch.member[labels[place]] ^= 1
    return inside
