"""Weights of penalties, chosen on the validation part for the smallest prediction sets."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from surelabel._core.validation import BoolArray, FloatArray, as_level, as_texts, invalid
from surelabel.conformal import ConformalLabelSets
from surelabel.engines import engine_for
from surelabel.engines.interacting import found_within_work
from surelabel.exceptions import CalibrationWarning, InvalidInputError
from surelabel.labels.constraints import LabelConstraints
from surelabel.measures import Measure
from surelabel.measures.penalised import WEIGHTS, Penalised

# Weights that are tried, in units of the median score of the validation texts; 0 is always tried too.
GRID = (0.03, 0.1, 0.3, 1.0, 3.0)
# Steps that counting one set may take, some 5 ms; a set counts as what is found in them.
_WORK_LIMIT = 20_000
# Texts of each half whose sets are counted.
_COUNTED = 250
# Share of sets that must be counted in these steps without penalties, or nothing is chosen.
_COUNTED_SHARE = 0.5
_ROUNDS = 2


@dataclasses.dataclass(frozen=True)
class ChosenWeights:
    """What `choose_weights` found.

    Attributes
    ----------
    measure : Penalised
        With the chosen weights, fitted; ready for `ConformalLabelSets`.
    mean_size : float
        Mean number of label-sets of a prediction set on the validation part with them; a set that is too large to
        count enters with what was counted of it.
    mean_size_without : float
        The same with all weights 0, which is never smaller.
    tried : tuple of (weights, mean size)
        Everything that was tried, in order.
    share_counted, share_counted_without : float
        Share of the sets behind the two means that were counted to their end. Below 1 the mean is a lower bound.
    """

    measure: Penalised
    mean_size: float
    mean_size_without: float
    tried: tuple[tuple[dict[str, float], float], ...]
    share_counted: float = 1.0
    share_counted_without: float = 1.0

    @property
    def summary(self) -> str:
        """The two means in words; one that not all sets were counted for says "at least"."""
        means = ((self.mean_size, self.share_counted), (self.mean_size_without, self.share_counted_without))
        chosen, without = (f"{'' if share == 1.0 else 'at least '}{mean:.1f}" for mean, share in means)
        return f"sets of {chosen} label-sets on the validation part; without penalties {without}"


def choose_weights(
    measure: Measure,
    train_labels: Any,
    probabilities: Any,
    labels: Any,
    *,
    significance: Any = "0.05",
    min_labels: int = 1,
    max_labels: int | None = None,
    constraints: LabelConstraints | None = None,
    grid: Sequence[float] = GRID,
    random_state: int = 0,
) -> ChosenWeights:
    """Choose the weights of `Penalised` that make prediction sets smallest on the validation part.

    The validation part is cut into two halves at random; each half in turn calibrates, and the mean size of prediction
    sets is taken on the other. Starting from no penalties, one weight after the other is set to what makes that mean
    smallest with the others unchanged, in two rounds. The search starts without penalties, so the choice is never worse
    on the validation part. Calibration texts take no part, so the guarantee is what it was.

    Sets of at most 250 texts of each half are counted, each in some milliseconds. If that is not enough to count half
    of them without penalties, nothing can be compared, and all weights are 0.

    Parameters
    ----------
    measure : Measure
        To be penalised; fitted if it must be.
    train_labels : (n, d) 0/1 array-like or sparse matrix
        Of proper training texts.
    probabilities, labels : (m, d) array-likes
        Of the validation part, never of the calibration part.
    significance : float or str
        Level at which sets should be small.
    min_labels, max_labels, constraints
        As of `ConformalLabelSets`.
    grid : sequence of float
        Weights to try beside 0, in units of the median score of the validation texts.
    random_state : int
        Of the halves.

    Examples
    --------
    >>> from surelabel import LogLoss
    >>> rng = np.random.default_rng(0)
    >>> labels = np.eye(4, dtype=bool)[rng.integers(0, 4, 300)] | np.array([True, False, False, False])
    >>> probabilities = np.clip(labels + rng.normal(0, 0.4, labels.shape), 0.01, 0.99)
    >>> chosen = choose_weights(LogLoss(), labels[:100], probabilities[100:], labels[100:])
    >>> chosen.mean_size < chosen.mean_size_without
    True
    """
    checked, truth = as_texts(probabilities, labels, who="choose_weights")
    if len(checked) < 4:
        raise InvalidInputError(f"choose_weights needs 4 validation texts or more. Got {len(checked)} instead.")
    if not all(np.isfinite(value) and value >= 0 for value in grid):
        raise invalid("grid", "choose_weights", "numbers, 0 or more", repr(grid))
    order = np.random.default_rng(random_state).permutation(len(checked))
    halves = (order[: len(order) // 2], order[len(order) // 2 :])
    start = Penalised(measure).fit(train_labels)
    limits = {"min_labels": min_labels, "max_labels": max_labels, "constraints": constraints}
    unit = float(np.median(start.totals(checked, truth))) or 1.0
    best = dict.fromkeys(WEIGHTS, 0.0)
    without, counted = _mean_size(start.reweighted(**best), checked, truth, halves, significance, limits)
    tried = {tuple(best.values()): (without, counted)}

    def mean_size(weights: dict[str, float]) -> float:
        key = tuple(weights.values())
        if key not in tried:
            tried[key] = _mean_size(start.reweighted(**weights), checked, truth, halves, significance, limits)
        return tried[key][0]

    for _ in range(_ROUNDS if counted >= _COUNTED_SHARE else 0):
        before = dict(best)
        for name in reversed(WEIGHTS):
            options = [{**best, name: unit * value} for value in (0.0, *sorted(grid))]
            best = min(options, key=mean_size)
        if best == before:
            break
    report = tuple((dict(zip(WEIGHTS, key, strict=True)), size) for key, (size, _) in tried.items())
    mean, share = tried[tuple(best.values())]
    return ChosenWeights(start.reweighted(**best), mean, without, report, share, counted)


def _mean_size(
    measure: Penalised,
    probabilities: FloatArray,
    labels: BoolArray,
    halves: tuple[Any, Any],
    significance: Any,
    limits: dict[str, Any],
) -> tuple[float, float]:
    """Return the mean size of sets of each half, calibrated with the other, and the share of those all counted."""
    counts = []
    level = as_level(significance, None, who="choose_weights")
    for one, other in (halves, halves[::-1]):
        with warnings.catch_warnings(action="ignore", category=CalibrationWarning):
            predictor = ConformalLabelSets(measure, **limits).calibrate(probabilities[one], labels[one])
        calibration, counted = predictor.calibration_, other[:_COUNTED]
        thresholds = np.full(len(counted), calibration.threshold(level))
        engine = engine_for(calibration, probabilities[counted], work_limit=_WORK_LIMIT)
        counts.append(found_within_work(engine, thresholds))
    sizes, complete = (np.concatenate(part) for part in zip(*counts, strict=True))
    return float(sizes.mean()), float(complete.mean())
