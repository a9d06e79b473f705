"""What a user is told of one text."""

import dataclasses
import json
import math
import sys
import time
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cases
from surelabel import ByCardinality, ConformalLabelSets, LogLoss, LpNorm
from surelabel._core import validation
from surelabel.answers import Answer, PlausibleLabelSet, answer_probabilities
from surelabel.exceptions import InvalidInputError, NotCalibratedError

NAMES = ("wheat", "grain", "trade", "corn")


def _calibrated(n_texts=40, n_labels=4, measure=None, names=NAMES, **parameters):
    rng = np.random.default_rng(1)
    probabilities = rng.random((n_texts, n_labels)).round(1)
    labels = rng.random((n_texts, n_labels)) < probabilities
    labels[:, 0] |= ~labels.any(axis=1)
    predictor = ConformalLabelSets(measure or LpNorm(2), label_names=names, **parameters)
    return predictor.calibrate(probabilities, labels), rng.random((12, n_labels)).round(1)


@pytest.mark.parametrize("measure", cases.MEASURES, ids=repr)
@pytest.mark.parametrize("significance", ["0.05", "0.3", "0.9"])
def test_answers_are_what_the_engine_says(measure, significance):
    predictor, probabilities = _calibrated(measure=measure)
    forced = predictor.predict(probabilities)
    sets = predictor.predict_set(probabilities, significance=significance)
    answers = answer_probabilities(predictor, probabilities, significance=significance, top=3)
    assert len(answers) == len(probabilities)
    for row, answer in enumerate(answers):
        assert set(answer.labels) == forced.label_sets[row]
        assert (answer.confidence, answer.credibility) == (forced.confidence[row], forced.credibility[row])
        assert answer.size == sets[row].size
        assert answer.size_bounds == (answer.size, answer.size)
        assert answer.n_candidates == 15
        assert set(answer.certain) == sets[row].certain
        assert set(answer.open) == sets[row].possible - sets[row].certain
        assert [(set(each.labels), each.p_value) for each in answer.top] == [
            (set(label_set), p_value) for label_set, p_value in sets[row].top(3)
        ]
        for labels in (answer.labels, answer.certain, answer.open, *(each.labels for each in answer.top)):
            assert list(labels) == sorted(labels, key=NAMES.index)


@pytest.mark.parametrize("taxonomy", [None, ByCardinality((1, 2))])
def test_confidence_and_credibility_are_of_the_best_guess_by_another_rule(taxonomy):
    predictor, probabilities = _calibrated(taxonomy=taxonomy)
    forced, guesses = predictor.predict(probabilities), probabilities >= 0.3
    differ = (guesses != forced.labels).any(axis=1)
    assert differ.any()
    assert not differ.all()
    p_values = predictor.predict_p(probabilities, guesses)
    answers = answer_probabilities(predictor, probabilities, significance="0.2", best_guesses=guesses)
    for row, answer in enumerate(answers):
        assert answer.labels == tuple(NAMES[label] for label in np.flatnonzero(guesses[row]))
        assert answer.credibility == p_values[row]
        assert answer.confidence == (1 - forced.credibility[row] if differ[row] else forced.confidence[row])
        assert answer.highest_p_value == pytest.approx(forced.credibility[row])
        n_labels = len(answer.labels)
        assert answer.category == (taxonomy and ("1 label" if n_labels == 1 else "2 or more labels"))


@pytest.mark.parametrize("significance", ["0.1", "0.3", "0.6", "0.9"])
@pytest.mark.parametrize("top", [0, 1, 4])
def test_a_text_alone_gets_the_same_answer(significance, top):
    predictor, probabilities = _calibrated()
    together = answer_probabilities(predictor, probabilities, significance=significance, top=top)
    for row, answer in zip(probabilities, together, strict=True):
        assert answer_probabilities(predictor, row[None, :], significance=significance, top=top) == [answer]


def test_an_empty_prediction_set_is_an_answer():
    predictor, probabilities = _calibrated()
    answers = answer_probabilities(predictor, probabilities, significance="0.99")
    empty = [answer for answer in answers if answer.size == 0]
    assert empty
    for answer in empty:
        assert answer.certain == answer.open == answer.top == ()
        assert answer.labels


