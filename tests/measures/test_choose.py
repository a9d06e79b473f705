"""Settings of a mixture: slopes, texts whose labels come together, texts whose labels do not, what is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import check_grad

from surelabel.conformal import ConformalLabelSets
from surelabel.exceptions import InvalidInputError
from surelabel.measures import LogLoss, Mixture
from surelabel.measures.choose import BOUNDS, Likelihood, choose_mixture


def texts(rng, n, together):
    """Texts with two groups of three labels; the classifier sees each label on its own and is not sure of it."""
    topic = rng.integers(0, 2, n)
    labels = np.zeros((n, 6), dtype=bool)
    for group in (0, 1):
        chosen = rng.random((n, 1)) < 0.9 if together else rng.random((n, 3)) < 0.6
        labels[:, 3 * group : 3 * group + 3] = chosen & (topic == group)[:, None]
    labels[np.arange(n), 3 * topic] = True
    probabilities = np.clip(np.where(labels, 0.6, 0.3) + rng.normal(0, 0.15, (n, 6)), 0.02, 0.98)
    return probabilities, labels


def test_labels_that_come_together_choose_a_mixture():
    rng = np.random.default_rng(0)
    training, (P, Y) = texts(rng, 600, True)[1], texts(rng, 300, True)
    measure = choose_mixture(P, Y, training, ("0.05", "0.2"))
    assert isinstance(measure, Mixture)
    assert measure.seen == Mixture().fit(training).seen
    calibration, new = texts(rng, 400, True), texts(rng, 200, True)
    sizes = [
        ConformalLabelSets(one).calibrate(*calibration).predict_set(new[0], significance="0.1").sizes().mean()
        for one in (measure, LogLoss())
    ]
    assert sizes[0] < 0.8 * sizes[1]
    assert choose_mixture(P, Y, training, ("0.05", "0.2")) == measure
    # Data frames are matched by name and index.
    frame = pd.DataFrame(P, columns=list("abcdef"), index=[f"text {k}" for k in range(300)])
    known = pd.DataFrame(Y, columns=frame.columns, index=frame.index).iloc[rng.permutation(300), ::-1]
    seen = pd.DataFrame(training, columns=frame.columns)[list("cafebd")]
    assert choose_mixture(frame, known, seen, ("0.05", "0.2")) == measure


def test_right_probabilities_of_independent_labels_keep_log_loss():
    rng = np.random.default_rng(1)
    probabilities = rng.beta(0.5, 1, (900, 6))
    labels = rng.random((900, 6)) < probabilities
    assert choose_mixture(probabilities[600:], labels[600:], labels[:600], min_labels=0) == LogLoss()


def test_few_texts_keep_log_loss():
    P, Y = texts(np.random.default_rng(2), 59, True)
    assert choose_mixture(P, Y, Y) == LogLoss()


def test_texts_with_unknown_labels_are_left_out():
    rng = np.random.default_rng(3)
    training, (P, Y) = texts(rng, 300, True)[1], texts(rng, 70, True)
    sets = [set(np.flatnonzero(row)) | ({"new"} if i < 20 else set()) for i, row in enumerate(Y)]
    assert choose_mixture(P, sets, training) == choose_mixture(P[20:], Y[20:], training) == LogLoss()


def test_slopes_are_those_of_the_loss():
    rng = np.random.default_rng(4)
    fitted = Mixture().fit(texts(rng, 200, False)[1])
    likelihood = Likelihood(fitted, *texts(rng, 50, False))
    for _ in range(5):
        place = np.array([rng.uniform(*bounds) for bounds in BOUNDS])
        error = check_grad(
            lambda x: likelihood.mean_and_slopes(x)[0], lambda x: likelihood.mean_and_slopes(x)[1], place
        )
        assert error < 1e-5


def test_losses_are_scores_of_the_mixture():
    rng = np.random.default_rng(5)
    fitted = Mixture().fit(texts(rng, 200, False)[1])
    P, Y = texts(rng, 40, False)
    place = np.array([0.7, np.log(0.5), 0.8, 0.3])
    weight = 1 / (1 + np.exp(-0.7))
    measure = Mixture(weight, 0.8, 0.5, 0.3, seen=fitted.seen)
    scores = ConformalLabelSets(measure).calibrate(P, Y).scores(P, Y)
    assert Likelihood(fitted, P, Y).losses(place) == pytest.approx(scores)


def test_bad_input():
    P, Y = texts(np.random.default_rng(6), 70, True)
    with pytest.raises(InvalidInputError, match="significances"):
        choose_mixture(P, Y, Y, (2,))
    with pytest.raises(InvalidInputError, match="rows"):
        choose_mixture(P, Y[:-1], Y)
