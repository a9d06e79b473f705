"""Predictors of a model and their figures."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from surelabel._core.validation import FloatArray
from surelabel.conformal import ConformalLabelSets
from surelabel.evaluation.evaluate import Evaluation


@dataclasses.dataclass(frozen=True, eq=False)
class Figures:
    """Predictors by name of measure, the bundle's own first, and their evaluations if there are test texts.

    `forced_totals` are of the calibration texts' forced predictions, see `Bundle`.
    """

    predictors: Mapping[str, ConformalLabelSets]
    evaluations: Mapping[str, Evaluation] | None
    forced_totals: FloatArray | None = None

    @property
    def predictor(self) -> ConformalLabelSets:
        """The bundle's own predictor."""
        return next(iter(self.predictors.values()))
