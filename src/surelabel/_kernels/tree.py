"""Count or list the label-sets of a text within a threshold where labels interact, by a tree of flips.

A node is a label-set: the start label-set with some labels flipped; its children flip one label that comes later in the
order. Flipping k adds gains[k] to the base total, and steps[k] steps[j] 2 M[k, j] to the gain of each label j that is
still to be flipped. With M - D positive semidefinite for a diagonal D, flips of labels J add at least the sum over J of

    gains[j] - steps[j]^2 (M[j, j] - D[j])

however they interact among themselves: what can be below a node is bounded label by label, and labels that cannot be
afforded below it leave its list. D depends on the place in the order: fewer labels left allow a larger D. Without
interactions the bound is the total itself, and every node is a member (`walk.py`).

A label-set's total is score(base total) + penalty, score(x) = x^(1 / power). Penalties are bounded from below too (see
`Penalties`). Totals are running sums; what lies within their error of the threshold is given as undecided.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from surelabel._kernels.compiling import inlined, kernel, part
from surelabel._kernels.packed import bit, count_shared, find, has
from surelabel._kernels.penalties import Penalties, count_apart, nearest, score
from surelabel._kernels.rules import Rules, obeys

Array = Any

# What rounding a score and adding a penalty may change, relatively.
_SCORE_ERROR = 2.0**-44
_SURE, _UNDECIDED, _OUT = 1, 2, 0

# Places in `state`.
DEPTH, FOUND, WORK, WRITTEN, NEXT_SEEN, FINISHED = 0, 1, 2, 3, 4, 5
N_STATE = 6


class Form(NamedTuple):
    """The base total of one text, as a start label-set and flips.

    member : (d,) uint8, the start label-set
    order : (m,) int64, labels that may be flipped: members first, then the others, each in the order of `stages`
    rank : (d,) int64, places in the order; -1 for labels that may not be flipped
    gains : (d,) what flipping a label of the start label-set adds; for a maximum, what it costs when flipped
    steps : (d,) change of e, >= 0; matrix (d, d); both empty where labels do not interact
    slacks : (s, d) M[j, j] - D[j] in stage s; stages (d,) int64, the stage once a label has been decided
    base : float, total of the start label-set; error : float, of any running total
    maximum : bool, the total is a maximum instead of a sum; power : float, of the score
    """

    member: Array
    order: Array
    rank: Array
    gains: Array
    steps: Array
    matrix: Array
    slacks: Array
    stages: Array
    base: float
    error: float
    maximum: bool
    power: float


class Stack(NamedTuple):
    """A depth-first walk that can be left and taken up again: one row a depth."""

    labels: Array
    gains: Array
    totals: Array
    penalties: Array
    words: Array
    sizes: Array
    position: Array
    length: Array
    bounds: Array
    state: Array
    beyond: Array


@kernel
def make_stack(n_labels: int, n_flips: int, n_words: int) -> Stack:
    """Allocate a stack for sets of at most n_flips flips."""
    depth = n_flips + 2
    return Stack(
        np.empty((depth, n_labels), dtype=np.int64),
        np.empty((depth, n_labels)),
        np.empty(depth),
        np.empty(depth),
        np.zeros((depth, n_words), dtype=np.uint64),
        np.empty(depth, dtype=np.int64),
        np.empty(depth, dtype=np.int64),
        np.empty(depth, dtype=np.int64),
        np.empty(n_labels),
        np.zeros(N_STATE, dtype=np.int64),
        np.full(1, np.inf),
    )


@inlined
def _copy(words: Array, place: Array) -> None:
    """Copy a packed label-set; numba compiles an assignment of arrays with the message for those that do not fit."""
    for w in range(words.shape[0]):
        place[w] = words[w]


@inlined
def _budget(room: float, power: float) -> float:
    """Return the base total whose score is `room`, a little more where that is rounded."""
    if room < 0.0:
        return -np.inf
    if power == 1.0:
        return room
    return room**power * (1.0 + _SCORE_ERROR * power)


@part
def _repairable(rules: Rules, form: Form, words: Array, cursor: int) -> bool:
    """Tell whether every rule that a node breaks can still be obeyed by flips after `cursor` in the order."""
    for i in range(rules.forbidden.shape[0]):
        a, b = rules.forbidden[i, 0], rules.forbidden[i, 1]
        broken = has(words, a) and has(words, b) == rules.forbidden[i, 2]
        if broken and form.rank[a] <= cursor and form.rank[b] <= cursor:
            return False
    for i in range(rules.groups.shape[0]):
        size = count_shared(words, rules.groups[i])
        if size > rules.at_most[i]:
            for j in range(cursor + 1, form.order.shape[0]):
                label = form.order[j]
                if has(words, label) and has(rules.groups[i], label):
                    size -= 1
            if size > rules.at_most[i]:
                return False
    return True


@inlined
def _decide(form: Form, total: float, penalty: float, threshold: float) -> int:
    """Tell whether a running total, with its penalty, is within the threshold, over it, or too near to tell."""
    low = score(total - form.error, form.power) + penalty
    if low * (1.0 - _SCORE_ERROR) > threshold:
        return _OUT
    high = score(total + form.error, form.power) + penalty
    return _SURE if high * (1.0 + _SCORE_ERROR) <= threshold else _UNDECIDED


@inlined
def _emit(stack: Stack, verdict: int, words: Array, out: Array, counts: Array, listing: bool) -> None:
    """Count a member, or write it: all of them where they are listed, else those that are undecided."""
    state = stack.state
    if verdict == _SURE:
        state[FOUND] += 1
        for k in range(counts.shape[0]):
            counts[k] += has(words, k)
    if listing or verdict == _UNDECIDED:
        _copy(words, out[state[WRITTEN]])
        state[WRITTEN] += 1


@inlined
def _least_penalty(penalties: Penalties, removing: bool, size: int) -> float:
    """Return the least penalty below a node, its pairs and its distance apart."""
    least = penalties.from_size[0] if removing else penalties.from_size[size + 1]
    if penalties.hamming > 0.0:
        least += penalties.hamming
    return least + penalties.unseen


@inlined
def _enter(form: Form, penalties: Penalties, rules: Rules, stack: Stack, depth: int, node: Any, sinks: Any) -> bool:
    """Judge the label-set at `depth`, whose list of labels is complete, and drop what its list cannot afford.

    node is (cursor, removing); sinks (threshold, out, counts, listing). Returns whether the node has children.
    """
    cursor, removing = node
    threshold, out, counts, listing = sinks
    words, total, size = stack.words[depth], stack.totals[depth], stack.sizes[depth]
    ruled = rules.forbidden.shape[0] + rules.groups.shape[0] > 0
    candidate = rules.lo <= size <= rules.hi
    least = _least_penalty(penalties, removing, size)
    ceiling = threshold * (1.0 + _SCORE_ERROR)
    if candidate or not removing:
        own = penalties.unseen + penalties.of_size[size] + penalties.hamming
        near = candidate and _decide(form, total, own, threshold) != _OUT
        pairs = 0.0
        if penalties.apart.shape[0] > 0:
            pairs = penalties.pair * count_apart(penalties.apart, words)
        if not removing:
            least += pairs
        judged = near and (penalties.seen.shape[0] == 0 or find(penalties.seen, words) < 0)
        if penalties.hamming > 0.0 and (judged or not removing):
            distance, superfluous = nearest(penalties.seen, words)
            own += penalties.hamming * (distance - 1)
            if not removing and superfluous > 1:
                least += penalties.hamming * (superfluous - 1)
        verdict = _OUT
        # Penalties are added up in another order than a total's are: a difference within what _decide leaves open.
        if judged:
            verdict = _decide(form, total, own + pairs, threshold)
            if verdict != _OUT and (not ruled or obeys(rules, words)):
                _emit(stack, verdict, words, out, counts, listing)
        if candidate and verdict == _OUT and (judged or not near):
            stack.beyond[0] = min(stack.beyond[0], score(total, form.power) + own)
    stack.penalties[depth] = least
    if stack.length[depth] == 0 or (size >= rules.hi and not removing):
        return False
    if ruled and not _repairable(rules, form, words, cursor):
        return False
    return _filter(form, rules, stack, depth, (cursor, removing), ceiling)


@inlined
def _filter(form: Form, rules: Rules, stack: Stack, depth: int, node: Any, ceiling: float) -> bool:
    """Drop from a node's list what cannot be afforded below it; return whether anything is left."""
    cursor, removing = node
    total, size, length = stack.totals[depth], stack.sizes[depth], stack.length[depth]
    interacting = form.matrix.shape[0] > 0
    stage = 0
    if cursor >= 0 and not removing:
        stage = form.stages[form.order[cursor]]
    negative = 0.0
    least_addition, least_removal = np.inf, np.inf
    n_additions = 0
    for q in range(length):
        label = stack.labels[depth, q]
        low = stack.gains[depth, q]
        if interacting:
            low -= form.steps[label] * form.steps[label] * form.slacks[stage, label]
        elif form.maximum:
            low = max(low - total, 0.0)
        stack.bounds[q] = low
        if low < 0.0:
            negative += low
        if form.member[label]:
            least_removal = min(least_removal, low)
        else:
            least_addition = min(least_addition, low)
            n_additions += 1
    budget = _budget(ceiling - stack.penalties[depth], form.power) + form.error
    floor = total + negative
    if size < rules.lo:
        if n_additions < rules.lo - size:
            return False
        if not form.maximum and least_addition > 0.0:
            floor += (rules.lo - size) * least_addition
    if size > rules.hi:
        if length - n_additions < size - rules.hi:
            return False
        if not form.maximum and least_removal > 0.0:
            floor += (size - rules.hi) * least_removal
    if floor > budget:
        stack.beyond[0] = min(stack.beyond[0], score(floor - form.error, form.power) + stack.penalties[depth])
        return False
    kept = 0
    for q in range(length):
        low = stack.bounds[q]
        reach = total + (negative + low if low > 0.0 else negative)
        if reach <= budget:
            stack.labels[depth, kept] = stack.labels[depth, q]
            stack.gains[depth, kept] = stack.gains[depth, q]
            kept += 1
        else:
            stack.beyond[0] = min(stack.beyond[0], score(reach - form.error, form.power) + stack.penalties[depth])
    stack.length[depth] = kept
    stack.position[depth] = 0
    return kept > 0


