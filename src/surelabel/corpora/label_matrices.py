"""Label-sets as sparse bool matrices, so that 100,000 labels have room."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from surelabel.exceptions import CorpusError

LabelMatrix: TypeAlias = "sparse.csr_array[np.bool_, tuple[int, int]]"


def as_canonical(labels: Any) -> LabelMatrix:
    """Return labels, sparse or dense, as a matrix with sorted indices and no stored False."""
    matrix: LabelMatrix = sparse.csr_array(labels, dtype=np.bool_, copy=True)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return matrix


def as_label_matrix(label_sets: Sequence[Collection[str]], label_names: Sequence[str], name: str) -> LabelMatrix:
    """Turn label names into a sparse bool matrix; a label that is not in `label_names` is an error."""
    columns = {label: column for column, label in enumerate(label_names)}
    indices: list[int] = []
    pointers = [0]
    for row, label_set in enumerate(label_sets):
        try:
            indices.extend(sorted({columns[label] for label in label_set}))
        except KeyError as error:
            raise CorpusError(
                f"The labels of corpus {name!r} must be among its {len(columns):,} label names. "
                f"Got {error.args[0]!r} in text {row} instead."
            ) from None
        pointers.append(len(indices))
    data = np.ones(len(indices), dtype=np.bool_)
    return sparse.csr_array((data, indices, pointers), shape=(len(label_sets), len(columns)), dtype=np.bool_)
