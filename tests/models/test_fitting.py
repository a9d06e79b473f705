"""What is chosen on the validation part."""

import numpy as np
import pytest

from surelabel import LogLoss, LpNorm, Penalised, corpora
from surelabel.models import Automatic, TrainingSettings, train_bundle
from surelabel.models.fitting import fitted_measure
from surelabel.probabilities_file import PartProbabilities

PATTERNS = np.array([[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1], [1, 0, 0, 0, 0, 1]], dtype=bool)


def part(labels, noise, rng):
    probabilities = np.clip(labels * 0.6 + 0.2 + rng.normal(0, noise, labels.shape), 0.01, 0.99)
    return PartProbabilities(probabilities, labels, tuple(map(str, range(len(labels)))))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_penalties_are_taken_where_label_sets_follow_patterns(rng):
    labels = PATTERNS[rng.integers(0, len(PATTERNS), 400)]
    chosen = fitted_measure(Automatic(), part(labels, 0.3, rng), labels, (1, 6))
    assert isinstance(chosen, Penalised)
    assert chosen.measure == LogLoss()


def test_the_measure_alone_is_taken_where_penalties_do_not_pay(rng):
    labels = rng.random((400, 6)) < 0.3
    labels[~labels.any(axis=1), 0] = True
    assert fitted_measure(Automatic(LpNorm(2)), part(labels, 0.05, rng), labels, (1, 6)) == LpNorm(2)


def test_the_measure_alone_is_taken_where_too_little_can_be_seen(rng):
    labels = PATTERNS[rng.integers(0, len(PATTERNS), 199)]
    assert fitted_measure(Automatic(), part(labels, 0.3, rng), labels, (1, 6)) == LogLoss()
    assert fitted_measure(Automatic(), None, labels, (1, 6)) == LogLoss()


@pytest.mark.parametrize("options", [{"n_texts": 300, "n_labels": 5}, {"n_texts": 300, "n_labels": 5, "validation": 0}])
def test_a_bundle_says_which_measure_was_chosen(options):
    bundle = train_bundle(corpora.load("synthetic", **options), TrainingSettings(compared={}, measure=Automatic()))
    assert bundle.info.measure == "LogLoss"
    assert list(bundle.evaluation) == ["LogLoss"]
