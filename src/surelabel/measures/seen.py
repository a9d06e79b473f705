"""The label-sets of training texts, and how many texts have each."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from surelabel._core.validation import BoolArray, IntArray, Names
from surelabel.labels.label_sets import order_rows


@dataclass(frozen=True, eq=False)
class SeenLabelSets:
    """Different label-sets (M, d) bool in lexicographic order, and how many texts have each, (M,).

    `label_names` are those of the data frame that the labels came in; None if they had none.
    """

    members: BoolArray
    counts: IntArray
    label_names: Names | None = None

    @classmethod
    def from_labels(cls, labels: BoolArray, label_names: Names | None = None) -> SeenLabelSets:
        """Return the label-sets of texts, (n, d)."""
        packed, counts = np.unique(np.packbits(labels, axis=1), axis=0, return_counts=True)
        members = np.unpackbits(packed, axis=1, count=labels.shape[1]).astype(np.bool_)
        return cls(members, counts.astype(np.int64), label_names)

    def with_columns(self, order: Any, label_names: Names | None) -> SeenLabelSets:
        """Return the label-sets with their labels in another order."""
        members = self.members[:, order]
        rows = order_rows(members)
        return SeenLabelSets(members[rows], self.counts[rows], label_names)

    def __len__(self) -> int:
        return len(self.counts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SeenLabelSets):
            return NotImplemented
        return np.array_equal(self.members, other.members) and np.array_equal(self.counts, other.counts)

    def __hash__(self) -> int:
        return hash((self.members.shape, int(self.counts.sum())))

    @functools.cached_property
    def sizes(self) -> IntArray:
        """Number of labels of each label-set, (M,)."""
        sizes: IntArray = self.members.sum(axis=1)
        return sizes

    @functools.cached_property
    def matrix(self) -> Any:
        """The label-sets as a sparse matrix of whole numbers, (M, d)."""
        return csr_array(self.members.astype(np.int64))

    @functools.cached_property
    def log_odds(self) -> Any:
        """Log-odds of having each label among the texts, (d,)."""
        with_label = self.counts @ self.members
        return np.log((with_label + 0.5) / (self.counts.sum() - with_label + 0.5))

    @functools.cached_property
    def _places(self) -> dict[bytes, int]:
        """The place of each label-set, by its packed row."""
        return {row.tobytes(): place for place, row in enumerate(np.packbits(self.members, axis=1))}

    def places_of(self, members: BoolArray) -> IntArray:
        """Return the places of label-sets (m, d), (m,); -1 for those that were not seen."""
        rows = np.packbits(members, axis=1)
        return np.array([self._places.get(row.tobytes(), -1) for row in rows], dtype=np.int64)
