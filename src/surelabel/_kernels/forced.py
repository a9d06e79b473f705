"""The two cheapest label-sets of a row, and the cheapest with one label held, by exchanges.

Totals are sums over labels and the candidates are all sets of lo..hi labels, so from a cheapest candidate the next
one is a single addition, a single removal or one exchange away: undoing a pair of an addition and a removal keeps
the number of labels, and by optimality never costs more. Differences of costs are compared without rounding, as
(high, low) pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surelabel._kernels.compiling import inlined, kernel, part, quick
from surelabel._kernels.exact_sum import N_PARTIALS, band, row_starts, total_of_members

Array = Any

_NONE: Any = np.int64(-1)
_OUTSIDE, _INSIDE, _FIRST = np.uint8(0), np.uint8(1), np.int64(0)


@part
def _change(absent: float, present: float, is_member: int) -> tuple[float, float]:
    """Return what flipping a label adds to the total, exactly, as high + low; high is inf where that cannot be."""
    before, after = (present, absent) if is_member else (absent, present)
    high = after - before
    if high == np.inf:
        return high, 0.0
    virtual = high - after
    low = (after - (high - virtual)) - (before + virtual)
    return high, low


@part
def _cheapest_flip(absent: Array, present: Array, member: Array, inside: int, first: int) -> int:
    """Return the cheapest label to flip among labels >= first with member == inside."""
    # Of ties, additions take the last label, removals the first, which keeps 0/1 rows lexicographically small.
    best = _NONE
    best_high, best_low = 0.0, 0.0
    for k in range(first, absent.shape[0]):
        if member[k] != inside:
            continue
        high, low = _change(absent[k], present[k], inside)
        if high == np.inf:
            continue
        if best == _NONE or high < best_high or (high == best_high and low < best_low):
            best, best_high, best_low = k, high, low
        elif not inside and high == best_high and low == best_low:
            best = k
    return best


@part
def _complete(absent: Array, present: Array, limits: Any, member: Array, first: int) -> bool:
    """Set labels >= first to the cheapest values that give limits[0]..limits[1] labels; False if none do."""
    size = np.int64(0)
    for k in range(first):
        size += member[k]
    for k in range(first, absent.shape[0]):
        member[k] = 1 if present[k] < absent[k] else 0
        size += member[k]
    while size < limits[0] or size > limits[1]:
        inside = _INSIDE if size > limits[1] else _OUTSIDE
        label = _cheapest_flip(absent, present, member, inside, first)
        if label == _NONE:
            return False
        member[label] ^= 1
        size += 1 if member[label] else -1
    return True


@part
def _total_with(absent: Array, present: Array, member: Array, partials: Array, first: int, second: int) -> float:
    """Return the total with labels `first` and `second` flipped, where given."""
    if first != _NONE:
        member[first] ^= 1
    if second != _NONE:
        member[second] ^= 1
    total = total_of_members(absent, present, member, partials)
    if first != _NONE:
        member[first] ^= 1
    if second != _NONE:
        member[second] ^= 1
    return total


@inlined
def _second_total(absent: Array, present: Array, limits: Any, member: Array, partials: Array) -> float:
    """Return the smallest total of a candidate other than `member`, a cheapest one; inf where there is none."""
    size = np.int64(0)
    for k in range(absent.shape[0]):
        size += member[k]
    addition = _cheapest_flip(absent, present, member, _OUTSIDE, _FIRST)
    removal = _cheapest_flip(absent, present, member, _INSIDE, _FIRST)
    least = np.inf
    for added in (True, False):
        for removed in (True, False):
            after = size + added - removed
            can_be = limits[0] <= after <= limits[1] and (addition != _NONE or not added)
            if (added or removed) and can_be and (removal != _NONE or not removed):
                first, second = addition if added else _NONE, removal if removed else _NONE
                least = min(least, _total_with(absent, present, member, partials, first, second))
    return least


@kernel
def _two_cheapest(starts: Array, absent: Array, present: Array, limits: Any, labels: Array, totals: Array) -> int:
    """Do what `forced_flat` says, but take any of several cheapest candidates; return how many rows have several."""
    partials = np.empty(N_PARTIALS)
    n_tied = 0
    for i in range(starts.shape[0] - 1):
        row = slice(starts[i], starts[i + 1])
        own = labels[row]
        _complete(absent[row], present[row], limits, own, _FIRST)
        totals[i, 0] = total_of_members(absent[row], present[row], own, partials)
        totals[i, 1] = _second_total(absent[row], present[row], limits, own, partials)
        n_tied += totals[i, 0] == totals[i, 1]
    return n_tied


@kernel
def _first_of_ties(starts: Array, absent: Array, present: Array, limits: Any, labels: Array, totals: Array) -> None:
    """Take the lexicographically first candidate in rows whose two cheapest have the same total."""
    partials = np.empty(N_PARTIALS)
    for i in range(starts.shape[0] - 1):
        if totals[i, 0] != totals[i, 1]:
            continue
        row = slice(starts[i], starts[i + 1])
        member = labels[row]
        trial = np.empty_like(member)
        for k in range(member.shape[0]):
            if member[k]:
                for j in range(k):
                    trial[j] = member[j]
                trial[k] = 0
                if _complete(absent[row], present[row], limits, trial, k + 1) and (
                    total_of_members(absent[row], present[row], trial, partials) <= totals[i, 0]
                ):
                    for j in range(k, member.shape[0]):
                        member[j] = trial[j]


def forced_flat(starts: Array, absent: Array, present: Array, limits: Any, labels: Array, totals: Array) -> None:
    """Write each flat row's cheapest candidate, uint8, and the totals of the two cheapest; as `forced_rows`."""
    if _two_cheapest(starts, absent, present, limits, labels, totals):
        _first_of_ties(starts, absent, present, limits, labels, totals)


