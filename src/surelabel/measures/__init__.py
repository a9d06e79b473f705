"""Nonconformity measures: how badly a label-set fits a text's probabilities."""

from surelabel.measures.base import SeparableMeasure
from surelabel.measures.mixture import Mixture
from surelabel.measures.separable import LogLoss, LpNorm, measure_from_name, measure_name

__all__ = ["LogLoss", "LpNorm", "Mixture", "SeparableMeasure", "measure_from_name", "measure_name"]
