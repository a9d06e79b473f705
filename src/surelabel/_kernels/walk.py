"""Count or list all label-sets of a row whose total is at most a threshold, output-sensitively.

A node is a set of flips; its children add one flip that costs no less. A subset over budget ends its branch.
Removals (labels of the cheapest assignment) are walked first, and the additions for each of them, so that the
limits on the number of labels prune instead of filter.

Where at most two more additions fit, a node's descendants are runs of the sorted costs: counted by two pointers, or
written in a loop, without visiting them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from surelabel._kernels.compiling import inlined, kernel, part, quickest
from surelabel._kernels.exact_sum import band, row_starts
from surelabel._kernels.flips import (
    ADDED,
    ADDITIONS,
    IN_PART,
    IS_SUM,
    NO_FLIP,
    REMOVALS,
    REMOVED,
    Row,
    Scratch,
    fits,
    is_inside,
    make_scratch,
    open_flips,
)
from surelabel._kernels.packed import bit, pack_member

Array = Any

OVER_LIMIT = -1
_NO_LIMIT = np.int64(2**62)
# Places in a walk's state: how many labels are removed, the next removal to try, whether that set is new, all steps.
_DEPTH, _START, _NEW, _WORK = 0, 1, 2, 3
_N_STATE = 4
# Steps that tell of most rows how many label-sets they have.
_FIRST_STEPS = 300
# Additions below a node that are not walked one by one.
_LEAF = 2


class Sink(NamedTuple):
    """Where listed label-sets go: words (capacity, W) uint64.

    `totals` is (capacity,) or (0,): totals up to rounding. `current` (W,) is the running label-set, packed; `masks` has
    the bit of each addition, in the order of their costs, and a last row for no addition; `top` is the total of a
    label-set that leaves no budget.
    """

    words: Array
    totals: Array
    current: Array
    masks: Array
    top: float


@inlined
def _n_fitting(costs: Array, start: int, end: int, budget: float) -> int:
    """Return how many of the cheapest additions from `start` to `end` fit together: up to _LEAF, or one more."""
    total = 0.0
    j = start
    while j < end and j <= start + _LEAF:
        total += costs[j]
        if total > budget:
            break
        j += 1
    return j - start


@inlined
def _end_of_affordable(costs: Array, start: int, end: int, budget: float) -> int:
    """Return one past the last addition between `start` and `end` that costs at most `budget`, by bisection."""
    low, high = start, end
    while low < high:
        middle = (low + high) >> 1
        if costs[middle] <= budget:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def _start_walk() -> Array:
    """Return the state of a walk over sets of removals that has not begun."""
    state = np.zeros(_N_STATE, dtype=np.int64)
    state[_NEW] = 1
    return state


@part
def _next_removals(row: Row, scratch: Scratch, limits: Any, size: int, limit: int, state: Array) -> bool:
    """Go on to the next set of removals that fits with the additions it needs; False after the last or past `limit`."""
    costs, left, removed = scratch.costs[REMOVALS], scratch.costs[REMOVED], scratch.index[REMOVED]
    descends = True
    while state[_WORK] <= limit:
        depth, start = state[_DEPTH], state[_START]
        if state[_NEW]:
            state[_NEW] = 0
            state[_WORK] += 1
            # Removing more asks for more additions from less budget: no deeper node can succeed either.
            need = max(0, limits[0] - (size - depth))
            descends = need <= row.n_add and fits(scratch.costs[ADDITIONS], 0, need, left[depth])
            excess = size - depth - limits[1]
            if excess > 0:
                descends = (
                    descends and start + excess <= row.n_remove and fits(costs, start, start + excess, left[depth])
                )
            elif descends:
                return True
        if descends and start < row.n_remove and costs[start] <= left[depth]:
            removed[depth] = start
            left[depth + 1] = left[depth] - costs[start]
            scratch.member[scratch.index[REMOVALS, start]] ^= 1
            state[_DEPTH] = depth + 1
            state[_START] = start + 1
            state[_NEW] = 1
        elif depth == 0:
            return False
        else:
            descends = True
            state[_DEPTH] = depth - 1
            state[_START] = removed[depth - 1] + 1
            scratch.member[scratch.index[REMOVALS, removed[depth - 1]]] ^= 1
    return False


@part
def _count_additions(row: Row, scratch: Scratch, budget: float, least: int, most: int, limit: int) -> Any:
    """Count the sets of least..most additions within budget; return (count, work), work > limit if it is given up."""
    costs, left, added = scratch.costs[ADDITIONS], scratch.costs[ADDED], scratch.index[ADDED]
    count: Any = np.int64(0)
    work: Any = np.int64(0)
    depth: Any = np.int64(0)
    start: Any = np.int64(0)
    left[0] = budget
    entering = True
    while True:
        room = left[depth]
        need = max(0, least - depth)
        work += 1 + need
        if work > limit:
            break
        if entering and need == 0:
            count += 1
            if room < row.slack:
                work += row.absent.shape[0]
                if not is_inside(row, scratch, depth, NO_FLIP, NO_FLIP):
                    count -= 1
        n_fitting = min(_n_fitting(costs, start, row.n_add, room), most - depth)
        if n_fitting > _LEAF and (
            need <= _LEAF or (start + need <= row.n_add and fits(costs, start, start + need, room))
        ):
            added[depth] = start
            left[depth + 1] = room - costs[start]
            depth += 1
            start += 1
            entering = True
            continue
        if 0 < n_fitting <= _LEAF and need <= n_fitting:
            end = _end_of_affordable(costs, start, row.n_add, room)
            # First the single additions, then the pairs by their cheaper one.
            for first in range(start - 1, end if n_fitting == _LEAF else start):
                rest = room if first < start else room - costs[first]
                while end > first + 1 and costs[end - 1] > rest:
                    end -= 1
                    work += 1
                if end <= first + 1 or work > limit:
                    break
                work += 1
                if first < start and need == _LEAF:
                    continue
                count += end - first - 1
                second = end - 1
                while second > first and rest - costs[second] < row.slack and work <= limit:
                    work += row.absent.shape[0]
                    if not is_inside(row, scratch, depth, first if first >= start else NO_FLIP, second):
                        count -= 1
                    second -= 1
        if depth == 0:
            break
        depth -= 1
        start = added[depth] + 1
        entering = False
    return count, work


@inlined
def _open_row(absent: Array, present: Array, threshold: float, scratch: Scratch) -> Any:
    """Set a row up for a walk; return it, its number of labels, and what flips may sum to: half of `slack` more."""
    drift = band(absent.shape[0])
    n_add, n_remove, size, _, budget = open_flips(absent, present, threshold, drift, IS_SUM, IN_PART, scratch)
    return Row(absent, present, threshold, 2.0 * drift * threshold, n_add, n_remove), size, budget


@inlined
def count_row(absent: Array, present: Array, threshold: float, limits: Any, limit: int, scratch: Scratch) -> Any:
    """Count the label-sets of a row with total <= threshold; return (n, work).

    `limits` is (lo, hi). If more than `limit` steps would be needed, n is OVER_LIMIT less what was counted until then.
    """
    row, size, budget = _open_row(absent, present, threshold, scratch)
    return count_opened(row, size, budget, limits, limit, scratch)


@part
def count_opened(row: Row, size: int, budget: float, limits: Any, limit: int, scratch: Scratch) -> Any:
    """Do what `count_row` does for a row that is set up: what `_open_row` returns, and its flips in `scratch`."""
    if budget < 0.0:
        return np.int64(0), np.int64(1)
    count = np.int64(0)
    scratch.costs[REMOVED, 0] = budget
    state = _start_walk()
    while _next_removals(row, scratch, limits, size, limit, state):
        kept = size - state[_DEPTH]
        left = scratch.costs[REMOVED, state[_DEPTH]]
        more, steps = _count_additions(
            row, scratch, left, max(0, limits[0] - kept), limits[1] - kept, limit - state[_WORK]
        )
        count += more
        state[_WORK] += steps
    if state[_WORK] > limit:
        return np.int64(OVER_LIMIT) - count, state[_WORK]
    return count, state[_WORK]


@kernel
def _count_flat(
    starts: Array, absent: Array, present: Array, thresholds: Array, limits: Any, limit: int, sizes: Array, work: Array
) -> None:
    """Do what `count_flat` says."""
    widest = np.int64(0)
    for i in range(starts.shape[0] - 1):
        widest = max(widest, starts[i + 1] - starts[i])
    scratch = make_scratch(widest)
    for i in range(starts.shape[0] - 1):
        row = slice(starts[i], starts[i + 1])
        sizes[i], work[i] = count_row(absent[row], present[row], thresholds[i], limits, limit, scratch)


def count_flat(
    starts: Array, absent: Array, present: Array, thresholds: Array, limits: Any, limit: int, sizes: Array, work: Array
) -> None:
    """Write the number of label-sets with total <= thresholds[i] of flat rows; as `count_rows`."""
    first = min(limit, _FIRST_STEPS)
    run = quickest(_count_flat, first * len(sizes))
    if run is not _count_flat:
        run(starts, absent, present, thresholds, limits, first, sizes, work)
        if first == limit or sizes.min() > OVER_LIMIT:
            return
        run = quickest(_count_flat, limit * len(sizes))
    run(starts, absent, present, thresholds, limits, limit, sizes, work)


def count_rows(
    absent: Array, present: Array, thresholds: Array, limits: Any, limit: int, sizes: Array, work: Array
) -> None:
    """Write the number of label-sets with total <= thresholds[i] per row.

    If that takes over `limit` steps, it is OVER_LIMIT less what was counted until then: OVER_LIMIT or below.

    absent and present (n, d), thresholds (n,), limits (lo, hi); sizes and work (n,) int64 are written.
    """
    count_flat(row_starts(absent), absent.ravel(), present.ravel(), thresholds, limits, limit, sizes, work)


@inlined
def _write(sink: Sink, n: int, extra: int, label: int) -> None:
    """Write the running label-set with additions `extra` and `label` as row n."""
    for w in range(sink.current.shape[0]):
        sink.words[n, w] = sink.current[w] ^ sink.masks[extra, w] ^ sink.masks[label, w]


@inlined
def _write_run(sink: Sink, n: int, extra: int, start: int, end: int) -> None:
    """Write the running label-set with addition `extra`, and each of start..end in turn: the innermost loop."""
    words, masks, current = sink.words, sink.masks, sink.current
    if current.shape[0] == 1:
        first = current[0] ^ masks[extra, 0]
        for j in range(start, end):
            words[n + j - start, 0] = first ^ masks[j, 0]
    elif current.shape[0] == 2:
        first, second = current[0] ^ masks[extra, 0], current[1] ^ masks[extra, 1]
        for j in range(start, end):
            words[n + j - start, 0] = first ^ masks[j, 0]
            words[n + j - start, 1] = second ^ masks[j, 1]
    else:
        for j in range(start, end):
            for w in range(current.shape[0]):
                words[n + j - start, w] = current[w] ^ masks[extra, w] ^ masks[j, w]


@part
def _list_additions(row: Row, scratch: Scratch, sink: Sink, budget: float, least: int, most: int, n: int) -> int:
    """Write the sets of least..most additions within budget from row n on; return the next free row."""
    costs, left, added = scratch.costs[ADDITIONS], scratch.costs[ADDED], scratch.index[ADDED]
    capacity, has_totals, none = sink.words.shape[0], sink.totals.shape[0] > 0, row.n_add
    depth: Any = np.int64(0)
    start: Any = np.int64(0)
    left[0] = budget
    entering = True
    while n < capacity:
        room = left[depth]
        need = max(0, least - depth)
        if entering and need == 0 and (room >= row.slack or is_inside(row, scratch, depth, NO_FLIP, NO_FLIP)):
            _write(sink, n, none, none)
            if has_totals:
                sink.totals[n] = sink.top - room
            n += 1
        n_fitting = min(_n_fitting(costs, start, row.n_add, room), most - depth)
        if n_fitting > _LEAF and (
            need <= _LEAF or (start + need <= row.n_add and fits(costs, start, start + need, room))
        ):
            added[depth] = start
            left[depth + 1] = room - costs[start]
            for w in range(sink.current.shape[0]):
                sink.current[w] ^= sink.masks[start, w]
            depth += 1
            start += 1
            entering = True
            continue
        if 0 < n_fitting <= _LEAF and need <= n_fitting:
            end = _end_of_affordable(costs, start, row.n_add, room)
            for first in range(start - 1, end if n_fitting == _LEAF else start):
                rest, extra, flip = (room, none, NO_FLIP) if first < start else (room - costs[first], first, first)
                while end > first + 1 and costs[end - 1] > rest:
                    end -= 1
                if end <= first + 1:
                    break
                if first < start and need == _LEAF:
                    continue
                sure = end
                while sure > first + 1 and rest - costs[sure - 1] < row.slack:
                    sure -= 1
                stop = min(sure, first + 1 + capacity - n)
                _write_run(sink, n, extra, first + 1, stop)
                if has_totals:
                    for j in range(first + 1, stop):
                        sink.totals[n + j - first - 1] = sink.top - (rest - costs[j])
                n += stop - first - 1
                for j in range(sure, end):
                    if n < capacity and is_inside(row, scratch, depth, flip, j):
                        _write(sink, n, extra, j)
                        if has_totals:
                            sink.totals[n] = sink.top - (rest - costs[j])
                        n += 1
                if n >= capacity:
                    return n
        if depth == 0:
            break
        depth -= 1
        start = added[depth]
        for w in range(sink.current.shape[0]):
            sink.current[w] ^= sink.masks[start, w]
        start += 1
        entering = False
    return n


@inlined
def _make_sink(words: Array, totals: Array, row: Row, scratch: Scratch) -> Sink:
    """Make the sink of an opened row."""
    n_words = words.shape[1]
    masks = np.zeros((row.n_add + 1, n_words), dtype=np.uint64)
    for j in range(row.n_add):
        label = scratch.index[ADDITIONS, j]
        masks[j, label >> 6] = bit(label)
    return Sink(words, totals, np.empty(n_words, dtype=np.uint64), masks, row.threshold + 0.5 * row.slack)


@kernel
def list_row(absent: Array, present: Array, threshold: float, limits: Any, words: Array, totals: Array) -> Any:
    """Write the packed label-sets of a row (d,) with total <= threshold until words (m, W) are full; return how many.

    totals, (m,) or (0,), gets the totals up to rounding.
    """
    scratch = make_scratch(absent.shape[0])
    row, size, budget = _open_row(absent, present, threshold, scratch)
    sink = _make_sink(words, totals, row, scratch)
    scratch.costs[REMOVED, 0] = budget
    state = _start_walk()
    n = np.int64(0)
    while budget >= 0.0 and n < words.shape[0] and _next_removals(row, scratch, limits, size, _NO_LIMIT, state):
        pack_member(scratch.member, sink.current)
        kept = size - state[_DEPTH]
        left = scratch.costs[REMOVED, state[_DEPTH]]
        n = _list_additions(row, scratch, sink, left, max(0, limits[0] - kept), limits[1] - kept, n)
    return n
