"""Calibrate a model again, or with more texts, without training it again."""

from __future__ import annotations

from typing import Any

from surelabel.models.bundle import Bundle


def calibrate_bundle(bundle: Bundle, corpus: Any, add: bool = False, **changes: Any) -> Bundle:
    """Return the bundle with a new calibration, or calibrated with more texts.

    `changes` are levels and settings of `TrainingSettings` that replace the bundle's own: measure, max_wrong,
    max_missed, max_false, assurance, max_tags, significance, group, cardinality.
    """
    raise NotImplementedError
