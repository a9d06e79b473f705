"""The paper's two searches, as it describes them (sections 5.1 and 5.2): oracle, baseline, and their cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from surelabel.engines.cut import (
    Cut,
    IntArray,
    SearchReport,
    Words,
    best_first_order,
    n_words,
    over_rows,
    totals_of_words,
    unpack,
)
from surelabel.engines.sizes import Bounds, SizeBounds
from surelabel.exceptions import ProhibitiveSearchError

__all__ = ["PROHIBITIVE", "HammingBallSearch", "PowersetSearch", "ball_size"]

# Label-sets that the paper's machine could hold for one text.
PROHIBITIVE = 56_000_000
# Label-sets that are scored together, where that is not done one by one.
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


class _ListingSearch:
    """A search that scores label-sets one by one, and refuses a text that has too many of them."""

    name = ""

    def __init__(self, prohibitive: int = PROHIBITIVE) -> None:
        self.prohibitive = prohibitive

    def report(self, cut: Cut) -> SearchReport:
        """Return what the search has to consider for each text."""
        raise NotImplementedError

    def _search(self, cut: Cut, row: int, words: Words) -> int:
        """Score all considered label-sets of one text, write members while there is room; return how many."""
        raise NotImplementedError

    def _refuse(self, cut: Cut, rows: range) -> None:
        """Raise for the first text that is out of reach."""
        part = Cut(cut.calibration, cut.probabilities[rows.start : rows.stop], cut.thresholds[rows.start : rows.stop])
        report = self.report(part)
        if report.prohibitive.any():
            first = int(np.argmax(report.prohibitive))
            raise ProhibitiveSearchError(
                f"The {self.name!r} search would have to consider {report.considered[first]:,} label-sets for text "
                f"{rows.start + first}, more than its limit of {self.prohibitive:,}. Use search='exact'."
            )

    def bounds(self, cut: Cut, rows: range) -> SizeBounds:
        """Count members one by one."""
        self._refuse(cut, rows)
        nothing = np.empty((0, n_words(cut.calibration.n_labels)), dtype=np.uint64)

        def count(block: slice) -> SizeBounds:
            inside = range(block.start + rows.start, block.stop + rows.start)
            return SizeBounds.of((size, size) for size in (self._search(cut, row, nothing) for row in inside))

        return SizeBounds.joined(over_rows(count, len(rows), cut.n_jobs))

    def members(self, cut: Cut, row: int, limit: int) -> Words:
        """List all members, sort them, and cut at the limit."""
        size, _ = self.bounds(cut, range(row, row + 1))[0]
        words = np.empty((size, n_words(cut.calibration.n_labels)), dtype=np.uint64)
        self._search(cut, row, words)
        return words[best_first_order(totals_of_words(cut, row, words), words)[:limit]]

    def with_label(self, cut: Cut, row: int, labels: Sequence[int]) -> list[Bounds]:
        """Count the listed members that have each of some labels."""
        members = unpack(self.members(cut, row, self.prohibitive), cut.calibration.n_labels)
        return [(count, count) for count in members[:, labels].sum(axis=0).tolist()]

    def iterate(self, cut: Cut, row: int) -> Iterator[tuple[float, Words]]:
        """Yield members, best first, after listing all of them."""
        words = self.members(cut, row, self.prohibitive)
        totals = totals_of_words(cut, row, words)
        yield from zip(totals.tolist(), words, strict=True)


class PowersetSearch(_ListingSearch):
    """Algorithm 1: every candidate is scored."""

    name = "powerset"

    def report(self, cut: Cut) -> SearchReport:
        """Return the number of candidates, the paper's c, for each text."""
        n_texts = len(cut.probabilities)
        considered = cut.calibration.n_candidates
        prohibitive = np.full(n_texts, considered > self.prohibitive)
        return SearchReport(None, [considered] * n_texts, prohibitive)

    def _search(self, cut: Cut, row: int, words: Words) -> int:
        """Score every candidate of one text."""
        from surelabel._kernels import combinations  # noqa: PLC0415

        if not cut.calibration.is_separable:
            return _score_all(cut, row, words)
        absent, present, thresholds = cut.membership(slice(row, row + 1))
        limits = cut.calibration.limits
        return int(combinations.powerset_row(absent[0], present[0], thresholds[0], limits, words))


def _score_all(cut: Cut, row: int, words: Words) -> int:
    """Score every candidate of one text, a block at a time, by the one function that all totals come from."""
    from surelabel._kernels import combinations  # noqa: PLC0415

    calibration = cut.calibration
    chosen = np.empty(calibration.n_labels + 1, dtype=np.int64)
    state = np.array([*calibration.limits, 0], dtype=np.int64)
    block = np.empty((_SCORED_AT_ONCE, n_words(calibration.n_labels)), dtype=np.uint64)
    found = 0
    while filled := int(combinations.fill_combinations(calibration.n_labels, chosen, state, block)):
        part = block[:filled]
        part = part[calibration.is_candidate(unpack(part, calibration.n_labels))]
        part = part[totals_of_words(cut, row, part) <= cut.thresholds[row]]
        room = words[found : found + len(part)]
        room[:] = part[: len(room)]
        found += len(part)
    return found


class HammingBallSearch(_ListingSearch):
    """Algorithm 2: every candidate with fewer than t flips away from z is scored."""

    name = "hamming-ball"

    @staticmethod
    def _balls(cut: Cut, rows: slice) -> tuple[IntArray, npt.NDArray[np.uint8]]:
        """Return t and z of a block of rows."""
        from surelabel._kernels import combinations  # noqa: PLC0415

        absent, present = cut.costs(rows)
        radius = np.empty(len(absent), dtype=np.int64)
        centre = np.empty(absent.shape, dtype=np.uint8)
        combinations.radius_rows(absent, present, cut.thresholds[rows], cut.is_maximum, radius, centre)
        return radius, centre

    def report(self, cut: Cut) -> SearchReport:
        """Return t and the number of candidates in the ball, the paper's c^q, for each text."""
        calibration = cut.calibration
        blocks = over_rows(lambda rows: self._balls(cut, rows), len(cut.probabilities), cut.n_jobs)
        radius = np.concatenate([block[0] for block in blocks])
        sizes = np.concatenate([block[1].sum(axis=1) for block in blocks])
        considered = [
            ball_size(calibration.n_labels, size, t, calibration.limits)
            for size, t in zip(sizes.tolist(), radius.tolist(), strict=True)
        ]
        prohibitive = np.array([count > self.prohibitive for count in considered], dtype=np.bool_)
        return SearchReport(radius, considered, prohibitive)

    def _search(self, cut: Cut, row: int, words: Words) -> int:
        """Score every candidate in the ball of one text."""
        from surelabel._kernels import combinations  # noqa: PLC0415

        rows = slice(row, row + 1)
        absent, present, thresholds = cut.membership(rows)
        radius, centre = self._balls(cut, rows)
        return int(
            combinations.ball_row(
                absent[0], present[0], thresholds[0], cut.calibration.limits, centre[0], radius[0], words
            )
        )
