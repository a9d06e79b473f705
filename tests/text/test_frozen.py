"""Frozen lower layers: both parts are the whole, kept states are theirs, training leaves them alone."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn
from transformers import AutoModel

from surelabel.exceptions import InvalidInputError
from surelabel.text import frozen, make
from surelabel.text.base import load

IDS = [np.array(row, dtype=np.int32) for row in ([2, 5, 6, 7, 3], [2, 8, 3], [2, 9, 10, 3])]
SMALL = {"batch_size": 8, "precision": "float32", "head_learning_rate": 3e-2, "encoder_learning_rate": 3e-3}


@pytest.fixture
def encoder(tiny_encoder):
    return AutoModel.from_pretrained(tiny_encoder).eval()


@pytest.mark.parametrize("n_frozen", [0, 1, 2])
def test_lower_and_upper_layers_make_the_whole(encoder, n_frozen):
    ids, mask = torch.tensor([[2, 5, 6, 3], [2, 7, 3, 0]]), torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0]])
    whole = encoder(input_ids=ids, attention_mask=mask).last_hidden_state
    with frozen.lower_only(encoder, n_frozen):
        states = encoder(input_ids=ids, attention_mask=mask).last_hidden_state
    with frozen.upper_only(encoder, n_frozen):
        joined = encoder(inputs_embeds=states, attention_mask=mask).last_hidden_state
    torch.testing.assert_close(joined, whole)
    assert n_frozen == 2 or not torch.allclose(states, whole)
    torch.testing.assert_close(encoder(input_ids=ids, attention_mask=mask).last_hidden_state, whole)


def test_kept_states_are_those_of_each_text_alone(encoder, tmp_path):
    kept = frozen.keep_states(encoder, 1, IDS, tmp_path / "states.npy", padding=0, bfloat16=False)
    with torch.inference_mode(), frozen.lower_only(encoder, 1):
        for text, ids in enumerate(IDS):
            states = encoder(input_ids=torch.from_numpy(ids[None]).long()).last_hidden_state[0]
            assert np.abs(kept[text] - states.numpy()).max() < 5e-3  # half precision
    reordered = kept.in_order(np.array([2, 0, 1]))
    assert np.array_equal(reordered[0], kept[2])
    assert np.array_equal(reordered[2], kept[1])


def test_kept_states_are_read_again(encoder, tmp_path):
    file = tmp_path / "states.npy"
    first = np.array(frozen.keep_states(encoder, 1, IDS, file, padding=0, bfloat16=False).values)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.zero_()
    assert np.array_equal(frozen.keep_states(encoder, 1, IDS, file, padding=0, bfloat16=False).values, first)
    with pytest.raises(InvalidInputError, match="other texts"):
        frozen.keep_states(encoder, 1, IDS[:2], file, padding=0, bfloat16=False)


def test_names_tell_texts_and_layers_apart():
    names = {frozen.states_name("a", IDS), frozen.states_name("b", IDS), frozen.states_name("a", IDS[:2])}
    joined = [np.array([2, 5], dtype=np.int32), np.array([6], dtype=np.int32)]
    apart = [np.array([2], dtype=np.int32), np.array([5, 6], dtype=np.int32)]
    names |= {frozen.states_name("a", joined), frozen.states_name("a", apart)}
    assert len(names) == 5


def test_training_changes_only_what_lies_above(topical, tiny_encoder, tmp_path):
    training, validation = topical
    settings = {**SMALL, "model": str(tiny_encoder), "epochs": 6, "pooling": "mean", "frozen_layers": 1}
    classifier = make("bert", **settings).fit(*training, validation=validation, checkpoint_folder=tmp_path / "kept")
    before = AutoModel.from_pretrained(tiny_encoder)
    after = classifier._network.encoder
    changed = {
        name
        for name, parameter in before.named_parameters()
        if "pooler" not in name and not torch.equal(parameter, after.get_parameter(name))
    }
    upper = {name for name, _ in before.named_parameters() if name.startswith("encoder.layer.1.")}
    assert changed
    assert changed <= upper
    assert len(list((tmp_path / "kept").glob("states-*.npy"))) == 2
    probabilities = classifier.predict_proba(validation[0])
    assert ((probabilities >= 0.5) == validation[1]).mean() > 0.6
    classifier.save(tmp_path / "saved")
    assert np.abs(load(tmp_path / "saved").predict_proba(validation[0]) - probabilities).max() < 1e-5


def test_the_validation_figure_is_that_of_the_whole_network(topical, tiny_encoder):
    """What training measures from kept states is what prediction, which runs all layers, gives."""
    training, (texts, labels) = topical
    settings = {**SMALL, "model": str(tiny_encoder), "epochs": 1, "pooling": "mean", "frozen_layers": 1}
    classifier = make("bert", **settings).fit(*training, validation=(texts, labels))
    probabilities = np.clip(classifier.predict_proba(texts), 1e-12, 1 - 1e-12)
    loss = -np.where(labels, np.log(probabilities), np.log(1 - probabilities)).mean()
    assert abs(classifier.history_[-1]["validation_loss"] - loss) < 5e-3


def test_more_layers_than_there_are(topical, tiny_encoder):
    training, _ = topical
    with pytest.raises(InvalidInputError, match=r"at most the model's number of layers, 2. Got 3"):
        make("bert", model=str(tiny_encoder), frozen_layers=3).fit(*training)


class _NormedLater(nn.Module):
    """An encoder with something between its layers and its end: its parts are not the whole."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    @property
    def embeddings(self):
        return self.inner.embeddings

    def forward(self, input_ids=None, inputs_embeds=None, attention_mask=None):
        found = self.inner(input_ids=input_ids, inputs_embeds=inputs_embeds, attention_mask=attention_mask)
        found.last_hidden_state = 2 * found.last_hidden_state
        return found


def test_an_encoder_whose_layers_cannot_run_apart(encoder):
    frozen.check_split(encoder, 1)
    with pytest.raises(InvalidInputError, match="_NormedLater cannot"):
        frozen.check_split(_NormedLater(copy.deepcopy(encoder)), 1)
