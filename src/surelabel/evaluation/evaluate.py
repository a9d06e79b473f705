"""Everything the paper measures, of one calibrated predictor on one set of texts: plain values, ready for JSON."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from surelabel.conformal import ConformalLabelSets
from surelabel.engines import engine_for
from surelabel.evaluation.criteria import of_criterion, p_value_sums
from surelabel.evaluation.metrics import (
    ClassificationMetrics,
    SizeStatistics,
    classification_metrics,
    error_rates,
    size_curve,
)
from surelabel.exceptions import ArtifactError
from surelabel.labels.sparse import is_sparse
from surelabel.measures import measure_to_spec

__all__ = ["CurvePoint", "Demand", "Evaluation", "SumCriterion", "default_levels", "evaluate"]


def default_levels() -> tuple[str, ...]:
    """Return the significance levels of curves: 0.01 to 0.99 in steps of 0.01, and 0.001 to 0.009."""
    return tuple(f"0.{i:03d}" for i in range(1, 10)) + tuple(f"0.{i:02d}" for i in range(1, 100))


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

    Attributes
    ----------
    significance : str
    mean_radius, median_radius : float
        The paper's t; None, as all of its ball, where it has none: labels interact, label-sets are constrained, or
        probabilities are sparse.
    ball_label_sets, powerset_label_sets, exact_label_sets : int
        Label-sets considered over all texts.
    prohibitive : float
        Share of texts with more label-sets in the ball than the paper's limit.
    exact_seconds : float
        Time of counting all prediction sets.
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
    """Results of one predictor on one set of texts."""

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
    s: SumCriterion
    of: SumCriterion
    demand: Demand

    def at(self, significance: str) -> CurvePoint:
        """Return the curve's point at a significance, written as in `default_levels`."""
        for point in self.curve:
            if float(point.significance) == float(significance):
                return point
        raise KeyError(f"There is no point at significance {significance} on this curve.")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Evaluation:
        """Return the inverse of `to_dict`."""
        try:
            fields = dict(values)
            for name, kind in (("underlying", ClassificationMetrics), ("forced", ClassificationMetrics)):
                fields[name] = kind(**fields[name])
            for name in ("s", "of"):
                fields[name] = SumCriterion(**fields[name])
            fields["demand"] = Demand(**fields["demand"])
            fields["curve"] = tuple(
                CurvePoint(point["significance"], point["error"], _sizes_from(point["sizes"]))
                for point in fields["curve"]
            )
            return cls(**fields)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ArtifactError(f"These are not the values of an evaluation: {error!r}.") from error


def _sizes_from(values: dict[str, Any]) -> SizeStatistics:
    """Return size statistics from JSON, whose keys are strings."""
    quantiles = {float(key): float(value) for key, value in values["quantiles"].items()}
    return SizeStatistics(**{**values, "quantiles": quantiles})


def _demand(predictor: ConformalLabelSets, probabilities: Any, significance: str) -> Demand:
    """Return what the searches have to do at one significance."""
    sets = predictor.predict_set(probabilities, significance=significance)
    start = time.perf_counter()
    upper = sets.size_bounds()[1]
    seconds = time.perf_counter() - start
    calibration = predictor.calibration_
    has_ball = calibration.is_separable and not is_sparse(probabilities)
    ball = engine_for(calibration, probabilities, "hamming-ball", n_jobs=predictor.n_jobs) if has_ball else None
    report = None if ball is None else ball.report(sets.thresholds)
    radius = None if report is None else report.radius
    return Demand(
        significance=significance,
        mean_radius=None if radius is None else float(radius.mean()),
        median_radius=None if radius is None else float(np.median(radius)),
        ball_label_sets=None if report is None else sum(report.considered),
        powerset_label_sets=predictor.calibration_.n_candidates * len(probabilities),
        exact_label_sets=sum(int(size) for size in upper),
        prohibitive=None if report is None else float(report.prohibitive.mean()),
        exact_seconds=seconds,
    )


def evaluate(
    predictor: ConformalLabelSets,
    probabilities: Any,
    labels: Any,
    *,
    levels: Sequence[str] | None = None,
    demand_at: str = "0.05",
) -> Evaluation:
    """Measure a calibrated predictor on texts with known labels.

    Parameters
    ----------
    predictor : ConformalLabelSets
    probabilities : (n, d) array-like or sparse
        Of sparse ones, no array of all texts and all labels is made.
    labels : (n, d) 0/1 array-like, sparse matrix, or collections of label names
    levels : sequence of str, optional
        Significance levels of the curve, those that the calibration is large enough for by default.
    demand_at : str
        Significance of the computational demand.
    """
    calibration = predictor._calibrated("evaluate")
    checked = calibration.as_probabilities(probabilities, who="evaluate")
    known = calibration.as_labels(labels, checked, who="evaluate")
    if levels is None:
        levels = [level for level in default_levels() if float(level) * (calibration.n_texts + 1) > 1]
    forced = predictor.predict(checked)
    errors = error_rates(predictor, checked, known, levels)
    sizes = size_curve(predictor, checked, levels)
    curve = tuple(CurvePoint(*point) for point in zip(levels, errors.tolist(), sizes, strict=True))
    sums = p_value_sums(predictor, checked)
    of = of_criterion(predictor, checked, known, sums=sums)
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
        true_p_value=float(predictor.predict_p(checked, known).mean()),
        curve=curve,
        s=SumCriterion(sums.floor, *sums.excess),
        of=SumCriterion(of.floor, *of.excess),
        demand=_demand(predictor, checked, demand_at),
    )
