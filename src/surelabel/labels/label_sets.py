"""Label-sets as users see them: frozensets of label names, or of indices if labels have no names."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any, TypeAlias

import numpy as np

from surelabel._core.validation import BoolArray
from surelabel.labels.sparse import SparseLabels

# A label-set: names of its labels if names are known, indices if not.
LabelSet: TypeAlias = frozenset[Any]


def to_label_sets(labels: BoolArray | SparseLabels, names: tuple[str, ...] | None) -> list[LabelSet]:
    """Turn 0/1 rows, dense or CSR, into frozensets of label names, of indices if names are None."""
    return [as_label_set(row, names) for row in label_indices(labels)]


def label_indices(labels: BoolArray | SparseLabels) -> list[list[int]]:
    """Return the ascending label indices of each 0/1 row, dense or CSR."""
    if isinstance(labels, np.ndarray):
        indices, counts = labels.nonzero()[1].tolist(), labels.sum(axis=1).tolist()
        ends = list(itertools.accumulate(counts, initial=0))
    else:
        indices, ends = labels.indices.tolist(), labels.indptr.tolist()
    return [indices[start:stop] for start, stop in itertools.pairwise(ends)]


def as_label_set(indices: Iterable[int], names: tuple[str, ...] | None) -> LabelSet:
    """Return label indices as a frozenset of names, of indices if names are None."""
    return frozenset(indices if names is None else (names[k] for k in indices))


def as_row(label_set: Any) -> Any:
    """Return one label-set, a collection of labels or a 0/1 row, as labels of one text."""
    return label_set[None, :] if isinstance(label_set, np.ndarray) else [label_set]


class LabelView(Set[Any]):
    """A set of labels, the unlisted ones of a text among them: compares as any set, names are made when asked for.

    Of the `listed` labels those `chosen` are in the set, and so is every other label. `index` has the column of each
    label name, in order; None if labels have no names.
    """

    def __init__(
        self, chosen: Iterable[int], listed: Iterable[int], n_labels: int, index: Mapping[str, int] | None
    ) -> None:
        self._left_out = frozenset(listed) - frozenset(chosen)
        self._n_labels = n_labels
        self._index = index

    @classmethod
    def _from_iterable(cls, it: Iterable[Any]) -> Any:
        return frozenset(it)

    def __contains__(self, label: object) -> bool:
        if self._index is not None:
            column = self._index.get(label, -1) if isinstance(label, str) else -1
        else:
            column = int(label) if isinstance(label, (int, np.integer)) else -1
        return 0 <= column < self._n_labels and column not in self._left_out

    def __len__(self) -> int:
        return self._n_labels - len(self._left_out)

    def __iter__(self) -> Iterator[Any]:
        labels = range(self._n_labels) if self._index is None else self._index
        return (label for column, label in enumerate(labels) if column not in self._left_out)

    def __hash__(self) -> int:
        return self._hash()

    def __repr__(self) -> str:
        some = ", ".join(repr(label) for label in itertools.islice(self, 5))
        return f"<{len(self):,} labels: {some}{', ...' if len(self) > 5 else ''}>"
