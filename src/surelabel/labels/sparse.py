"""Sparse probabilities and labels: what a text lists, for numbers of labels that no dense array holds.

A text lists some labels with their probabilities; all others, the *unlisted* ones, share one small probability. What is
listed counts, explicit zeros too.
"""

from __future__ import annotations

import functools
import itertools
import numbers
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csr_array, vstack

from surelabel._core.validation import (
    FloatArray,
    IntArray,
    as_labels,
    as_probabilities,
    indices_of_names,
    invalid,
    is_named,
)
from surelabel.exceptions import InvalidInputError

# Products of a number of labels and half of a cost's digits are exact up to here (`_kernels/compressed.py`).
MOST_LABELS = 2**26

SparseLabels: TypeAlias = "csr_array[Any, tuple[int, int]]"


def is_sparse(values: Any) -> bool:
    """Tell whether values are sparse: ours, or a scipy sparse matrix or array of any format."""
    return isinstance(values, SparseProbabilities) or hasattr(values, "tocsr")


def _as_csr(values: Any) -> Any:
    """Return a sparse matrix as a CSR array of its own with sorted indices, each once."""
    matrix = csr_array(values, copy=True)
    matrix.sum_duplicates()
    return matrix


class SparseProbabilities:
    """Probabilities of the labels that each text lists, and one for all that it does not.

    Parameters
    ----------
    matrix : scipy sparse matrix or array (n_texts, n_labels)
        Listed probabilities; an explicit zero is a listed probability of 0.
    unlisted : float
        Probability of every label that a text does not list, 0 by default.

    Attributes
    ----------
    shape : (int, int)
    starts : (n + 1,) int64
        Text i lists `labels[starts[i]:starts[i + 1]]`.
    labels : int64
        Indices of listed labels, ascending within a text.
    values : float64
        Their probabilities.
    unlisted : float

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> probabilities = SparseProbabilities(csr_array([[0.9, 0.0, 0.2], [0.0, 0.7, 0.0]]), unlisted=0.01)
    >>> probabilities.toarray()
    array([[0.9 , 0.01, 0.2 ],
           [0.01, 0.7 , 0.01]])
    """

    starts: IntArray
    labels: IntArray
    values: FloatArray
    shape: tuple[int, int]
    unlisted: float

    def __init__(self, matrix: Any, unlisted: Any = 0.0) -> None:
        if not hasattr(matrix, "tocsr"):
            raise invalid("matrix", "SparseProbabilities", "a scipy sparse matrix", type(matrix).__name__)
        if isinstance(unlisted, bool) or not isinstance(unlisted, numbers.Real) or not 0.0 <= float(unlisted) <= 1.0:
            raise invalid("unlisted", "SparseProbabilities", "a probability in [0, 1]", repr(unlisted))
        csr = _as_csr(matrix)
        _check_probabilities(csr)
        self._set(
            csr.indptr.astype(np.int64), csr.indices.astype(np.int64), csr.data.astype(np.float64), csr.shape, unlisted
        )

    def _set(
        self, starts: IntArray, labels: IntArray, values: FloatArray, shape: tuple[int, int], unlisted: Any
    ) -> None:
        """Fill in checked values; they do not change afterwards."""
        for array in (starts, labels, values):
            array.flags.writeable = False
        self.__dict__.update(starts=starts, labels=labels, values=values)
        self.__dict__.update(shape=(int(shape[0]), int(shape[1])), unlisted=float(unlisted))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"SparseProbabilities do not change: make new ones to set {name!r}.")

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | IntArray) -> SparseProbabilities:
        """Return a slice of the texts, without copying if they are next to each other; or texts by their numbers."""
        if isinstance(rows, np.ndarray) and rows.ndim == 1 and rows.dtype.kind in "iu":
            return SparseProbabilities(self.matrix[rows], self.unlisted)
        if not isinstance(rows, slice):
            raise InvalidInputError(f"SparseProbabilities are sliced by texts. Got the index {rows!r} instead.")
        start, stop, step = rows.indices(len(self))
        if step != 1:
            return SparseProbabilities(self.matrix[rows], self.unlisted)
        stop = max(start, stop)
        part = object.__new__(SparseProbabilities)
        inside = slice(self.starts[start], self.starts[stop])
        starts = self.starts[start : stop + 1] - self.starts[start]
        part._set(starts, self.labels[inside], self.values[inside], (stop - start, self.shape[1]), self.unlisted)
        return part

    def __repr__(self) -> str:
        n_texts, n_labels = self.shape
        return (
            f"<SparseProbabilities: {n_texts:,} texts, {n_labels:,} labels, {len(self.values):,} listed, "
            f"unlisted={self.unlisted:g}>"
        )

    @property
    def n_listed(self) -> IntArray:
        """How many labels each text lists, (n,)."""
        return np.diff(self.starts)

    @functools.cached_property
    def matrix(self) -> Any:
        """The listed probabilities as a scipy CSR array."""
        return csr_array((self.values, self.labels, self.starts), shape=self.shape)

    def at_least(self, value: float) -> SparseLabels:
        """Return where probabilities are a value or more, as a bool CSR array; unlisted ones must be less.

        Examples
        --------
        >>> from scipy.sparse import csr_array
        >>> SparseProbabilities(csr_array([[0.9, 0.0, 0.2], [0.0, 0.7, 0.5]])).at_least(0.5).indices
        array([0, 1, 2])
        """
        if self.unlisted >= value:
            raise InvalidInputError(
                f"Unlisted labels must have a probability below {value:g} to be left out. Got {self.unlisted:g}; list "
                "such labels instead."
            )
        chosen = self.values >= value
        starts = np.concatenate([[0], np.cumsum(chosen)])[self.starts]
        indices = self.labels[chosen]
        return csr_array((np.ones(len(indices), dtype=np.bool_), indices, starts), shape=self.shape)

    def sum_by_label(self, values: FloatArray | None = None, unlisted: float | None = None) -> FloatArray:
        """Return the sum of each label's probabilities over texts, (d,); of other values in their place if given."""
        listed, other = (self.values, self.unlisted) if values is None else (values, float(unlisted or 0.0))
        counts = np.bincount(self.labels, minlength=self.shape[1])
        sums = np.bincount(self.labels, weights=listed, minlength=self.shape[1])
        return np.asarray(sums + other * (len(self) - counts))

    def sum(self) -> float:
        """Return the sum of all probabilities, the unlisted ones too."""
        return float(self.values.sum() + self.unlisted * (self.shape[0] * self.shape[1] - len(self.values)))

    def toarray(self) -> FloatArray:
        """Return all probabilities as a dense array (n_texts, n_labels)."""
        dense = np.full(self.shape, self.unlisted)
        dense[np.repeat(np.arange(len(self)), self.n_listed), self.labels] = self.values
        return dense


