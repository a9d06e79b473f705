"""Certify a threshold of scores: fixed-sequence testing with exact binomial tails, and how well a score ranks texts."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import scipy.special

from surelabel._core.validation import BoolArray, FloatArray
from surelabel.calibration import fewest_assured

FIRST_SHARE = Fraction(1, 20)
"""Share of the texts, the surest, that the first threshold leaves over it."""


def ranking(scores: FloatArray, wrong: BoolArray, max_wrong: Fraction) -> tuple[int, float]:
    """Return how well a score ranks texts, larger is better: how many can be filed, and minus the mean risk."""
    filed = scores > certified_threshold(scores, wrong, max_wrong, Fraction(1, 2))
    risks = np.cumsum(wrong[np.argsort(-scores, kind="stable")]) / np.arange(1, len(scores) + 1)
    return int(filed.sum()), -float(risks.mean())


def share_within(scores: FloatArray, wrong: BoolArray, max_wrong: Fraction) -> Fraction:
    """Return the largest share of texts, the surest, of which at most `max_wrong` are wrong."""
    n_wrong = np.cumsum(wrong[np.argsort(-scores, kind="stable")])
    within = np.flatnonzero(n_wrong <= float(max_wrong) * np.arange(1, len(scores) + 1))
    return Fraction(int(within[-1]) + 1, len(scores)) if len(within) else Fraction(0)


def wrong_bound(n_wrong: int, n_texts: int, assurance: float = 0.95) -> float:
    """Return the share of wrong texts that is not exceeded with `assurance`, after so many wrong ones were seen."""
    if n_wrong >= n_texts:
        return 1.0
    return float(scipy.special.betaincinv(n_wrong + 1, n_texts - n_wrong, assurance))


def certified_threshold(
    scores: FloatArray, wrong: BoolArray, max_wrong: Fraction, assurance: Fraction, first_share: Fraction = FIRST_SHARE
) -> float:
    """Return the lowest threshold that fixed-sequence testing certifies: inf if none, -inf if all texts are filed."""
    n_texts = len(scores)
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    # Of a threshold `ranked[k]`, the k texts before it must all be over it; the last one lies below all texts.
    thresholds = np.append(ranked, -np.inf)
    first = max(fewest_assured(max_wrong, assurance), math.ceil(first_share * n_texts))
    tried = np.arange(first, n_texts + 1)
    tried = tried[thresholds[tried] < thresholds[tried - 1]]
    n_wrong = np.concatenate([[0], np.cumsum(wrong[order])])
    tails = scipy.special.bdtr(n_wrong[tried].astype(np.float64), tried, float(max_wrong))
    failed = np.flatnonzero(tails > float(1 - assurance))
    n_passed = len(tried) if len(failed) == 0 else int(failed[0])
    return float(thresholds[tried[n_passed - 1]]) if n_passed else math.inf
