"""Base of the neural classifiers: encode, train, predict in batches of similar length, explain, write, read."""

from __future__ import annotations

import abc
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import safetensors.torch
import torch
from tokenizers import Tokenizer
from torch import nn

from surelabel._core.extras import require
from surelabel._core.validation import BoolArray, FloatArray
from surelabel.exceptions import ArtifactError
from surelabel.text.base import History, Labelled, TextClassifier
from surelabel.text.explain import Explanation, WordWeight
from surelabel.text.tokens import encode, encode_with_places, pad, padded_batches, read_tokenizer

if TYPE_CHECKING:
    from surelabel.text.training import Plan

_WEIGHTS, _TOKENIZER = "weights.safetensors", "tokenizer.json"


def start_bias(layer: nn.Linear, bias: float | None, labels: BoolArray) -> None:
    """Set an output layer's bias to a number, or to each label's log-odds in the training texts if None."""
    share = (labels.sum(axis=0) + 0.5) / (len(labels) + 1)
    odds = np.log(share / (1 - share)) if bias is None else np.full(len(share), bias)
    with torch.no_grad():
        layer.bias.copy_(torch.from_numpy(odds))


def with_loss(logits: torch.Tensor, labels: torch.Tensor | None) -> dict[str, torch.Tensor]:
    """Return what Trainer expects: logits, and the binary cross-entropy if labels are given."""
    if labels is None:
        return {"logits": logits}
    return {"loss": nn.functional.binary_cross_entropy_with_logits(logits.float(), labels), "logits": logits}


def read_network(make: Callable[[], nn.Module], weights: Path) -> nn.Module:
    """Make a network and read its weights; ArtifactError unless all are there and finite."""
    with torch.device("meta"):  # nothing is allocated
        claimed = sum(parameter.numel() * parameter.element_size() for parameter in make().parameters())
    if claimed > weights.stat().st_size:
        raise ArtifactError(f"{weights} must hold {claimed:,} bytes of weights by its settings, more than there are.")
    network = make()
    safetensors.torch.load_model(network, str(weights))
    if not all(bool(torch.isfinite(parameter).all()) for parameter in network.parameters()):
        raise ArtifactError(f"{weights} must hold finite weights.")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return network.to(device).eval().requires_grad_(False)


class NeuralClassifier(TextClassifier):
    """A tokenizer and a torch network. Subclasses make both."""

    needs_validation = True
    seed: int
    _tokens_a_batch: ClassVar[int] = 16_384
    _padding = 0
    _tokenizer: Tokenizer
    _network: nn.Module

    @abc.abstractmethod
    def _prepare(self, training: Labelled) -> tuple[torch.optim.Optimizer, Plan]:
        """Set `_tokenizer`, `_network` and `_padding` for training; return the optimizer and the plan."""

    @abc.abstractmethod
    def _rebuild(self, folder: Path) -> nn.Module:
        """Return the network of a saved classifier, before its weights are read."""

    @abc.abstractmethod
    def _embedding(self) -> nn.Module:
        """Return the layer that turns tokens into vectors."""

    def _fit(self, training: Labelled, validation: Labelled | None, work_folder: Path | None) -> History:
        assert validation is not None
        library = require("surelabel.text.training", "text", "Training a neural classifier")
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            optimizer, plan = self._prepare(training)
        parts = tuple((encode(self._tokenizer, part.texts), part.labels) for part in (training, validation))
        self._network, history = library.train(self._network, optimizer, parts, plan, work_folder)
        return list(history)

    def _plan(self, **how: Any) -> Plan:
        """Return how to train: by the settings, and `how`."""
        settings = self.get_params(deep=False)
        common = {name: settings[name] for name in ("batch_size", "epochs", "patience", "seed")}
        library = require("surelabel.text.training", "text", "Training a neural classifier")
        plan: Plan = library.Plan(settings={"kind": self.kind, **settings}, padding=self._padding, **common, **how)
        return plan

    def _predict(self, texts: list[str], batch_size: int | None) -> FloatArray:
        # In float32, whatever training was in: the probabilities of a text then depend on the other texts of its batch
        # in the last digits alone.
        ids = encode(self._tokenizer, texts)
        probabilities = np.empty((len(texts), self.n_labels_))
        device = next(self._network.parameters()).device
        max_tokens = self._tokens_a_batch if device.type == "cpu" else 65_536
        self._network.eval()
        with torch.inference_mode():
            for rows, inputs in padded_batches(ids, self._padding, max_tokens, batch_size, device=device):
                probabilities[rows] = torch.sigmoid(self._network(**inputs)["logits"].double()).cpu().numpy()
        return probabilities

    def _explain(self, text: str, number: int) -> Explanation:
        """Multiply each token's vector by the gradient of the label's log-odds; add up the tokens of a word."""
        encoding = encode_with_places(self._tokenizer, text)
        device = next(self._network.parameters()).device
        inputs = {name: tensor.to(device) for name, tensor in pad([encoding.ids], self._padding).items()}
        vectors: list[torch.Tensor] = []
        thread = threading.get_ident()

        def keep(_: nn.Module, __: Any, output: torch.Tensor) -> torch.Tensor:
            if threading.get_ident() != thread:  # another thread predicts with the same network
                return output
            vectors.append(output.detach().requires_grad_(True))
            return vectors[0]

        self._network.eval()
        hook = self._embedding().register_forward_hook(keep)
        try:
            with torch.enable_grad():
                logit = self._network(**inputs)["logits"][0, number]
                gradient = torch.autograd.grad(logit, vectors[0])[0]
        finally:
            hook.remove()
        weights = (gradient * vectors[0].detach()).sum(dim=2)[0].double().cpu().tolist()[: len(encoding.ids)]
        spans: dict[int, tuple[int, int]] = {}
        totals: dict[int, float] = {}
        for (start, end), word, weight in zip(encoding.offsets, encoding.word_ids, weights, strict=True):
            if word is not None and end > start:
                first, last = spans.get(word, (start, end))
                spans[word] = (min(first, start), max(last, end))
                totals[word] = totals.get(word, 0.0) + weight
        words = tuple(WordWeight(*spans[word], text[slice(*spans[word])], totals[word]) for word in sorted(spans))
        log_odds = float(logit.detach())
        return Explanation(self.label_names_[number], log_odds, words, rest=log_odds - sum(totals.values()))

    def _write(self, folder: Path) -> None:
        self._tokenizer.save(str(folder / _TOKENIZER))
        safetensors.torch.save_model(self._network, str(folder / _WEIGHTS))

    def _read(self, folder: Path) -> None:
        self._tokenizer = read_tokenizer(folder / _TOKENIZER)
        self._network = read_network(lambda: self._rebuild(folder), folder / _WEIGHTS)
