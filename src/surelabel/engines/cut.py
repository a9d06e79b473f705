"""A cut: texts with thresholds. What every search answers about, and what they share."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from surelabel._core.packing import Words, n_words, pack, unpack
from surelabel._core.validation import BoolArray, FloatArray
from surelabel.calibration import Calibration
from surelabel.engines.sizes import Bounds, SizeBounds
from surelabel.measures import SeparableMeasure, costs_of

__all__ = [
    "BLOCK_ROWS",
    "Cut",
    "IntArray",
    "Search",
    "SearchReport",
    "Words",
    "best_first_order",
    "n_words",
    "over_rows",
    "pack",
    "threads_to_use",
    "totals_by_words",
    "totals_of_words",
    "unpack",
]

IntArray: TypeAlias = npt.NDArray[np.int64]
_Result = TypeVar("_Result")

# Rows that one task works on: long enough to hide the cost of a task, short enough to keep their costs in the cache.
BLOCK_ROWS = 1024
# Steps a text that counting may take before it answers with bounds: some 5 ms, as long as a table of bounds takes.
WORK_LIMIT = 1_000_000
# Probabilities up to which a cut keeps their costs: some thousands of texts, 16 MB.
_KEPT_COSTS = 1_000_000


def threads_to_use(n_jobs: int | None) -> int:
    """Return a number of threads: as asked, else SURELABEL_NUM_THREADS, else the cores this process may use."""
    if n_jobs is not None and n_jobs > 0:
        return n_jobs
    setting = os.environ.get("SURELABEL_NUM_THREADS", "")
    if setting.isdigit() and int(setting) > 0:
        return int(setting)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def over_rows(work: Callable[[slice], _Result], n_rows: int, n_jobs: int | None) -> list[_Result]:
    """Call `work` on blocks of rows, on threads where there are several blocks; return results in order.

    Kernels release the GIL. Blocks do not depend on the number of threads, nor rows on each other, so
    neither do results.
    """
    blocks = [slice(start, min(start + BLOCK_ROWS, n_rows)) for start in range(0, n_rows, BLOCK_ROWS)]
    workers = min(threads_to_use(n_jobs), len(blocks)) if len(blocks) > 1 else 1
    if workers == 1:
        return [work(block) for block in blocks]
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, blocks))


@dataclasses.dataclass(frozen=True, eq=False)
class Cut:
    """Texts cut at thresholds.

    Attributes
    ----------
    calibration : Calibration
    probabilities : (n, d) float64
    thresholds : (n,) float64
        Largest total of a member; inf where every candidate is one, -inf where none is.
    work_limit : int
        Steps that counting one text may take.
    n_jobs : int or None
        Threads.
    """

    calibration: Calibration
    probabilities: FloatArray
    thresholds: FloatArray
    work_limit: int = WORK_LIMIT
    n_jobs: int | None = None

    @property
    def is_maximum(self) -> bool:
        """Whether totals are the maximum of label costs instead of their sum."""
        return self._separable.aggregate == "max"

    @property
    def _separable(self) -> SeparableMeasure:
        """The measure, which must be a separable one: only those have costs."""
        measure = self.calibration.separable_measure
        assert measure is not None
        return measure

    @functools.cached_property
    def _all_costs(self) -> tuple[FloatArray, FloatArray]:
        """Costs of all texts, kept where texts are few: searches go through them text by text, several times."""
        return costs_of(self._separable, self.probabilities)

    def costs(self, rows: slice) -> tuple[FloatArray, FloatArray]:
        """Return the measure's (absent, present) costs of a block of rows."""
        if self.probabilities.size > _KEPT_COSTS:
            return costs_of(self._separable, self.probabilities[rows])
        absent, present = self._all_costs
        return absent[rows], present[rows]

    def membership(self, rows: slice) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return costs and thresholds of a *sum* that has the same members.

        For a measure that takes the maximum, a label costs 0 where it is within the threshold and 1 where it is
        over, and the threshold is 0. An infinite threshold becomes one that no label-set passes.
        """
        absent, present = self.costs(rows)
        thresholds = self.thresholds[rows]
        if self.is_maximum:
            at = thresholds[:, None]
            return (
                (absent > at).astype(np.float64),
                (present > at).astype(np.float64),
                np.where(np.isneginf(thresholds), -np.inf, 0.0),
            )
        if np.isposinf(thresholds).any():
            no_limit = 2.0 * np.maximum(absent, present).sum(axis=1) + 1.0
            thresholds = np.where(np.isposinf(thresholds), no_limit, thresholds)
        return absent, present, thresholds


def totals_of_words(cut: Cut, row: int, words: Words) -> FloatArray:
    """Return the totals of packed label-sets (m, W) of one text."""
    measure = cut.calibration.measure
    if cut.calibration.separable_measure is None:
        assert not isinstance(measure, SeparableMeasure)
        return measure.totals_of_label_sets(cut.probabilities[row], unpack(words, cut.calibration.n_labels))
    absent, present = cut.costs(slice(row, row + 1))
    return totals_by_words(absent[0], present[0], words, cut.is_maximum)


def totals_by_words(absent: FloatArray, present: FloatArray, words: Words, is_maximum: bool) -> FloatArray:
    """Return the totals of packed label-sets (m, W) of a row of costs (d,)."""
    from surelabel._kernels import exact_sum  # noqa: PLC0415

    if is_maximum:
        members = unpack(words, len(absent))
        return np.asarray(np.where(members, present, absent).max(axis=1))
    totals = np.empty(len(words))
    exact_sum.totals_of_words(absent, present, words, totals)
    return totals


def best_first_order(totals: FloatArray, words: Words) -> npt.NDArray[np.intp]:
    """Return the order by total, label-sets of equal total lexicographically by 0/1 row."""
    return np.lexsort((*words.T[::-1], totals))


@dataclasses.dataclass(frozen=True, eq=False)
class SearchReport:
    """What a search has to do, a text: the rows of the paper's table "Computational demand".

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


