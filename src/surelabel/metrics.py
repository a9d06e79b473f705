"""Metrics of the paper's section 6.2: of forced predictions, of prediction sets, and whether the guarantee holds."""

from surelabel.evaluation.criteria import PValueSums, of_criterion, s_criterion
from surelabel.evaluation.label_table import LabelFigures, label_table, rank_figures
from surelabel.evaluation.metrics import (
    ClassificationMetrics,
    SizeStatistics,
    classification_metrics,
    error_rates,
    size_curve,
    size_statistics,
)

__all__ = [
    "ClassificationMetrics",
    "LabelFigures",
    "PValueSums",
    "SizeStatistics",
    "classification_metrics",
    "error_rates",
    "label_table",
    "of_criterion",
    "rank_figures",
    "s_criterion",
    "size_curve",
    "size_statistics",
]
