"""The search of a mixture: the plain search at a shifted threshold, and the label-sets seen in training.

With L = -log product, a label-set that was not seen scores L + shift, shift = -log(1 - weight), so it is within a
threshold if and only if L is within the threshold less the shift: a plain search. The seen ones are a list to check.
None of them scores more than L + shift, so the list only adds members to those of the plain search.
"""

from __future__ import annotations

import copy
import math
from typing import Any, NamedTuple

import numpy as np

from surelabel._core.threads import over_rows
from surelabel._core.validation import BoolArray, IntArray
from surelabel._kernels import EVERYTHING, IMPOSSIBLE
from surelabel.labels.label_sets import order_rows
from surelabel.measures.base import Costs
from surelabel.measures.mixture import Mixture
from surelabel.search.base import WORK_LIMIT, Best, Found, Limits, best_of, joined, ranks
from surelabel.search.dense import DenseSearch
from surelabel.search.sizes import Sizes

# Scores of label-sets that are worked out at once: they stay in the processor's cache.
_AT_ONCE = 2**17
_ANY_SIZE = (0, 2**31)


class SeenScores(NamedTuple):
    """Of M seen label-sets, in units: sums, L (n, M); totals (n, M), IMPOSSIBLE for those that are no members."""

    sums: IntArray
    totals: IntArray


