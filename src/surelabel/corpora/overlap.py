"""Texts that were seen before: figures on them say nothing about new texts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Hashes: TypeAlias = npt.NDArray[np.uint64]

# Of empty texts: they are not one text that was seen, but none.
EMPTY = np.uint64(0)


def text_hash(text: str) -> bytes:
    """Return a hash of a text that does not depend on its case and white space."""
    return hashlib.blake2b(" ".join(text.lower().split()).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def hashes_of(texts: Iterable[str]) -> Hashes:
    """Return eight bytes of the hash of each text, (n,); 0 of empty texts."""
    values = [int.from_bytes(text_hash(text)[:8], "little") if text.strip() else 0 for text in texts]
    return np.array(values, dtype=np.uint64)


def is_among(hashes: Hashes, others: Hashes) -> npt.NDArray[np.bool_]:
    """Tell which hashes, (n,), are among others; those of empty texts are not."""
    return np.asarray(np.isin(hashes, others) & (hashes != EMPTY))


def seen_before(texts: Iterable[str], known: Iterable[str]) -> npt.NDArray[np.bool_]:
    """Tell for each text whether it is among the known ones, apart from case and white space; empty texts are not.

    Examples
    --------
    >>> seen_before(["Wheat rises", "corn falls", ""], ["wheat rises", ""]).tolist()
    [True, False, False]
    """
    return is_among(hashes_of(texts), hashes_of(known))