class Search(Protocol):
    """What a search must answer about a cut."""

    def bounds(self, cut: Cut, rows: range) -> SizeBounds:
        """Return bounds of the number of members of each text, equal where it is exact."""
        ...

    def members(self, cut: Cut, row: int, limit: int) -> Words:
        """Return up to `limit` members, packed, best first."""
        ...

    def iterate(self, cut: Cut, row: int) -> Iterator[tuple[float, Words]]:
        """Yield (total, packed member), best first."""
        ...

    def with_label(self, cut: Cut, row: int, labels: Sequence[int]) -> list[Bounds]:
        """Return (lower, upper) bounds of the number of members that have each of some labels."""
        ...

    def report(self, cut: Cut) -> SearchReport:
        """Return what the search has to consider for each text."""
        ...


class Engine(Protocol):
    """What finds prediction sets exactly, for one kind of measure, whatever search a predictor was made with."""

    def bounds(self, cut: Cut, rows: range) -> SizeBounds:
        """Return bounds of the number of members of each text, equal where it is exact."""
        ...

    def members(self, cut: Cut, row: int, limit: int) -> Words:
        """Return up to `limit` members, packed, best first."""
        ...

    def iterate(self, cut: Cut, row: int) -> Iterator[tuple[float, Words]]:
        """Yield (total, packed member), best first."""
        ...

    def with_label(self, cut: Cut, row: int, labels: Sequence[int]) -> list[Bounds]:
        """Return (lower, upper) bounds of the number of members that have each of some labels."""
        ...

    def reachable(self, cut: Cut, rows: slice) -> BoolArray:
        """Return (m, d, 2): whether some member has the label absent, and whether some has it present."""
        ...

    def forced(self, calibration: Calibration, probabilities: FloatArray) -> tuple[BoolArray, FloatArray]:
        """Return the best candidates (n, d), and the totals of the two best (n, 2); inf where there is one only."""
        ...

    def relaxation(self, cut: Cut, row: int) -> tuple[FloatArray, FloatArray, float]:
        """Return costs (d,), twice, and a threshold such that all members are within it; others may be too."""
        ...

    def bounds_with_cells(self, cut: Cut, row: int, n_cells: int) -> Bounds:
        """Return (lower, upper) bounds of the number of members from a table with so many cells."""
        ...
