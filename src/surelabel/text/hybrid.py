"""TF-IDF and the vectors of a frozen encoder in one linear model: no fine-tuning, minutes on a processor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import safetensors.torch
import scipy.sparse
import torch

from surelabel._core import progress
from surelabel._core.files import read_arrays, write_arrays
from surelabel.text.base import Within, check_arrays, settings
from surelabel.text.encoders import pool, pretrained, read_encoder, read_pooling, write_encoder
from surelabel.text.linear import LinearClassifier
from surelabel.text.neural import read_network
from surelabel.text.tokens import encode, mask_of, padded_batches, read_tokenizer

_CENTRE, _WEIGHTS, _TOKENIZER = "centre.npz", "encoder.safetensors", "tokenizer.json"
# As many tokens as stay in a processor's cache from layer to layer.
_TOKENS_A_BATCH = 1_024


@settings
class HybridClassifier(LinearClassifier):
    """`linear` with the vectors of a frozen encoder beside the terms; the encoder is saved with the classifier.

    Parameters
    ----------
    model : str
        As in BertClassifier: "minilm", a folder or a hub name.
    vector_weight : float
        Length of the encoder's vector if that of words is 1. Vectors lose the mean of the training texts' before.
    max_tokens : int
        Tokens of a text that the encoder reads.
    **settings
        Those of LinearClassifier.
    """

    kind = "hybrid"

    model: str = "minilm"
    vector_weight: Annotated[float, Within(1e-3, 100)] = 1.0
    max_tokens: Annotated[int, Within(3, 1e6)] = 256

    def _fit_features(self, texts: list[str]) -> Any:
        encoder, self._tokenizer, self._pooling, self._padding = pretrained(self.model, self.max_tokens)
        encoder.pooler = None
        self._encoder: Any = encoder.eval().requires_grad_(False)
        vectors = self._vectors(texts)
        self._centre = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
        return self._join(super()._fit_features(texts), vectors)

    def _features(self, texts: list[str]) -> Any:
        return self._join(super()._features(texts), self._vectors(texts))

    @property
    def _n_features(self) -> int:
        return super()._n_features + len(self._centre)

    @torch.inference_mode()
    def _vectors(self, texts: list[str]) -> npt.NDArray[np.float32]:
        """Return vectors (n, size) of length 1, computed in batches of similar length."""
        vectors = np.empty((len(texts), self._encoder.config.hidden_size), dtype=np.float32)
        device = next(self._encoder.parameters()).device
        ids = encode(self._tokenizer, texts)
        with progress.step("computing the vectors of texts", len(texts)) as advance:
            for rows, batch in padded_batches(ids, self._padding, _TOKENS_A_BATCH, device=device):
                mask = mask_of(**batch)
                states = self._encoder(input_ids=batch["input_ids"], attention_mask=mask.long()).last_hidden_state
                pooled = pool(states, mask, self._pooling)
                vectors[rows] = torch.nn.functional.normalize(pooled, dim=1).cpu().numpy()
                advance(len(rows))
        return vectors

    def _join(self, terms: Any, vectors: npt.NDArray[np.float32]) -> Any:
        """Put vectors beside terms, as a CSR array."""
        centred = vectors - self._centre
        lengths = np.linalg.norm(centred, axis=1, keepdims=True)
        scaled = centred * (self.vector_weight / np.where(lengths > 0, lengths, 1.0))
        dense = scipy.sparse.csr_array(scaled.astype(np.float32))
        return scipy.sparse.csr_array(scipy.sparse.hstack([terms, dense], format="csr"))

    def _write(self, folder: Path) -> None:
        super()._write(folder)
        self._tokenizer.save(str(folder / _TOKENIZER))
        safetensors.torch.save_model(self._encoder, str(folder / _WEIGHTS))
        write_encoder(folder, self._encoder, self._pooling, self._padding)
        write_arrays(folder / _CENTRE, {"kind": "centre of vectors"}, {"centre": self._centre})

    def _read(self, folder: Path) -> None:
        self._tokenizer = read_tokenizer(folder / _TOKENIZER)
        self._encoder = read_network(lambda: read_encoder(folder), folder / _WEIGHTS)
        self._pooling, self._padding = read_pooling(folder)
        self._centre = read_arrays(folder / _CENTRE, "centre of vectors")[1]["centre"]
        check_arrays((self._centre, (self._encoder.config.hidden_size,)))
        super()._read(folder)
