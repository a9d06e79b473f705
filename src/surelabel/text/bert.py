"""A transformers encoder with one sigmoid layer on top, fine-tuned as a whole (section 3.2 of the paper)."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from pathlib import Path
from typing import Any

import torch
from torch import nn

from surelabel.text.base import History
from surelabel.text.batching import Examples, mask_of
from surelabel.text.encoders import pooled, pretrained, read_encoder, read_pooling, write_encoder
from surelabel.text.frozen import blocks_of, check_split, freeze_lower, keep_states, states_name, upper_only
from surelabel.text.inputs import FitOptions, LabelledTexts
from surelabel.text.neural import NeuralClassifier, loss_and_logits, start_bias
from surelabel.text.quantising import TOKENS_PER_BATCH, with_int8
from surelabel.text.settings import BertSettings
from surelabel.text.tokenisation import frequent_words, read_words, shares_of_words
from surelabel.text.training import Plan, first_process_first, passing_folder, processor_has_bfloat16

_WORDS = "words.json"
_PAPER = {"encoder_learning_rate": 2.5e-5, "layer_growth": 1 / 0.9, "head_learning_rate": 4e-4}
_SENTENCE = {"encoder_learning_rate": 1e-4, "layer_growth": 1.0, "head_learning_rate": 3e-3}


class EncoderNetwork(nn.Module):
    """Encoder, pooling of its last layer, dropout, one logit per label; the lowest `n_frozen` layers do not learn."""

    def __init__(self, encoder: Any, pooling: str, n_labels: int, dropout: float, n_frozen: int = 0) -> None:
        super().__init__()
        # The encoder's own pooler is not used here; several processes would wait for its gradients.
        encoder.pooler = None
        self.encoder, self.pooling, self.dropout, self.n_frozen = encoder, pooling, dropout, n_frozen
        self.head = nn.Linear(encoder.config.hidden_size, n_labels)
        nn.init.normal_(self.head.weight, std=0.02)

    def forward(
        self,
        input_ids: torch.Tensor,
        lengths: torch.Tensor,
        labels: torch.Tensor | None = None,
        states: torch.Tensor | None = None,
    ) -> dict[str, torch.Tensor]:
        """Return logits (B, n_labels), and the loss if labels are given; `states` are those of the frozen layers."""
        mask = mask_of(input_ids, lengths)
        if states is None:
            states = self.encoder(input_ids=input_ids, attention_mask=mask.long()).last_hidden_state
        else:
            with upper_only(self.encoder, self.n_frozen):
                states = self.encoder(inputs_embeds=states, attention_mask=mask.long()).last_hidden_state
        assert states is not None
        vectors = nn.functional.dropout(pooled(states, mask, self.pooling), self.dropout, self.training)
        return loss_and_logits(self.head(vectors), labels)


def layer_rates(
    network: EncoderNetwork, lowest: float, growth: float, head: float
) -> list[tuple[list[nn.Parameter], float]]:
    """Return parameters with their learning rates: lowest * growth**i for layer i of the encoder, then the head's."""
    # The embeddings share the rate of the lowest layer, and what comes after the last layer shares the last one's.
    layers = blocks_of(network.encoder)
    in_layers = {id(parameter): place for place, layer in enumerate(layers) for parameter in layer.parameters()}
    groups: list[list[nn.Parameter]] = [[] for _ in range(max(1, len(layers)))]
    place = 0
    for parameter in network.encoder.parameters():
        place = in_layers.get(id(parameter), place)
        groups[place].append(parameter)
    rates = [(group, lowest * growth**place) for place, group in enumerate(groups)]
    return [*rates, (list(network.head.parameters()), head)]


