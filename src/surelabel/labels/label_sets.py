"""Label-sets as users see them: frozensets of label names, of indices where labels have no names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np

from surelabel._core.validation import BoolArray

__all__ = ["LabelSet", "as_label_set", "as_row", "to_label_sets"]

# A label-set: names of its labels where names are known, indices where not.
LabelSet: TypeAlias = frozenset[Any]


def to_label_sets(labels: BoolArray, names: tuple[str, ...] | None) -> list[LabelSet]:
    """Turn 0/1 rows into frozensets of label names, of indices where names are None.

    Examples
    --------
    >>> to_label_sets(np.array([[True, False]]), ("grain", "wheat"))
    [frozenset({'grain'})]
    """
    return [as_label_set(np.flatnonzero(row).tolist(), names) for row in labels]


def as_label_set(indices: Iterable[int], names: tuple[str, ...] | None) -> LabelSet:
    """Return label indices as a frozenset of names, of indices where names are None."""
    return frozenset(indices if names is None else (names[k] for k in indices))


def as_row(label_set: Any) -> Any:
    """Return one label-set, a collection of labels or a 0/1 row, as labels of one text."""
    if isinstance(label_set, (set, frozenset)):
        return [label_set]
    if isinstance(label_set, np.ndarray):
        return label_set[None, :]
    return [label_set]
