"""A predictor measured on texts with known labels: plain values, ready for JSON.

True label-sets may have labels that the predictor does not know. They are errors at every level, and false negatives
of the best guess, in every figure here.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import functools
import math
import time
import types
import typing
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from surelabel._core.validation import are_collections
from surelabel.evaluation.bands import Verdict, with_verdict
from surelabel.evaluation.conditional import Conditional, TextInfo, subgroups, sure_but_wrong
from surelabel.evaluation.criteria import of_criterion, s_criterion
from surelabel.evaluation.label_table import LabelFigures, label_table, rank_figures
from surelabel.evaluation.metrics import (
    CURVE_LEVELS,
    MAIN_LEVEL,
    STANDARD_LEVELS,
    ClassificationMetrics,
    SizeStatistics,
    classification_metrics,
    large_enough,
    missed_at,
    size_curve,
)
from surelabel.exceptions import ArtifactError, CalibrationWarning
from surelabel.measures import SeparableMeasure
from surelabel.search.paper import PROHIBITIVE

# Texts whose prediction sets are counted: more do not change the figures, and with many labels each takes long.
_MOST_SIZED, _MOST_SIZED_OF_MANY, _MANY_LABELS = 2_000, 200, 200


@dataclasses.dataclass(frozen=True)
class CurvePoint:
    """One significance level: how often the true label-set was missed, and how large prediction sets were."""

    significance: str
    error: float
    sizes: SizeStatistics


@dataclasses.dataclass(frozen=True)
class SumCriterion:
    """The mean of S or OF: its floor, and certified bounds of its excess over it."""

    floor: float
    excess_lower: float
    excess_upper: float


@dataclasses.dataclass(frozen=True)
class Demand:
    """What the paper's searches have to do for the sets of all texts, and what the exact one does.

    The radius is the paper's t. `prohibitive` is the share of texts with more label-sets in the ball than the paper's
    machine could hold, `exact_seconds` the time of counting.
    """

    significance: str
    mean_radius: float
    median_radius: float
    ball_label_sets: float
    powerset_label_sets: float
    exact_label_sets: float
    prohibitive: float
    exact_seconds: float


@dataclasses.dataclass(frozen=True)
class EvaluationResult:
    """Results of one predictor on one set of texts.

    Attributes
    ----------
    measure : str
    n_texts, n_labels, n_calibration, min_labels, max_labels : int
    n_candidates : float
        Label-sets within these limits.
    n_outside, n_unknown : int
        Texts whose label-set is no candidate, and those of them with a label that the predictor does not know.
    underlying, forced : ClassificationMetrics
        Of probabilities of at least 0.5; and of the most plausible label-sets, the paper's rule.
    guesses : ClassificationMetrics or None
        Of best guesses by another rule.
    confidence, credibility, true_p_value : float
        Means over texts.
    curve : tuple of CurvePoint
        Errors of all texts, and sizes of the first 2,000 prediction sets (200 with more than 200 labels; all with
        `criteria`), at the levels that the calibration is large enough for.
    errors : mapping of level to error rate
        Of all texts, at the levels of whole curves.
    labels, ranks
        The table of labels, and the rank figures of Annif's `eval`.
    conditional : Conditional
    s, of : SumCriterion or None
    demand : Demand or None
        With `criteria`, and without classes of cardinality.
    """

    measure: str
    n_texts: int
    n_labels: int
    n_calibration: int
    min_labels: int
    max_labels: int
    n_candidates: float
    n_outside: int
    n_unknown: int
    underlying: ClassificationMetrics
    forced: ClassificationMetrics
    confidence: float
    credibility: float
    true_p_value: float
    curve: tuple[CurvePoint, ...]
    errors: dict[str, float]
    labels: tuple[LabelFigures, ...]
    ranks: dict[str, float]
    conditional: Conditional
    guesses: ClassificationMetrics | None = None
    s: SumCriterion | None = None
    of: SumCriterion | None = None
    demand: Demand | None = None

    @property
    def standard(self) -> tuple[CurvePoint, ...]:
        """The points at the standard levels."""
        levels = [float(level) for level in STANDARD_LEVELS]
        return tuple(point for point in self.curve if float(point.significance) in levels)

    def verdict(self, point: CurvePoint) -> tuple[float, float, Verdict]:
        """Return the error rates that chance explains at a point, and the verdict: "held", "chance" or "above"."""
        return with_verdict(point.error, point.significance, self.n_texts, self.n_calibration)

    @property
    def broken(self) -> tuple[CurvePoint, ...]:
        """The points at standard levels whose error rate is above what chance explains."""
        return tuple(point for point in self.standard if self.verdict(point)[2] == "above")

    def at(self, significance: Any) -> CurvePoint:
        """Return the curve's point at a significance."""
        for point in self.curve:
            if float(point.significance) == float(significance):
                return point
        raise KeyError(f"There is no point at significance {significance} on this curve.")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Any) -> EvaluationResult:
        """Return the inverse of `to_dict`; values of other types are an ArtifactError."""
        return as_dataclass(cls, values)  # type: ignore[no-any-return]


