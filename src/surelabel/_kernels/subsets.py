"""The searches over label-sets of a row: cheapest with and without each label, count, and first in order.

A label-set is within the budget of its row if its changes add up to at most the budget. Let slack be the budget less
all negative changes. A label with |change| > slack is the same in every label-set within the budget. The others are
*open*: in a sorted row they stand side by side, and only they are searched.

Arrays are int64, label-sets have least..most labels everywhere.
"""

from __future__ import annotations

from typing import Any

from surelabel._kernels import IMPOSSIBLE
from surelabel._kernels.compile import kernel, part

Array = Any

# Rows of `memory`, (8, k + 1): running sums of the costs of additions and of removals, ascending; for both, the ones
# that are chosen and the room before each; the steps that are left; running sums of changes.
_ADDITIONS, _REMOVALS, _ADDED, _ADDED_ROOM, _REMOVED, _REMOVED_ROOM, _STEPS, _SUMS = range(8)
N_MEMORY = 8
# Bits for labels in one word of a node.
WORD = 32


@kernel
def survey_rows(
    changes: Array, order: Array, least: int, most: int, memory: Array, cheapest: Array, best: Array
) -> None:
    """Find the cheapest candidates of each row: overall, without each label, and with it.

    The cheapest label-set of c labels has the first c places, so its sum P(c) is a running sum. The cheapest without
    place r has the first c <= r, or the first c + 1 > r without r; with place r likewise.

    changes and order (n, k): the label at each place; cheapest (n, 3, k): the least sum of changes without and with
    each label, and 1 for the labels of the best candidate; best (n, 2): the two least sums. IMPOSSIBLE where no
    candidate is.
    """
    sums = memory[_SUMS]
    for row in range(changes.shape[0]):
        n = 0
        sums[0] = 0
        while n < changes.shape[1] and changes[row, n] < IMPOSSIBLE:
            sums[n + 1] = sums[n] + changes[row, n]
            n += 1
        size, first, second = -1, IMPOSSIBLE, IMPOSSIBLE
        for c in range(least, min(most, n) + 1):
            if sums[c] < first:
                size, first = c, sums[c]
        fewer, joined = IMPOSSIBLE, IMPOSSIBLE
        for r in range(changes.shape[1]):
            label = order[row, r]
            if r <= n and least <= r <= most:
                fewer = min(fewer, sums[r])
            if r <= n and least <= r + 1 <= most:
                joined = min(joined, sums[r])
            cheapest[row, 0, label] = fewer
            cheapest[row, 1, label] = joined + changes[row, r] if r < n and joined < IMPOSSIBLE else IMPOSSIBLE
            cheapest[row, 2, label] = r < size
        more, left = IMPOSSIBLE, IMPOSSIBLE
        for r in range(n - 1, -1, -1):
            label = order[row, r]
            if least <= r + 1 <= most:
                more = min(more, sums[r + 1])
            if least <= r <= most:
                left = min(left, sums[r + 1])
            cheapest[row, 1, label] = min(cheapest[row, 1, label], more)
            if left < IMPOSSIBLE:
                cheapest[row, 0, label] = min(cheapest[row, 0, label], left - changes[row, r])
            # The second best differs from the best in some label.
            second = min(second, max(cheapest[row, 0, label], cheapest[row, 1, label]))
        best[row, 0], best[row, 1] = first, second


@part
def _find_open(changes: Array, row: int, budget: int) -> Any:
    """Return the first open place, one past the last, and the budget that is left for them; start -1 if none fits."""
    slack, k = budget, changes.shape[1]
    for j in range(k):
        if changes[row, j] >= 0:
            break
        slack -= changes[row, j]
    if slack < 0:
        return -1, 0, budget
    start = 0
    while start < k and changes[row, start] < -slack:
        budget -= changes[row, start]
        start += 1
    stop = start
    while stop < k and changes[row, stop] <= slack:
        stop += 1
    return start, stop, budget


