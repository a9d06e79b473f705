"""How many candidates of a row are within a threshold: exactly, or between certified bounds."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np

from surelabel._core.validation import FloatArray
from surelabel.calibration import binomials
from surelabel.engines.sizes import Bounds

__all__ = ["bounds_by_table", "count_by_walk", "count_of_maximum", "count_row", "greatest_size"]

TABLE_CELLS = 8192
# Float64 cells of the largest table that refinement may use: 1 GiB.
MAX_TABLE = 2**27
# Additions that filling a table of TABLE_CELLS may take: about a second. Refinement may take more, in proportion.
_TABLE_WORK = 2**30
# Multisets that may be visited: by the compiled count, and by the one with integers of any size.
_MAX_MULTISETS = 2_000_000
_MAX_MULTISETS_BIG = 200_000


@functools.lru_cache(maxsize=64)
def _subsets_below(n: int) -> tuple[int, ...]:
    """Return cumulative binomials: element j is the number of subsets of n things with fewer than j elements."""
    return tuple(itertools.accumulate(binomials(n), initial=0))


def count_of_maximum(absent: FloatArray, present: FloatArray, threshold: float, limits: Bounds) -> int:
    """Count the members of a row with costs 0 (within) or more (over) and threshold 0: free labels give binomials."""
    if threshold < 0 or np.any((absent > 0) & (present > 0)):
        return 0
    held = int(np.count_nonzero(absent > 0))
    free = int(np.count_nonzero((absent == 0) & (present == 0)))
    fewest, most = max(0, limits[0] - held), min(free, limits[1] - held)
    if most < fewest:
        return 0
    sums = _subsets_below(free)
    return sums[most + 1] - sums[fewest]


def count_by_walk(
    absent: FloatArray, present: FloatArray, thresholds: FloatArray, limits: Bounds, limit: int
) -> tuple[Any, Any]:
    """Count members of rows (n, d) by walking; -1 where that takes more than `limit` steps. Return (sizes, work)."""
    from surelabel._kernels import walk  # noqa: PLC0415

    sizes = np.empty(len(absent), dtype=np.int64)
    work = np.empty(len(absent), dtype=np.int64)
    walk.count_rows(absent, present, thresholds, limits, limit, sizes, work)
    return sizes, work


def _count_by_groups(absent: FloatArray, present: FloatArray, threshold: float, limits: Bounds) -> int | None:
    """Count by groups of labels with equal costs, with integers of any size; None where that costs too much."""
    from surelabel._kernels import exact_sum, groups  # noqa: PLC0415

    pairs, sizes = np.unique(np.column_stack([absent, present]), axis=0, return_counts=True)
    inside = pairs[:, 1] <= pairs[:, 0]
    costs = np.where(inside[:, None], pairs[:, ::-1], pairs)
    order = np.argsort(costs[:, 1] - costs[:, 0], kind="stable")
    costs, sizes, inside = costs[order], sizes[order].astype(np.int64), inside[order]
    step = np.where(inside, -1, 1).astype(np.int64)
    base = float((costs[:, 0] * sizes).sum())
    margin = exact_sum.band(len(absent)) * threshold
    start = int(sizes[inside].sum())
    window = (limits[0] - start, limits[1] - start)
    budget = (threshold - base + margin, 2.0 * margin)
    ways = [binomials(size) for size in sizes.tolist()]
    table = np.zeros((len(sizes), int(sizes.max()) + 1))
    for g, row in enumerate(ways):
        table[g, : len(row)] = [min(value, 2**1000) for value in row]
    counted = groups.count_multisets(costs, sizes, step, budget, threshold, window, table, _MAX_MULTISETS)
    if counted < 0:
        return None
    if counted < 2**53:
        return int(counted)
    exact = getattr(groups.count_multisets, "py_func", groups.count_multisets)
    counted = exact(costs, sizes, step, budget, threshold, window, ways, _MAX_MULTISETS_BIG)
    return None if counted < 0 else int(counted)


def greatest_size(absent: FloatArray, present: FloatArray, threshold: float, hi: int) -> int:
    """Return a number of labels that no member of a row exceeds."""
    inside = present <= absent
    added = np.sort((present - absent)[~inside])
    budget = threshold * (1.0 + 1e-9) - float(np.minimum(absent, present).sum()) * (1.0 - 1e-9)
    return min(hi, int(inside.sum()) + int(np.searchsorted(np.cumsum(added), budget, side="right")))


def bounds_by_table(
    absent: FloatArray, present: FloatArray, threshold: float, limits: Bounds, n_cells: int = TABLE_CELLS
) -> Bounds:
    """Bound the number of members of a row (d,) from a table over number of labels and quantised cost."""
    from surelabel._kernels import table  # noqa: PLC0415

    n_candidates = _subsets_below(len(absent))[limits[1] + 1] - _subsets_below(len(absent))[limits[0]]
    hi = greatest_size(absent, present, threshold, limits[1])
    if hi < limits[0]:
        return 0, 0
    rows = max(hi, int((present <= absent).sum())) + 1
    if rows * rows > MAX_TABLE:
        return 0, n_candidates
    affordable = int(np.count_nonzero(np.abs(absent - present) <= threshold)) + 1
    work = _TABLE_WORK * max(1, n_cells // TABLE_CELLS)
    n_cells = max(64, min(n_cells, MAX_TABLE // rows - rows, work // (rows * affordable)))
    lower, upper = np.empty(1), np.empty(1)
    table.bounds_row(absent, present, np.array([threshold]), (limits[0], hi), n_cells, lower, upper)
    low = math.floor(min(lower[0], np.finfo(np.float64).max))
    high = n_candidates if np.isinf(upper[0]) else min(n_candidates, math.ceil(upper[0]))
    return min(low, high), high


def count_row(absent: FloatArray, present: FloatArray, threshold: float, limits: Bounds) -> Bounds:
    """Count or bound the members of one row (d,) that walking gave up on."""
    everything = float(np.maximum(absent, present).sum()) * (1.0 + 1e-9)
    if everything <= threshold:
        sums = _subsets_below(len(absent))
        return (sums[limits[1] + 1] - sums[limits[0]],) * 2
    affordable = np.abs(absent - present) <= threshold
    pairs = np.column_stack([absent, present])[affordable]
    if len(np.unique(pairs, axis=0)) < len(pairs):
        exact = _count_by_groups(absent, present, threshold, limits)
        if exact is not None:
            return exact, exact
    return bounds_by_table(absent, present, threshold, limits)
