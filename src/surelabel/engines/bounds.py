"""How many candidates of a row are within a threshold: exactly, or between certified bounds."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from surelabel._core.packing import n_words
from surelabel._core.validation import FloatArray, IntArray
from surelabel._kernels import exact_sum, groups, table, walk
from surelabel.engines.sizes import Bounds
from surelabel.labels.counting import binomials, count_by_size

TABLE_CELLS = 8192
# Float64 cells of the largest table that refinement may use: 1 GiB.
MAX_TABLE = 2**27
# Additions that filling a table of TABLE_CELLS may take: about a second. Refinement may take more, in proportion.
_TABLE_WORK = 2**30
# Cells of the smallest table that says anything, and of one that tells whether walking can come to an end.
_FEWEST_CELLS, _ROUGH_CELLS = 64, 256
# Share of the usual work that the latter may take: some milliseconds. One that takes more says nothing.
_ROUGH_EFFORT = 2.0**-8
# Multisets that may be visited: by the compiled count, and by the one with integers of any size.
_MAX_MULTISETS = 2_000_000
_MAX_MULTISETS_BIG = 200_000
# Candidates per text that are ranked one by one for each cell of the table that would bound them: listing them takes
# about as long as that. With the usual number of cells all those of 20 labels and up to 7 of them are listed.
_LISTED_PER_CELL = 18


def as_float(count: int | Fraction) -> float:
    """Return a count as a float, inf if it is too large for one (over some 1,000 labels without limit)."""
    try:
        return float(count)
    except OverflowError:
        return math.inf


def count_of_maximum(absent: FloatArray, present: FloatArray, threshold: float, limits: Bounds) -> int:
    """Count the members of a row with costs 0 (within) or more (over) and threshold 0: free labels give binomials."""
    if threshold < 0 or np.any((absent > 0) & (present > 0)):
        return 0
    held = int(np.count_nonzero(absent > 0))
    free = int(np.count_nonzero((absent == 0) & (present == 0)))
    return count_by_size(free, limits[0] - held, limits[1] - held)


def count_by_walk(
    absent: FloatArray, present: FloatArray, thresholds: FloatArray, limits: Bounds, limit: int
) -> IntArray:
    """Count members of rows (n, d) by walking; past `limit` steps, return -1 less what was counted until then."""
    sizes, work = np.empty((2, len(absent)), dtype=np.int64)
    walk.count_rows(absent, present, thresholds, limits, limit, sizes, work)
    return sizes


def _count_by_groups(
    absent: FloatArray, present: FloatArray, threshold: float, limits: Bounds, effort: float
) -> int | None:
    """Count by groups of labels with equal costs, with integers of any size; None if that costs too much."""
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
    n_ways = np.zeros((len(sizes), int(sizes.max()) + 1))
    for g, row in enumerate(ways):
        n_ways[g, : len(row)] = [min(value, 2**1000) for value in row]
    most, most_big = int(effort * _MAX_MULTISETS), int(effort * _MAX_MULTISETS_BIG)
    counted = groups.count_multisets(costs, sizes, step, budget, threshold, window, n_ways, most)
    if counted < 0:
        return None
    if counted < 2**53:
        return int(counted)
    exact = getattr(groups.count_multisets, "py_func", groups.count_multisets)
    counted = exact(costs, sizes, step, budget, threshold, window, ways, most_big)
    return None if counted < 0 else int(counted)


def greatest_size(absent: FloatArray, present: FloatArray, threshold: float, hi: int) -> int:
    """Return a number of labels that no member of a row exceeds."""
    inside = present <= absent
    added = np.sort((present - absent)[~inside])
    budget = threshold * (1.0 + 1e-9) - float(np.minimum(absent, present).sum()) * (1.0 - 1e-9)
    return min(hi, int(inside.sum()) + int(np.searchsorted(np.cumsum(added), budget, side="right")))


def _bounds_of_any_size(absent: FloatArray, present: FloatArray, threshold: float, n_cells: int) -> tuple[float, float]:
    """Bound the number of label-sets of a row with total <= threshold by a table over quantised cost alone."""
    # Added up label by label, as searches do.
    base = float(np.cumsum(np.minimum(absent, present))[-1])
    relative = exact_sum.band(len(absent))
    largest = threshold * (1.0 + relative) - base
    if largest < 0.0:
        return 0.0, 0.0
    cell = largest / max(1.0, n_cells - 1.0) or 1.0
    prices = np.sort(np.abs(absent - present))
    prices = prices[prices <= largest]
    # A member has no more flips than the cheapest that fit together; sets that cost too much may have all of them.
    most = int(np.count_nonzero(np.cumsum(prices) * (1.0 - relative) <= largest))
    counts = np.zeros(n_cells + most + 2)
    counts[0] = 1.0
    for shift in np.rint(prices / cell).astype(np.int64).tolist():
        counts[shift:] += counts[: len(counts) - shift].copy()
    counts = np.cumsum(counts)
    margin = relative * threshold
    below = (threshold - margin - base) / cell - 0.5 * len(prices) * (1.0 + 1e-9) - 1e-9 * n_cells
    above = (threshold + margin - base) / cell + 0.5 * most * (1.0 + 1e-9) + 1e-9 * n_cells
    rounding = 4.0 * (len(absent) + len(counts)) * exact_sum.UNIT_ROUNDOFF
    last = len(counts) - 1
    lower = float(counts[min(int(below), last)]) * (1.0 - rounding) if below >= 0.0 else 0.0
    return lower, float(counts[min(int(above), last)]) * (1.0 + rounding)


def bounds_by_table(
    absent: FloatArray,
    present: FloatArray,
    threshold: float,
    limits: Bounds,
    n_cells: int = TABLE_CELLS,
    effort: float = 1.0,
) -> Bounds:
    """Bound the number of members of a row (d,) from a table over number of labels and quantised cost."""
    n_candidates = count_by_size(len(absent), *limits)
    greatest = greatest_size(absent, present, threshold, len(absent))
    is_cheap = effort == 1.0 or len(absent) * (n_cells + len(absent)) <= effort * _TABLE_WORK
    if greatest <= limits[1] and limits[0] <= 1 and n_cells <= MAX_TABLE and is_cheap:
        lower, upper = _bounds_of_any_size(absent, present, threshold, n_cells)
        n_left_out = int(limits[0] == 1 and math.fsum(absent) <= threshold)
        return _as_counts(lower, upper, n_left_out, n_candidates)
    hi = min(greatest, limits[1])
    if hi < limits[0]:
        return 0, 0
    rows = max(hi, int((present <= absent).sum())) + 1
    if rows * rows > MAX_TABLE:
        return 0, n_candidates
    affordable = int(np.count_nonzero(np.abs(absent - present) <= threshold)) + 1
    work = int(effort * _TABLE_WORK * max(1, n_cells // TABLE_CELLS))
    if effort < 1.0 and work // (rows * affordable) < _FEWEST_CELLS:
        return 0, n_candidates
    n_cells = max(_FEWEST_CELLS, min(n_cells, MAX_TABLE // rows - rows, work // (rows * affordable)))
    lowest, highest = np.empty(1), np.empty(1)
    table.bounds_row(absent, present, np.array([threshold]), (limits[0], hi), n_cells, lowest, highest)
    return _as_counts(lowest[0], highest[0], 0, n_candidates)


def _as_counts(lower: float, upper: float, n_left_out: int, n_candidates: int) -> Bounds:
    """Return bounds of a count from those of a table, which counts so many label-sets that are not candidates."""
    low = max(0, math.floor(min(lower, np.finfo(np.float64).max)) - n_left_out)
    high = n_candidates if np.isinf(upper) else min(n_candidates, math.ceil(upper) - n_left_out)
    return min(low, high), high


def count_row(
    absent: FloatArray, present: FloatArray, threshold: float, limits: Bounds, effort: float = 1.0, work_limit: int = 0
) -> Bounds:
    """Count or bound the members of one row (d,) that walking gave up on, with a share of the usual effort.

    If it gave up early, it walks on to `work_limit` steps, unless a rough table says that these cannot be enough.
    """
    everything = float(np.maximum(absent, present).sum()) * (1.0 + 1e-9)
    if everything <= threshold:
        return (count_by_size(len(absent), *limits),) * 2
    if work_limit:
        least, _ = bounds_by_table(absent, present, threshold, limits, _ROUGH_CELLS, _ROUGH_EFFORT)
        # A step counts pairs of flips, of which there are no more than labels for one of the two pointers.
        if least <= len(absent) * work_limit:
            (size,) = count_by_walk(absent[None], present[None], np.array([threshold]), limits, work_limit).tolist()
            if size >= 0:
                return size, size
    affordable = np.abs(absent - present) <= threshold
    pairs = np.column_stack([absent, present])[affordable]
    if len(np.unique(pairs, axis=0)) < len(pairs):
        exact = _count_by_groups(absent, present, threshold, limits, effort)
        if exact is not None:
            return exact, exact
    return bounds_by_table(absent, present, threshold, limits, effort=effort)


def table_counts(
    absent: FloatArray, present: FloatArray, thresholds: FloatArray, limits: Bounds, n_cells: int
) -> FloatArray:
    """Bound the candidates of a row (d,) within each of m ascending thresholds, (m, 2), from one table."""
    lower, upper = np.zeros((2, len(thresholds)))
    most = greatest_size(absent, present, float(thresholds[-1]), limits[1])
    if most >= limits[0]:
        table.bounds_row(absent, present, thresholds, (limits[0], most), n_cells, lower, upper)
    return np.column_stack([lower, upper])


def steps_to_rank(n_cells: int) -> int:
    """Return how many candidates are ranked one by one instead of by a table with so many cells."""
    return _LISTED_PER_CELL * n_cells


def rank_sum_of_row(
    costs: tuple[FloatArray, FloatArray], totals: FloatArray, limits: Bounds, size: int, n_cells: int
) -> tuple[float, float]:
    """Bound the sum over ascending calibration totals a of the number of candidates of a row (d,) within a.

    `size` is how many are within the largest of them, if they are few enough to be ranked one by one, else below 0.
    """
    if 0 <= size <= steps_to_rank(n_cells):
        return (_rank_sum_by_list(*costs, totals, limits, size),) * 2
    # Added up one after the other, which the last factor allows for.
    lower, upper = np.cumsum(table_counts(*costs, totals, limits, n_cells), axis=0)[-1].tolist()
    rounding = 4.0 * len(totals) * exact_sum.UNIT_ROUNDOFF
    return lower * (1.0 - rounding), upper * (1.0 + rounding)


def _rank_sum_by_list(absent: FloatArray, present: FloatArray, totals: FloatArray, limits: Bounds, size: int) -> float:
    """Rank every label-set of a row within the largest calibration total; `size` of them."""
    if size == 0:
        return 0.0
    words = np.empty((size, n_words(len(absent))), dtype=np.uint64)
    approximate = np.empty(size)
    walk.list_row(absent, present, totals[-1], limits, words, approximate)
    # A listed total is what the largest calibration total leaves: its error is relative to that one, not to itself.
    margin = exact_sum.band(len(absent)) * totals[-1]
    ranks = len(totals) - np.searchsorted(totals, approximate - margin)
    least = len(totals) - np.searchsorted(totals, approximate + margin, side="right")
    undecided = np.flatnonzero(ranks != least)
    exact = np.empty(len(undecided))
    exact_sum.totals_of_words(absent, present, words[undecided], exact)
    ranks[undecided] = len(totals) - np.searchsorted(totals, exact)
    return float(ranks.sum())
