"""The exact search for sparse probabilities: cost grows with what texts list, not with the number of labels.

For each number j of unlisted labels the listed ones make a short row (`measures/compressed.py`). It is counted or
walked as any row is, and each label-set found stands for binomial(g, j) members of one total, which are made when they
are asked for.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from scipy.sparse import csr_array

from surelabel._core.packing import Words, unpack
from surelabel._core.threads import over_rows
from surelabel._core.validation import BoolArray, FloatArray, IntArray
from surelabel._kernels import forced, maximum, walk
from surelabel.engines.base import Engine, Member, Scored, Threshold
from surelabel.engines.best_first import CostRow, iterate_row, most_tied
from surelabel.engines.bounds import as_float, count_row, rank_sum_of_row, steps_to_rank
from surelabel.engines.dense import DenseEngine
from surelabel.engines.reach import Reach
from surelabel.engines.sizes import Bounds, SizeBounds
from surelabel.exceptions import InvalidInputError
from surelabel.labels.counting import count_by_size
from surelabel.labels.sparse import SparseLabels, SparseProbabilities
from surelabel.measures.compressed import CompressedRows, compress

MOST_DESCRIBED = 10_000
"""Labels up to which sets from sparse probabilities are described: a description names every label."""
# Numbers of unlisted labels that a size is added up over; beyond, it is bounded.
_MOST_UNLISTED = 256
# Rounding of running totals, for choices that may only err on the safe side.
_SLACK = 1e-9
# Steps that counting one text at one of many thresholds may take.
_MAX_STEPS = 200_000

# (total, number of unlisted labels, packed listed ones): label-sets that differ in their unlisted labels alone.
_Class: TypeAlias = tuple[float, int, Words]


class SparseEngine(Engine):
    """Answers about texts with sparse probabilities; the same answers as those of the dense engine."""

    probabilities: SparseProbabilities

    def _rows(self, rows: slice, n_representatives: int = 0) -> CompressedRows:
        """Return the short rows of some texts; barred labels are never present in them."""
        return compress(self.calibration.separable, self.probabilities[rows], n_representatives, self.barred)

    def as_rows(self, members: Sequence[Sequence[int]]) -> SparseLabels:
        """Return label-sets, each as ascending labels, as a bool CSR array (m, d)."""
        indices = np.fromiter(itertools.chain.from_iterable(members), dtype=np.int64)
        starts = np.array(list(itertools.accumulate(map(len, members), initial=0)), dtype=np.int64)
        return csr_array((np.ones(len(indices), dtype=np.bool_), indices, starts), shape=(len(members), self.n_labels))

    def forced(self) -> tuple[SparseLabels, FloatArray]:
        """Find the two cheapest by exchanges.

        The cheapest candidates have at most min_labels unlisted labels, those with the last indices; the next best one
        adds one, so min_labels + 1 of them stand for all.
        """

        def block(rows: slice) -> tuple[list[list[int]], FloatArray]:
            short = self._rows(rows, self.limits[0] + 1)
            find = maximum.forced_flat_maximum if short.is_maximum else forced.forced_flat
            member, totals = np.empty(len(short.labels), dtype=np.uint8), np.empty((len(short), 2))
            find(short.starts, short.absent, short.present, self.limits, member, totals)
            chosen = np.where(member.view(np.bool_), short.labels, -1)
            return [part[part >= 0].tolist() for part in np.split(chosen, short.starts[1:-1])], totals

        blocks = over_rows(block, len(self), self.n_jobs)
        members = [member for chosen, _ in blocks for member in chosen]
        return self.as_rows(members), np.concatenate([totals for _, totals in blocks])

    def _bounds(self, thresholds: FloatArray, rows: slice) -> SizeBounds:
        """Add up counts of short rows times binomials, over the numbers of unlisted labels."""
        everything = np.isposinf(thresholds)
        every = self.n_candidates if everything.any() else 0
        if everything.all():
            return SizeBounds.of([(every, every)] * len(thresholds))
        counted = self._count(self._rows(rows), np.where(everything, -np.inf, thresholds))
        return SizeBounds.of((every, every) if all_in else n for all_in, n in zip(everything, counted, strict=True))

    def _count(self, rows: CompressedRows, thresholds: FloatArray, one_unlisted: int = -1) -> list[Bounds]:
        """Count or bound the members of short rows; of row `one_unlisted` those that have a given unlisted label."""
        if rows.is_maximum:
            return [(n, n) for n in _count_of_maximum(rows, thresholds, self.limits)]
        sums = [[0, 0] for _ in range(len(rows))]
        for j, chosen, part, within in _by_unlisted(rows, thresholds, self.limits):
            counted = _count_short_rows(part, thresholds[chosen], within, self.work_limit)
            for i, (lower, upper) in zip(chosen.tolist(), counted, strict=True):
                given = int(i == one_unlisted)
                ways = math.comb(int(rows.n_unlisted[i]) - given, j - given) if j >= given else 0
                sums[i][0] += ways * lower
                sums[i][1] += ways * upper
        for i in np.flatnonzero(_is_cut_short(rows, thresholds, self.limits)).tolist():
            sums[i][1] = self.n_candidates
        return [(lower, upper) for lower, upper in sums]

    def iterate(self, row: int, threshold: Threshold) -> Iterator[Scored]:
        """Yield members class by class, those of equal total merged in lexicographic order of 0/1 rows."""
        rows = self._rows(slice(row, row + 1))
        thresholds = _finite(rows, np.array([threshold], dtype=np.float64))
        listed = self.listed(row)
        unlisted = _Unlisted(self.taken(row), self.n_labels)
        for total, tied in _tied(_classes(rows, thresholds, self.limits), most_tied(self.n_labels)):
            parts = [_members(listed[unpack(words[None, :], len(listed))[0]], unlisted, j) for j, words in tied]
            for negated in parts[0] if len(parts) == 1 else heapq.merge(*parts):
                yield total, tuple(-label for label in negated)

    def listed(self, row: int) -> IntArray:
        """Return the labels that a text lists."""
        return self.probabilities[row : row + 1].labels

    def taken(self, row: int) -> IntArray:
        """Return the labels that do not count as unlisted, ascending."""
        return self.listed(row) if self.barred is None else np.union1d(self.listed(row), np.flatnonzero(self.barred))

    def with_label(self, row: int, threshold: Threshold, labels: Sequence[int]) -> list[Bounds]:
        """Count with a listed label's absence made unaffordable; all unlisted labels have one count."""
        rows, listed = self._rows(slice(row, row + 1)), self.listed(row)
        lo, hi = self.limits
        if np.isposinf(threshold):
            every = count_by_size(self.n_free - 1, max(lo, 1) - 1, hi - 1)
            return [(0, 0) if self.is_barred(label) else (every, every) for label in labels]
        column_of = {label: column for column, label in enumerate(listed.tolist())}
        # Of a barred label neither value can be afforded: it is in no member.
        columns = sorted({column_of[label] for label in labels if label in column_of and not self.is_barred(label)})
        many = rows.take(np.zeros(len(columns) + 1, dtype=np.int64))
        many.absent[many.starts[:-2] + np.array(columns, dtype=np.int64)] = np.inf
        thresholds = np.full(len(many), float(threshold))
        counts = self._count(many, thresholds, len(columns))
        if rows.n_unlisted[0] == 0:
            counts[-1] = (0, 0)
        elif rows.is_maximum:
            fewer = dataclasses.replace(rows, n_unlisted=rows.n_unlisted - 1)
            within = rows.group[1] <= float(threshold)
            count = _count_of_maximum(fewer, thresholds[:1], (lo - 1, hi - 1))[0] if within else 0
            counts[-1] = (count, count)
        by_label = {int(listed[column]): counts[i] for i, column in enumerate(columns)}
        return [(0, 0) if self.is_barred(label) else by_label.get(label, counts[-1]) for label in labels]

    def reaches(self, thresholds: FloatArray, rows: slice) -> list[Reach]:
        """Return which labels members have, for some texts, from a few unlisted labels that stand for all."""
        short = self._rows(rows, self.limits[0] + 1)
        at = _finite(short, thresholds)
        membership = short
        if short.is_maximum:
            membership = short.within(at)
            at = np.where(np.isneginf(at), -np.inf, 0.0)
        reachable = np.empty((len(short.labels), 2), dtype=np.bool_)
        forced.reachable_flat(short.starts, membership.absent, membership.present, at, self.limits, reachable)
        return [self._reach(short, i, row, reachable) for i, row in enumerate(range(rows.start, rows.stop))]

    def _reach(self, short: CompressedRows, i: int, row: int, reachable: BoolArray) -> Reach:
        """Sort the columns of one short row into listed labels and representatives of the unlisted ones."""
        columns = slice(short.starts[i], short.starts[i + 1])
        labels, found, listed = short.labels[columns], reachable[columns], self.listed(row)
        is_listed = np.isin(labels, listed)
        others = found[(labels >= 0) & ~is_listed]
        hidden = bool(short.n_unlisted[i] > short.n_representatives[i])
        absent = bool(found.any()) and (hidden or bool(others[:, 0].any()))
        return Reach(listed, found[is_listed], (absent, bool(others[:, 1].any())))

    def reach(self, row: int, threshold: Threshold) -> Reach:
        """Return which labels of one text members have: the listed ones, and once for all others."""
        return self.reaches(np.array([threshold], dtype=np.float64), slice(row, row + 1))[0]

    def dense(self, rows: slice) -> DenseEngine:
        """Write probabilities out."""
        if self.n_labels > MOST_DESCRIBED:
            raise InvalidInputError(
                f"A description names every label, of up to {MOST_DESCRIBED:,}. Got {self.n_labels:,} labels; "
                "use certain, possible, top and listed_inclusion_bounds instead."
            )
        dense = DenseEngine(self.calibration, self.probabilities[rows].toarray(), self.work_limit, self.n_jobs)
        return dense._with(limits=self.limits, barred=self.barred)

    def relaxation(self, row: int, threshold: Threshold) -> tuple[FloatArray, FloatArray, float]:
        """Return the costs of all labels."""
        return self.dense(slice(row, row + 1)).relaxation(0, threshold)

    def _counts_at(self, thresholds: FloatArray, n_cells: int) -> FloatArray:
        """Count a threshold at a time."""
        counting = self.with_work_limit(_MAX_STEPS)
        counted = (counting.bounds(np.full(len(self), threshold)) for threshold in thresholds)
        return np.array([[list(map(as_float, pair)) for pair in counts] for counts in counted]).transpose(1, 0, 2)

    def _rank_sums(self, n_cells: int) -> FloatArray:
        """Add up binomials of sums of short rows."""
        rows, totals = self._rows(slice(0, len(self))), self.calibration.totals
        if rows.is_maximum:
            return super()._rank_sums(n_cells)
        largest = np.full(len(rows), totals[-1])
        sums: list[list[Fraction]] = [[Fraction(0), Fraction(0)] for _ in range(len(rows))]
        for j, chosen, part, limits in _by_unlisted(rows, largest, self.limits):
            counted = _count_short_rows(part, largest[chosen], limits, steps_to_rank(n_cells))
            for place, i in enumerate(chosen.tolist()):
                lower, upper = counted[place]
                bounds = rank_sum_of_row(part.row(place), totals, limits, lower if lower == upper else -1, n_cells)
                ways = math.comb(int(rows.n_unlisted[i]), j)
                every = Fraction(len(totals) * count_by_size(int(rows.n_listed[i]), *limits))
                for side, bound in enumerate(bounds):
                    sums[i][side] += ways * (every if math.isinf(bound) else min(Fraction(bound), every))
        for i in np.flatnonzero(_is_cut_short(rows, largest, self.limits)).tolist():
            sums[i][1] = Fraction(self.n_candidates * len(totals))
        return np.array([[as_float(lower), as_float(upper)] for lower, upper in sums])