@inlined
def _flip(form: Form, stack: Stack, depth: int) -> Any:
    """Fill the next depth with the label-set that flips the label at the node's position; return (cursor, removing)."""
    i = stack.position[depth]
    label = stack.labels[depth, i]
    gain = stack.gains[depth, i]
    below = depth + 1
    total = stack.totals[depth]
    stack.totals[below] = max(total, gain) if form.maximum else total + gain
    _copy(stack.words[depth], stack.words[below])
    stack.words[below, label >> 6] ^= bit(label)
    removing = form.member[label] == 1
    stack.sizes[below] = stack.sizes[depth] + (-1 if removing else 1)
    length = stack.length[depth] - (i + 1)
    stack.length[below] = length
    if form.matrix.shape[0] > 0:
        step = 2.0 * form.steps[label]
        row = form.matrix[label]
        for q in range(length):
            other = stack.labels[depth, i + 1 + q]
            stack.labels[below, q] = other
            stack.gains[below, q] = stack.gains[depth, i + 1 + q] + step * form.steps[other] * row[other]
    else:
        for q in range(length):
            stack.labels[below, q] = stack.labels[depth, i + 1 + q]
            stack.gains[below, q] = stack.gains[depth, i + 1 + q]
    return form.rank[label], removing


@kernel
def open_tree(form: Form, stack: Stack) -> None:
    """Set a stack to the start of a walk."""
    stack.state[:] = 0
    stack.state[DEPTH] = -1
    stack.beyond[0] = np.inf
    stack.words[0] = 0
    size = 0
    for k in range(form.member.shape[0]):
        if form.member[k]:
            size += 1
            stack.words[0, k >> 6] |= bit(k)
    stack.sizes[0] = size
    stack.totals[0] = form.base
    for q in range(form.order.shape[0]):
        stack.labels[0, q] = form.order[q]
        stack.gains[0, q] = form.gains[form.order[q]]
    stack.length[0] = form.order.shape[0]


