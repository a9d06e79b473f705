"""TF-IDF and the vectors of a frozen encoder in one linear model: no fine-tuning, minutes on a processor."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
import torch

from surelabel._core import progress
from surelabel.text.base import Within, check_arrays, settings
from surelabel.text.bert import pretrained, read_encoder
from surelabel.text.linear import LinearClassifier
from surelabel.text.neural import read_network, write_network
from surelabel.text.tokens import encode, padded_batches

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
        encoder, self._tokenizer = pretrained(self.model, self.max_tokens)
        self._encoder = encoder.eval().requires_grad_(False)
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
        vectors = np.empty((len(texts), self._encoder.size), dtype=np.float32)
        device = next(self._encoder.parameters()).device
        ids = encode(self._tokenizer, texts)
        with progress.step("computing the vectors of texts", len(texts)) as advance:
            for rows, batch in padded_batches(ids, _TOKENS_A_BATCH, device=device):
                vectors[rows] = torch.nn.functional.normalize(self._encoder(**batch), dim=1).cpu().numpy()
                advance(len(rows))
        return vectors

    def _join(self, terms: Any, vectors: npt.NDArray[np.float32]) -> Any:
        """Put vectors beside terms, as a CSR array."""
        centred = vectors - self._centre
        lengths = np.linalg.norm(centred, axis=1, keepdims=True)
        scaled = centred * (self.vector_weight / np.where(lengths > 0, lengths, 1.0))
        dense = scipy.sparse.csr_array(scaled.astype(np.float32))
        return scipy.sparse.csr_array(scipy.sparse.hstack([terms, dense], format="csr"))

    def _write_features(self, folder: Path) -> dict[str, Any]:
        write_network(folder, self._encoder, self._tokenizer)
        self._encoder.write(folder)
        return {**super()._write_features(folder), "centre": self._centre}

    def _read_features(self, folder: Path, arrays: dict[str, Any]) -> int:
        self._encoder, self._tokenizer = read_network(folder, lambda _: read_encoder(folder))
        self._centre = arrays["centre"]
        check_arrays((self._centre, (self._encoder.size,)))
        return super()._read_features(folder, arrays) + self._encoder.size
