"""Prediction sets as objects: sequences of sets, slices, names in and out, what they say of themselves."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from surelabel import ConformalLabelSets, LpNorm, PredictionSet, PredictionSets
from surelabel.exceptions import InvalidInputError
from surelabel.labels.label_sets import to_label_sets

NAMES = ["corn", "gold", "oil"]
RNG = np.random.default_rng(0)
PROBABILITIES = RNG.random((60, 3))
LABELS = np.eye(3, dtype=int)[RNG.integers(0, 3, 60)]


@pytest.fixture
def predictor():
    return ConformalLabelSets(LpNorm(1), label_names=NAMES).calibrate(PROBABILITIES, LABELS)


@pytest.fixture
def sets(predictor):
    return predictor.predict_set(PROBABILITIES[:10], significance=0.2)


def test_prediction_sets_are_a_sequence(sets):
    assert isinstance(sets, PredictionSets)
    assert len(sets) == 10
    assert all(isinstance(one, PredictionSet) for one in sets)
    assert [one.size for one in sets] == sets.sizes().tolist() == [sets[i].size for i in range(-10, 0)]
    assert repr(sets) == "<PredictionSets: 10 texts, search='exact'>"


@pytest.mark.parametrize("rows", [slice(2, 5), slice(None, None, 3), slice(-3, None), slice(None, None, -1)])
@pytest.mark.parametrize("counted", [False, True])
def test_slices_are_prediction_sets_of_those_texts(sets, rows, counted):
    if counted:
        sets.sizes()
    part = sets[rows]
    expected = list(range(10))[rows]
    assert len(part) == len(expected)
    assert part.sizes().tolist() == [sets[i].size for i in expected]
    assert part.contains(LABELS[:10][rows]).tolist() == sets.contains(LABELS[:10])[rows].tolist()


def test_slices_keep_their_tie_breaks(predictor):
    smoothed = predictor.predict_set(PROBABILITIES[:10], significance=0.2, smoothing=np.random.default_rng(0))
    part = smoothed[4:8]
    for i in range(4):
        assert part[i].top(9) == smoothed[4 + i].top(9)


@pytest.mark.parametrize("search", ["exact", "powerset"])
@pytest.mark.parametrize("smoothing", [None, np.random.default_rng(1)])
def test_the_best_of_all_sets_are_the_best_of_each(search, smoothing):
    predictor = ConformalLabelSets(LpNorm(1), label_names=NAMES, search=search).calibrate(PROBABILITIES, LABELS)
    for level in (0.05, 0.2, 0.7):
        sets = predictor.predict_set(PROBABILITIES, significance=level, smoothing=smoothing)
        for k in (0, 1, 3, 100):
            assert sets.top(k) == [one.top(k) for one in sets]
    assert sets.top_indices(2)[0] == [(sorted(NAMES.index(name) for name in names), p) for names, p in sets[0].top(2)]
    with pytest.raises(InvalidInputError, match="top"):
        sets.top(-1)


def test_names_go_in_and_come_out_in_every_form(predictor, sets):
    names = [[NAMES[k] for k in np.flatnonzero(row)] for row in LABELS[:10]]
    forms = [
        LABELS[:10],
        LABELS[:10].astype(bool),
        LABELS[:10].astype(float),
        LABELS[:10].tolist(),
        scipy.sparse.csr_matrix(LABELS[:10]),
        pd.DataFrame(LABELS[:10], columns=NAMES),
        names,
        [set(row) for row in names],
        [tuple(row) for row in names],
        pd.Series(names),
    ]
    expected_p = predictor.predict_p(PROBABILITIES[:10], LABELS[:10]).tolist()
    expected_inside = sets.contains(LABELS[:10]).tolist()
    for form in forms:
        assert predictor.predict_p(PROBABILITIES[:10], form).tolist() == expected_p
        assert sets.contains(form).tolist() == expected_inside
        again = ConformalLabelSets(LpNorm(1), label_names=NAMES).calibrate(PROBABILITIES[:10], form)
        assert again.calibration_.n_texts == 10


def test_probabilities_come_in_every_form(predictor):
    expected = predictor.predict_p(PROBABILITIES, LABELS).tolist()
    pairs = [np.column_stack([1 - column, column]) for column in PROBABILITIES.T]
    for form in (
        PROBABILITIES.tolist(),
        np.asfortranarray(PROBABILITIES),
        pd.DataFrame(PROBABILITIES),
        pairs,
        tuple(pairs),
        np.stack(pairs),
    ):
        assert predictor.predict_p(form, LABELS).tolist() == expected
    single = PROBABILITIES.astype(np.float32)
    assert predictor.predict_p(single, LABELS).tolist() == predictor.predict_p(single.astype(float), LABELS).tolist()


def test_a_data_frame_of_probabilities_brings_names():
    frame = pd.DataFrame(PROBABILITIES, columns=NAMES)
    predictor = ConformalLabelSets().calibrate(frame, LABELS)
    assert predictor.calibration_.label_names == tuple(NAMES)
    given = ConformalLabelSets(label_names=["a", "b", "c"]).calibrate(frame, LABELS)
    assert given.calibration_.label_names == ("a", "b", "c")


def test_membership_takes_names_and_rows(sets):
    one = sets[0]
    best = one.top(1)[0][0]
    row = np.array([name in best for name in NAMES])
    assert best in one
    assert set(best) in one
    assert sorted(best) in one
    assert row in one
    assert row.astype(int).tolist() in one
    assert frozenset() not in one


def test_certain_possible_and_excluded_are_names():
    # Threshold 0.6; {corn} and {corn, oil} cost 0.52, the next ones 1.5.
    predictor = ConformalLabelSets(LpNorm(1), label_names=NAMES).calibrate([[0.9, 0.1, 0.4]] * 9, [["corn"]] * 9)
    one = predictor.predict_set([[0.99, 0.01, 0.5]], significance=0.2)[0]
    assert one.certain == {"corn"}
    assert one.possible == {"corn", "oil"}
    assert one.excluded == {"gold"}
    assert one.inclusion().tolist() == [1.0, 0.0, 0.5]
    assert list(one) == [frozenset({"corn"}), frozenset({"corn", "oil"})]
    assert len(one) == 2


def test_an_empty_prediction_set_is_false_and_says_nothing_of_labels():
    predictor = ConformalLabelSets(LpNorm(1)).calibrate([[1.0, 0.0]] * 9, [[1, 0]] * 9)
    one = predictor.predict_set([[0.5, 0.5]], significance=0.5)[0]
    assert not one
    assert len(one) == 0
    assert list(one) == []
    assert one.top(5) == []
    assert one.to_array().shape == (0, 2)
    assert (one.certain, one.possible, one.excluded) == (set(), set(), {0, 1})
    assert one.inclusion().tolist() == [0.0, 0.0]
    bounds = one.inclusion_bounds()
    assert [part.tolist() for part in bounds] == [[0.0, 0.0]] * 2


def test_a_set_says_its_size_once_it_is_known(sets):
    assert repr(sets[2]) == "<PredictionSet of text 2>"
    size = sets[2].size
    assert repr(sets[2]) == f"<PredictionSet of text 2: {size} label-sets>"


def test_forced_predictions_are_the_best_of_the_set(predictor, sets):
    forced = predictor.predict(PROBABILITIES[:10])
    assert len(forced) == 10
    assert to_label_sets(forced.labels, tuple(NAMES)) == forced.label_sets
    for i, one in enumerate(sets):
        if one:
            assert one.top(1) == [(forced.label_sets[i], forced.credibility[i])]


def test_smoothed_forced_predictions_use_one_tie_break_a_text(predictor):
    ties = np.random.default_rng(3).random(60)
    forced = predictor.predict(PROBABILITIES, smoothing=np.random.default_rng(3))
    again = predictor.predict_p(PROBABILITIES, forced.labels, smoothing=np.random.default_rng(3))
    assert forced.credibility.tolist() == again.tolist()
    plain = predictor.predict(PROBABILITIES)
    assert np.array_equal(forced.labels, plain.labels)
    assert (forced.credibility <= plain.credibility).all()
    assert (forced.credibility >= ties / 61).all()


def test_calibrating_again_leaves_older_results_alone(predictor):
    sets = predictor.predict_set(PROBABILITIES[:3], significance=0.2)
    before = predictor.predict_set(PROBABILITIES[:3], significance=0.2).sizes().tolist()
    predictor.calibrate(PROBABILITIES, np.roll(LABELS, 1, axis=1))
    assert sets.sizes().tolist() == before
