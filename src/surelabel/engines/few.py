"""The best members of many small prediction sets at once: listing and sorting all is quicker than a heap each."""

from __future__ import annotations

import numpy as np

from surelabel._core.validation import FloatArray
from surelabel.engines.cut import Cut, IntArray, Words, n_words

__all__ = ["FEW", "best_of_few", "can_be_listed"]

# Sets with more members are left to the heap.
FEW = 64


def can_be_listed(cut: Cut) -> bool:
    """Tell whether `best_of_few` knows the cut's measure: costs that add up, and no constraints."""
    return cut.calibration.is_separable and not cut.is_maximum


def best_of_few(cut: Cut, rows: IntArray, sizes: IntArray, k: int) -> tuple[IntArray, FloatArray, Words]:
    """Return the k best members of each of some rows, whose sizes are known.

    Parameters
    ----------
    cut : Cut
    rows : (n,) int64
        Ascending, and near to each other: costs are computed for all between the first and the last.
    sizes : (n,) int64
        How many members each of them has, at most FEW.
    k : int

    Returns
    -------
    which : (m,) int64
        The row of each member; in the order of `rows`, best members first.
    totals : (m,) float64
    words : (m, W) uint64
    """
    from surelabel._kernels import few  # noqa: PLC0415

    calibration = cut.calibration
    part = slice(int(rows[0]), int(rows[-1]) + 1)
    absent, present, thresholds = (costs[rows - part.start] for costs in cut.membership(part))
    ends = np.cumsum(sizes)
    words = np.empty((int(ends[-1]), n_words(calibration.n_labels)), dtype=np.uint64)
    totals = np.empty(len(words))
    few.list_rows(absent, present, thresholds, calibration.limits, ends, words, totals)
    place = np.repeat(np.arange(len(rows)), sizes)
    order = np.lexsort((*words.T[::-1], totals, place))
    rank = np.arange(len(words)) - np.repeat(ends - sizes, sizes)
    kept = order[rank < k]
    return rows[place[kept]], totals[kept], words[kept]
