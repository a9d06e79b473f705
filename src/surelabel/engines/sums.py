"""Counts of candidates at many thresholds at once, where labels interact or label-sets are constrained."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from surelabel._core.validation import FloatArray
from surelabel.engines.bounds import as_float, count_of_maximum, table_counts
from surelabel.engines.forms import Problem
from surelabel.engines.walker import Walker

# Steps per text and threshold that candidates are listed in; tables bound what takes more.
_MAX_STEPS = 20_000
# Shares of the calibration totals up to which candidates are listed, the largest that is within the steps.
_SHARES = (1.0, 0.99, 0.95, 0.9, 0.8, 0.5, 0.2)
# Thresholds that are few enough to be counted one by one, and the steps that each may take.
_FEW, _STEPS_OF_FEW = 16, 300_000


def counts_of_row(
    walker: Walker, row: int, probabilities: FloatArray, thresholds: FloatArray, n_cells: int
) -> FloatArray:
    """Bound the candidates of one text within ascending finite thresholds, (m, 2); exactly if they are listed."""
    exact = _count_few if len(thresholds) <= _FEW else _count_listed
    counted, at_least = exact(walker, row, thresholds)
    bounds = np.empty((len(thresholds), 2))
    bounds[: len(counted)] = counted[:, None]
    rest = slice(len(counted), None)
    if len(counted) < len(thresholds):
        bounds[rest] = np.maximum(_table_bounds(walker.problem, probabilities, thresholds[rest], n_cells), at_least)
    return bounds


def _table_bounds(problem: Problem, row: FloatArray, thresholds: FloatArray, n_cells: int) -> FloatArray:
    """Bound the candidates within ascending finite thresholds, (m, 2), by costs above and below the measure."""
    bounds = np.zeros((len(thresholds), 2))
    for side, sided in ((0, problem.restriction), (1, problem.relaxation)):
        made: list[Any] = [sided(row, float(threshold)) for threshold in thresholds]
        if made[0] is None or (side == 0 and problem.is_maximum):
            continue
        absent, present = made[0][:2]
        budgets = np.array([one[2] for one in made])
        where = np.flatnonzero(budgets >= 0.0)
        if problem.is_maximum:
            over = (((absent > at) * 1.0, (present > at) * 1.0) for at in budgets[where])
            bounds[where, 1] = [as_float(count_of_maximum(*costs, 0.0, problem.limits)) for costs in over]
        elif len(where):
            bounds[where, side] = table_counts(absent, present, budgets[where], problem.limits, n_cells)[:, side]
    return bounds


def _count_few(walker: Walker, row: int, thresholds: FloatArray) -> tuple[FloatArray, float]:
    """Count the candidates within the first thresholds, one by one, and bound those within the others from below."""
    counts: list[float] = []
    for threshold in thresholds.tolist():
        walked = walker.count(row, threshold, _STEPS_OF_FEW)
        if not walked.complete:
            return np.array(counts), float(walked.n_members)
        counts.append(float(walked.n_members))
    return np.array(counts), counts[-1]


def _count_listed(walker: Walker, row: int, thresholds: FloatArray) -> tuple[FloatArray, float]:
    """Return the same from one list of candidates, those within as many thresholds as it can be made for."""
    for share in _SHARES:
        end = max(1, math.ceil(share * len(thresholds)))
        _, totals, walked = walker.collect(row, float(thresholds[end - 1]), _MAX_STEPS)
        if walked.complete:
            return np.searchsorted(totals, thresholds[:end], side="right").astype(np.float64), float(len(totals))
    return np.empty(0), 0.0