def highest(probabilities: FloatArray, k: int) -> SparseProbabilities:
    """Return the k highest probabilities of each row; of equal ones the first."""
    n_texts, n_labels = probabilities.shape
    k = min(k, n_labels)
    chosen = np.sort(np.argsort(-probabilities, axis=1, kind="stable")[:, :k], axis=1)
    values = np.take_along_axis(probabilities, chosen, axis=1)
    starts = np.arange(n_texts + 1) * k
    return SparseProbabilities(csr_array((values.ravel(), chosen.ravel(), starts), shape=probabilities.shape))


def stacked(parts: Sequence[Any]) -> Any:
    """Return the probabilities of several batches of texts as one: arrays, or all of them sparse."""
    if not isinstance(parts[0], SparseProbabilities):
        return np.concatenate(parts)
    return SparseProbabilities(vstack([part.matrix for part in parts], format="csr"), parts[0].unlisted)


def as_sparse_probabilities(values: Any, *, who: str, n_labels: int | None = None) -> SparseProbabilities:
    """Return sparse probabilities as ours; of a plain sparse matrix unlisted labels have probability 0."""
    checked = values if isinstance(values, SparseProbabilities) else SparseProbabilities(values)
    if n_labels is not None and checked.shape[1] != n_labels:
        raise invalid("probabilities", who, f"a sparse matrix with {n_labels} labels (columns)", f"{checked.shape[1]}")
    return checked


