"""What a single text needs, in one call: calls from Python take longer than what they compute here."""

from __future__ import annotations

from typing import Any

import numpy as np

from surelabel._kernels.best_first import make_frontier, take_row
from surelabel._kernels.compiling import part, quick
from surelabel._kernels.flips import IS_SUM, make_scratch
from surelabel._kernels.guesses import guess_row

Array = Any


@part
def _scan(row: Array, tags: Any, labels: Array) -> Any:
    """Do what `scan_row` says."""
    consider, assign = tags
    n_considered, n_assigned = np.int64(0), np.int64(0)
    for k in range(row.shape[0]):
        if not 0.0 <= row[k] <= 1.0:
            return np.int64(-1), n_assigned
        if row[k] >= consider:
            place = n_considered
            while place > 0 and row[labels[place - 1]] < row[k]:
                labels[place] = labels[place - 1]
                place -= 1
            labels[place] = k
            n_considered += 1
            n_assigned += row[k] >= assign
    return n_considered, n_assigned


@quick(lambda probabilities, *_: probabilities.size)
def scan_row(probabilities: Array, tags: Any, labels: Array) -> Any:
    """Write labels of a row (1, d) with a probability of at least tags[0] to `labels` (d,), most probable first.

    Returns how many there are, -1 if a probability is not within [0, 1]; and how many are of at least tags[1].
    """
    return _scan(probabilities[0], tags, labels)


@part
def _is_before(words: Array, totals: Array, one: int, other: int) -> bool:
    """Tell whether a candidate comes before another: by its total, then in the order of 0/1 rows."""
    if totals[one] != totals[other]:
        return bool(totals[one] < totals[other])
    for w in range(words.shape[1]):
        if words[one, w] != words[other, w]:
            return bool(words[one, w] < words[other, w])
    return False


@part
def _n_at_least(calibrated: Array, total: float) -> int:
    """Return how many ascending calibration totals are at least a total."""
    low, high = 0, calibrated.shape[0]
    while low < high:
        middle = (low + high) >> 1
        if calibrated[middle] < total:
            low = middle + 1
        else:
            high = middle
    return calibrated.shape[0] - low


@quick(
    lambda probabilities, tags, costs, totals, threshold, limits, number, *_: probabilities.size * (number + 12) // 8
)
def cut_row(
    probabilities: Array,
    tags: Any,
    costs: Any,
    calibrated: Array,
    threshold: float,
    limits: Any,
    number: int,
    labels: Array,
    words: Array,
    p_values: Array,
) -> Any:
    """Scan a row as `scan_row`, and take its best candidates: the two best, and the best `number` members.

    costs: absent and present, (1, d) each. Candidates are written to words (2 + m, W) from row 2 on, best first, and
    their p-values among `calibrated` totals, ascending, to p_values (m,). Row 0 gets the labels that all these members
    have, and row 1 those that some have. Returns what `scan_row` does; how many candidates there are, -1 if m are not
    enough; how many of the first `number` are members; and total and margin of the row's guess.
    """
    n_considered, n_assigned = _scan(probabilities[0], tags, labels)
    absent, present = costs
    if n_considered < 0:
        return n_considered, n_assigned, np.int64(-1), np.int64(0), np.inf, np.inf
    row, n_labels = (absent[0], present[0]), absent.shape[1]
    guess, margin = guess_row(*row, limits, np.empty(n_labels), np.empty(n_labels, dtype=np.bool_))
    scratch, frontier = make_scratch(n_labels), make_frontier(p_values.shape[0], n_labels)
    taken, totals = np.empty_like(words[2:]), np.empty(p_values.shape[0])
    reach = max(threshold, guess + margin)
    n_taken = take_row(row, reach, limits, number, IS_SUM, frontier, scratch, taken, totals)
    order = np.empty(max(n_taken, 0), dtype=np.int64)
    n_members: Any = np.int64(0)
    for i in range(n_taken):
        place = i
        while place > 0 and _is_before(taken, totals, i, order[place - 1]):
            order[place] = order[place - 1]
            place -= 1
        order[place] = i
        n_members += totals[i] <= threshold
    n_members = min(n_members, number)
    for w in range(words.shape[1]):
        everywhere, somewhere = ~np.uint64(0), np.uint64(0)
        for i in range(n_taken):
            words[2 + i, w] = taken[order[i], w]
            if i < n_members:
                everywhere &= taken[order[i], w]
                somewhere |= taken[order[i], w]
        words[0, w] = everywhere if n_members > 0 else np.uint64(0)
        words[1, w] = somewhere & ~everywhere
    for i in range(n_taken):
        p_values[i] = (_n_at_least(calibrated, totals[order[i]]) + 1) / (calibrated.shape[0] + 1)
    return n_considered, n_assigned, np.int64(n_taken), n_members, guess, margin
