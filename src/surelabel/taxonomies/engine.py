"""The engine of a taxonomy: the union over kinds of the candidates within each kind's own threshold.

Kinds divide the candidates. A kind by number of labels is a search with limits; one by the rarest label is the
difference of two searches, without some labels and without some more. Thresholds are (n, n_kinds).
"""

from __future__ import annotations

import functools
import heapq
import itertools
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, Self

import numpy as np

from surelabel._core.threads import over_rows
from surelabel._core.validation import BoolArray, FloatArray, IntArray
from surelabel._kernels.kinds import count_kinds
from surelabel.calibration import threshold_of
from surelabel.engines import engine_for
from surelabel.engines.base import Engine, Member, Scored, Threshold, WrappingEngine
from surelabel.engines.bounds import as_float
from surelabel.engines.dense import DenseEngine
from surelabel.engines.reach import Reach
from surelabel.engines.sizes import Bounds, SizeBounds, as_sizes
from surelabel.labels.label_sets import label_indices
from surelabel.labels.sparse import is_sparse
from surelabel.taxonomies.categories import Categories
from surelabel.taxonomies.kinds import Span

# Counts below this add up without overflow.
_FITS = 2**62


class _Piece:
    """The label-sets of one kind: those of one engine, less those of another one."""

    def __init__(self, outer: Engine, inner: Engine | None) -> None:
        self.outer = outer
        self.inner = inner

    @property
    def n_candidates(self) -> int:
        """Number of label-sets of the kind."""
        return self.outer.n_candidates - (0 if self.inner is None else self.inner.n_candidates)

    def bounds(self, thresholds: FloatArray, rows: slice) -> SizeBounds:
        """Bound the numbers of members."""
        outer = self.outer.bounds(thresholds, rows)
        if self.inner is None:
            return outer
        inner = self.inner.bounds(thresholds, rows)
        # No difference of sizes is below 0, and none overflows.
        lower = np.maximum(outer.lower - inner.upper, 0)
        return SizeBounds(lower, np.maximum(outer.upper - inner.lower, 0))

    def counts_at(self, thresholds: FloatArray, n_cells: int) -> FloatArray:
        """Bound the numbers of label-sets within each of m ascending thresholds, (n, m, 2)."""
        return np.asarray(self._less(lambda engine: engine.counts_at(thresholds, n_cells)))

    def rank_sums(self, totals: FloatArray, n_cells: int) -> FloatArray:
        """Bound the sum over ascending totals a of the number of label-sets within a, (n, 2)."""
        return np.asarray(self._less(lambda engine: engine.with_totals(totals).rank_sums(n_cells)))

    def _less(self, ask: Callable[[Engine], Any]) -> Any:
        """Return bounds (..., 2) of what the outer engine counts, less those of the inner one."""
        counted = ask(self.outer)
        return counted if self.inner is None else np.maximum(counted - ask(self.inner)[..., ::-1], 0)

    def with_label(self, row: int, threshold: float, labels: Sequence[int]) -> Any:
        """Bound the numbers of members that have each of some labels, (m, 2), whole numbers of any size."""
        return self._less(lambda engine: np.array([(0, 0), *engine.with_label(row, threshold, labels)], object))[1:]

    def finer_bounds(self, row: int, threshold: float, n_cells: int) -> Any:
        """Bound the number of members by tables, (2,), whole numbers of any size."""
        return self._less(lambda engine: np.array(engine.finer_bounds(row, threshold, n_cells), dtype=object))


