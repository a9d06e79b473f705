"""Label-sets of a row in order of ascending total, one after the other, by a heap.

Sets of a additions and r removals form a class. Within a class, subsets of fixed size are walked by sliding: the
elements below `i` stand at their first places, element i stands at `cur` and may move up to `lim`, those above are
fixed (a linked list). A child moves element i one place on, or fixes it and starts moving element i - 1. Both cost no
less, and every subset has exactly one parent. A class is opened when the class with one addition fewer is taken.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from surelabel._kernels.compiling import inlined, kernel, part
from surelabel._kernels.exact_sum import total_of_members
from surelabel._kernels.flips import ADDITIONS, IS_SUM, REMOVALS, make_scratch, sort_flips
from surelabel._kernels.packed import has, pack_member

Array = Any

# Columns of a node: class (a, r), then i, cur, lim, link and the place of the dearest flip, for additions and removals.
_A, _R = 0, 1
_ADDITIONS, _REMOVALS = np.int64(2), np.int64(7)
_NO_PARENT = np.int64(-1)
_I, _CUR, _LIM, _LINK, _TOP = 0, 1, 2, 3, 4
N_COLUMNS = 12
# Running totals drift from the exact ones by less than this, for millions of steps.
DRIFT = 1e-9
# Nodes that taking one can add: two moves on each side, and the next class.
MAX_CHILDREN = 5


class Frontier(NamedTuple):
    """A heap of nodes: keys (cap,), slots (cap,), nodes (cap, 12), links (cap, 2).

    state (4,): heap size, slots used, links used, label-sets taken.
    """

    keys: Array
    slots: Array
    nodes: Array
    links: Array
    state: Array


class SortedFlips(NamedTuple):
    """Flip costs of the additions and of the removals, each ascending, and the total without flips.

    With `maximum` a label-set's total is the largest of base and its flip costs instead of the sum.
    """

    additions: Array
    removals: Array
    base: float
    maximum: bool


@part
def _push(frontier: Frontier, key: float, slot: int) -> None:
    """Add a node's slot to the heap."""
    keys, slots, state = frontier.keys, frontier.slots, frontier.state
    i = state[0]
    state[0] += 1
    while i > 0:
        parent = (i - 1) >> 1
        if keys[parent] <= key:
            break
        keys[i] = keys[parent]
        slots[i] = slots[parent]
        i = parent
    keys[i] = key
    slots[i] = slot


@inlined
def _pop(frontier: Frontier) -> tuple[float, int]:
    """Take the node with the smallest key off the heap."""
    keys, slots, state = frontier.keys, frontier.slots, frontier.state
    key, slot = keys[0], slots[0]
    state[0] -= 1
    n = state[0]
    last_key, last_slot = keys[n], slots[n]
    i = 0
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
    return key, slot


@part
def _key_of_root(flips: SortedFlips, a: int, r: int) -> float:
    """Total of the cheapest label-set of a class."""
    total = flips.base
    if flips.maximum:
        if a > 0:
            total = max(total, flips.additions[a - 1])
        if r > 0:
            total = max(total, flips.removals[r - 1])
        return total
    for j in range(a):
        total += flips.additions[j]
    for j in range(r):
        total += flips.removals[j]
    return total


@part
def _new_node(frontier: Frontier, parent: int) -> int:
    """Take a fresh slot, a copy of `parent` where >= 0."""
    slot = frontier.state[1]
    frontier.state[1] += 1
    if parent >= 0:
        for column in range(N_COLUMNS):
            frontier.nodes[slot, column] = frontier.nodes[parent, column]
    return slot


@part
def _open_class(frontier: Frontier, flips: SortedFlips, a: int, r: int) -> None:
    """Push the cheapest label-set with a additions and r removals."""
    slot = _new_node(frontier, _NO_PARENT)
    node = frontier.nodes[slot]
    node[_A] = a
    node[_R] = r
    for side, size, n_flips in (
        (_ADDITIONS, a, flips.additions.shape[0]),
        (_REMOVALS, r, flips.removals.shape[0]),
    ):
        node[side + _I] = size - 1
        node[side + _CUR] = size - 1
        node[side + _LIM] = n_flips - 1
        node[side + _LINK] = -1
        node[side + _TOP] = size - 1
    _push(frontier, _key_of_root(flips, a, r), slot)


