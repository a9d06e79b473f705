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

from surelabel._core.validation import BoolArray, IntArray
from surelabel._kernels import EVERYTHING
from surelabel.labels.label_sets import order_rows
from surelabel.measures.base import Costs
from surelabel.measures.mixture import Mixture
from surelabel.search.dense import WORK_LIMIT, Best, DenseSearch, Found, Limits, Sizes, Status, best_of, ranks

# Scores of label-sets that are worked out at once: they stay in the processor's cache.
_AT_ONCE = 2**17
# A little more than all errors of rounding, and log 2 with as much added.
_MARGIN = 5e-5
_LOG_2 = 0.6932


class SeenScores(NamedTuple):
    """Scores of seen label-sets that may be members, text by text.

    texts (m,), places among the seen ones (m,), and the whole parts of L (m,) and of totals (m,).
    """

    texts: IntArray
    places: IntArray
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
        # The terms of seen label-sets need no label made impossible, and are kept for a single block of texts.
        self._own_costs = costs
        self._kept_terms: Any = None

    def __getitem__(self, rows: Any) -> MixtureSearch:
        part = copy.copy(self)
        part.costs, part._own_costs = self.costs.part(rows), self._own_costs.part(rows)
        part._surveys, part._kept_terms = {}, None
        return part

    def without(self, column: int) -> MixtureSearch:
        """Return the search among candidates without a column's label."""
        part = copy.copy(self)
        part.costs, part._surveys = self.costs.without(column), {}
        part._is_allowed = self._is_allowed & ~self.measure.fitted.members[:, column]
        return part

    @property
    def _step(self) -> int:
        """Rows per block."""
        return max(1, min(256, _AT_ONCE // len(self.measure.fitted)))

    def _terms(self, rows: slice) -> Any:
        """Return changes (n, k) by column, L and -log(weight q) of the seen label-sets, (n, M) float64 each.

        Arrays are in C order and reduced row by row, so that a text has the same bits alone and among others.
        """
        if self._kept_terms is not None:
            return self._kept_terms
        costs, measure = self._own_costs.part(rows), self.measure
        changes = costs.by_column()
        far = np.ascontiguousarray((measure.fitted.matrix @ (changes.T / self.units)).T)
        far += costs.empty[:, None] / self.units
        near = measure.temperature * far
        near -= measure.log_prior
        least = near.min(axis=1, keepdims=True)
        shares = np.subtract(least, near)
        log_sums = np.log(np.exp(shares, out=shares).sum(axis=1, keepdims=True)) - least
        near += log_sums - math.log(measure.weight)
        if len(self) <= self._step:
            self._kept_terms = changes, far, near
        return changes, far, near

    def _sums(self, changes: IntArray, texts: IntArray, places: IntArray) -> IntArray:
        """Return the sums of the changes (n, k) of texts (m,) over the labels of seen label-sets (m,)."""
        matrix, sizes = self.measure.fitted.matrix, self.measure.fitted.sizes[places]
        # Running sums may wrap around; their differences are exact all the same.
        ends = sizes.cumsum()
        running = np.zeros(sizes.sum() + 1, dtype=np.int64)
        entries = np.arange(len(running) - 1) + (matrix.indptr[places] - ends + sizes).repeat(sizes)
        changes[texts.repeat(sizes), matrix.indices[entries]].cumsum(out=running[1:])
        sums: IntArray = running[ends] - running[ends - sizes]
        return sums

    def _scored(self, rows: slice, limits: Limits, within: IntArray, only_added: bool = False) -> SeenScores:
        """Return the scores of all seen label-sets within (n,), and of some others.

        If `only_added`, leave out label-sets that the plain search has without doubt.
        """
        (changes, far, near), measure = self._terms(rows), self.measure
        # -log(x + y) >= min(-log x, -log y) - log 2: whatever is over by more is no member.
        wanted = within[:, None] / self.units + _LOG_2
        plain = wanted - self.shift / self.units
        maybe = far <= plain
        maybe |= near <= wanted
        if only_added:
            maybe &= far >= plain - _LOG_2 - _MARGIN
        texts, places = np.divmod(np.flatnonzero(maybe), maybe.shape[1])
        sizes = measure.fitted.sizes[places]
        is_candidate = (sizes >= limits[0]) & (sizes <= limits[1])
        if self._is_allowed is not True:
            is_candidate &= self._is_allowed[places]
        texts, places = texts[is_candidate], places[is_candidate]
        sums = self._own_costs.empty[rows][texts] + self._sums(changes, texts, places)
        worst = sums + self.shift
        scores = -np.logaddexp(-(worst / self.units), -near[texts, places])
        return SeenScores(texts, places, sums, np.clip(np.rint(scores * self.units), 0, worst).astype(np.int64))

    def whole(self, members: BoolArray) -> IntArray:
        """Return the whole part of the total of one 0/1 row per text, (n,)."""

        def block(rows: slice) -> tuple[IntArray]:
            places = self.measure.fitted.places_of(members[rows])
            whole = self._own_costs.part(rows).whole(members[rows]) + self.shift
            seen = np.flatnonzero(places >= 0)
            if len(seen):
                near = self._terms(rows)[2][seen, places[seen]]
                scores = -np.logaddexp(-(whole[seen] / self.units), -near)
                whole[seen] = np.clip(np.rint(scores * self.units), 0, whole[seen]).astype(np.int64)
            return (whole,)

        whole: IntArray = self._in_blocks(block, self._step)[0]
        return whole

    def first(self, limits: Limits, within: IntArray, number: Any) -> Found:
        """List the first members of each text: of the plain search and of the seen label-sets, merged."""
        numbers = np.full(len(self), number, dtype=np.int64)
        seen = self.measure.fitted

        def block(rows: slice) -> Found:
            most, at = numbers[rows], within[rows]
            scored = self._scored(rows, limits, at)
            is_plain = scored.sums <= at[scored.texts] - self.shift
            n_plain = np.bincount(scored.texts[is_plain], minlength=len(at))
            plain = DenseSearch(self.costs.part(rows), n_jobs=1).first(limits, at - self.shift, most + n_plain)
            unseen, inside = seen.places_of(plain.members) < 0, scored.totals <= at[scored.texts]
            of = np.concatenate([plain.rows[unseen], scored.texts[inside]])
            whole = np.concatenate([plain.whole[unseen] + self.shift, scored.totals[inside]])
            members = np.concatenate([plain.members[unseen], seen.members[scored.places[inside]]])
            order = order_rows(members, of, whole)
            order = order[ranks(of[order]) < most[of[order]]]
            complete = plain.complete & (np.bincount(of, minlength=len(at)) <= most)
            return Found(of[order] + rows.start, whole[order], members[order], complete)

        found: Found = self._in_blocks(block, self._step)
        return found

    def are_few(self, limits: Limits, within: IntArray, most: int) -> BoolArray:
        """Return which texts have at most `most` members that were not seen, as far as a short walk tells."""
        return super().are_few(limits, within - self.shift, most)

    def bounds(self, limits: Limits, within: IntArray) -> tuple[Sizes, Sizes]:
        """Bound the number of members: those of the plain search, and the seen ones that it leaves out."""

        def block(rows: slice) -> tuple[IntArray]:
            scored, at = self._scored(rows, limits, within[rows], only_added=True), within[rows]
            more = (scored.totals <= at[scored.texts]) & (scored.sums > at[scored.texts] - self.shift)
            return (np.bincount(scored.texts[more], minlength=len(at)),)

        lower, upper = super().bounds(limits, within - self.shift)
        more = self._in_blocks(block, self._step)[0]
        return lower + more, upper + more

    def best(self, limits: Limits) -> Best:
        """Return the best candidate of each text, and the whole parts of the two best totals."""
        sizes = self.measure.fitted.sizes
        is_candidate = self._is_allowed & (sizes >= limits[0]) & (sizes <= limits[1])
        is_every = is_candidate.all()

        def bound_second(rows: slice) -> tuple[IntArray]:
            # A score is at most that of either term; one unit more, as it is rounded.
            _, far, near = self._terms(rows)
            scores = np.minimum(near, far + self.shift / self.units)
            if not is_every:
                scores = scores[:, is_candidate]
            if scores.shape[1] < 2:
                return (np.full(len(scores), EVERYTHING),)
            scores[np.arange(len(scores)), scores.argmin(axis=1)] = np.inf
            second = scores.min(axis=1)
            return (np.minimum(second * self.units * (1.0 + 2.0**-40) + 2.0, EVERYTHING).astype(np.int64),)

        # The two best candidates are no worse than the second best seen one.
        within = self._in_blocks(bound_second, self._step)[0]
        return best_of(self.first(limits, within, 2), len(self))

    def status(self, limits: Limits, within: IntArray) -> Status:
        """Return which labels some member has, and which some member lacks, (n, k) each."""
        has, lacks = super().status(limits, within - self.shift)
        members = self.measure.fitted.members

        def block(rows: slice) -> tuple[IntArray]:
            scored, at = self._scored(rows, limits, within[rows]), within[rows]
            inside = scored.totals <= at[scored.texts]
            texts, listed = scored.texts[inside] + rows.start, members[scored.places[inside]]
            np.logical_or.at(has, texts, listed)
            np.logical_or.at(lacks, texts, ~listed)
            return (texts,)

        self._in_blocks(block, self._step)
        return Status(has, lacks)

    def counts_at(self, limits: Limits, within: IntArray, row: int) -> Any:
        """Bound the number of candidates of one text within each of m ascending limits: two float64 arrays (m,)."""
        scored = self[row : row + 1]._scored(slice(0, 1), limits, within[-1:])
        sums, totals = np.sort(scored.sums), np.sort(scored.totals)
        more = np.searchsorted(totals, within, side="right") - np.searchsorted(sums, within - self.shift, side="right")
        return tuple(counts + more for counts in self._count_by_table(limits, within - self.shift, row))