class KindsEngine(WrappingEngine):
    """Answers for texts whose label-sets are divided into kinds, with one threshold per text and kind."""

    def __init__(self, inner: Engine, categories: Categories, codes: IntArray) -> None:
        super().__init__(inner)
        self.search = inner.search
        self.limits = inner.limits
        self.categories = categories
        self.codes = codes
        self._pieces = self._make_pieces()

    def _make_pieces(self) -> list[_Piece | None]:
        """Return the engines of each kind, None for kinds without candidates."""
        barred: dict[int, Engine] = {}

        def made(span: Span, labels: BoolArray | None) -> Engine:
            engine = self.inner
            if labels is not None and labels.any():
                key = int(labels.sum())  # barred labels are nested: their number tells them apart
                if key not in barred:
                    barred[key] = self.inner.without(labels)
                engine = barred[key]
            return engine if span.limits == self.limits else engine.limited(span.limits)

        pieces: list[_Piece | None] = []
        for span in self.categories.taxonomy.spans(self.limits):
            if span is None or (span.inner is not None and not span.inner.any()):
                pieces.append(None)
                continue
            outer = made(span, span.barred)
            inner = None if span.inner is None else made(span, span.inner)
            inner = inner if inner is not None and inner.n_candidates > 0 else None
            pieces.append(_Piece(outer, inner) if outer.n_candidates > 0 else None)
        return pieces

    @property
    def kinds(self) -> list[tuple[int, _Piece]]:
        """Kinds that have candidates."""
        return [(kind, piece) for kind, piece in enumerate(self._pieces) if piece is not None]

    def names_of(self, labels: Any) -> list[str]:
        """Return the category of one label-set per text in words."""
        kinds = self.categories.taxonomy.kinds_of(labels)
        pairs = zip(self.codes.tolist(), kinds.tolist(), strict=True)
        return [self.categories.name_of(code, kind) for code, kind in pairs]

    def warn_of_small(self, level: Fraction, fewest: int) -> None:
        """Warn of categories of these texts with fewer than `fewest` calibration texts."""
        self.categories.warn_of_small(level, self.codes, [piece is not None for piece in self._pieces], fewest)

    def _again(self, inner: Engine, codes: IntArray) -> Self:
        """Return an engine like this one over another inner one."""
        return type(self)(inner, self.categories, codes)

    def __getitem__(self, rows: slice) -> Self:
        return self._again(self.inner[rows], self.codes[rows])

    def _changed(self, change: Callable[[Any], Any], **own: Any) -> Self:
        """Change the engine of every kind."""
        return self._again(change(self.inner), self.codes)

    def error_rates(self, labels: Any, levels: Sequence[Fraction]) -> FloatArray:
        """Return the share of texts whose given label-set is outside the set, for each of m significances, (m,)."""
        kinds = self.categories.taxonomy.kinds_of(labels)
        totals, is_candidate = self.totals(labels), self.is_candidate(labels)
        rates = np.empty(len(levels))
        for place, level in enumerate(levels):
            limits = self.categories.thresholds([level], np.zeros(len(self), dtype=np.int64), self.codes)
            within = totals <= limits[np.arange(len(self)), kinds]
            rates[place] = 1.0 - float((within & is_candidate).mean())
        return rates

    def _by_category(self) -> Iterator[tuple[IntArray, _Piece, FloatArray]]:
        """Yield the rows of texts of each group, the label-sets of each kind for them, and the category's totals."""
        for code in np.unique(self.codes).tolist():
            rows = np.flatnonzero(self.codes == code)
            part = self if len(rows) == len(self) else self.of_rows(rows)
            for kind, piece in part.kinds:
                yield rows, piece, self.categories.category(code, kind)

    def counts_at_levels(self, levels: Sequence[Fraction], n_cells: int) -> FloatArray:
        """Bound the sizes of prediction sets at each of m falling significances, (n, m, 2)."""
        bounds = np.zeros((len(self), len(levels), 2))
        for rows, piece, totals in self._by_category():
            at = np.array([threshold_of(totals, level) for level in levels])
            bounds[rows] += piece.counts_at(at, n_cells)
        return bounds

    def p_value_sums(self, n_cells: int) -> tuple[FloatArray, FloatArray]:
        """Add up the kinds, each with the p-values of its category."""
        floors, excess = np.zeros(len(self)), np.zeros((len(self), 2))
        for rows, piece, totals in self._by_category():
            floors[rows] += as_float(Fraction(piece.n_candidates, len(totals) + 1))
            if len(totals):
                excess[rows] += piece.rank_sums(totals, n_cells) / (len(totals) + 1)
        return floors, excess

    def of_rows(self, rows: IntArray) -> KindsEngine:
        """Return the engine of some texts, in any order."""
        inner = self.inner
        chosen = engine_for(
            inner.calibration, inner.probabilities[rows], inner.search, inner.work_limit, inner.n_jobs
        ).limited(self.limits)
        return self._again(chosen, self.codes[rows])

    def contains(self, thresholds: FloatArray, labels: Any) -> BoolArray:
        """Compare each label-set with the threshold of its kind."""
        kinds = self.categories.taxonomy.kinds_of(labels)
        within = self.totals(labels) <= thresholds[np.arange(len(thresholds)), kinds]
        return np.asarray(self.is_candidate(labels) & within)

    def p_values_with(self, totals: FloatArray, labels: Any, tie_breaks: FloatArray | None = None) -> FloatArray:
        """Rank totals in the categories of label-sets."""
        return self.categories.p_values(totals, self.codes, self.categories.taxonomy.kinds_of(labels), tie_breaks)

    def p_values(
        self, rows: IntArray, scored: Sequence[Scored], tie_breaks: FloatArray | None = None
    ) -> Sequence[float]:
        """Rank members in their categories."""
        if not scored:
            return []
        totals = np.array([total for total, _ in scored])
        kinds = np.array([self.categories.taxonomy.kind_of(member) for _, member in scored])
        ties = None if tie_breaks is None else np.broadcast_to(np.asarray(tie_breaks), totals.shape)
        values: list[float] = self.categories.p_values(totals, self.codes[rows], kinds, ties).tolist()
        return values

    def _ranked(self, row: int, kind: int, piece: _Piece, threshold: float) -> Iterator[tuple[Any, Scored]]:
        """Yield the members of one kind of a text, best first, each with what it is ordered by."""
        code = int(self.codes[row])
        for total, member in piece.outer.iterate(row, threshold):
            if piece.inner is None or self.categories.taxonomy.kind_of(member) == kind:
                p_value = float(self.categories.among(code, kind, np.array(total)))
                yield (-p_value, total, tuple(-label for label in member)), (total, member)

    def iterate(self, row: int, threshold: Threshold) -> Iterator[Scored]:
        """Yield members by descending p-value, equal ones by ascending total, then in lexicographic order."""
        streams = [self._ranked(row, kind, piece, float(threshold[kind])) for kind, piece in self.kinds]
        return (scored for _, scored in heapq.merge(*streams, key=lambda ranked: ranked[0]))

    def forced(self) -> tuple[Any, FloatArray]:
        """Return the candidates with the highest p-values, and their totals and those of the second best."""
        labels, _, totals = self._best(None)
        return labels, totals

    def forced_p_values(self, tie_breaks: FloatArray | None = None) -> tuple[Any, FloatArray]:
        """Compare the best two of every kind by their p-values."""
        labels, p_values, _ = self._best(tie_breaks)
        return labels, p_values

    def _best(self, tie_breaks: FloatArray | None) -> tuple[Any, FloatArray, FloatArray]:
        """Return the best candidate of each text, and the two highest p-values with their totals, (n, 2) each."""
        n_texts = len(self)
        members: list[Member] = [()] * n_texts
        order: list[Any] = [None] * n_texts
        every_p, every_total = [], []
        for kind, piece in self.kinds:
            best, totals = self._best_of_kind(kind, piece)
            kinds = np.full(n_texts, kind)
            p_values = np.column_stack(
                [self.categories.p_values(totals[:, place], self.codes, kinds, tie_breaks) for place in (0, 1)]
            )
            p_values[np.isinf(totals)] = 0.0
            every_p.append(p_values)
            every_total.append(totals)
            for row, member in enumerate(best):
                if member is None:
                    continue
                rank = -p_values[row, 0], totals[row, 0], tuple(-label for label in member)
                if order[row] is None or rank < order[row]:
                    order[row], members[row] = rank, member
        together, totals = np.hstack(every_p), np.hstack(every_total)
        first = np.lexsort((totals, -together), axis=1)[:, :2]
        return self.as_rows(members), np.take_along_axis(together, first, 1), np.take_along_axis(totals, first, 1)

    def _best_of_kind(self, kind: int, piece: _Piece) -> tuple[list[Member | None], FloatArray]:
        """Return the best candidate of one kind for each text, None if it has none, and totals of the best two."""
        if piece.inner is None:
            labels, totals = piece.outer.forced()
            return [tuple(row) for row in label_indices(labels)], totals
        members: list[Member | None] = [None] * len(self)
        totals = np.full((len(self), 2), np.inf)
        for row in range(len(self)):
            best = itertools.islice(self._ranked(row, kind, piece, np.inf), 2)
            for place, (_, (total, member)) in enumerate(best):
                totals[row, place] = total
                members[row] = member if place == 0 else members[row]
        return members, totals

    def bounds(self, thresholds: FloatArray, rows: slice | None = None) -> SizeBounds:
        """Add up the kinds."""
        part = slice(0, len(self)) if rows is None else rows
        if type(self.inner) is not DenseEngine:
            return self._add_up(thresholds, part)
        dense = self.inner

        def count(block: slice) -> SizeBounds:
            # Costs take as long as counting small sets: they are priced once per block, for all kinds.
            texts = slice(part.start + block.start, part.start + block.stop)
            priced = self._again(dense[texts].with_jobs(1).priced(), self.codes[texts])
            return priced._add_up(thresholds[block], slice(0, block.stop - block.start))

        return SizeBounds.joined(over_rows(count, len(thresholds), self.n_jobs))

    def _add_up(self, thresholds: FloatArray, rows: slice) -> SizeBounds:
        """Add up the kinds of some texts."""
        if type(self.inner) is DenseEngine and not self.inner.is_maximum and self.kinds:
            return self._count_at_once(self.inner, thresholds, rows)
        counted = [piece.bounds(np.ascontiguousarray(thresholds[:, kind]), rows) for kind, piece in self.kinds]
        return SizeBounds.summed(counted)

    def _count_at_once(self, dense: DenseEngine, thresholds: FloatArray, rows: slice) -> SizeBounds:
        """Count all kinds of texts in one pass, for a measure that is a sum."""
        taxonomy = self.categories.taxonomy
        kinds = np.array([kind for kind, _ in self.kinds], dtype=np.int64)
        at = np.ascontiguousarray(thresholds[:, kinds])
        every = np.isposinf(at)
        limits = np.array([piece.outer.limits for _, piece in self.kinds], dtype=np.int64)
        counts = np.empty(at.shape, dtype=np.int64)
        finite = np.where(every, -np.inf, at) if every.any() else at
        count_kinds(dense.costs(rows), finite, limits, taxonomy.class_of(kinds), self._classes, self.work_limit, counts)
        if not every.any() and (counts >= 0).all() and counts.max(initial=0) < _FITS // at.shape[1]:
            sizes = counts.sum(axis=1)
            return SizeBounds(sizes, sizes.copy())
        lower, upper = counts.astype(object), counts.astype(object)
        for place, (_, piece) in enumerate(self.kinds):
            lower[every[:, place], place] = upper[every[:, place], place] = piece.n_candidates
            for row in np.flatnonzero(counts[:, place] < 0).tolist():
                text = slice(rows.start + row, rows.start + row + 1)
                lower[row, place], upper[row, place] = piece.bounds(at[row : row + 1, place], text)[0]
        return SizeBounds(as_sizes(lower.sum(axis=1).tolist()), as_sizes(upper.sum(axis=1).tolist()))

    @functools.cached_property
    def _classes(self) -> tuple[IntArray, int]:
        """The class of each label by its number of training texts, (d,), 0 if that does not matter; and the last."""
        taxonomy = self.categories.taxonomy
        return taxonomy.label_classes(self.n_labels), len(taxonomy.rarity)

    def finer_bounds(self, row: int, threshold: Threshold, n_cells: int) -> Bounds:
        """Add up the kinds."""
        counted = [piece.finer_bounds(row, float(threshold[kind]), n_cells) for kind, piece in self.kinds]
        lower, upper = sum(counted, np.zeros(2, dtype=object)).tolist()
        return lower, upper

    def with_label(self, row: int, threshold: Threshold, labels: Sequence[int]) -> list[Bounds]:
        """Add up the kinds."""
        counted = [piece.with_label(row, float(threshold[kind]), labels) for kind, piece in self.kinds]
        return list(map(tuple, sum(counted, np.zeros((len(labels), 2), dtype=object)).tolist()))

    def reachable(self, thresholds: FloatArray, rows: slice) -> BoolArray:
        """Join the kinds; members of a difference are counted label by label."""
        reachable = np.zeros((len(thresholds), self.n_labels, 2), dtype=np.bool_)
        labels = range(self.n_labels)
        for kind, piece in self.kinds:
            at = np.ascontiguousarray(thresholds[:, kind])
            if piece.inner is None:
                reachable |= piece.outer.reachable(at, rows)
                continue
            for place, row in enumerate(range(rows.start, rows.stop)):
                size = piece.bounds(at[place : place + 1], slice(row, row + 1))[0]
                if size[1] == 0:
                    continue
                counts = piece.with_label(row, float(at[place]), labels)
                reachable[place, :, 0] |= (size[1] - counts[:, 0] > 0).astype(np.bool_)
                reachable[place, :, 1] |= (counts[:, 1] > 0).astype(np.bool_)
        return reachable

    @property
    def _distinguishes_all(self) -> bool:
        """Whether labels that a text does not list differ from each other: by how rare they are."""
        return not is_sparse(self.probabilities) or bool(self.categories.taxonomy.rarity)

    def listed(self, row: int) -> IntArray:
        """Return the labels that the text distinguishes."""
        return np.arange(self.n_labels) if self._distinguishes_all else self.inner.listed(row)

    def reach(self, row: int, threshold: Threshold) -> Reach:
        """Join the kinds: they distinguish the same labels."""
        if self._distinguishes_all:
            return super().reach(row, threshold)
        parts = [piece.outer.reach(row, float(threshold[kind])) for kind, piece in self.kinds]
        told = functools.reduce(np.union1d, [part.labels for part in parts])
        every = np.zeros((len(told), 2), dtype=np.bool_)
        for part in parts:
            one = np.tile(np.array(part.others), (len(told), 1))
            one[np.searchsorted(told, part.labels)] = part.reachable
            every |= one
        others = tuple(len(told) < self.n_labels and any(part.others[side] for part in parts) for side in (0, 1))
        return Reach(told, every, (others[0], others[1]))

    def dense(self, rows: slice) -> Self:
        """Wrap the dense engine of the texts."""
        return self._again(self.inner.dense(rows), self.codes[rows])

    def relaxation(self, row: int, threshold: Threshold) -> tuple[FloatArray, FloatArray, float]:
        """Take the largest threshold of a kind."""
        return self.inner.relaxation(row, max(float(threshold[kind]) for kind, _ in self.kinds))
