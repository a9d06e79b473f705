"""Members of a prediction set in order of ascending total, as many as are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from surelabel._core.validation import FloatArray
from surelabel.engines.cut import Cut, Words, best_first_order, n_words, pack, totals_by_words
from surelabel.engines.sizes import Bounds

__all__ = ["CostRow", "iterate_best_first", "iterate_row", "most_tied"]

# Running totals of the heap drift from the exact ones by less than this, for millions of steps.
_DRIFT = 1e-9
# Labels in all of the label-sets of equal total that are held back to give them in lexicographic order.
_MOST_TIED_LABELS = 2**20


def most_tied(n_labels: int) -> int:
    """Return how many label-sets of equal total are held back to give them in lexicographic order."""
    return max(256, _MOST_TIED_LABELS // max(64, n_labels))


class CostRow(NamedTuple):
    """One text's costs (d,), absent and present, cut at a threshold."""

    absent: FloatArray
    present: FloatArray
    threshold: float
    limits: Bounds
    is_maximum: bool


class _Frontier:
    """The heap of a row: what has been found reachable and not been given yet."""

    def __init__(self, row: CostRow) -> None:
        from surelabel._kernels import best_first  # noqa: PLC0415

        self._kernel = best_first
        absent, present, threshold, limits, is_maximum = row
        inside = present <= absent
        kept, flipped = np.minimum(absent, present), np.maximum(absent, present)
        base = float(kept.max() if is_maximum else kept.sum())
        prices = flipped if is_maximum else flipped - kept
        room = threshold if is_maximum else threshold - base + _DRIFT * max(threshold, 0.0)
        self._limit = threshold * (1.0 + _DRIFT)
        additions = self._sorted(prices, ~inside & (prices <= room))
        removals = self._sorted(prices, inside & (prices <= room))
        self._index = (additions, removals)
        self._flips = best_first.SortedFlips(prices[additions], prices[removals], base, is_maximum)
        self._start = pack(inside[None, :])[0]
        self._sizes = (int(inside.sum()), limits[1])
        self._arrays = self._allocate(64)
        self._open(limits[0])

    @staticmethod
    def _sorted(prices: FloatArray, which: Any) -> Any:
        """Return the chosen labels, cheapest flip first."""
        labels = np.flatnonzero(which)
        return labels[np.argsort(prices[labels], kind="stable")]

    def _allocate(self, capacity: int) -> Any:
        """Make a frontier with room for so many nodes."""
        return self._kernel.Frontier(
            np.empty(capacity),
            np.empty(capacity, dtype=np.int64),
            np.empty((capacity, self._kernel.N_COLUMNS), dtype=np.int64),
            np.empty((capacity, 2), dtype=np.int64),
            np.zeros(4, dtype=np.int64),
        )

    def _reserve(self, more: int) -> None:
        """Make room for `more` nodes and links."""
        old = self._arrays
        needed = int(max(old.state[1], old.state[2])) + more
        if needed > len(old.keys):
            new = self._allocate(max(needed, 2 * len(old.keys)))
            for before, after in zip(old, new, strict=True):
                after[: len(before)] = before
            self._arrays = new

    def _open(self, min_labels: int) -> None:
        """Open, for each number of removals, the class with the fewest additions that the limits allow."""
        size, hi = self._sizes
        n_add, n_remove = len(self._index[0]), len(self._index[1])
        self._reserve(n_remove + 1)
        for removed in range(max(0, size - hi), n_remove + 1):
            added = max(0, min_labels - size + removed)
            if added <= n_add:
                self._kernel.open_class(self._arrays, self._flips, added, removed)

    @property
    def next_total(self) -> float:
        """Running total of the next label-set, inf where none is left."""
        return float(self._arrays.keys[0]) if self._arrays.state[0] > 0 else np.inf

    @property
    def is_open(self) -> bool:
        """Whether a label-set is left that may be within the threshold."""
        return bool(self._arrays.state[0] > 0) and self.next_total <= self._limit

    def take(self, count: int) -> Words:
        """Take up to `count` label-sets, packed."""
        self._reserve(self._kernel.MAX_CHILDREN * count)
        words = np.empty((count, len(self._start)), dtype=np.uint64)
        keys = np.empty(count)
        taken = self._kernel.take(self._arrays, self._flips, self._index, self._sizes, self._start, words, keys)
        return words[:taken]


def iterate_best_first(cut: Cut, row: int) -> Iterator[tuple[float, Words]]:
    """Yield (total, packed label-set) of a text's members by ascending total, as `iterate_row`."""
    absent, present = cut.costs(slice(row, row + 1))
    limits = cut.calibration.limits
    return iterate_row(CostRow(absent[0], present[0], float(cut.thresholds[row]), limits, cut.is_maximum))


def iterate_row(row: CostRow) -> Iterator[tuple[float, Words]]:
    """Yield (total, packed label-set) of a row's members by ascending total.

    Label-sets of equal total come in lexicographic order of their 0/1 rows, as long as no more than 2^20 / max(64, d)
    are tied, or so near to each other that running totals cannot tell; past that, in an order that depends on nothing
    but the row.
    """
    if np.isneginf(row.threshold):
        return
    frontier = _Frontier(row)
    n_labels = len(row.absent)
    waiting = np.empty((0, n_words(n_labels)), dtype=np.uint64)
    totals = np.empty(0)
    most_ties = most_tied(n_labels)
    batch = 16
    while len(waiting) or frontier.is_open:
        if frontier.is_open:
            taken = frontier.take(batch)
            batch = min(2 * batch, most_ties)
            waiting = np.concatenate([waiting, taken])
            totals = np.concatenate([totals, totals_by_words(row.absent, row.present, taken, row.is_maximum)])
        order = best_first_order(totals, waiting)
        waiting, totals = waiting[order], totals[order]
        # What is still in the heap may have any total from here on.
        settled = len(totals)
        if frontier.is_open:
            settled = int(np.searchsorted(totals, frontier.next_total * (1.0 - _DRIFT), side="left"))
        if settled == 0 and len(waiting) >= most_ties:
            settled = len(waiting)
        # Members may follow a label-set that is over by less than the drift, where too many are tied to be sorted.
        within = totals[:settled] <= row.threshold
        yield from zip(totals[:settled][within].tolist(), waiting[:settled][within], strict=True)
        waiting, totals = waiting[settled:], totals[settled:]