def _finite(rows: CompressedRows, thresholds: FloatArray) -> FloatArray:
    """Return thresholds with an infinite one replaced by one that no label-set passes."""
    if not np.isposinf(thresholds).any():
        return thresholds
    no_limit = 2.0 * (rows.dearest() + rows.n_unlisted * rows.group[1]) + 1.0
    return np.where(np.isposinf(thresholds), no_limit, thresholds)


def _spans(rows: CompressedRows, thresholds: FloatArray, limits: Bounds) -> tuple[IntArray, IntArray]:
    """Return how many unlisted labels members of each row have at least, and at most (below that: no members)."""
    fewest = np.maximum(0, limits[0] - rows.n_listed)
    most = np.minimum(rows.n_unlisted, limits[1])
    absent, present = rows.group
    if rows.is_maximum:
        return fewest, np.where(present <= thresholds, most, np.minimum(most, 0))
    base = rows.base()
    budget = np.maximum(thresholds, -1.0)
    room = budget - base + _SLACK * (base + np.abs(budget))
    price = present - absent
    afforded = most if price == 0 else np.floor(np.minimum(room / price * (1.0 + _SLACK), most)).astype(np.int64)
    return fewest, np.where((room < 0) | (thresholds < 0), -1, afforded)


def _by_unlisted(
    rows: CompressedRows, thresholds: FloatArray, limits: Bounds
) -> Iterator[tuple[int, IntArray, CompressedRows, Bounds]]:
    """Yield (j, rows, their costs with j unlisted labels present, limits on the listed ones), for each j that fits."""
    fewest, most = _spans(rows, thresholds, limits)
    last = min(most.max(initial=-1), fewest.max(initial=0) + _MOST_UNLISTED)
    for j in range(int(fewest.min(initial=0)), int(last) + 1):
        chosen = np.flatnonzero((fewest <= j) & (j <= most) & (j <= fewest + _MOST_UNLISTED))
        if len(chosen):
            part = rows.take(chosen)
            part.hold(j)
            yield j, chosen, part, (max(0, limits[0] - j), limits[1] - j)


