"""The two cheapest label-sets of a row, and the cheapest with one label held, by exchanges.

Totals are sums over labels and the candidates are all sets of lo..hi labels, so from a cheapest candidate the next
one is a single addition, a single removal or one exchange away: undoing a pair of an addition and a removal keeps
the number of labels, and by optimality never costs more. Differences of costs are compared without rounding, as
(high, low) pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surelabel._kernels.compiling import inlined, kernel, part
from surelabel._kernels.exact_sum import N_PARTIALS, band, total_of_members

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
    """Return the cheapest label to flip among labels >= first with member == inside.

    Ties: additions take the last label, removals the first, which keeps 0/1 rows lexicographically small.
    """
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


@inlined
def first_of_ties(absent: Array, present: Array, limits: Any, member: Array, total: float, spare: Any) -> None:
    """Turn a cheapest candidate into the lexicographically first one of the same total."""
    trial, partials = spare
    for k in range(absent.shape[0]):
        if member[k]:
            for j in range(k):
                trial[j] = member[j]
            trial[k] = 0
            if _complete(absent, present, limits, trial, k + 1) and (
                total_of_members(absent, present, trial, partials) <= total
            ):
                for j in range(k, absent.shape[0]):
                    member[j] = trial[j]


@inlined
def forced_row(absent: Array, present: Array, limits: Any, labels: Array, totals: Array, partials: Array) -> None:
    """Write a row's cheapest candidate (d,), and the totals (2,) of the two cheapest; any of several."""
    _complete(absent, present, limits, labels, _FIRST)
    totals[0] = total_of_members(absent, present, labels, partials)
    totals[1] = _second_total(absent, present, limits, labels, partials)


@kernel
def _two_cheapest(absent: Array, present: Array, limits: Any, labels: Array, totals: Array) -> int:
    """Do what `forced_rows` says, but take any of several cheapest candidates; return how many rows have several."""
    partials = np.empty(N_PARTIALS)
    n_tied = 0
    for i in range(absent.shape[0]):
        forced_row(absent[i], present[i], limits, labels[i], totals[i], partials)
        n_tied += totals[i, 0] == totals[i, 1]
    return n_tied


@kernel
def _first_of_ties(absent: Array, present: Array, limits: Any, labels: Array, totals: Array) -> None:
    """Take the lexicographically first candidate in rows whose two cheapest have the same total."""
    partials = np.empty(N_PARTIALS)
    trial = np.empty(absent.shape[1], dtype=np.uint8)
    for i in range(absent.shape[0]):
        if totals[i, 0] == totals[i, 1]:
            first_of_ties(absent[i], present[i], limits, labels[i], totals[i, 0], (trial, partials))


def forced_rows(absent: Array, present: Array, limits: Any, labels: Array, totals: Array) -> None:
    """Write each row's cheapest candidate, and the totals of the two cheapest.

    absent and present (n, d); limits (lo, hi) with lo <= d; labels (n, d) uint8 and totals (n, 2) are written,
    totals[:, 1] is inf where there is one candidate only. Of equal totals the lexicographically first 0/1 row is taken.
    """
    if _two_cheapest(absent, present, limits, labels, totals):
        _first_of_ties(absent, present, limits, labels, totals)


@part
def _holds(absent: Array, present: Array, threshold: float, member: Array, spare: Any, flips: Any) -> bool:
    """Tell whether a label-set with two labels flipped is within the threshold; exact only where it must be."""
    approximate, partials = spare
    for label in flips:
        if label != _NONE:
            approximate += _change(absent[label], present[label], member[label])[0]
    if approximate == np.inf:
        return False
    margin = band(absent.shape[0]) * max(threshold, approximate)
    if abs(approximate - threshold) > margin:
        return bool(approximate < threshold)
    return bool(_total_with(absent, present, member, partials, flips[0], flips[1]) <= threshold)


@inlined
def reachable_row(absent: Array, present: Array, threshold: float, limits: Any, reachable: Array) -> bool:
    """Tell for each label whether some candidate within the threshold has it absent, or present.

    reachable (d, 2) bool is written: column 0 absent, column 1 present. Returns False where no candidate is within.
    """
    n_labels = absent.shape[0]
    partials = np.empty(N_PARTIALS)
    member = np.empty(n_labels, dtype=np.uint8)
    reachable[:] = False
    if not _complete(absent, present, limits, member, _FIRST):
        return False
    best = total_of_members(absent, present, member, partials)
    if best > threshold:
        return False
    size = np.int64(0)
    for k in range(n_labels):
        size += member[k]
    spare = (best, partials)
    addition = _cheapest_flip(absent, present, member, _OUTSIDE, _FIRST)
    removal = _cheapest_flip(absent, present, member, _INSIDE, _FIRST)
    for k in range(n_labels):
        reachable[k, member[k]] = True
        room = size > limits[0] if member[k] else size < limits[1]
        exchanged = addition if member[k] else removal
        # Alone if the limits have room for it, else in exchange for another.
        partner = _NONE if room else exchanged
        held = False
        while room or partner != _NONE:
            held = _holds(absent, present, threshold, member, spare, (k, partner))
            if held or partner == exchanged:
                break
            partner = exchanged
        reachable[k, 1 - member[k]] = held
    return True


@kernel
def reachable_rows(absent: Array, present: Array, thresholds: Array, limits: Any, reachable: Array) -> None:
    """Do the same for rows: costs (n, d), thresholds (n,); reachable (n, d, 2) is written."""
    for i in range(absent.shape[0]):
        reachable_row(absent[i], present[i], thresholds[i], limits, reachable[i])
