"""Settings of a mixture: chosen for small sets, confirmed on a hold-out, refused if they do not carry over."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from surelabel import ConformalLabelSets, LabelConstraints, LogLoss, SparseProbabilities, choose_mixture
from surelabel.choosing import folds
from surelabel.exceptions import InvalidInputError

PATTERNS = np.array([[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1], [1, 0, 0, 0, 0, 1]], dtype=bool)


def _texts(n_texts, seed, noise=0.3):
    rng = np.random.default_rng(seed)
    labels = PATTERNS[rng.integers(0, len(PATTERNS), n_texts)]
    return np.clip(labels * 0.6 + 0.2 + rng.normal(0, noise, labels.shape), 0.01, 0.99), labels


def test_a_chosen_mixture_makes_sets_smaller_and_keeps_the_guarantee():
    training, validation, calibration, test = (_texts(n, seed) for seed, n in enumerate((200, 240, 199, 400)))
    lines = []
    chosen = choose_mixture(*validation, training[1], ("0.05", 0.1), max_labels=4, progress=lines.append)
    assert chosen.weight > 0
    assert "confirmed" in lines[-1]
    sets = {
        name: ConformalLabelSets(measure, 1, 4).calibrate(*calibration).predict_set(test[0], significance=0.1)
        for name, measure in (("chosen", chosen), ("plain", LogLoss()))
    }
    assert sets["chosen"].sizes().mean() < 0.7 * sets["plain"].sizes().mean()
    assert 1.0 - sets["chosen"].contains(test[1]).mean() < 0.16


def test_it_is_repeatable_and_the_same_for_sparse_texts():
    training, validation = _texts(100, 0), _texts(90, 1)
    first = choose_mixture(*validation, training[1], random_state=3)
    assert first == choose_mixture(*validation, training[1], random_state=3)
    plain = choose_mixture(*validation, training[1], random_state=3, refine=False)
    sparse = SparseProbabilities(csr_array(validation[0]), unlisted=0.001)
    assert plain == choose_mixture(sparse, csr_array(validation[1]), csr_array(training[1]), random_state=3)
    assert plain.odds is None


def test_log_odds_are_refined_if_a_classifier_is_too_sure():
    training, validation, calibration, test = (_texts(n, seed) for seed, n in enumerate((300, 600, 199, 400)))
    crooked = [np.clip(part[0] ** np.array([4, 0.25, 1, 4, 0.25, 1]), 1e-6, 1 - 1e-6) for part in (calibration, test)]
    given = np.clip(validation[0] ** np.array([4, 0.25, 1, 4, 0.25, 1]), 1e-6, 1 - 1e-6)
    chosen = choose_mixture(given, validation[1], training[1])
    assert chosen.odds is not None
    sizes = [
        ConformalLabelSets(measure).calibrate(crooked[0], calibration[1]).predict_set(crooked[1], significance=0.05)
        for measure in (chosen, chosen.reweighted(odds=None))
    ]
    assert sizes[0].sizes().mean() < 0.9 * sizes[1].sizes().mean()


def test_neighbours_are_taken_if_new_label_sets_are_near_to_seen_ones():
    rng = np.random.default_rng(4)
    base = (rng.random((12, 14)) < 0.4)[rng.integers(0, 12, 900)]
    changed = rng.random(900) < 0.5
    labels = base.copy()
    labels[changed, rng.integers(0, 14, changed.sum())] ^= True
    probabilities = np.clip(labels * 0.3 + 0.35 + rng.normal(0, 0.25, labels.shape), 0.01, 0.99)
    chosen = choose_mixture(probabilities[:500], labels[:500], base[500:], min_labels=0)
    assert chosen.neighbours > 0


def _with_hub(n_texts, seed):
    """Texts that say little, and a label 0 that half of the other labels go with, and half exclude."""
    rng = np.random.default_rng(seed)
    labels = np.zeros((n_texts, 16), dtype=bool)
    labels[:, 0] = rng.random(n_texts) < 0.5
    share = np.where(labels[:, :1] == (np.arange(15) < 8), 0.5, 0.03)
    labels[:, 1:] = rng.random((n_texts, 15)) < share
    return 1 / (1 + np.exp(0.5 - 0.3 * (2 * labels - 1) - rng.normal(0, 1, labels.shape))), labels


def test_hubs_are_taken_if_a_label_says_much_about_others():
    training, validation, calibration, test = (_with_hub(n, seed) for seed, n in enumerate((300, 600, 199, 300)))
    chosen = choose_mixture(*validation, training[1], min_labels=0)
    assert chosen.hubs.labels[0] == 0
    sets = [
        ConformalLabelSets(measure, 0).calibrate(*calibration).predict_set(test[0], significance=0.05)
        for measure in (chosen, chosen.reweighted(hubs=None))
    ]
    assert sets[0].sizes().mean() < 0.9 * sets[1].sizes().mean()
    assert 1.0 - sets[0].contains(test[1]).mean() < 0.1


def test_hubs_are_left_out_if_labels_are_independent():
    rng = np.random.default_rng(0)
    given = rng.uniform(0.02, 0.4, (900, 8))
    labels = rng.random(given.shape) < given
    assert choose_mixture(given[:600], labels[:600], labels[600:], min_labels=0).hubs is None


def test_what_does_not_carry_over_is_refused(monkeypatch):
    training, validation = _texts(100, 0), _texts(90, 1)
    monkeypatch.setattr(folds, "_LEAST_GAIN", 0.999)
    lines = []
    refused = choose_mixture(*validation, training[1], progress=lines.append)
    assert refused.weight == 0.0
    assert "not confirmed" in lines[-1]
    plain = ConformalLabelSets(LogLoss()).calibrate(*validation)
    same = ConformalLabelSets(refused).calibrate(*validation)
    assert same.calibration_.totals.tolist() == plain.calibration_.totals.tolist()
    assert same.predict(training[0]).label_sets == plain.predict(training[0]).label_sets


def test_sizes_may_be_larger_at_no_level():
    smaller = folds.Sizes(np.full((2, 3), 1.0), np.full((2, 3), 10.0))
    plain = folds.Sizes(np.full((2, 3), 2.0), np.full((2, 3), 10.0))
    assert smaller.failures(plain) == []
    one_larger = np.full((2, 3), 1.0)
    one_larger[1, 2] = 2.1
    assert folds.Sizes(one_larger, smaller.means).failures(plain) == ["levels"]
    assert folds.Sizes(smaller.logs, smaller.means + 0.1).failures(plain) == ["means"]
    one_larger[1, 2] = np.nan  # a level with too few texts says nothing
    assert folds.Sizes(one_larger, smaller.means).failures(plain) == []


def test_constraints_are_obeyed():
    training, validation = _texts(100, 0), _texts(90, 1)
    rules = LabelConstraints(exclusions=[(0, 2)])
    assert choose_mixture(*validation, training[1], constraints=rules).weight > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"probabilities": np.full((59, 6), 0.5), "labels": np.ones((59, 6))}, "60 validation texts or more"),
        ({"significances": ()}, "at least one level"),
        ({"significances": (1.5,)}, "significance"),
        ({"training_labels": np.ones((5, 4))}, "must have 6 labels"),
    ],
)
def test_wrong_arguments_are_refused(change, message):
    probabilities, labels = _texts(70, 0)
    given = {"probabilities": probabilities, "labels": labels, "training_labels": labels, **change}
    with pytest.raises(InvalidInputError, match=message):
        choose_mixture(**given)
