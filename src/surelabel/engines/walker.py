"""Walks over trees of flips: what they count, list and find best, for measures whose labels interact (design 2.5)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from surelabel._core.packing import Words, n_words, unpack
from surelabel._core.validation import FloatArray, IntArray
from surelabel._kernels import tree
from surelabel.engines.base import Engine
from surelabel.engines.best_first import best_first_order, totals_of_words
from surelabel.engines.forms import problem_of
from surelabel.exceptions import SearchLimitError
from surelabel.measures import Measure, SeparableMeasure, costs_of

# Label-sets that one call of the kernel may give back.
_CAPACITY = 4096
# How the threshold grows, above the best total, until enough label-sets are within it.
_GROWTH = 0.25
# Members that one threshold more may bring, while members are given one after the other.
_MOST_AT_ONCE = 2**16


def totals_of_text(measure: Measure, probabilities: FloatArray, words: Words) -> FloatArray:
    """Return the totals of packed label-sets (m, W) of one text (d,)."""
    if isinstance(measure, SeparableMeasure):
        absent, present = costs_of(measure, probabilities[None, :])
        return totals_of_words(absent[0], present[0], words, measure.aggregate == "max")
    return measure.totals_of_label_sets(probabilities, unpack(words, len(probabilities)))


class Walked(NamedTuple):
    """What a walk met: the number of members, how many have each label, and whether these are all of them.

    `beyond` is the least total that was seen over the threshold, `work` the steps it took.
    """

    n_members: int
    with_label: IntArray
    complete: bool
    beyond: float
    work: int


class Walker:
    """Walks the trees of an engine's texts; not for several threads at once."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.problem = problem_of(engine.calibration, engine.limits)
        self._stack: Any = None
        self._out = np.empty((_CAPACITY, n_words(engine.n_labels)), dtype=np.uint64)
        self._done = False

    def _stack_for(self, form: Any) -> Any:
        """Return memory for the tree of a form."""
        n_labels = len(form.member)
        n_flips = min(n_labels, int(form.member.sum()) + self.problem.limits[1])
        if self._stack is None or len(self._stack.totals) < n_flips + 2:
            self._stack = tree.make_stack(n_labels, n_flips, self._out.shape[1])
        return self._stack

    def _blocks(
        self, row: int, form: Any, threshold: float, counts: IntArray, listing: bool, limit: int
    ) -> Iterator[tuple[Words, FloatArray]]:
        """Walk a tree; yield undecided label-sets that are members after all, or all members, with totals."""
        stack, problem = self._stack_for(form), self.problem
        measure, probabilities = self._engine.calibration.measure, self._engine.probabilities[row]
        tree.open_tree(form, stack)
        self._done = False
        while not self._done:
            self._done = bool(
                tree.advance(
                    form, problem.penalties, problem.rules, threshold, stack, self._out, counts, listing, limit
                )
            )
            words = self._out[: int(stack.state[tree.WRITTEN])].copy()
            if len(words):
                totals = totals_of_text(measure, probabilities, words)
                yield words[totals <= threshold], totals[totals <= threshold]
            if int(stack.state[tree.WORK]) >= limit:
                break

    def _walked(self, n_members: int, counts: IntArray, complete: bool) -> Walked:
        """Return what the last walk met."""
        return Walked(n_members, counts, complete, float(self._stack.beyond[0]), int(self._stack.state[tree.WORK]))

    def count(self, row: int, threshold: float, limit: int, by_label: bool = False) -> Walked:
        """Count the members of a text within a threshold, in at most `limit` steps."""
        form = self.problem.form(self._engine.probabilities[row], threshold)
        counts = np.zeros(len(form.member) if by_label else 0, dtype=np.int64)
        n_members = 0
        for words, _ in self._blocks(row, form, threshold, counts, False, limit):
            n_members += len(words)
            if by_label:
                counts += unpack(words, len(form.member)).sum(axis=0)
        n_members += int(self._stack.state[tree.FOUND])
        return self._walked(n_members, counts, self._done)

    def collect(
        self, row: int, threshold: float, limit: int, most: float = math.inf, held: tuple[int, bool] | None = None
    ) -> tuple[Words, FloatArray, Walked]:
        """List the members within a threshold, best first, until there are more than `most` or work runs out."""
        form = self.problem.form(self._engine.probabilities[row], threshold, held)
        nothing = np.empty(0, dtype=np.int64)
        blocks = [(self._out[:0], np.empty(0))]
        n_members = 0
        for block in self._blocks(row, form, threshold, nothing, True, limit):
            blocks.append(block)
            n_members += len(block[1])
            if n_members > most:
                break
        words, totals = (np.concatenate(part) for part in zip(*blocks, strict=True))
        order = best_first_order(totals, words)
        return words[order], totals[order], self._walked(n_members, nothing, n_members <= most and self._done)

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
        form = self.problem.form(self._engine.probabilities[row], math.inf)
        flipped = np.maximum(form.gains, form.base) if form.maximum else form.base + form.gains
        cheapest = max(form.base, float(flipped.min()), 0.0)
        return float(cheapest ** (1.0 / self.problem.power)) * (1.0 + 1e-9) + self.problem.least_penalty