@part
def _key_after(flips: SortedFlips, frontier: Frontier, slot: int, key: float, move: Any) -> float:
    """Total after a move (side, from, to): the sum changes by the difference, the maximum by the dearest flip."""
    node = frontier.nodes[slot]
    side, before, after = move
    if flips.maximum:
        total = flips.base
        if node[_A] > 0:
            total = max(total, flips.additions[node[_ADDITIONS + _TOP]])
        if node[_R] > 0:
            total = max(total, flips.removals[node[_REMOVALS + _TOP]])
        return total
    costs = flips.additions if side == _ADDITIONS else flips.removals
    return key + (costs[after] - costs[before])


@part
def _expand_side(frontier: Frontier, flips: SortedFlips, slot: int, key: float, side: int) -> None:
    """Push the children of a node that move one side's flips."""
    nodes, links, state = frontier.nodes, frontier.links, frontier.state
    size = nodes[slot, _A if side == _ADDITIONS else _R]
    if size == 0:
        return
    i = nodes[slot, side + _I]
    cur = nodes[slot, side + _CUR]
    if cur + 1 <= nodes[slot, side + _LIM]:
        child = _new_node(frontier, slot)
        nodes[child, side + _CUR] = cur + 1
        if i == size - 1:
            nodes[child, side + _TOP] = cur + 1
        _push(frontier, _key_after(flips, frontier, child, key, (side, cur, cur + 1)), child)
    if i >= 1 and i <= cur - 1:
        child = _new_node(frontier, slot)
        links[state[2], 0] = cur
        links[state[2], 1] = nodes[slot, side + _LINK]
        nodes[child, side + _LINK] = state[2]
        state[2] += 1
        nodes[child, side + _I] = i - 1
        nodes[child, side + _CUR] = i
        nodes[child, side + _LIM] = cur - 1
        _push(frontier, _key_after(flips, frontier, child, key, (side, i - 1, i)), child)


@inlined
def _write_flips(frontier: Frontier, slot: int, side: int, index: Array, row: Array) -> None:
    """Flip one side's labels of a node in a packed row."""
    nodes = frontier.nodes
    size = nodes[slot, _A if side == _ADDITIONS else _R]
    if size == 0:
        return
    for j in range(nodes[slot, side + _I]):
        row[index[j] >> 6] ^= np.uint64(1) << np.uint64(63 - (index[j] & 63))
    label = index[nodes[slot, side + _CUR]]
    row[label >> 6] ^= np.uint64(1) << np.uint64(63 - (label & 63))
    link = nodes[slot, side + _LINK]
    while link >= 0:
        label = index[frontier.links[link, 0]]
        row[label >> 6] ^= np.uint64(1) << np.uint64(63 - (label & 63))
        link = frontier.links[link, 1]


@inlined
def _open_classes(frontier: Frontier, flips: SortedFlips, size: int, limits: Any) -> None:
    """Do what `open_classes` says."""
    for n_removed in range(max(0, size - limits[1]), flips.removals.shape[0] + 1):
        n_added = max(0, limits[0] - size + n_removed)
        if n_added <= flips.additions.shape[0]:
            _open_class(frontier, flips, n_added, n_removed)


