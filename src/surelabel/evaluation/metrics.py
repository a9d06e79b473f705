"""Metrics of the paper's section 6.2 for predicted label-sets and for sizes of prediction sets."""

from __future__ import annotations

import dataclasses
import sys
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from surelabel._core.validation import BoolArray, FloatArray, are_collections, as_fraction
from surelabel.exceptions import CalibrationWarning, InvalidInputError

MAIN_LEVEL = "0.05"
STANDARD_LEVELS = ("0.01", "0.05", "0.1", "0.2")
# Levels of whole curves.
CURVE_LEVELS = tuple(f"0.{i:03d}" for i in range(1, 10)) + tuple(f"0.{i:02d}" for i in range(1, 100))
QUANTILES = (0.05, 0.25, 0.75, 0.95, 0.99)


@dataclasses.dataclass(frozen=True)
class ClassificationMetrics:
    """The quality of predicted label-sets, one per text.

    Attributes
    ----------
    accuracy : float
        Share of texts whose label-set is predicted exactly.
    f1_micro, f1_macro : float
        Over all (text, label) pairs; and the mean over labels, 0 for a label that is neither true nor predicted.
    hamming_loss : float
        Share of (text, label) pairs that are wrong.
    """

    accuracy: float
    f1_micro: float
    f1_macro: float
    hamming_loss: float


def label_matrices(labels: Any, predicted: Any, label_names: Sequence[Any] | None = None) -> tuple[Any, Any]:
    """Return true and predicted label-sets as 0/1 matrices (n, m) with the same columns.

    Both are (n, d) arrays, or both one collection of labels per text. Labels outside `label_names` get columns after
    those.
    """
    if are_collections(labels):
        from sklearn.preprocessing import MultiLabelBinarizer  # noqa: PLC0415 (slow to import)

        rows = [set(row) for row in (*labels, *predicted)]
        names = list(label_names or ())
        names += sorted(set().union(*rows) - set(names), key=str)
        every = MultiLabelBinarizer(classes=names, sparse_output=True).fit_transform(rows)
        true, given = (sparse.csr_array(part, dtype=np.int64) for part in (every[: len(labels)], every[len(labels) :]))
    else:
        true, given = _as_rows(labels, "labels"), _as_rows(predicted, "predicted")
    if true.shape != given.shape:
        raise InvalidInputError(
            "The 'labels' and 'predicted' must be for the same texts and labels. Got "
            f"{true.shape[0]} texts with {true.shape[1]} labels, and {given.shape[0]} with {given.shape[1]} labels."
        )
    return true, given


def _as_rows(labels: Any, parameter: str) -> sparse.csr_array:
    """Return 0/1 rows as a sparse matrix."""
    given: Any = labels if sparse.issparse(labels) else np.atleast_2d(np.asarray(labels))
    rows = sparse.csr_array(given)
    if not np.isin(rows.data, (0, 1)).all():
        raise InvalidInputError(f"The '{parameter}' must be 0 or 1, or collections of label names. Got other values.")
    rows = rows.astype(np.int64)
    rows.eliminate_zeros()
    return rows


