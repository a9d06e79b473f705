"""The likelihood that settings are chosen by is that of the measure, and its slopes are its slopes."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from surelabel import Mixture, SparseProbabilities
from surelabel.choosing.likelihood import Likelihood, likeliest

NAMES = ("weight", "temperature", "prior", "discount", "cardinality", "neighbours")
_SETTINGS = st.fixed_dictionaries({name: st.floats(0.05, 1.4) for name in NAMES})


def _texts(seed):
    rng = np.random.default_rng(seed)
    training, labels = rng.random((30, 5)) < 0.4, rng.random((40, 5)) < 0.4
    return training, np.clip(rng.random((40, 5)), 0.01, 0.99), labels


def _measure(place, training):
    settings = dict(place, weight=1 / (1 + math.exp(-place["weight"])), temperature=math.exp(place["temperature"]))
    if "neighbours" in place:
        settings["neighbours"] = math.exp(place["neighbours"])
    return Mixture(**({"prior": 0.0} | settings)).fit(training)


def test_a_likelihood_by_hand():
    # {0} is the one seen label-set, so q = 1: 0.5 * 0.8 * 0.5 + 0.5; {1} is not listed: 0.5 * 0.2 * 0.5.
    likelihood = Likelihood(Mixture().fit([[1, 0]]), np.array([[0.8, 0.5]] * 2), np.array([[1, 0], [0, 1]], dtype=bool))
    losses, slopes = likelihood.losses({"weight": 0.0, "temperature": 0.0}, ("weight",))
    assert losses == pytest.approx([-math.log(0.7), -math.log(0.05)])
    # The softmax has 5/7 of the first text's likelihood and nothing of the second's.
    assert slopes == pytest.approx([0.5 * ((0.5 - 5 / 7) + 0.5)])


@given(_SETTINGS, st.integers(0, 50), st.booleans())
def test_losses_are_the_totals_of_the_measure(place, seed, near):
    training, probabilities, labels = _texts(seed)
    given_names = NAMES if near else NAMES[:-1]
    place = {name: place[name] for name in given_names}
    measure = _measure(place, training)
    losses, _ = Likelihood(measure, probabilities, labels).losses(place, ())
    assert losses == pytest.approx(measure.totals(probabilities, labels), abs=1e-9)


@given(_SETTINGS, st.integers(0, 50))
def test_slopes_are_differences(place, seed):
    training, probabilities, labels = _texts(seed)
    likelihood = Likelihood(_measure(place, training), probabilities, labels)
    _, slopes = likelihood.losses(place, NAMES)
    for name, slope in zip(NAMES, slopes, strict=True):
        above, below = (likelihood.losses({**place, name: place[name] + step}, ())[0].mean() for step in (1e-5, -1e-5))
        assert slope == pytest.approx((above - below) / 2e-5, abs=1e-6)


def test_losses_with_hubs_are_the_totals_of_the_measure():
    training, probabilities, labels = _texts(3)
    place = dict.fromkeys(NAMES, 0.3)
    measure = _measure(place, training).with_hubs(probabilities[:20], labels[:20], [3, 1])
    losses, _ = Likelihood(measure, probabilities, labels).losses(place, ())
    assert losses == pytest.approx(measure.totals(probabilities, labels), abs=1e-9)


def test_sparse_texts_have_the_same_losses():
    training, probabilities, labels = _texts(3)
    probabilities[probabilities < 0.5] = 0.03
    sparse = SparseProbabilities(csr_array(np.where(probabilities > 0.5, probabilities, 0.0)), unlisted=0.03)
    place = {"weight": 0.7, "temperature": -0.3, "prior": 0.6}
    measure = _measure(place, training)
    dense, listed = Likelihood(measure, probabilities, labels), Likelihood(measure, sparse, csr_array(labels))
    assert listed.losses(place, ())[0] == pytest.approx(dense.losses(place, ())[0], abs=1e-12)


def test_no_step_away_from_the_likeliest_settings_is_likelier():
    training, probabilities, _ = _texts(5)
    rng = np.random.default_rng(0)
    likelihood = Likelihood(Mixture().fit(training), probabilities, training[rng.integers(0, 30, 40)])
    settings, place = likeliest([likelihood], ("weight", "prior", "temperature"))
    assert settings["weight"] == pytest.approx(1 / (1 + math.exp(-place["weight"])), rel=0.01)
    assert settings["neighbours"] == settings["discount"] == 0.0
    best = likelihood.losses(place, ())[0].mean()
    bounds = {"weight": (-3.0, 6.0), "prior": (0.0, 1.5), "temperature": (math.log(0.1), math.log(1.5))}
    for name, (least, most) in bounds.items():
        for step in (-0.1, 0.1):
            moved = {**place, name: min(max(place[name] + step, least), most)}
            assert likelihood.losses(moved, ())[0].mean() >= best - 1e-9
