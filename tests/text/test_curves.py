"""The curve from scores to probabilities: rivals by hand, what it recovers, that it rises, texts on their own."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st

from surelabel.text.curves import ScoreCurve, _rivals, log_loss


def test_rivals_by_hand():
    first, second = _rivals(np.array([[3.0, 1.0, 2.0, 0.0], [1.0, 1.0, 0.0, -1.0]]))
    assert first.tolist() == [[2, 3, 3, 3], [1, 1, 1, 1]]
    assert second.tolist() == [[1, 2, 1, 2], [0, 0, 1, 1]]
    assert _rivals(np.array([[3.0, 1.0]]))[0].tolist() == [[1, 3]]
    assert _rivals(np.array([[3.0]]))[0].tolist() == [[0]]


@given(st.integers(0, 2**32 - 1), st.integers(3, 7))
def test_rivals_are_the_best_others(seed, n_labels):
    scores = np.random.default_rng(seed).integers(0, 5, (4, n_labels)).astype(float)
    first, second = _rivals(scores)
    for row in range(4):
        for label in range(n_labels):
            others = np.sort(np.delete(scores[row], label))
            assert (first[row, label], second[row, label]) == (others[-1], others[-2])


def test_platts_curve_is_recovered_from_one_label():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(20_000, 1))
    labels = rng.random(scores.shape) < scipy.special.expit(1.5 * scores - 1.0)
    curve = ScoreCurve.fit(scores, labels, labels.mean(axis=0))
    at = np.array([[-1.0], [0.0], [1.0]])
    assert curve.logits(at) == pytest.approx(1.5 * at - 1.0, abs=0.1)


def test_frequencies_and_rivals_lower_the_log_loss():
    rng = np.random.default_rng(1)
    best = rng.integers(0, 6, 4_000)
    scores = rng.normal(scale=0.7, size=(4_000, 6)) - np.arange(6) / 4
    scores[np.arange(4_000), best] += 1.0
    truth = scores == scores.max(axis=1, keepdims=True)
    halves = slice(0, 2_000), slice(2_000, None)
    curve = ScoreCurve.fit(scores[halves[0]], truth[halves[0]], truth.mean(axis=0))
    alone = [ScoreCurve.fit(scores[halves[0]][:, [k]], truth[halves[0]][:, [k]], np.ones(1)) for k in range(6)]
    by_platt = np.column_stack([one.logits(scores[halves[1]][:, [k]]) for k, one in enumerate(alone)])
    assert log_loss(curve.logits(scores[halves[1]]), truth[halves[1]]) < 0.7 * log_loss(by_platt, truth[halves[1]])


@given(st.integers(0, 2**32 - 1))
def test_rises_with_the_score(seed):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(40, 4))
    labels = rng.random(scores.shape) < 0.5
    curve = ScoreCurve.fit(scores, labels, labels.mean(axis=0))
    at = np.tile(rng.normal(size=4), (50, 1))
    at[:, 2] = np.linspace(-3, 3, 50)
    assert (np.diff(curve.logits(at)[:, 2]) > 0).all()


def test_a_text_alone_has_the_same_bits():
    rng = np.random.default_rng(2)
    scores = rng.normal(size=(33, 7))
    curve = ScoreCurve.fit(scores, scores > 0.5, np.full(7, 0.3))
    assert np.array_equal(np.vstack([curve(row[None]) for row in scores]), curve(scores))
