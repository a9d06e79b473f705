"""int8 encoders: by hand, near float32, each text by itself, saved and calibrated as they are."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from transformers import AutoModel

from surelabel.exceptions import InvalidInputError
from surelabel.text import load, make
from surelabel.text.quantising import Int8Linear, with_int8

SMALL = {"batch_size": 8, "precision": "float32", "head_learning_rate": 3e-2, "encoder_learning_rate": 3e-3}


def _linear(weight, bias):
    linear = nn.Linear(len(weight[0]), len(weight), bias=bias is not None)
    with torch.no_grad():
        linear.weight.copy_(torch.tensor(weight))
        if bias is not None:
            linear.bias.copy_(torch.tensor(bias))
    return linear


def test_by_hand():
    """Scales 2/127 and 1/127; inputs 4/127 and 1/127: whole numbers, their products, and back."""
    layer = Int8Linear(_linear([[2.0, -1.0], [0.25, 1.0]], [0.5, 0.0]))
    assert layer.weight.tolist() == [[127, 32], [-64, 127]]  # -63.5 rounds to the even -64, 31.75 to 32
    inputs = torch.tensor([[4.0, 1.0], [-1.0, 0.5]])
    whole = np.array([[127, 32], [-127, 64]])  # 31.75, 63.5
    sums = whole @ np.array([[127, 32], [-64, 127]])
    expected = sums * np.array([[4 / 127], [1 / 127]]) * np.array([2 / 127, 1 / 127]) + [0.5, 0.0]
    assert np.allclose(layer(inputs), expected, rtol=1e-6)


def test_zeros_and_no_bias():
    layer = Int8Linear(_linear([[0.0, 0.0], [1.0, 1.0]], None))
    assert layer(torch.zeros(1, 2)).tolist() == [[0.0, 0.0]]
    assert torch.allclose(layer(torch.tensor([[1.0, 1.0]])), torch.tensor([[0.0, 2.0]]))


def test_rows_do_not_depend_on_each_other():
    torch.manual_seed(0)
    layer = Int8Linear(nn.Linear(16, 8))
    inputs = torch.randn(3, 5, 16) * torch.tensor([1.0, 100.0, 0.01]).reshape(3, 1, 1)
    together = layer(inputs)
    assert together.shape == (3, 5, 8)
    for row in range(3):
        assert torch.equal(layer(inputs[row : row + 1]), together[row : row + 1])


def test_an_encoder_stays_near_and_the_first_as_it_was(tiny_encoder):
    encoder = AutoModel.from_pretrained(tiny_encoder).eval()
    before = {name: values.clone() for name, values in encoder.state_dict().items()}
    quantised = with_int8(encoder)
    ids, mask = torch.tensor([[2, 5, 6, 7, 3]]), torch.ones(1, 5, dtype=torch.long)
    exact, near = (one(input_ids=ids, attention_mask=mask).last_hidden_state for one in (encoder, quantised))
    assert 0 < (exact - near).abs().max() < 0.1
    assert nn.functional.cosine_similarity(exact.mean(1), near.mean(1)).item() > 0.99
    assert not any(isinstance(module, nn.Linear) for module in quantised.modules())
    assert all(torch.equal(values, before[name]) for name, values in encoder.state_dict().items())


@pytest.fixture(scope="module", params=["float32", "bfloat16"])
def fitted(request, topical, tiny_encoder):
    training, validation = topical
    settings = {**SMALL, "model": str(tiny_encoder), "epochs": 6, "pooling": "mean", "quantise": "int8"}
    settings["precision"] = request.param
    return make("bert", **settings).fit(*training, validation=validation)


def test_bert_predicts_with_it(fitted, topical, tmp_path):
    _, (texts, _) = topical
    probabilities = fitted.predict_proba(texts)
    exact = make("bert", model="x", pooling="mean")
    exact._network, exact._tokenizer, exact._padding = fitted._network, fitted._tokenizer, fitted._padding
    exact.n_labels_ = fitted.n_labels_
    difference = np.abs(exact.predict_proba(texts) - probabilities)
    assert 2e-6 < difference.max() < 0.1  # rounding in float32 makes 1e-7
    for batch_size in (1, 7, 100):
        assert np.abs(fitted.predict_proba(texts, batch_size=batch_size) - probabilities).max() < 1e-5
    fitted.save(tmp_path / "saved")
    assert np.abs(load(tmp_path / "saved").predict_proba(texts) - probabilities).max() < 1e-6


def test_training_again_quantises_again(topical, tiny_encoder):
    training, validation = topical
    settings = {**SMALL, "model": str(tiny_encoder), "pooling": "mean", "quantise": "int8"}
    classifier = make("bert", **settings, epochs=2).fit(*training, validation=validation)
    first = classifier.predict_proba(validation[0])
    classifier.fit(training[0], 1 - training[1], validation=(validation[0], 1 - validation[1]))
    assert np.abs(classifier.predict_proba(validation[0]) - first).max() > 0.01


def test_hybrid_keeps_its_vectors_apart(topical, tiny_encoder, tmp_path, monkeypatch):
    monkeypatch.setenv("SURELABEL_CACHE", str(tmp_path / "cache"))
    training, validation = topical
    vectors = {}
    for quantise in ("none", "int8"):
        classifier = make("hybrid", model=str(tiny_encoder), quantise=quantise)
        classifier.fit(*training, validation=validation)
        vectors[quantise] = classifier._embedder(validation[0])
        classifier.save(tmp_path / quantise)
        again = load(tmp_path / quantise)
        assert np.array_equal(again.predict_proba(validation[0]), classifier.predict_proba(validation[0]))
    assert len(list((tmp_path / "cache" / "vectors").iterdir())) == 2
    difference = np.abs(vectors["none"] - vectors["int8"]).max()
    assert 0 < difference < 0.05


@pytest.mark.parametrize("kind", ["bert", "hybrid"])
def test_other_numbers_are_refused(kind):
    with pytest.raises(InvalidInputError, match=r"'quantise' setting of .* must be one of none, int8. Got 'int4'"):
        make(kind, quantise="int4")
