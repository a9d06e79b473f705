"""Prediction sets of separable measures: output-sensitive, listing nothing unless asked for it (design 2.2 to 2.4)."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Self

import numpy as np

from surelabel._core.packing import Words, n_words, unpack
from surelabel._core.threads import BLOCK_ROWS, over_rows
from surelabel._core.validation import BoolArray, FloatArray, IntArray
from surelabel._kernels import exact_sum, forced, maximum, walk
from surelabel.engines.base import Engine, Member, Scored, Threshold, as_members, joined
from surelabel.engines.best_first import CostRow, best_first_order, best_of_rows, iterate_row, totals_of_words
from surelabel.engines.bounds import (
    as_float,
    bounds_by_table,
    count_by_walk,
    count_of_maximum,
    count_row,
    rank_sum_of_row,
    steps_to_rank,
    table_counts,
)
from surelabel.engines.sizes import Bounds, SizeBounds
from surelabel.labels.counting import count_by_size
from surelabel.measures import SeparableMeasure, costs_of

# Probabilities up to which an engine keeps their costs: some thousands of texts, 16 MB.
_KEPT_COSTS = 1_000_000
# Cells of the matrix that holds one label per row: 16 MiB.
_HELD_CELLS = 2**21
# Counts of all labels of a text may take so many times the work, and the time of tables, that one count may take.
_SHARED_WALKS, _SHARED_TABLES = 64, 2.0
# Up to so many members of each of many texts are taken in one call.
_MOST_AT_ONCE = 256
# Texts that are few enough not to compile a quicker search for them.
FEW_TEXTS = 64
# Steps of counting after which it is asked whether more can be enough.
FIRST_STEPS = 30_000
# Steps that counting one text at one of many thresholds may take. It is given up early if it would take so many times
# as many at the rate of its first steps: the rate changes by less on the way.
_MAX_STEPS, _UNSURE = 200_000, 1.5


def _keep_freed_memory() -> None:
    """Free one large array, once.

    The C library hands freed memory back to the system, and every block of costs then pays for fresh pages, until an
    array has been freed that is larger than a block's: from then on it keeps as much. Seen: a fifth of the time.
    """
    np.empty(_KEPT_COSTS)


_keep_freed_memory()


class DenseEngine(Engine):
    """Walks the subsets of affordable flips; past the work limit it answers with certified bounds."""

    _kept: tuple[FloatArray, FloatArray] | None = None

    def __getitem__(self, rows: slice) -> Self:
        kept = None if self._kept is None else (self._kept[0][rows], self._kept[1][rows])
        return self._with(probabilities=self.probabilities[rows], _kept=kept)

    @property
    def _measure(self) -> SeparableMeasure:
        return self.calibration.separable

    @property
    def is_maximum(self) -> bool:
        """Whether totals are the maximum of label costs instead of their sum."""
        return self._measure.aggregate == "max"

    def priced(self) -> Self:
        """Return the engine with the costs of all its texts kept, however many they are."""
        return self if self._kept is not None else self._with(_kept=costs_of(self._measure, self.probabilities))

    def costs(self, rows: slice) -> tuple[FloatArray, FloatArray]:
        """Return the (absent, present) costs of some texts; having a barred label costs more than any threshold."""
        absent, present = self.own_costs(rows)
        return absent, present if self.barred is None else np.where(self.barred[None, :], np.inf, present)

    def own_costs(self, rows: slice) -> tuple[FloatArray, FloatArray]:
        """Return the costs that the measure gives some texts.

        They are kept if texts are few, or are asked about one by one; for a pass over many blocks, fresh memory would
        take longer than pricing a block again.
        """
        if self._kept is None:
            is_pass = len(self) > BLOCK_ROWS and rows.stop - rows.start > 1
            if is_pass or self.probabilities.size > _KEPT_COSTS:
                return costs_of(self._measure, self.probabilities[rows])
            self._kept = costs_of(self._measure, self.probabilities)
        return self._kept[0][rows], self._kept[1][rows]

    def membership(self, thresholds: FloatArray, rows: slice) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return costs and thresholds of a *sum* that has the same members.

        For a maximum, a label costs 0 if it is within the threshold and 1 if it is over, and the threshold is 0. An
        infinite threshold becomes one that no label-set passes.
        """
        absent, present = self.costs(rows)
        thresholds = self._finite(thresholds, rows)
        if self.is_maximum:
            at = thresholds[:, None]
            over = (absent > at).astype(np.float64), (present > at).astype(np.float64)
            return *over, np.where(np.isneginf(thresholds), -np.inf, 0.0)
        return absent, present, thresholds

    def _finite(self, thresholds: FloatArray, rows: slice) -> FloatArray:
        """Return thresholds with infinite ones made finite, so large that nothing but barred labels passes them."""
        if not np.isposinf(thresholds).any():
            return thresholds
        largest = np.maximum(*self.own_costs(rows))
        no_limit = largest.max(axis=1) if self.is_maximum else 2.0 * largest.sum(axis=1) + 1.0
        return np.where(np.isposinf(thresholds), no_limit, thresholds)

    def _one(self, row: int, threshold: Threshold) -> tuple[FloatArray, FloatArray, float]:
        """Return the same for one text: costs (d,) and its threshold."""
        absent, present, at = self.membership(np.array([threshold], dtype=np.float64), slice(row, row + 1))
        return absent[0], present[0], float(at[0])

    def totals(self, labels: BoolArray) -> FloatArray:
        """Add costs up, correctly rounded."""
        totals = np.empty(len(self))

        def add(rows: slice) -> None:
            absent, present = self.costs(rows)
            if self.is_maximum:
                totals[rows] = np.where(labels[rows], present, absent).max(axis=1)
            else:
                exact_sum.totals_of_rows(absent, present, labels[rows], totals[rows])

        over_rows(add, len(self), self.n_jobs)
        return totals

    def forced(self) -> tuple[BoolArray, FloatArray]:
        """Find the two cheapest by exchanges."""
        find = maximum.forced_rows_maximum if self.is_maximum else forced.forced_rows

        def block(rows: slice) -> tuple[BoolArray, FloatArray]:
            absent, present = self.costs(rows)
            labels, totals = np.empty(absent.shape, dtype=np.uint8), np.empty((len(absent), 2))
            find(absent, present, self.limits, labels, totals)
            return labels.view(np.bool_), totals

        if len(self) <= FEW_TEXTS and not self.is_maximum:
            return self._forced_of_few(block)
        return joined(over_rows(block, len(self), self.n_jobs))

    def _forced_of_few(self, block: Callable[[slice], tuple[BoolArray, FloatArray]]) -> tuple[BoolArray, FloatArray]:
        """Take the two best, so that `top` and this need one search; if too many are tied, find them by exchanges."""
        n_texts = len(self)
        absent, present, at = self.membership(np.full(n_texts, np.inf), slice(0, n_texts))
        best, _ = best_of_rows(absent, present, at, self.limits, 2)
        first, counts = np.searchsorted(best.places, np.arange(n_texts)), np.bincount(best.places, minlength=n_texts)
        if not counts.all():
            return block(slice(0, n_texts))
        totals = np.full((n_texts, 2), np.inf)
        totals[best.places, np.arange(len(best.places)) - first[best.places]] = best.totals
        return unpack(best.words[first], self.n_labels), totals

    def _bounds(self, thresholds: FloatArray, rows: slice) -> SizeBounds:
        """Count by walking; past the work limit by groups of equal costs, then by a table."""
        absent, present, within = self.membership(thresholds, rows)
        limited = ~np.isposinf(thresholds)
        if limited.all():
            return self.counted(absent, present, within)
        bounds = SizeBounds.of([(self.n_candidates,) * 2] * len(limited))
        bounds.put(limited, self.counted(absent[limited], present[limited], within[limited]))
        return bounds

    def counted(self, absent: FloatArray, present: FloatArray, thresholds: FloatArray, n_shares: int = 1) -> SizeBounds:
        """Count or bound the members of rows of costs (m, d); `n_shares` rows share the work that a text may take."""
        if self.is_maximum:
            exact = [count_of_maximum(*row, self.limits) for row in zip(absent, present, thresholds, strict=True)]
            return SizeBounds.of((size, size) for size in exact)
        limit = max(1, min(self.work_limit, _SHARED_WALKS * self.work_limit // n_shares))
        sizes = count_by_walk(absent, present, thresholds, self.limits, min(limit, FIRST_STEPS))
        rest = limit if limit > FIRST_STEPS else 0
        effort = min(1.0, _SHARED_TABLES / n_shares)
        bounds = SizeBounds(sizes, sizes.copy())
        for i in np.flatnonzero(sizes < 0).tolist():
            bounds[i] = count_row(absent[i], present[i], float(thresholds[i]), self.limits, effort, rest)
        return bounds

    def finer_bounds(self, row: int, threshold: Threshold, n_cells: int) -> Bounds:
        """Bound by a table over number of labels and quantised cost."""
        return bounds_by_table(*self._one(row, threshold), self.limits, n_cells)

    def iterate(self, row: int, threshold: Threshold) -> Iterator[Scored]:
        """Yield members by a heap."""
        text = slice(row, row + 1)
        absent, present = (costs[0] for costs in self.costs(text))
        at = float(self._finite(np.array([threshold], dtype=np.float64), text)[0])
        for totals, words in iterate_row(CostRow(absent, present, at, self.limits, self.is_maximum)):
            yield from zip(totals.tolist(), self._unpacked(words), strict=True)

    def _unpacked(self, words: Words) -> list[Member]:
        """Return packed label-sets as ascending label indices."""
        return as_members(unpack(words, self.n_labels))

    def members(self, row: int, threshold: Threshold, limit: int) -> BoolArray:
        """List by walking and sort if all members fit; take the best by a heap if they are few, or do not fit."""
        absent, present, at = self._one(row, threshold)
        one = absent[None, :], present[None, :], np.array([at])
        size = self.n_candidates if threshold == math.inf else self.counted(*one)[0][1]
        if size > limit:
            return np.asarray(super().members(row, threshold, limit))
        if size <= _MOST_AT_ONCE and not self.is_maximum:
            best, left_out = best_of_rows(*one, self.limits, size)
            if len(left_out) == 0:
                return unpack(best.words, self.n_labels)
        words = np.empty((size, n_words(self.n_labels)), dtype=np.uint64)
        n_found = walk.list_row(absent, present, at, self.limits, words, np.empty(0))
        words = words[:n_found]
        if self.is_maximum:
            absent, present = (costs[0] for costs in self.costs(slice(row, row + 1)))
        totals = totals_of_words(absent, present, words, self.is_maximum)
        return unpack(words[best_first_order(totals, words)], self.n_labels)

    def top(self, k: int, thresholds: FloatArray, rows: IntArray) -> list[list[Scored]]:
        """Take the best of many texts in one call, unless k is large, or totals are a maximum."""
        if self.is_maximum or k > _MOST_AT_ONCE:
            return super().top(k, thresholds, rows)
        tops: dict[int, list[Scored]] = {row: [] for row in rows.tolist()}
        ascending = np.sort(rows)
        for start in range(0, len(rows), BLOCK_ROWS):
            block = ascending[start : start + BLOCK_ROWS]
            part = slice(int(block[0]), int(block[-1]) + 1)
            membership = self.membership(thresholds[part], part)
            absent, present, at = (values[block - part.start] for values in membership)
            best, left_out = best_of_rows(absent, present, at, self.limits, k)
            scored = zip(best.totals.tolist(), self._unpacked(best.words), strict=True)
            for row, one in zip(block[best.places].tolist(), scored, strict=True):
                tops[row].append(one)
            for row in block[left_out].tolist():
                tops[row] = super().top(k, thresholds, np.array([row]))[0]
        return list(tops.values())

    def with_label(self, row: int, threshold: Threshold, labels: Sequence[int]) -> list[Bounds]:
        """Count the members that have label k with k's absence made unaffordable, for each k of some labels."""
        if np.isposinf(threshold):
            lo, hi = self.limits
            every = count_by_size(self.n_free - 1, max(lo, 1) - 1, hi - 1)
            return [(0, 0) if self.is_barred(label) else (every, every) for label in labels]
        absent, present, at = self._one(row, threshold)
        step = max(1, _HELD_CELLS // self.n_labels)
        bounds: list[Bounds] = []
        for start in range(0, len(labels), step):
            held = np.asarray(labels[start : start + step], dtype=np.intp)
            without = np.tile(absent, (len(held), 1))
            without[np.arange(len(held)), held] = np.inf
            bounds += self.counted(without, np.tile(present, (len(held), 1)), np.full(len(held), at), len(labels))
        return bounds

    def reachable(self, thresholds: FloatArray, rows: slice) -> BoolArray:
        """Hold each label in turn: the cheapest label-set with it is one exchange away from the cheapest."""
        reachable = np.empty((len(thresholds), self.n_labels, 2), dtype=np.bool_)

        def look(block: slice) -> None:
            part = slice(rows.start + block.start, rows.start + block.stop)
            absent, present, at = self.membership(thresholds[block], part)
            forced.reachable_rows(absent, present, at, self.limits, reachable[block])

        over_rows(look, len(thresholds), self.n_jobs)
        return reachable

    def relaxation(self, row: int, threshold: Threshold) -> tuple[FloatArray, FloatArray, float]:
        """Return the costs themselves: no label-set but the members is within the threshold."""
        return self._one(row, threshold)

    def _counts_at(self, thresholds: FloatArray, n_cells: int) -> FloatArray:
        """Walk from the lowest threshold up, until one takes too many steps; a table bounds the rest of them.

        After some steps the table, and what they have counted, tell whether more can be enough.
        """
        absent, present = self.costs(slice(0, len(self)))
        bounds = np.empty((len(self), len(thresholds), 2))
        if self.is_maximum:
            for j, at in enumerate(thresholds):
                over = zip((absent > at) * 1.0, (present > at) * 1.0, strict=True)
                counts = [as_float(count_of_maximum(*row, 0.0, self.limits)) for row in over]
                bounds[:, j] = np.array(counts)[:, None]
            return bounds
        table_of = functools.cache(lambda i: table_counts(absent[i], present[i], thresholds, self.limits, n_cells))
        is_left = np.ones(len(self), dtype=np.bool_)
        for j, at in enumerate(thresholds):
            rows = np.flatnonzero(is_left)
            sizes = count_by_walk(absent[rows], present[rows], np.full(len(rows), at), self.limits, FIRST_STEPS)
            bounds[rows, j] = sizes[:, None]
            for i, size in zip(rows[sizes < 0].tolist(), sizes[sizes < 0].tolist(), strict=True):
                counted = max(1, walk.OVER_LIMIT - size)
                if table_of(i)[j, 0] / counted * FIRST_STEPS <= _UNSURE * _MAX_STEPS:
                    one = slice(i, i + 1)
                    bounds[i, j] = count_by_walk(
                        absent[one], present[one], thresholds[j : j + 1], self.limits, _MAX_STEPS
                    )
                is_left[i] = bounds[i, j, 0] >= 0
                if not is_left[i]:
                    bounds[i, j:] = table_of(i)[j:]
        return bounds

    def _rank_sums(self, n_cells: int) -> FloatArray:
        """List and rank the candidates within the largest calibration total if they are few, else bound by a table."""
        if self.is_maximum:
            return super()._rank_sums(n_cells)
        absent, present = self.costs(slice(0, len(self)))
        totals = self.calibration.totals
        largest = np.full(len(self), totals[-1])
        sizes = count_by_walk(absent, present, largest, self.limits, steps_to_rank(n_cells)).tolist()
        rows = zip(zip(absent, present, strict=True), sizes, strict=True)
        sums = [rank_sum_of_row(costs, totals, self.limits, size, n_cells) for costs, size in rows]
        return np.asarray(np.minimum(sums, as_float(self.n_candidates * len(totals))))
