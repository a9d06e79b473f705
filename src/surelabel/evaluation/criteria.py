"""Criteria of efficiency that need every candidate: S and OF, by certified bounds (paper section 6.2).

The sum of a text's p-values over all candidates is

    sum over Y of p(Y)  =  c / (n + 1)  +  1 / (n + 1)  sum over i of #{Y : a(Y) <= a_i}

The first part, the floor, depends on nothing but the number of candidates c; the second, the excess, tells something
about the classifier. Counts at all calibration scores come from one walk where the candidates within the largest one
are few, and from one table (`_kernels/table.py`) where they are not. The paper has S and OF for the original search
only.
"""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import Any

import numpy as np

from surelabel._core.validation import FloatArray
from surelabel.calibration import Calibration
from surelabel.conformal import ConformalLabelSets
from surelabel.engines.counting import TABLE_CELLS, count_by_walk, count_of_maximum, greatest_size
from surelabel.engines.cut import n_words, over_rows
from surelabel.engines.sizes import Bounds
from surelabel.engines.sparse import SparseCut, SparseSearch, by_unlisted, count_short_rows, is_cut_short
from surelabel.engines.sums import as_float, interacting_counts_at, interacting_rank_sums
from surelabel.labels.counting import count_by_size
from surelabel.labels.sparse import SparseProbabilities, is_sparse
from surelabel.measures import SeparableMeasure, costs_of
from surelabel.measures.compressed import compress

__all__ = ["PValueSums", "counts_at", "of_criterion", "p_value_sums", "s_criterion"]

# Candidates a text that are ranked one by one for each cell of the table that would bound them: listing them takes
# about as long as that. With the usual number of cells all those of 20 labels and up to 7 of them are listed.
_LISTED_PER_CELL = 18
# Steps that counting one text at one of many thresholds may take.
_MAX_STEPS = 200_000


@dataclasses.dataclass(frozen=True, eq=False)
class PValueSums:
    """Sums of p-values over candidates, a text, as a floor and certified bounds of the excess over it.

    Attributes
    ----------
    floor : float
        c / (n + 1), the same for every text.
    excess_lower, excess_upper : (n,) float64
        Equal up to rounding where the excess was counted exactly.

    Examples
    --------
    >>> from surelabel import ConformalLabelSets, metrics
    >>> predictor = ConformalLabelSets().calibrate([[0.9, 0.2], [0.1, 0.8], [0.6, 0.7]], [[1, 0], [0, 1], [1, 1]])
    >>> sums = metrics.p_value_sums(predictor, [[0.7, 0.4], [0.5, 0.2]])
    >>> sums.floor, sums.excess, sums.mean
    (0.75, (0.125, 0.125), (0.875, 0.875))
    """

    floor: float
    excess_lower: FloatArray
    excess_upper: FloatArray

    @property
    def excess(self) -> tuple[float, float]:
        """Mean excess over texts, as (lower, upper)."""
        return float(self.excess_lower.mean()), float(self.excess_upper.mean())

    @property
    def mean(self) -> tuple[float, float]:
        """Mean over texts of the whole sum, as (lower, upper)."""
        lower, upper = self.excess
        return self.floor + lower, self.floor + upper


