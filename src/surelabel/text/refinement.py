"""Scores of linear classifiers, refined by the scores of a text's other labels: a curve, then `Refinement`.

It learns from training texts, each scored by a fit that has not seen it.
"""

from __future__ import annotations

import dataclasses
from typing import Self

from surelabel._core.validation import BoolArray, FloatArray
from surelabel.measures.refinement import Refinement
from surelabel.text.curve import ScoreCurve


@dataclasses.dataclass(frozen=True, eq=False)
class ScoreRefinement:
    """A curve from scores to log-odds, and their refinement."""

    curve: ScoreCurve
    refinement: Refinement

    @classmethod
    def fit(cls, scores: FloatArray, labels: BoolArray, shares: FloatArray, slope: float) -> Self:
        """Fit on scores (n, d) of texts that the fits have not seen; shares (d,) of training texts with each label."""
        curve = ScoreCurve.fit(scores, labels, shares, slope)
        return cls(curve, Refinement.fit(curve.logits(scores), labels))

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return refined scores (n, d), each text's computed alone."""
        return self.refinement(self.curve.logits(scores))
