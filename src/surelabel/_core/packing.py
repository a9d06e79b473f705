"""Label-sets packed into 64-bit words, label 0 in the highest bit of word 0: comparing words compares 0/1 rows."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from surelabel._core.validation import BoolArray

Words: TypeAlias = npt.NDArray[np.uint64]


def n_words(n_labels: int) -> int:
    """Return how many 64-bit words a packed label-set takes."""
    return (n_labels + 63) // 64


def pack(labels: BoolArray) -> Words:
    """Pack 0/1 rows (m, d) into words (m, ceil(d / 64))."""
    padded = np.zeros((len(labels), 64 * n_words(labels.shape[1])), dtype=np.bool_)
    padded[:, : labels.shape[1]] = labels
    return np.packbits(padded, axis=1).view(">u8").astype(np.uint64)


def unpack(words: Words, n_labels: int) -> BoolArray:
    """Return the inverse of `pack`: 0/1 rows (m, d)."""
    octets = words.astype(">u8").view(np.uint8).reshape(len(words), 8 * words.shape[1])
    return np.unpackbits(octets, axis=1, count=n_labels).view(np.bool_)
