"""The paper's two searches, as it describes them (sections 5.1 and 5.2): oracle, baseline, and their cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from surelabel._core.packing import Words, n_words, unpack
from surelabel._core.threads import over_rows
from surelabel._core.validation import BoolArray, FloatArray, IntArray
from surelabel._kernels import combinations
from surelabel.engines.base import Engine, Scored, SearchReport, Threshold, WrappingEngine, as_members
from surelabel.engines.best_first import best_first_order
from surelabel.engines.dense import DenseEngine
from surelabel.engines.sizes import Bounds, SizeBounds
from surelabel.engines.walker import totals_of_text
from surelabel.exceptions import ProhibitiveSearchError

# Label-sets that the paper's machine could hold for one text.
PROHIBITIVE = 56_000_000
# Label-sets that are scored together, unless that is done one by one.
_SCORED_AT_ONCE = 2**14


def ball_size(n_labels: int, centre_size: int, radius: int, limits: Bounds) -> int:
    """Return the number of candidates with fewer than `radius` flips away from a label-set of centre_size labels.

    Examples
    --------
    The paper's |Q(3)| for Reuters:

    >>> ball_size(90, 1, 3, (1, 15))
    4095
    """
    outside = n_labels - centre_size
    return sum(
        math.comb(outside, added) * math.comb(centre_size, removed)
        for removed in range(min(radius - 1, centre_size) + 1)
        for added in range(min(radius - 1 - removed, outside) + 1)
        if limits[0] <= centre_size + added - removed <= limits[1]
    )


class ListingEngine(WrappingEngine):
    """Scores label-sets one by one, and refuses a text that has too many of them; the rest is the exact engine's."""

    def __init__(self, inner: Engine, prohibitive: int = PROHIBITIVE) -> None:
        super().__init__(inner)
        self.prohibitive = prohibitive

    def _considered(self, thresholds: FloatArray, rows: slice) -> tuple[IntArray | None, list[int]]:
        """Return the paper's t of some texts, if there is one, and how many label-sets are scored for each."""
        raise NotImplementedError

    def _search(self, row: int, threshold: float, words: Words) -> int:
        """Score all considered label-sets of one text, write members while there is room; return how many."""
        raise NotImplementedError

    def _totals(self, row: int, words: Words) -> FloatArray:
        """Return the totals of packed label-sets of one text."""
        return totals_of_text(self.calibration.measure, self.probabilities[row], words)

    def report(self, thresholds: FloatArray) -> SearchReport:
        """Return what the search has to consider for each text."""
        radius, considered = self._considered(thresholds, slice(0, len(self)))
        return SearchReport(radius, considered, np.array([n > self.prohibitive for n in considered], dtype=np.bool_))

    def bounds(self, thresholds: FloatArray, rows: slice | None = None) -> SizeBounds:
        """Count members one by one."""
        rows = slice(0, len(self)) if rows is None else rows
        _, considered = self._considered(thresholds, rows)
        for row, n_considered in enumerate(considered, rows.start):
            if n_considered > self.prohibitive:
                raise ProhibitiveSearchError(
                    f"The {self.search!r} search would have to consider {n_considered:,} label-sets for text {row}, "
                    f"more than its limit of {self.prohibitive:,}. Use search='exact'."
                )
        return super().bounds(thresholds, rows)

    def _bounds(self, thresholds: FloatArray, rows: slice) -> SizeBounds:
        """Count the members of a block of texts."""
        nothing = np.empty((0, n_words(self.n_labels)), dtype=np.uint64)
        texts = zip(range(rows.start, rows.stop), thresholds.tolist(), strict=True)
        return SizeBounds.of((size, size) for size in (self._search(row, at, nothing) for row, at in texts))

    def _listed(self, row: int, threshold: Threshold) -> tuple[FloatArray, Words]:
        """List all members and sort them; return totals and packed label-sets."""
        size, _ = self.bounds(np.array([threshold]), slice(row, row + 1))[0]
        words = np.empty((size, n_words(self.n_labels)), dtype=np.uint64)
        self._search(row, float(threshold), words)
        totals = self._totals(row, words)
        order = best_first_order(totals, words)
        return totals[order], words[order]

    def members(self, row: int, threshold: Threshold, limit: int) -> BoolArray:
        """List all members, sort them, and cut at the limit."""
        return unpack(self._listed(row, threshold)[1][:limit], self.n_labels)

    def iterate(self, row: int, threshold: Threshold) -> Iterator[Scored]:
        """Yield members after listing all of them."""
        totals, words = self._listed(row, threshold)
        yield from zip(totals.tolist(), as_members(unpack(words, self.n_labels)), strict=True)

    def with_label(self, row: int, threshold: Threshold, labels: Sequence[int]) -> list[Bounds]:
        """Count the listed members that have each of some labels."""
        members = self.members(row, threshold, self.prohibitive)
        return [(count, count) for count in members[:, list(labels)].sum(axis=0).tolist()]


