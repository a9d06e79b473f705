"""Prediction sets of a mixture: those of its independent part at a shifted threshold, and a list to check (design 2.5).

A label-set that is not listed is a member if its `LogLoss` is within the shifted threshold, which the engine of the
independent part knows how to count. Listed label-sets are checked one by one; those that the independent part counted
are taken off again. No listed label-set has a larger total than it would have if it were not listed, so all that the
independent part finds are members.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import math
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np

from surelabel._core.threads import over_rows
from surelabel._core.validation import BoolArray, FloatArray, IntArray
from surelabel._kernels import mixture as kernel
from surelabel._kernels import mixture_lanes
from surelabel.calibration import Calibration
from surelabel.engines.base import WORK_LIMIT, Engine, Member, Scored, Threshold, WrappingEngine, as_members
from surelabel.engines.best_first import most_tied
from surelabel.engines.dense import FEW_TEXTS, DenseEngine
from surelabel.engines.interacting import InteractingEngine
from surelabel.engines.reach import Reach
from surelabel.engines.sizes import Bounds, SizeBounds
from surelabel.engines.sparse import SparseEngine
from surelabel.labels.sparse import is_sparse
from surelabel.measures.mixture import Mixture

# Thresholds that are few enough to check the listed label-sets for each; for more they are scored and sorted once.
_FEW = 16
# Members of a text that are few enough to be taken at once.
_FEW_MEMBERS = 100
_FIRST_ROW = np.zeros(1, dtype=np.int64)
# Label-sets of the independent part that are looked at for the best that is not listed.
_FIRST = 16
# The calibration of the independent part, and candidates by limits; made once per calibration.
_Prepared = tuple[Calibration, dict[Bounds, BoolArray]]
_PREPARED: weakref.WeakKeyDictionary[Calibration, _Prepared] = weakref.WeakKeyDictionary()


def _prepared(calibration: Calibration) -> _Prepared:
    """Return the calibration of the independent part, with shifted totals, and candidates that were found."""
    if calibration not in _PREPARED:
        measure = calibration.measure
        assert isinstance(measure, Mixture)
        totals = measure.shifted(calibration.totals)
        independent = dataclasses.replace(calibration, measure=measure.independent, totals=totals)
        _PREPARED[calibration] = independent, {}
    return _PREPARED[calibration]


class MixtureEngine(WrappingEngine):
    """Asks the engine of the independent part at a shifted threshold, and checks the listed label-sets."""

    def __init__(
        self, calibration: Calibration, probabilities: Any, work_limit: int = WORK_LIMIT, n_jobs: int | None = None
    ) -> None:
        independent, self._candidates = _prepared(calibration)
        dense = DenseEngine if independent.is_separable else InteractingEngine
        engine = SparseEngine if is_sparse(probabilities) else dense
        super().__init__(engine(independent, probabilities, work_limit, n_jobs))
        assert isinstance(calibration.measure, Mixture)
        self.calibration = calibration
        self._measure = calibration.measure
        # Terms of the normaliser that are listed in other states of hubs, (n,).
        self._others: FloatArray | None = None

    def __getitem__(self, rows: slice) -> Self:
        made = super().__getitem__(rows)
        return made if self._others is None else made._with(_others=self._others[rows])

    def beside(self, others: FloatArray) -> Self:
        """Return the engine of the same texts for one state of hubs, with the terms that are listed in others."""
        return self._with(_others=others)

    def without(self, barred: BoolArray) -> Self:
        """Bar listed label-sets too."""
        return super().without(barred)._with(_candidates={})

    @property
    def n_candidates(self) -> int:
        """Number of candidates, those of the independent part."""
        return self.inner.n_candidates

    @property
    def _listed_candidates(self) -> BoolArray:
        """Which nodes are listed label-sets and candidates, (N,)."""
        if self.limits not in self._candidates:
            listing = self._measure.listing
            sizes = np.diff(listing.starts)
            chosen = (listing.factors > 0.0) & (sizes >= self.limits[0]) & (sizes <= self.limits[1])
            if self.barred is not None:
                nodes = np.repeat(np.arange(len(sizes)), sizes)
                chosen &= np.bincount(nodes[self.barred[listing.labels]], minlength=len(sizes)) == 0
            if self.calibration.constraints is not None:
                which = np.flatnonzero(chosen)
                rows = np.zeros((len(which), self.n_labels), dtype=np.bool_)
                for row, node in zip(rows, which.tolist(), strict=True):
                    row[list(self._member(node))] = True
                chosen[which] = self.calibration.constraints.obeyed_by(rows)
            self._candidates[self.limits] = chosen
        return self._candidates[self.limits]

    def _member(self, node: int) -> Member:
        """Return the labels of a node."""
        listing = self._measure.listing
        return tuple(listing.labels[listing.starts[node] : listing.starts[node + 1]].tolist())

    def _part(self, rows: slice) -> tuple[Engine, kernel.Texts]:
        """Return the engine of the independent part of some texts, and their costs, priced once."""
        inner: Engine = self.inner[rows]
        if isinstance(inner, DenseEngine):
            inner = inner.priced()
            texts = self._measure.texts_of_costs(*inner.own_costs(slice(0, len(inner))))
        else:
            texts = self._measure.texts(inner.probabilities)
        return inner, texts if self._others is None else texts._replace(others=self._others[rows])

    def _shifted(self, thresholds: FloatArray) -> FloatArray:
        """Return the thresholds of the independent part, (n,)."""
        if len(thresholds) == 0 or np.all(thresholds == thresholds[0]):  # one for all texts, as a rule
            return np.repeat(self._measure.shifted(thresholds[:1]), len(thresholds))
        values, places = np.unique(thresholds, return_inverse=True)
        return self._measure.shifted(values)[places]

    def _shifted_one(self, threshold: Threshold) -> float:
        """Return the threshold of one text's independent part."""
        return float(self._measure.shifted(np.array([threshold], dtype=np.float64))[0])

    def _kernel_arguments(self) -> tuple[Any, BoolArray, Any]:
        """Return listing, candidates and settings as kernels take them."""
        return self._measure.listing, self._listed_candidates, self._measure.settings

    def totals(self, labels: Any) -> FloatArray:
        """Score label-sets by the mixture."""
        return Engine.totals(self, labels)

    def _bounds(self, thresholds: FloatArray, rows: slice) -> SizeBounds:
        """Count, or bound, the independent part's members; add the listed members that are not among them."""
        if self._measure.weight == 0.0:  # listed label-sets are as all others
            return self.inner.bounds(thresholds, rows)
        shifted = self._shifted(thresholds)
        inner, texts = self._part(rows)
        counted = inner.bounds(shifted)
        listed = self._count_listed(texts, thresholds, shifted)
        more = listed[:, 0] - listed[:, 1]
        return SizeBounds(np.maximum(counted.lower + more, listed[:, 0]), counted.upper + more)

    def _count_listed(self, texts: kernel.Texts, thresholds: FloatArray, shifted: FloatArray) -> IntArray:
        """Count listed members, and listed candidates that the independent part counts, (n, 2)."""
        finite = np.isfinite(thresholds)
        out = np.zeros((len(thresholds), 2), dtype=np.int64)
        if len(thresholds) > FEW_TEXTS and finite.all():
            mixture_lanes.count_listed(texts, thresholds, shifted, *self._kernel_arguments(), out)
            rows = np.flatnonzero(out[:, 0] == mixture_lanes.UNDECIDED)
        else:
            rows = np.flatnonzero(finite)
        if len(rows):
            bounds = np.column_stack([thresholds[rows], shifted[rows]])
            out[rows] = kernel.listed_members(texts, rows, bounds, *self._kernel_arguments()).counts
        return out

    def _flags(self, row: int, threshold: Threshold) -> Any:
        """Return MEMBER and WITHIN of each node, (N,) uint8, for a text and threshold."""
        if math.isinf(threshold):
            all_flags = kernel.MEMBER | kernel.WITHIN if threshold > 0 else 0
            return self._listed_candidates * np.uint8(all_flags)
        _, texts = self._part(slice(row, row + 1))
        bounds = np.array([[threshold, self._shifted_one(threshold)]])
        return kernel.listed_members(texts, _FIRST_ROW, bounds, *self._kernel_arguments()).flags

    def _scored(self, row: int, nodes: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return L and the totals of listed nodes of one text."""
        _, texts = self._part(slice(row, row + 1))
        rows = np.zeros(len(nodes), dtype=np.int64)
        return kernel.totals_of_nodes(texts, rows, nodes, self._measure.listing, self._measure.settings)

    def iterate(self, row: int, threshold: Threshold) -> Iterator[Scored]:
        """Merge listed members, sorted, with what the independent part yields and is not listed."""
        return heapq.merge(self._listed(row, threshold), self._unlisted(row, threshold), key=best_first_key)

    def _listed(self, row: int, threshold: Threshold) -> Iterator[Scored]:
        """Yield listed members, best first."""
        nodes = np.flatnonzero(self._flags(row, threshold) & kernel.MEMBER)
        _, totals = self._scored(row, nodes)
        order = np.lexsort((self._measure.listing.ranks[nodes], totals))
        return ((float(totals[i]), self._member(int(nodes[i]))) for i in order)

    def members(self, row: int, threshold: Threshold, limit: int) -> Any:
        """Take a few by `top`."""
        if limit > _FEW_MEMBERS:
            return super().members(row, threshold, limit)
        best = self[row : row + 1].top(limit, np.array([threshold], dtype=np.float64), _FIRST_ROW)[0]
        return self.as_rows([member for _, member in best])

    def top(self, k: int, thresholds: FloatArray, rows: IntArray) -> list[list[Scored]]:
        """Take the best of the independent part for all texts at once; if too many are listed, one by one."""
        number = 2 * k + _FIRST
        if not isinstance(self.inner, DenseEngine) or k > _FEW_MEMBERS:
            return super().top(k, thresholds, rows)
        tops = []
        shift = self._measure.settings.shift
        for row, best in zip(rows.tolist(), self.inner.top(number, self._shifted(thresholds), rows), strict=True):
            scored = [*itertools.islice(self._listed(row, thresholds[row]), k), *self._new(best)]
            scored.sort(key=best_first_key)
            # What comes after the last of the independent part may have its total.
            is_whole = len(best) < number or (len(scored) > k and scored[k - 1][0] < best[-1][0] + shift)
            tops.append(scored[:k] if is_whole else list(itertools.islice(self.iterate(row, thresholds[row]), k)))
        return tops

    def _new(self, scored: Iterable[Scored]) -> Iterator[Scored]:
        """Yield what the independent part finds and is not listed, with the mixture's totals."""
        shift, node_of = self._measure.settings.shift, self._measure.node_of
        return ((total + shift, member) for total, member in scored if node_of(member) < 0)

    def _unlisted(self, row: int, threshold: Threshold) -> Iterator[Scored]:
        """Yield members that are not listed, best first; shifting may make totals equal that were not."""
        shifted = self._new(self.inner.iterate(row, self._shifted_one(threshold)))
        most = most_tied(self.n_labels)
        for _, tied in itertools.groupby(shifted, key=lambda scored: scored[0]):
            while run := list(itertools.islice(tied, most)):
                yield from sorted(run, key=best_first_key) if len(run) > 1 else run

    def forced(self) -> tuple[Any, FloatArray]:
        """Compare the two best listed candidates with the best of the independent part."""
        if self._measure.weight == 0.0:
            return self.inner.forced()
        blocks = over_rows(self._forced, len(self), self.n_jobs)
        members = [member for chosen, _ in blocks for member in chosen]
        return self.as_rows(members), np.concatenate([totals for _, totals in blocks])

    def _forced(self, rows: slice) -> tuple[list[Member], FloatArray]:
        """Return the best candidates of a block of texts, and the totals of the two best."""
        inner, texts = self._part(rows)
        labels, independent = inner.forced()
        nodes, totals = kernel.best_listed(texts, len(inner), *self._kernel_arguments())
        far = independent + self._measure.settings.shift
        members = _as_members(labels)
        is_new = self._measure.nodes_of(labels) < 0
        # The best of the independent part is new, or its second best is the best that may be.
        two = np.sort(np.column_stack([totals, np.where(is_new, far[:, 0], np.inf)]), axis=1)[:, :2]
        is_tied = np.where(is_new, far[:, 0] == totals[:, 0], far[:, 1] <= totals[:, 0])
        open_rows = np.flatnonzero(is_tied | (two[:, 1] > far[:, 1]))
        for i, unlisted in zip(open_rows.tolist(), self._best_unlisted(inner, two[:, 1], open_rows, rows), strict=True):
            listed = [(float(totals[i, 0]), self._member(int(nodes[i])))] if nodes[i] >= 0 else []
            best = sorted([*listed, *unlisted], key=best_first_key)
            members[i] = best[0][1] if best else members[i]  # in a state of hubs there may be no candidate
            two[i] = np.sort([*(total for total, _ in best), totals[i, 1], math.inf])[:2]
            nodes[i] = -1
        for i in np.flatnonzero((nodes >= 0) & ~(is_new & (far[:, 0] < totals[:, 0]))).tolist():
            members[i] = self._member(int(nodes[i]))
        return members, two

    def _best_unlisted(self, inner: Engine, limits: FloatArray, which: IntArray, rows: slice) -> Iterator[list[Scored]]:
        """Yield the two best candidates that are not listed, within limits, of some texts of a block."""
        if not len(which):
            return
        thresholds = np.full(len(inner), -1.0)
        thresholds[which] = self._shifted(limits[which])
        for i, best in zip(which.tolist(), inner.top(_FIRST, thresholds, which), strict=True):
            unlisted = list(self._new(best))
            if len(best) < _FIRST or (len(unlisted) > 2 and unlisted[1][0] < unlisted[-1][0]):
                yield sorted(unlisted, key=best_first_key)[:2]
            else:
                yield list(itertools.islice(self._unlisted(rows.start + i, float(limits[i])), 2))

    def with_label(self, row: int, threshold: Threshold, labels: Sequence[int]) -> list[Bounds]:
        """Correct the independent part's counts by the listed label-sets that have each label."""
        at = self._shifted_one(threshold)
        counted = self.inner.with_label(row, at, labels)
        flags = self._flags(row, threshold)
        members, within = (self._with_each_label(flags & flag) for flag in (kernel.MEMBER, kernel.WITHIN))
        return [
            (max(lower + members.get(label, 0) - within.get(label, 0), members.get(label, 0)),
             upper + members.get(label, 0) - within.get(label, 0))
            for label, (lower, upper) in zip(labels, counted, strict=True)
        ]  # fmt: skip

    def _with_each_label(self, chosen: Any) -> dict[int, int]:
        """Return how many chosen nodes have each label that some of them have."""
        listing = self._measure.listing
        is_chosen = np.repeat(chosen > 0, np.diff(listing.starts))
        labels, counts = np.unique(listing.labels[is_chosen], return_counts=True)
        return dict(zip(labels.tolist(), counts.tolist(), strict=True))

    def reachable(self, thresholds: FloatArray, rows: slice) -> BoolArray:
        """Add what listed members have to what the independent part's have."""
        if is_sparse(self.probabilities):
            return super().reachable(thresholds, rows)
        shifted = self._shifted(thresholds)
        reachable = np.empty((len(thresholds), self.n_labels, 2), dtype=np.bool_)

        def look(block: slice) -> None:
            inner, texts = self._part(slice(rows.start + block.start, rows.start + block.stop))
            part = inner.reachable(shifted[block], slice(0, len(inner)))
            finite = np.flatnonzero(np.isfinite(thresholds[block]))
            bounds = np.column_stack([thresholds[block][finite], shifted[block][finite]])
            found = kernel.listed_members(texts, finite, bounds, *self._kernel_arguments(), n_labels=self.n_labels)
            part[finite, :, 0] |= found.with_label < found.counts[:, :1]
            part[finite, :, 1] |= found.with_label > 0
            reachable[block] = part

        over_rows(look, len(thresholds), self.n_jobs)
        return reachable

    def listed(self, row: int) -> IntArray:
        """Return the labels that a text lists, and those of listed label-sets."""
        return np.union1d(self.inner.listed(row), self._measure.listing.used)

    def reach(self, row: int, threshold: Threshold) -> Reach:
        """Add what listed members have to what the independent part's have."""
        at = self._shifted_one(threshold)
        labels, reachable, others = self.inner.reach(row, at)
        chosen = self._flags(row, threshold) & kernel.MEMBER
        n_members, counts = int(np.count_nonzero(chosen)), self._with_each_label(chosen)
        if n_members == 0:
            return Reach(labels, reachable, others)
        every = np.union1d(labels, np.fromiter(counts, dtype=np.int64))
        both = np.tile(np.array(others), (len(every), 1))
        both[np.searchsorted(every, labels)] = reachable
        with_label = np.array([counts.get(label, 0) for label in every.tolist()])
        both |= np.column_stack([with_label < n_members, with_label > 0])
        hidden = len(every) < self.n_labels
        return Reach(every, both, (hidden, others[1]) if hidden else (False, False))

    def dense(self, rows: slice) -> Self:
        """Write the independent part's probabilities out."""
        inner = self.inner.dense(rows)
        return self[rows]._with(probabilities=inner.probabilities, inner=inner)

    def relaxation(self, row: int, threshold: Threshold) -> tuple[FloatArray, FloatArray, float]:
        """Return the independent part's costs, and a threshold that listed members are within too."""
        at = self._shifted_one(threshold)
        sums, _ = self._scored(row, np.flatnonzero(self._flags(row, threshold) & kernel.MEMBER))
        return self.inner.relaxation(row, max(at, float(sums.max(initial=-1.0))))

    def finer_bounds(self, row: int, threshold: Threshold, n_cells: int) -> Bounds:
        """Correct finer bounds of the independent part by the listed label-sets."""
        at = self._shifted_one(threshold)
        lower, upper = self.inner.finer_bounds(row, at, n_cells)
        flags = self._flags(row, threshold)
        members, within = (int(np.count_nonzero(flags & flag)) for flag in (kernel.MEMBER, kernel.WITHIN))
        return max(lower + members - within, members), upper + members - within

    def with_totals(self, totals: FloatArray) -> MixtureEngine:
        """Give the independent part shifted totals."""
        changed = super().with_totals(totals)
        return changed._with(inner=self.inner.with_totals(self._measure.shifted(totals)))

    def _sorted_candidates(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield L and totals of all listed candidates, each ascending, text by text."""
        nodes = np.flatnonzero(self._listed_candidates)
        for row in range(len(self)):
            sums, totals = self._scored(row, nodes)
            yield np.sort(sums), np.sort(totals)

    def _counts_at(self, thresholds: FloatArray, n_cells: int) -> FloatArray:
        """Correct the independent part's counts by the listed label-sets within each threshold."""
        shifted = self._measure.shifted(thresholds)
        counts = self.inner._counts_at(shifted, n_cells)
        if len(thresholds) <= _FEW:
            _, texts = self._part(slice(0, len(self)))
            for j, pair in enumerate(zip(thresholds, shifted, strict=True)):
                listed = self._count_listed(texts, *(np.full(len(self), at) for at in pair))
                counts[:, j] = _with_listed(counts[:, j], listed[:, 0], listed[:, 1])
            return counts
        for row, (sums, totals) in enumerate(self._sorted_candidates()):
            members = np.searchsorted(totals, thresholds, side="right")
            counts[row] = _with_listed(counts[row], members, np.searchsorted(sums, shifted, side="right"))
        return counts

    def _rank_sums(self, n_cells: int) -> FloatArray:
        """Correct the independent part's sums by the ranks of the listed label-sets."""
        own, shifted = self.calibration.totals, self.inner.calibration.totals
        sums = self.inner._rank_sums(n_cells)
        for row, (independent, totals) in enumerate(self._sorted_candidates()):
            ranks, counted = (
                len(own) * len(totals) - int(np.searchsorted(among, values, side="left").sum())
                for among, values in ((own, totals), (shifted, independent))
            )
            sums[row] = np.maximum(sums[row] + (ranks - counted), ranks)
        return sums


def _with_listed(counts: FloatArray, members: Any, within: Any) -> FloatArray:
    """Return the independent part's counts (m, 2) with listed members (m,) for those that it counted."""
    corrected: FloatArray = np.maximum(counts + (members - within)[:, None], members[:, None])
    return corrected


def _as_members(labels: Any) -> list[Member]:
    """Return 0/1 rows, dense or sparse, as ascending label indices."""
    if is_sparse(labels):
        return [tuple(part.tolist()) for part in np.split(labels.indices, labels.indptr[1:-1])]
    return as_members(labels)


def best_first_key(scored: Scored) -> tuple[float, Member]:
    """Return what members are ordered by: total, then the lexicographic order of 0/1 rows."""
    return scored[0], tuple(-label for label in scored[1])
