"""Counts of candidates at many thresholds at once, where labels interact or label-sets are constrained."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from surelabel._core.validation import FloatArray
from surelabel.calibration import Calibration
from surelabel.engines.counting import count_of_maximum, greatest_size
from surelabel.engines.cut import Cut
from surelabel.engines.forms import Problem, problem_of
from surelabel.engines.interacting import Walker

__all__ = ["as_float", "interacting_counts_at", "interacting_rank_sums"]

# Steps a text and threshold that candidates are listed in; tables bound what takes more.
_MAX_STEPS = 20_000
# Shares of the calibration totals up to which candidates are listed, the largest that is within the steps.
_SHARES = (1.0, 0.99, 0.95, 0.9, 0.8, 0.5, 0.2)
# Thresholds that are few enough to be counted one by one, and the steps that each may take.
_FEW, _STEPS_OF_FEW = 16, 300_000


def as_float(count: int | Fraction) -> float:
    """Return a count as a float, inf where it is too large for one (over some 1,000 labels without limit)."""
    try:
        return float(count)
    except OverflowError:
        return math.inf


def _table_bounds(problem: Problem, row: FloatArray, thresholds: FloatArray, n_cells: int) -> FloatArray:
    """Bound the candidates within ascending finite thresholds, (m, 2), by costs above and below the measure."""
    from surelabel._kernels import table  # noqa: PLC0415

    bounds = np.zeros((len(thresholds), 2))
    for side, sided in ((0, problem.restriction), (1, problem.relaxation)):
        made: list[Any] = [sided(row, float(threshold)) for threshold in thresholds]
        if made[0] is None or (side == 0 and problem.is_maximum):
            continue
        absent, present = made[0][:2]
        budgets = np.array([one[2] for one in made])
        where = np.flatnonzero(budgets >= 0.0)
        if not len(where):
            continue
        if problem.is_maximum:
            bounds[where, 1] = [
                as_float(count_of_maximum((absent > at) * 1.0, (present > at) * 1.0, 0.0, problem.limits))
                for at in budgets[where]
            ]
            continue
        most = greatest_size(absent, present, float(budgets[-1]), problem.limits[1])
        if most < problem.limits[0]:
            continue
        lower, upper = np.zeros(len(where)), np.zeros(len(where))
        table.bounds_row(absent, present, budgets[where], (problem.limits[0], most), n_cells, lower, upper)
        bounds[where, side] = upper if side else lower
    return bounds


def _counts_of_row(walker: Walker, cut: Cut, row: int, thresholds: FloatArray, n_cells: int) -> FloatArray:
    """Bound the candidates of one text within ascending finite thresholds, (m, 2); exactly where they are listed."""
    bounds = np.empty((len(thresholds), 2))
    exact = _count_few if len(thresholds) <= _FEW else _count_listed
    counted, at_least = exact(walker, row, thresholds)
    n_exact = len(counted)
    bounds[:n_exact] = counted[:, None]
    if n_exact < len(thresholds):
        rest = _table_bounds(problem_of(cut.calibration), cut.probabilities[row], thresholds[n_exact:], n_cells)
        every = as_float(cut.calibration.n_candidates)
        bounds[n_exact:, 0] = np.maximum(rest[:, 0], at_least)
        bounds[n_exact:, 1] = np.maximum(np.minimum(rest[:, 1], every), bounds[n_exact:, 0])
    return bounds


def _count_few(walker: Walker, row: int, thresholds: FloatArray) -> tuple[FloatArray, float]:
    """Count the candidates within the first thresholds, one by one, and bound those within the others from below."""
    counts: list[float] = []
    for threshold in thresholds.tolist():
        walked = walker.count(row, threshold, _STEPS_OF_FEW)
        if not walked.complete:
            return np.array(counts), float(walked.found)
        counts.append(float(walked.found))
    return np.array(counts), counts[-1]


def _count_listed(walker: Walker, row: int, thresholds: FloatArray) -> tuple[FloatArray, float]:
    """Return the same from one list of candidates, those within as many thresholds as it can be made for."""
    for share in _SHARES:
        end = max(1, math.ceil(share * len(thresholds)))
        _, totals, walked = walker.collect(row, float(thresholds[end - 1]), _MAX_STEPS)
        if walked.complete:
            return np.searchsorted(totals, thresholds[:end], side="right").astype(np.float64), float(len(totals))
    return np.empty(0), 0.0


def interacting_counts_at(
    calibration: Calibration, probabilities: FloatArray, thresholds: FloatArray, n_cells: int
) -> FloatArray:
    """Return bounds (n, m, 2) of the numbers of candidates with totals within each of m ascending thresholds."""
    bounds = np.full((len(probabilities), len(thresholds), 2), as_float(calibration.n_candidates))
    bounds[:, np.isneginf(thresholds)] = 0.0
    finite = np.isfinite(thresholds)
    if finite.any():
        cut = Cut(calibration, probabilities, np.zeros(len(probabilities)))
        walker = Walker(cut)
        for row in range(len(probabilities)):
            bounds[row, finite] = _counts_of_row(walker, cut, row, thresholds[finite], n_cells)
    return bounds


def interacting_rank_sums(calibration: Calibration, probabilities: FloatArray, n_cells: int) -> FloatArray:
    """Return bounds (n, 2) of the sum over calibration totals a of the number of candidates within a."""
    values, repeats = np.unique(calibration.totals, return_counts=True)
    counts = interacting_counts_at(calibration, probabilities, values, n_cells)
    return np.asarray((counts * repeats[None, :, None]).sum(axis=1))
