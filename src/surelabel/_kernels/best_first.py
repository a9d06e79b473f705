"""Label-sets of a row in order of ascending total, one after the other, by a heap.

Sets of a additions and r removals form a class. Within a class, subsets of fixed size are walked by sliding: the
elements below `i` stand at their first places, element i stands at `cur` and may move up to `lim`, those above are
fixed (a linked list). A child moves element i one place on, or fixes it and starts moving element i - 1. Both cost no
less, and every subset has exactly one parent. A class is opened when the class with one addition fewer is taken.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from surelabel._core.packing import unpack
from surelabel._kernels.compiling import both, part, quick
from surelabel._kernels.exact_sum import totals_beside
from surelabel._kernels.flips import ADDITIONS, IN_ORDER, REMOVALS, make_scratch, open_flips
from surelabel._kernels.packed import bit, pack_member

Array = Any

# Columns of a node, for additions and for removals: how many there are, the one that moves, its place and its last
# place, the link to those that are fixed, and the place of the dearest flip.
_SIZE, _I, _CUR, _LIM, _LINK, _TOP = 0, 1, 2, 3, 4, 5
_N_COLUMNS = 6
# Places in a frontier's state: nodes in the heap, nodes and links that were made.
_WAITING, _NODES, _LINKS = 0, 1, 2
# Running totals drift from the exact ones by less than this, for millions of steps.
DRIFT = 1e-9
# Nodes that taking one can add: two moves on each side, and the next class.
_MAX_CHILDREN = 5


class Frontier(NamedTuple):
    """A heap of nodes: keys (cap,), slots (cap,), nodes (cap, 2, 6), links (cap, 2), state (3,)."""

    keys: Array
    slots: Array
    nodes: Array
    links: Array
    state: Array

    @property
    def has_next(self) -> bool:
        """Whether a label-set is left."""
        return bool(self.state[_WAITING] > 0)

    @property
    def next_total(self) -> float:
        """Running total of the next label-set."""
        return float(self.keys[0])

    def with_room(self, number: int, n_labels: int) -> Frontier:
        """Return the same frontier, or a larger copy, with room to take so many label-sets."""
        needed = int(self.state.max()) + _MAX_CHILDREN * number + n_labels + 2
        if needed <= len(self.keys):
            return self
        larger = _allocate(max(needed, 2 * len(self.keys)))
        for before, after in zip(self, larger, strict=True):
            after[: len(before)] = before
        return larger


@both
def _allocate(room: int) -> Frontier:
    """Make a frontier with room for so many nodes."""
    return Frontier(
        np.empty(room),
        np.empty(room, dtype=np.int64),
        np.empty((room, 2, _N_COLUMNS), dtype=np.int64),
        np.empty((room, 2), dtype=np.int64),
        np.zeros(3, dtype=np.int64),
    )


@both
def make_frontier(number: int, n_labels: int) -> Frontier:
    """Make a frontier that has not begun, with room to take so many label-sets of a row."""
    return _allocate(_MAX_CHILDREN * number + n_labels + 2)


class Flips(NamedTuple):
    """Flip costs of additions and removals, (2, n) each ascending, and the total without flips.

    With `maximum` a label-set's total is the largest of base and its flip costs instead of the sum.
    """

    costs: Array
    base: float
    maximum: bool


@part
def _push(frontier: Frontier, flips: Flips, key: float) -> None:
    """Add the node that was made last to the heap; `key` is its running total if totals are sums."""
    keys, slots, nodes, state = frontier.keys, frontier.slots, frontier.nodes, frontier.state
    slot = state[_NODES]
    state[_NODES] += 1
    if flips.maximum:
        key = flips.base
        for side in range(2):
            if nodes[slot, side, _SIZE] > 0:
                key = max(key, flips.costs[side, nodes[slot, side, _TOP]])
    i = state[_WAITING]
    state[_WAITING] += 1
    while i > 0:
        parent = (i - 1) >> 1
        if keys[parent] <= key:
            break
        keys[i] = keys[parent]
        slots[i] = slots[parent]
        i = parent
    keys[i] = key
    slots[i] = slot


@part
def _pop(frontier: Frontier) -> Any:
    """Take the node with the smallest key off the heap; return its slot and key."""
    keys, slots, state = frontier.keys, frontier.slots, frontier.state
    slot, key = slots[0], keys[0]
    state[_WAITING] -= 1
    n = state[_WAITING]
    last_key, last_slot = keys[n], slots[n]
    i = np.int64(0)
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        if child + 1 < n and keys[child + 1] < keys[child]:
            child += 1
        if keys[child] >= last_key:
            break
        keys[i] = keys[child]
        slots[i] = slots[child]
        i = child
    keys[i] = last_key
    slots[i] = last_slot
    return slot, key


@part
def _open_class(frontier: Frontier, flips: Flips, sizes: Any, numbers: Any) -> None:
    """Push the cheapest label-set with sizes (additions, removals) of the flips that there are."""
    key = flips.base
    node = frontier.nodes[frontier.state[_NODES]]
    for side in range(2):
        size, n_flips = (sizes[1], numbers[1]) if side else (sizes[0], numbers[0])
        node[side, _SIZE] = size
        node[side, _I] = size - 1
        node[side, _CUR] = size - 1
        node[side, _LIM] = n_flips - 1
        node[side, _LINK] = -1
        node[side, _TOP] = size - 1
        for j in range(size):
            key += flips.costs[side, j]
    _push(frontier, flips, key)


@part
def _expand(frontier: Frontier, flips: Flips, slot: int, key: float, side: int) -> None:
    """Push the children of a node that move one side's flips: element i, or the one before it with i fixed."""
    nodes, links, state, costs = frontier.nodes, frontier.links, frontier.state, flips.costs
    size, i, cur = nodes[slot, side, _SIZE], nodes[slot, side, _I], nodes[slot, side, _CUR]
    for fixes in range(2):
        if not (1 <= i < cur if fixes else size > 0 and cur < nodes[slot, side, _LIM]):
            continue
        child = state[_NODES]
        for own in range(2):
            for column in range(_N_COLUMNS):
                nodes[child, own, column] = nodes[slot, own, column]
        before = cur
        if fixes:
            before = i - 1
            link = state[_LINKS]
            state[_LINKS] += 1
            links[link, 0] = cur
            links[link, 1] = nodes[slot, side, _LINK]
            nodes[child, side, _LINK] = link
            nodes[child, side, _I] = i - 1
            nodes[child, side, _LIM] = cur - 1
        elif i == size - 1:
            nodes[child, side, _TOP] = cur + 1
        nodes[child, side, _CUR] = before + 1
        _push(frontier, flips, key + (costs[side, before + 1] - costs[side, before]))


