"""What a calibrated predictor does on texts with known labels: plain values, ready for JSON.

Errors and sizes at the standard levels are what every reader needs, and take one count per text. The paper's sums S
and OF, the demand of its searches and sizes at every level of the curve are research: `criteria=False` leaves them out.
"""

from __future__ import annotations

import dataclasses
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from surelabel._core.levels import CURVE_LEVELS, MAIN_LEVEL, STANDARD_LEVELS
from surelabel._core.validation import IntArray
from surelabel.conformal import ConformalLabelSets
from surelabel.engines import engine_for
from surelabel.engines.bounds import TABLE_CELLS
from surelabel.evaluation.bands import Verdict, error_band, judge
from surelabel.evaluation.conditional import Conditional, TextDetails, conditional
from surelabel.evaluation.criteria import of_criterion, p_value_sums
from surelabel.evaluation.metrics import (
    ClassificationMetrics,
    SizeStatistics,
    classification_metrics,
    error_rates,
    size_statistics,
)
from surelabel.evaluation.plain import from_plain
from surelabel.evaluation.predicted import Predicted, from_main_level, large_enough
from surelabel.exceptions import ArtifactError, CalibrationWarning
from surelabel.labels.sparse import is_sparse
from surelabel.measures import measure_to_spec
from surelabel.taxonomies.engine import KindsEngine

# Texts whose sets are looked at for misses by size.
_MOST_LOOKED_AT = 2_000


@dataclasses.dataclass(frozen=True)
class CurvePoint:
    """One significance level: how often the true label-set was missed, and how large prediction sets were."""

    significance: str
    error: float
    sizes: SizeStatistics


@dataclasses.dataclass(frozen=True)
class SumCriterion:
    """S or OF: certified (lower, upper) of the mean, its floor and its excess over it."""

    floor: float
    excess_lower: float
    excess_upper: float

    @property
    def mean(self) -> tuple[float, float]:
        """The criterion itself, as (lower, upper)."""
        return self.floor + self.excess_lower, self.floor + self.excess_upper


@dataclasses.dataclass(frozen=True)
class Demand:
    """What the paper's searches would have to do at one significance, and what the exact one did.

    The radius is the paper's t; it and all figures of its ball are None if it has none: labels interact, label-sets are
    constrained, or probabilities are sparse. Label-sets considered are those of all texts; `prohibitive` is the share
    of texts with more of them in the ball than the paper's limit; `exact_seconds` is the time of counting.
    """

    significance: str
    mean_radius: float | None
    median_radius: float | None
    ball_label_sets: int | None
    powerset_label_sets: int
    exact_label_sets: int
    prohibitive: float | None
    exact_seconds: float


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Results of one predictor on one set of texts.

    `curve` has the levels at which sets were counted, of `n_sized` texts that are spread evenly; `errors` has the error
    rates, of all texts, at many more. `s`, `of` and `demand` are None unless they were asked for. `forced` is of
    the most plausible label-sets, the paper's rule; `guesses` of best guesses by another rule, if there is one.
    `conditional` has misses by kind of text and figures per label, None in files of older versions. `n_unknown` of the
    texts have labels that the predictor does not know: they count as errors, and all other figures are of the others.
    """

    measure: dict[str, Any]
    n_texts: int
    n_labels: int
    n_calibration: int
    min_labels: int
    max_labels: int
    n_candidates: int
    outside_candidates: int
    underlying: ClassificationMetrics
    forced: ClassificationMetrics
    confidence: float
    credibility: float
    true_p_value: float
    curve: tuple[CurvePoint, ...]
    s: SumCriterion | None = None
    of: SumCriterion | None = None
    demand: Demand | None = None
    n_sized: int | None = None
    errors: dict[str, float] = dataclasses.field(default_factory=dict)
    guesses: ClassificationMetrics | None = None
    conditional: Conditional | None = None
    n_unknown: int = 0

    @property
    def standard(self) -> tuple[CurvePoint, ...]:
        """The points at the standard levels that the calibration is large enough for."""
        levels = [float(level) for level in STANDARD_LEVELS]
        return tuple(point for point in self.curve if float(point.significance) in levels)

    def band(self, point: CurvePoint) -> tuple[float, float]:
        """Return the error rates that chance alone explains at a point."""
        return error_band(point.significance, self.n_texts, self.n_calibration)

    def verdict(self, point: CurvePoint) -> Verdict:
        """Judge the error rate at a point: "held", "chance" or "above"."""
        return judge(point.error, point.significance, self.n_texts, self.n_calibration)[2]

    @property
    def broken(self) -> tuple[CurvePoint, ...]:
        """The points at standard levels whose error rate is above what chance explains."""
        return tuple(point for point in self.standard if self.verdict(point) == "above")

    def with_unknown(self, n_unknown: int) -> Evaluation:
        """Return the evaluation of so many texts more that have labels which the predictor does not know."""
        n_texts = self.n_texts + n_unknown

        def error(rate: float) -> float:
            return (round(rate * self.n_texts) + n_unknown) / n_texts

        def right(metrics: ClassificationMetrics) -> ClassificationMetrics:
            return dataclasses.replace(metrics, accuracy=round(metrics.accuracy * self.n_texts) / n_texts)

        return dataclasses.replace(
            self,
            n_texts=n_texts,
            n_unknown=n_unknown,
            outside_candidates=self.outside_candidates + n_unknown,
            underlying=right(self.underlying),
            forced=right(self.forced),
            guesses=None if self.guesses is None else right(self.guesses),
            curve=tuple(dataclasses.replace(point, error=error(point.error)) for point in self.curve),
            errors={level: error(rate) for level, rate in self.errors.items()},
        )

    def at(self, significance: str) -> CurvePoint:
        """Return the curve's point at a significance."""
        for point in self.curve:
            if float(point.significance) == float(significance):
                return point
        raise KeyError(f"There is no point at significance {significance} on this curve.")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Any) -> Evaluation:
        """Return the inverse of `to_dict`; values of other types are refused."""
        try:
            made: Evaluation = from_plain(cls, values)
            for point in made.curve:
                float(point.significance)
            return dataclasses.replace(made, errors={str(float(level)): made.errors[level] for level in made.errors})
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ArtifactError(f"These are not the values of an evaluation: {error!r}.") from error


