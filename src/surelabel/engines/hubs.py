"""Prediction sets of a mixture with hub labels: a union of those in which hubs are in one state (design 2.5).

Given the state of the hubs, labels are independent, and the plain engine of a mixture answers. Label-sets in other
states cost more than any threshold there, so the parts have no member in common, and counts add up.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import math
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np

from surelabel._core.threads import over_rows
from surelabel._core.validation import BoolArray, FloatArray, IntArray
from surelabel.calibration import Calibration
from surelabel.engines.base import WORK_LIMIT, Engine, Scored, Threshold, as_members
from surelabel.engines.mixture import MixtureEngine, best_first_key
from surelabel.engines.sizes import Bounds, SizeBounds
from surelabel.measures.mixture import Mixture

# Calibrations by the mixture without hubs, and by each state of the hubs; made once per calibration.
_PREPARED: weakref.WeakKeyDictionary[Calibration, tuple[Calibration, ...]] = weakref.WeakKeyDictionary()


def _prepared(calibration: Calibration) -> tuple[Calibration, ...]:
    """Return the calibrations of the parts; the first is without hubs."""
    if calibration not in _PREPARED:
        measure = calibration.measure
        assert isinstance(measure, Mixture)
        measures = (measure.reweighted(hubs=None), *measure.states)
        _PREPARED[calibration] = tuple(dataclasses.replace(calibration, measure=one) for one in measures)
    return _PREPARED[calibration]


class HubsEngine(Engine):
    """Asks one engine per state of the hubs, and adds up; about thresholds that every candidate is within, any."""

    def __init__(
        self, calibration: Calibration, probabilities: Any, work_limit: int = WORK_LIMIT, n_jobs: int | None = None
    ) -> None:
        super().__init__(calibration, probabilities, work_limit, n_jobs)
        assert isinstance(calibration.measure, Mixture)
        self._measure = calibration.measure
        # The last threshold that a label-set in another state of the hubs is over.
        self._largest = self._measure.states[0].largest_total
        # The engine without hubs, for what does not depend on totals; and those of the states.
        parts = [MixtureEngine(one, probabilities, work_limit, n_jobs) for one in _prepared(calibration)]
        self._every, self._states = parts[0], parts[1:]
        self._is_complete = False

    @property
    def _parts(self) -> list[Any]:
        """The engines of the states, with the terms that are listed in other states worked out."""
        if not self._is_complete:
            blocks = over_rows(lambda rows: self._measure.others(self.probabilities[rows]), len(self), self.n_jobs)
            columns = np.concatenate(blocks).T.copy()
            self._states = [part.beside(others) for part, others in zip(self._states, columns, strict=True)]
            self._is_complete = True
        return self._states

    def _changed(self, change: Callable[[Any], Any], **own: Any) -> Self:
        """Change the parts too."""
        return self._with(_states=[change(part) for part in self._parts], _every=change(self._every), **own)

    @property
    def n_candidates(self) -> int:
        """Number of candidates in all states."""
        return int(self._every.n_candidates)

    def forced(self) -> tuple[BoolArray, FloatArray]:
        """Compare the two best of each state."""
        answers = [part.forced() for part in self._parts]
        totals = np.stack([totals for _, totals in answers])
        totals[totals > self._largest] = math.inf
        labels, best = answers[0][0].copy(), totals[0, :, 0].copy()
        for (own, _), first in zip(answers[1:], totals[1:, :, 0], strict=True):
            better = first < best
            for i in np.flatnonzero((first == best) & np.isfinite(first)).tolist():
                one, other = as_members(np.stack([own[i], labels[i]]))
                better[i] = best_first_key((0.0, one)) < best_first_key((0.0, other))
            labels[better], best[better] = own[better], first[better]
        return labels, np.sort(np.hstack(list(totals)), axis=1)[:, :2]

    def bounds(self, thresholds: FloatArray, rows: slice | None = None) -> SizeBounds:
        """Add up the states."""
        every = np.isposinf(thresholds)
        finite = np.where(every, -math.inf, thresholds)
        bounds = SizeBounds.summed([part.bounds(finite, rows) for part in self._parts])
        if every.any():
            bounds.put(every, SizeBounds.of([(self.n_candidates,) * 2] * int(every.sum())))
        return bounds

    def iterate(self, row: int, threshold: Threshold) -> Iterator[Scored]:
        """Merge the states."""
        at = min(float(threshold), self._largest)
        return heapq.merge(*(part.iterate(row, at) for part in self._parts), key=best_first_key)

    def top(self, k: int, thresholds: FloatArray, rows: IntArray) -> list[list[Scored]]:
        """Merge the best of each state."""
        tops = zip(*(part.top(k, np.minimum(thresholds, self._largest), rows) for part in self._parts), strict=True)
        return [list(itertools.islice(heapq.merge(*parts, key=best_first_key), k)) for parts in tops]

    def with_label(self, row: int, threshold: Threshold, labels: Sequence[int]) -> list[Bounds]:
        """Add up the states."""
        if threshold == math.inf:
            return self._every.with_label(row, threshold, labels)
        counted = (part.with_label(row, threshold, labels) for part in self._parts)
        return [(sum(low for low, _ in one), sum(high for _, high in one)) for one in zip(*counted, strict=True)]

    def finer_bounds(self, row: int, threshold: Threshold, n_cells: int) -> Bounds:
        """Add up the states."""
        counted = [part.finer_bounds(row, min(float(threshold), self._largest), n_cells) for part in self._parts]
        return sum(low for low, _ in counted), sum(high for _, high in counted)

    def reachable(self, thresholds: FloatArray, rows: slice) -> BoolArray:
        """Join the states."""
        finite = np.minimum(thresholds, self._largest)
        return np.asarray(np.logical_or.reduce([part.reachable(finite, rows) for part in self._parts]))

    def relaxation(self, row: int, threshold: Threshold) -> tuple[FloatArray, FloatArray, float]:
        """Return the least cost of each label in any state, and the largest threshold."""
        if threshold == math.inf:
            return self._every.relaxation(row, threshold)
        absent, present, at = zip(*(part.relaxation(row, threshold) for part in self._parts), strict=True)
        return np.minimum.reduce(absent), np.minimum.reduce(present), max(at)

    def _counts_at(self, thresholds: FloatArray, n_cells: int) -> FloatArray:
        """Add up the states."""
        return np.asarray(np.sum([part._counts_at(thresholds, n_cells) for part in self._parts], axis=0))

    def _rank_sums(self, n_cells: int) -> FloatArray:
        """Add up the states."""
        return np.asarray(np.sum([part._rank_sums(n_cells) for part in self._parts], axis=0))