def forced_rows(absent: Array, present: Array, limits: Any, labels: Array, totals: Array) -> None:
    """Write each row's cheapest candidate, and the totals of the two cheapest.

    absent and present (n, d); limits (lo, hi) with lo <= d; labels (n, d) uint8 and totals (n, 2) are written,
    totals[:, 1] is inf where there is one candidate only. Of equal totals the lexicographically first 0/1 row is taken.
    """
    forced_flat(row_starts(absent), absent.ravel(), present.ravel(), limits, labels.reshape(-1), totals)


@part
def _reach_row(absent: Array, present: Array, threshold: float, limits: Any, reachable: Array, partials: Array) -> None:
    """Do what `reachable_rows` says for a row of which nothing is written yet."""
    member = np.empty(absent.shape[0], dtype=np.uint8)
    if not _complete(absent, present, limits, member, _FIRST):
        return
    best = total_of_members(absent, present, member, partials)
    if best > threshold:
        return
    size = np.int64(0)
    for k in range(member.shape[0]):
        size += member[k]
    addition = _cheapest_flip(absent, present, member, _OUTSIDE, _FIRST)
    removal = _cheapest_flip(absent, present, member, _INSIDE, _FIRST)
    drift = band(member.shape[0])
    for k in range(member.shape[0]):
        reachable[k, member[k]] = True
        room = size > limits[0] if member[k] else size < limits[1]
        exchanged = addition if member[k] else removal
        total, held = best + _change(absent[k], present[k], member[k])[0], False
        # Alone if the limits have room for it, else in exchange for another; summed exactly only where it must be.
        for partner in (_NONE, exchanged):
            if partner != _NONE:
                total += _change(absent[partner], present[partner], member[partner])[0]
            if not held and (room or partner != _NONE) and total < np.inf:
                held = total < threshold
                if abs(total - threshold) <= drift * max(threshold, total):
                    held = _total_with(absent, present, member, partials, k, partner) <= threshold
        reachable[k, 1 - member[k]] = held


@quick(lambda starts, absent, *_: len(absent))
def _reachable_flat(
    starts: Array, absent: Array, present: Array, thresholds: Array, limits: Any, reachable: Array
) -> None:
    """Do what `reachable_flat` says, where nothing is written yet."""
    partials = np.empty(N_PARTIALS)
    for i in range(starts.shape[0] - 1):
        row = slice(starts[i], starts[i + 1])
        _reach_row(absent[row], present[row], thresholds[i], limits, reachable[row], partials)


def reachable_flat(
    starts: Array, absent: Array, present: Array, thresholds: Array, limits: Any, reachable: Array
) -> None:
    """Do what `reachable_rows` says for flat rows: reachable (columns, 2)."""
    reachable[:] = False
    _reachable_flat(starts, absent, present, thresholds, limits, reachable)


def reachable_rows(absent: Array, present: Array, thresholds: Array, limits: Any, reachable: Array) -> None:
    """Tell for each label of rows (n, d) whether some candidate within thresholds (n,) has it absent, or present.

    reachable (n, d, 2) bool is written: column 0 absent, column 1 present.
    """
    starts, both = row_starts(absent), reachable.reshape(-1, 2)
    reachable_flat(starts, absent.ravel(), present.ravel(), thresholds, limits, both)