def _is_cut_short(rows: CompressedRows, thresholds: FloatArray, limits: Bounds) -> BoolArray:
    """Tell for each row whether `_by_unlisted` leaves numbers of unlisted labels out, because there are too many."""
    fewest, most = _spans(rows, thresholds, limits)
    return np.asarray(most > fewest + _MOST_UNLISTED)


def _count_short_rows(rows: CompressedRows, thresholds: FloatArray, limits: Bounds, work_limit: int) -> list[Bounds]:
    """Count or bound the label-sets of the listed labels that are within thresholds."""
    sizes, work = np.empty((2, len(rows)), dtype=np.int64)
    walk.count_flat(rows.starts, rows.absent, rows.present, thresholds, limits, work_limit, sizes, work)
    counted: list[Bounds] = [(size, size) for size in sizes.tolist()]
    given_up = np.flatnonzero(sizes < 0).tolist()
    everything = rows.dearest() * (1.0 + _SLACK) <= thresholds if given_up else sizes > 0
    n_free = rows.n_free() if given_up else sizes
    for i in given_up:
        within = (limits[0], min(limits[1], int(rows.n_listed[i])))
        every = count_by_size(int(n_free[i]), *within)
        lower, upper = (every, every) if everything[i] else count_row(*rows.row(i), float(thresholds[i]), within)
        counted[i] = (min(lower, every), min(upper, every))
    return counted


