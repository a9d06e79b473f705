"""What single texts need, a few of them in one call: calls from Python take longer than what they compute here."""

from __future__ import annotations

from typing import Any

import numpy as np

from surelabel._kernels.best_first import make_frontier, take_row
from surelabel._kernels.compiling import part, quick
from surelabel._kernels.flips import ADDED, IS_SUM, make_scratch
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
def _sort(words: Array, totals: Array, n_taken: int) -> None:
    """Sort taken candidates in place, best first: by total, then in the order of 0/1 rows."""
    for i in range(1, n_taken):
        for j in range(i, 0, -1):
            is_before = totals[j] < totals[j - 1]
            if totals[j] == totals[j - 1]:
                for w in range(words.shape[1]):
                    if words[j, w] != words[j - 1, w]:
                        is_before = words[j, w] < words[j - 1, w]
                        break
            if not is_before:
                break
            totals[j], totals[j - 1] = totals[j - 1], totals[j]
            for w in range(words.shape[1]):
                words[j, w], words[j - 1, w] = words[j - 1, w], words[j, w]


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
def cut_rows(
    probabilities: Array,
    tags: Any,
    costs: Any,
    calibrated: Array,
    threshold: float,
    limits: Any,
    number: int,
    counts: Array,
    words: Array,
    values: Array,
) -> None:
    """Scan rows as `scan_row`, and take the best candidates of each: the two best, and the best `number` members.

    costs: absent and present, (n, d) each. Row i of counts (n, 4 + d) gets what `scan_row` returns; how many candidates
    there are, -1 if m are not enough or a probability is not within [0, 1]; how many of the first `number` are members;
    and the labels that `scan_row` writes. Candidates are written to words (n, 2 + m, W) from row 2 of a text on, best
    first; rows 0 and 1 get the labels that all these members have, and those that some have. values (n, 2 + m) gets
    total and margin of the text's guess, and the candidates' p-values among `calibrated` totals, ascending.
    """
    absent, present = costs
    n_labels = absent.shape[1]
    scratch, frontier = make_scratch(n_labels), make_frontier(words.shape[1] - 2, n_labels)
    for i in range(absent.shape[0]):
        counts[i, 0], counts[i, 1] = _scan(probabilities[i], tags, counts[i, 4:])
        counts[i, 2], counts[i, 3] = -1, 0
        if counts[i, 0] < 0:
            continue
        row, best, totals = (absent[i], present[i]), words[i][2:], values[i][2:]
        guess, margin = guess_row(*row, limits, scratch.costs[ADDED], scratch.member)
        for j in range(frontier.state.shape[0]):
            frontier.state[j] = 0
        reach = max(threshold, guess + margin)
        n_taken = take_row(row, reach, limits, number, IS_SUM, frontier, scratch, best, totals)
        _sort(best, totals, n_taken)
        n_members: Any = np.int64(0)
        for j in range(n_taken):
            n_members += j < number and totals[j] <= threshold
            totals[j] = (_n_at_least(calibrated, totals[j]) + 1) / (calibrated.shape[0] + 1)
        for w in range(words.shape[2]):
            everywhere, somewhere = ~np.uint64(0), np.uint64(0)
            for j in range(n_members):
                everywhere &= best[j, w]
                somewhere |= best[j, w]
            words[i, 0, w] = everywhere if n_members > 0 else np.uint64(0)
            words[i, 1, w] = somewhere & ~everywhere
        counts[i, 2], counts[i, 3] = n_taken, n_members
        values[i, 0], values[i, 1] = guess, margin
