"""Label-sets as users see them: frozensets of label names, or of indices if labels have no names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np

from surelabel._core.validation import BoolArray, IntArray, Names

# Names of its labels, or indices if labels have no names.
LabelSet: TypeAlias = frozenset[Any]


def as_label_set(columns: Iterable[int], names: Names | None) -> LabelSet:
    """Return label indices as a frozenset of names, of indices if there are no names."""
    return frozenset(columns if names is None else map(names.__getitem__, columns))


def as_label_sets(members: BoolArray, columns: IntArray | None, names: Names | None) -> list[LabelSet]:
    """Return 0/1 rows (m, k) as label-sets; `columns` (m, k) has the labels of shortlists, None for 0, 1, ..."""
    rows, places = members.nonzero()
    labels = (places if columns is None else columns[rows, places]).tolist()
    ends = members.sum(axis=1).cumsum().tolist()
    chosen = labels if names is None else [names[label] for label in labels]
    return [frozenset(chosen[start:end]) for start, end in zip([0, *ends], ends, strict=False)]


def order_rows(members: BoolArray, *keys: Any) -> IntArray:
    """Return the order of 0/1 rows (m, k) by keys (m,), the most important first, then lexicographically."""
    # Bytes of 0/1 rows as big-endian words: they are in the order of the rows, and fewer keys to sort by.
    n_bytes = -(-members.shape[1] // 8)
    packed = np.zeros((len(members), -(-n_bytes // 8) * 8), dtype=np.uint8)
    packed[:, :n_bytes] = np.packbits(members, axis=1)
    words = packed.view(">u8").astype(np.uint64)
    return np.lexsort((*words.T[::-1], *keys[::-1]))