@part
def _count_additions(costs: Any, memory: Array, room: int, least: int, most: int) -> int:
    """Count the sets of least..most additions that cost at most `room`; costs: (changes, row, first, number)."""
    changes, row, first, n = costs
    count, depth, i, is_new = 0, 0, 0, True
    while True:
        memory[_STEPS, 0] -= 1
        if memory[_STEPS, 0] < 0:
            return 0
        need, more = least - depth, most - depth
        if is_new and need <= 0:
            count += 1
        if need <= 0 or (i + need <= n and memory[_ADDITIONS, i + need] - memory[_ADDITIONS, i] <= room):
            # As long as three more fit, choose the cheapest of them and go on.
            if more > 2 and i + 3 <= n and memory[_ADDITIONS, i + 3] - memory[_ADDITIONS, i] <= room:
                memory[_ADDED, depth], memory[_ADDED_ROOM, depth] = i, room
                room -= changes[row, first + i]
                depth, i, is_new = depth + 1, i + 1, True
                continue
            # No three fit: count single additions, and pairs by two pointers.
            end = i
            while end < n and changes[row, first + end] <= room:
                end += 1
            if need <= 1 <= more:
                count += end - i
            while need <= 2 <= more:
                while end > i + 1 and changes[row, first + i] + changes[row, first + end - 1] > room:
                    end -= 1
                if end <= i + 1:
                    break
                count += end - i - 1
                i += 1
                memory[_STEPS, 0] -= 1
        if depth == 0:
            return count
        depth -= 1
        i, room, is_new = memory[_ADDED, depth] + 1, memory[_ADDED_ROOM, depth], False


@part
def _count_flips(costs: Any, memory: Array, n_removals: int, room: int, least: int, most: int) -> int:
    """Count the sets of removals and additions that cost at most `room` and add least..most labels in all."""
    changes, row, first, n_additions = costs
    count, depth, i, is_new = 0, 0, 0, True
    while True:
        memory[_STEPS, 0] -= 1
        if memory[_STEPS, 0] < 0:
            return 0
        need, more = least + depth, most + depth
        # More removals need more additions, so if too few fit, nothing below does.
        fits = need <= 0 or (need <= n_additions and memory[_ADDITIONS, need] <= room)
        if fits and more < 0:
            fits = i - more <= n_removals and memory[_REMOVALS, i - more] - memory[_REMOVALS, i] <= room
        if fits and is_new and more >= 0:
            count += _count_additions(costs, memory, room, need, more)
        if fits and i < n_removals and -changes[row, first - 1 - i] <= room:
            memory[_REMOVED, depth], memory[_REMOVED_ROOM, depth] = i, room
            room += changes[row, first - 1 - i]
            depth, i, is_new = depth + 1, i + 1, True
            continue
        if depth == 0:
            return count
        depth -= 1
        i, room, is_new = memory[_REMOVED, depth] + 1, memory[_REMOVED_ROOM, depth], False


@kernel
def count_rows(changes: Array, least: int, most: int, n_steps: int, memory: Array, rows: Array) -> None:
    """Count the label-sets within the budget of each row; -1 if that takes over n_steps steps.

    changes (n, k); rows (n, 2): the budget, and the count, which is written.
    """
    for row in range(changes.shape[0]):
        start, stop, room = _find_open(changes, row, rows[row, 0])
        rows[row, 1] = 0
        if start < 0:
            continue
        # Costs are those of flips, away from the label-set of all negative changes.
        first = start
        while first < stop and changes[row, first] < 0:
            room -= changes[row, first]
            first += 1
        memory[_ADDITIONS, 0] = memory[_REMOVALS, 0] = 0
        for j in range(stop - first):
            memory[_ADDITIONS, j + 1] = memory[_ADDITIONS, j] + changes[row, first + j]
        for j in range(first - start):
            memory[_REMOVALS, j + 1] = memory[_REMOVALS, j] - changes[row, first - 1 - j]
        memory[_STEPS, 0] = n_steps
        costs = (changes, row, first, stop - first)
        count = _count_flips(costs, memory, first - start, room, least - first, most - first)
        rows[row, 1] = count if memory[_STEPS, 0] >= 0 else -1


# A node of the third search is a label-set: the places before the open ones, and some open ones. Of these, those up to
# element i are the first i, then the element itself at `place`, which may move on up to `last`; those above are fixed.
# Its children move element i one place on, or fix it and move element i - 1. Both cost no less, and each label-set has
# one parent. Nodes, (capacity, w + 5), have their sum, then their labels as w words with label 0 in the highest bit, so
# that comparing these columns orders label-sets by (sum, 0/1 row); then i, place and last. The last column is the heap.


@part
def _is_before(nodes: Array, a: int, b: int) -> bool:
    """Compare two nodes by sum, then by their labels as 0/1 rows."""
    for column in range(nodes.shape[1] - 4):
        if nodes[a, column] != nodes[b, column]:
            return nodes[a, column] < nodes[b, column]
    return False