@part
def _total_of(form: Form, words: Array, flips: Array) -> float:
    """Return the running total of any packed label-set; -1 where it flips a label that may not be flipped."""
    total = form.base
    n_flips = 0
    for k in range(form.member.shape[0]):
        if has(words, k) == form.member[k]:
            continue
        if form.rank[k] < 0:
            return -1.0
        if form.maximum:
            total = max(total, form.gains[k])
            continue
        total += form.gains[k]
        if form.matrix.shape[0] > 0:
            for j in range(n_flips):
                total += 2.0 * form.steps[k] * form.steps[flips[j]] * form.matrix[k, flips[j]]
            flips[n_flips] = k
            n_flips += 1
    return max(total, 0.0)


@part
def _judge_seen(form: Form, penalties: Penalties, stack: Stack, sinks: Any) -> None:
    """Score the seen label-sets directly, until there is no more room; they are candidates already."""
    threshold, out, counts, listing = sinks
    state = stack.state
    flips = np.empty(form.member.shape[0], dtype=np.int64)
    while state[NEXT_SEEN] < penalties.seen.shape[0] and state[WRITTEN] < out.shape[0]:
        i = state[NEXT_SEEN]
        state[NEXT_SEEN] += 1
        state[WORK] += 1
        if not np.isfinite(penalties.of_seen[i]):
            continue
        total = _total_of(form, penalties.seen[i], flips)
        if total < 0.0:
            continue
        verdict = _decide(form, total, penalties.of_seen[i], threshold)
        if verdict != _OUT:
            _emit(stack, verdict, penalties.seen[i], out, counts, listing)
        else:
            stack.beyond[0] = min(stack.beyond[0], score(total, form.power) + penalties.of_seen[i])