def classification_metrics(
    labels: Any, predicted: Any, *, label_names: Sequence[Any] | None = None
) -> ClassificationMetrics:
    """Compare predicted label-sets with the true ones.

    Parameters
    ----------
    labels, predicted : (n, d) 0/1 array-like or sparse matrix, or one collection of labels per text
    label_names : sequence, optional
        All labels that count for macro-F1 and the Hamming loss, where label-sets are collections.

    Examples
    --------
    >>> classification_metrics([[1, 0], [1, 1]], [[1, 0], [0, 1]])
    ClassificationMetrics(accuracy=0.5, f1_micro=0.8, f1_macro=0.833..., hamming_loss=0.25)
    """
    true, given = label_matrices(labels, predicted, label_names)
    n_texts, n_labels = true.shape
    if n_texts == 0:
        raise InvalidInputError("There must be one text or more to compare label-sets. Got none.")
    both = np.asarray(true.multiply(given).sum(axis=0)).reshape(-1)
    either = np.asarray(true.sum(axis=0) + given.sum(axis=0)).reshape(-1)
    by_label = np.divide(2.0 * both, either, out=np.zeros(n_labels), where=either > 0)
    n_wrong = np.asarray(abs(true - given).sum(axis=1)).reshape(-1)
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
    largest : float
    empty, single : float
        Share of prediction sets with no label-set, and with exactly one.
    """

    mean_lower: float
    mean: float
    median: float
    quantiles: dict[float, float]
    largest: float
    empty: float
    single: float


def size_statistics(sizes: Any, lower: Any = None) -> SizeStatistics:
    """Summarise sizes of prediction sets, of any magnitude; with lower bounds where `sizes` are upper ones.

    Examples
    --------
    >>> summary = size_statistics([0, 1, 1, 6])
    >>> summary.mean, summary.median, summary.empty, summary.single
    (2.0, 1.0, 0.25, 0.5)
    """
    if len(sizes) == 0:
        raise InvalidInputError("The 'sizes' parameter of size_statistics must have at least one size. Got none.")
    values = _as_floats(sizes)
    quantiles = np.quantile(values, QUANTILES).tolist()
    mean = float(values.mean())
    return SizeStatistics(
        mean_lower=mean if lower is None else float(_as_floats(lower).mean()),
        mean=mean,
        median=float(np.median(values)),
        quantiles=dict(zip(QUANTILES, quantiles, strict=True)),
        largest=float(values.max()),
        empty=float(np.mean(values == 0)),
        single=float(np.mean(values == 1)),
    )


def _as_floats(sizes: Any) -> FloatArray:
    """Return sizes as numbers, at most the largest there is."""
    return np.array([float(min(size, sys.float_info.max)) for size in sizes])


def large_enough(levels: Iterable[str], n_calibration: int) -> list[str]:
    """Return the levels at which a calibration with so many texts can exclude a label-set."""
    return [level for level in levels if float(level) * (n_calibration + 1) > 1]


def error_rates(
    predictor: Any, probabilities: Any, labels: Any, levels: Iterable[Any], *, groups: Any = None
) -> FloatArray:
    """Return the share of texts whose true label-set is outside the prediction set, for each significance, (m,).

    `groups` has the group of each text if the predictor's taxonomy divides texts by groups.

    Examples
    --------
    >>> from surelabel import ConformalLabelSets
    >>> predictor = ConformalLabelSets().calibrate([[0.9, 0.2], [0.1, 0.8], [0.6, 0.7]], [[1, 0], [0, 1], [1, 1]])
    >>> error_rates(predictor, [[0.9, 0.1], [0.2, 0.4]], [[1, 0], [1, 0]], ["0.3", "0.6"])
    array([0.5, 0.5])
    """
    p_values = predictor.predict_p(probabilities, labels, groups=groups)
    return np.array([missed_at(p_values, level).mean() for level in levels])


def missed_at(p_values: FloatArray, level: Any) -> BoolArray:
    """Return which true label-sets, by their p-values (n,), are outside the prediction sets of a significance."""
    # P-values are whole numbers of 1 / (n + 1), rounded once.
    return p_values <= float(as_fraction(level, "level", "missed_at")) + 1e-12


def size_curve(
    predictor: Any, probabilities: Any, levels: Iterable[Any], *, groups: Any = None
) -> list[SizeStatistics]:
    """Return statistics of the sizes of prediction sets for each significance."""
    with warnings.catch_warnings(action="ignore", category=CalibrationWarning):
        found = [predictor.predict_set(probabilities, significance=level, groups=groups) for level in levels]
    bounds = [sets.size_bounds() for sets in found]
    return [size_statistics(upper, lower) for lower, upper in bounds]
