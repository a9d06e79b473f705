"""Three searches, one answer: the reference's, to the last bit, whatever the input."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cases
import reference
from surelabel import ConformalLabelSets, LogLoss, LpNorm
from surelabel.metrics import of_criterion, s_criterion

ALL_MEASURES = cases.MEASURES + cases.WEIGHTED


def _check_sets(problem, measure, search):
    """One search against the reference: sizes, members, order, p-values and what follows from them."""
    predictor = problem.predictor(measure, search)
    sets = problem.predict_set(predictor)
    totals = problem.totals(measure)
    d = problem.n_labels
    every = reference.candidates(d, 0, d)
    expected_sizes = []
    for i, one in enumerate(sets):
        costs = cases.costs_of(measure, problem.test[i])
        expected = reference.prediction_set(costs, problem.limits, totals, problem.level, measure.aggregate)
        members = [row for row, _ in expected]
        named = [(cases.as_set(row), float(p)) for row, p in expected]
        expected_sizes.append(len(members))
        assert one.size == len(members)
        assert one.size_bounds == (len(members), len(members))
        assert bool(one) == bool(members)
        assert one.top(10**6) == named
        assert one.top(2) == named[:2]
        assert [s for s in one] == [s for s, _ in named]  # noqa: C416 (list() would ask for the length first)
        assert one.to_array().tolist() == [[bool(x) for x in row] for row in members]
        assert [row for row in every if cases.as_set(row) in one] == sorted(members)
        assert one.certain == reference.certain(members, d)
        assert one.possible == reference.possible(members, d)
        assert one.excluded == reference.excluded(members, d)
        assert one.inclusion().tolist() == reference.inclusion(members, d)
    assert sets.sizes().tolist() == expected_sizes
    assert sets.top(10**6) == [one.top(10**6) for one in sets]
    assert sets.top(2) == [one.top(2) for one in sets]
    assert sets.top(0) == [[]] * len(sets)
    contains = [cases.as_set(labels) in one for labels, one in zip(problem.test_labels, sets, strict=True)]
    assert sets.contains(problem.test_labels).tolist() == contains


@pytest.mark.parametrize("measure", ALL_MEASURES, ids=repr)
@settings(max_examples=cases.examples(60))
@given(problem=cases.problems())
def test_every_search_gives_the_reference_prediction_set(measure, problem):
    for search in cases.SEARCH_NAMES:
        _check_sets(problem, measure, search)


@pytest.mark.parametrize("measure", ALL_MEASURES, ids=repr)
@settings(max_examples=cases.examples(60))
@given(problem=cases.problems())
def test_forced_predictions_and_p_values_are_the_reference_ones(measure, problem):
    predictor = problem.predictor(measure)
    forced = predictor.predict(problem.test)
    given_p = predictor.predict_p(problem.test, problem.test_labels)
    totals = problem.totals(measure)
    for i, row in enumerate(problem.test):
        costs = cases.costs_of(measure, row)
        labels, confidence, credibility = reference.forced(costs, problem.limits, totals, measure.aggregate)
        assert tuple(forced.labels[i].astype(int)) == labels
        assert forced.confidence[i] == confidence
        assert forced.credibility[i] == credibility
        score = reference.total(costs, problem.test_labels[i], measure.aggregate)
        assert given_p[i] == float(reference.p_value(score, totals))


@pytest.mark.parametrize("measure", ALL_MEASURES, ids=repr)
@settings(max_examples=cases.examples(40))
@given(problem=cases.problems())
def test_s_and_of_are_the_reference_sums(measure, problem):
    predictor = problem.predictor(measure)
    s = s_criterion(predictor, problem.test)
    of = of_criterion(predictor, problem.test, problem.test_labels)
    totals = problem.totals(measure)
    floor = Fraction(len(reference.candidates(problem.n_labels, *problem.limits)), len(totals) + 1)
    assert s.floor == float(floor)
    sums, rests = [], []
    for i, row in enumerate(problem.test):
        costs = cases.costs_of(measure, row)
        sums.append(reference.p_value_sum(costs, problem.limits, totals, measure.aggregate))
        rests.append(
            reference.p_value_sum_without(costs, problem.limits, totals, problem.test_labels[i], measure.aggregate)
        )
    assert s.excess_lower.tolist() == s.excess_upper.tolist() == [float(total - floor) for total in sums]
    assert s.mean == pytest.approx([float(sum(sums) / len(sums))] * 2, rel=1e-12)
    assert of.mean == pytest.approx([float(sum(rests) / len(rests))] * 2, rel=1e-12, abs=1e-12)
    assert of.floor >= 0 or math.isclose(of.floor, 0, abs_tol=1e-12)
    assert (of.excess_lower >= 0).all()


@pytest.mark.parametrize("measure", ALL_MEASURES, ids=repr)
@settings(max_examples=cases.examples(40))
@given(problem=cases.problems(max_labels=5), seed=st.integers(0, 2**32 - 1))
def test_smoothed_p_values_and_sets_are_the_reference_ones(measure, problem, seed):
    tie_breaks = np.random.default_rng(seed).random(len(problem.test))
    totals = problem.totals(measure)
    smoothed = problem.predictor(measure).predict_p(
        problem.test, problem.test_labels, smoothing=np.random.default_rng(seed)
    )
    for search in cases.SEARCH_NAMES:
        sets = problem.predict_set(problem.predictor(measure, search), smoothing=np.random.default_rng(seed))
        for i, one in enumerate(sets):
            costs = cases.costs_of(measure, problem.test[i])
            expected = reference.smoothed_prediction_set(
                costs, problem.limits, totals, problem.level, tie_breaks[i], measure.aggregate
            )
            top = one.top(10**6)
            assert [s for s, _ in top] == [cases.as_set(row) for row, _ in expected]
            assert [p for _, p in top] == pytest.approx([float(p) for _, p in expected], rel=1e-12)
            assert one.size == len(expected)
            score = reference.total(costs, problem.test_labels[i], measure.aggregate)
            assert smoothed[i] == pytest.approx(float(reference.smoothed_p_value(score, totals, tie_breaks[i])))


@pytest.mark.parametrize("measure", cases.MEASURES, ids=repr)
@settings(max_examples=cases.examples(40))
@given(problem=cases.problems(), data=st.data())
def test_a_permutation_of_labels_permutes_the_answers_and_changes_nothing_else(measure, problem, data):
    order = np.array(data.draw(st.permutations(range(problem.n_labels))))
    back = {int(old): new for new, old in enumerate(order)}
    with cases.calibration_warnings_ignored():
        moved = ConformalLabelSets(measure, problem.min_labels, problem.max_labels).calibrate(
            problem.calibration[:, order], problem.calibration_labels[:, order]
        )
        moved_sets = moved.predict_set(problem.test[:, order], significance=problem.level)
    predictor = problem.predictor(measure)
    sets = problem.predict_set(predictor)
    assert moved_sets.sizes().tolist() == sets.sizes().tolist()
    for one, other in zip(sets, moved_sets, strict=True):
        as_moved = {(frozenset(back[k] for k in label_set), p) for label_set, p in one.top(10**6)}
        assert set(other.top(10**6)) == as_moved
        assert other.certain == {back[k] for k in one.certain}
        assert other.possible == {back[k] for k in one.possible}
        assert other.inclusion().tolist() == one.inclusion()[order].tolist()
    forced, moved_forced = predictor.predict(problem.test), moved.predict(problem.test[:, order])
    assert moved_forced.confidence.tolist() == forced.confidence.tolist()
    assert moved_forced.credibility.tolist() == forced.credibility.tolist()
    s, moved_s = s_criterion(predictor, problem.test), s_criterion(moved, problem.test[:, order])
    assert moved_s.excess_lower.tolist() == s.excess_lower.tolist()


@pytest.mark.parametrize("search", cases.SEARCH_NAMES)
def test_equal_sums_in_another_order_are_ties(search):
    # 0.1 + 0.2 + 0.3 is 0.6000000000000001 or 0.6 by order of addition; correctly rounded totals know one answer.
    assert 0.1 + 0.2 + 0.3 != 0.3 + 0.2 + 0.1
    predictor = ConformalLabelSets(LpNorm(1), min_labels=0, search=search)
    predictor = predictor.calibrate([[0.1, 0.2, 0.3]] * 3, [[0, 0, 0]] * 3)
    for row in ([0.3, 0.2, 0.1], [0.2, 0.3, 0.1], [0.1, 0.2, 0.3]):
        assert predictor.predict_p([row], [[0, 0, 0]]).tolist() == [1.0]
        assert predictor.predict_set([row], significance=0.5)[0].top(9) == [(frozenset(), 1.0)]


@pytest.mark.parametrize("search", cases.SEARCH_NAMES)
def test_hand_computed_answers_for_two_labels(search):
    # L1 totals of (3/4, 1/4): {} 1, {0} 1/2, {1} 3/2, {0, 1} 1. Calibration totals 1/4, 3/4, 1, 5/4.
    predictor = ConformalLabelSets(LpNorm(1), min_labels=0, search=search).calibrate(
        [[1.0, 0.25], [0.5, 0.5], [0.25, 0.0], [0.0, 0.25]], [[1, 0]] * 4
    )
    assert predictor.calibration_.totals.tolist() == [0.25, 0.75, 1.0, 1.25]
    one = predictor.predict_set([[0.75, 0.25]], significance=0.3)[0]
    assert one.top(9) == [(frozenset({0}), 0.8), (frozenset(), 0.6), (frozenset({0, 1}), 0.6)]
    assert one.size == 3
    assert (one.certain, one.possible, one.excluded) == (set(), {0, 1}, set())
    assert one.inclusion().tolist() == [2 / 3, 1 / 3]
    assert predictor.predict_set([[0.75, 0.25]], significance=0.6)[0].top(9) == [(frozenset({0}), 0.8)]
    forced = predictor.predict([[0.75, 0.25]])
    assert forced.label_sets == [frozenset({0})]
    assert (forced.confidence.tolist(), forced.credibility.tolist()) == ([0.4], [0.8])
    assert predictor.predict_p([[0.75, 0.25]] * 4, [[0, 0], [1, 0], [0, 1], [1, 1]]).tolist() == [0.6, 0.8, 0.2, 0.6]
    # S = 0.8 + 0.6 + 0.6 + 0.2 = 2.2, of which 4 / 5 is floor; OF for the true label-set {0} is 1.4.
    s = s_criterion(predictor, [[0.75, 0.25]])
    assert (s.floor, s.excess) == (0.8, (1.4, 1.4))
    of = of_criterion(predictor, [[0.75, 0.25]], [[1, 0]])
    assert of.mean == pytest.approx((1.4, 1.4))
    assert of.floor == pytest.approx(0.6)


@pytest.mark.parametrize("measure", [LpNorm(2), LogLoss()], ids=repr)
def test_one_candidate_only_gives_confidence_one(measure):
    predictor = ConformalLabelSets(measure, min_labels=2, max_labels=2)
    predictor = predictor.calibrate([[0.9, 0.8], [0.6, 0.9]], [[1, 1], [1, 1]])
    forced = predictor.predict([[0.7, 0.7]])
    assert forced.labels.tolist() == [[True, True]]
    assert forced.confidence.tolist() == [1.0]
