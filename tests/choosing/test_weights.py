"""Weights are chosen on the validation part, and never for the worse."""

import numpy as np
import pytest

from surelabel import ConformalLabelSets, LogLoss, Mahalanobis, choose_weights
from surelabel.choosing import weights
from surelabel.exceptions import InvalidInputError


def _parts(n_labels=6, seed=0):
    """Texts of a few label-sets only, with noisy probabilities."""
    rng = np.random.default_rng(seed)
    kinds = rng.random((5, n_labels)) < 0.4
    kinds[:, 0] = True
    labels = kinds[rng.integers(0, 5, 600)]
    probabilities = np.clip(labels + rng.normal(0, 0.45, labels.shape), 0.01, 0.99)
    return (
        (probabilities[:200], labels[:200]),
        (probabilities[200:400], labels[200:400]),
        probabilities[400:],
        labels[400:],
    )


@pytest.mark.parametrize("kind", ["log", "mahalanobis"])
def test_chosen_weights_make_sets_smaller_and_keep_the_guarantee(kind):
    train, validation, probabilities, labels = _parts()
    measure = LogLoss() if kind == "log" else Mahalanobis().fit(*train)
    chosen = choose_weights(measure, train[1], *validation, significance="0.1", grid=(0.1, 1.0))
    assert chosen.mean_size < chosen.mean_size_without
    assert chosen.tried[0][0] == dict.fromkeys(("hamming", "cardinality", "pairs", "prior"), 0.0)
    assert min(size for _, size in chosen.tried) == chosen.mean_size
    sizes = []
    for one in (measure, chosen.measure):
        predictor = ConformalLabelSets(one).calibrate(probabilities[:100], labels[:100])
        sets = predictor.predict_set(probabilities[100:], significance="0.1")
        sizes.append(sets.sizes().mean())
        assert 1.0 - sets.contains(labels[100:]).mean() < 0.25
    assert sizes[1] < sizes[0]


def test_the_same_choice_comes_again():
    train, validation, _, _ = _parts()
    first, second = (choose_weights(LogLoss(), train[1], *validation, grid=(0.3,), random_state=1) for _ in range(2))
    assert first.measure == second.measure
    assert first.tried == second.tried


def test_nothing_to_try_leaves_no_penalties():
    train, validation, _, _ = _parts()
    chosen = choose_weights(LogLoss(), train[1], *validation, grid=())
    assert chosen.measure.weights == dict.fromkeys(("hamming", "cardinality", "pairs", "prior"), 0.0)
    assert chosen.mean_size == chosen.mean_size_without


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"grid": (-1.0,)}, "'grid' parameter"),
        ({"probabilities": [[0.5] * 6] * 3, "labels": [[1] * 6] * 3}, "4 validation"),
    ],
)
def test_bad_input_is_refused(change, message):
    train, validation, _, _ = _parts()
    given = {"probabilities": validation[0], "labels": validation[1], **change}
    with pytest.raises(InvalidInputError, match=message):
        choose_weights(LogLoss(), train[1], **given)


def test_nothing_is_chosen_where_sets_are_past_counting(monkeypatch):
    train, validation, _, _ = _parts()
    monkeypatch.setattr(weights, "_WORK_LIMIT", 1)
    chosen = choose_weights(LogLoss(), train[1], *validation)
    assert len(chosen.tried) == 1
    assert chosen.measure.weights == dict.fromkeys(chosen.measure.weights, 0.0)
    assert chosen.mean_size == chosen.mean_size_without


def test_means_of_sets_that_were_not_counted_say_at_least(monkeypatch):
    train, validation, _, _ = _parts()
    asked = {"significance": "0.1", "grid": (1.0,)}
    counted = choose_weights(LogLoss(), train[1], *validation, **asked)
    assert counted.share_counted == counted.share_counted_without == 1.0
    assert "at least" not in counted.summary
    monkeypatch.setattr(weights, "_WORK_LIMIT", 1)
    given_up = choose_weights(LogLoss(), train[1], *validation, **asked)
    assert given_up.share_counted_without < 1.0
    assert "without penalties at least" in given_up.summary
