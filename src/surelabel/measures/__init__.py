"""Nonconformity measures: how strange a label-set is, given a text's probabilities (paper section 5.3)."""

from surelabel.measures.base import (
    InteractionMeasure,
    Measure,
    SeparableMeasure,
    check_measure,
    costs_of,
    is_number,
    measure_from_spec,
    measure_to_spec,
    probe_costs,
    same_measure,
    totals_by_costs,
)
from surelabel.measures.separable import MEASURES, LogLoss, LpNorm, measure_name, measure_named

__all__ = [
    "MEASURES",
    "InteractionMeasure",
    "LogLoss",
    "LpNorm",
    "Measure",
    "SeparableMeasure",
    "check_measure",
    "costs_of",
    "is_number",
    "measure_from_spec",
    "measure_name",
    "measure_named",
    "measure_to_spec",
    "probe_costs",
    "same_measure",
    "totals_by_costs",
]
