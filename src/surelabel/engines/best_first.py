"""Members of a prediction set in order of ascending total, as many as are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from surelabel._core.packing import Words, n_words, unpack
from surelabel._core.validation import FloatArray, IntArray
from surelabel._kernels import best_first as kernel
from surelabel._kernels import exact_sum
from surelabel.engines.sizes import Bounds

# Labels in all of the label-sets of equal total that are held back to give them in lexicographic order.
_MOST_TIED_LABELS = 2**20


def most_tied(n_labels: int) -> int:
    """Return how many label-sets of equal total are held back to give them in lexicographic order."""
    return max(256, _MOST_TIED_LABELS // max(64, n_labels))


def best_first_order(totals: FloatArray, words: Words) -> npt.NDArray[np.intp]:
    """Return the order by total, label-sets of equal total lexicographically by 0/1 row."""
    return np.lexsort((*words.T[::-1], totals))


def totals_of_words(absent: FloatArray, present: FloatArray, words: Words, is_maximum: bool) -> FloatArray:
    """Return the totals of packed label-sets (m, W) of a row of costs (d,)."""
    if is_maximum:
        return np.asarray(np.where(unpack(words, len(absent)), present, absent).max(axis=1))
    totals = np.empty(len(words))
    exact_sum.totals_of_words(absent, present, words, totals)
    return totals


class CostRow(NamedTuple):
    """One text's costs (d,), absent and present, with a threshold."""

    absent: FloatArray
    present: FloatArray
    threshold: float
    limits: Bounds
    is_maximum: bool


class Listed(NamedTuple):
    """Label-sets of some rows, by row and best first: places of their rows, exact totals, packed label-sets."""

    places: npt.NDArray[np.intp]
    totals: FloatArray
    words: Words


def best_of_rows(
    absent: FloatArray, present: FloatArray, thresholds: FloatArray, limits: Bounds, k: int
) -> tuple[Listed, IntArray]:
    """Return the k best members of each of some rows (n, d) whose totals are sums, and the places of rows left out.

    Rows are left out if too many label-sets are tied with the k-th: `iterate_row` can wait for these.
    """
    n_rows, capacity = len(absent), 2 * k + 16
    words = np.empty((n_rows * capacity, n_words(absent.shape[1])), dtype=np.uint64)
    totals, ends = np.empty(len(words)), np.empty(n_rows, dtype=np.int64)
    n_left_out = kernel.take_rows(absent, present, thresholds, limits, k, words, totals, ends)
    taken, totals = words[: ends[-1]], totals[: ends[-1]]
    counts = ends.copy()
    counts[1:] -= ends[:-1]
    # A row without members gets none too: it is asked about once more, for nothing.
    left_out = np.flatnonzero(counts == 0) if n_left_out else np.empty(0, dtype=np.int64)
    places = np.repeat(np.arange(n_rows), counts)
    order = np.lexsort((*taken.T[::-1], totals, places))
    # Each row's label-sets stay where they are as a block: the best come first in it.
    rank = np.arange(len(taken)) - (ends - counts)[places]
    kept = order[(rank < k) & (totals[order] <= thresholds[places])]
    return Listed(places[kept], totals[kept], taken[kept]), left_out


def iterate_row(row: CostRow) -> Iterator[tuple[FloatArray, Words]]:
    """Yield runs of (totals, packed label-sets) of a row's members by ascending total.

    Label-sets of equal total come in lexicographic order of their 0/1 rows, as long as no more than 2^20 / max(64, d)
    are tied, or so near to each other that running totals cannot tell; past that, in an order that depends on nothing
    but the row.
    """
    if np.isneginf(row.threshold):
        return
    n_labels = len(row.absent)
    frontier, is_open = kernel.make_frontier(0, n_labels), True
    waiting = np.empty((0, n_words(n_labels)), dtype=np.uint64)
    totals = np.empty(0)
    most_ties = most_tied(n_labels)
    batch = 16
    while len(waiting) or is_open:
        if is_open:
            frontier = frontier.with_room(batch, n_labels)
            taken, new = kernel.take(*row, frontier, batch)
            is_open = frontier.has_next and frontier.next_total <= row.threshold * (1.0 + kernel.DRIFT)
            batch = min(2 * batch, most_ties)
            waiting, totals = np.concatenate([waiting, taken]), np.concatenate([totals, new])
        order = best_first_order(totals, waiting)
        waiting, totals = waiting[order], totals[order]
        # What is still in the heap may have any total from here on.
        settled = len(totals)
        if is_open:
            settled = int(np.searchsorted(totals, frontier.next_total * (1.0 - kernel.DRIFT), side="left"))
        if settled == 0 and len(waiting) >= most_ties:
            settled = len(waiting)
        # Members may follow a label-set that is over by less than the drift, if too many are tied to be sorted.
        within = totals[:settled] <= row.threshold
        yield totals[:settled][within], waiting[:settled][within]
        waiting, totals = waiting[settled:], totals[settled:]