class BertClassifier(NeuralClassifier):
    """An encoder (the `model` of its settings) fine-tuned to the labels.

    Examples
    --------
    >>> from surelabel.text import BertClassifier, BertSettings
    >>> texts = ["wheat and corn", "the dollar fell", "corn prices", "dollar and yen"] * 5
    >>> labels = [[1, 0], [0, 1], [1, 0], [0, 1]] * 5
    >>> settings = BertSettings(model="minilm", max_tokens=8, epochs=1)
    >>> classifier = BertClassifier(settings).fit(texts, labels, progress=False)
    >>> classifier.predict_proba(["corn and wheat"]).shape
    (1, 2)
    """

    kind = "bert"
    settings_class = BertSettings
    # As many tokens as stay in a processor's cache from layer to layer; more are slower per token.
    _tokens_a_batch = 1_024
    _words: frozenset[str] | None
    # The network that was quantised, and what came of it.
    _quantised: tuple[nn.Module, nn.Module] | None = None

    def _prepare(self, training: LabelledTexts) -> tuple[torch.optim.Optimizer, Plan]:
        settings = self.settings
        encoder, self._tokenizer, self._pooling, self._padding = pretrained(
            settings.model, settings.max_tokens, settings.pooling
        )
        self._words = frequent_words(training.texts)
        self._network = self._network_around(encoder, training.labels.shape[1])
        if settings.frozen_layers:
            freeze_lower(encoder, settings.frozen_layers)
            check_split(encoder, settings.frozen_layers)
        start_bias(self._network.head, settings.output_bias, training.labels)
        wants_bfloat16 = settings.precision == "bfloat16"
        if settings.precision == "auto":
            wants_bfloat16 = torch.cuda.is_bf16_supported() if torch.cuda.is_available() else processor_has_bfloat16()
        plan = self._plan(schedule="linear", warmup=settings.warmup, max_gradient=1.0, bfloat16=wants_bfloat16)
        return self._optimizer(self._network), plan

    def _network_around(self, encoder: Any, n_labels: int) -> EncoderNetwork:
        """Return an encoder with a new layer, by the settings."""
        settings = self.settings
        return EncoderNetwork(encoder, self._pooling, n_labels, settings.dropout, settings.frozen_layers)

    def _optimizer(self, network: EncoderNetwork) -> torch.optim.Optimizer:
        """Return Adam with a rate for each layer."""
        usual = _PAPER if self._pooling == "cls" else _SENTENCE
        lowest, growth, head = (
            usual[name] if getattr(self.settings, name) is None else getattr(self.settings, name) for name in usual
        )
        rates = layer_rates(network, lowest, growth, head)
        trained = [([one for one in parameters if one.requires_grad], rate) for parameters, rate in rates]
        groups = [{"params": parameters, "lr": rate} for parameters, rate in trained if parameters]
        return torch.optim.AdamW(groups, weight_decay=self.settings.weight_decay, fused=True)

    def _train(
        self, optimizer: torch.optim.Optimizer, parts: tuple[Examples, Examples], plan: Plan, options: FitOptions
    ) -> tuple[nn.Module, History]:
        if not self.settings.frozen_layers:
            return super()._train(optimizer, parts, plan, options)
        with contextlib.ExitStack() as opened:
            folder = options.checkpoint_folder or opened.enter_context(passing_folder())
            folder.mkdir(parents=True, exist_ok=True)
            with first_process_first():
                kept = [self._with_states(part, folder, plan.bfloat16) for part in parts]
            return super()._train(optimizer, (kept[0], kept[1]), plan, options)

    def _with_states(self, part: Examples, folder: Path, bfloat16: bool) -> Examples:
        """Return examples with what the frozen layers make of them."""
        network, settings = self._network, self.settings
        assert isinstance(network, EncoderNetwork)
        n_frozen = settings.frozen_layers
        file = folder / states_name(json.dumps([settings.model, n_frozen, bfloat16]), part.ids)
        states = keep_states(network.encoder, n_frozen, part.ids, file, padding=self._padding, bfloat16=bfloat16)
        return dataclasses.replace(part, states=states)

    def _embedding(self) -> nn.Module:
        layer: nn.Module = self._network.get_submodule("encoder").get_input_embeddings()  # type: ignore[operator]
        return layer

    def _known(self, texts: list[str]) -> list[float]:
        # Of bundles of older versions the training words are not known, but the pieces of a word are.
        return super()._known(texts) if self._words is None else shares_of_words(texts, self._words)

    def _predicting(self) -> tuple[nn.Module, int]:
        if self.settings.quantise == "none":
            return super()._predicting()
        # The weights that are saved stay as they were trained; rounding them again gives the same whole numbers.
        if self._quantised is None or self._quantised[0] is not self._network:
            # A new network: one that was trained may have a forward of its own, which would not be quantised.
            encoder = with_int8(self._network.get_submodule("encoder"))
            with torch.random.fork_rng():
                quantised = self._network_around(encoder, self.n_labels_)
            quantised.head.load_state_dict(self._network.get_submodule("head").state_dict())
            self._quantised = self._network, quantised.requires_grad_(False)
        return self._quantised[1], TOKENS_PER_BATCH

    def _write(self, folder: Path) -> None:
        super()._write(folder)
        if self._words is not None:
            (folder / _WORDS).write_text(json.dumps(sorted(self._words), ensure_ascii=False), encoding="utf-8")
        write_encoder(folder, self._network.get_submodule("encoder"), self._pooling, self._padding)

    def _rebuild(self, folder: Path) -> nn.Module:
        self._pooling, self._padding = read_pooling(folder)
        self._words = read_words(folder / _WORDS)
        return self._network_around(read_encoder(folder), self.n_labels_)
