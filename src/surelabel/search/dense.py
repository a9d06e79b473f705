"""The exact search, and what every search returns.

A search holds n texts and works on whole parts of totals. Each question comes with the limits (least, most) on the
number of labels, since classes of sizes have their own, and with `within` (n,), the largest whole part of a member.

The best label-set, its rival, and the labels that members have follow from sorted changes and their running sums.
`first` lists members in order by a heap; `bounds` counts them by a walk, and by a table past the work limit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from surelabel._core.threads import BLOCK_ROWS, over_rows
from surelabel._core.validation import BoolArray, IntArray
from surelabel._kernels import IMPOSSIBLE
from surelabel._kernels.subsets import N_MEMORY, WORD, count_rows, first_rows, survey_rows
from surelabel.calibration import Limits
from surelabel.labels.counting import count_label_sets
from surelabel.measures.base import Costs
from surelabel.search.counting import count_by_table

__all__ = [
    "WORK_LIMIT",
    "Best",
    "DenseSearch",
    "Found",
    "Limits",
    "Search",
    "Sizes",
    "Status",
    "add_sizes",
    "as_sizes",
    "best_of",
    "joined",
    "ranks",
]

# Steps of a walk that a text may take: some 5 ms.
WORK_LIMIT = 1_000_000
# Members that a block of rows lists at once: it bounds the memory.
_LISTED_AT_ONCE = 2**17

# Numbers of label-sets: int64, or Python integers in an object array.
Sizes: TypeAlias = Any


class Best(NamedTuple):
    """The best candidates (n, k), and the whole parts of the two best totals (n, 2); IMPOSSIBLE where there is none."""

    members: BoolArray
    whole: IntArray


class Found(NamedTuple):
    """Members in order, text by text: their texts (m,), whole parts of totals (m,), and 0/1 rows (m, k).

    complete (n,) says for which texts these are all members.
    """

    rows: IntArray
    whole: IntArray
    members: BoolArray
    complete: BoolArray


class Status(NamedTuple):
    """Which labels some member has, and which some member lacks, (n, k) each."""

    has: BoolArray
    lacks: BoolArray


class Search(Protocol):
    """A search over n texts; members are 0/1 rows over k columns."""

    costs: Costs
    work_limit: int
    n_jobs: int | None

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Any) -> Search:
        """Return the search over some of the texts."""

    def without(self, column: int) -> Search:
        """Return the search among candidates without a column's label."""

    def whole(self, members: BoolArray) -> IntArray:
        """Return the whole part of the total of one 0/1 row per text, (n,)."""

    def best(self, limits: Limits) -> Best:
        """Return the best candidate of each text, and the whole parts of the two best totals."""

    def first(self, limits: Limits, within: IntArray, number: Any) -> Found:
        """List the first members of each text, at most `number` of them (one for all texts, or one per text)."""

    def bounds(self, limits: Limits, within: IntArray) -> tuple[Sizes, Sizes]:
        """Bound the number of members of each text, (n,) twice; equal where it is exact."""

    def status(self, limits: Limits, within: IntArray) -> Status:
        """Return which labels some member has, and which some member lacks, (n, k) each."""

    def are_few(self, limits: Limits, within: IntArray, most: int) -> BoolArray:
        """Return which texts have at most `most` members, as far as a short walk tells: these are worth listing."""

    def counts_at(self, limits: Limits, within: IntArray, row: int) -> Any:
        """Bound the number of candidates of one text within each of m ascending limits: two float64 arrays (m,)."""

    def n_candidates(self, limits: Limits, row: int) -> int:
        """Return the number of candidates of one text."""


def joined(parts: list[Any]) -> Any:
    """Join tuples of arrays, one per block of rows."""
    make = getattr(type(parts[0]), "_make", tuple)
    return parts[0] if len(parts) == 1 else make(map(np.concatenate, zip(*parts, strict=True)))


def ranks(rows: IntArray) -> IntArray:
    """Return the rank of each entry among those of its row, from 0; rows (m,) ascend."""
    return np.arange(len(rows)) - np.searchsorted(rows, rows)


def best_of(found: Found, n_texts: int) -> Best:
    """Return the first member of each text, and the whole parts of its first two."""
    members = np.zeros((n_texts, found.members.shape[1]), dtype=np.bool_)
    whole, rank = np.full((n_texts, 2), IMPOSSIBLE), ranks(found.rows)
    members[found.rows[rank == 0]] = found.members[rank == 0]
    whole[found.rows, rank] = found.whole
    return Best(members, whole)


