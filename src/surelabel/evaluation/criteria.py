"""S and OF: sums of the p-values of all candidates, by certified bounds (paper section 6.2).

The sum of a text's p-values over its c candidates is

    c / (n + 1)  +  1 / (n + 1)  sum over i of #{Y : a(Y) <= a_i}

The first part, the floor, depends on counts alone; the second, the excess, on the classifier. It follows from counts at
all calibration totals at once: of a list if few candidates are within the largest, else of one table. With a taxonomy
this holds for each class and its calibration texts, and classes add up.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from surelabel._core.threads import over_rows
from surelabel._core.validation import FloatArray
from surelabel.conformal import ConformalLabelSets
from surelabel.exceptions import InvalidInputError
from surelabel.sets.prediction_sets import Texts

# Candidates of a text that are listed.
_LISTED = 4096


class PValueSums(NamedTuple):
    """Sums of p-values over candidates: a floor that depends on counts alone, and bounds of the excess, (n,) each."""

    floor: FloatArray
    lower: FloatArray
    upper: FloatArray

    @property
    def excess(self) -> tuple[float, float]:
        """Bounds of the mean excess over texts."""
        return float(self.lower.mean()), float(self.upper.mean())

    @property
    def mean(self) -> tuple[float, float]:
        """Bounds of the mean over texts of the whole sum."""
        return float((self.floor + self.lower).mean()), float((self.floor + self.upper).mean())


def s_criterion(predictor: ConformalLabelSets, probabilities: Any, *, groups: Any = None) -> PValueSums:
    """Return the sum of p-values over all candidates, for each text: `.mean` bounds the S criterion.

    Examples
    --------
    >>> predictor = ConformalLabelSets().calibrate([[0.9, 0.2], [0.1, 0.8], [0.6, 0.7]], [[1, 0], [0, 1], [1, 1]])
    >>> s_criterion(predictor, [[0.7, 0.4], [0.5, 0.2]]).mean
    (0.875, 0.875)
    """
    texts = predictor.texts(probabilities, groups, who="s_criterion")
    if texts.calibration.rules is not None:
        raise InvalidInputError(
            "S and OF sum p-values over all candidates, which cannot be counted with constraints. Leave them out."
        )
    parts = over_rows(lambda rows: _sum_block(texts[rows]), len(texts), predictor.n_jobs, step=32)
    return PValueSums(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def _sum_block(texts: Texts) -> PValueSums:
    """Return the sums of a block of texts, class by class."""
    calibration, search = texts.calibration, texts.search
    sums = np.zeros((3, len(texts)))
    for place, limits in calibration.classes:
        every = [calibration.totals_of(group, place) for group in texts.groups]
        # Infinite totals are at least as large as that of every candidate.
        finite = [totals[: np.searchsorted(totals, np.inf)] for totals in every]
        largest = search.costs.within(np.array([totals[-1] if len(totals) else -1.0 for totals in finite]))
        found = search.first(limits, largest, np.where(search.are_few(limits, largest, _LISTED), _LISTED, 0))
        starts = np.searchsorted(found.rows, np.arange(len(texts) + 1))
        own = search.costs.totals(found.whole, found.rows)
        for row, totals in enumerate(finite):
            n_candidates, n_all = search.n_candidates(limits, row), len(every[row])
            if found.complete[row]:
                counts = len(totals) - np.searchsorted(totals, own[starts[row] : starts[row + 1]], side="left")
                excess = [float(counts.sum())] * 2
            else:
                within = search.costs.within(totals, row)
                # Adding m numbers up may be off by m halves of a unit in the last place.
                error, bounds = len(totals) * 2.0**-53, search.counts_at(limits, within, row)
                excess = [float(bounds[0].sum()) * (1.0 - error), float(bounds[1].sum()) * (1.0 + error)]
                excess = [min(sum_, float(n_candidates) * len(totals)) for sum_ in excess]
            # A Python integer past 2^1023 is no float: it is infinite then.
            sums[0, row] += _quotient(n_candidates * (1 + n_all - len(totals)), n_all + 1)
            sums[1:, row] += [value / (n_all + 1) for value in excess]
    return PValueSums(*sums)


def _quotient(number: int, divisor: int) -> float:
    """Return number / divisor, infinite if it is too large for a float."""
    try:
        return number / divisor
    except OverflowError:
        return float("inf")


def of_criterion(
    predictor: ConformalLabelSets,
    probabilities: Any,
    labels: Any,
    *,
    groups: Any = None,
    sums: PValueSums | None = None,
) -> PValueSums:
    """Return the same without the p-value of the true label-set, if that is a candidate: the OF criterion.

    `sums`, the S criterion of the same texts, saves computing it again.

    Examples
    --------
    >>> predictor = ConformalLabelSets().calibrate([[0.9, 0.2], [0.1, 0.8], [0.6, 0.7]], [[1, 0], [0, 1], [1, 1]])
    >>> of_criterion(predictor, [[0.7, 0.4], [0.5, 0.2]], [[1, 0], [1, 0]]).mean
    (0.5, 0.5)
    """
    texts = predictor.texts(probabilities, groups, who="of_criterion")
    every = s_criterion(predictor, texts) if sums is None else sums
    calibration, (totals, sizes, candidates) = texts.calibration, texts.score(labels, "of_criterion")
    # The smallest p-value that there can be is part of the floor, the rest of the excess.
    smallest = np.where(candidates, calibration.p_values(np.full(len(texts), np.inf), sizes, texts.groups), 0.0)
    rest = np.where(candidates, calibration.p_values(totals, sizes, texts.groups), 0.0) - smallest
    lower, upper = (np.maximum(bound - rest, 0.0) for bound in (every.lower, every.upper))
    return PValueSums(every.floor - smallest, lower, upper)
