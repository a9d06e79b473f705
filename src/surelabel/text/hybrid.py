"""TF-IDF and the vectors of a frozen encoder in one linear model: no fine-tuning, minutes on a processor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from surelabel._core.npz_file import read_arrays
from surelabel.text.e5 import E5Embedder
from surelabel.text.embedding import Embedder, TransformersEmbedder, vectors_folder
from surelabel.text.linear import LinearClassifier, check_arrays
from surelabel.text.settings import E5, HybridSettings

_CENTRE = "centre.npz"


class HybridClassifier(LinearClassifier):
    """`linear` with the vectors of a frozen encoder beside the terms.

    Vectors lose the mean of the training texts' and are brought to length `vector_weight`. The encoder (the `model` of
    its settings) is saved with the classifier, except "e5", which must be installed wherever it is loaded.

    Examples
    --------
    >>> from surelabel.text import HybridClassifier, HybridSettings
    >>> texts = ["wheat and corn", "the dollar fell", "corn prices", "dollar and yen"] * 5
    >>> labels = [[1, 0], [0, 1], [1, 0], [0, 1]] * 5
    >>> classifier = HybridClassifier(HybridSettings(keep_vectors=False)).fit(texts, labels)
    >>> classifier.predict_proba(["maize"]).argmax()
    np.int64(0)
    """

    kind = "hybrid"
    settings_class = HybridSettings

    def _fit_features(self, texts: list[str]) -> Any:
        model, max_tokens, quantise = self.settings.model, self.settings.max_tokens, self.settings.quantise
        self._embedder: Embedder
        if model == E5:
            self._embedder = E5Embedder(max_tokens, self._cache())
        else:
            self._embedder = TransformersEmbedder.of_model(model, max_tokens, self._cache(), quantise)
        vectors = self._embedder(texts)
        self._centre = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
        return self._joined(super()._fit_features(texts), vectors)

    def _features(self, texts: list[str]) -> Any:
        return self._joined(super()._features(texts), self._embedder(texts))

    def _joined(self, terms: Any, vectors: Any) -> Any:
        """Put vectors beside terms, as a CSR array."""
        centred = vectors - self._centre
        lengths = np.linalg.norm(centred, axis=1, keepdims=True)
        scaled = centred * (self.settings.vector_weight / np.where(lengths > 0, lengths, 1.0))
        dense = scipy.sparse.csr_array(scaled.astype(np.float32))
        return scipy.sparse.csr_array(scipy.sparse.hstack([terms, dense], format="csr"))

    def _cache(self) -> Path | None:
        return vectors_folder() if self.settings.keep_vectors else None

    def _n_features(self) -> int:
        return super()._n_features() + self._embedder.size

    def _write(self, folder: Path) -> None:
        super()._write(folder)
        self._embedder.write(folder)
        np.savez(folder / _CENTRE, allow_pickle=False, centre=self._centre)

    def _read(self, folder: Path) -> None:
        settings = self.settings
        if settings.model == E5:
            self._embedder = E5Embedder.read(folder, settings.max_tokens, self._cache())
        else:
            self._embedder = TransformersEmbedder.read(folder, self._cache(), settings.quantise)
        self._centre = read_arrays(folder / _CENTRE)["centre"]
        check_arrays((self._centre, (self._embedder.size,)))
        super()._read(folder)