class MixtureSearch(DenseSearch):
    """The search of a mixture: costs are those of its independent part."""

    def __init__(
        self, costs: Costs, measure: Mixture, units: float, work_limit: int = WORK_LIMIT, n_jobs: int | None = None
    ) -> None:
        super().__init__(costs, work_limit, n_jobs)
        self.measure, self.units = measure, units
        self.shift = round(-math.log1p(-measure.weight) * units)
        self._is_allowed: Any = True
        # The sums of seen label-sets need no label made impossible, and are kept for a single block of texts.
        self._own_costs = costs
        self._kept_sums: Any = None

    def __getitem__(self, rows: Any) -> MixtureSearch:
        part = copy.copy(self)
        part.costs, part._own_costs = self.costs.part(rows), self._own_costs.part(rows)
        part._surveys, part._kept_sums = {}, None
        return part

    def without(self, column: int) -> MixtureSearch:
        """Return the search among candidates without a column's label."""
        part = copy.copy(self)
        part.costs, part._surveys = self.costs.without(column), {}
        part._is_allowed = self._is_allowed & ~self.measure.fitted.members[:, column]
        return part

    def _blocks(self, work: Any) -> list[Any]:
        """Call `work` on blocks of rows."""
        return over_rows(work, len(self), self.n_jobs, self._step)

    @property
    def _step(self) -> int:
        """Rows per block."""
        return max(1, min(256, _AT_ONCE // len(self.measure.fitted)))

    def _sums(self, rows: slice) -> Any:
        """Return L (n, M) of the seen label-sets, the logarithms of their terms of q, and that of the terms' sum."""
        if self._kept_sums is not None:
            return self._kept_sums
        costs, measure = self._own_costs.part(rows), self.measure
        # In C order, so that rows are reduced one by one: a text has the same bits alone and among others.
        sums = np.ascontiguousarray((measure.fitted.matrix @ costs.by_column().T).T) + costs.empty[:, None]
        terms = measure.log_prior - measure.temperature * (sums / self.units)
        largest = terms.max(axis=1, keepdims=True)
        log_sums = np.log(np.exp(terms - largest).sum(axis=1, keepdims=True)) + largest
        if len(self) <= self._step:
            self._kept_sums = sums, terms, log_sums
        return sums, terms, log_sums

    def _scored(self, rows: slice, limits: Limits, within: Any = EVERYTHING) -> SeenScores:
        """Return the scores of seen label-sets; totals that are not `within` (n, 1) may be IMPOSSIBLE: it saves work."""
        (sums, terms, log_sums), measure, sizes = self._sums(rows), self.measure, self.measure.fitted.sizes
        near = (log_sums - math.log(measure.weight)) - terms
        # -log(x + y) >= min(-log x, -log y) - log 2: whatever is over by more is no member.
        wanted = within + 0.7 * self.units
        maybe = (sums + self.shift <= wanted) | (near * self.units <= wanted)
        is_candidate = self._is_allowed & (sizes >= limits[0]) & (sizes <= limits[1])
        texts, places = np.nonzero(maybe & is_candidate)
        worst = sums[texts, places] + self.shift
        scores = -np.logaddexp(-(worst / self.units), -near[texts, places])
        totals = np.full(sums.shape, IMPOSSIBLE)
        totals[texts, places] = np.clip(np.rint(scores * self.units), 0, worst).astype(np.int64)
        return SeenScores(np.where(is_candidate, sums, IMPOSSIBLE), totals)

    def whole(self, members: BoolArray) -> IntArray:
        """Return the whole part of the total of one 0/1 row per text, (n,)."""

        def block(rows: slice) -> IntArray:
            places = self.measure.fitted.places_of(members[rows])
            whole = self._own_costs.part(rows).whole(members[rows]) + self.shift
            seen = np.flatnonzero(places >= 0)
            if len(seen):
                whole[seen] = self._scored(rows, _ANY_SIZE).totals[seen, places[seen]]
            return whole

        return np.concatenate(self._blocks(block))

    def first(self, limits: Limits, within: IntArray, number: Any) -> Found:
        """List the first members of each text: of the plain search and of the seen label-sets, merged."""
        numbers = np.broadcast_to(np.asarray(number, dtype=np.int64), len(self))
        seen = self.measure.fitted

        def block(rows: slice) -> Found:
            most, at = numbers[rows], within[rows, None]
            sums, totals = self._scored(rows, limits, at)
            n_counted = (sums <= at - self.shift).sum(axis=1)
            plain = DenseSearch(self.costs.part(rows), n_jobs=1)
            listed = plain.first(limits, within[rows] - self.shift, most + n_counted)
            unseen = seen.places_of(listed.members) < 0
            texts, places = np.nonzero(totals <= at)
            of = np.concatenate([listed.rows[unseen], texts])
            whole = np.concatenate([listed.whole[unseen] + self.shift, totals[texts, places]])
            members = np.concatenate([listed.members[unseen], seen.members[places]])
            order = order_rows(members, of, whole)
            order = order[ranks(of[order]) < most[of[order]]]
            complete = listed.complete & (np.bincount(of, minlength=len(at)) <= most)
            return Found(of[order] + rows.start, whole[order], members[order], complete)

        found: Found = joined(self._blocks(block))
        return found

    def bounds(self, limits: Limits, within: IntArray) -> tuple[Sizes, Sizes]:
        """Bound the number of members: those of the plain search, and the seen ones that it leaves out."""

        def block(rows: slice) -> IntArray:
            at = within[rows, None]
            sums, totals = self._scored(rows, limits, at)
            return ((totals <= at) & (sums > at - self.shift)).sum(axis=1)

        lower, upper = super().bounds(limits, within - self.shift)
        more = np.concatenate(self._blocks(block))
        return lower + more, upper + more

    def best(self, limits: Limits) -> Best:
        """Return the best candidate of each text, and the whole parts of the two best totals."""

        def second(rows: slice) -> IntArray:
            totals = self._scored(rows, limits).totals
            return np.partition(np.column_stack([totals, np.full(len(totals), IMPOSSIBLE)]), 1, axis=1)[:, 1]

        # The two best candidates are no worse than the second best seen one.
        within = np.minimum(np.concatenate(self._blocks(second)), EVERYTHING)
        return best_of(self.first(limits, within, 2), len(self))

    def status(self, limits: Limits, within: IntArray) -> tuple[BoolArray, BoolArray]:
        """Return which labels some member has, and which some member lacks, (n, k) each."""
        has, lacks = super().status(limits, within - self.shift)

        def block(rows: slice) -> None:
            at = within[rows, None]
            inside = (self._scored(rows, limits, at).totals <= at).astype(np.float64)
            having = inside @ self.measure.fitted.members
            has[rows] |= having > 0
            lacks[rows] |= having < inside.sum(axis=1, keepdims=True)

        self._blocks(block)
        return has, lacks

    def counts_at(self, limits: Limits, within: IntArray, row: int) -> Any:
        """Bound the number of candidates of one text within each of m ascending limits: two float64 arrays (m,)."""
        sums, totals = (np.sort(scores[0]) for scores in self[row : row + 1]._scored(slice(0, 1), limits))
        more = np.searchsorted(totals, within, side="right") - np.searchsorted(sums, within - self.shift, side="right")
        return tuple(counts + more for counts in super().counts_at(limits, within - self.shift, row))
