"""A predictor measured on texts with known labels: plain values, ready for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from surelabel.evaluation.metrics import STANDARD_LEVELS


def evaluate(
    predictor: Any,
    probabilities: Any,
    labels: Any,
    *,
    groups: Any = None,
    levels: Sequence[str] = STANDARD_LEVELS,
    criteria: bool = False,
) -> Any:
    """Measure a calibrated predictor on texts with known labels."""
    raise NotImplementedError