def as_sizes(values: Sequence[int]) -> Sizes:
    """Return sizes as int64 if they fit, else as Python integers."""
    return np.array(values, dtype=object if max(values, default=0) >= 2**63 else np.int64)


def add_sizes(parts: Sequence[Sizes]) -> Sizes:
    """Return the sums of sizes, (n,) each."""
    return as_sizes([sum(sizes) for sizes in zip(*(part.tolist() for part in parts), strict=True)])


def replace_sizes(sizes: Sizes, rows: Sequence[int], values: Sequence[int]) -> Sizes:
    """Return sizes with those of some rows replaced."""
    plain = sizes.tolist()
    for row, value in zip(rows, values, strict=True):
        plain[row] = value
    return as_sizes(plain)


class Survey(NamedTuple):
    """The cheapest candidates: best (n, 2) and cheapest (n, 3, k) of `survey_rows`."""

    best: IntArray
    cheapest: IntArray


class DenseSearch:
    """Exact answers for n texts with costs (n, k); `work_limit` is the number of steps that a text may take."""

    def __init__(self, costs: Costs, work_limit: int = WORK_LIMIT, n_jobs: int | None = None) -> None:
        self.costs = costs
        self.work_limit = work_limit
        self.n_jobs = n_jobs
        self._surveys: dict[Limits, Survey] = {}

    def __len__(self) -> int:
        return len(self.costs.empty)

    def __getitem__(self, rows: Any) -> DenseSearch:
        return type(self)(self.costs.part(rows), self.work_limit, self.n_jobs)

    def without(self, column: int) -> DenseSearch:
        """Return the search among candidates without a column's label."""
        return type(self)(self.costs.without(column), self.work_limit, self.n_jobs)

    def whole(self, members: BoolArray) -> IntArray:
        """Return the whole part of the total of one 0/1 row per text, (n,)."""
        return self.costs.whole(members)

    def _in_blocks(self, work: Callable[[slice], Any], step: int = BLOCK_ROWS) -> Any:
        """Call `work` on blocks of rows, on threads, and join the tuples of arrays that it returns."""
        if len(self.costs.empty) <= step:
            return work(slice(0, len(self.costs.empty)))
        return joined(over_rows(work, len(self), self.n_jobs, step))

    def _memory(self) -> IntArray:
        """Return scratch for kernels."""
        return np.empty((N_MEMORY, self.costs.changes.shape[1] + 1), dtype=np.int64)

    def _survey(self, limits: Limits, rows: slice) -> Survey:
        """Return the survey of a block of texts; that of a single block is kept, as answers ask for it twice."""
        if len(self) <= BLOCK_ROWS and limits in self._surveys:
            return self._surveys[limits]
        changes, order = self.costs.changes[rows], self.costs.order[rows]
        n, k = changes.shape
        survey = Survey(np.empty((n, 2), dtype=np.int64), np.empty((n, 3, k), dtype=np.int64))
        survey_rows(changes, order, *limits, self._memory(), survey.cheapest, survey.best)
        if len(self) <= BLOCK_ROWS:
            self._surveys[limits] = survey
        return survey

    def best(self, limits: Limits) -> Best:
        """Return the best candidate of each text, and the whole parts of the two best totals."""

        def block(rows: slice) -> Best:
            survey = self._survey(limits, rows)
            whole = np.where(survey.best < IMPOSSIBLE, survey.best + self.costs.empty[rows, None], IMPOSSIBLE)
            return Best(survey.cheapest[:, 2] == 1, whole)

        best: Best = self._in_blocks(block)
        return best

    def status(self, limits: Limits, within: IntArray) -> Status:
        """Return which labels some member has, and which some member lacks, (n, k) each."""

        def block(rows: slice) -> Status:
            room, cheapest = (within - self.costs.empty)[rows, None], self._survey(limits, rows).cheapest
            return Status(cheapest[:, 1] <= room, cheapest[:, 0] <= room)

        status: Status = self._in_blocks(block)
        return status

    def first(self, limits: Limits, within: IntArray, number: Any) -> Found:
        """List the first members of each text, at most `number` of them (one for all texts, or one per text)."""
        numbers = np.full(len(self), number, dtype=np.int64)
        most, k = int(numbers.max(initial=0)), self.costs.changes.shape[1]
        n_words = -(-k // WORD)

        def block(rows: slice) -> Found:
            costs = self.costs.part(rows)
            asked = np.empty((len(costs.empty), 4), dtype=np.int64)
            asked[:, 0], asked[:, 1] = within[rows] - costs.empty, numbers[rows]
            nodes = np.empty((2 * most + k + 3, n_words + 5), dtype=np.int64)
            found = np.empty((len(asked), most, n_words + 1), dtype=np.int64)
            first_rows(costs.changes, costs.order, *limits, nodes, asked, found)
            texts = np.repeat(np.arange(len(asked)), asked[:, 2])
            parts = [own[:n] for own, n in zip(found, asked[:, 2].tolist(), strict=True)]
            listed = parts[0] if len(parts) == 1 else np.concatenate(parts)
            bits = np.unpackbits(listed[:, 1:].astype(">u4").view(np.uint8), axis=1, count=k).view(np.bool_)
            return Found(texts + rows.start, costs.empty[texts] + listed[:, 0], bits, asked[:, 3] == 1)

        step = max(1, min(BLOCK_ROWS, _LISTED_AT_ONCE // max(most, 1)))
        listed: Found = self._in_blocks(block, step)
        return listed

    def _count(self, limits: Limits, within: IntArray, n_steps: int) -> IntArray:
        """Count the members of each text, (n,); -1 if that takes over n_steps steps."""

        def block(rows: slice) -> tuple[IntArray]:
            costs = self.costs.part(rows)
            counted = np.stack([within[rows] - costs.empty] * 2, axis=1)
            count_rows(costs.changes, *limits, n_steps, self._memory(), counted)
            return (counted[:, 1],)

        sizes: IntArray = self._in_blocks(block)[0]
        return sizes

    def are_few(self, limits: Limits, within: IntArray, most: int) -> BoolArray:
        """Return which texts have at most `most` members whose costs add up, as far as a short walk tells."""
        sizes = self._count(limits, within, 4 * most)
        return (sizes >= 0) & (sizes <= most)

    def bounds(self, limits: Limits, within: IntArray) -> tuple[Sizes, Sizes]:
        """Bound the number of members of each text, (n,) twice; equal where it is exact."""
        sizes = self._count(limits, within, self.work_limit)
        unknown = np.flatnonzero(sizes < 0).tolist()
        if not unknown:
            return sizes, sizes

        def bound(part: slice) -> list[tuple[int, int]]:
            return [self._bounds_by_table(limits, int(within[row]), row) for row in unknown[part]]

        pairs = [pair for part in over_rows(bound, len(unknown), self.n_jobs, step=8) for pair in part]
        lower, upper = zip(*pairs, strict=True)
        return replace_sizes(sizes, unknown, lower), replace_sizes(sizes, unknown, upper)

    def _bounds_by_table(self, limits: Limits, within: int, row: int) -> tuple[int, int]:
        """Bound the number of members of one text: all candidates, or by a table."""
        n_candidates, changes = self.n_candidates(limits, row), self.costs.changes[row]
        if self.costs.empty[row] + changes[(changes > 0) & (changes < IMPOSSIBLE)].sum() <= within:
            return n_candidates, n_candidates
        lower, upper = self._count_by_table(limits, np.array([within]), row)
        if not np.isfinite(upper[0]):
            return 0, n_candidates
        return min(math.floor(lower[0]), n_candidates), min(math.ceil(upper[0]), n_candidates)

    def n_candidates(self, limits: Limits, row: int) -> int:
        """Return the number of candidates of one text."""
        return count_label_sets(int(np.count_nonzero(self.costs.changes[row] < IMPOSSIBLE)), *limits)

    def counts_at(self, limits: Limits, within: IntArray, row: int) -> Any:
        """Bound the number of candidates of one text within each of m ascending limits: two float64 arrays (m,)."""
        return self._count_by_table(limits, within, row)

    def _count_by_table(self, limits: Limits, within: IntArray, row: int) -> Any:
        """Bound counts of the label-sets whose costs add up; (m,) twice."""
        changes = self.costs.changes[row][self.costs.changes[row] < IMPOSSIBLE]
        room = within - self.costs.empty[row] - np.minimum(changes, 0).sum()
        return count_by_table(changes, limits, np.minimum(room, np.abs(changes).sum()))
