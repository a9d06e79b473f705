"""The loss that balances rare labels."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from surelabel.exceptions import InvalidInputError
from surelabel.text import load, make
from surelabel.text.losses import BalancedLoss, loss_and_logits

# Label 0 has 8 texts of 10, label 1 has 2; text 9 has both, texts 7 and 8 none and label 1 alone.
LABELS = np.array([[1, 0]] * 7 + [[0, 0], [0, 1], [1, 1]], dtype=bool)


def by_hand(logits, labels, counts, n_texts):
    """The formula of the docstring, number by number."""
    total = 0.0
    for z, y in zip(logits, labels, strict=True):
        beside = sum(has / n for has, n in zip(y, counts, strict=True))
        for score, has, n in zip(z, y, counts, strict=True):
            rarity = (1 / n) / beside if beside else math.inf
            weight = 0.1 + 1 / (1 + math.exp(-10 * (rarity - 0.9)))
            shifted = score - 0.05 * math.log((n_texts - n + 0.5) / (n + 0.5))
            total += weight * (math.log1p(math.exp(-shifted)) if has else math.log1p(math.exp(2 * shifted)) / 2)
    return total / logits.size


def test_is_what_the_formula_says():
    logits = np.array([[0.5, -1.0], [2.0, 0.3], [-0.7, 1.2], [0.0, -3.0]])
    labels = np.array([[1, 0], [1, 1], [0, 1], [0, 0]])
    loss = BalancedLoss(LABELS)(torch.tensor(logits).float(), torch.tensor(labels).float())
    assert float(loss) == pytest.approx(by_hand(logits, labels, (8, 2), 10), rel=1e-5)


def test_a_frequent_label_beside_a_rare_one_counts_little():
    loss = BalancedLoss(LABELS)
    alone, beside = torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 1.0]])

    def pull(labels):
        logits = torch.zeros(1, 2, requires_grad=True)
        loss(logits, labels).backward()
        return -float(logits.grad[0, 0])

    # r = 1 alone and (1/8) / (1/8 + 1/2) = 0.2 beside the rare one.
    expected = (0.1 + 1 / (1 + math.exp(7))) / (0.1 + 1 / (1 + math.exp(-1)))
    assert pull(beside) / pull(alone) == pytest.approx(expected, rel=1e-4)


def test_gradients_are_those_of_finite_differences():
    random = np.random.default_rng(0)
    loss = BalancedLoss(LABELS).double()
    logits = torch.tensor(random.normal(size=(5, 2)), requires_grad=True)
    labels = torch.tensor(random.integers(0, 2, (5, 2))).double()
    assert torch.autograd.gradcheck(lambda z: loss(z, labels), (logits,))


def test_labels_of_no_text_and_of_all_texts_have_finite_losses():
    labels = np.array([[True, False]] * 4)
    loss = BalancedLoss(labels)(torch.zeros(4, 2), torch.tensor(labels).float())
    assert torch.isfinite(loss)


def test_the_cross_entropy_is_what_it_was():
    logits, labels = torch.tensor([[0.5, -1.0]]), torch.tensor([[1.0, 0.0]])
    expected = (math.log1p(math.exp(-0.5)) + math.log1p(math.exp(-1.0))) / 2
    assert float(loss_and_logits(logits, labels)["loss"]) == pytest.approx(expected)
    assert set(loss_and_logits(logits, None)) == {"logits"}


def test_learns_resumes_and_is_saved(topical, tmp_path):
    (texts, labels), validation = topical
    settings = {"embedding_size": 8, "n_kernels": 8, "n_hidden": 16, "batch_size": 8, "epochs": 6, "seed": 3}
    settings |= {"learning_rate": 1e-2, "averaging": 0.0}
    plain = make("randinit", **settings).fit(texts, labels, validation=validation)
    balanced = make("randinit", loss="balanced", **settings)
    balanced.fit(texts, labels, validation=validation, checkpoint_folder=tmp_path / "run")
    probabilities = balanced.predict_proba(validation[0])
    assert not np.allclose(probabilities, plain.predict_proba(validation[0]))
    right, wrong = probabilities[validation[1]], probabilities[~validation[1]]
    assert right.mean() > wrong.mean() + 0.1
    again = make("randinit", loss="balanced", **settings)
    again.fit(texts, labels, validation=validation, checkpoint_folder=tmp_path / "run")
    assert np.array_equal(again.predict_proba(validation[0]), probabilities)
    balanced.save(tmp_path / "saved")
    loaded = load(tmp_path / "saved")
    assert loaded.settings.loss == "balanced"
    assert np.array_equal(loaded.predict_proba(validation[0]), probabilities)


def test_an_encoder_takes_it_too(topical, tiny_encoder):
    (texts, labels), validation = topical
    settings = {"model": str(tiny_encoder), "epochs": 1, "precision": "float32", "seed": 0}
    one, other = (
        make("bert", loss=loss, **settings).fit(texts, labels, validation=validation).predict_proba(texts[:5])
        for loss in ("cross-entropy", "balanced")
    )
    assert not np.allclose(one, other)


def test_other_losses_are_refused():
    with pytest.raises(InvalidInputError, match="cross-entropy, balanced"):
        make("randinit", loss="focal")
