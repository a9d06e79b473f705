"""The paper's Algorithm 2 and Algorithm 1 as searches: t, label-sets considered, and refusal in time."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cases
import reference
from surelabel import ConformalLabelSets, LpNorm
from surelabel.engines.paper import PROHIBITIVE, ball_size
from surelabel.exceptions import ProhibitiveSearchError, SearchLimitError

EIGHTHS = tuple(k / 8 for k in range(9))


def test_ball_sizes_of_the_paper():
    # Table "Computational demand": one label in z, d = 90 and l = 15.
    assert ball_size(90, 1, 0, (1, 15)) == 0
    assert ball_size(90, 1, 1, (1, 15)) == 1
    assert ball_size(90, 1, 2, (1, 15)) == 90
    assert ball_size(90, 1, 3, (1, 15)) == 90 + 89 * 88 // 2 + 89
    assert PROHIBITIVE == 56_000_000


@settings(max_examples=cases.examples(60))
@given(data=st.data())
def test_ball_size_is_the_number_of_label_sets_in_the_ball(data):
    d = data.draw(st.integers(1, 8))
    centre = data.draw(st.integers(0, d))
    radius = data.draw(st.integers(0, d + 1))
    lo = data.draw(st.integers(0, d))
    hi = data.draw(st.integers(lo, d))
    z = [1] * centre + [0] * (d - centre)
    inside = [
        row for row in reference.candidates(d, lo, hi) if sum(a != b for a, b in zip(row, z, strict=True)) < radius
    ]
    assert ball_size(d, centre, radius, (lo, hi)) == len(inside)


@settings(max_examples=cases.examples(80))
@given(data=st.data())
def test_report_is_what_the_papers_algorithm_says(data):
    # Eighths: distances to 0.5 and costs rank labels alike, without rounding.
    d = data.draw(st.integers(1, 6))
    values = st.lists(st.sampled_from(EIGHTHS), min_size=d, max_size=d)
    calibration = np.array(data.draw(st.lists(values, min_size=1, max_size=6)))
    labels = np.array([data.draw(st.lists(st.booleans(), min_size=d, max_size=d)) for _ in calibration])
    row = np.array(data.draw(values))
    measure = data.draw(st.sampled_from([LpNorm(1), LpNorm(2), LpNorm(4), LpNorm(math.inf)]))
    lo = data.draw(st.integers(0, d))
    with cases.calibration_warnings_ignored():
        predictor = ConformalLabelSets(measure, min_labels=lo, search="hamming-ball").calibrate(calibration, labels)
        sets = predictor.predict_set(row[None, :], significance=0.5)
    rank = (len(calibration) + 1) // 2
    threshold = predictor.calibration_.totals[len(calibration) - rank]
    t, ball = reference.hamming_ball(row.tolist(), cases.costs_of(measure, row), threshold, (lo, d), measure.aggregate)
    report = sets.search_report()
    assert report.radius.tolist() == [t]
    assert report.considered == [len(ball)]
    assert report.prohibitive.tolist() == [False]
    members = {tuple(map(int, member)) for member in sets[0].to_array()}
    assert members <= set(ball)


def _sets(row, thresholds_labels, threshold_row, **parameters):
    predictor = ConformalLabelSets(LpNorm(1), search="hamming-ball", **parameters)
    predictor = predictor.calibrate(np.array([threshold_row] * 3), np.array([thresholds_labels] * 3))
    return predictor.predict_set(np.array([row]), significance=0.5)


def test_radius_is_zero_where_z_itself_is_over_the_threshold():
    # Threshold 0; z of (3/4, 1/4) costs 1/2.
    sets = _sets([0.75, 0.25], [1, 0], [1.0, 0.0])
    assert sets.search_report().radius.tolist() == [0]
    assert sets.search_report().considered == [0]
    assert sets[0].size == 0
    assert not sets[0]
    assert list(sets[0].label_sets) == []


def test_radius_is_one_more_than_the_labels_where_all_flips_are_within():
    # Threshold 3/2: even the complement of z = {0}, which costs 3/2, is a member.
    sets = _sets([0.75, 0.25], [0, 1], [0.75, 0.25])
    assert sets.search_report().radius.tolist() == [3]
    assert sets.search_report().considered == [3]
    assert set(sets[0].label_sets) == {frozenset({0}), frozenset({1}), frozenset({0, 1})}


def test_radius_is_one_where_only_z_is_within():
    sets = _sets([0.75, 0.25], [1, 0], [0.75, 0.25])
    assert sets.search_report().radius.tolist() == [1]
    assert list(sets[0].label_sets) == [frozenset({0})]


def _wide(search):
    probabilities = np.full((20, 90), 0.3)
    labels = np.zeros((20, 90), dtype=bool)
    labels[:, :20] = True
    predictor = ConformalLabelSets(LpNorm(2), max_labels=30, search=search).calibrate(probabilities, labels)
    test = probabilities[:3].copy()
    test[0, 1:] = 0.0
    test[0, 0] = 1.0
    return predictor.predict_set(test, significance=0.1)


@pytest.mark.parametrize("search", ["hamming-ball", "powerset"])
def test_a_text_out_of_reach_is_refused_by_name_and_number(search):
    sets = _wide(search)
    report = sets.search_report()
    assert report.prohibitive[1]
    assert report.considered[1] > PROHIBITIVE
    message = rf"'{search}' search would have to consider {report.considered[1]:,} label-sets for text 1.*56,000,000"
    with pytest.raises(ProhibitiveSearchError, match=message):
        sets[1].size  # noqa: B018
    with pytest.raises(SearchLimitError, match="search='exact'"):
        sets[1].top(1)
    with pytest.raises(ProhibitiveSearchError):
        sets[1].to_array()
    with pytest.raises(ProhibitiveSearchError, match="for text"):
        sets.sizes()


def test_a_refused_text_is_no_trouble_for_the_exact_search():
    sets = _wide("exact")
    assert sets[1].size == sum(math.comb(90, c) for c in range(1, 21))
    report = sets.search_report()
    assert report.radius is None
    assert report.considered == sets.sizes().tolist()
    assert not report.prohibitive.any()


def test_powerset_considers_every_candidate():
    predictor = ConformalLabelSets(search="powerset", max_labels=3).calibrate(np.full((9, 20), 0.2), np.eye(9, 20))
    report = predictor.predict_set(np.full((2, 20), 0.2), significance=0.5).search_report()
    assert report.considered == [20 + 190 + 1140] * 2
    assert report.radius is None
