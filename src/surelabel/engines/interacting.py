"""Prediction sets of measures whose labels interact, and of constrained label-sets: by a tree of flips (design 2.5)."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel._core.validation import BoolArray, FloatArray
from surelabel.calibration import Calibration
from surelabel.engines.counting import TABLE_CELLS, bounds_by_table, count_of_maximum
from surelabel.engines.cut import WORK_LIMIT, Cut, Words, best_first_order, n_words, over_rows, totals_of_words, unpack
from surelabel.engines.forms import Problem, problem_of
from surelabel.engines.sizes import Bounds, SizeBounds
from surelabel.exceptions import SearchLimitError

__all__ = ["InteractingEngine", "Walker", "found_within_work"]

# Label-sets that one call of the kernel may give back.
_CAPACITY = 4096
# Finding the best label-sets has no bounds to fall back on: it may take so many times the work of counting.
_PATIENCE = 64
# How the threshold grows, above the best total, until enough label-sets are within it.
_GROWTH = 0.25
# Members that one threshold more may bring, while members are given one after the other.
_MOST_AT_ONCE = 2**16
# Members that are looked at for the labels they have, before each label is searched for.
_LOOKED_AT = 2**14


@dataclasses.dataclass
class Walked:
    """What a walk found: members beyond doubt that were counted, and members by label; all of them where complete."""

    found: int
    with_label: npt.NDArray[np.int64]
    complete: bool
    beyond: float
    work: int


class Walker:
    """Walks the trees of texts of one calibration; not for several threads at once."""

    def __init__(self, cut: Cut) -> None:
        from surelabel._kernels import tree  # noqa: PLC0415

        self._kernel = tree
        self._cut = cut
        self._problem = problem_of(cut.calibration)
        n_labels = cut.calibration.n_labels
        self._stack: Any = None
        self._out = np.empty((_CAPACITY, n_words(n_labels)), dtype=np.uint64)

    def _stack_for(self, form: Any) -> Any:
        """Return memory for a tree of a form, made larger where it must be."""
        n_labels = len(form.member)
        n_flips = min(n_labels, int(form.member.sum()) + self._problem.limits[1])
        if self._stack is None or len(self._stack.totals) < n_flips + 2:
            self._stack = self._kernel.make_stack(n_labels, n_flips, self._out.shape[1])
        return self._stack

    def _blocks(
        self, row: int, form: Any, threshold: float, counts: Any, listing: bool, limit: int
    ) -> Iterator[tuple[Words, FloatArray]]:
        """Walk a tree; yield undecided label-sets that are members after all, or all members, with totals."""
        stack = self._stack_for(form)
        self._kernel.open_tree(form, stack)
        problem = self._problem
        done = False
        while not done:
            done = self._kernel.advance(
                form, problem.penalties, problem.rules, threshold, stack, self._out, counts, listing, limit
            )
            words = self._out[: int(stack.state[self._kernel.WRITTEN])].copy()
            if len(words):
                totals = totals_of_words(self._cut, row, words)
                yield words[totals <= threshold], totals[totals <= threshold]
            if int(stack.state[self._kernel.WORK]) >= limit:
                break
        self.complete = bool(done)

    def count(self, row: int, threshold: float, limit: int, by_label: bool = False) -> Walked:
        """Count the members of a text within a threshold, in at most `limit` steps."""
        form = self._problem.form(self._cut.probabilities[row], threshold)
        counts = np.zeros(len(form.member) if by_label else 0, dtype=np.int64)
        found = 0
        for words, _ in self._blocks(row, form, threshold, counts, False, limit):
            found += len(words)
            if by_label:
                counts += unpack(words, len(form.member)).sum(axis=0)
        state = self._stack.state
        found += int(state[self._kernel.FOUND])
        return Walked(found, counts, self.complete, float(self._stack.beyond[0]), int(state[self._kernel.WORK]))

    def collect(
        self, row: int, threshold: float, limit: int, most: float = math.inf, held: tuple[int, bool] | None = None
    ) -> tuple[Words, FloatArray, Walked]:
        """List the members within a threshold, best first, until there are more than `most` or work runs out."""
        form = self._problem.form(self._cut.probabilities[row], threshold, held)
        nothing = np.empty(0, dtype=np.int64)
        blocks: list[tuple[Words, FloatArray]] = []
        found = 0
        full = False
        for block in self._blocks(row, form, threshold, nothing, True, limit):
            blocks.append(block)
            found += len(block[1])
            full = found > most
            if full:
                break
        words = np.concatenate([self._out[:0], *(block[0] for block in blocks)])
        totals = np.concatenate([np.empty(0), *(block[1] for block in blocks)])
        order = best_first_order(totals, words)
        state = self._stack.state
        complete = not full and self.complete
        walked = Walked(found, nothing, complete, float(self._stack.beyond[0]), int(state[self._kernel.WORK]))
        return words[order], totals[order], walked

    def ascending(self, row: int, threshold: float, limit: int) -> Iterator[tuple[FloatArray, Words]]:
        """Yield the members within a threshold in runs of ascending totals, for more and more of the threshold."""
        given = -math.inf
        start = self._first_threshold(row)
        target = min(threshold, start)
        while True:
            words, totals, walked = self.collect(row, target, limit, _MOST_AT_ONCE)
            if not walked.complete:
                middle = given + (target - given) / 2 if np.isfinite(given) else target / 2
                if walked.work >= limit or not given < middle < target:
                    raise SearchLimitError(
                        f"The best label-sets of text {row} cannot be found in {limit:,} steps. Use a larger "
                        "work_limit, or a measure that is easier to search, such as LogLoss()."
                    )
                target = middle
                continue
            new = totals > given
            if new.any():
                yield totals[new], words[new]
            if target >= threshold or np.isinf(walked.beyond):
                return
            given = target
            target = min(threshold, max(walked.beyond * (1.0 + 1e-12), target + _GROWTH * (target - start / 2)))

    def _first_threshold(self, row: int) -> float:
        """Return a total that two candidates are likely to be within: that of the cheapest single flip."""
        form = self._problem.form(self._cut.probabilities[row], math.inf)
        flipped = np.maximum(form.gains, form.base) if form.maximum else form.base + form.gains
        cheapest = max(form.base, float(flipped.min()), 0.0)
        return float(cheapest ** (1.0 / self._problem.power)) * (1.0 + 1e-9) + self._problem.least_penalty


def found_within_work(cut: Cut) -> tuple[FloatArray, BoolArray]:
    """Return how many members of each text are found within the work limit, and whether these are all of them."""
    walker, every = Walker(cut), float(cut.calibration.n_candidates)
    counts = np.zeros(len(cut.probabilities))
    complete = np.ones(len(counts), dtype=np.bool_)
    for row, threshold in enumerate(cut.thresholds.tolist()):
        if math.isinf(threshold):
            counts[row] = every if threshold > 0 else 0.0
        else:
            walked = walker.count(row, threshold, cut.work_limit)
            counts[row], complete[row] = walked.found, walked.complete
    return counts, complete


class InteractingEngine:
    """Walks trees; past the work limit it answers with certified bounds."""

    def bounds(self, cut: Cut, rows: range) -> SizeBounds:
        """Count by walking; past the work limit bound by sums of costs below and above the measure."""

        def count(block: slice) -> SizeBounds:
            walker = Walker(cut)
            inside = range(block.start + rows.start, block.stop + rows.start)
            return SizeBounds.of(self._count(walker, cut, row) for row in inside)

        return SizeBounds.joined(over_rows(count, len(rows), cut.n_jobs))

    def _count(self, walker: Walker, cut: Cut, row: int) -> Bounds:
        """Count or bound the members of one text."""
        threshold = float(cut.thresholds[row])
        every = cut.calibration.n_candidates
        if math.isinf(threshold):
            return (every, every) if threshold > 0 else (0, 0)
        walked = walker.count(row, threshold, cut.work_limit)
        if walked.complete:
            return walked.found, walked.found
        lower, upper = self.bounds_with_cells(cut, row, TABLE_CELLS)
        return max(lower, walked.found), upper

    def members(self, cut: Cut, row: int, limit: int) -> Words:
        """List and sort where all members fit; take the best, of ever larger thresholds, where they do not."""
        threshold = float(cut.thresholds[row])
        if threshold == -math.inf or limit == 0:
            return np.empty((0, n_words(cut.calibration.n_labels)), dtype=np.uint64)
        if threshold < math.inf:
            words, _, walked = Walker(cut).collect(row, threshold, cut.work_limit, limit)
            if walked.complete:
                return words
        best = [words for _, words in itertools.islice(self.iterate(cut, row), limit)]
        return np.array(best, dtype=np.uint64).reshape(len(best), n_words(cut.calibration.n_labels))

    def iterate(self, cut: Cut, row: int) -> Iterator[tuple[float, Words]]:
        """Yield members by ever larger thresholds."""
        threshold = float(cut.thresholds[row])
        if threshold == -math.inf:
            return
        for totals, words in Walker(cut).ascending(row, threshold, _PATIENCE * cut.work_limit):
            yield from zip(totals.tolist(), words, strict=True)

    def with_label(self, cut: Cut, row: int, labels: Sequence[int]) -> list[Bounds]:
        """Count labels of members while walking; where that gives up, no label has more members than there are."""
        threshold = float(cut.thresholds[row])
        if threshold == -math.inf:
            return [(0, 0)] * len(labels)
        walked = Walker(cut).count(row, threshold, cut.work_limit, by_label=True)
        upper = 0 if walked.complete else self.bounds_with_cells(cut, row, TABLE_CELLS)[1]
        counts = walked.with_label[np.asarray(labels, dtype=np.intp)].tolist()
        return [(count, count if walked.complete else max(count, upper)) for count in counts]

    def reachable(self, cut: Cut, rows: slice) -> BoolArray:
        """Search text by text."""
        return np.array([self._reachable(cut, row) for row in range(rows.start, rows.stop)], dtype=np.bool_)

    def _reachable(self, cut: Cut, row: int) -> BoolArray:
        """Look at the members where they are few; else search for one with each label, and one without."""
        n_labels = cut.calibration.n_labels
        reachable = np.zeros((n_labels, 2), dtype=np.bool_)
        threshold = float(cut.thresholds[row])
        if threshold == -math.inf:
            return reachable
        walker = Walker(cut)
        words, _, walked = walker.collect(row, threshold, cut.work_limit, _LOOKED_AT)
        members = unpack(words, n_labels)
        reachable[:, 0], reachable[:, 1] = (~members).any(axis=0), members.any(axis=0)
        if walked.complete:
            return reachable
        for label, value in np.argwhere(~reachable).tolist():
            if reachable[label, value]:
                continue
            held = (label, bool(value))
            words, _, walked = walker.collect(row, threshold, _PATIENCE * cut.work_limit, 0, held)
            if not len(words) and not walked.complete and walked.work >= _PATIENCE * cut.work_limit:
                raise SearchLimitError(
                    f"Whether some member of text {row}'s prediction set has label {label} at {value} "
                    f"cannot be told in {_PATIENCE * cut.work_limit:,} steps. Use a larger work_limit."
                )
            members = unpack(words, n_labels)
            reachable[:, 0] |= (~members).any(axis=0)
            reachable[:, 1] |= members.any(axis=0)
        return reachable

    def forced(self, calibration: Calibration, probabilities: FloatArray) -> tuple[BoolArray, FloatArray]:
        """Find the two best by ever larger thresholds."""
        cut = Cut(calibration, probabilities, np.full(len(probabilities), np.inf))
        walker = Walker(cut)
        best = np.empty((len(probabilities), n_words(calibration.n_labels)), dtype=np.uint64)
        totals = np.full((len(probabilities), 2), np.inf)
        for row in range(len(probabilities)):
            found = 0
            for run, words in walker.ascending(row, math.inf, _PATIENCE * WORK_LIMIT):
                if found == 0:
                    best[row] = words[0]
                taken = min(2 - found, len(run))
                totals[row, found : found + taken] = run[:taken]
                found += taken
                if found == 2:
                    break
        return unpack(best, calibration.n_labels), totals

    def relaxation(self, cut: Cut, row: int) -> tuple[FloatArray, FloatArray, float]:
        """Return costs whose sum is never more than the base total, with the budget of the smallest penalty."""
        problem = problem_of(cut.calibration)
        absent, present, budget = problem.relaxation(cut.probabilities[row], float(cut.thresholds[row]))
        if problem.is_maximum:
            over = (absent > budget).astype(np.float64), (present > budget).astype(np.float64)
            return *over, 0.0 if budget >= 0 else -math.inf
        return absent, present, budget

    def bounds_with_cells(self, cut: Cut, row: int, n_cells: int) -> Bounds:
        """Bound from above by costs below the measure, and from below by costs above it."""
        problem = problem_of(cut.calibration)
        every = cut.calibration.n_candidates
        limits = cut.calibration.limits
        upper = min(every, _upper(problem, self.relaxation(cut, row), limits, n_cells))
        within = problem.restriction(cut.probabilities[row], float(cut.thresholds[row]))
        if within is None or within[2] < 0 or problem.is_maximum:
            return 0, upper
        return min(upper, bounds_by_table(*within, limits, n_cells)[0]), upper


def _upper(problem: Problem, relaxation: tuple[FloatArray, FloatArray, float], limits: Bounds, n_cells: int) -> int:
    """Return an upper bound of the number of label-sets within a relaxation."""
    if relaxation[2] < 0:
        return 0
    if problem.is_maximum:
        return count_of_maximum(*relaxation, limits)
    return bounds_by_table(*relaxation, limits, n_cells)[1]
