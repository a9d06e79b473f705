"""Rows with few members: all of them, of all rows, in one call."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
from numba import njit

from surelabel._kernels.exact_sum import totals_of_words
from surelabel._kernels.walk import list_row

Array = npt.NDArray[Any]


@njit(cache=True, nogil=True)
def list_rows(
    absent: Array, present: Array, thresholds: Array, limits: Any, ends: Array, words: Array, totals: Array
) -> None:
    """Write the members of rows (n, d), packed, and their exact totals.

    Row i has as many members as lie between ends[i - 1] and ends[i]; that many rows of `words` (m, W) and `totals` (m,)
    are its own.
    """
    start = 0
    for i in range(absent.shape[0]):
        part, own = words[start : ends[i]], totals[start : ends[i]]
        list_row(absent[i], present[i], thresholds[i], limits, part, own)
        totals_of_words(absent[i], present[i], part, own)
        start = ends[i]
