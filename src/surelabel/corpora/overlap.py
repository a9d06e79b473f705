"""Texts that were seen before: figures on them say nothing about new texts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt


def text_hash(text: str) -> bytes:
    r"""Return a hash of a text that does not depend on its case and white space.

    Examples
    --------
    >>> text_hash("Wheat  prices\nrise") == text_hash("wheat prices rise")
    True
    """
    return hashlib.blake2b(" ".join(text.lower().split()).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def seen_before(texts: Iterable[str], known: Iterable[str]) -> npt.NDArray[np.bool_]:
    """Tell for each text whether it is among the known ones, but for case and white space; empty texts are not.

    Examples
    --------
    >>> seen_before(["Wheat rises", "corn falls", ""], ["wheat rises", ""]).tolist()
    [True, False, False]
    """
    hashes = {text_hash(text) for text in known if text.strip()}
    return np.array([bool(text.strip()) and text_hash(text) in hashes for text in texts], dtype=np.bool_)
