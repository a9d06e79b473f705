"""Prediction sets of measures whose labels interact, and of constrained label-sets: by a tree of flips (design 2.5)."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Self

import numpy as np

from surelabel._core.packing import unpack
from surelabel._core.threads import over_rows
from surelabel._core.validation import BoolArray, FloatArray
from surelabel.engines.base import WORK_LIMIT, Engine, Scored, Threshold, as_members, joined
from surelabel.engines.bounds import TABLE_CELLS, bounds_by_table, count_of_maximum
from surelabel.engines.forms import Problem, problem_of
from surelabel.engines.sizes import Bounds, SizeBounds
from surelabel.engines.sums import counts_of_row
from surelabel.engines.walker import Walker
from surelabel.exceptions import SearchLimitError
from surelabel.labels.constraints import LabelConstraints

# Finding the best label-sets has no bounds to fall back on: it may take so many times the work of counting.
_PATIENCE = 64
# Members that are looked at for the labels they have, before each label is searched for.
_LOOKED_AT = 2**14


def found_within_work(engine: Engine, thresholds: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return how many members of each text are met within the work limit, and whether these are all of them."""
    walker, every = Walker(engine), float(engine.n_candidates)
    counts = np.where(thresholds > 0, every, 0.0)
    complete = np.ones(len(counts), dtype=np.bool_)
    for row in np.flatnonzero(np.isfinite(thresholds)).tolist():
        walked = walker.count(row, float(thresholds[row]), engine.work_limit)
        counts[row], complete[row] = walked.n_members, walked.complete
    return counts, complete


