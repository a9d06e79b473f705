"""What every engine answers about its texts: which candidates are within a threshold, and which are best.

An engine is bound to texts: it has checked their probabilities and priced their labels once. Thresholds come with each
call, one per text, so one engine serves every significance. `limited` gives an engine for the same texts with other
limits on the number of labels; it shares the costs. An engine may wrap another one (`WrappingEngine`) and answer some
questions its own way.

Members travel as (total, ascending label indices), best first: by ascending total, label-sets of equal total in
lexicographic order of their 0/1 rows.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, Self, TypeAlias

import numpy as np

from surelabel._core import progress
from surelabel._core.threads import over_rows
from surelabel._core.validation import BoolArray, FloatArray, IntArray
from surelabel.calibration import Calibration, totals_of
from surelabel.engines.bounds import as_float
from surelabel.engines.reach import Reach, sorted_labels
from surelabel.engines.sizes import Bounds, SizeBounds
from surelabel.labels.counting import count_by_size
from surelabel.labels.sparse import is_sparse

# Steps per text that counting may take before it answers with bounds: some 5 ms, as long as a table of bounds takes.
WORK_LIMIT = 1_000_000

Member: TypeAlias = tuple[int, ...]
Scored: TypeAlias = tuple[float, Member]
# The largest total of a member: inf if every candidate is one, -inf if none is. A wrapping engine may take another form
# of threshold, such as one per kind of label-set: what holds engine and thresholds only hands them on.
Threshold: TypeAlias = Any


@dataclasses.dataclass(frozen=True, eq=False)
class SearchReport:
    """What a search has to do, per text: the rows of the paper's table "Computational demand".

    Attributes
    ----------
    radius : (n,) int64 or None
        The paper's t; None for searches without one.
    considered : list of int
        Label-sets that the search considers.
    prohibitive : (n,) bool
        Whether that passes the search's limit, so that the text is refused.
    """

    radius: IntArray | None
    considered: list[int]
    prohibitive: BoolArray


class Engine:
    """Finds prediction sets of some texts, for one calibration; what it does not answer, the engine it wraps does.

    Attributes
    ----------
    calibration : Calibration
    probabilities : (n, d) float64 or SparseProbabilities
    limits : (int, int)
        Smallest and largest number of labels of a candidate; those of the calibration unless `limited`.
    work_limit : int
        Steps that counting one text may take.
    n_jobs : int or None
        Threads.
    barred : (d,) bool or None
        Labels that no candidate has; None for none, unless `without`.
    """

    search = "exact"
    inner: Engine
    barred: BoolArray | None = None

    def __init__(
        self, calibration: Calibration, probabilities: Any, work_limit: int = WORK_LIMIT, n_jobs: int | None = None
    ) -> None:
        self.calibration = calibration
        self.probabilities = probabilities
        self.limits = calibration.limits
        self.work_limit = work_limit
        self.n_jobs = n_jobs

    def __len__(self) -> int:
        return len(self.probabilities)

    def __getitem__(self, rows: slice) -> Self:
        """Return the engine of some of the texts."""
        return self._changed(lambda part: part[rows], probabilities=self.probabilities[rows])

    def limited(self, limits: Bounds) -> Self:
        """Return the engine of the same texts for candidates with so many labels: (fewest, most), within 0..d."""
        return self._changed(lambda part: part.limited(limits), limits=limits)

    def without(self, barred: BoolArray) -> Self:
        """Return the engine of the same texts for candidates without some labels, (d,) bool; totals stay the same."""
        return self._changed(lambda part: part.without(barred), barred=barred)

    def with_work_limit(self, work_limit: int) -> Self:
        """Return the engine of the same texts with another limit on the steps that counting may take."""
        return self._changed(lambda part: part.with_work_limit(work_limit), work_limit=work_limit)

    def with_jobs(self, n_jobs: int | None) -> Self:
        """Return the engine of the same texts with another number of threads."""
        return self._changed(lambda part: part.with_jobs(n_jobs), n_jobs=n_jobs)

    def with_totals(self, totals: FloatArray) -> Self:
        """Return the engine of the same texts with other calibration totals, ascending."""
        calibration = dataclasses.replace(self.calibration, totals=totals, categories=None)
        return self._changed(lambda part: part.with_totals(totals), calibration=calibration)

    def _changed(self, change: Callable[[Any], Any], **own: Any) -> Self:
        """Return the engine with some attributes changed, and a change made to the engines that it asks."""
        return self._with(**own)

    def _with(self, **changes: Any) -> Self:
        """Return a copy with some attributes changed; it shares the others."""
        made = copy.copy(self)
        made.__dict__.update(changes)
        return made

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return self.calibration.n_labels

    @property
    def n_candidates(self) -> int:
        """Number of candidates within the limits."""
        if self.barred is None:
            return self.calibration.count_candidates(self.limits)
        return count_by_size(self.n_free, *self.limits)

    @property
    def n_free(self) -> int:
        """Number of labels that a candidate may have."""
        return self.n_labels if self.barred is None else self.n_labels - int(self.barred.sum())

    def is_barred(self, label: int) -> bool:
        """Tell whether no candidate has a label; -1 stands for one that is not barred."""
        return self.barred is not None and label >= 0 and bool(self.barred[label])

    def as_labels(self, labels: Any, *, who: str) -> Any:
        """Return one label-set per text, checked: a bool array (n, d), a bool CSR array for sparse texts."""
        return self.calibration.as_labels(labels, self.probabilities, who=who)

    def as_rows(self, members: Sequence[Member]) -> Any:
        """Return label-sets as 0/1 rows (m, d): a bool array, a bool CSR array for sparse texts."""
        rows = np.zeros((len(members), self.n_labels), dtype=np.bool_)
        for row, member in zip(rows, members, strict=True):
            row[list(member)] = True
        return rows

    def is_candidate(self, labels: Any) -> BoolArray:
        """Tell for each label-set, (n,), whether it is a candidate."""
        return self.calibration.is_candidate(labels, self.limits)

    def totals(self, labels: Any) -> FloatArray:
        """Return the total of one checked label-set per text, (n,)."""
        measure, probabilities = self.calibration.measure, self.probabilities
        blocks = over_rows(
            lambda rows: totals_of(measure, probabilities[rows], labels[rows]), len(probabilities), self.n_jobs
        )
        return np.concatenate(blocks)

    def contains(self, thresholds: FloatArray, labels: Any) -> BoolArray:
        """Tell for each text, (n,), whether its checked label-set is a member."""
        return np.asarray(self.is_candidate(labels) & (self.totals(labels) <= thresholds))

    def p_values(
        self, rows: IntArray, scored: Sequence[Scored], tie_breaks: FloatArray | None = None
    ) -> Sequence[float]:
        """Return the p-values of members, each of the text that `rows` says; smoothed if tie-breaks are given."""
        totals = np.array([total for total, _ in scored])
        values: list[float] = self.calibration.p_values(totals, tie_breaks).tolist()
        return values

    def p_values_of(self, labels: Any, tie_breaks: FloatArray | None = None) -> FloatArray:
        """Return the p-value of one checked label-set per text, (n,); smoothed if tie-breaks are given."""
        return self.p_values_with(self.totals(labels), labels, tie_breaks)

    def p_values_with(self, totals: FloatArray, labels: Any, tie_breaks: FloatArray | None = None) -> FloatArray:
        """Return the p-values that checked label-sets, one per text, have with these totals, (n,)."""
        return self.calibration.p_values(totals, tie_breaks)

    def forced_p_values(self, tie_breaks: FloatArray | None = None) -> tuple[Any, FloatArray]:
        """Return the candidates with the highest p-values, 0/1 rows (n, d), and the two highest (n, 2).

        The second is 0 if there is one candidate only.
        """
        labels, totals = self.forced()

        def rank(rows: slice) -> FloatArray:
            return self.calibration.p_values(totals[rows], None if tie_breaks is None else tie_breaks[rows, None])

        p_values = np.concatenate(over_rows(rank, len(self), self.n_jobs))
        p_values[np.isinf(totals[:, 1]), 1] = 0.0
        return labels, p_values

    def forced(self) -> tuple[Any, FloatArray]:
        """Return the best candidates, 0/1 rows (n, d), and the totals of the two best (n, 2); inf if there is one."""
        return self.inner.forced()

    def bounds(self, thresholds: FloatArray, rows: slice | None = None) -> SizeBounds:
        """Return bounds of the number of members, equal if it is exact; thresholds are those of the texts `rows`."""
        first = 0 if rows is None else rows.start
        return SizeBounds.joined(
            over_rows(
                lambda block: self._bounds(thresholds[block], slice(first + block.start, first + block.stop)),
                len(thresholds),
                self.n_jobs,
            )
        )

    def _bounds(self, thresholds: FloatArray, rows: slice) -> SizeBounds:
        """Do what `bounds` says for a block of texts."""
        return self.inner.bounds(thresholds, rows)

    def iterate(self, row: int, threshold: Threshold) -> Iterator[Scored]:
        """Yield (total, member) of one text, best first, without listing the rest."""
        return self.inner.iterate(row, threshold)

    def with_label(self, row: int, threshold: Threshold, labels: Sequence[int]) -> list[Bounds]:
        """Bound the number of members that have each of some labels; -1 stands for any one label not in `listed`."""
        return self.inner.with_label(row, threshold, labels)

    def reachable(self, thresholds: FloatArray, rows: slice) -> BoolArray:
        """Return (m, d, 2): whether some member has a label absent, and whether some has it present.

        Of sparse texts, `reaches` written out.
        """
        if not is_sparse(self.probabilities):
            return self.inner.reachable(thresholds, rows)
        reachable = np.empty((len(thresholds), self.n_labels, 2), dtype=np.bool_)
        for place, (labels, listed, others) in enumerate(self.reaches(thresholds, rows)):
            reachable[place] = others
            reachable[place, labels] = listed
        if self.barred is not None:
            some = self.bounds(thresholds, rows).upper > 0
            reachable[:, self.barred, 0], reachable[:, self.barred, 1] = some[:, None], False
        return reachable

    def relaxation(self, row: int, threshold: Threshold) -> tuple[FloatArray, FloatArray, float]:
        """Return costs (d,), twice, and a threshold such that all members are within it; others may be too."""
        return self.inner.relaxation(row, threshold)

    def _counts_at(self, thresholds: FloatArray, n_cells: int) -> FloatArray:
        """Do what `counts_at` says, for finite thresholds and a block of texts."""
        return self.inner._counts_at(thresholds, n_cells)

    def counts_at(self, thresholds: FloatArray, n_cells: int) -> FloatArray:
        """Bound the number of candidates within each of m ascending thresholds, the same for all texts: (n, m, 2)."""
        finite = np.isfinite(thresholds)
        bounds = np.full((len(self), len(thresholds), 2), as_float(self.n_candidates))
        bounds[:, np.isneginf(thresholds)] = 0.0

        def count(rows: slice) -> int:
            counts = self[rows]._counts_at(thresholds[finite], n_cells)
            bounds[rows, finite] = np.minimum(counts, as_float(self.n_candidates))
            return len(counts)

        if finite.any():
            with progress.step("counting prediction sets", len(self)) as advance:
                over_rows(lambda rows: advance(count(rows)), len(self), self.n_jobs)
        return bounds

    def _rank_sums(self, n_cells: int) -> FloatArray:
        """Do what `rank_sums` says, for a block of texts."""
        values, repeats = np.unique(self.calibration.totals, return_counts=True)
        return np.asarray((self.counts_at(values, n_cells) * repeats[None, :, None]).sum(axis=1))

    def rank_sums(self, n_cells: int) -> FloatArray:
        """Bound the sum over calibration totals a of the number of candidates within a: (n, 2)."""
        return np.concatenate(over_rows(lambda rows: self[rows]._rank_sums(n_cells), len(self), self.n_jobs))

    def p_value_sums(self, n_cells: int) -> tuple[FloatArray, FloatArray]:
        """Return what the sum of all candidates' p-values is at least, (n,), and bounds of what comes to it, (n, 2).

        The first depends on the numbers of candidates and calibration texts alone.
        """
        n = self.calibration.n_texts + 1
        return np.full(len(self), as_float(Fraction(self.n_candidates, n))), self.rank_sums(n_cells) / n

    def finer_bounds(self, row: int, threshold: Threshold, n_cells: int) -> Bounds:
        """Bound the number of members by a table with so many cells; by nothing if there is no such table."""
        return 0, self.n_candidates

    def members(self, row: int, threshold: Threshold, limit: int) -> Any:
        """Return up to `limit` members as 0/1 rows (m, d), best first."""
        return self.as_rows([member for _, member in itertools.islice(self.iterate(row, threshold), limit)])

    def top(self, k: int, thresholds: FloatArray, rows: IntArray) -> list[list[Scored]]:
        """Return the k best members of each of some texts; thresholds are those of all texts."""
        return [list(itertools.islice(self.iterate(row, thresholds[row]), k)) for row in rows.tolist()]

    def listed(self, row: int) -> IntArray:
        """Return the labels of a text that are told apart, ascending: all, or those that a sparse text lists."""
        return np.arange(self.n_labels)

    def reach(self, row: int, threshold: Threshold) -> Reach:
        """Return which labels of one text members have."""
        reachable = self.reachable(np.array([threshold]), slice(row, row + 1))[0]
        return Reach(self.listed(row), reachable, (False, False))

    def reaches(self, thresholds: FloatArray, rows: slice) -> list[Reach]:
        """Return which labels members have, for some texts."""
        texts = zip(range(rows.start, rows.stop), thresholds, strict=True)
        return [self.reach(row, threshold) for row, threshold in texts]

    def certain_and_open(self, thresholds: FloatArray, most: int | None = None) -> tuple[Any, Any, IntArray]:
        """Return which labels all members have, which some have but not all, (n, d) each, and open labels left out.

        Of a sparse text with more than `most` open labels only those that it lists are in its row; the third array,
        (n,), says how many are left out.
        """
        if is_sparse(self.probabilities):
            blocks = over_rows(lambda rows: self.reaches(thresholds[rows], rows), len(self), self.n_jobs)
            return sorted_labels(self, itertools.chain.from_iterable(blocks), most)
        reachable = self.reachable(thresholds, slice(0, len(self)))
        absent, present = reachable[:, :, 0], reachable[:, :, 1]
        return present & ~absent, present & absent, np.zeros(len(self), dtype=np.int64)

    def for_description(self, row: int) -> tuple[Engine, int]:
        """Return the engine, and the row in it, that knows every label of a text."""
        if not is_sparse(self.probabilities):
            return self, row
        return self.dense(slice(row, row + 1)), 0

    def dense(self, rows: slice) -> Engine:
        """Return the engine that knows every label of some sparse texts; an error if labels are too many."""
        raise NotImplementedError

    def report(self, thresholds: FloatArray) -> SearchReport:
        """Return the numbers of members (upper bounds): the exact search considers few other label-sets."""
        considered = self.bounds(thresholds).upper.tolist()
        return SearchReport(None, considered, np.zeros(len(considered), dtype=np.bool_))


class WrappingEngine(Engine):
    """An engine that asks another one, `inner`, unless it answers a question its own way."""

    def __init__(self, inner: Engine) -> None:
        super().__init__(inner.calibration, inner.probabilities, inner.work_limit, inner.n_jobs)
        self.inner = inner

    def _changed(self, change: Callable[[Any], Any], **own: Any) -> Self:
        """Change the wrapped engine too."""
        return self._with(inner=change(self.inner), **own)

    def as_rows(self, members: Sequence[Member]) -> Any:
        """Ask `inner`; so do the others below, which have a way of their own in `Engine`."""
        return self.inner.as_rows(members)

    def totals(self, labels: Any) -> FloatArray:
        """Ask `inner`."""
        return self.inner.totals(labels)

    def _rank_sums(self, n_cells: int) -> FloatArray:
        """Ask `inner`."""
        return self.inner._rank_sums(n_cells)

    def finer_bounds(self, row: int, threshold: Threshold, n_cells: int) -> Bounds:
        """Ask `inner`."""
        return self.inner.finer_bounds(row, threshold, n_cells)


def as_members(rows: BoolArray) -> list[Member]:
    """Return 0/1 rows (m, d) as ascending label indices.

    Examples
    --------
    >>> as_members(np.array([[True, False, True], [False, False, False]]))
    [(0, 2), ()]
    """
    labels = rows.nonzero()[1].tolist()
    ends = list(itertools.accumulate(rows.sum(axis=1).tolist(), initial=0))
    return [tuple(labels[start:stop]) for start, stop in itertools.pairwise(ends)]


def joined(blocks: Iterable[tuple[Any, FloatArray]]) -> tuple[Any, FloatArray]:
    """Return what blocks of texts have, 0/1 rows and arrays, as one of each."""
    rows, totals = zip(*blocks, strict=True)
    return np.concatenate(rows), np.concatenate(totals)
