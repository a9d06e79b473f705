"""What every search returns.

A search holds n texts and works on whole parts of totals. Each question comes with the limits (least, most) on the
number of labels, since classes of sizes have their own, and with `within` (n,), the largest whole part of a member.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from surelabel._core.validation import BoolArray, IntArray
from surelabel._kernels import IMPOSSIBLE
from surelabel.calibration import Limits
from surelabel.measures.base import Costs
from surelabel.search.sizes import Sizes

__all__ = ["WORK_LIMIT", "Best", "Found", "Limits", "Search", "Status", "best_of", "joined", "ranks"]

# Steps of a walk that a text may take: some 5 ms.
WORK_LIMIT = 1_000_000


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
