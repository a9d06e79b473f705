"""Criteria of efficiency that need every candidate: S and OF, by certified bounds (paper section 6.2).

The sum of a text's p-values over all candidates is

    sum over Y of p(Y)  =  c / (n + 1)  +  1 / (n + 1)  sum over i of #{Y : a(Y) <= a_i}

The first part, the floor, depends on nothing but the number of candidates c; the second, the excess, tells something
about the classifier. Counts at all calibration scores come from one walk if the candidates within the largest one
are few, and from one table (`_kernels/table.py`) if they are not. With a taxonomy this holds for each kind of label-set
and its category's texts, and the kinds add up. The paper has S and OF for the original search only.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from surelabel._core.validation import FloatArray
from surelabel.conformal import ConformalLabelSets
from surelabel.engines.bounds import TABLE_CELLS


@dataclasses.dataclass(frozen=True, eq=False)
class PValueSums:
    """Sums of p-values over candidates, per text, as a floor and certified bounds of the excess over it.

    The floor, c / (n + 1), is the same for every text; if texts are divided by groups, it is the mean over texts. The
    bounds, (n,), are equal up to rounding if the excess was counted exactly.

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


def p_value_sums(
    predictor: ConformalLabelSets, probabilities: Any, *, n_cells: int = TABLE_CELLS, groups: Any = None
) -> PValueSums:
    """Return the sum of p-values over all candidates, for each text of probabilities (n, d).

    More cells of the table that bounds counts, `n_cells`, give tighter bounds, in proportion; `groups` has the group of
    each text, if the taxonomy divides texts by groups.

    Examples
    --------
    >>> predictor = ConformalLabelSets().calibrate([[0.9, 0.2], [0.1, 0.8], [0.6, 0.7]], [[1, 0], [0, 1], [1, 1]])
    >>> sums = p_value_sums(predictor, [[0.7, 0.4]])
    >>> sums.floor, sums.excess_lower.tolist(), sums.excess_upper.tolist()
    (0.75, [0.25], [0.25])
    """
    engine = predictor.bind(probabilities, groups=groups, who="p_value_sums")
    floors, excess = engine.p_value_sums(n_cells)
    floor = floors[0] if (floors == floors[0]).all() else floors.mean()
    return PValueSums(float(floor), excess[:, 0], excess[:, 1])


def s_criterion(
    predictor: ConformalLabelSets, probabilities: Any, *, n_cells: int = TABLE_CELLS, groups: Any = None
) -> PValueSums:
    """Return the S criterion: `.mean` is its (lower, upper), `.floor` and `.excess` its two parts.

    Examples
    --------
    >>> from surelabel import ConformalLabelSets, metrics
    >>> predictor = ConformalLabelSets().calibrate([[0.9, 0.2], [0.1, 0.8], [0.6, 0.7]], [[1, 0], [0, 1], [1, 1]])
    >>> metrics.s_criterion(predictor, [[0.7, 0.4], [0.5, 0.2]]).mean
    (0.875, 0.875)
    """
    return p_value_sums(predictor, probabilities, n_cells=n_cells, groups=groups)


def of_criterion(
    predictor: ConformalLabelSets,
    probabilities: Any,
    labels: Any,
    *,
    n_cells: int = TABLE_CELLS,
    sums: PValueSums | None = None,
    groups: Any = None,
) -> PValueSums:
    """Return the OF criterion: S without the p-value of the true label-set, if that is a candidate.

    The floor is that of S without the smallest p-value there can be, 1 / (n + 1), of a true label-set that is a
    candidate, averaged over texts; the excess is without the rest of it. `sums`, the S criterion of the same texts,
    saves computing it again.

    Examples
    --------
    >>> from surelabel import ConformalLabelSets, metrics
    >>> predictor = ConformalLabelSets().calibrate([[0.9, 0.2], [0.1, 0.8], [0.6, 0.7]], [[1, 0], [0, 1], [1, 1]])
    >>> metrics.of_criterion(predictor, [[0.7, 0.4], [0.5, 0.2]], [[1, 0], [1, 0]]).mean
    (0.5, 0.5)
    """
    engine = predictor.bind(probabilities, groups=groups, who="of_criterion")
    sums = sums if sums is not None else p_value_sums(predictor, engine, n_cells=n_cells)
    known = engine.as_labels(labels, who="of_criterion")
    counted = engine.is_candidate(known)
    smallest = np.where(counted, engine.p_values_with(np.full(len(engine), np.inf), known), 0.0)
    rest = np.where(counted, engine.p_values_of(known), 0.0) - smallest
    floor = sums.floor - float(smallest.mean())
    lower, upper = (np.maximum(bound - rest, 0.0) for bound in (sums.excess_lower, sums.excess_upper))
    return PValueSums(floor, lower, upper)
