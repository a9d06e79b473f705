"""Count or list all label-sets of a row whose total is at most a threshold, output-sensitively.

A node is a set of flips; its children add one flip that costs no less. A subset over budget ends its branch.
Removals (labels of the cheapest assignment) are walked first, and the additions for each of them, so that the
limits on the number of labels prune instead of filter.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from surelabel._kernels.flips import (
    NO_LABEL,
    Flips,
    Row,
    Scratch,
    end_of_affordable,
    fits,
    is_inside,
    make_scratch,
    open_row,
)

Array = Any

OVER_LIMIT = -1
_NO_LIMIT = 2**62


class Sink(NamedTuple):
    """Where listed label-sets go: words (capacity, W) uint64; capacity 0 means that they are only counted.

    `totals` is (capacity,) or (0,): totals up to rounding. `current` is the running label-set, packed; `masks`
    (n_labels, W) has the bit of each addition, in the order of their costs; `top` is the total of a label-set that
    leaves no budget.
    """

    words: Array
    totals: Array
    current: Array
    masks: Array
    top: float


@njit(cache=True, nogil=True, inline="always")
def bit_of(label: int) -> Any:
    """Return the bit of a label in its word: label 0 is the highest."""
    return np.uint64(1) << np.uint64(63 - (label & 63))


@njit(cache=True, nogil=True, inline="always")
def _count_singles(row: Row, flips: Flips, start: int, budget: float, limit: int) -> tuple[int, int]:
    """Count single additions; return (count, work), where work passes `limit` as soon as counting is given up."""
    end = end_of_affordable(flips, start, budget)
    count = end - start
    work = 1
    j = end - 1
    while j >= start and budget - flips.costs[j] < row.slack and work <= limit:
        work += row.absent.shape[0]
        if not is_inside(row, flips.index[j], NO_LABEL):
            count -= 1
        j -= 1
    return count, work


@njit(cache=True, nogil=True)
def _count_pairs(row: Row, flips: Flips, start: int, budget: float, limit: int) -> tuple[int, int]:
    """Count pairs of additions by two pointers; return (count, work), as `_count_singles`."""
    costs = flips.costs
    count = 0
    work = 0
    last = costs.shape[0] - 1
    for j in range(start, costs.shape[0]):
        while last > j and costs[j] + costs[last] > budget:
            last -= 1
            work += 1
        if last <= j or work > limit:
            break
        count += last - j
        work += 1
        other = last
        while other > j and budget - (costs[j] + costs[other]) < row.slack and work <= limit:
            work += row.absent.shape[0]
            if not is_inside(row, flips.index[j], flips.index[other]):
                count -= 1
            other -= 1
    return count, work


@njit(cache=True, nogil=True, inline="always")
def _write(sink: Sink, n: int, label: int, total: float) -> None:
    """Write the running label-set, with one label flipped where >= 0, as row n."""
    for w in range(sink.current.shape[0]):
        sink.words[n, w] = sink.current[w]
    if label >= 0:
        sink.words[n, label >> 6] ^= bit_of(label)
    if sink.totals.shape[0] > 0:
        sink.totals[n] = total


@njit(cache=True, nogil=True, inline="always")
def _write_run(sink: Sink, start: int, end: int, n: int) -> None:
    """Write the running label-set with each of additions start..end in turn: the innermost loop of listing."""
    rows = sink.words[n : n + end - start]
    masks = sink.masks[start:end]
    current = sink.current
    if current.shape[0] == 1:
        first = current[0]
        for i in range(rows.shape[0]):
            rows[i, 0] = first ^ masks[i, 0]
    elif current.shape[0] == 2:
        first, second = current[0], current[1]
        for i in range(rows.shape[0]):
            rows[i, 0] = first ^ masks[i, 0]
            rows[i, 1] = second ^ masks[i, 1]
    else:
        for i in range(rows.shape[0]):
            for w in range(current.shape[0]):
                rows[i, w] = current[w] ^ masks[i, w]


@njit(cache=True, nogil=True, inline="always")
def _list_run(row: Row, flips: Flips, sink: Sink, run: Any, budget: float, first: int, n: int) -> int:
    """Write the running label-set with each of the additions run[0]..run[1]; return the next free row.

    `first`, where >= 0, is a label that is flipped in the packed label-set but not in `member`.
    """
    start, end = run
    capacity = sink.words.shape[0]
    sure = end
    while sure > start and budget - flips.costs[sure - 1] < row.slack:
        sure -= 1
    if n + (sure - start) > capacity:
        sure = end = start + capacity - n
    _write_run(sink, start, sure, n)
    if sink.totals.shape[0] > 0:
        for j in range(start, sure):
            sink.totals[n + j - start] = sink.top - (budget - flips.costs[j])
    n += sure - start
    for j in range(sure, end):
        if n < capacity and is_inside(row, flips.index[j], first):
            _write(sink, n, flips.index[j], sink.top - (budget - flips.costs[j]))
            n += 1
    return n


@njit(cache=True, nogil=True, inline="always")
def _list_pairs(row: Row, flips: Flips, sink: Sink, start: int, budget: float, need: int, n: int) -> int:
    """Write single additions, where one is enough, and pairs of them; return the next free row."""
    costs = flips.costs
    end = costs.shape[0]
    for j in range(start, costs.shape[0]):
        if costs[j] > budget or n >= sink.words.shape[0]:
            break
        left = budget - costs[j]
        label = flips.index[j]
        sink.current[label >> 6] ^= bit_of(label)
        if need <= 1 and (left >= row.slack or is_inside(row, label, NO_LABEL)):
            _write(sink, n, -1, sink.top - left)
            n += 1
        while end > j + 1 and costs[end - 1] > left:
            end -= 1
        n = _list_run(row, flips, sink, (j + 1, max(end, j + 1)), left, label, n)
        sink.current[label >> 6] ^= bit_of(label)
    return n


@njit(cache=True, nogil=True)
def _set_masks(sink: Sink, additions: Flips) -> None:
    """Write the bit of each addition once a row."""
    sink.masks[:] = 0
    for j in range(additions.index.shape[0]):
        sink.masks[j, additions.index[j] >> 6] = bit_of(additions.index[j])


@njit(cache=True, nogil=True, inline="always")
def _toggle(row: Row, sink: Sink, label: int) -> None:
    """Flip one label of the running label-set and of its packed form."""
    row.member[label] ^= 1
    sink.current[label >> 6] ^= bit_of(label)


@njit(cache=True, nogil=True, inline="always")
def _leaves(row: Row, flips: Flips, sink: Sink, start: int, budget: float, sizes: Any, limit: int, n: int) -> Any:
    """Finish a node without visiting its children, where none of them has children that must be walked.

    `sizes` is how many additions the limits still allow and how many they still ask for, `limit` what work is left.
    Where two more cannot both fit, the single ones are a run of the sorted costs; where three cannot, pairs need two
    pointers.

    Returns
    -------
    finished : bool
    n : int
        Count or next free row.
    work : int
    """
    costs = flips.costs
    n_flips = costs.shape[0]
    most, need = sizes
    listing = sink.words.shape[0] > 0
    if most <= 0 or start >= n_flips or costs[start] > budget:
        return True, n, 0
    if most == 1 or start + 1 >= n_flips or costs[start] + costs[start + 1] > budget:
        if listing:
            run = (start, end_of_affordable(flips, start, budget))
            return True, _list_run(row, flips, sink, run, budget, NO_LABEL, n), 1
        count, work = _count_singles(row, flips, start, budget, limit)
        return True, n + count, work
    if most > 2 and start + 2 < n_flips and costs[start] + costs[start + 1] + costs[start + 2] <= budget:
        return False, n, 0
    if listing:
        return True, _list_pairs(row, flips, sink, start, budget, need, n), 1
    singles, work = (0, 0) if need > 1 else _count_singles(row, flips, start, budget, limit)
    pairs, more = _count_pairs(row, flips, start, budget, limit - work)
    return True, n + singles + pairs, work + more


@njit(cache=True, nogil=True)
def _walk_additions(row: Row, flips: Flips, sink: Sink, budget: float, limits: Any, limit: int, n: int) -> Any:
    """Count or write the sets of limits[0]..limits[1] additions within budget; return (n, work)."""
    listing = sink.words.shape[0] > 0
    work = np.int64(0)
    size = 0
    start = np.int64(0)
    flips.remaining[0] = budget
    entering = True
    while True:
        left = flips.remaining[size]
        need = limits[0] - size
        work += 1 + max(need, 0)
        if work > limit or (listing and n >= sink.words.shape[0]):
            break
        if entering and need <= 0:
            near = left < row.slack
            if near:
                work += row.absent.shape[0]
            if not near or is_inside(row, NO_LABEL, NO_LABEL):
                if listing:
                    _write(sink, n, -1, sink.top - left)
                n += 1
        # Asked again after each child: the flips from `start` on may no longer fit two at a time.
        finished = need > 0 and not fits(flips, start, need, left)
        if not finished:
            finished, n, more = _leaves(row, flips, sink, start, left, (limits[1] - size, need), limit - work, n)
            work += more
        if not finished:
            flips.position[size] = start
            flips.remaining[size + 1] = left - flips.costs[start]
            _toggle(row, sink, flips.index[start])
            size += 1
            start += 1
            entering = True
        elif size == 0:
            break
        else:
            size -= 1
            start = flips.position[size]
            _toggle(row, sink, flips.index[start])
            start += 1
            entering = False
    while size > 0:
        size -= 1
        _toggle(row, sink, flips.index[flips.position[size]])
    return n, work


@njit(cache=True, nogil=True)
def walk_row(
    absent: Array, present: Array, threshold: float, limits: Any, limit: int, scratch: Scratch, sink: Sink
) -> Any:
    """Count the label-sets of a row with total <= threshold, or write them; return (n, work).

    `limits` is (lo, hi). n is OVER_LIMIT where more than `limit` steps would be needed.
    """
    row, additions, removals, size, budget = open_row(absent, present, threshold, scratch)
    if budget < 0.0:
        return 0, 1
    listing = sink.words.shape[0] > 0
    sink.current[:] = 0
    for k in range(absent.shape[0]):
        if row.member[k]:
            sink.current[k >> 6] ^= bit_of(k)
    if listing:
        _set_masks(sink, additions)
    n = np.int64(0)
    work = np.int64(0)
    start = np.int64(0)
    removed = 0
    removals.remaining[0] = budget
    entering = True
    while True:
        left = removals.remaining[removed]
        descend = True
        if entering:
            entering = False
            at_least = max(0, limits[0] - (size - removed))
            at_most = limits[1] - (size - removed)
            # Removing more asks for more additions from less budget: no deeper node can succeed either.
            descend = fits(additions, 0, at_least, left)
            work += 1
            if at_most < 0:
                descend = descend and fits(removals, start, -at_most, left)
            elif descend:
                n, more = _walk_additions(row, additions, sink, left, (at_least, at_most), limit - work, n)
                work += more
            if work > limit:
                return OVER_LIMIT, work
            if listing and n >= sink.words.shape[0]:
                return n, work
        if descend and start < removals.costs.shape[0] and removals.costs[start] <= left:
            removals.position[removed] = start
            removals.remaining[removed + 1] = left - removals.costs[start]
            _toggle(row, sink, removals.index[start])
            removed += 1
            start += 1
            entering = True
        elif removed == 0:
            return n, work
        else:
            removed -= 1
            start = removals.position[removed]
            _toggle(row, sink, removals.index[start])
            start += 1


@njit(cache=True, nogil=True)
def make_sink(words: Array, totals: Array, n_labels: int, threshold: float, slack: float) -> Sink:
    """Make a sink for one row."""
    n_words = (n_labels + 63) >> 6
    masks = np.empty((n_labels if words.shape[0] > 0 else 0, n_words), dtype=np.uint64)
    return Sink(words, totals, np.zeros(n_words, dtype=np.uint64), masks, threshold + 0.5 * slack)


@njit(cache=True, nogil=True)
def count_rows(
    absent: Array, present: Array, thresholds: Array, limits: Any, limit: int, sizes: Array, work: Array
) -> None:
    """Write the number of label-sets with total <= thresholds[i] a row, OVER_LIMIT where it takes over `limit` steps.

    absent and present (n, d), thresholds (n,), limits (lo, hi); sizes and work (n,) int64 are written.
    """
    n_labels = absent.shape[1]
    scratch = make_scratch(n_labels)
    sink = make_sink(np.empty((0, 1), dtype=np.uint64), np.empty(0), n_labels, 0.0, 0.0)
    for i in range(absent.shape[0]):
        sizes[i], work[i] = walk_row(absent[i], present[i], thresholds[i], limits, limit, scratch, sink)


@njit(cache=True, nogil=True)
def list_row(absent: Array, present: Array, threshold: float, limits: Any, words: Array, totals: Array) -> int:
    """Write packed label-sets with total <= threshold until `words` (capacity, W) is full; return how many.

    totals, (capacity,) or (0,), gets their totals up to rounding.
    """
    if words.shape[0] == 0:
        return 0
    n_labels = absent.shape[0]
    scratch = make_scratch(n_labels)
    row = open_row(absent, present, threshold, scratch)[0]
    sink = make_sink(words, totals, n_labels, threshold, row.slack)
    return walk_row(absent, present, threshold, limits, _NO_LIMIT, scratch, sink)[0]