def as_dataclass(kind: Any, values: Any) -> Any:
    """Return a dataclass from plain values, as JSON has them; anything else is an ArtifactError."""
    try:
        return _from_plain(kind, values)
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise ArtifactError(f"These are not the values of {kind.__name__}: {error}.") from error


@functools.cache
def _type_hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _from_plain(kind: Any, value: Any) -> Any:
    """Return the inverse of `dataclasses.asdict` for a type; raise TypeError, ValueError or KeyError otherwise."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        make: Any = kind
        return make(**{name: _from_plain(_type_hints(make)[name], part) for name, part in value.items()})
    if origin is types.UnionType:
        return None if value is None else _from_plain(inner[0], value)
    if origin is tuple and isinstance(value, (list, tuple)):
        return tuple(_from_plain(inner[0], part) for part in value)
    if origin in (dict, collections.abc.Mapping) and isinstance(value, dict):
        return {inner[0](name): _from_plain(inner[1], part) for name, part in value.items()}
    if origin is typing.Literal and value not in inner:
        raise ValueError(f"{value!r:.60} is not one of {', '.join(map(repr, inner))}")
    allowed: Any = str if origin is typing.Literal else (int, float) if kind is float else origin or kind
    if kind is not Any and (isinstance(value, bool) is not (kind is bool) or not isinstance(value, allowed)):
        raise TypeError(f"{value!r:.60} is not of type {kind}")
    if isinstance(value, float) and math.isnan(value):
        raise ValueError("a number is missing")
    return value


def evaluate(
    predictor: Any,
    probabilities: Any,
    labels: Any,
    *,
    groups: Any = None,
    levels: Sequence[str] = STANDARD_LEVELS,
    criteria: bool = False,
    best_guesses: Any = None,
    info: TextInfo | None = None,
) -> EvaluationResult:
    """Measure a calibrated predictor on texts with known labels.

    Parameters
    ----------
    predictor : ConformalLabelSets
    probabilities : (n, d) array-like or Shortlists
    labels : (n, d) 0/1 array-like, or one collection of label names per text
    groups : (n,) array-like, optional
        The group of each text, if the predictor's taxonomy divides texts by groups.
    levels : sequence of str
        Levels at which sets are counted, those of them that the calibration is large enough for.
    criteria : bool
        Compute the paper's S and OF and the demand of its searches as well.
    best_guesses : (n, d) bool array or one collection of labels per text, optional
        Label-sets by another rule than the highest p-value, measured as `guesses` and in the table of labels.
    info : TextInfo, optional
        Ids, groups and training texts of labels, for misses by subgroup.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> probabilities = rng.beta(0.3, 0.7, size=(400, 6))
    >>> labels = rng.random((400, 6)) < probabilities
    >>> predictor = ConformalLabelSets(min_labels=0).calibrate(probabilities[:199], labels[:199])
    >>> evaluate(predictor, probabilities[199:], labels[199:]).broken
    ()
    """
    calibration = predictor.calibration_
    names = calibration.label_names or tuple(map(str, range(calibration.n_labels)))
    label_sets, n_calibration, info = as_label_sets(labels, names), calibration.n_texts, info or TextInfo()
    texts = predictor.texts(probabilities, groups, who="evaluate")
    forced, p_values = predictor.predict(texts), predictor.predict_p(texts, labels)
    forced_sets = as_label_sets(forced.labels, names)
    guesses = None if best_guesses is None else as_label_sets(best_guesses, names)

    def compare(predicted: Any) -> ClassificationMetrics:
        return classification_metrics(label_sets, predicted, label_names=names)

    def error(level: str) -> float:
        return float(missed_at(p_values, level).mean())

    levels = large_enough(levels, n_calibration)
    main = next((level for level in large_enough([MAIN_LEVEL, "0.1", "0.2"], n_calibration)), "0.2")
    most = _MOST_SIZED if calibration.n_labels <= _MANY_LABELS else _MOST_SIZED_OF_MANY
    sizes = size_curve(predictor, texts if criteria else texts[slice(most)], levels)
    single = ~missed_at(forced.credibility, main) & missed_at(1.0 - forced.confidence, main)
    n_wrong, shown = sure_but_wrong(forced_sets, forced.confidence, label_sets, single, info.ids)
    result = EvaluationResult(
        measure=repr(calibration.measure),
        n_texts=len(label_sets),
        n_labels=calibration.n_labels,
        n_calibration=n_calibration,
        min_labels=calibration.min_labels,
        max_labels=calibration.max_labels,
        n_candidates=_n_candidates(calibration),
        n_outside=int(np.count_nonzero(p_values == 0.0)),
        n_unknown=sum(not names_of <= set(names) for names_of in label_sets),
        underlying=compare(_at_least_half(probabilities, names)),
        forced=compare(forced_sets),
        guesses=None if guesses is None else compare(guesses),
        confidence=float(forced.confidence.mean()),
        credibility=float(forced.credibility.mean()),
        true_p_value=float(p_values.mean()),
        curve=tuple(CurvePoint(level, error(level), size) for level, size in zip(levels, sizes, strict=True)),
        errors={
            level: error(level) for level in sorted({*large_enough(CURVE_LEVELS, n_calibration), *levels}, key=float)
        },
        labels=label_table(label_sets, forced_sets if guesses is None else guesses, names),
        ranks=rank_figures(probabilities, label_sets, names),
        conditional=Conditional(
            significance=main,
            subgroups=subgroups(missed_at(p_values, main), label_sets, main, n_calibration, info),
            n_sure=int(single.sum()),
            n_sure_wrong=n_wrong,
            sure_but_wrong=shown,
        ),
    )
    return _with_criteria(result, predictor, texts, labels) if criteria else result


def _n_candidates(calibration: Any) -> float:
    """Return the number of label-sets within the limits on the number of labels."""
    sizes = range(calibration.min_labels, calibration.max_labels + 1)
    return float(min(sum(math.comb(calibration.n_labels, size) for size in sizes), 10**300))


def as_label_sets(labels: Any, names: Sequence[str]) -> list[frozenset[str]]:
    """Return label-sets as frozensets of names, from 0/1 rows, or from collections of names or indices."""
    if are_collections(labels):
        return [frozenset(k if isinstance(k, str) else names[int(k)] for k in row) for row in labels]
    rows = labels.tocsr() if hasattr(labels, "tocsr") else np.asarray(labels)
    return [frozenset(names[k] for k in rows[[row]].nonzero()[1].tolist()) for row in range(rows.shape[0])]


def _at_least_half(probabilities: Any, names: Sequence[str]) -> list[frozenset[str]]:
    """Return the labels with a probability of at least 0.5."""
    if not hasattr(probabilities, "n_labels"):
        return as_label_sets(np.asarray(probabilities) >= 0.5, names)
    rows = zip(probabilities.labels.tolist(), probabilities.probabilities.tolist(), strict=True)
    return [frozenset(names[k] for k, p in zip(*row, strict=True) if p >= 0.5 and k < len(names)) for row in rows]


def _with_criteria(result: EvaluationResult, predictor: Any, texts: Any, labels: Any) -> EvaluationResult:
    """Return the result with the paper's S and OF, and with what its searches have to do."""
    sums = s_criterion(predictor, texts)
    of = of_criterion(predictor, texts, labels, sums=sums)
    demand = None
    if not predictor.calibration_.edges and isinstance(predictor.calibration_.measure, SeparableMeasure):
        with warnings.catch_warnings(action="ignore", category=CalibrationWarning):
            sets = predictor.predict_set(texts, significance=MAIN_LEVEL)
        start = time.perf_counter()
        upper = sets.size_bounds()[1]
        seconds, found = time.perf_counter() - start, sets.demand()
        demand = Demand(
            significance=MAIN_LEVEL,
            mean_radius=float(np.mean(found.radii)),
            median_radius=float(np.median(found.radii)),
            ball_label_sets=float(sum(found.ball)),
            powerset_label_sets=float(sum(found.powerset)),
            exact_label_sets=float(sum(int(size) for size in upper)),
            prohibitive=float(np.mean([n > PROHIBITIVE for n in found.ball])),
            exact_seconds=seconds,
        )
    return dataclasses.replace(
        result,
        s=SumCriterion(float(sums.floor.mean()), *sums.excess),
        of=SumCriterion(float(of.floor.mean()), *of.excess),
        demand=demand,
    )
