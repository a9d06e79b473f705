"""One linear score per label: the optimum of scikit-learn's solvers, and the same bits whatever the threads."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from surelabel.text.separating import Candidate, fit_scores


@pytest.fixture(scope="module")
def made():
    rng = np.random.default_rng(0)
    features = scipy.sparse.random_array((200, 60), density=0.2, rng=rng, format="csr", dtype=np.float32)
    hidden = rng.normal(size=(60, 4))
    labels = np.asarray(features @ hidden) + 0.3 * rng.normal(size=(200, 4)) > 0.8
    return scipy.sparse.csr_array(features), labels


def _objective(features, target, weights, intercept, cost, weight, loss):
    margins = np.where(target, 1, -1) * (features @ weights + intercept)
    losses = np.maximum(0, 1 - margins) ** 2 if loss == "svm" else np.logaddexp(0, -margins)
    costs = np.where(target, cost * weight, cost)
    return 0.5 * (weights @ weights + intercept**2) + (costs * losses).sum()


@pytest.mark.parametrize(("loss", "cost"), [("svm", 0.1), ("svm", 3.0), ("logistic", 1.0), ("logistic", 50.0)])
def test_as_low_as_scikit_learn(made, loss, cost):
    from sklearn.linear_model import LogisticRegression
    from sklearn.svm import LinearSVC

    features, labels = made
    found = fit_scores(features, labels, Candidate(loss, cost), seed=0)
    for label in range(labels.shape[1]):
        if loss == "svm":
            model = LinearSVC(C=cost, tol=1e-6, max_iter=100_000, random_state=0)
        else:
            model = LogisticRegression(C=cost, solver="liblinear", tol=1e-6, random_state=0)
        model.fit(features.astype(np.float64), labels[:, label])
        ours = _objective(features, labels[:, label], found.weights[:, label], found.intercepts[label], cost, 1.0, loss)
        theirs = _objective(features, labels[:, label], model.coef_[0], model.intercept_[0], cost, 1.0, loss)
        assert ours <= 1.03 * theirs


def test_rare_labels_count_more(made):
    features, labels = made
    rare = labels & (np.arange(200) < 60)[:, None]
    plain = fit_scores(features, rare, Candidate("svm", 1.0), seed=0)
    raised = fit_scores(features, rare, Candidate("svm", 1.0, rare_weight=0.5), seed=0)
    assert (raised(features)[rare].mean()) > plain(features)[rare].mean()


@pytest.mark.parametrize("loss", ["svm", "logistic"])
def test_same_bits_whatever_the_threads_and_the_other_labels(made, monkeypatch, loss):
    features, labels = made
    candidate = Candidate(loss, 2.0)
    monkeypatch.setenv("SURELABEL_NUM_THREADS", "1")
    one = fit_scores(features, labels, candidate, seed=3)
    monkeypatch.setenv("SURELABEL_NUM_THREADS", "4")
    four = fit_scores(features, scipy.sparse.csr_array(labels), candidate, seed=3)
    first = fit_scores(features, labels[:, :2], candidate, seed=3)
    assert np.array_equal(one.weights, four.weights)
    assert np.array_equal(one.intercepts, four.intercepts)
    assert np.array_equal(one.weights[:, :2], first.weights)
