"""S and OF where candidates cannot be listed: floor and excess apart, bounds that hold and tighten."""

import math

import numpy as np
import pytest

import cases
import reference
from surelabel import ConformalLabelSets, LogLoss, LpNorm
from surelabel.evaluation.criteria import PValueSums, of_criterion, p_value_sums, s_criterion


def _texts(seed, n_texts, n_labels):
    rng = np.random.default_rng(seed)
    probabilities = rng.beta(0.3, 2.0, (n_texts, n_labels))
    labels = rng.random((n_texts, n_labels)) < probabilities
    labels[np.arange(n_texts), rng.integers(0, n_labels, n_texts)] = True
    return probabilities, labels


def test_floor_and_excess_by_hand():
    # n = 1 with total 1/4; of {0} and {1} under L1, (3/4, 1/4): {0} costs 1/2, {1} 3/2. No candidate is within 1/4.
    predictor = ConformalLabelSets(LpNorm(1), max_labels=1).calibrate([[1.0, 0.25]], [[1, 0]])
    sums = p_value_sums(predictor, [[0.75, 0.25], [1.0, 0.0]])
    assert sums.floor == 2 / 2
    assert sums.excess_lower.tolist() == sums.excess_upper.tolist() == [0.0, 0.5]
    assert sums.excess == (0.25, 0.25)
    assert sums.mean == (1.25, 1.25)


def test_a_true_label_set_that_is_no_candidate_takes_nothing_from_of():
    predictor = ConformalLabelSets(LpNorm(1), max_labels=1).calibrate([[1.0, 0.25]], [[1, 0]])
    s = s_criterion(predictor, [[1.0, 0.0]])
    assert of_criterion(predictor, [[1.0, 0.0]], [[1, 1]]).mean == s.mean
    assert of_criterion(predictor, [[1.0, 0.0]], [[1, 0]]).mean == (0.5, 0.5)


@pytest.mark.parametrize("measure", [LpNorm(2), LpNorm(8), LogLoss()], ids=repr)
def test_bounds_by_tables_hold_the_sum_over_all_candidates(measure):
    # More candidates than are ranked one by one: 2^20 of them, counted here by meeting in the middle.
    probabilities, labels = _texts(1, 40, 20)
    labels[:3] = ~labels[:3]  # strange texts, so that nearly all candidates are within the largest total
    predictor = ConformalLabelSets(measure).calibrate(probabilities, labels)
    row = probabilities[5]
    absent, present = (np.array(part) for part in cases.costs_of(measure, row))
    halves = []
    for part in (slice(0, 10), slice(10, 20)):
        rows = np.array(reference.candidates(10, 0, 10), dtype=bool)
        halves.append(np.where(rows, present[part], absent[part]).sum(axis=1))
    totals = np.sort(np.add.outer(*halves).ravel())
    every = np.searchsorted(totals, predictor.calibration_.totals, side="right")
    empty = math.fsum(absent) <= predictor.calibration_.totals
    expected = float((every - empty).sum()) / 41
    sums = p_value_sums(predictor, row[None, :], n_cells=512)
    finer = p_value_sums(predictor, row[None, :], n_cells=16_384)
    assert sums.floor == (2**20 - 1) / 41
    assert sums.excess_lower[0] < sums.excess_upper[0]
    tolerance = 1e-6 * expected
    assert sums.excess_lower[0] - tolerance <= finer.excess_lower[0] <= expected + tolerance
    assert expected - tolerance <= finer.excess_upper[0] <= sums.excess_upper[0] + tolerance
    assert finer.excess_upper[0] - finer.excess_lower[0] < sums.excess_upper[0] - sums.excess_lower[0]
    assert finer.excess_upper[0] <= 1.05 * finer.excess_lower[0]


def test_ninety_labels_and_up_to_fifteen_in_a_label_set():
    probabilities, labels = _texts(2, 120, 90)
    probabilities = probabilities * 0.3
    with cases.calibration_warnings_ignored():
        predictor = ConformalLabelSets(LpNorm(2), max_labels=15).calibrate(probabilities, labels)
    s = s_criterion(predictor, probabilities[:4])
    of = of_criterion(predictor, probabilities[:4], labels[:4])
    candidates = sum(math.comb(90, c) for c in range(1, 16))
    assert s.floor == candidates / 121
    assert candidates > 10**16
    lower, upper = s.excess
    assert 0 < lower <= upper <= 1.1 * lower
    assert of.mean[0] <= s.mean[0]
    assert of.mean[1] <= s.mean[1]


@pytest.mark.parametrize("measure", [LpNorm(2), LpNorm(math.inf)], ids=repr)
def test_a_floor_too_large_for_a_float_is_infinite_and_the_excess_exact(measure):
    # 2^1100 candidates; of all of them, only a text's own label is within the calibration totals of 0.
    predictor = ConformalLabelSets(measure).calibrate(np.eye(5, 1100), np.eye(5, 1100))
    sums = p_value_sums(predictor, np.eye(1, 1100))
    assert sums.floor == math.inf
    assert sums.excess == (5 / 6, 5 / 6)
    assert sums.mean == (math.inf, math.inf)


def test_means_are_over_texts():
    sums = PValueSums(1.0, np.array([1.0, 3.0]), np.array([2.0, 4.0]))
    assert sums.excess == (2.0, 3.0)
    assert sums.mean == (3.0, 4.0)
