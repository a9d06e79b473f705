"""Prediction sets of separable measures: output-sensitive, listing nothing unless asked for it (design 2.2 to 2.4)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from surelabel._core.validation import BoolArray, FloatArray
from surelabel.calibration import Calibration, binomials
from surelabel.engines.best_first import iterate_best_first
from surelabel.engines.counting import bounds_by_table, count_by_walk, count_of_maximum, count_row
from surelabel.engines.cut import Cut, Words, best_first_order, n_words, over_rows, totals_of_words
from surelabel.engines.sizes import Bounds, SizeBounds
from surelabel.measures import costs_of

__all__ = ["SeparableEngine"]

# Cells of the matrix that holds one label a row: 16 MiB.
_HELD_CELLS = 2**21


class SeparableEngine:
    """Walks the subsets of affordable flips; past the work limit it answers with certified bounds."""

    def bounds(self, cut: Cut, rows: range) -> SizeBounds:
        """Count by walking; past the work limit by groups of equal costs, then by a table."""

        def count(block: slice) -> SizeBounds:
            return _count_block(cut, slice(block.start + rows.start, block.stop + rows.start))

        return SizeBounds.joined(over_rows(count, len(rows), cut.n_jobs))

    def members(self, cut: Cut, row: int, limit: int) -> Words:
        """List by walking and sort where all members fit; take the best by a heap where they do not."""
        from surelabel._kernels import walk  # noqa: PLC0415

        width = n_words(cut.calibration.n_labels)
        _, upper = self.bounds(cut, range(row, row + 1))[0]
        if upper > limit:
            best = [words for _, words in itertools.islice(iterate_best_first(cut, row), limit)]
            return np.array(best, dtype=np.uint64).reshape(len(best), width)
        absent, present, thresholds = cut.membership(slice(row, row + 1))
        words = np.empty((upper, width), dtype=np.uint64)
        found = walk.list_row(absent[0], present[0], thresholds[0], cut.calibration.limits, words, np.empty(0))
        words = words[:found]
        return words[best_first_order(totals_of_words(cut, row, words), words)]

    def iterate(self, cut: Cut, row: int) -> Iterator[tuple[float, Words]]:
        """Yield members by a heap, best first."""
        return iterate_best_first(cut, row)

    def with_label(self, cut: Cut, row: int, labels: Sequence[int]) -> list[Bounds]:
        """Count the members that have label k with k's absence made unaffordable, for each k of some labels."""
        n_labels = cut.calibration.n_labels
        if np.isposinf(cut.thresholds[row]):
            lo, hi = cut.calibration.limits
            every = sum(binomials(n_labels - 1)[max(lo, 1) - 1 : hi])
            return [(every, every)] * len(labels)
        absent, present, thresholds = cut.membership(slice(row, row + 1))
        step = max(1, _HELD_CELLS // n_labels)
        bounds: list[Bounds] = []
        for start in range(0, len(labels), step):
            held = np.asarray(labels[start : start + step], dtype=np.intp)
            without = np.repeat(absent, len(held), axis=0)
            without[np.arange(len(held)), held] = np.inf
            shared = np.broadcast_to(present, without.shape)
            at = np.repeat(thresholds, len(held))
            bounds += _count_rows(without, np.ascontiguousarray(shared), at, cut)
        return bounds

    def reachable(self, cut: Cut, rows: slice) -> BoolArray:
        """Hold each label in turn: the cheapest label-set with it is one exchange away from the cheapest."""
        from surelabel._kernels import forced  # noqa: PLC0415

        reachable = np.empty((rows.stop - rows.start, cut.calibration.n_labels, 2), dtype=np.bool_)

        def look(block: slice) -> None:
            absent, present, thresholds = cut.membership(slice(rows.start + block.start, rows.start + block.stop))
            forced.reachable_rows(absent, present, thresholds, cut.calibration.limits, reachable[block])

        over_rows(look, len(reachable), cut.n_jobs)
        return reachable

    def forced(self, calibration: Calibration, probabilities: FloatArray) -> tuple[BoolArray, FloatArray]:
        """Find the two cheapest by exchanges."""
        measure = calibration.separable_measure
        assert measure is not None
        absent, present = costs_of(measure, probabilities)
        labels = np.empty(probabilities.shape, dtype=np.uint8)
        totals = np.empty((len(probabilities), 2))
        if measure.aggregate == "max":
            from surelabel._kernels import maximum  # noqa: PLC0415

            maximum.forced_rows_maximum(absent, present, calibration.limits, labels, totals)
        else:
            from surelabel._kernels import forced  # noqa: PLC0415

            forced.forced_rows(absent, present, calibration.limits, labels, totals)
        return labels.view(np.bool_), totals

    def relaxation(self, cut: Cut, row: int) -> tuple[FloatArray, FloatArray, float]:
        """Return the costs themselves: no label-set but the members is within the threshold."""
        absent, present, thresholds = cut.membership(slice(row, row + 1))
        return absent[0], present[0], float(thresholds[0])

    def bounds_with_cells(self, cut: Cut, row: int, n_cells: int) -> Bounds:
        """Bound by a table over number of labels and quantised cost."""
        return bounds_by_table(*self.relaxation(cut, row), cut.calibration.limits, n_cells)


def _count_block(cut: Cut, rows: slice) -> SizeBounds:
    """Count or bound the members of a block of rows."""
    absent, present, thresholds = cut.membership(rows)
    limited = ~np.isposinf(cut.thresholds[rows])
    if limited.all():
        return _count_rows(absent, present, thresholds, cut)
    every = cut.calibration.n_candidates
    bounds = SizeBounds.of([(every, every)] * len(limited))
    bounds.put(limited, _count_rows(absent[limited], present[limited], thresholds[limited], cut))
    return bounds


def _count_rows(absent: FloatArray, present: FloatArray, thresholds: FloatArray, cut: Cut) -> SizeBounds:
    """Count or bound the members of rows of costs (m, d): by walking, and where that gives up by other means."""
    limits = cut.calibration.limits
    if cut.is_maximum:
        exact = [count_of_maximum(*row, limits) for row in zip(absent, present, thresholds, strict=True)]
        return SizeBounds.of((size, size) for size in exact)
    sizes, _ = count_by_walk(absent, present, thresholds, limits, cut.work_limit)
    bounds = SizeBounds(sizes, sizes.copy())
    for i in np.flatnonzero(sizes < 0).tolist():
        bounds[i] = count_row(absent[i], present[i], float(thresholds[i]), limits)
    return bounds