def _count_of_maximum(rows: CompressedRows, thresholds: FloatArray, limits: Bounds) -> list[int]:
    """Count the members of rows of a maximum: free labels give binomials, the unlisted ones among them."""
    free, held, possible = rows.free_and_held(thresholds)
    free = free + np.where(rows.group[1] <= thresholds, rows.n_unlisted, 0)
    return [
        count_by_size(f, limits[0] - h, limits[1] - h) if fits else 0
        for f, h, fits in zip(free.tolist(), held.tolist(), possible.tolist(), strict=True)
    ]


class _Unlisted:
    """The unlisted labels of a text, by how many of them come after: 0 is the last."""

    def __init__(self, listed: IntArray, n_labels: int) -> None:
        self.count = n_labels - len(listed)
        self._before = listed - np.arange(len(listed))

    def label(self, place: int) -> int:
        """Return the label that `place` other unlisted labels follow."""
        rank = self.count - 1 - place
        return rank + int(np.searchsorted(self._before, rank, side="right"))

    def choices(self, j: int) -> Iterator[list[int]]:
        """Yield the sets of j places, in lexicographic order of the 0/1 rows of their labels."""
        places = list(range(j))
        while j == 0 or places[-1] < self.count:
            yield places
            if j == 0:
                return
            i = 0
            while i + 1 < j and places[i] + 1 == places[i + 1]:
                places[i] = i
                i += 1
            places[i] += 1