@part
def _take_one(frontier: Frontier, flips: Flips, index: Array, sizes: Any, numbers: Any, words: Array) -> float:
    """Take the next label-set off the frontier into words (W,), which has the cheapest one; return its total."""
    nodes, links = frontier.nodes, frontier.links
    slot, key = _pop(frontier)
    at_root = True
    for side in range(2):
        # Removals move as long as the additions stand at their first places, so that every subset has one parent.
        if at_root:
            _expand(frontier, flips, slot, key, side)
        size, cur, link = nodes[slot, side, _SIZE], nodes[slot, side, _CUR], nodes[slot, side, _LINK]
        at_root = at_root and link == -1 and cur == size - 1
        # The flips at their first places, the one that moves, and those that are fixed.
        for j in range(size):
            place = j
            if j == nodes[slot, side, _I]:
                place = cur
            elif j > nodes[slot, side, _I]:
                place = links[link, 0]
                link = links[link, 1]
            label = index[side, place]
            words[label >> 6] ^= bit(label)
    n_added, n_removed = nodes[slot, ADDITIONS, _SIZE] + 1, nodes[slot, REMOVALS, _SIZE]
    if at_root and sizes[0] + n_added - n_removed <= sizes[1] and n_added <= numbers[0]:
        _open_class(frontier, flips, (n_added, n_removed), numbers)
    return key