class PowersetEngine(ListingEngine):
    """Algorithm 1: every candidate is scored."""

    search = "powerset"

    def _considered(self, thresholds: FloatArray, rows: slice) -> tuple[IntArray | None, list[int]]:
        """Return the number of candidates, the paper's c, for each text."""
        return None, [self.n_candidates] * len(thresholds)

    def _search(self, row: int, threshold: float, words: Words) -> int:
        """Score every candidate of one text."""
        if isinstance(self.inner, DenseEngine):
            empty, one = np.zeros(self.n_labels, dtype=np.uint8), self.inner.relaxation(row, threshold)
            return int(combinations.ball_row(*one, self.limits, empty, self.limits[1] + 1, words))
        chosen = np.empty(self.n_labels + 1, dtype=np.int64)
        state = np.array([*self.limits, 0], dtype=np.int64)
        block = np.empty((_SCORED_AT_ONCE, n_words(self.n_labels)), dtype=np.uint64)
        n_members = 0
        while filled := int(combinations.fill_combinations(self.n_labels, chosen, state, block)):
            part = block[:filled]
            part = part[self.is_candidate(unpack(part, self.n_labels))]
            part = part[self._totals(row, part) <= threshold]
            room = words[n_members : n_members + len(part)]
            room[:] = part[: len(room)]
            n_members += len(part)
        return n_members


class HammingBallEngine(ListingEngine):
    """Algorithm 2: every candidate with fewer than t flips away from z is scored."""

    search = "hamming-ball"
    inner: DenseEngine

    def _balls(self, thresholds: FloatArray, rows: slice) -> tuple[IntArray, npt.NDArray[np.uint8]]:
        """Return t and z of some texts."""
        absent, present = self.inner.costs(rows)
        radius = np.empty(len(absent), dtype=np.int64)
        centre = np.empty(absent.shape, dtype=np.uint8)
        combinations.radius_rows(absent, present, thresholds, self.inner.is_maximum, radius, centre)
        return radius, centre

    def _considered(self, thresholds: FloatArray, rows: slice) -> tuple[IntArray | None, list[int]]:
        """Return t and the number of candidates in the ball, the paper's c^q, for each text."""
        first = rows.start
        blocks = over_rows(
            lambda block: self._balls(thresholds[block], slice(block.start + first, block.stop + first)),
            len(thresholds),
            self.n_jobs,
        )
        radius = np.concatenate([radius for radius, _ in blocks])
        sizes = np.concatenate([centre.sum(axis=1) for _, centre in blocks])
        balls = zip(sizes.tolist(), radius.tolist(), strict=True)
        return radius, [ball_size(self.n_labels, size, t, self.limits) for size, t in balls]

    def _search(self, row: int, threshold: float, words: Words) -> int:
        """Score every candidate in the ball of one text."""
        radius, centre = self._balls(np.array([threshold]), slice(row, row + 1))
        one = self.inner.relaxation(row, threshold)
        return int(combinations.ball_row(*one, self.limits, centre[0], radius[0], words))
