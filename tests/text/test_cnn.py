"""The CNNs: the paper's layers, learning, batches that change nothing, saving in another process."""

from __future__ import annotations

import json
import struct
import subprocess
import sys

import numpy as np
import pytest
import torch

from surelabel.exceptions import ArtifactError, DataWarning, TrainingError
from surelabel.text import CnnSettings, load, make
from surelabel.text.cnn import ConvolutionalNetwork
from surelabel.text.training import Averaged

SMALL = {"embedding_size": 12, "n_kernels": 8, "n_hidden": 32, "batch_size": 8, "learning_rate": 5e-3}


@pytest.fixture(scope="module")
def fitted(topical):
    training, validation = topical
    return make("randinit", **SMALL, epochs=12).fit(*training, validation=validation)


def test_layers_are_the_papers():
    network = ConvolutionalNetwork(CnnSettings(), n_words=50, n_labels=7, embedding_size=300)
    shapes = {name: tuple(parameter.shape) for name, parameter in network.named_parameters()}
    assert shapes == {
        "embedding.weight": (50, 300),
        "convolution.weight": (40, 16),
        "convolution.bias": (40,),
        "hidden.weight": (256, 300 * 40),
        "hidden.bias": (256,),
        "output.weight": (7, 256),
        "output.bias": (7,),
    }


def test_is_what_torch_layers_compute():
    settings = CnnSettings(dropout=0, word_dropout=0)
    network = ConvolutionalNetwork(settings, n_words=50, n_labels=7, embedding_size=20)
    ids = torch.randint(1, 50, (3, 40))
    x = network.embedding(ids).unsqueeze(1)
    convolution = torch.nn.Conv2d(1, 40, (16, 1))
    convolution.weight.data = network.convolution.weight.data[:, None, :, None]
    convolution.bias.data = network.convolution.bias.data
    x = torch.nn.functional.pad(x, (0, 0, 0, 15))
    pooled = torch.nn.MaxPool2d((40, 1))(convolution(x)).squeeze(2).transpose(1, 2).flatten(1)
    expected = network.output(torch.relu(network.hidden(pooled)))
    found = network(ids, torch.tensor([40, 40, 40]))["logits"]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_learns(fitted, topical):
    _, (texts, labels) = topical
    probabilities = fitted.predict_proba(texts)
    assert probabilities.dtype == np.float64
    assert ((probabilities >= 0.5) == labels).mean() > 0.75
    best = max(epoch["validation_micro_f1"] for epoch in fitted.history_)
    predicted = probabilities >= 0.5
    found = 2 * (predicted & labels).sum() / (predicted.sum() + labels.sum())
    assert found == pytest.approx(best, abs=1e-9), "the best epoch's weights are the ones kept"


def test_batches_change_nothing(fitted, topical):
    _, (texts, _) = topical
    texts = [*texts, "wheat", "gold " * 500]
    probabilities = fitted.predict_proba(texts)
    for batch_size in (1, 3, 100):
        assert np.abs(fitted.predict_proba(texts, batch_size=batch_size) - probabilities).max() < 1e-6
    backwards = fitted.predict_proba(texts[::-1])[::-1]
    assert np.abs(backwards - probabilities).max() < 1e-6


def test_saved_is_the_same_in_another_process(fitted, topical, tmp_path):
    _, (texts, _) = topical
    fitted.save(tmp_path / "saved")
    assert np.abs(load(tmp_path / "saved").predict_proba(texts) - fitted.predict_proba(texts)).max() < 1e-6
    code = (
        "import sys, numpy as np; from surelabel.text import load;"
        "np.save(sys.argv[2], load(sys.argv[1]).predict_proba(sys.stdin.read().split('|'), batch_size=5));"
        "assert not {'accelerate', 'transformers'} & set(sys.modules)"  # only training needs them, and seconds for it
    )
    command = [sys.executable, "-c", code, str(tmp_path / "saved"), str(tmp_path / "found.npy")]
    subprocess.run(command, input="|".join(texts), text=True, check=True, timeout=120)
    assert np.abs(np.load(tmp_path / "found.npy") - fitted.predict_proba(texts)).max() < 1e-6
    assert sorted(path.suffix for path in (tmp_path / "saved").iterdir()) == [".json", ".json", ".safetensors"]


def test_empty_and_huge_texts(fitted):
    with pytest.warns(DataWarning, match="1 of 2 texts"):
        probabilities = fitted.predict_proba(["", "wheat corn " * 1_000_000])
    assert np.isfinite(probabilities).all()


