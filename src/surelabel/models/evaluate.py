"""Measure a model on texts with labels that it has not seen."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from surelabel.models.bundle import Bundle


@dataclasses.dataclass(frozen=True)
class BundleEvaluation:
    """What a model does on texts that it has not seen; see `to_dict`.

    `result` (an `EvaluationResult`) has the figures of best guesses, prediction sets and labels over all texts;
    `errors` the share of all texts whose label-set is missed, by level; `errors_filed` and `errors_seen` the same for
    texts that are filed and texts that people see; `decisions` the shares of texts and what is wrong or missed.
    """

    corpus: str
    n_texts: int
    n_filed: int
    n_unknown: int
    left_out: Mapping[str, int]
    errors: Mapping[str, float]
    errors_filed: Mapping[str, float]
    errors_seen: Mapping[str, float]
    decisions: Mapping[str, Mapping[str, float | None]]
    result: Any

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: errors, decisions, underlying, forced, labels, ranks, ..."""
        raise NotImplementedError

    @classmethod
    def from_dict(cls, values: Any) -> BundleEvaluation:
        """Return the inverse of `to_dict`."""
        raise NotImplementedError


def evaluate_bundle(bundle: Bundle, corpus: Any) -> BundleEvaluation:
    """Measure a bundle on the texts of a corpus that it has not seen."""
    raise NotImplementedError
