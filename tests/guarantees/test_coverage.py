"""The theorem: true label-sets are missed with the probability that theory gives, from above and from below.

Each draw has its own n calibration texts and one test text, so that errors over draws are independent. With scores
that never tie, a draw is an error with probability floor(e (n + 1)) / (n + 1) exactly: counts are binomial. A count has
to lie within bounds that a right implementation passes with probability 1e-6 (seeds are fixed, so it does or does
not). Draws are made in one call: the test texts of all draws share a calibration only where that is what is tested.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats

from surelabel import ConformalLabelSets, LogLoss, LpNorm

LEVELS = (0.01, 0.05, 0.1, 0.2)
MEASURES = [LpNorm(1), LpNorm(2), LpNorm(4), LpNorm(8), LpNorm(math.inf), LogLoss()]
DOUBT = 1e-6


def _texts(rng, n_texts, n_labels, *, sharpness=1.0, shift=0.0):
    """Exchangeable texts: probabilities of a classifier, sharpened or blunted, and labels drawn from the true ones."""
    logits = rng.normal(-0.5 + shift, 1.5, (n_texts, n_labels))
    labels = rng.random((n_texts, n_labels)) < 1.0 / (1.0 + np.exp(-logits))
    noisy = sharpness * (logits - shift) + rng.normal(0.0, 0.3, (n_texts, n_labels))
    return 1.0 / (1.0 + np.exp(-noisy)), labels


def _errors(rng, measure, n_draws, n_calibration, *, n_labels=4, shift=0.0, round_to=None, sharpness=1.0):
    """Number of draws at each level whose test text's label-set is outside its prediction set."""
    errors = np.zeros(len(LEVELS), dtype=int)
    for _ in range(n_draws):
        probabilities, labels = _texts(rng, n_calibration + 1, n_labels, sharpness=sharpness)
        if shift:
            probabilities[-1:], labels[-1:] = _texts(rng, 1, n_labels, sharpness=sharpness, shift=shift)
        if round_to is not None:
            probabilities = np.round(probabilities * round_to) / round_to
        predictor = ConformalLabelSets(measure, min_labels=0, n_jobs=1).calibrate(probabilities[:-1], labels[:-1])
        for i, level in enumerate(LEVELS):
            sets = predictor.predict_set(probabilities[-1:], significance=level)
            errors[i] += not sets.contains(labels[-1:])[0]
    return errors


def _bounds(n_draws, probability):
    """Smallest and largest binomial count that is not beyond doubt."""
    distribution = scipy.stats.binom(n_draws, probability)
    return distribution.ppf(DOUBT), distribution.isf(DOUBT)


def _check(errors, n_draws, n_calibration, *, from_below=True):
    for count, level in zip(errors, LEVELS, strict=True):
        exact = Fraction(str(level)) * (n_calibration + 1)
        probability = math.floor(exact) / (n_calibration + 1)
        lowest, highest = _bounds(n_draws, probability)
        assert count <= highest, f"{count} errors of {n_draws} at {level}"
        if from_below:
            assert count >= lowest, f"{count} errors of {n_draws} at {level}"


@pytest.mark.parametrize("measure", [LpNorm(2), LogLoss()], ids=repr)
def test_error_rates_are_those_of_the_theorem(measure):
    errors = _errors(np.random.default_rng(1), measure, 1500, 199)
    _check(errors, 1500, 199)
    # The largest count is far from what a level twice as high, or half as high, would give.
    assert _bounds(1500, 0.2)[0] > _bounds(1500, 0.1)[1] > 150 > _bounds(1500, 0.1)[0] > _bounds(1500, 0.05)[0]


def test_the_test_can_fail_where_texts_are_not_exchangeable():
    errors = _errors(np.random.default_rng(2), LpNorm(2), 600, 199, shift=2.5)
    with pytest.raises(AssertionError, match="errors of 600"):
        _check(errors, 600, 199)
    assert errors[2] > 2 * 600 * 0.1


@pytest.mark.parametrize("sharpness", [-1.0, 0.0, 8.0], ids=["wrong way round", "noise", "far too sure"])
def test_the_guarantee_holds_whatever_the_classifier(sharpness):
    errors = _errors(np.random.default_rng(3), LpNorm(2), 600, 199, sharpness=sharpness)
    _check(errors, 600, 199)


def test_ties_only_make_errors_rarer():
    errors = _errors(np.random.default_rng(4), LpNorm(1), 600, 199, round_to=2)
    _check(errors, 600, 199, from_below=False)
    assert errors[3] < 0.2 * 600