@part
def take_row(
    costs: Any,
    threshold: float,
    limits: Any,
    number: int,
    maximum: bool,
    frontier: Frontier,
    scratch: Any,
    words: Array,
    totals: Array,
) -> Any:
    """Take label-sets of one row, (d,) absent and present, as `take_rows` says; return how many, -1 if too many tie."""
    absent, present = costs
    state, capacity = frontier.state, words.shape[0]
    opened = open_flips(absent, present, threshold, DRIFT, maximum, IN_ORDER, scratch)
    n_add, n_remove, size, base = opened[0], opened[1], opened[2], opened[3]
    flips, start = Flips(scratch.costs, base, maximum), np.empty(words.shape[1], dtype=np.uint64)
    pack_member(scratch.member, start)
    if state[_NODES] == 0:
        for n_removed in range(max(0, size - limits[1]), n_remove + 1):
            n_added = max(0, limits[0] - size + n_removed)
            if n_added <= n_add:
                _open_class(frontier, flips, (n_added, n_removed), (n_add, n_remove))
    most, largest, taken = threshold * (1.0 + DRIFT), 0.0, np.int64(0)
    while state[_WAITING] > 0 and frontier.keys[0] <= most:
        if taken == capacity and capacity <= number:
            break
        if taken >= number and frontier.keys[0] * (1.0 - DRIFT) > largest * (1.0 + DRIFT):
            break
        if taken == capacity:
            return np.int64(-1)
        own = words[taken]
        for w in range(start.shape[0]):
            own[w] = start[w]
        key = _take_one(frontier, flips, scratch.index, (size, limits[1]), (n_add, n_remove), own)
        if taken < number:
            largest = max(largest, key)
        taken += 1
    if not maximum:
        totals_beside(absent, present, scratch.member, words[:taken], scratch.partials, totals)
    return taken


@quick(lambda costs, thresholds, limits, number, *_: costs[0].size * (number + 4) // 20)
def _take_rows(
    costs: Any,
    thresholds: Array,
    limits: Any,
    number: int,
    maximum: bool,
    frontier: Frontier,
    words: Array,
    totals: Array,
    ends: Array,
) -> Any:
    """Do what `take_rows` says: costs are absent and present; `frontier` has room, and is resumed if it has begun."""
    absent, present = costs
    capacity = words.shape[0] // max(1, absent.shape[0])
    scratch = make_scratch(absent.shape[1])
    begin, n_full = np.int64(0), np.int64(0)
    for i in range(absent.shape[0]):
        row, room = (absent[i], present[i]), slice(begin, begin + capacity)
        taken = take_row(row, thresholds[i], limits, number, maximum, frontier, scratch, words[room], totals[room])
        if taken < 0:
            taken = np.int64(0)
            n_full += 1
        begin += taken
        ends[i] = begin
        if i + 1 < absent.shape[0]:
            for j in range(frontier.state.shape[0]):
                frontier.state[j] = 0
    return n_full


def take_rows(
    absent: Array, present: Array, thresholds: Array, limits: Any, number: int, words: Array, totals: Array, ends: Array
) -> int:
    """Take the first label-sets of rows (n, d) whose totals are sums, and those that cannot be told from them.

    Those of row i are written to words (n m, W) from ends[i - 1] to ends[i], and their exact totals to totals (n m,):
    all that may be within the threshold if these are fewer than `number`. If m label-sets are not enough, a row gets
    none; returns how many such rows there are.
    """
    frontier = make_frontier(len(words) // max(1, len(absent)), absent.shape[1])
    costs: Any = (absent, present)
    return int(_take_rows(costs, thresholds, limits, number, False, frontier, words, totals, ends))


def take(
    absent: Array, present: Array, threshold: float, limits: Any, maximum: bool, frontier: Frontier, number: int
) -> tuple[Array, Array]:
    """Take the next label-sets of one row (d,) off a frontier with room for so many; return them packed, and totals."""
    words, totals = np.empty((number, (len(absent) + 63) // 64), dtype=np.uint64), np.empty(number)
    ends, costs = np.empty(1, dtype=np.int64), (absent[None, :], present[None, :])
    _take_rows(costs, np.array([threshold]), limits, number, maximum, frontier, words, totals, ends)
    taken = words[: ends[0]]
    if maximum:  # which takes longer to compile than to work out here
        chosen: Array = np.where(unpack(taken, len(absent)), present, absent)
        return taken, chosen.max(axis=1)
    return taken, totals[: ends[0]]
