"""The exact search for sparse probabilities: cost grows with what texts list, not with the number of labels.

For each number j of unlisted labels the listed ones make a short row (`compressed.py`). It is counted or walked as
any row is, and each label-set found stands for binomial(g, j) members of one total, which are made when they are asked
for.
"""

from __future__ import annotations

import dataclasses
import heapq
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from surelabel._core.validation import BoolArray, FloatArray
from surelabel.calibration import Calibration
from surelabel.engines.best_first import CostRow, iterate_row, most_tied
from surelabel.engines.counting import count_row
from surelabel.engines.cut import WORK_LIMIT, IntArray, Words, over_rows, unpack
from surelabel.engines.sizes import Bounds, SizeBounds
from surelabel.labels.counting import count_by_size
from surelabel.labels.sparse import SparseProbabilities
from surelabel.measures.compressed import CompressedRows, compress

__all__ = ["Reach", "SparseCut", "SparseSearch", "by_unlisted", "count_short_rows", "is_cut_short"]

# Numbers of unlisted labels that a size is added up over; beyond, it is bounded.
_MOST_UNLISTED = 256
# Rounding of running totals, for choices that may only err on the safe side.
_SLACK = 1e-9

Member: TypeAlias = tuple[int, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class SparseCut:
    """Texts with sparse probabilities cut at thresholds; attributes as those of `Cut`."""

    calibration: Calibration
    probabilities: SparseProbabilities
    thresholds: FloatArray
    work_limit: int = WORK_LIMIT
    n_jobs: int | None = None

    def rows(self, rows: slice, n_representatives: int = 0) -> CompressedRows:
        """Return the short rows of a block of texts."""
        return compress(self.calibration.separable, self.probabilities[rows], n_representatives)


class Reach(NamedTuple):
    """Which labels of a text some members have absent, and some present.

    listed : int64 (m,), reachable (m, 2) bool; unlisted (bool, bool) is the same for every unlisted label.
    """

    listed: IntArray
    reachable: BoolArray
    unlisted: tuple[bool, bool]


def finite_thresholds(rows: CompressedRows, thresholds: FloatArray) -> FloatArray:
    """Return thresholds with an infinite one replaced by one that no label-set passes."""
    if not np.isposinf(thresholds).any():
        return thresholds
    no_limit = 2.0 * (rows.dearest() + rows.n_unlisted * rows.group[1]) + 1.0
    return np.where(np.isposinf(thresholds), no_limit, thresholds)


def _spans(rows: CompressedRows, thresholds: FloatArray, limits: Bounds) -> tuple[IntArray, IntArray]:
    """Return how many unlisted labels members of each row have at least and at most; the rows hold none present.

    Where the most is below the least, there are no members. The most is rounded up by running totals.
    """
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


def by_unlisted(
    rows: CompressedRows, thresholds: FloatArray, limits: Bounds
) -> Iterator[tuple[int, IntArray, CompressedRows, Bounds]]:
    """Yield (j, rows, their costs with j unlisted labels present, limits on the listed ones), for each j that fits."""
    fewest, most = _spans(rows, thresholds, limits)
    for j in range(
        int(fewest.min(initial=0)), int(min(most.max(initial=-1), fewest.max(initial=0) + _MOST_UNLISTED)) + 1
    ):
        chosen = np.flatnonzero((fewest <= j) & (j <= most) & (j <= fewest + _MOST_UNLISTED))
        if len(chosen):
            part = rows.take(chosen)
            part.hold(j)
            yield j, chosen, part, (max(0, limits[0] - j), limits[1] - j)


def is_cut_short(rows: CompressedRows, thresholds: FloatArray, limits: Bounds) -> BoolArray:
    """Tell for each row whether `by_unlisted` leaves numbers of unlisted labels out, because there are too many."""
    fewest, most = _spans(rows, thresholds, limits)
    return np.asarray(most > fewest + _MOST_UNLISTED)


def count_short_rows(rows: CompressedRows, thresholds: FloatArray, limits: Bounds, work_limit: int) -> list[Bounds]:
    """Count or bound the label-sets of the listed labels that are within thresholds, as the exact search does."""
    from surelabel._kernels import compressed as kernel  # noqa: PLC0415

    sizes = np.empty(len(rows), dtype=np.int64)
    kernel.count_compressed(rows.starts, rows.absent, rows.present, thresholds, limits, work_limit, sizes)
    counted: list[Bounds] = [(size, size) for size in sizes.tolist()]
    given_up = np.flatnonzero(sizes < 0)
    if len(given_up) == 0:
        return counted
    everything = rows.dearest() * (1.0 + _SLACK) <= thresholds
    for i in given_up.tolist():
        listed = int(rows.n_listed[i])
        within = (limits[0], min(limits[1], listed))
        every = count_by_size(listed, *within)
        if everything[i]:
            counted[i] = (every, every)
        else:
            lower, upper = count_row(*rows.row(i), float(thresholds[i]), within)
            counted[i] = (min(lower, every), min(upper, every))
    return counted


def _count_sum(
    cut: SparseCut, rows: CompressedRows, thresholds: FloatArray, held: Sequence[int] | None
) -> list[Bounds]:
    """Count or bound the members of rows of a sum; with `held`, those that have a column (< 0: an unlisted label)."""
    limits = cut.calibration.limits
    sums = [[0, 0] for _ in range(len(rows))]
    for j, chosen, part, within in by_unlisted(rows, thresholds, limits):
        counted = count_short_rows(part, thresholds[chosen], within, cut.work_limit)
        for i, (lower, upper) in zip(chosen.tolist(), counted, strict=True):
            ways = _ways(int(rows.n_unlisted[i]), j, held is not None and held[i] < 0)
            sums[i][0] += ways * lower
            sums[i][1] += ways * upper
    for i in np.flatnonzero(is_cut_short(rows, thresholds, limits)).tolist():
        sums[i][1] = cut.calibration.n_candidates
    return [(lower, upper) for lower, upper in sums]


def _ways(n_unlisted: int, j: int, one_held: bool) -> int:
    """Return in how many ways j of the unlisted labels can be chosen, one of them given where it is held."""
    if one_held:
        return math.comb(n_unlisted - 1, j - 1) if j > 0 else 0
    return math.comb(n_unlisted, j)


def count_of_sparse_maximum(rows: CompressedRows, thresholds: FloatArray, limits: Bounds) -> list[int]:
    """Count the members of rows of a maximum: free labels give binomials, the unlisted ones among them."""
    free, held, possible = rows.free_and_held(thresholds)
    free = free + np.where(rows.group[1] <= thresholds, rows.n_unlisted, 0)
    return [
        count_by_size(f, limits[0] - h, limits[1] - h) if fits else 0
        for f, h, fits in zip(free.tolist(), held.tolist(), possible.tolist(), strict=True)
    ]


class SparseSearch:
    """Answers about a sparse cut; the same as those of the exact search on the dense one."""

    def bounds(self, cut: SparseCut, rows: range) -> SizeBounds:
        """Return bounds of the number of members of each text, equal where it is exact."""

        def count(block: slice) -> SizeBounds:
            return _count_block(cut, slice(block.start + rows.start, block.stop + rows.start))

        return SizeBounds.joined(over_rows(count, len(rows), cut.n_jobs))

    def iterate(self, cut: SparseCut, row: int) -> Iterator[tuple[float, Member]]:
        """Yield (total, ascending labels of a member), best first, equal totals in lexicographic order of 0/1 rows."""
        rows = cut.rows(slice(row, row + 1))
        thresholds = finite_thresholds(rows, cut.thresholds[row : row + 1])
        listed = rows.labels[: int(rows.n_listed[0])]
        unlisted = _Unlisted(listed, cut.calibration.n_labels)
        classes = _classes(rows, thresholds, cut.calibration.limits)
        for total, tied in _tied(classes, most_tied(cut.calibration.n_labels)):
            parts = [_members(listed[unpack(words[None, :], len(listed))[0]], unlisted, j) for j, words in tied]
            for negated in parts[0] if len(parts) == 1 else heapq.merge(*parts):
                yield total, tuple(-label for label in negated)

    def with_label(self, cut: SparseCut, row: int) -> tuple[list[Bounds], Bounds]:
        """Return bounds of the number of members that have each listed label, and of those with one unlisted label."""
        rows = cut.rows(slice(row, row + 1))
        listed = int(rows.n_listed[0])
        lo, hi = cut.calibration.limits
        if np.isposinf(cut.thresholds[row]):
            every = count_by_size(cut.calibration.n_labels - 1, max(lo, 1) - 1, hi - 1)
            return [(every, every)] * listed, (every, every)
        held = [*range(listed), -1]
        many = rows.take(np.zeros(len(held), dtype=np.int64))
        many.absent[many.starts[:-1][:-1] + np.arange(listed)] = np.inf
        thresholds = np.repeat(cut.thresholds[row], len(held))
        if rows.is_maximum:
            counts = [(n, n) for n in count_of_sparse_maximum(many, thresholds, (lo, hi))]
            counts[-1] = (_with_unlisted_of_maximum(rows, thresholds[:1], (lo, hi)),) * 2
        else:
            counts = _count_sum(cut, many, thresholds, held)
        return counts[:-1], counts[-1] if rows.n_unlisted[0] else (0, 0)

    def reachable(self, cut: SparseCut, rows: slice) -> list[Reach]:
        """Return which labels some members have absent, and some present, for a block of texts."""
        from surelabel._kernels import compressed as kernel  # noqa: PLC0415

        limits = cut.calibration.limits
        short = cut.rows(rows, limits[0] + 1)
        thresholds = finite_thresholds(short, cut.thresholds[rows])
        membership = short
        if short.is_maximum:
            membership = short.within(thresholds)
            thresholds = np.where(np.isneginf(thresholds), -np.inf, 0.0)
        reachable = np.empty((len(short.labels), 2), dtype=np.bool_)
        kernel.reachable_compressed(short.starts, membership.absent, membership.present, thresholds, limits, reachable)
        return [
            _reach(short, self_labels, reachable, i)
            for i, self_labels in enumerate(
                np.split(cut.probabilities[rows].labels, cut.probabilities[rows].starts[1:-1])
            )
        ]


def _reach(short: CompressedRows, listed: IntArray, reachable: BoolArray, i: int) -> Reach:
    """Sort one row's columns into listed labels and representatives of the unlisted ones."""
    columns = slice(short.starts[i], short.starts[i + 1])
    labels, found = short.labels[columns], reachable[columns]
    is_listed = np.isin(labels, listed)
    others = found[(labels >= 0) & ~is_listed]
    some = bool(found.any())
    hidden = bool(short.n_unlisted[i] > short.n_representatives[i])
    return Reach(listed, found[is_listed], (some and (hidden or bool(others[:, 0].any())), bool(others[:, 1].any())))


def _with_unlisted_of_maximum(rows: CompressedRows, thresholds: FloatArray, limits: Bounds) -> int:
    """Count the members of one row of a maximum that have one given unlisted label."""
    if rows.n_unlisted[0] == 0 or rows.group[1] > thresholds[0]:
        return 0
    fewer = dataclasses.replace(rows, n_unlisted=rows.n_unlisted - 1)
    return count_of_sparse_maximum(fewer, thresholds, (limits[0] - 1, limits[1] - 1))[0]


def _count_block(cut: SparseCut, rows: slice) -> SizeBounds:
    """Count or bound the members of a block of texts."""
    thresholds = cut.thresholds[rows]
    everything = np.isposinf(thresholds)
    every = cut.calibration.n_candidates if everything.any() else 0
    if everything.all():
        return SizeBounds.of([(every, every)] * len(thresholds))
    short = cut.rows(rows)
    if short.is_maximum:
        counted = [(n, n) for n in count_of_sparse_maximum(short, thresholds, cut.calibration.limits)]
    else:
        counted = _count_sum(cut, short, np.where(everything, -np.inf, thresholds), None)
    return SizeBounds.of((every, every) if whole else bounds for whole, bounds in zip(everything, counted, strict=True))


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


def _classes(rows: CompressedRows, thresholds: FloatArray, limits: Bounds) -> Iterator[tuple[float, int, Words]]:
    """Yield (total, number j of unlisted labels, packed listed ones) of the first row by ascending total.

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
            found = iterate_row(CostRow(absent.copy(), present, threshold, within, rows.is_maximum))
            _push_next(waiting, j, found)
            j += 1
            continue
        total, number, words, found = heapq.heappop(waiting)
        given = max(given, number)
        yield total, number, words
        _push_next(waiting, number, found)


def _push_next(
    waiting: list[tuple[float, int, Words, Iterator[tuple[float, Words]]]], j: int, found: Iterator[tuple[float, Words]]
) -> None:
    """Put the next label-set with j unlisted labels, where there is one, on the heap; there is one a number at most."""
    following = next(found, None)
    if following is not None:
        heapq.heappush(waiting, (following[0], j, following[1], found))


def _tied(classes: Iterator[tuple[float, int, Words]], most: int) -> Iterator[tuple[float, list[tuple[int, Words]]]]:
    """Gather neighbours of equal total, up to so many at a time."""
    tied: list[tuple[int, Words]] = []
    current = -math.inf
    for total, j, words in classes:
        if tied and (total != current or len(tied) == most):
            yield current, tied
            tied = []
        current = total
        tied.append((j, words))
    if tied:
        yield current, tied