@part
def _push(nodes: Array, size: int, node: int) -> None:
    """Add a node to a heap of this size."""
    i = size
    while i > 0 and _is_before(nodes, node, nodes[(i - 1) >> 1, -1]):
        nodes[i, -1] = nodes[(i - 1) >> 1, -1]
        i = (i - 1) >> 1
    nodes[i, -1] = node


@part
def _pop(nodes: Array, size: int) -> int:
    """Take the first node off a heap of this size."""
    first, moved = nodes[0, -1], nodes[size - 1, -1]
    i = 0
    while True:
        child = 2 * i + 1
        if child + 1 < size - 1 and _is_before(nodes, nodes[child + 1, -1], nodes[child, -1]):
            child += 1
        if child >= size - 1 or not _is_before(nodes, nodes[child, -1], moved):
            break
        nodes[i, -1] = nodes[child, -1]
        i = child
    nodes[i, -1] = moved
    return first


@part
def _flip(nodes: Array, node: int, label: int) -> None:
    """Add a label to a node's words, or take it away."""
    nodes[node, 1 + (label >> 5)] ^= 1 << (31 - (label & 31))


@part
def _copy(nodes: Array, source: int, target: int) -> None:
    """Copy a node, without its place in the heap."""
    for column in range(nodes.shape[1] - 1):
        nodes[target, column] = nodes[source, column]


@part
def _push_children(text: Any, nodes: Array, size: int, n_nodes: int, parent: int, budget: int) -> int:
    """Push the children of a node that are within the budget; return how many. text: (changes, order, row, start)."""
    changes, order, row, start = text
    w, pushed = nodes.shape[1] - 5, 0
    for is_fixing in range(2):
        i, place, last = nodes[parent, w + 1], nodes[parent, w + 2], nodes[parent, w + 3]
        if is_fixing:
            if i < 1 or place == start + i:
                break
            i, place, last = i - 1, start + i - 1, place - 1
        if i < 0 or place >= last:
            continue
        total = nodes[parent, 0] + changes[row, place + 1] - changes[row, place]
        if total > budget:
            continue
        child = n_nodes + pushed
        _copy(nodes, parent, child)
        _flip(nodes, child, order[row, place])
        _flip(nodes, child, order[row, place + 1])
        nodes[child, 0], nodes[child, w + 1], nodes[child, w + 2], nodes[child, w + 3] = total, i, place + 1, last
        _push(nodes, size + pushed, child)
        pushed += 1
    return pushed


@kernel
def first_rows(changes: Array, order: Array, least: int, most: int, nodes: Array, rows: Array, found: Array) -> None:
    """List the cheapest label-sets within the budget of each row, by (sum, 0/1 row).

    changes and order (n, k): the label at each place; rows (n, 4): the budget and how many are wanted, then how many
    are found and whether these are all, which are written; found (n, K, w + 1): the sum of the changes of a label-set,
    and its words; nodes (2 K + k + 3, w + 5) is scratch.
    """
    w = nodes.shape[1] - 5
    for row in range(changes.shape[0]):
        start, stop, _ = _find_open(changes, row, rows[row, 0])
        # Node 0 has the places before the open ones; then the cheapest label-set of each number of labels is pushed.
        size = 0
        for column in range(w + 1):
            nodes[0, column] = 0
        for place in range(stop + 1 if start >= 0 else 0):
            if start <= place and least <= place <= most and nodes[0, 0] <= rows[row, 0]:
                size += 1
                _copy(nodes, 0, size)
                nodes[size, w + 1], nodes[size, w + 2], nodes[size, w + 3] = place - start - 1, place - 1, stop - 1
                _push(nodes, size - 1, size)
            if place < stop:
                nodes[0, 0] += changes[row, place]
                _flip(nodes, 0, order[row, place])
        n_nodes, n_found, wanted = size + 1, 0, min(rows[row, 1], found.shape[1])
        while size > 0 and n_found < wanted:
            node = _pop(nodes, size)
            for column in range(w + 1):
                found[row, n_found, column] = nodes[node, column]
            n_found += 1
            pushed = _push_children((changes, order, row, start), nodes, size - 1, n_nodes, node, rows[row, 0])
            size += pushed - 1
            n_nodes += pushed
        rows[row, 2], rows[row, 3] = n_found, size == 0