def counts_at(
    calibration: Calibration,
    probabilities: FloatArray | SparseProbabilities,
    thresholds: FloatArray,
    n_cells: int = TABLE_CELLS,
) -> FloatArray:
    """Return bounds (n, m, 2) of the numbers of candidates with totals within each of m ascending thresholds.

    Texts are walked from the lowest threshold up, until one takes too many steps; a table bounds the rest of them.
    """
    from surelabel._kernels import table  # noqa: PLC0415

    if isinstance(probabilities, SparseProbabilities):
        return _sparse_counts_at(calibration, probabilities, thresholds)
    if not calibration.is_separable:
        return interacting_counts_at(calibration, probabilities, thresholds, n_cells)
    measure = calibration.measure
    assert isinstance(measure, SeparableMeasure)
    n_texts, n_thresholds = len(probabilities), len(thresholds)
    every = as_float(calibration.n_candidates)
    bounds = np.full((n_texts, n_thresholds, 2), every)
    finite = int(np.sum(np.isfinite(thresholds)))
    if measure.aggregate == "max":
        for j, threshold in enumerate(thresholds[:finite]):
            bounds[:, j] = _counts_of_maximum(calibration, probabilities, float(threshold))[:, None]
        return bounds
    absent, present = costs_of(measure, probabilities)
    lo, hi = calibration.limits
    given_up = np.full(n_texts, finite)
    for j in range(finite):
        rows = np.flatnonzero(given_up == finite)
        at = np.full(len(rows), thresholds[j])
        sizes, _ = count_by_walk(absent[rows], present[rows], at, (lo, hi), _MAX_STEPS)
        bounds[rows, j] = sizes[:, None]
        given_up[rows[sizes < 0]] = j
    for i in np.flatnonzero(given_up < finite):
        rest = thresholds[given_up[i] : finite]
        lower, upper = np.zeros(len(rest)), np.zeros(len(rest))
        most = greatest_size(absent[i], present[i], float(rest[-1]), hi)
        table.bounds_row(absent[i], present[i], rest, (lo, most), n_cells, lower, upper)
        bounds[i, given_up[i] : finite, 0] = lower
        bounds[i, given_up[i] : finite, 1] = np.minimum(upper, every)
    return bounds


def _sparse_counts_at(
    calibration: Calibration, probabilities: SparseProbabilities, thresholds: FloatArray
) -> FloatArray:
    """Return the same for texts with sparse probabilities, a threshold at a time."""
    bounds = np.empty((len(probabilities), len(thresholds), 2))
    for j, threshold in enumerate(thresholds.tolist()):
        cut = SparseCut(calibration, probabilities, np.full(len(probabilities), threshold), _MAX_STEPS, n_jobs=1)
        counted = SparseSearch().bounds(cut, range(len(probabilities)))
        bounds[:, j] = [(as_float(lower), as_float(upper)) for lower, upper in counted]
    return bounds


def _counts_of_maximum(
    calibration: Calibration, probabilities: FloatArray | SparseProbabilities, threshold: float
) -> FloatArray:
    """Return the number of candidates of each text within a threshold, for a measure that takes the maximum."""
    if isinstance(probabilities, SparseProbabilities):
        return _sparse_counts_at(calibration, probabilities, np.array([threshold]))[:, 0, 0]
    assert isinstance(calibration.measure, SeparableMeasure)
    absent, present = costs_of(calibration.measure, probabilities)
    rows = zip((absent > threshold) * 1.0, (present > threshold) * 1.0, strict=True)
    return np.array([as_float(count_of_maximum(*row, 0.0, calibration.limits)) for row in rows])


def _rank_sums_of_maximum(calibration: Calibration, probabilities: FloatArray | SparseProbabilities) -> FloatArray:
    """Sum the numbers of candidates within each calibration total, by binomials."""
    values, repeats = np.unique(calibration.totals, return_counts=True)
    sums = np.zeros(len(probabilities))
    for value, repeat in zip(values, repeats, strict=True):
        sums += repeat * _counts_of_maximum(calibration, probabilities, float(value))
    return np.column_stack([sums, sums])


def _rank_sum_by_list(
    calibration: Calibration, absent: FloatArray, present: FloatArray, limits: Bounds, size: int
) -> tuple[float, float]:
    """Rank every label-set of a row (d,) and limits within the largest calibration total; `size` of them."""
    from surelabel._kernels import exact_sum, table, walk  # noqa: PLC0415

    words = np.empty((size, n_words(len(absent))), dtype=np.uint64)
    approximate = np.empty(size)
    walk.list_row(absent, present, calibration.totals[-1], limits, words, approximate)
    undecided = np.empty(size, dtype=np.bool_)
    band = exact_sum.band(len(absent))
    total = table.rank_sum_listed(approximate, undecided, calibration.totals, band)
    if undecided.any():
        exact = np.empty(int(undecided.sum()))
        exact_sum.totals_of_words(absent, present, words[undecided], exact)
        total += float((calibration.n_texts - np.searchsorted(calibration.totals, exact)).sum())
    return total, total


