"""Measures by the names that commands, tables and reports have for them."""

from __future__ import annotations

from collections.abc import Mapping

from surelabel.exceptions import InvalidInputError
from surelabel.measures.base import Measure, SeparableMeasure
from surelabel.measures.log_loss import LogLoss
from surelabel.measures.norms import LpNorm

MEASURES: Mapping[str, SeparableMeasure] = {"L2": LpNorm(2), "L4": LpNorm(4), "L8": LpNorm(8), "LogLoss": LogLoss()}


def measure_named(name: str) -> SeparableMeasure:
    """Return the measure of a name: LogLoss, or L and a number from 1 on, or Linf."""
    for own, measure in MEASURES.items():
        if name.lower() == own.lower():
            return measure
    try:
        if name[:1] in {"L", "l"}:
            return LpNorm(float(name[1:]))
    except ValueError:
        pass
    raise InvalidInputError(
        f"A measure must be one of {', '.join(MEASURES)}, or L and a number >= 1. Got {name!r} instead."
    )


def measure_name(measure: Measure) -> str:
    """Return the name of a measure for people."""
    if type(measure) is LpNorm:
        return f"L{measure.p:g}"
    if type(measure) is LogLoss:
        return "LogLoss" if measure == LogLoss() else repr(measure)
    return f"Penalised({measure_name(measure.measure)})" if hasattr(measure, "measure") else type(measure).__name__
