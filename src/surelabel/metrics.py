"""Metrics of the paper's section 6.2: of forced predictions, of prediction sets, and whether the guarantee holds."""

from surelabel.evaluation.metrics import (
    ClassificationMetrics,
    PValueSums,
    SizeStatistics,
    classification_metrics,
    error_rates,
    of_criterion,
    p_value_sums,
    s_criterion,
    same_label_sets,
    size_curve,
    size_statistics,
)

__all__ = [
    "ClassificationMetrics",
    "PValueSums",
    "SizeStatistics",
    "classification_metrics",
    "error_rates",
    "of_criterion",
    "p_value_sums",
    "s_criterion",
    "same_label_sets",
    "size_curve",
    "size_statistics",
]
