"""Certificates: by hand, against the definition, and the promise over many draws."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from surelabel.guarantees.certify import certified_threshold, fewest_texts, filing_summary, wrong_bound

A_TENTH, SURE = Fraction(1, 10), Fraction(19, 20)


@pytest.mark.parametrize(("level", "n"), [("0.05", 59), ("0.1", 29), ("0.5", 5)])
def test_fewest_texts_by_hand(level, n):
    assert fewest_texts(Fraction(level), SURE) == n
    assert (1 - Fraction(level)) ** n <= Fraction(1, 20) < (1 - Fraction(level)) ** (n - 1)


def test_wrong_bound_by_hand():
    assert wrong_bound(0, 59) == pytest.approx(0.0495, abs=1e-3)
    assert wrong_bound(3, 3) == 1.0
    # The bound is the share at which so few wrong texts have a probability of 5 %.
    assert binom.cdf(4, 100, wrong_bound(4, 100)) == pytest.approx(0.05)


def test_few_texts_have_one_sequence_by_hand():
    scores = np.arange(30.0)
    none_wrong = np.zeros(30, dtype=bool)
    assert certified_threshold(scores[:28], none_wrong[:28], A_TENTH, SURE) == -math.inf
    assert certified_threshold(scores[:29], none_wrong[:29], A_TENTH, SURE) == math.inf
    last_wrong = np.arange(30) == 29
    assert certified_threshold(scores, last_wrong, A_TENTH, SURE) == 29.0


def by_definition(scores, wrong, max_wrong, assurance):
    """The threshold of fixed-sequence testing, one text set after the other."""
    n = len(scores)
    fewest = fewest_texts(max_wrong, 1 - (1 - assurance) / 2)
    firsts = {max(fewest, math.ceil(n * share)) for share in (Fraction(1, 10), Fraction(2, 5))}
    if len(firsts) == 1:
        firsts = {fewest_texts(max_wrong, assurance)}
    best = -math.inf
    ranked = [*sorted(scores.tolist()), math.inf]
    for first in firsts:
        for k in range(first, n + 1):
            if ranked[k] == ranked[k - 1]:
                continue
            inside = scores < ranked[k]
            assert inside.sum() == k
            if binom.cdf(wrong[inside].sum(), k, float(max_wrong)) > float((1 - assurance) / len(firsts)):
                break
            best = max(best, ranked[k])
    return best


@given(st.integers(0, 10_000), st.integers(1, 300), st.booleans(), st.integers(2, 60), st.integers(50, 99))
def test_thresholds_are_those_of_the_definition(seed, n, ties, percent, assurance):
    rng = np.random.default_rng(seed)
    scores = rng.exponential(size=n)
    scores = np.round(scores, 1) if ties else scores
    wrong = rng.random(n) < np.clip(scores * rng.random() * 0.3, 0, 1)
    levels = Fraction(percent, 100), Fraction(assurance, 100)
    assert certified_threshold(scores, wrong, *levels) == by_definition(scores, wrong, *levels)


def test_a_wrong_guess_among_the_surest_does_not_end_the_second_sequence():
    scores, wrong = np.arange(1000.0), np.zeros(1000, dtype=bool)
    wrong[:12] = True
    # At 10 %, 12 of 100 are too many; at 40 %, 12 of 400 are not.
    assert certified_threshold(scores, wrong, A_TENTH, SURE) == math.inf


def test_infinite_scores_are_filed_only_with_everything():
    scores = np.append(np.zeros(100), np.full(20, np.inf))
    assert certified_threshold(scores, np.zeros(120, dtype=bool), A_TENTH, SURE) <= math.inf
    wrong = np.append(np.zeros(100, dtype=bool), np.ones(20, dtype=bool))
    assert not (np.inf < certified_threshold(scores, wrong, A_TENTH, SURE))


def test_summaries_name_the_reason():
    wrong = np.zeros(20, dtype=bool)
    assert "too few" in filing_summary(0, wrong, Fraction(1, 20), SURE)
    assert "59" in filing_summary(0, wrong, Fraction(1, 20), SURE)
    assert "surest" in filing_summary(0, np.ones(100, dtype=bool), Fraction(1, 20), SURE)
    assert filing_summary(50, np.zeros(100, dtype=bool), Fraction(1, 20), SURE).startswith("50 %")


def broken_share(n_draws, n_texts, seed):
    """How often the certified rule files more wrong texts than it may; the share of wrong texts at a score is known."""
    rng, broken = np.random.default_rng(seed), 0
    for _ in range(n_draws):
        scores = rng.random(n_texts)
        threshold = certified_threshold(scores, rng.random(n_texts) < scores * 0.4, A_TENTH, SURE)
        # Below t, t / 2 * 0.4 of the texts are wrong.
        broken += min(threshold, 1.0) * 0.2 > 0.1 and threshold > 0
    return broken, n_draws


def test_the_promise_is_broken_no_more_often_than_the_assurance_allows():
    broken, n_draws = broken_share(400, 300, 0)
    assert broken <= binom.ppf(0.999, n_draws, 0.05)


@pytest.mark.slow
def test_the_promise_over_many_draws():
    broken, n_draws = broken_share(10_000, 1000, 1)
    assert broken <= binom.ppf(0.999, n_draws, 0.05)
    assert broken > 0  # the assurance is used
