"""Certificates: how many of the surest texts can be filed, tested with exact binomial tails.

A text is filed if its best guess scores below a threshold. Texts are sorted by score, the surest first. For k = m, m +
1, ... the hypothesis "more than max_wrong of all texts below the k-th threshold are wrong" is rejected if W wrong
guesses among the k surest texts have a binomial tail P(Bin(k, max_wrong) <= W) of at most 1 - assurance. The last
threshold before the first failure is certified. This is fixed-sequence testing, so every test has the whole level: cut
the scores where the share of wrong guesses crosses max_wrong; which true hypothesis comes first is then fixed, and its
W is at least as large as a binomial count.

The first rank m is fixed beforehand. If it is small, one wrong guess among the surest ends the sequence at once. If it
is large, nothing is filed where only few texts can be. So two sequences start, at 10 % and at 40 % of the texts, each
with half of 1 - assurance; by the union bound the larger certificate holds.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from scipy.special import bdtr, betaincinv

from surelabel._core.validation import BoolArray, FloatArray

_FIRST_SHARES = (Fraction(1, 10), Fraction(2, 5))


def fewest_texts(max_wrong: Fraction, assurance: Fraction) -> int:
    """Return the smallest n with (1 - max_wrong)^n <= 1 - assurance: fewer texts certify nothing, all right or not."""
    n = max(1, math.ceil(math.log(1 - assurance) / math.log(1 - max_wrong)) - 1)
    while (1 - max_wrong) ** n > 1 - assurance:
        n += 1
    return n


def wrong_bound(n_wrong: int, n_texts: int, assurance: float = 0.95) -> float:
    """Return an upper bound, with `assurance`, of the share of wrong texts if `n_wrong` of `n_texts` were wrong."""
    return 1.0 if n_wrong >= n_texts else float(betaincinv(n_wrong + 1, n_texts - n_wrong, assurance))


def certified_threshold(scores: FloatArray, wrong: BoolArray, max_wrong: Fraction, assurance: Fraction) -> float:
    """Return the threshold below which texts can be filed: -inf if none can be, inf if all can be.

    scores (n,): low if the best guess is sure; wrong (n,): whether it is not the true label-set.
    """
    n_texts, order = len(scores), np.argsort(scores, kind="stable")
    # Filing the k surest texts needs the threshold thresholds[k], and those texts strictly below it.
    thresholds = np.append(scores[order], np.inf)
    n_wrong = np.append(0, np.cumsum(wrong[order]))
    firsts = _first_ranks(n_texts, max_wrong, assurance)
    level, certified = float((1 - assurance) / len(firsts)), -math.inf
    for first in firsts:
        ranks = np.arange(first, n_texts + 1)
        ranks = ranks[thresholds[ranks] > thresholds[ranks - 1]]
        failed = bdtr(n_wrong[ranks].astype(np.float64), ranks, float(max_wrong)) > level
        passed = ranks[: int(np.argmax(failed))] if failed.any() else ranks
        if len(passed):
            certified = max(certified, float(thresholds[passed[-1]]))
    return certified


def _first_ranks(n_texts: int, max_wrong: Fraction, assurance: Fraction) -> list[int]:
    """Return the ranks at which sequences of tests start: two, or one if there are few texts."""
    fewest = fewest_texts(max_wrong, 1 - (1 - assurance) / 2)
    firsts = sorted({max(fewest, math.ceil(share * n_texts)) for share in _FIRST_SHARES})
    return firsts if len(firsts) > 1 else [fewest_texts(max_wrong, assurance)]


def filing_summary(n_filed: int, wrong: BoolArray, max_wrong: Fraction, assurance: Fraction) -> str:
    """Describe in a sentence how many of the certification texts, `wrong` (n,) or right, can be filed."""
    n_texts, fewest = len(wrong), fewest_texts(max_wrong, assurance)
    promise = f"at most {100 * float(max_wrong):g} % of them wrong (assurance {100 * float(assurance):g} %"
    if n_filed:
        return (
            f"{100 * n_filed / n_texts:.0f} % of texts can be filed with {promise}, {n_texts:,} certification texts)."
        )
    if n_texts < fewest:
        reason = f"{n_texts:,} certification texts are too few: {fewest:,} are needed even if every best guess is right"
    else:
        of_texts = f"{100 * wrong.mean():.0f} % of the {n_texts:,} certification texts"
        reason = f"{of_texts} have a wrong best guess, and too many of the surest do"
    return f"Nothing can be filed with {promise}): {reason}."