def _members(chosen: IntArray, unlisted: _Unlisted, j: int) -> Iterator[Member]:
    """Yield the members with these listed labels and j unlisted ones, as ascending labels negated.

    Negated so that the order of tuples is the lexicographic order of 0/1 rows.
    """
    fixed = chosen.tolist()
    for places in unlisted.choices(j):
        yield tuple(-label for label in sorted(fixed + [unlisted.label(place) for place in places]))


def _flat(row: CostRow) -> Iterator[tuple[float, Words]]:
    """Yield (total, packed member) of a row, best first."""
    for totals, words in iterate_row(row):
        yield from zip(totals.tolist(), words, strict=True)


def _classes(rows: CompressedRows, thresholds: FloatArray, limits: Bounds) -> Iterator[_Class]:
    """Yield classes of the first row by ascending total.

    The row of j is not made before it is needed. The cheapest label-set with j unlisted labels costs at least what the
    cheapest of all costs and j times a flip; and from min_labels on one more unlisted label only costs more, and leaves
    less room for listed ones, so the best with j comes after the best with j - 1.
    """
    fewest, most = (int(span[0]) for span in _spans(rows, thresholds, limits))
    threshold = float(thresholds[0])
    waiting: list[tuple[float, int, Words, Iterator[tuple[float, Words]]]] = []
    base = 0.0 if rows.is_maximum else float(rows.base()[0]) * (1.0 - _SLACK)
    price = 0.0 if rows.is_maximum else (rows.group[1] - rows.group[0]) * (1.0 - _SLACK)
    j = fewest
    given = -1
    while waiting or j <= most:
        if j <= most and (not waiting or (j <= max(limits[0], given + 1) and base + j * price <= waiting[0][0])):
            rows.hold(j)
            absent, present = rows.row(0)
            within = (max(0, limits[0] - j), limits[1] - j)
            number, source = j, _flat(CostRow(absent.copy(), present, threshold, within, rows.is_maximum))
            j += 1
        else:
            total, number, words, source = heapq.heappop(waiting)
            given = max(given, number)
            yield total, number, words
        following = next(source, None)
        if following is not None:
            heapq.heappush(waiting, (following[0], number, following[1], source))


def _tied(classes: Iterator[_Class], most: int) -> Iterator[tuple[float, list[tuple[int, Words]]]]:
    """Gather neighbours of equal total, up to so many at a time."""
    for total, group in itertools.groupby(classes, key=lambda one: one[0]):
        while tied := [(j, words) for _, j, words in itertools.islice(group, most)]:
            yield total, tied
