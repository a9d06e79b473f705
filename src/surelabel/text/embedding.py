"""Vectors of texts by a frozen encoder, computed once and kept on disk by the hash of the text."""

from __future__ import annotations

import abc
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import safetensors.torch
import torch

from surelabel._core import progress
from surelabel._core.npz_file import read_arrays
from surelabel._core.storage import atomic_file, cache_root
from surelabel.exceptions import ArtifactError
from surelabel.text.batching import mask_of, padded_batches
from surelabel.text.encoders import pooled, pretrained, read_encoder, read_pooling, write_encoder
from surelabel.text.neural import read_network
from surelabel.text.quantising import TOKENS_PER_BATCH, with_int8
from surelabel.text.tokenisation import encode, read_tokenizer

FloatArray = npt.NDArray[np.float32]

# As many tokens as stay in a processor's cache from layer to layer.
_TOKENS_PER_BATCH = 1_024
_KEPT_AT_A_TIME = 4_096
_WEIGHTS, _TOKENIZER = "encoder.safetensors", "tokenizer.json"


def vectors_folder() -> Path:
    """Return where vectors are kept: `vectors` in the folder that SURELABEL_CACHE names, or in the platform's cache."""
    return cache_root("The folder of kept vectors") / "vectors"


class Embedder(abc.ABC):
    """From texts to vectors of length 1 by a frozen encoder, each computed once."""

    # The folder `cache`, if there is one, has a file of vectors for each encoder and each first two digits of the
    # SHA-256 of texts. A damaged file is computed again.
    def __init__(self, size: int, identity: str, cache: Path | None) -> None:
        self.size = size
        self._folder = None if cache is None else cache / identity[:24]

    @abc.abstractmethod
    def _computed(self, texts: list[str], advance: Callable[[int], None]) -> FloatArray:
        """Compute vectors; report how many are done."""

    @abc.abstractmethod
    def write(self, folder: Path) -> None:
        """Write everything that is needed to read the encoder again."""

    def __call__(self, texts: Sequence[str]) -> FloatArray:
        """Return the vectors of texts, (n, size) float32."""
        hashes = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
        by_hash = self._read({name[:2] for name in hashes})
        missing = {name: text for name, text in zip(hashes, texts, strict=True) if name not in by_hash}
        if missing:
            names = list(missing)
            with progress.step(f"computing the vectors of {len(names):,} texts", len(names)) as advance:
                for start in range(0, len(names), _KEPT_AT_A_TIME):  # an interruption loses only the last of these
                    some = names[start : start + _KEPT_AT_A_TIME]
                    vectors = self._computed([missing[name] for name in some], advance)
                    by_hash.update(zip(some, vectors, strict=True))
                    self._keep({name[:2] for name in some}, by_hash)
        return np.stack([by_hash[name] for name in hashes]) if hashes else np.empty((0, self.size), dtype=np.float32)

    def _read(self, starts: set[str]) -> dict[str, Any]:
        """Return the kept vectors of texts whose hashes start with these digits."""
        kept: dict[str, Any] = {}
        files = [] if self._folder is None else [self._folder / f"{start}.npz" for start in starts]
        for file in files:
            try:
                arrays = read_arrays(file)
                hashes, vectors = arrays["hashes"], arrays["vectors"]
            except (FileNotFoundError, ArtifactError, KeyError):
                continue
            if vectors.shape == (len(hashes), self.size) and vectors.dtype == np.float32:
                kept.update(zip(hashes.tolist(), vectors, strict=True))
        return kept

    def _keep(self, starts: set[str], known: dict[str, Any]) -> None:
        """Write the files of hashes that start with these digits; a file is complete or absent."""
        if self._folder is None:
            return
        by_start: dict[str, list[str]] = {start: [] for start in starts}
        for name in sorted(known):
            if name[:2] in by_start:
                by_start[name[:2]].append(name)
        for start, names in by_start.items():
            with atomic_file(self._folder / f"{start}.npz", clean=False) as temporary, temporary.open("wb") as file:
                np.savez(file, hashes=np.array(names), vectors=np.stack([known[name] for name in names]))


class TransformersEmbedder(Embedder):
    """An encoder of transformers, made by `of_model` or `read`, and its tokenizer."""

    def __init__(
        self, encoder: Any, tokenizer: Any, pooling: str, padding: int, cache: Path | None, quantise: str = "none"
    ) -> None:
        if getattr(encoder, "pooler", None) is not None:
            encoder.pooler = None
        self._encoder = encoder.eval().requires_grad_(False)
        self._quantise = quantise
        self._running = with_int8(self._encoder) if quantise == "int8" else self._encoder
        self._tokenizer = tokenizer
        self._pooling = pooling
        self._padding = padding
        super().__init__(int(encoder.config.hidden_size), self._hashed(), cache)

    @classmethod
    def of_model(cls, model: str, max_tokens: int, cache: Path | None, quantise: str = "none") -> Self:
        """Return the encoder of a name, as in `BertSettings`."""
        return cls(*pretrained(model, max_tokens), cache, quantise)

    def write(self, folder: Path) -> None:
        """Write everything that `read` needs."""
        self._tokenizer.save(str(folder / _TOKENIZER))
        safetensors.torch.save_model(self._encoder, str(folder / _WEIGHTS))
        write_encoder(folder, self._encoder, self._pooling, self._padding)

    @classmethod
    def read(cls, folder: Path, cache: Path | None, quantise: str = "none") -> Self:
        """Return what `write` wrote."""
        encoder = read_network(lambda: read_encoder(folder), folder / _WEIGHTS)
        return cls(encoder, read_tokenizer(folder / _TOKENIZER), *read_pooling(folder), cache, quantise)

    def _hashed(self) -> str:
        """Return what tells this encoder from others: a hash of its weights, tokenizer and pooling."""
        quantised = "" if self._quantise == "none" else f" {self._quantise}"
        digest = hashlib.sha256(f"{self._pooling} {self._tokenizer.to_str()}{quantised}".encode())
        for name, weights in self._encoder.state_dict().items():
            digest.update(name.encode())
            digest.update(weights.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

    @torch.inference_mode()
    def _computed(self, texts: list[str], advance: Callable[[int], None]) -> FloatArray:
        """Compute vectors, in batches of similar length; report how many are done."""
        vectors = np.empty((len(texts), self.size), dtype=np.float32)
        max_tokens = _TOKENS_PER_BATCH if self._quantise == "none" else TOKENS_PER_BATCH
        for rows, batch in padded_batches(encode(self._tokenizer, texts), self._padding, max_tokens):
            mask = mask_of(**batch)
            states = self._running(input_ids=batch["input_ids"], attention_mask=mask.long()).last_hidden_state
            vectors[rows] = torch.nn.functional.normalize(pooled(states, mask, self._pooling), dim=1).numpy()
            advance(len(rows))
        return vectors
