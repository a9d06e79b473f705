"""What the scores of a text's other labels say about each label: a second step after one fit per label.

A fit per label does not see that "machine learning" makes "statistics" likelier. One small regression per label, on the
log-odds of all labels, does. It learns from training texts, each scored by a fit that has not seen it, so validation
texts stay fresh for every later choice.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Self

import numpy as np
import scipy.special

from surelabel._core import progress
from surelabel._core.validation import BoolArray, FloatArray
from surelabel.measures.odds import RefinedOdds
from surelabel.text.curves import ScoreCurve
from surelabel.text.separating import Candidate, fit_parts, parts_of

# Fewer training texts are not refined.
LEAST_TEXTS = 100
_FOLDS = 3
# With many labels the regressions learn from fewer texts: texts times squared labels stay below this.
_MOST_WORK = 4_000_000_000
_CLIP = 1e-6


def out_of_fold(features: Any, labels: Any, candidate: Candidate, seed: int) -> tuple[FloatArray, Any]:
    """Return scores (m, d) of training texts by fits that have not seen them, and which texts (m,) these are."""
    n_texts, n_labels = labels.shape
    rows = np.random.default_rng(seed).permutation(n_texts)
    folds = [rows[fold::_FOLDS] for fold in range(_FOLDS)]
    with progress.step("scoring training texts by fits that have not seen them", _FOLDS * n_labels) as advance:
        scores = fit_parts(parts_of(features, labels, folds), candidate, seed, advance)[1]
    return scores, np.concatenate(folds)


@dataclasses.dataclass(frozen=True, eq=False)
class Refinement:
    """A curve from scores to log-odds, and how those of all labels count for each."""

    curve: ScoreCurve
    odds: RefinedOdds

    @classmethod
    def fit(cls, scores: FloatArray, labels: BoolArray, shares: FloatArray, slope: float) -> Self:
        """Fit on scores (n, d) of texts that the fits have not seen; shares (d,) of training texts with each label."""
        most = max(LEAST_TEXTS, _MOST_WORK // scores.shape[1] ** 2)
        with progress.step("fitting what labels say about each other"):
            curve = ScoreCurve.fit(scores, labels, shares, slope)
            return cls(curve, RefinedOdds.of(curve(scores[:most]), labels[:most], clip=_CLIP, across=True))

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return refined scores (n, d), each text's computed alone."""
        return self.odds.refined(scipy.special.expit(self.curve.logits(scores)), _CLIP)