@part
def _enter_start(form: Form, penalties: Penalties, rules: Rules, stack: Stack, sinks: Any) -> bool:
    """Enter the start label-set; apart from the other nodes, since a function that is inlined twice compiles slowly."""
    # Without removals to come, sizes only grow from here; the whole order is still ahead.
    starts_with_removals = form.order.shape[0] > 0 and form.member[form.order[0]] == 1
    return _enter(form, penalties, rules, stack, 0, (np.int64(-1), starts_with_removals), sinks)


@kernel
def advance(
    form: Form,
    penalties: Penalties,
    rules: Rules,
    threshold: float,
    stack: Stack,
    out: Array,
    counts: Array,
    listing: bool,
    limit: int,
) -> bool:
    """Walk on until everything is done, `out` (capacity, W) is full, or `limit` nodes have been visited in all.

    Members within the threshold beyond doubt are counted (and each label's in counts (d,) or (0,)); undecided ones,
    and where `listing` the others too, are written to `out`. Returns whether it is done. stack.beyond gets a lower
    bound of the totals of candidates that were left out.
    """
    state = stack.state
    sinks = (threshold, out, counts, listing)
    state[WRITTEN] = 0
    _judge_seen(form, penalties, stack, sinks)
    if state[WRITTEN] == out.shape[0]:
        return False
    if state[DEPTH] == -1 and not state[FINISHED]:
        state[WORK] += 1
        if _enter_start(form, penalties, rules, stack, sinks):
            state[DEPTH] = 0
        else:
            state[FINISHED] = 1
    while not state[FINISHED]:
        if state[WRITTEN] == out.shape[0]:
            return False
        if state[WORK] >= limit:
            return False
        depth = state[DEPTH]
        if stack.position[depth] >= stack.length[depth]:
            if depth == 0:
                state[FINISHED] = 1
            state[DEPTH] -= 1
            continue
        state[WORK] += 1
        node = _flip(form, stack, depth)
        stack.position[depth] += 1
        if _enter(form, penalties, rules, stack, depth + 1, node, sinks):
            state[DEPTH] = depth + 1
    return state[NEXT_SEEN] == penalties.seen.shape[0]