def _smoothed(rng, measure, n_draws, n_calibration, *, round_to=None, shift=0.0):
    """Smoothed p-values of true label-sets, one a draw."""
    p_values = np.empty(n_draws)
    for i in range(n_draws):
        probabilities, labels = _texts(rng, n_calibration + 1, 4)
        if shift:
            probabilities[-1:], labels[-1:] = _texts(rng, 1, 4, shift=shift)
        if round_to is not None:
            probabilities = np.round(probabilities * round_to) / round_to
        predictor = ConformalLabelSets(measure, min_labels=0, n_jobs=1).calibrate(probabilities[:-1], labels[:-1])
        p_values[i] = predictor.predict_p(probabilities[-1:], labels[-1:], smoothing=rng)[0]
    return p_values


@pytest.mark.parametrize("round_to", [None, 4, 1], ids=["no ties", "many ties", "nearly all tied"])
def test_smoothed_p_values_of_true_label_sets_are_uniform(round_to):
    p_values = _smoothed(np.random.default_rng(5), LpNorm(2), 1500, 19, round_to=round_to)
    assert scipy.stats.kstest(p_values, "uniform").pvalue > 1e-4


def test_p_values_that_are_not_smoothed_are_not_uniform_under_ties():
    rng = np.random.default_rng(6)
    p_values = []
    for _ in range(500):
        probabilities, labels = _texts(rng, 20, 4)
        probabilities = np.round(probabilities)
        predictor = ConformalLabelSets(min_labels=0, n_jobs=1).calibrate(probabilities[:-1], labels[:-1])
        p_values.append(predictor.predict_p(probabilities[-1:], labels[-1:])[0])
    assert scipy.stats.kstest(p_values, "uniform").pvalue < 1e-12
    # They are valid: no level is missed more often than it says, beyond doubt.
    for level in (0.1, 0.2, 0.5):
        assert np.count_nonzero(np.array(p_values) <= level) <= _bounds(500, level)[1]


def test_smoothed_p_values_tell_a_shift():
    p_values = _smoothed(np.random.default_rng(7), LpNorm(2), 300, 19, shift=3.0)
    assert scipy.stats.kstest(p_values, "uniform").pvalue < 1e-6


def _split_coverage(rng, measure, n_splits, n_calibration, n_test):
    """Errors of n_test texts that share a calibration, for each of many random splits of one pool of texts."""
    probabilities, labels = _texts(rng, 3000, 4)
    errors = np.empty((n_splits, len(LEVELS)), dtype=int)
    for split in range(n_splits):
        order = rng.permutation(len(labels))
        calibration, test = order[:n_calibration], order[n_calibration : n_calibration + n_test]
        predictor = ConformalLabelSets(measure, min_labels=0, n_jobs=1)
        predictor.calibrate(probabilities[calibration], labels[calibration])
        for i, level in enumerate(LEVELS):
            sets = predictor.predict_set(probabilities[test], significance=level)
            errors[split, i] = np.count_nonzero(~sets.contains(labels[test]))
    return errors


def _check_splits(errors, n_calibration, n_test):
    """Errors of a split are beta-binomial: k misses' worth of rank among n + 1, then n_test texts at that rate."""
    for counts, level in zip(errors.T, LEVELS, strict=True):
        k = math.floor(Fraction(str(level)) * (n_calibration + 1))
        law = scipy.stats.betabinom(n_test, k, n_calibration + 1 - k)
        standard_error = law.std() / math.sqrt(len(counts))
        assert abs(counts.mean() - law.mean()) < 5 * standard_error
        assert counts.max() <= law.isf(1e-6 / len(counts))
        assert counts.min() >= law.ppf(1e-6 / len(counts))


def test_errors_over_random_splits_have_the_law_that_theory_gives():
    errors = _split_coverage(np.random.default_rng(8), LpNorm(2), 200, 199, 200)
    _check_splits(errors, 199, 200)


@pytest.mark.slow
@pytest.mark.parametrize("measure", MEASURES, ids=repr)
def test_error_rates_of_every_measure_over_many_draws(measure):
    errors = _errors(np.random.default_rng(11), measure, 40_000, 199, n_labels=6)
    _check(errors, 40_000, 199)


@pytest.mark.slow
@pytest.mark.parametrize("measure", MEASURES, ids=repr)
def test_error_rates_of_every_measure_over_many_splits(measure):
    _check_splits(_split_coverage(np.random.default_rng(12), measure, 1500, 499, 500), 499, 500)


@pytest.mark.slow
@pytest.mark.parametrize("measure", MEASURES, ids=repr)
def test_smoothed_p_values_of_every_measure_are_uniform(measure):
    for round_to in (None, 2):
        p_values = _smoothed(np.random.default_rng(13), measure, 8000, 29, round_to=round_to)
        assert scipy.stats.kstest(p_values, "uniform").pvalue > 1e-4