def _rank_sum_of_row(
    calibration: Calibration, costs: tuple[FloatArray, FloatArray], limits: Bounds, size: int, n_cells: int
) -> tuple[float, float]:
    """Bound a row's sum over calibration totals: by ranking its `size` label-sets, < 0 where they are too many."""
    from surelabel._kernels import table  # noqa: PLC0415

    if 0 <= size <= _LISTED_PER_CELL * n_cells:
        return _rank_sum_by_list(calibration, *costs, limits, size) if size else (0.0, 0.0)
    most = greatest_size(*costs, float(calibration.totals[-1]), limits[1])
    sums = np.zeros((1, 2))
    absent, present = (each[None, :] for each in costs)
    table.rank_sum_bounds(absent, present, calibration.totals, (limits[0], most), n_cells, sums)
    return float(sums[0, 0]), float(sums[0, 1])


def _sparse_rank_sums(calibration: Calibration, probabilities: SparseProbabilities, n_cells: int) -> FloatArray:
    """Return the same as `_rank_sums` for texts with sparse probabilities: binomials of sums of short rows."""
    rows = compress(calibration.separable, probabilities)
    largest = np.full(len(rows), calibration.totals[-1])
    sums: list[list[Fraction]] = [[Fraction(0), Fraction(0)] for _ in range(len(rows))]
    for j, chosen, part, limits in by_unlisted(rows, largest, calibration.limits):
        counted = count_short_rows(part, largest[chosen], limits, _LISTED_PER_CELL * n_cells)
        for place, i in enumerate(chosen.tolist()):
            lower, upper = counted[place]
            size = lower if lower == upper else -1
            bounds = _rank_sum_of_row(calibration, part.row(place), limits, size, n_cells)
            ways = math.comb(int(rows.n_unlisted[i]), j)
            every = Fraction(calibration.n_texts * count_by_size(int(rows.n_listed[i]), *limits))
            for side, bound in enumerate(bounds):
                sums[i][side] += ways * (every if math.isinf(bound) else min(Fraction(bound), every))
    cut_short = is_cut_short(rows, largest, calibration.limits)
    most = calibration.n_candidates * calibration.n_texts
    return np.array(
        [(as_float(low), as_float(most if cut else high)) for (low, high), cut in zip(sums, cut_short, strict=True)]
    )


def _rank_sums(calibration: Calibration, probabilities: FloatArray | SparseProbabilities, n_cells: int) -> FloatArray:
    """Return bounds (n, 2) of the sum over calibration totals a of the number of candidates within a."""
    if not calibration.is_separable:
        return interacting_rank_sums(calibration, np.asarray(probabilities), n_cells)
    assert isinstance(calibration.measure, SeparableMeasure)
    if calibration.measure.aggregate == "max":
        return _rank_sums_of_maximum(calibration, probabilities)
    if isinstance(probabilities, SparseProbabilities):
        return _sparse_rank_sums(calibration, probabilities, n_cells)
    absent, present = costs_of(calibration.measure, probabilities)
    largest = float(calibration.totals[-1])
    limits = calibration.limits
    sizes, _ = count_by_walk(absent, present, np.full(len(absent), largest), limits, _LISTED_PER_CELL * n_cells)
    sums = np.array(
        [
            _rank_sum_of_row(calibration, (absent[i], present[i]), limits, size, n_cells)
            for i, size in enumerate(sizes.tolist())
        ]
    )
    every = as_float(calibration.n_candidates * calibration.n_texts)
    return np.asarray(np.minimum(sums, every))