def as_any_probabilities(values: Any, *, who: str, n_labels: int | None = None) -> Any:
    """Return probabilities (n, d), checked: `SparseProbabilities` if they are sparse, else a float64 array."""
    check: Any = as_sparse_probabilities if is_sparse(values) else as_probabilities
    return check(values, who=who, n_labels=n_labels)


def as_any_labels(values: Any, probabilities: Any, *, who: str, names: Sequence[str] | None = None) -> Any:
    """Return the labels (n, d) of texts with checked probabilities: a bool CSR array if those are sparse."""
    n_texts, n_labels = probabilities.shape
    if not is_sparse(probabilities):
        known = None if names is None else tuple(names)
        return as_labels(values, who=who, n_labels=n_labels, n_texts=n_texts, label_names=known)
    index = None if names is None else {name: k for k, name in enumerate(names)}
    return as_sparse_labels(values, who=who, shape=(n_texts, n_labels), index=index)


def _check_probabilities(csr: Any) -> None:
    """Raise unless a CSR array holds probabilities of at least one text and one label."""
    who = "The 'probabilities' parameter must be a sparse matrix (n_texts, n_labels) of numbers in [0, 1]"
    if csr.ndim != 2 or csr.shape[0] == 0 or not 0 < csr.shape[1] <= MOST_LABELS:
        raise InvalidInputError(f"{who}, of 1 to {MOST_LABELS:,} labels. Got shape {csr.shape} instead.")
    if csr.dtype.kind not in "biuf":
        raise InvalidInputError(f"{who}. Got values of type {csr.dtype} instead.")
    outside = ~((csr.data >= 0.0) & (csr.data <= 1.0))
    if outside.any():
        first = int(np.argmax(outside))
        row = int(np.searchsorted(csr.indptr, first, side="right")) - 1
        raise InvalidInputError(f"{who}. Got {csr.data[first]} in row {row}, column {csr.indices[first]} instead.")


def as_sparse_labels(
    values: Any, *, who: str, shape: tuple[int, int], index: Mapping[Any, int] | None = None
) -> SparseLabels:
    """Return labels as a bool CSR array of a shape (n_texts, n_labels), without explicit zeros.

    Accepts sparse matrices, what `indices_of_names` accepts, and what `as_labels` accepts.
    """
    if not is_sparse(values) and is_named(values):
        columns = indices_of_names(values, index, shape[1], "labels", who)
        ends = list(itertools.accumulate(map(len, columns), initial=0))
        labels = list(itertools.chain.from_iterable(columns))
        values = csr_array((np.ones(len(labels), dtype=np.bool_), labels, ends), shape=(len(columns), shape[1]))
    elif not is_sparse(values):
        values = csr_array(as_labels(values, who=who, n_texts=shape[0], n_labels=shape[1]))
    matrix = _as_csr(values)
    if matrix.shape != shape:
        raise invalid("labels", who, f"a sparse matrix of shape {shape}, one row per text", f"shape {matrix.shape}")
    wrong = (matrix.data != 0) & (matrix.data != 1)
    if wrong.any():
        raise invalid("labels", who, "a sparse matrix of 0 and 1", f"{matrix.data[int(np.argmax(wrong))]}")
    matrix.eliminate_zeros()
    indices, starts = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return csr_array((np.ones(matrix.nnz, dtype=np.bool_), indices, starts), shape=shape)