@part
def _take(
    frontier: Frontier, flips: SortedFlips, index: Any, sizes: Any, wanted: Any, start: Array, words: Array, keys: Array
) -> int:
    """Take the next label-sets off the frontier until `words` is full or no other is wanted; return how many.

    index (additions, removals) maps sorted places to labels; sizes (labels of the cheapest assignment, hi); wanted
    (number, largest running total): the first label-sets, within the total, and those that cannot be told from them by
    running totals; start (W,) is the cheapest assignment, packed. words (m, W) and keys (m,), running totals, are
    written. The frontier must have room for MAX_CHILDREN * m more nodes and links.
    """
    taken = 0
    largest = 0.0
    while taken < words.shape[0] and frontier.state[0] > 0:
        is_over = taken >= wanted[0] and frontier.keys[0] * (1.0 - DRIFT) > largest * (1.0 + DRIFT)
        if is_over or frontier.keys[0] > wanted[1]:
            break
        key, slot = _pop(frontier)
        if taken < wanted[0]:
            largest = max(largest, key)
        for w in range(start.shape[0]):
            words[taken, w] = start[w]
        keys[taken] = key
        at_root = True
        for side in (_ADDITIONS, _REMOVALS):
            _write_flips(frontier, slot, side, index[0] if side == _ADDITIONS else index[1], words[taken])
            # Removals move as long as the additions stand at their first places, so that every subset has one parent.
            if at_root:
                _expand_side(frontier, flips, slot, key, side)
            size = frontier.nodes[slot, _A if side == _ADDITIONS else _R]
            is_moved = frontier.nodes[slot, side + _LINK] != -1 or frontier.nodes[slot, side + _CUR] != size - 1
            at_root = at_root and not is_moved
        taken += 1
        a = frontier.nodes[slot, _A]
        r = frontier.nodes[slot, _R]
        fits = sizes[0] + a + 1 - r <= sizes[1] and a + 1 <= flips.additions.shape[0]
        if fits and at_root:
            _open_class(frontier, flips, a + 1, r)
    return taken


@kernel
def open_classes(frontier: Frontier, flips: SortedFlips, size: int, limits: Any) -> None:
    """Push, for each number of removals, the cheapest label-set with the fewest additions that the limits allow.

    `size` is the number of labels of the cheapest assignment.
    """
    _open_classes(frontier, flips, size, limits)


@kernel
def take(
    frontier: Frontier, flips: SortedFlips, index: Any, sizes: Any, wanted: Any, start: Array, words: Array, keys: Array
) -> int:
    """Do what `_take` says."""
    return _take(frontier, flips, index, sizes, wanted, start, words, keys)


@kernel
def take_rows(
    absent: Array, present: Array, thresholds: Array, limits: Any, number: int, words: Array, totals: Array, ends: Array
) -> Any:
    """Take the first label-sets of rows (n, d) whose totals are sums, and those that cannot be told from them.

    Those of row i are written to words (n m, W) from ends[i - 1] to ends[i], and their exact totals to totals (n m,):
    all that may be within the threshold if these are fewer than `number`. If m label-sets are not enough, a row gets
    none; returns how many such rows there are.
    """
    n_labels, capacity = absent.shape[1], words.shape[0] // max(1, absent.shape[0])
    scratch = make_scratch(n_labels)
    room = MAX_CHILDREN * capacity + n_labels + 2
    frontier = Frontier(
        np.empty(room),
        np.empty(room, dtype=np.int64),
        np.empty((room, N_COLUMNS), dtype=np.int64),
        np.empty((room, 2), dtype=np.int64),
        np.empty(4, dtype=np.int64),
    )
    start, keys = np.empty(words.shape[1], dtype=np.uint64), np.empty(capacity)
    begin, n_full = np.int64(0), np.int64(0)
    for i in range(absent.shape[0]):
        n_add, n_remove, size, base = sort_flips(absent[i], present[i], thresholds[i], DRIFT, IS_SUM, scratch)
        additions, removals = scratch.costs[ADDITIONS, :n_add], scratch.costs[REMOVALS, :n_remove]
        flips = SortedFlips(additions, removals, base, IS_SUM)
        pack_member(scratch.member, start)
        for j in range(4):
            frontier.state[j] = 0
        _open_classes(frontier, flips, size, limits)
        index = (scratch.index[ADDITIONS], scratch.index[REMOVALS])
        wanted = (number, thresholds[i] * (1.0 + DRIFT))
        own = words[begin : begin + capacity]
        taken = _take(frontier, flips, index, (size, limits[1]), wanted, start, own, keys)
        if taken == capacity and frontier.state[0] > 0 and frontier.keys[0] <= wanted[1]:
            taken = 0
            n_full += 1
        for j in range(taken):
            for k in range(n_labels):
                scratch.member[k] = has(own[j], k)
            totals[begin + j] = total_of_members(absent[i], present[i], scratch.member, scratch.partials)
        begin += taken
        ends[i] = begin
    return n_full
