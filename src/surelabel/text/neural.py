"""What the neural classifiers share: encode, train, predict in batches of like length, write, read."""

from __future__ import annotations

import abc
import dataclasses
import threading
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors
import safetensors.torch
import torch
from tokenizers import Tokenizer
from torch import nn

from surelabel._core.declared_sizes import check_safetensors
from surelabel.exceptions import ArtifactError
from surelabel.text.base import History, TextClassifier
from surelabel.text.batching import Examples, pad, prediction_batches
from surelabel.text.explaining import Explanation, WordWeight
from surelabel.text.inputs import FitOptions, LabelledTexts
from surelabel.text.tokenisation import encode, encode_with_places, known_words, read_tokenizer
from surelabel.text.training import Plan, train

_WEIGHTS, _TOKENIZER = "weights.safetensors", "tokenizer.json"
_SHARE_SET_ASIDE = 0.1


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


class NeuralClassifier(TextClassifier):
    """A classifier made of a tokenizer and a torch network.

    Subclasses say how to make both. Prediction is in float32, whatever training was in: the probabilities
    of a text then do not depend on the texts beside it, but for the last digits.
    """

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
        return train(self._network, optimizer, parts, plan, options)

    def _predict(self, texts: list[str], batch_size: int | None) -> npt.NDArray[np.float64]:
        ids = encode(self._tokenizer, texts)
        lengths = np.maximum(1, np.array([len(one) for one in ids], dtype=np.int64))
        found = np.empty((len(texts), self.n_labels_))
        network, max_tokens = self._predicting()
        device = next(network.parameters()).device
        network.eval()
        with torch.inference_mode():
            for batch in prediction_batches(lengths, max_tokens, batch_size):
                inputs = pad([ids[i] for i in batch], self._padding)
                logits = network(**{name: tensor.to(device) for name, tensor in inputs.items()})["logits"]
                found[batch] = torch.sigmoid(logits.double()).cpu().numpy()
        return found

    def _explain(self, text: str, number: int, label: str | int) -> Explanation:
        """Multiply the vector of each token by the gradient of the label's log-odds; tokens of a word are added up."""
        encoding = encode_with_places(self._tokenizer, text)
        ids = np.asarray(encoding.ids, dtype=np.int32)
        device = next(self._network.parameters()).device
        inputs = {name: tensor.to(device) for name, tensor in pad([ids], self._padding).items()}
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
        weights = (gradient * vectors[0].detach()).sum(dim=2)[0].double().cpu().tolist()[: len(ids)]
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
        try:
            check_safetensors(folder / _WEIGHTS)
            self._check_size(folder)
            network = self._rebuild(folder)
            safetensors.torch.load_model(network, str(folder / _WEIGHTS))
        except ArtifactError:
            raise
        except (OSError, RuntimeError, KeyError, ValueError, safetensors.SafetensorError) as error:
            raise ArtifactError(f"The saved classifier {folder} is damaged: {error}") from error
        device = "cuda" if torch.cuda.is_available() else "cpu"
        self._network = network.to(device).eval().requires_grad_(False)

    def _check_size(self, folder: Path) -> None:
        """Raise if the settings claim a larger network than there are weights, before it is allocated."""
        with torch.device("meta"):
            network = self._rebuild(folder)
        claimed = sum(each.numel() * each.element_size() for each in network.parameters())
        if claimed > (folder / _WEIGHTS).stat().st_size:
            raise ArtifactError(
                f"The saved classifier {folder} is refused: its settings claim {claimed:,} bytes of weights, more than "
                "there are."
            )

    def _plan(self, **how: Any) -> Plan:
        """Return how to train: as the settings say, and what the kind adds."""
        names = ("batch_size", "epochs", "patience", "seed")
        common = {name: getattr(self.settings, name) for name in names}
        identity = {"kind": self.kind, **dataclasses.asdict(self.settings)}
        return Plan(settings=identity, padding=self._padding, **common, **how)
