"""What the classifiers accept as texts and labels, checked once."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from surelabel._core import validation
from surelabel._core.wording import encodable
from surelabel.exceptions import DataWarning, InvalidInputError
from surelabel.labels.sparse import as_sparse_labels

MANY_LABELS = 1_000
"""Up to this many labels, sparse ones are made dense and all probabilities are kept; of more, the highest."""


def as_texts(texts: Iterable[str], name: str = "texts") -> list[str]:
    """Return the texts as a list of strings that can be encoded; warn of empty ones."""
    if isinstance(texts, (str, bytes)):
        raise InvalidInputError(
            f"The '{name}' argument must be a sequence of strings. Got one {type(texts).__name__} instead; "
            f"put it into a list."
        )
    checked = list(texts)
    for index, text in enumerate(checked):
        if not isinstance(text, str):
            raise InvalidInputError(
                f"The '{name}' argument must hold strings. Got {type(text).__name__} at index {index} instead."
            )
    n_empty = sum(not text or text.isspace() for text in checked)
    if n_empty:
        message = f"{n_empty} of {len(checked)} texts in '{name}' are empty; they are kept as texts without words."
        warnings.warn(message, DataWarning, stacklevel=3)
    return [encodable(text) for text in checked]


def as_labels(labels: Any, n_texts: int, name: str = "labels", n_labels: int | None = None) -> Any:
    """Return labels as a bool array (n_texts, n_labels); more than 1,000 sparse ones as a bool CSR array."""
    is_sparse = bool(scipy.sparse.issparse(labels))
    if is_sparse and labels.ndim == 2 and labels.shape[1] > MANY_LABELS:
        return as_sparse_labels(labels, who="fit", shape=(n_texts, n_labels or labels.shape[1]))
    return validation.as_labels(labels, who="fit", n_texts=n_texts, n_labels=n_labels, parameter=name)


def warn_about_labels(labels: Any) -> None:
    """Say how many labels training can learn nothing about."""
    positive = np.asarray(labels.sum(axis=0))
    n_never, n_always = int((positive == 0).sum()), int((positive == labels.shape[0]).sum())
    if n_never or n_always:
        message = (
            f"Of {labels.shape[1]} labels, {n_never} have no and {n_always} have only positive training texts; "
            "nothing can be learnt about them."
        )
        warnings.warn(message, DataWarning, stacklevel=3)


@dataclasses.dataclass(frozen=True)
class LabelledTexts:
    """Checked texts and their labels, bool (n_texts, n_labels); a CSR array if they are sparse and very many."""

    texts: list[str]
    labels: Any

    def set_aside(self, share: float, seed: int, who: str) -> tuple[LabelledTexts, LabelledTexts]:
        """Return most of the texts, and a share of them, at least one, drawn at random for validation."""
        n_texts = len(self.texts)
        if n_texts < 2:
            raise InvalidInputError(f"{who} needs at least two texts, one of them for validation. Got {n_texts}.")
        order = np.random.default_rng(seed).permutation(n_texts)
        n_held = max(1, round(share * n_texts))
        kept, held = (
            LabelledTexts([self.texts[row] for row in rows], self.labels[rows])
            for rows in (np.sort(order[n_held:]), np.sort(order[:n_held]))
        )
        return kept, held


@dataclasses.dataclass(frozen=True)
class FitOptions:
    """How a fit runs, apart from what it computes."""

    checkpoint_folder: Path | None
    resume: bool
    progress: bool | None
