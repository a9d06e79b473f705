"""Thresholds for F1: hand-computed values, the rule for texts with no label, one for all or one per label."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from surelabel import SparseProbabilities
from surelabel.exceptions import InvalidInputError
from surelabel.text import Thresholds


def test_one_threshold_by_hand():
    # Down to .6: F1 = 2*2/(2+3); down to .4: 2*3/(4+3) = .857, the best; down to .1: 2*3/(6+3).
    probabilities = [[0.9, 0.4], [0.6, 0.1], [0.5, 0.2]]
    labels = [[1, 1], [1, 0], [0, 0]]
    thresholds = Thresholds.fit(probabilities, labels, per_label=False)
    assert thresholds.values == pytest.approx([0.3, 0.3])
    assert not thresholds.at_least_one
    assert thresholds.predict([[0.2, 0.1], [0.31, 0.2]]).tolist() == [[False, False], [True, False]]


def test_equal_probabilities_stand_or_fall_together():
    probabilities = np.array([[0.8], [0.5], [0.5], [0.5], [0.2]])
    labels = np.array([[1], [1], [0], [0], [0]])
    # Taking .8 alone: 2/3. Taking the three at .5 as well: 4/6. The first is as good and the higher.
    assert Thresholds.fit(probabilities, labels, per_label=False).values == pytest.approx([0.65])


def test_a_text_below_all_thresholds_gets_its_most_probable_label():
    thresholds = Thresholds(np.array([0.5, 0.5]), at_least_one=True)
    assert thresholds.predict([[0.1, 0.3], [0.2, 0.2]]).tolist() == [[False, True], [True, False]]


def test_a_rare_label_takes_half_of_the_f1_that_its_probabilities_let_one_expect():
    rng = np.random.default_rng(0)
    labels = np.column_stack([rng.random(400) < 0.5, np.arange(400) < 5, np.zeros(400, dtype=bool)])
    probabilities = np.where(labels, 0.3, 0.1) + rng.random(labels.shape) * 0.1
    # Two of these are taken: 2 * (.8 + .4) / (2 + 1.2); with one 2 * .8 / (1 + 1.2), which is less.
    probabilities[:, 1] = np.where(np.arange(400) < 2, [0.8, 0.4] * 200, 0.0)
    probabilities[:, 2] = np.where(np.arange(400) < 1, 0.01, 0.0)
    thresholds = Thresholds.fit(probabilities, labels, per_label=True)
    assert 0.2 < thresholds.values[0] < 0.3
    assert thresholds.values[1] == pytest.approx(0.5 * 2 * 1.2 / 3.2)
    assert thresholds.values[2] == 0.02  # half of 2 * .01 / 1.01 would name the label on next to nothing
    assert thresholds.average == "macro"
    one = Thresholds.fit(probabilities, labels, per_label=False)
    assert one.average == "micro"
    assert len(set(one.values)) == 1


@given(st.integers(0, 2**32 - 1))
def test_half_of_the_expected_f1_has_the_highest_expected_f1(seed):
    column = np.random.default_rng(seed).random((30, 1)) ** 3
    (threshold,) = Thresholds.fit(column, np.zeros((30, 1)), per_label=True).values

    def expected(least):
        taken = column >= least
        return 2 * column[taken].sum() / (taken.sum() + column.sum())

    assert expected(threshold) == pytest.approx(max(expected(value) for value in column.ravel()))


def test_per_label_is_taken_only_if_it_wins_on_texts_apart():
    rng = np.random.default_rng(1)
    labels = rng.random((600, 2)) < 0.5
    scales = np.array([0.2, 1.0])
    apart = np.where(labels, 0.7, 0.3) + rng.normal(scale=0.1, size=labels.shape)
    probabilities = np.clip(apart, 0.0, 1.0) * scales
    assert len(set(Thresholds.fit(probabilities, labels).values)) == 2
    noise = rng.random((3_000, 6))
    alike = Thresholds.fit(noise, rng.random((3_000, 6)) < noise)
    assert len(set(alike.values)) == 1


@given(st.integers(0, 2**32 - 1))
def test_no_other_threshold_has_a_higher_micro_f1(seed):
    rng = np.random.default_rng(seed)
    labels = rng.random((12, 3)) < 0.4
    labels[0, 0] = True
    probabilities = rng.integers(0, 6, labels.shape) / 5

    def f1(threshold):
        predicted = probabilities >= threshold
        return 2 * (predicted & labels).sum() / (predicted.sum() + labels.sum())

    chosen = Thresholds.fit(probabilities, labels, per_label=False).values[0]
    assert f1(chosen) == max(f1(value) for value in (*np.unique(probabilities), 1.1))


def test_listed_probabilities_are_as_dense_ones():
    rng = np.random.default_rng(2)
    dense = np.round(rng.random((40, 5)), 2) * (rng.random((40, 5)) < 0.6)
    dense[:, 0] = 0.05
    labels = rng.random((40, 5)) < dense
    labels[:, 1] |= ~labels.any(axis=1)
    listed = SparseProbabilities(scipy.sparse.csr_array(dense))
    by_listed = Thresholds.fit(listed, scipy.sparse.csr_array(labels))
    by_dense = Thresholds.fit(dense, labels, per_label=False)
    assert by_listed.values == pytest.approx(by_dense.values)
    assert by_listed.at_least_one
    with pytest.raises(InvalidInputError, match="need the probabilities of all labels"):
        Thresholds.fit(listed, scipy.sparse.csr_array(labels), per_label=True)
    assert np.array_equal(by_listed.predict(listed).toarray(), by_dense.predict(dense))
    with pytest.raises(InvalidInputError, match=r"of 2 labels\. Got 5"):
        Thresholds(np.array([0.5, 0.5]), at_least_one=True).predict(listed)


def test_as_json_and_back():
    thresholds = Thresholds(np.array([0.25, 0.5]), at_least_one=True, average="macro")
    again = Thresholds.from_dict(json.loads(json.dumps(thresholds.to_dict())))
    assert again.values.tolist() == [0.25, 0.5]
    assert again.at_least_one
    assert again.average == "macro"
    usual = {"values": [0.1], "at_least_one": True}
    assert Thresholds.from_dict(usual).average == "micro"
    for wrong in ({}, usual | {"at_least_one": 1}, usual | {"values": [2.0]}, usual | {"average": "mean"}, None):
        with pytest.raises(InvalidInputError, match="Thresholds"):
            Thresholds.from_dict(wrong)
