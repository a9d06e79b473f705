"""Scores of best guesses, how well they rank texts, and the thresholds and batches that tests of them certify."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.special

from surelabel._core.threads import over_rows
from surelabel._core.validation import BoolArray, FloatArray
from surelabel._kernels import guesses
from surelabel.calibration import Calibration, fewest_assured
from surelabel.conformal import ConformalLabelSets
from surelabel.labels.sparse import SparseProbabilities
from surelabel.measures import costs_of

FIRST_SHARES = (Fraction(1, 10), Fraction(2, 5))
"""Shares of the texts, the surest, that the first threshold of each sequence leaves over it, if none is given."""


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
    """Return a bound, with `assurance`, of the share of wrong texts if `n_wrong` of `n_texts` were wrong."""
    if n_wrong >= n_texts:
        return 1.0
    return float(scipy.special.betaincinv(n_wrong + 1, n_texts - n_wrong, assurance))


def certified_threshold(
    scores: FloatArray, wrong: BoolArray, max_wrong: Fraction, assurance: Fraction, first_share: Fraction | None = None
) -> float:
    """Return the lowest threshold that fixed-sequence testing certifies: inf if none, -inf if all texts are filed."""
    n_texts = len(scores)
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    # Of a threshold `ranked[k]`, the k texts before it must all be over it; the last one lies below all texts.
    thresholds = np.append(ranked, -np.inf)
    n_wrong = np.concatenate([[0], np.cumsum(wrong[order])])
    firsts = _first_ranks(n_texts, max_wrong, assurance, first_share)
    lowest = math.inf
    for first in firsts:
        tried = np.arange(first, n_texts + 1)
        tried = tried[thresholds[tried] < thresholds[tried - 1]]
        tails = scipy.special.bdtr(n_wrong[tried].astype(np.float64), tried, float(max_wrong))
        failed = np.flatnonzero(tails > float((1 - assurance) / len(firsts)))
        n_passed = len(tried) if len(failed) == 0 else int(failed[0])
        if n_passed:
            lowest = min(lowest, float(thresholds[tried[n_passed - 1]]))
    return lowest


def _first_ranks(n_texts: int, max_wrong: Fraction, assurance: Fraction, first_share: Fraction | None) -> list[int]:
    """Return the ranks at which sequences of tests begin: one for a share, else two if there are enough texts."""
    least = fewest_assured(max_wrong, assurance)
    if first_share is not None:
        return [max(least, math.ceil(first_share * n_texts))]
    least_of_each = fewest_assured(max_wrong, 1 - (1 - assurance) / len(FIRST_SHARES))
    firsts = sorted({max(least_of_each, math.ceil(share * n_texts)) for share in FIRST_SHARES})
    return firsts if len(firsts) > 1 else [least]


def filing_words(n_filed: int, wrong: BoolArray, max_wrong: Fraction, assurance: Fraction) -> str:
    """Say in plain words what can be filed of certification texts, whose best guesses are `wrong` or not, (n,)."""
    n_texts, least = len(wrong), fewest_assured(max_wrong, assurance)
    promise = f"at most {100 * float(max_wrong):g} % of them wrong (assurance {100 * float(assurance):g} %"
    if n_filed:
        share = f"{100 * n_filed / n_texts:.0f}" if n_filed < n_texts else "100"
        return f"{share} % of texts can be filed with {promise}, {n_texts:,} certification texts)."
    if n_texts < least:
        reason = f"{n_texts:,} certification texts are too few: {least:,} are needed even if no best guess is wrong"
    else:
        of_texts = f"{100 * wrong.mean():.0f} % of the {n_texts:,} certification texts"
        reason = f"{of_texts} have a wrong best guess, and so have too many of the surest"
    return f"Nothing can be filed with {promise}): {reason}."


def benjamini_hochberg(p_values: FloatArray, level: float) -> BoolArray:
    """Tell which p-values, (n,), are rejected at a false discovery rate."""
    ranked = np.sort(p_values)
    passed = np.flatnonzero(ranked <= level * np.arange(1, len(ranked) + 1) / len(ranked))
    return p_values <= ranked[passed[-1]] if len(passed) else np.zeros(len(ranked), dtype=np.bool_)


def totals_and_margins(predictor: ConformalLabelSets, checked: Any) -> FloatArray:
    """Return the total of each text's best guess and what the second label-set adds to it, (n, 2)."""
    calibration: Calibration = predictor.calibration_
    measure = calibration.separable_measure if calibration.is_separable else None
    if measure is None or measure.aggregate == "max" or isinstance(checked, SparseProbabilities):
        _, totals = predictor.bind(checked).forced()
        return np.column_stack([totals[:, 0], totals[:, 1] - totals[:, 0]])
    results = np.empty((len(checked), 2))

    def guess(rows: slice) -> None:
        absent, present = costs_of(measure, checked[rows])
        guesses.guess_rows(absent, present, calibration.limits, results[rows])

    over_rows(guess, len(checked), predictor.n_jobs)
    return results