class InteractingEngine(Engine):
    """Walks trees; past the work limit it answers with certified bounds."""

    @property
    def _problem(self) -> Problem:
        """Base, penalties and rules of the measure."""
        return problem_of(self.calibration, self.limits)

    def without(self, barred: BoolArray) -> Self:
        """Take it as a constraint."""
        rules = self.calibration.constraints or LabelConstraints()
        ruled = dataclasses.replace(rules, at_most=(*rules.at_most, (0, tuple(np.flatnonzero(barred).tolist()))))
        return self._with(calibration=dataclasses.replace(self.calibration, constraints=ruled))

    def forced(self) -> tuple[BoolArray, FloatArray]:
        """Take the two best without a threshold; the work that may take does not depend on `work_limit`."""
        patient = self.with_work_limit(WORK_LIMIT)

        def block(rows: slice) -> tuple[BoolArray, FloatArray]:
            best = [list(itertools.islice(patient.iterate(row, math.inf), 2)) for row in range(rows.start, rows.stop)]
            totals = [[total for total, _ in scored] + [math.inf] * (2 - len(scored)) for scored in best]
            return self.as_rows([scored[0][1] for scored in best]), np.array(totals)

        return joined(over_rows(block, len(self), self.n_jobs))

    def _bounds(self, thresholds: FloatArray, rows: slice) -> SizeBounds:
        """Count by walking; past the work limit bound by sums of costs below and above the measure."""
        walker, texts = Walker(self), range(rows.start, rows.stop)
        return SizeBounds.of(self._count(walker, row, at) for row, at in zip(texts, thresholds.tolist(), strict=True))

    def _count(self, walker: Walker, row: int, threshold: float) -> Bounds:
        """Count or bound the members of one text."""
        if math.isinf(threshold):
            return (self.n_candidates if threshold > 0 else 0,) * 2
        walked = walker.count(row, threshold, self.work_limit)
        if walked.complete:
            return walked.n_members, walked.n_members
        lower, upper = self.finer_bounds(row, threshold, TABLE_CELLS)
        return max(lower, walked.n_members), upper

    def finer_bounds(self, row: int, threshold: Threshold, n_cells: int) -> Bounds:
        """Bound from above by costs below the measure, and from below by costs above it."""
        within, around = self._problem.sides(self.probabilities[row], float(threshold))
        if around[2] < 0:
            return 0, 0
        if self._problem.is_maximum:
            return 0, min(self.n_candidates, count_of_maximum(*around, self.limits))
        upper = min(self.n_candidates, bounds_by_table(*around, self.limits, n_cells)[1])
        if within is None or within[2] < 0:
            return 0, upper
        return min(upper, bounds_by_table(*within, self.limits, n_cells)[0]), upper

    def iterate(self, row: int, threshold: Threshold) -> Iterator[Scored]:
        """Yield members by ever larger thresholds."""
        if threshold == -math.inf:
            return
        for totals, words in Walker(self).ascending(row, float(threshold), _PATIENCE * self.work_limit):
            yield from zip(totals.tolist(), as_members(unpack(words, self.n_labels)), strict=True)

    def members(self, row: int, threshold: Threshold, limit: int) -> BoolArray:
        """List and sort if all members fit; take the best, of ever larger thresholds, if they do not."""
        if math.isfinite(threshold) and limit > 0:
            words, _, walked = Walker(self).collect(row, float(threshold), self.work_limit, limit)
            if walked.complete:
                return unpack(words, self.n_labels)
        return np.asarray(super().members(row, threshold, limit))

    def with_label(self, row: int, threshold: Threshold, labels: Sequence[int]) -> list[Bounds]:
        """Count labels of members while walking; if that gives up, no label has more members than there are."""
        if threshold == -math.inf:
            return [(0, 0)] * len(labels)
        walked = Walker(self).count(row, float(threshold), self.work_limit, by_label=True)
        upper = 0 if walked.complete else self.finer_bounds(row, threshold, TABLE_CELLS)[1]
        counts = walked.with_label[np.asarray(labels, dtype=np.intp)].tolist()
        return [(count, max(count, upper)) for count in counts]

    def reachable(self, thresholds: FloatArray, rows: slice) -> BoolArray:
        """Search text by text."""
        texts = zip(range(rows.start, rows.stop), thresholds.tolist(), strict=True)
        return np.array([self._reachable(row, threshold) for row, threshold in texts], dtype=np.bool_)

    def _reachable(self, row: int, threshold: float) -> BoolArray:
        """Look at the members if they are few; else search for one with each label, and one without."""
        reachable = np.zeros((self.n_labels, 2), dtype=np.bool_)
        if threshold == -math.inf:
            return reachable
        walker, limit = Walker(self), _PATIENCE * self.work_limit
        words, _, walked = walker.collect(row, threshold, self.work_limit, _LOOKED_AT)
        _mark(reachable, unpack(words, self.n_labels))
        if walked.complete:
            return reachable
        for label, value in np.argwhere(~reachable).tolist():
            if reachable[label, value]:
                continue
            words, _, walked = walker.collect(row, threshold, limit, 0, (label, bool(value)))
            if not len(words) and not walked.complete and walked.work >= limit:
                raise SearchLimitError(
                    f"Whether some member of text {row}'s prediction set has label {label} at {value} "
                    f"cannot be told in {limit:,} steps. Use a larger work_limit."
                )
            _mark(reachable, unpack(words, self.n_labels))
        return reachable

    def relaxation(self, row: int, threshold: Threshold) -> tuple[FloatArray, FloatArray, float]:
        """Return costs whose sum is never more than the base total, with the budget of the smallest penalty."""
        return self._problem.sides(self.probabilities[row], float(threshold))[1]

    def _counts_at(self, thresholds: FloatArray, n_cells: int) -> FloatArray:
        """List candidates if they are few, else bound by tables."""
        walker = Walker(self)
        return np.array(
            [counts_of_row(walker, row, self.probabilities[row], thresholds, n_cells) for row in range(len(self))]
        )


def _mark(reachable: BoolArray, members: BoolArray) -> None:
    """Note which labels, (d, 2), some of the members (m, d) have absent, and some present."""
    reachable[:, 0] |= (~members).any(axis=0)
    reachable[:, 1] |= members.any(axis=0)
