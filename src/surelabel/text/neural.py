"""Base of the neural classifiers: encode, train, predict in batches of similar length, explain, write, read."""

from __future__ import annotations

import abc
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import safetensors.torch
import torch
from tokenizers import Tokenizer
from torch import nn

from surelabel._core.extras import require
from surelabel._core.validation import BoolArray, FloatArray
from surelabel.exceptions import ArtifactError
from surelabel.text.base import History, Labelled, TextClassifier
from surelabel.text.explain import Explanation
from surelabel.text.tokens import encode, encodings, pad, padded_batches, read_tokenizer

WEIGHTS = "weights.safetensors"
_TOKENIZER = "tokenizer.json"


def trainer() -> Any:
    """Import `surelabel.text.training`, which predictions do without."""
    return require("surelabel.text.training", "text", "Training a neural classifier")


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


def write_network(folder: Path, network: nn.Module, tokenizer: Tokenizer) -> None:
    """Write the weights of a network and its tokenizer."""
    safetensors.torch.save_model(network, str(folder / WEIGHTS))
    tokenizer.save(str(folder / _TOKENIZER))


def read_network(folder: Path, make: Callable[[Tokenizer], Any]) -> tuple[Any, Tokenizer]:
    """Make a network for the tokenizer that was written and read its weights, all of which must be there and finite."""
    tokenizer, weights = read_tokenizer(folder / _TOKENIZER), folder / WEIGHTS
    with torch.device("meta"):  # nothing is allocated
        claimed = sum(parameter.numel() * parameter.element_size() for parameter in make(tokenizer).parameters())
    if claimed > weights.stat().st_size:
        raise ArtifactError(f"{weights} must hold {claimed:,} bytes of weights by its settings, more than there are.")
    network = make(tokenizer)
    safetensors.torch.load_model(network, str(weights))
    if not all(bool(torch.isfinite(parameter).all()) for parameter in network.parameters()):
        raise ArtifactError(f"{weights} must hold finite weights.")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return network.to(device).eval().requires_grad_(False), tokenizer


class NeuralClassifier(TextClassifier):
    """A tokenizer and a torch network, which subclasses make.

    The network's arguments are token ids, lengths, and labels for the loss. Instead of its layer `embedding`, the
    argument `vectors` gives the vectors of tokens.
    """

    needs_validation = True
    _tokens_a_batch: ClassVar[int] = 16_384
    seed: int
    _tokenizer: Tokenizer
    _network: Any

    @abc.abstractmethod
    def _prepare(self, training: Labelled) -> tuple[torch.optim.Optimizer, dict[str, Any]]:
        """Set `_tokenizer` and `_network`; return the optimizer and arguments for Trainer."""

    @abc.abstractmethod
    def _rebuild(self, folder: Path, tokenizer: Tokenizer) -> nn.Module:
        """Return the network of a saved classifier, before its weights are read."""

    def _fit(self, training: Labelled, validation: Labelled | None, work_folder: Path | None) -> History:
        assert validation is not None
        with torch.random.fork_rng():
            torch.manual_seed(self.seed)
            optimizer, arguments = self._prepare(training)
        parts = tuple((encode(self._tokenizer, part.texts), part.labels) for part in (training, validation))
        settings = {"kind": self.kind, **self.get_params(deep=False)}
        self._network, history = trainer().train(self._network, optimizer, parts, settings, work_folder, **arguments)
        return list(history)

    def _predict(self, texts: list[str]) -> FloatArray:
        # In float32, whatever training was in: the probabilities of a text then depend on the other texts of its batch
        # in the last digits alone.
        ids = encode(self._tokenizer, texts)
        probabilities = np.empty((len(texts), self.n_labels_))
        device = next(self._network.parameters()).device
        max_tokens = self._tokens_a_batch if device.type == "cpu" else 65_536
        self._network.eval()
        with torch.inference_mode():
            for rows, inputs in padded_batches(ids, max_tokens, device=device):
                probabilities[rows] = torch.sigmoid(self._network(**inputs)["logits"].double()).cpu().numpy()
        return probabilities

    def _explain(self, text: str, number: int) -> Explanation:
        """Multiply each token's vector by the gradient of the label's log-odds; add up the tokens of a word."""
        (encoding,) = encodings(self._tokenizer, [text])
        device = next(self._network.parameters()).device
        inputs = {name: tensor.to(device) for name, tensor in pad([encoding.ids]).items()}
        self._network.eval()
        with torch.enable_grad():
            vectors = self._network.embedding(inputs["input_ids"]).detach().requires_grad_(True)
            logit = self._network(**inputs, vectors=vectors)["logits"][0, number]
            gradient = torch.autograd.grad(logit, vectors)[0]
        added = (gradient * vectors.detach()).sum(dim=2)[0].double().cpu().tolist()
        weights: dict[tuple[int, int], float] = {}
        for word, weight in zip(encoding.word_ids, added, strict=False):
            if word is not None:
                span = encoding.word_to_chars(word)
                weights[span] = weights.get(span, 0.0) + weight
        return Explanation.of_words(text, weights, self.label_names_[number], float(logit.detach()))

    def _write(self, folder: Path) -> None:
        write_network(folder, self._network, self._tokenizer)

    def _read(self, folder: Path) -> None:
        self._network, self._tokenizer = read_network(folder, lambda tokenizer: self._rebuild(folder, tokenizer))
