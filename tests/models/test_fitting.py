"""What is chosen on the validation part."""

import numpy as np
import pytest

from surelabel import LogLoss, Mixture, Penalised, corpora
from surelabel.models import Automatic, TrainingSettings, train_bundle
from surelabel.models.fitting import any_measure_named, fitted_measure
from surelabel.probabilities_file import PartProbabilities

PATTERNS = np.array([[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1], [1, 0, 0, 0, 0, 1]], dtype=bool)


def part(labels, noise, rng):
    probabilities = np.clip(labels * 0.6 + 0.2 + rng.normal(0, noise, labels.shape), 0.01, 0.99)
    return PartProbabilities(probabilities, labels, tuple(map(str, range(len(labels)))))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_a_mixture_is_taken_if_label_sets_follow_patterns(rng):
    labels = PATTERNS[rng.integers(0, len(PATTERNS), 400)]
    chosen = fitted_measure(Automatic(), part(labels, 0.3, rng), labels, (1, 6))
    assert isinstance(chosen, Mixture)
    assert chosen.weight > 0


def test_log_loss_is_taken_if_nothing_better_is_confirmed(rng):
    labels = rng.random((400, 6)) < 0.3
    labels[~labels.any(axis=1), 0] = True
    validation = part(labels, 0.05, rng)
    assert fitted_measure(Automatic(), validation, labels, (1, 6)) == LogLoss()
    named = fitted_measure(any_measure_named("mixture"), validation, labels, (1, 6))
    assert isinstance(named, Mixture)
    assert named.weight == 0.0


def test_penalties_are_chosen_if_they_are_asked_for(rng):
    labels = PATTERNS[rng.integers(0, len(PATTERNS), 400)]
    chosen = fitted_measure(any_measure_named("penalised"), part(labels, 0.3, rng), labels, (1, 6))
    assert isinstance(chosen, Penalised)
    assert chosen.measure == LogLoss()
    assert any(chosen.weights.values())


def test_log_loss_is_taken_if_validation_texts_are_few(rng):
    labels = PATTERNS[rng.integers(0, len(PATTERNS), 199)]
    assert fitted_measure(Automatic(), part(labels, 0.3, rng), labels, (1, 6)) == LogLoss()
    assert fitted_measure(Automatic(), None, labels, (1, 6)) == LogLoss()


@pytest.mark.parametrize("options", [{"n_texts": 300, "n_labels": 5}, {"n_texts": 300, "n_labels": 5, "validation": 0}])
def test_a_bundle_says_which_measure_was_chosen(options):
    bundle = train_bundle(corpora.load("synthetic", **options), TrainingSettings(compared={}, measure=Automatic()))
    assert bundle.info.measure == "LogLoss"
    assert list(bundle.evaluation) == ["LogLoss"]
