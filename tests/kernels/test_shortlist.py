"""Shortlists and their regressions, against loops over dense arrays."""

import math

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

import kernel_rows
from surelabel._kernels import shortlist

pytestmark = pytest.mark.kernels

VALUES = st.sampled_from([0.0, 0.0, 0.25, 0.5, 1.0])


def _rows(dense):
    """Sparse rows of a dense array, in one piece each as users' are: kernels are compiled for these alone."""
    starts = np.concatenate([[0], np.cumsum((dense != 0).sum(axis=1))])
    return starts, np.nonzero(dense)[1].copy(), dense[dense != 0]


@st.composite
def matrices(draw):
    """Texts (n, F) and centroids or weights (d, F)."""
    n, d, features = (draw(st.integers(1, 4)) for _ in range(3))
    cells = draw(st.lists(VALUES, min_size=(n + d) * features, max_size=(n + d) * features))
    both = np.array(cells).reshape(n + d, features)
    return both[:n], both[n:]


@settings(max_examples=kernel_rows.examples(100))
@given(pair=matrices(), k=st.integers(1, 4))
def test_nearest_labels_are_the_most_similar_ones(pair, k):
    texts, centroids = pair
    labels, similarities = np.empty((len(texts), k), dtype=np.int64), np.empty((len(texts), k))
    shortlist.nearest_labels(_rows(texts), _rows(centroids.T), len(centroids), labels, similarities)
    for text, found, similar in zip(texts, labels.tolist(), similarities.tolist(), strict=True):
        ranked = sorted((-float(text @ centroid), label) for label, centroid in enumerate(centroids))
        expected = [(label, -value) for value, label in ranked if value < 0][:k]
        assert [(label, value) for label, value in zip(found, similar, strict=True) if label >= 0] == expected


def test_values_of_nothing_do_not_overrun_the_labels():
    # A sum that stays 0, or comes back to it, is not a label that was not met before.
    texts = np.array([0, 4]), np.array([0, 1, 2, 3]), np.array([0.0, 0.0, 1.0, -1.0])
    index = np.array([0, 1, 2, 3, 4]), np.zeros(4, dtype=np.int64), np.ones(4)
    labels, similarities = np.empty((1, 1), dtype=np.int64), np.empty((1, 1))
    shortlist.nearest_labels(texts, index, 1, labels, similarities)
    assert (labels.tolist(), similarities.tolist()) == ([[0]], [[0.0]])


@settings(max_examples=kernel_rows.examples(100))
@given(pair=matrices(), seed=st.integers(0, 99))
def test_scores_are_products_with_the_weights(pair, seed):
    texts, weights = pair
    random = np.random.default_rng(seed)
    intercepts = random.normal(size=len(weights))
    labels = random.integers(-1, len(weights), size=(len(texts), 3))
    scores = np.empty(labels.shape)
    shortlist.score_labels(_rows(texts), _rows(weights), intercepts, labels, scores)
    for i, row in enumerate(labels.tolist()):
        for place, label in enumerate(row):
            expected = -math.inf if label < 0 else float(texts[i] @ weights[label]) + intercepts[label]
            assert scores[i, place] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("cost", [0.5, 20.0])
def test_a_regression_is_at_the_minimum_of_its_loss(cost):
    random = np.random.default_rng(1)
    texts = random.random((12, 4)) * (random.random((12, 4)) < 0.7)
    signs = np.where(random.random(12) < 0.4, 1.0, -1.0)
    costs = cost * np.where(signs > 0, 1.0, 2.5)
    weights = np.zeros(4)
    intercept = shortlist.fit_regression(_rows(texts), np.arange(12), signs, costs, 1e-9, weights)

    def loss(point):
        return 0.5 * point @ point + costs @ np.logaddexp(0.0, -signs * (texts @ point[:4] + point[4]))

    best = scipy.optimize.minimize(loss, np.zeros(5), tol=1e-12)
    assert loss(np.append(weights, intercept)) == pytest.approx(best.fun, rel=1e-3)


def test_labels_are_fitted_apart_and_keep_their_largest_weights():
    random = np.random.default_rng(2)
    texts = random.random((10, 6))
    rows = np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 2])
    signs = np.where(random.random(12) < 0.5, 1.0, -1.0)
    samples = (np.array([0, 7, 12]), rows, signs, np.full(12, 5.0))
    wide = (
        np.empty((2, 6), dtype=np.int64),
        np.empty((2, 6), dtype=np.float32),
        np.empty(2, dtype=np.int64),
        np.empty(2),
    )
    shortlist.fit_labels(_rows(texts), 6, samples, 1e-6, 6, wide)
    assert wide[2].tolist() == [6, 6]
    for label, part in enumerate((slice(0, 7), slice(7, 12))):
        weights = np.zeros(6)
        intercept = shortlist.fit_regression(_rows(texts), rows[part], signs[part], samples[3][part], 1e-6, weights)
        assert wide[1][label].tolist() == weights.astype(np.float32).tolist()
        assert wide[3][label] == intercept
    few = np.empty((2, 2), dtype=np.int64), np.empty((2, 2), dtype=np.float32), np.empty(2, dtype=np.int64), np.empty(2)
    shortlist.fit_labels(_rows(texts), 6, samples, 1e-6, 2, few)
    for label in range(2):
        largest = np.sort(np.argsort(-np.abs(wide[1][label]))[:2])
        assert few[0][label].tolist() == largest.tolist()
        assert few[1][label].tolist() == wide[1][label][largest].tolist()
