"""What the neural classifiers share: encode, train, predict in batches of similar length, write, read."""

from __future__ import annotations

import abc
import dataclasses
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import safetensors
import safetensors.torch
import torch
from tokenizers import Tokenizer
from torch import nn

from surelabel._core.extras import import_extra
from surelabel._core.validation import FloatArray
from surelabel.exceptions import ArtifactError
from surelabel.text.base import History, TextClassifier
from surelabel.text.batching import Examples, pad, padded_batches
from surelabel.text.explaining import Explanation, WordWeight
from surelabel.text.inputs import FitOptions, LabelledTexts
from surelabel.text.tokenisation import encode, encode_with_places, known_words, read_tokenizer

if TYPE_CHECKING:
    from surelabel.text.training import Plan

_WEIGHTS, _TOKENIZER = "weights.safetensors", "tokenizer.json"
_SHARE_SET_ASIDE = 0.1


def _training() -> Any:
    """Return the module that trains; its libraries take seconds to import, and predictions do without them."""
    return import_extra("surelabel.text.training", "text", "Training a neural classifier")


def start_bias(layer: nn.Linear, bias: float | None, labels: Any) -> None:
    """Set an output layer's bias to a number, or to each label's log-odds in the training texts if None."""
    share = (np.asarray(labels.sum(axis=0)) + 0.5) / (labels.shape[0] + 1)
    odds = np.log(share / (1 - share)) if bias is None else np.full(len(share), bias)
    with torch.no_grad():
        layer.bias.copy_(torch.from_numpy(odds))


def loss_and_logits(logits: torch.Tensor, labels: torch.Tensor | None) -> dict[str, torch.Tensor]:
    """Return what Trainer expects: logits, and the binary cross-entropy if labels are given."""
    if labels is None:
        return {"logits": logits}
    return {"loss": nn.functional.binary_cross_entropy_with_logits(logits.float(), labels), "logits": logits}


def read_network(make: Callable[[], nn.Module], weights: Path) -> nn.Module:
    """Make a network and read its weights; ArtifactError if there are fewer than it needs."""
    with torch.device("meta"):  # nothing is allocated
        claimed = sum(parameter.numel() * parameter.element_size() for parameter in make().parameters())
    if claimed > weights.stat().st_size:
        raise ArtifactError(
            f"The saved classifier {weights.parent} is refused: its settings claim {claimed:,} bytes of weights, more "
            "than there are."
        )
    network = make()
    safetensors.torch.load_model(network, str(weights))
    return network


class NeuralClassifier(TextClassifier):
    """A classifier made of a tokenizer and a torch network; subclasses say how to make both."""

    _tokens_a_batch = 16_384
    _padding = 0
    _tokenizer: Tokenizer
    _network: nn.Module

    @abc.abstractmethod
    def _prepare(self, training: LabelledTexts) -> tuple[torch.optim.Optimizer, Plan]:
        """Set `_tokenizer`, `_network` and `_padding` for training; return the optimizer and the plan."""

    @abc.abstractmethod
    def _rebuild(self, folder: Path) -> nn.Module:
        """Return the network of a saved classifier, before its weights are read."""

    def _fit(self, training: LabelledTexts, validation: LabelledTexts | None, options: FitOptions) -> History:
        if validation is None:
            training, validation = training.set_aside(_SHARE_SET_ASIDE, self.settings.seed, "A neural classifier")
        with torch.random.fork_rng():
            torch.manual_seed(self.settings.seed)
            optimizer, plan = self._prepare(training)
        examples, held_out = (
            Examples(encode(self._tokenizer, part.texts), part.labels) for part in (training, validation)
        )
        self._network, history = self._train(optimizer, (examples, held_out), plan, options)
        return history

    def _train(
        self, optimizer: torch.optim.Optimizer, parts: tuple[Examples, Examples], plan: Plan, options: FitOptions
    ) -> tuple[nn.Module, History]:
        """Return the trained network and its history."""
        return _training().train(self._network, optimizer, parts, plan, options)

    def _predict(self, texts: list[str], batch_size: int | None) -> FloatArray:
        # In float32, whatever training was in: the probabilities of a text then depend on the other texts of its batch
        # in the last digits alone.
        ids = encode(self._tokenizer, texts)
        probabilities = np.empty((len(texts), self.n_labels_))
        network, max_tokens = self._predicting()
        device = next(network.parameters()).device
        network.eval()
        with torch.inference_mode():
            for rows, inputs in padded_batches(ids, self._padding, max_tokens, batch_size, device=device):
                probabilities[rows] = torch.sigmoid(network(**inputs)["logits"].double()).cpu().numpy()
        return probabilities

    def _explain(self, text: str, number: int, label: str | int) -> Explanation:
        """Multiply the vector of each token by the gradient of the label's log-odds; tokens of a word are added up."""
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
        score = float(logit.detach())
        return Explanation(label, score, words, rest=score - sum(totals.values()), is_exact=False)

    def _embedding(self) -> nn.Module:
        """Return the layer that turns tokens into vectors."""
        return self._network.get_submodule("embedding")

    def _known(self, texts: list[str]) -> list[float]:
        return known_words(self._tokenizer, texts)

    def _predicting(self) -> tuple[nn.Module, int]:
        """Return the network that predicts, and how many tokens it takes at a time."""
        device = next(self._network.parameters()).device
        return self._network, self._tokens_a_batch if device.type == "cpu" else 65_536

    def _write(self, folder: Path) -> None:
        self._tokenizer.save(str(folder / _TOKENIZER))
        safetensors.torch.save_model(self._network, str(folder / _WEIGHTS))

    def _read(self, folder: Path) -> None:
        self._tokenizer = read_tokenizer(folder / _TOKENIZER)
        network = read_network(lambda: self._rebuild(folder), folder / _WEIGHTS)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        self._network = network.to(device).eval().requires_grad_(False)

    def _plan(self, **how: Any) -> Plan:
        """Return how to train: as the settings say, and what the kind adds."""
        settings = dataclasses.asdict(self.settings)
        common = {name: settings[name] for name in ("batch_size", "epochs", "patience", "seed")}
        return _training().Plan(settings={"kind": self.kind, **settings}, padding=self._padding, **common, **how)
