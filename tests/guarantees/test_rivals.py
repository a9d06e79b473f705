"""What each rival guarantees, on exchangeable texts: means over many draws, allowed three standard errors."""

import numpy as np
import pytest

from surelabel import LogLoss
from surelabel.rivals import (
    BonferroniRelevance,
    CrossConformalRidge,
    InstanceReproduction,
    LabelPowerset,
    PerLabelRelevance,
    RecallControl,
    SeenPowerset,
    TransductiveRidge,
)

LEVEL = 0.2
N_LABELS = 4


def draw(rng, n_texts):
    """Texts whose labels are told by their features, with a classifier that is too sure; all have a label."""
    features = rng.normal(size=(3 * n_texts + 50, N_LABELS)) + rng.normal(size=(3 * n_texts + 50, 1))
    truth = 1 / (1 + np.exp(-1.5 * features + 1))
    labels = rng.random(truth.shape) < truth
    kept = np.flatnonzero(labels.any(axis=1))[:n_texts]
    return 1 / (1 + np.exp(-4 * features[kept] + 2)), features[kept], labels[kept]


def mean_loss(rival_of, loss, *, n_draws, n_calibration, n_new=40, use_features=False):
    """Mean and standard error over draws of a loss of (sets, labels)."""
    rng = np.random.default_rng(0)
    losses = []
    for _ in range(n_draws):
        probabilities, features, labels = draw(rng, n_calibration + n_new)
        given = features if use_features else probabilities
        rival = rival_of(rng).calibrate(given[:n_calibration], labels[:n_calibration])
        sets = rival.predict_set(given[n_calibration:], significance=LEVEL)
        losses.append(loss(sets, labels[n_calibration:]))
    return float(np.mean(losses)), float(np.std(losses) / np.sqrt(n_draws))


def missed(sets, labels):
    return 1 - sets.contains(labels).mean()


def worst_label(sets, labels):
    wrong = np.where(labels, ~sets.allowed[:, :, 1], ~sets.allowed[:, :, 0])
    return wrong[:, 1].mean()


def missed_labels(sets, labels):
    return (labels & ~sets.allowed[:, :, 1]).sum() / labels.sum()


def missed_recall(sets, labels):
    return ((labels & ~sets.allowed[:, :, 1]).sum(axis=1) / labels.sum(axis=1)).mean()


def seen(rng):
    """All label-sets but two rare ones."""
    rows = np.array([[i >> k & 1 for k in range(N_LABELS)] for i in range(1, 2**N_LABELS)])
    return SeenPowerset(rows[[i for i in range(len(rows)) if i not in (8, 5)]], LogLoss())


@pytest.mark.parametrize(
    ("rival_of", "loss", "bound", "settings"),
    [
        (lambda rng: LabelPowerset(LogLoss()), missed, LEVEL, {"n_calibration": 49}),
        (seen, missed, LEVEL, {"n_calibration": 49}),
        (lambda rng: BonferroniRelevance(), missed, LEVEL, {"n_calibration": 49}),
        (lambda rng: PerLabelRelevance(), worst_label, LEVEL, {"n_calibration": 49}),
        (lambda rng: InstanceReproduction(), missed_labels, LEVEL + 0.01, {"n_calibration": 200}),
        (lambda rng: TransductiveRidge(), missed, LEVEL, {"n_calibration": 24, "n_new": 10, "use_features": True}),
        (lambda rng: CrossConformalRidge(), missed, 2 * LEVEL, {"n_calibration": 24, "use_features": True}),
    ],
    ids=["powerset", "seen", "Bonferroni", "per label", "reproduction", "transductive", "cross-conformal"],
)
def test_the_guarantee_holds(rival_of, loss, bound, settings):
    mean, error = mean_loss(rival_of, loss, n_draws=200, **settings)
    assert mean <= bound + 3 * error
    # And not by leaving out nothing: the test can fail.
    assert mean > 0.02


def test_recall_is_controlled():
    pytest.importorskip("mapie")
    mean, error = mean_loss(lambda rng: RecallControl(), missed_recall, n_draws=25, n_calibration=100, n_new=100)
    assert mean <= LEVEL + 3 * error
    assert mean > 0.1


def test_per_label_sets_and_recall_do_not_guarantee_label_sets():
    """Why they are called weaker: at the same level they miss whole label-sets more often."""
    for rival_of in (lambda rng: PerLabelRelevance(), lambda rng: InstanceReproduction()):
        mean, error = mean_loss(rival_of, missed, n_draws=60, n_calibration=99)
        assert mean > LEVEL + 3 * error