def _demand(predictor: ConformalLabelSets, probabilities: Any, significance: str) -> Demand:
    """Return what the searches have to do at one significance."""
    sets = predictor.predict_set(probabilities, significance=significance)
    start = time.perf_counter()
    upper = sets.size_bounds()[1]
    seconds = time.perf_counter() - start
    calibration = predictor.calibration_
    has_ball = calibration.is_separable and not is_sparse(probabilities)
    n_powerset, n_exact = calibration.n_candidates * len(probabilities), sum(int(size) for size in upper)
    if not has_ball:
        return Demand(significance, None, None, None, n_powerset, n_exact, None, seconds)
    report = engine_for(calibration, probabilities, "hamming-ball", n_jobs=predictor.n_jobs).report(sets.thresholds)
    assert report.radius is not None
    radius = float(report.radius.mean()), float(np.median(report.radius.astype(np.float64)))
    prohibitive = float(report.prohibitive.mean())
    return Demand(significance, *radius, sum(report.considered), n_powerset, n_exact, prohibitive, seconds)


def evaluate(
    predictor: ConformalLabelSets,
    probabilities: Any,
    labels: Any,
    *,
    levels: Sequence[str] | None = None,
    criteria: bool = True,
    demand_at: str = MAIN_LEVEL,
    best_guesses: Any = None,
    groups: Any = None,
    details: TextDetails | None = None,
    by_kind: bool = True,
) -> Evaluation:
    """Measure a calibrated predictor on texts with known labels.

    Parameters
    ----------
    predictor : ConformalLabelSets
    probabilities : (n, d) array-like or sparse, or Predicted
        Sparse ones are never made into an array of all texts and all labels.
    labels : (n, d) 0/1 array-like, sparse matrix, or collections of label names
    levels : sequence of str, optional
        Levels at which sets are counted: by default the standard ones, or with `criteria` those of whole curves,
        that the calibration is large enough for. Error rates are known at those of whole curves in any case.
    criteria : bool
        Compute the paper's S and OF, the demand of its searches and sizes along whole curves as well, which takes
        minutes on thousands of texts. False gives what a user of a model needs, in seconds.
    demand_at : str
        Significance of the demand.
    best_guesses : (n, d) bool array or CSR array, optional
        Label-sets that another rule than the highest p-value gives, to be measured as `guesses`.
    groups : (n,) array-like, optional
        The group of each text, if the predictor's taxonomy divides texts by groups. With a taxonomy there is no demand:
        the paper's searches have one threshold.
    details : TextDetails, optional
        Ids, dates and training texts of labels, for figures by kind of text.
    by_kind : bool
        Compute figures by kind of text and per label, as `conditional`.

    Examples
    --------
    >>> from surelabel.evaluation.evaluate import evaluate
    >>> rng = np.random.default_rng(0)
    >>> probabilities = rng.beta(0.3, 0.7, size=(400, 6))
    >>> labels = rng.random((400, 6)) < probabilities
    >>> predictor = ConformalLabelSets(min_labels=0).calibrate(probabilities[:199], labels[:199])
    >>> evaluation = evaluate(predictor, probabilities[199:], labels[199:], criteria=False)
    >>> [(point.significance, round(point.error, 2)) for point in evaluation.standard]
    [('0.01', 0.01), ('0.05', 0.04), ('0.1', 0.11), ('0.2', 0.2)]
    >>> evaluation.broken
    ()
    """
    calibration = predictor._calibrated("evaluate")
    predicted = Predicted.of(predictor, probabilities, groups, "evaluate")
    engine, forced = predicted.engine, predicted.forced
    checked, known = engine.probabilities, engine.as_labels(labels, who="evaluate")
    if levels is None:
        levels = large_enough(CURVE_LEVELS if criteria else STANDARD_LEVELS, calibration.n_texts)
    names = {str(float(level)): level for level in (*large_enough(CURVE_LEVELS, calibration.n_texts), *levels)}
    errors = dict(zip(names, error_rates(predictor, engine, known, names.values()).tolist(), strict=True))
    rows, sized = predicted.spread(len(engine)) if criteria else predicted.sized()
    bounds = sized.count(levels, *([TABLE_CELLS] if criteria else []))
    sums = p_value_sums(predictor, engine) if criteria else None
    of = of_criterion(predictor, engine, known, sums=sums) if criteria else None
    return Evaluation(
        measure=measure_to_spec(calibration.measure),
        n_texts=len(checked),
        n_labels=calibration.n_labels,
        n_calibration=calibration.n_texts,
        min_labels=calibration.min_labels,
        max_labels=calibration.max_labels,
        n_candidates=calibration.n_candidates,
        outside_candidates=int((~calibration.is_candidate(known)).sum()),
        underlying=classification_metrics(known, checked.at_least(0.5) if is_sparse(checked) else checked >= 0.5),
        forced=classification_metrics(known, forced.labels),
        confidence=float(forced.confidence.mean()),
        credibility=float(forced.credibility.mean()),
        true_p_value=float(predictor.predict_p(engine, known).mean()),
        curve=tuple(
            CurvePoint(level, errors[str(float(level))], size_statistics(at[:, 1], at[:, 0]))
            for level, at in zip(levels, bounds, strict=True)
        ),
        s=None if sums is None else SumCriterion(sums.floor, *sums.excess),
        of=None if of is None else SumCriterion(of.floor, *of.excess),
        demand=None if not criteria or isinstance(engine, KindsEngine) else _demand(predictor, checked, demand_at),
        n_sized=len(sized),
        errors=errors,
        guesses=None if best_guesses is None else classification_metrics(known, best_guesses),
        conditional=_conditional(predicted, known, (rows, sized), details) if by_kind else None,
    )


def _conditional(
    predicted: Predicted, known: Any, counted: tuple[IntArray, Predicted], details: TextDetails | None
) -> Conditional:
    """Return figures by kind of text at the main level, or at the smallest that the calibration is large enough for."""
    level = from_main_level(predicted.predictor.calibration_.n_texts)[0]
    rows, sized = counted[1].spread(_MOST_LOOKED_AT)
    with warnings.catch_warnings(action="ignore", category=CalibrationWarning):
        return conditional(predicted, known, level, (counted[0][rows], sized.count([level])[0][:, 1]), details)
