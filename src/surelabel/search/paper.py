"""The paper's two searches (sections 5.1 and 5.2): its description, the baseline, and an oracle for tests.

Algorithm 1 scores every candidate. Algorithm 2 scores the candidates with fewer than t flips away from z, the cheapest
label-set; every label-set within the threshold is among them. Both give the sets of the exact search.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from surelabel._core.threads import over_rows
from surelabel._core.validation import BoolArray, IntArray
from surelabel._kernels import IMPOSSIBLE
from surelabel._kernels.paper import score_ball
from surelabel.exceptions import ProhibitiveSearchError
from surelabel.labels.label_sets import order_rows
from surelabel.measures.base import Costs
from surelabel.search.dense import DenseSearch, Found, Limits, Sizes, joined

# Label-sets that the paper's machine could hold for one text.
PROHIBITIVE = 56_000_000


class Demand(NamedTuple):
    """The paper's t of each text (n,), and how many label-sets Algorithms 2 and 1 score for it."""

    radii: IntArray
    ball: list[int]
    powerset: list[int]


def ball_size(n_labels: int, centre_size: int, radius: int, limits: Limits) -> int:
    """Return the number of candidates with fewer than `radius` flips away from a label-set of centre_size labels.

    The paper's |Q(3)| for Reuters:

    >>> ball_size(90, 1, 3, (1, 15))
    4095
    """
    return sum(
        math.comb(n_labels - centre_size, added) * math.comb(centre_size, removed)
        for removed in range(min(radius - 1, centre_size) + 1)
        for added in range(min(radius - 1 - removed, n_labels - centre_size) + 1)
        if limits[0] <= centre_size + added - removed <= limits[1]
    )


class PowersetSearch(DenseSearch):
    """Algorithm 1: every candidate is scored. That is the ball of all label-sets around the empty one."""

    name = "powerset"

    def centres(self) -> BoolArray:
        """Return z, the label-set that flips start from, at sorted places (n, k)."""
        return np.zeros(self.costs.changes.shape, dtype=np.bool_)

    def radii(self, within: IntArray) -> IntArray:
        """Return t for each text, (n,): label-sets with fewer flips are scored."""
        return np.full(len(self), self.costs.changes.shape[1] + 1)

    def considered(self, limits: Limits, within: IntArray) -> list[int]:
        """Return how many label-sets are scored for each text: the paper's table "Computational demand"."""
        n_labels = np.count_nonzero(self.costs.changes < IMPOSSIBLE, axis=1).tolist()
        sizes, radii = self.centres().sum(axis=1).tolist(), self.radii(within).tolist()
        return [ball_size(n, size, t, limits) for n, size, t in zip(n_labels, sizes, radii, strict=True)]

    def _check(self, limits: Limits, within: IntArray) -> None:
        """Raise for a text with too many label-sets to score."""
        for row, n in enumerate(self.considered(limits, within)):
            if n > PROHIBITIVE:
                raise ProhibitiveSearchError(
                    f"The {self.name!r} search would have to score {n:,} label-sets for text {row}. Use 'exact'."
                )

    def _members(self, limits: Limits, row: int, within: int, capacity: int) -> tuple[int, BoolArray]:
        """Score the ball of one text; return the number of members and the first ones, 0/1 rows."""
        one: Any = self[row : row + 1]
        centre, changes = one.centres()[0], one.costs.changes[0]
        radius = int(one.radii(np.array([within]))[0])
        n_possible = int(np.count_nonzero(changes < IMPOSSIBLE))
        signs = np.where(centre[:n_possible], -1, 1)
        flips = np.stack([changes[:n_possible] * signs, signs], axis=1)
        budget = within - int(one.costs.empty[0]) - int(changes[centre].sum())
        scratch, found = np.empty(n_possible + 1, dtype=np.int64), np.empty((capacity, n_possible), dtype=np.uint8)
        n_found = score_ball(flips, int(centre.sum()), budget, np.array(limits), radius, scratch, found)
        members = np.zeros((min(capacity, n_found), len(changes)), dtype=np.bool_)
        flipped = np.repeat(centre[None], len(members), axis=0)
        flipped[:, :n_possible] ^= found[: len(members)].view(np.bool_)
        members[:, one.costs.order[0]] = flipped
        return n_found, members

    def bounds(self, limits: Limits, within: IntArray) -> tuple[Sizes, Sizes]:
        """Count the members of each text one by one."""
        self._check(limits, within)

        def block(rows: slice) -> list[int]:
            return [self._members(limits, row, int(within[row]), 0)[0] for row in range(rows.start, rows.stop)]

        sizes = np.array([n for part in over_rows(block, len(self), self.n_jobs, step=8) for n in part], dtype=np.int64)
        return sizes, sizes

    def first(self, limits: Limits, within: IntArray, number: Any) -> Found:
        """List all members of each text, sort them, and keep the first."""
        numbers, sizes = np.broadcast_to(np.asarray(number), len(self)), self.bounds(limits, within)[0]

        def one(rows: slice) -> Found:
            row = rows.start
            members = self._members(limits, row, int(within[row]), int(sizes[row]))[1]
            own = self.costs.part(slice(row, row + 1))
            chosen = members[:, own.order[0]]
            whole = own.empty + np.where(chosen, own.changes, 0).sum(axis=1)
            order = order_rows(members, whole)[: numbers[row]]
            complete = np.array([sizes[row] <= numbers[row]])
            return Found(np.full(len(order), row), whole[order], members[order], complete)

        found: Found = joined(over_rows(one, len(self), self.n_jobs, step=1))
        return found


class HammingBallSearch(PowersetSearch):
    """Algorithm 2: every candidate with fewer than t flips away from z, the cheapest label-set, is scored."""

    name = "hamming-ball"

    def centres(self) -> BoolArray:
        """Return z, the cheapest label-set, at sorted places (n, k)."""
        return np.asarray(self.costs.changes < 0)

    def radii(self, within: IntArray) -> IntArray:
        """Return the paper's t for each text.

        It is one more than the number of cheapest flips that fit together (k + 1 if all do: the paper's t stops at k
        there, and would lose the complement of z), and 0 if z itself is over the threshold.
        """
        changes = self.costs.changes
        budgets = within - self.costs.empty - np.minimum(changes, 0).sum(axis=1)
        flips = np.sort(np.abs(changes), axis=1)
        possible = flips < IMPOSSIBLE
        fitting = possible & (np.cumsum(np.where(possible, flips, 0), axis=1) <= budgets[:, None])
        return np.where(budgets >= 0, fitting.sum(axis=1) + 1, 0)


def demand_of(costs: Costs, limits: Limits, within: IntArray) -> Demand:
    """Return how many label-sets the paper's searches score for each text (table "Computational demand")."""
    ball, powerset = HammingBallSearch(costs), PowersetSearch(costs)
    return Demand(ball.radii(within), ball.considered(limits, within), powerset.considered(limits, within))