@pytest.mark.parametrize("significance", ["0.1", "0.4", "0.99"])
def test_a_description_is_said_where_it_is_asked_for(significance):
    predictor, probabilities = _calibrated()
    sets = predictor.predict_set(probabilities, significance=significance)
    plain = answer_probabilities(predictor, probabilities, significance=significance)
    described = answer_probabilities(predictor, probabilities, significance=significance, describe=True)
    assert {answer.description for answer in plain} == {None}
    assert [answer.description for answer in described] == [str(each.describe()) for each in sets]
    assert [dataclasses.replace(answer, description=None) for answer in described] == plain


def test_a_set_that_is_known_by_bounds_only_is_not_described():
    rng = np.random.default_rng(0)
    probabilities = rng.uniform(0.3, 0.7, (200, 60))
    predictor = ConformalLabelSets(LpNorm(3), 1, 15, work_limit=1_000)
    predictor = predictor.calibrate(probabilities, np.arange(60) < rng.integers(1, 15, 200)[:, None])
    answer = answer_probabilities(predictor, probabilities[:1], significance="0.05", top=0, describe=True)[0]
    assert answer.size is None
    assert answer.description is None


def test_labels_without_names_are_numbers():
    predictor, probabilities = _calibrated(names=None)
    answer = answer_probabilities(predictor, probabilities[:1], significance=0.2)[0]
    assert set(answer.labels) <= {"0", "1", "2", "3"}


def test_plain_values_for_json():
    answer = Answer(("a",), 0.9, 0.5, "0.05", None, (2, 3), 10**30, ("a",), ("b",), (PlausibleLabelSet(("a",), 0.5),))
    values = answer.to_dict()
    assert json.loads(json.dumps(values)) == values
    assert values["top"] == [{"labels": ["a"], "p_value": 0.5}]
    assert values["size"] is None
    assert values["n_candidates"] == 10**30


@given(st.decimals(min_value="0.0001", max_value="0.9999", places=4))
def test_the_level_is_written_exactly(level):
    predictor, probabilities = _calibrated(n_texts=20_000)
    answer = answer_probabilities(predictor, probabilities[:1], significance=str(level), top=0)[0]
    other = answer_probabilities(predictor, probabilities[:1], confidence_level=str(1 - level), top=0)[0]
    assert Decimal(answer.significance) == level
    assert answer == other
    assert answer.top == ()


def test_a_level_that_is_no_decimal_is_a_fraction():
    predictor, probabilities = _calibrated()
    assert answer_probabilities(predictor, probabilities, significance=Fraction(1, 3))[0].significance == "1/3"


def test_a_huge_set_is_answered_without_listing_it():
    rng = np.random.default_rng(0)
    probabilities = rng.uniform(0.3, 0.7, (200, 90))
    labels = rng.random((200, 90)) < 0.5
    predictor = ConformalLabelSets(LogLoss(), 1, 15).calibrate(probabilities, labels & (np.arange(90) < 15))
    start = time.perf_counter()
    answer = answer_probabilities(predictor, probabilities[:1], significance="0.05")[0]
    assert time.perf_counter() - start < 60
    assert answer.n_candidates > 10**15
    assert answer.size_bounds[1] > 10**9
    assert len(answer.top) == 5
    assert (answer.size is None) == (answer.size_bounds[0] != answer.size_bounds[1])
    assert math.isfinite(answer.top[0].p_value)


def test_bad_input():
    predictor, probabilities = _calibrated()
    with pytest.raises(InvalidInputError, match="Exactly one of"):
        answer_probabilities(predictor, probabilities)
    with pytest.raises(InvalidInputError, match=r"in \(0, 1\)"):
        answer_probabilities(predictor, probabilities, significance=1.5)
    with pytest.raises(InvalidInputError, match="whole number"):
        answer_probabilities(predictor, probabilities, significance=0.1, top=-1)
    with pytest.raises(NotCalibratedError):
        answer_probabilities(ConformalLabelSets(), probabilities, significance=0.1)


def test_texts_are_checked_once():
    predictor, probabilities = _calibrated()
    calls = []

    def trace(frame, event, _):
        if event == "call" and frame.f_code.co_name == "as_probabilities":
            calls.append(frame.f_code.co_filename)

    sys.setprofile(trace)
    try:
        answer_probabilities(predictor, probabilities, significance="0.3", describe=True)
    finally:
        sys.setprofile(None)
    assert [name for name in calls if name.endswith("validation.py")] == [validation.__file__]