def test_seed_decides_everything(topical):
    training, validation = topical
    short = {**SMALL, "epochs": 2}
    one, same, other = (
        make("randinit", **short, seed=seed).fit(*training, validation=validation).predict_proba(validation[0])
        for seed in (1, 1, 2)
    )
    assert np.array_equal(one, same)
    assert not np.allclose(one, other)


def test_plain_convolution_has_the_same_loss_curve(topical):
    training, validation = topical
    curves = []
    for fused in (True, False):
        classifier = make("randinit", **SMALL, epochs=3, fused=fused).fit(*training, validation=validation)
        curves.append([epoch["training_loss"] for epoch in classifier.history_])
    assert curves[0] == pytest.approx(curves[1], rel=1e-3)


def test_validation_is_set_aside_where_none_is_given(topical):
    training, _ = topical
    classifier = make("randinit", **SMALL, epochs=1).fit(*training)
    assert len(classifier.history_) == 1


def test_stops_when_patience_is_out(topical):
    training, validation = topical
    nothing_to_learn = np.random.default_rng(0).random((40, 3)) < 0.5
    classifier = make("randinit", **SMALL, epochs=40, patience=2)
    classifier.fit(*training, validation=(validation[0], nothing_to_learn))
    scores = [epoch["validation_micro_f1"] for epoch in classifier.history_]
    assert len(scores) < 40
    assert max(scores) == scores[-3]


def test_training_leaves_random_numbers_alone(topical):
    training, validation = topical
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    make("randinit", **SMALL, epochs=1).fit(*training, validation=validation)
    assert torch.equal(torch.rand(1), expected)


def test_divergence_is_said(topical):
    training, validation = topical
    settings = {**SMALL, "learning_rate": 10.0, "epochs": 1}
    classifier = make("randinit", **settings)
    broken = ConvolutionalNetwork.forward

    def forward(self, *inputs, **named):
        found = broken(self, *inputs, **named)
        return {name: value * float("nan") for name, value in found.items()}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ConvolutionalNetwork, "forward", forward)
        with pytest.raises(TrainingError, match="diverged"):
            classifier.fit(*training, validation=validation)


def test_average_moves_towards_the_network():
    network = torch.nn.Linear(1, 1, bias=False)
    torch.nn.init.zeros_(network.weight)
    averaged = Averaged(network)
    torch.nn.init.ones_(network.weight)
    averaged.update(0.75, step=1000)
    assert averaged.average.weight.item() == pytest.approx(0.25)
    averaged.update(0.75, step=0)
    assert averaged.average.weight.item() == pytest.approx(0.25 + 0.9 * 0.75)


@pytest.mark.parametrize(
    "claimed",
    [
        {"dtype": "F32", "shape": [10**5, 10**5], "data_offsets": [0, 24]},
        {"dtype": "F32", "shape": [10**5, 10**5], "data_offsets": [0, 4 * 10**10]},
        {"dtype": "F32", "shape": [6], "data_offsets": [24, 0]},
        {"dtype": "F32", "shape": [6], "data_offsets": [-24, 0]},
        {"dtype": "PY", "shape": [6], "data_offsets": [0, 24]},
        {"dtype": "F32", "shape": "six", "data_offsets": [0, 24]},
        [1],
    ],
)
def test_tensors_that_claim_more_than_there_is_are_refused(fitted, tmp_path, load_changed, claimed):
    fitted.save(tmp_path / "saved")
    header = json.dumps({"embedding.weight": claimed}).encode()
    content = struct.pack("<Q", len(header)) + header + bytes(24)
    (tmp_path / "saved" / "weights.safetensors").write_bytes(content)
    with pytest.raises(ArtifactError, match=r"damaged: .*header"):
        load_changed(tmp_path / "saved")


@pytest.mark.parametrize("header", [b"[1]", b"{", b"[" * 50_000, b""])
def test_weights_that_are_no_tensors_are_refused(fitted, tmp_path, load_changed, header):
    fitted.save(tmp_path / "saved")
    for length in (len(header), 10 * 2**30):
        content = struct.pack("<Q", length) + header
        for cut in (content, content[:1], b""):
            (tmp_path / "saved" / "weights.safetensors").write_bytes(cut)
            with pytest.raises(ArtifactError, match="damaged"):
                load_changed(tmp_path / "saved")
