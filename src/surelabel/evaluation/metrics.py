"""Metrics of the paper's section 6.2: of forced predictions, of prediction sets, and whether the guarantee holds.

Curves over many significance levels come from one calibration: error rates from the ranks of the true label-sets,
which are computed once, and sizes from one count a level.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from surelabel._core.validation import BoolArray, FloatArray, as_labels, as_level
from surelabel.calibration import rank_of
from surelabel.conformal import ConformalLabelSets
from surelabel.engines.base import Engine
from surelabel.engines.bounds import TABLE_CELLS
from surelabel.engines.sizes import SizeArray
from surelabel.exceptions import InvalidInputError
from surelabel.labels.sparse import as_sparse_labels, is_sparse
from surelabel.taxonomies.engine import KindsEngine

QUANTILES = (0.05, 0.25, 0.75, 0.95, 0.99)


@dataclasses.dataclass(frozen=True)
class ClassificationMetrics:
    """How good predicted label-sets are, one per text.

    Attributes
    ----------
    accuracy : float
        Share of texts whose label-set is predicted exactly.
    f1_micro, f1_macro : float
        Over all (text, label) pairs; and the mean over labels, 0 for a label that is neither true nor predicted.
    hamming_loss : float
        Share of (text, label) pairs that are wrong.

    Examples
    --------
    >>> from surelabel import metrics
    >>> metrics.classification_metrics([[1, 0], [1, 1]], [[1, 0], [0, 1]]).hamming_loss
    0.25
    """

    accuracy: float
    f1_micro: float
    f1_macro: float
    hamming_loss: float


def classification_metrics(labels: Any, predicted: Any) -> ClassificationMetrics:
    """Compare predicted label-sets with the true ones, both (n, d); if both are sparse, nothing is made dense.

    Examples
    --------
    >>> classification_metrics([[1, 0], [1, 1]], [[1, 0], [0, 1]])
    ClassificationMetrics(accuracy=0.5, f1_micro=0.8, f1_macro=0.833..., hamming_loss=0.25)
    """
    who = "classification_metrics"
    if is_sparse(labels) and is_sparse(predicted):
        known = as_sparse_labels(labels, who=who, shape=labels.shape)
        return _compared(known, as_sparse_labels(predicted, who=who, shape=known.shape))
    true = as_labels(labels, who=who)
    given = as_labels(predicted, who=who, parameter="predicted", n_texts=len(true), n_labels=true.shape[1])
    return _compared(true, given)


def _n_wrong(one: Any, other: Any) -> Any:
    """Return in how many labels two label-sets per text differ, (n,); both bool arrays, or both bool CSR arrays."""
    return one.sum(axis=1) + other.sum(axis=1) - 2 * (one * other).sum(axis=1)


def same_label_sets(one: Any, other: Any) -> BoolArray:
    """Tell for each text, (n,), whether two label-sets are the same; both bool arrays, or both bool CSR arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from surelabel import metrics
    >>> true, guessed = np.array([[1, 0], [1, 1]], dtype=bool), np.array([[1, 0], [0, 1]], dtype=bool)
    >>> metrics.same_label_sets(true, guessed)
    array([ True, False])
    """
    return np.asarray(_n_wrong(one, other) == 0)


def _compared(true: Any, given: Any) -> ClassificationMetrics:
    """Compare label-sets (n, d): two bool arrays, or two bool CSR arrays, of which nothing dense is made."""
    n_texts, n_labels = true.shape
    both = (true * given).sum(axis=0)
    either = true.sum(axis=0) + given.sum(axis=0)
    by_label = np.divide(2.0 * both, either, out=np.zeros(n_labels), where=either > 0)
    n_wrong = _n_wrong(true, given)
    return ClassificationMetrics(
        accuracy=float((n_wrong == 0).mean()),
        f1_micro=float(2.0 * both.sum() / max(1, either.sum())),
        f1_macro=float(by_label.mean()),
        hamming_loss=float(n_wrong.sum() / (n_texts * n_labels)),
    )


@dataclasses.dataclass(frozen=True)
class SizeStatistics:
    """Sizes of prediction sets.

    Attributes
    ----------
    mean_lower, mean : float
        The paper's N criterion, as a lower and an upper bound; equal if all sizes are exact. The other values are of
        the upper bounds.
    median : float
    quantiles : dict of float to float
    largest : int
    empty, single : float
        Share of prediction sets with no label-set, and with exactly one.

    Examples
    --------
    >>> from surelabel import metrics
    >>> summary = metrics.size_statistics([0, 1, 1, 6])
    >>> summary.largest, summary.single
    (6.0, 0.5)
    """

    mean_lower: float
    mean: float
    median: float
    quantiles: dict[float, float]
    largest: float
    empty: float
    single: float


def size_statistics(
    sizes: SizeArray | FloatArray | Sequence[int], lower: SizeArray | FloatArray | Sequence[int] | None = None
) -> SizeStatistics:
    """Summarise sizes of prediction sets, of any magnitude; with lower bounds where `sizes` are upper ones.

    Examples
    --------
    >>> summary = size_statistics([0, 1, 1, 6])
    >>> summary.mean, summary.median, summary.empty, summary.single
    (2.0, 1.0, 0.25, 0.5)
    """
    if len(sizes) == 0:
        raise InvalidInputError("The 'sizes' parameter of size_statistics must have at least one size. Got none.")
    values = np.array(sizes, dtype=np.float64)
    quantiles = np.quantile(values, QUANTILES).tolist()
    mean = float(values.mean())
    return SizeStatistics(
        mean_lower=mean if lower is None else float(np.array(lower, dtype=np.float64).mean()),
        mean=mean,
        median=float(np.median(values)),
        quantiles=dict(zip(QUANTILES, quantiles, strict=True)),
        largest=float(values.max()),
        empty=float(np.mean(values == 0)),
        single=float(np.mean(values == 1)),
    )


def error_rates(
    predictor: ConformalLabelSets, probabilities: Any, labels: Any, levels: Iterable[Any], *, groups: Any = None
) -> FloatArray:
    """Return the share of texts whose true label-set is outside the prediction set, for each significance, (m,).

    `groups` has the group of each text if the predictor's taxonomy divides texts by groups.

    Examples
    --------
    >>> predictor = ConformalLabelSets().calibrate([[0.9, 0.2], [0.1, 0.8], [0.6, 0.7]], [[1, 0], [0, 1], [1, 1]])
    >>> error_rates(predictor, [[0.9, 0.1], [0.2, 0.4]], [[1, 0], [1, 0]], [0.3, 0.6])
    array([0.5, 0.5])
    """
    engine = predictor.bind(probabilities, groups=groups, who="error_rates")
    calibration, known = engine.calibration, engine.as_labels(labels, who="error_rates")
    if isinstance(engine, KindsEngine):
        asked = [as_level(level, None, who="error_rates") for level in levels]
        return engine.error_rates(known, asked)
    at_least = calibration.n_texts - np.searchsorted(calibration.totals, engine.totals(known), side="left")
    at_least = np.sort(np.where(engine.is_candidate(known), at_least, -1))
    ranks = [rank_of(calibration.n_texts, as_level(level, None, who="error_rates")) for level in levels]
    return np.searchsorted(at_least, ranks, side="left") / len(engine)


def size_curve(
    predictor: ConformalLabelSets,
    probabilities: Any,
    levels: Iterable[Any],
    *,
    n_cells: int = TABLE_CELLS,
    groups: Any = None,
) -> list[SizeStatistics]:
    """Return statistics of the sizes of prediction sets for each significance.

    A text's sizes are counted from the highest significance down; from where that takes too many steps on, one table
    bounds them all; more cells of it give tighter bounds.

    Examples
    --------
    >>> from surelabel import ConformalLabelSets, metrics
    >>> predictor = ConformalLabelSets().calibrate([[0.9, 0.2], [0.1, 0.8], [0.6, 0.7]], [[1, 0], [0, 1], [1, 1]])
    >>> [curve.mean for curve in metrics.size_curve(predictor, [[0.9, 0.1], [0.7, 0.4]], [0.25, 0.5, 0.75])]
    [1.0, 0.5, 0.5]
    """
    engine = predictor.bind(probabilities, groups=groups, who="size_curve")
    bounds = counts_at_levels(engine, [as_level(level, None, who="size_curve") for level in levels], n_cells)
    return [size_statistics(bounds[:, i, 1], bounds[:, i, 0]) for i in range(bounds.shape[1])]


def counts_at_levels(engine: Engine, levels: Sequence[Fraction], n_cells: int) -> FloatArray:
    """Bound the sizes of the prediction sets of some texts at each of m significances, (n, m, 2)."""
    order = np.argsort([-float(level) for level in levels], kind="stable")
    bounds = np.empty((len(engine), len(levels), 2))
    falling = [levels[place] for place in order]
    if isinstance(engine, KindsEngine):
        bounds[:, order] = engine.counts_at_levels(falling, n_cells)
    else:
        thresholds = np.array([engine.calibration.threshold(level) for level in falling])
        bounds[:, order] = engine.counts_at(thresholds, n_cells)
    return bounds