def p_value_sums(predictor: ConformalLabelSets, probabilities: Any, *, n_cells: int = TABLE_CELLS) -> PValueSums:
    """Return the sum of p-values over all candidates, for each text.

    Parameters
    ----------
    predictor : ConformalLabelSets
        Calibrated.
    probabilities : (n, d) array-like
    n_cells : int
        Cells of the table that bounds counts; more give tighter bounds, in proportion.

    Examples
    --------
    >>> predictor = ConformalLabelSets().calibrate([[0.9, 0.2], [0.1, 0.8], [0.6, 0.7]], [[1, 0], [0, 1], [1, 1]])
    >>> sums = p_value_sums(predictor, [[0.7, 0.4]])
    >>> sums.floor, sums.excess_lower.tolist(), sums.excess_upper.tolist()
    (0.75, [0.25], [0.25])
    """
    calibration = predictor._calibrated("p_value_sums")
    checked = calibration.as_probabilities(probabilities, who="p_value_sums", sparse=True)
    blocks = over_rows(lambda rows: _rank_sums(calibration, checked[rows], n_cells), len(checked), predictor.n_jobs)
    excess = np.concatenate(blocks) / (calibration.n_texts + 1)
    floor = as_float(Fraction(calibration.n_candidates, calibration.n_texts + 1))
    return PValueSums(floor, excess[:, 0], excess[:, 1])


def s_criterion(predictor: ConformalLabelSets, probabilities: Any, *, n_cells: int = TABLE_CELLS) -> PValueSums:
    """Return the S criterion: `.mean` is its (lower, upper), `.floor` and `.excess` its two parts.

    Examples
    --------
    >>> from surelabel import ConformalLabelSets, metrics
    >>> predictor = ConformalLabelSets().calibrate([[0.9, 0.2], [0.1, 0.8], [0.6, 0.7]], [[1, 0], [0, 1], [1, 1]])
    >>> metrics.s_criterion(predictor, [[0.7, 0.4], [0.5, 0.2]]).mean
    (0.875, 0.875)
    """
    return p_value_sums(predictor, probabilities, n_cells=n_cells)


def of_criterion(
    predictor: ConformalLabelSets,
    probabilities: Any,
    labels: Any,
    *,
    n_cells: int = TABLE_CELLS,
    sums: PValueSums | None = None,
) -> PValueSums:
    """Return the OF criterion: S without the p-value of the true label-set, where that is a candidate.

    The floor is that of S without the smallest p-value there can be, 1 / (n + 1), of a true label-set that is a
    candidate, averaged over texts; the excess is without the rest of it. `sums`, where the S criterion of the same
    texts is at hand, saves computing it again.

    Examples
    --------
    >>> from surelabel import ConformalLabelSets, metrics
    >>> predictor = ConformalLabelSets().calibrate([[0.9, 0.2], [0.1, 0.8], [0.6, 0.7]], [[1, 0], [0, 1], [1, 1]])
    >>> metrics.of_criterion(predictor, [[0.7, 0.4], [0.5, 0.2]], [[1, 0], [1, 0]]).mean
    (0.5, 0.5)
    """
    calibration = predictor._calibrated("of_criterion")
    sums = sums if sums is not None else p_value_sums(predictor, probabilities, n_cells=n_cells)
    known = calibration.as_labels(labels, len(sums.excess_lower), who="of_criterion", sparse=is_sparse(probabilities))
    smallest = 1.0 / (calibration.n_texts + 1)
    counted = calibration.is_candidate(known)
    rest = np.where(counted, predictor.predict_p(probabilities, known) - smallest, 0.0)
    floor = sums.floor - smallest * float(counted.mean())
    return PValueSums(floor, np.maximum(sums.excess_lower - rest, 0.0), np.maximum(sums.excess_upper - rest, 0.0))
