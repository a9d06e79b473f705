"""Totals of label-sets: correctly rounded sums, the same in whatever order the labels come."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from surelabel._core.packing import unpack
from surelabel._kernels.compiling import in_python, kernel, part
from surelabel._kernels.packed import has

Array = Any

# Non-overlapping doubles have different leading bits, of which there are 2,098 (2^-1074 to 2^1023): no sum has more
# partials. They are as many as that where costs ascend over a wide range, a bit peeled off by each.
N_PARTIALS = 2100
UNIT_ROUNDOFF = 2.0**-53
# Rows that are few enough not to compile a kernel for them: Python's own sum is as exact.
_FEW_ROWS = 16


@kernel
def band(n_labels: int) -> float:
    """Relative error that any order of adding a row's costs stays below: 8 (d + 8) 2^-53."""
    return 8.0 * (n_labels + 8.0) * UNIT_ROUNDOFF


@part
def add_to_partials(partials: Array, n_partials: int, term: float) -> int:
    """Add `term` without error to a sum kept as non-overlapping partials (Shewchuk 1997)."""
    kept = 0
    for j in range(n_partials):
        other = partials[j]
        high = term + other
        added = high - term
        low = (term - (high - added)) + (other - added)
        if low != 0.0:
            partials[kept] = low
            kept += 1
        term = high
    partials[kept] = term
    return kept + 1


@part
def round_partials(partials: Array, n_partials: int) -> float:
    """Round a sum of non-overlapping partials once, to nearest with ties to even."""
    if n_partials == 0:
        return 0.0
    n = n_partials - 1
    high = partials[n]
    low = 0.0
    while n > 0:
        before = high
        n -= 1
        term = partials[n]
        high = before + term
        low = term - (high - before)
        if low != 0.0:
            break
    # A half-way case is decided by the sign of what is left below it.
    if n > 0 and ((low < 0.0 and partials[n - 1] < 0.0) or (low > 0.0 and partials[n - 1] > 0.0)):
        twice = low * 2.0
        nudged = high + twice
        if twice == nudged - high:
            high = nudged
    return high


@part
def _add_members(absent: Array, present: Array, member: Array, partials: Array) -> Any:
    """Write the sum over k of present[k] where member[k], absent[k] where not, as partials; return their number."""
    n_partials = np.int64(0)
    for k in range(absent.shape[0]):
        cost = present[k] if member[k] else absent[k]
        if cost != 0.0:
            n_partials = add_to_partials(partials, n_partials, cost)
    return n_partials


@part
def total_of_members(absent: Array, present: Array, member: Array, partials: Array) -> float:
    """Total of one label-set: sum over k of present[k] where member[k], absent[k] where not."""
    return round_partials(partials, _add_members(absent, present, member, partials))


@part
def totals_beside(absent: Array, present: Array, member: Array, words: Array, partials: Array, totals: Array) -> None:
    """Totals (m,) of packed label-sets (m, W) of one row: the exact sum of `member`, changed by what each has else."""
    n_own = _add_members(absent, present, member, partials)
    own = partials[:n_own].copy()
    for j in range(words.shape[0]):
        n_partials = n_own
        for place in range(n_own):
            partials[place] = own[place]
        for k in range(absent.shape[0]):
            if has(words[j], k) != member[k]:
                before, after = (present[k], absent[k]) if member[k] else (absent[k], present[k])
                n_partials = add_to_partials(partials, n_partials, -before)
                n_partials = add_to_partials(partials, n_partials, after)
        totals[j] = round_partials(partials, n_partials)


def _totals_in_python(absent: Array, present: Array, _: Array, words: Array, __: Array, totals: Array) -> None:
    """Do what `totals_beside` does."""
    totals[: len(words)] = [math.fsum(costs) for costs in np.where(unpack(words, len(absent)), present, absent)]


# Python's own sum is as exact.
in_python[total_of_members] = lambda absent, present, member, _: math.fsum(np.where(member, present, absent))
in_python[totals_beside] = _totals_in_python


@part
def total_of_row(absent: Array, present: Array, member: Array, partials: Array, maximum: bool) -> float:
    """Total of one label-set, as the sum or as the maximum of its costs."""
    if not maximum:
        return total_of_members(absent, present, member, partials)
    total = 0.0
    for k in range(absent.shape[0]):
        total = max(total, present[k] if member[k] else absent[k])
    return total


def row_starts(rows: Array) -> Array:
    """Return where dense rows (n, d) start if they are flat, and where the last one ends, (n + 1,)."""
    n_rows, n_columns = rows.shape
    return np.arange(n_rows + 1) * n_columns


@kernel
def totals_of_flat(starts: Array, absent: Array, present: Array, member: Array, out: Array) -> None:
    """Totals of one label-set per flat row, out (n,)."""
    partials = np.empty(N_PARTIALS)
    for i in range(starts.shape[0] - 1):
        row = slice(starts[i], starts[i + 1])
        out[i] = total_of_members(absent[row], present[row], member[row], partials)


def totals_of_rows(absent: Array, present: Array, labels: Array, out: Array) -> None:
    """Write the totals of one label-set per row: costs and labels (n, d), of one byte each, out (n,)."""
    if len(absent) > _FEW_ROWS:
        totals_of_flat(row_starts(absent), absent.ravel(), present.ravel(), labels.ravel().view(np.uint8), out)
    else:
        chosen: Array = np.where(labels, present, absent)
        out[:] = [math.fsum(costs) for costs in chosen.tolist()]


@kernel
def totals_of_words(absent: Array, present: Array, words: Array, out: Array) -> None:
    """Totals of many packed label-sets of one row: absent and present (d,), words (m, W), out (m,)."""
    partials = np.empty(N_PARTIALS)
    member = np.empty(absent.shape[0], dtype=np.uint8)
    for i in range(words.shape[0]):
        for k in range(member.shape[0]):
            member[k] = has(words[i], k)
        out[i] = total_of_members(absent, present, member, partials)
