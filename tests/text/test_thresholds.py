"""Thresholds against all thresholds tried one by one."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from surelabel.exceptions import InvalidInputError
from surelabel.labels.shortlists import Shortlists
from surelabel.text import Thresholds


def micro_f1(predicted, labels):
    return 2 * (predicted & labels).sum() / max(1, predicted.sum() + labels.sum())


@given(st.integers(0, 10_000), st.integers(1, 30), st.integers(1, 4))
def test_no_threshold_has_a_higher_f1(seed, n, d):
    random = np.random.default_rng(seed)
    probabilities, labels = np.round(random.random((n, d)), 1), random.random((n, d)) < 0.4
    fitted = Thresholds.fit(probabilities, labels)
    if labels.any():
        own = micro_f1(probabilities >= fitted.values, labels)
        best = max(micro_f1(probabilities >= value, labels) for value in np.unique(probabilities))
        assert own == pytest.approx(best)


def test_one_threshold_per_label():
    random = np.random.default_rng(0)
    labels = random.random((300, 2)) < [0.5, 0.2]
    probabilities = np.clip(labels * [0.3, 0.6] + random.random((300, 2)) * 0.2, 0, 1)
    fitted = Thresholds.fit(probabilities, labels, "macro-f1")
    assert fitted.values[0] < fitted.values[1]
    assert (fitted.predict(probabilities) == labels).mean() > 0.95


def test_at_least_one_label_where_every_text_has_one():
    fitted = Thresholds(np.array([0.5, 0.5]), at_least_one=True)
    np.testing.assert_array_equal(fitted.predict([[0.2, 0.3], [0.6, 0.7]]), [[False, True], [True, True]])
    assert not Thresholds.fit([[0.9], [0.1]], [[1], [0]]).at_least_one


def test_shortlists_are_dense_ones_with_zeros():
    random = np.random.default_rng(1)
    dense = np.round(random.random((40, 6)), 2)
    shortlists = Shortlists.from_dense(dense, 3)
    written = shortlists.tocsr().toarray()
    labels = random.random((40, 6)) < written
    fitted = Thresholds.fit(shortlists, labels)
    assert fitted.values[0] == pytest.approx(Thresholds.fit(written, labels).values[0])
    np.testing.assert_array_equal(fitted.predict(shortlists).toarray(), fitted.predict(written))
    with pytest.raises(InvalidInputError, match="all labels"):
        Thresholds.fit(shortlists, labels, "macro-f1")


def test_they_are_plain_values():
    fitted = Thresholds.fit([[0.9, 0.2], [0.1, 0.8]], [[1, 0], [0, 1]])
    again = Thresholds.from_dict(fitted.to_dict())
    np.testing.assert_array_equal(again.values, fitted.values)
    for wrong in ({}, None, {"values": [2], "at_least_one": True}, {"values": [0.5], "at_least_one": 1}):
        with pytest.raises(InvalidInputError):
            Thresholds.from_dict(wrong)


def test_wrong_shapes_and_rules():
    with pytest.raises(InvalidInputError, match="rule"):
        Thresholds.fit([[0.5]], [[1]], "f2")
    with pytest.raises(InvalidInputError, match="shape"):
        Thresholds.fit([[0.5]], [[1, 0]])
    with pytest.raises(InvalidInputError, match="2 labels"):
        Thresholds(np.array([0.5, 0.5]), True).predict([[0.5]])
