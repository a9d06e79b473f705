"""What the classifiers accept as texts and labels, checked once."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from surelabel._core.wording import encodable
from surelabel.exceptions import DataWarning, InvalidInputError
from surelabel.labels.sparse import as_sparse_labels

__all__ = ["MANY_LABELS", "as_label_names", "as_labels", "as_texts", "warn_about_labels"]

MANY_LABELS = 1_000
"""Sparse labels of up to so many are made dense, and all probabilities of so many are kept; of more, the highest."""


def as_texts(texts: Iterable[str], name: str = "texts") -> list[str]:
    r"""Return the texts as a list of strings that can be encoded; warn of empty ones.

    Parameters
    ----------
    texts : iterable of str
        Any iterable of strings but a string itself.
    name : str
        What the argument is called in messages.

    Examples
    --------
    >>> as_texts(("wheat up", "gold \ud800 down"))
    ['wheat up', 'gold ? down']
    """
    if isinstance(texts, (str, bytes)):
        raise InvalidInputError(
            f"The '{name}' argument must be a sequence of strings. Got one {type(texts).__name__} instead; "
            f"put it into a list."
        )
    found = list(texts)
    for index, text in enumerate(found):
        if not isinstance(text, str):
            raise InvalidInputError(
                f"The '{name}' argument must hold strings. Got {type(text).__name__} at index {index} instead."
            )
    n_empty = sum(not text or text.isspace() for text in found)
    if n_empty:
        warnings.warn(
            f"{n_empty} of {len(found)} texts in '{name}' are empty; they are kept and treated as texts without words.",
            DataWarning,
            stacklevel=3,
        )
    return [encodable(text) for text in found]


def as_labels(labels: Any, n_texts: int, name: str = "labels") -> Any:
    """Return labels as a bool array (n_texts, n_labels); more than 1,000 sparse ones as a bool CSR array.

    Parameters
    ----------
    labels : array-like or scipy sparse (n_texts, n_labels)
        True or 1 where a text has a label.
    n_texts : int
        Rows that there must be.
    name : str
        What the argument is called in messages.

    Examples
    --------
    >>> as_labels([[0, 1], [1, 1]], 2)
    array([[False,  True],
           [ True,  True]])
    """
    is_sparse = bool(scipy.sparse.issparse(labels))
    if is_sparse and labels.ndim == 2 and labels.shape[1] > MANY_LABELS:
        return _as_sparse_labels(labels, n_texts, name)
    array = np.asarray(labels.toarray() if is_sparse else labels)
    if array.ndim != 2 or array.shape[1] == 0:
        raise InvalidInputError(
            f"The '{name}' argument must have shape (n_texts, n_labels) with at least one label. "
            f"Got shape {array.shape} instead; one label only is an array of shape (n_texts, 1)."
        )
    if len(array) != n_texts:
        raise InvalidInputError(
            f"The '{name}' argument must have one row per text. Got {len(array)} rows for {n_texts} texts instead."
        )
    if array.dtype == bool:
        return array
    if array.dtype.kind not in "iuf":
        raise InvalidInputError(f"The '{name}' argument must be bool or 0/1. Got dtype {array.dtype} instead.")
    wrong = (array != 0) & (array != 1)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise InvalidInputError(
            f"The '{name}' argument must hold only 0 and 1. Got {array[row, column]} in row {row}, "
            f"column {column} instead."
        )
    return array.astype(bool)


def _as_sparse_labels(labels: Any, n_texts: int, name: str) -> Any:
    """Return sparse labels as a bool CSR array without explicit zeros."""
    try:
        return as_sparse_labels(labels, who="fit", shape=(n_texts, labels.shape[1]))
    except InvalidInputError as error:
        raise InvalidInputError(f"The '{name}' argument does not fit the texts: {error}") from error


def as_label_names(names: Sequence[str] | None, n_labels: int) -> tuple[str, ...] | None:
    """Return label names as a tuple of `n_labels` different strings, or None."""
    if names is None:
        return None
    found = tuple(str(name) for name in names)
    if len(found) != n_labels or len(set(found)) != n_labels:
        raise InvalidInputError(
            f"The 'label_names' argument must hold {n_labels} different names, one per label. "
            f"Got {len(found)} names, {len(set(found))} of them different, instead."
        )
    return found


def warn_about_labels(labels: Any) -> None:
    """Say how many labels training can learn nothing about."""
    positive = np.asarray(labels.sum(axis=0))
    n_never = int((positive == 0).sum())
    n_always = int((positive == labels.shape[0]).sum())
    if n_never or n_always:
        warnings.warn(
            f"Of {labels.shape[1]} labels {n_never} have no and {n_always} only positive training texts; "
            f"nothing can be learnt about them.",
            DataWarning,
            stacklevel=3,
        )
