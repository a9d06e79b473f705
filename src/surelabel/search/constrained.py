"""Constraints as a filter on the members of another search.

The filter sees members in order, so what passes is in order, too. An answer is exact once the search beneath has no
members left, or enough of them have passed. If most members break a rule, that takes long: past a number of label-sets
per text (a part of the work limit) sizes become bounds, a label counts as certain or excluded only if that holds
without constraints, and a text for which no label-set has passed is an error.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surelabel._core.threads import over_rows
from surelabel._core.validation import BoolArray, IntArray
from surelabel._kernels import EVERYTHING
from surelabel.exceptions import InvalidInputError, SearchLimitError
from surelabel.labels.constraints import Rules
from surelabel.measures.base import Costs
from surelabel.search.dense import Best, Found, Limits, Search, Sizes, Status, as_sizes, best_of, ranks

# Least steps of the work limit that one label-set costs here, label-sets that are looked at first, and texts at a time.
_STEPS_PER_LABEL_SET, _FIRST, _BLOCK_ROWS = 16, 64, 16


class ConstrainedSearch:
    """A search among the candidates that obey constraints; `columns` (n, k) has the labels of shortlists."""

    def __init__(self, inner: Search, rules: Rules, columns: IntArray | None = None) -> None:
        self.inner = inner
        self.rules = rules
        self.columns = columns
        self.costs: Costs = inner.costs
        self.work_limit = inner.work_limit
        self.n_jobs = inner.n_jobs
        per_label_set = max(_STEPS_PER_LABEL_SET, inner.costs.changes.shape[1] // 16)
        self.most_listed = max(1, inner.work_limit // per_label_set)

    def __len__(self) -> int:
        return len(self.inner)

    def __getitem__(self, rows: Any) -> ConstrainedSearch:
        columns = None if self.columns is None else self.columns[rows]
        return ConstrainedSearch(self.inner[rows], self.rules, columns)

    def without(self, column: int) -> ConstrainedSearch:
        """Return the search among candidates without a column's label."""
        return ConstrainedSearch(self.inner.without(column), self.rules, self.columns)

    def whole(self, members: BoolArray) -> IntArray:
        """Return the whole part of the total of one 0/1 row per text, (n,)."""
        return self.inner.whole(members)

    def first(self, limits: Limits, within: IntArray, number: Any) -> Found:
        """List the first members of each text that obey the constraints, at most `number` of them."""
        numbers, asked = np.broadcast_to(np.asarray(number), len(self)), min(_FIRST, self.most_listed)
        left, complete, parts = np.arange(len(self)), np.zeros(len(self), dtype=np.bool_), []
        while len(left):
            found = self.inner[left].first(limits, within[left], asked)
            rows = left[found.rows]
            passed = self.rules.obeyed(found.members, None if self.columns is None else self.columns[rows])
            n_passed = np.bincount(rows[passed], minlength=len(self))
            done = np.zeros(len(self), dtype=np.bool_)
            done[left] = found.complete | (n_passed[left] >= numbers[left]) | (asked >= self.most_listed)
            complete[left] = found.complete & (n_passed[left] <= numbers[left])
            kept = np.flatnonzero(passed & done[rows])
            kept = kept[ranks(rows[kept]) < numbers[rows[kept]]]
            parts.append((rows[kept], found.whole[kept], found.members[kept]))
            left, asked = left[~done[left]], min(4 * asked, self.most_listed)
        rows, whole, members = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        order = np.argsort(rows, kind="stable")
        return Found(rows[order], whole[order], members[order], complete)

    def bounds(self, limits: Limits, within: IntArray) -> tuple[Sizes, Sizes]:
        """Bound the number of members of each text: exact if the search beneath has listed all of its own."""

        def block(rows: slice) -> list[tuple[int, int]]:
            part = self[rows]
            found = part.first(limits, within[rows], self.most_listed)
            n_passed = np.bincount(found.rows, minlength=len(part)).tolist()
            if found.complete.all():
                return [(n, n) for n in n_passed]
            beneath = part.inner.bounds(limits, within[rows])[1].tolist()
            return [
                (n, n if complete else n + max(0, n_beneath - self.most_listed))
                for n, n_beneath, complete in zip(n_passed, beneath, found.complete.tolist(), strict=True)
            ]

        blocks = over_rows(block, len(self), self.n_jobs, step=_BLOCK_ROWS)
        lower, upper = zip(*(pair for part in blocks for pair in part), strict=True)
        return as_sizes(lower), as_sizes(upper)

    def best(self, limits: Limits) -> Best:
        """Return the best candidate of each text, and the whole parts of the two best totals."""
        found = self.first(limits, np.full(len(self), EVERYTHING), 2)
        n_found = np.bincount(found.rows, minlength=len(self))
        unknown = np.flatnonzero((n_found < 2) & ~found.complete)
        if len(unknown):
            raise SearchLimitError(
                f"Of the {self.most_listed:,} best label-sets of text {unknown[0]}, {n_found[unknown[0]]} obey the "
                "constraints; two are needed. Use a larger work_limit, or looser constraints."
            )
        return best_of(found, len(self))

    def status(self, limits: Limits, within: IntArray) -> Status:
        """Return which labels some member may have, and which some member may lack; exact where all are listed."""
        has, lacks = self.inner.status(limits, within)
        for start in range(0, len(self), _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            found = self[rows].first(limits, within[rows], self.most_listed)
            for row in np.flatnonzero(found.complete).tolist():
                members = found.members[found.rows == row]
                has[start + row], lacks[start + row] = members.any(axis=0), (~members).any(axis=0)
        return Status(has, lacks)

    def are_few(self, limits: Limits, within: IntArray, most: int) -> BoolArray:
        """Return which texts have at most `most` members before the constraints, as far as a short walk tells."""
        return self.inner.are_few(limits, within, most)

    def counts_at(self, limits: Limits, within: IntArray, row: int) -> Any:
        """Refuse: the table cannot tell which label-sets obey."""
        raise InvalidInputError(
            "S and OF count all candidates, which is not possible with constraints. Leave constraints out."
        )

    def n_candidates(self, limits: Limits, row: int) -> int:
        """Return the number of candidates of one text before the constraints."""
        return self.inner.n_candidates(limits, row)
