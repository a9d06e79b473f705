"""Shortlists: for each text the labels that a classifier thinks possible, in catalogues of thousands of labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from surelabel._core.validation import FloatArray, IntArray, as_probabilities, check_count, invalid


class Shortlists:
    """For each text, the labels that a classifier thinks possible, with probabilities; all others are impossible.

    Give it in place of an array of probabilities, everywhere. Immutable.

    Parameters
    ----------
    labels : (n, k) int array-like
        Indices of the labels, different within a row; -1 fills up shorter lists.
    probabilities : (n, k) array-like
    n_labels : int
        Number of labels in the catalogue.

    Attributes
    ----------
    labels : (n, k) int64
        Ascending within a row; free places come last and hold n_labels.
    probabilities : (n, k) float64
    n_labels : int

    Examples
    --------
    >>> shortlists = Shortlists([[7, 3], [5, -1]], [[0.9, 0.2], [0.4, 0]], n_labels=1000)
    >>> shortlists.labels.tolist(), shortlists.probabilities.tolist()
    ([[3, 7], [5, 1000]], [[0.2, 0.9], [0.4, 0.0]])
    """

    labels: IntArray
    probabilities: FloatArray
    n_labels: int

    def __init__(self, labels: Any, probabilities: Any, n_labels: int) -> None:
        who = "Shortlists"
        check_count("n_labels", n_labels, who, 1, 2**31)
        columns, values = np.asarray(labels), as_probabilities(probabilities, None, who)
        if columns.shape != values.shape or columns.dtype.kind not in "iu":
            expected = f"whole numbers of shape {values.shape}, as the probabilities"
            raise invalid("labels", who, expected, f"{columns.dtype} of shape {columns.shape}")
        if columns.min() < -1 or columns.max() >= n_labels:
            got = f"labels from {columns.min()} to {columns.max()}"
            raise invalid("labels", who, f"from -1 to {n_labels - 1}", got)
        # Ascending, so that the order of 0/1 rows is that of the whole catalogue.
        columns = np.where(columns < 0, n_labels, columns).astype(np.int64)
        order = np.argsort(columns, axis=1, kind="stable")
        columns, values = np.take_along_axis(columns, order, axis=1), np.take_along_axis(values, order, axis=1)
        twice = (columns[:, 1:] == columns[:, :-1]) & (columns[:, 1:] < n_labels)
        if twice.any():
            row, place = np.argwhere(twice)[0].tolist()
            raise invalid("labels", who, "different within a row", f"{columns[row, place]} twice in row {row}")
        values[columns == n_labels] = 0.0
        self._set(columns, values, int(n_labels))

    def _set(self, labels: IntArray, probabilities: FloatArray, n_labels: int) -> None:
        """Keep checked arrays, read-only."""
        for array in (labels, probabilities):
            array.flags.writeable = False
        self.__dict__.update(labels=labels, probabilities=probabilities, n_labels=n_labels)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"Shortlists cannot be changed: make new ones to set {name!r}.")

    @classmethod
    def from_dense(cls, probabilities: Any, k: int) -> Shortlists:
        """Return the k labels with the highest probabilities (n, d) of each text; ties: the first labels."""
        values = as_probabilities(probabilities, None, "Shortlists.from_dense")
        check_count("k", k, "Shortlists.from_dense", 1)
        columns = np.argsort(-values, axis=1, kind="stable")[:, :k]
        return cls(columns, np.take_along_axis(values, columns, axis=1), values.shape[1])

    @classmethod
    def from_csr(cls, matrix: Any) -> Shortlists:
        """Return the stored entries of a sparse matrix (n, n_labels) as shortlists."""
        rows = csr_array(matrix, copy=True)
        rows.sum_duplicates()
        counts = np.diff(rows.indptr)
        k = max(1, int(counts.max(initial=0)))
        labels, values = np.full((rows.shape[0], k), -1), np.zeros((rows.shape[0], k))
        filled = np.arange(k) < counts[:, None]
        labels[filled], values[filled] = rows.indices, rows.data
        return cls(labels, values, rows.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of texts and of labels in the catalogue."""
        return len(self.labels), self.n_labels

    @property
    def is_listed(self) -> Any:
        """Which places (n, k) hold a label."""
        return self.labels < self.n_labels

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, rows: Any) -> Shortlists:
        """Return some of the texts: a slice, a mask, or an array of their numbers."""
        if not isinstance(rows, (slice, np.ndarray, list)):
            raise invalid("rows", "Shortlists", "a slice, a mask or an array of row numbers", repr(rows))
        part = object.__new__(Shortlists)
        part._set(self.labels[rows], self.probabilities[rows], self.n_labels)
        return part

    def __iter__(self) -> Iterator[Shortlists]:
        return (self[row : row + 1] for row in range(len(self)))

    def __repr__(self) -> str:
        return f"<Shortlists of {len(self):,} texts, {self.labels.shape[1]} of {self.n_labels:,} labels each>"

    def tocsr(self) -> Any:
        """Return the probabilities as a sparse matrix (n, n_labels); listed zeros are stored."""
        listed = self.is_listed
        starts = np.append(0, listed.sum(axis=1).cumsum())
        return csr_array((self.probabilities[listed], self.labels[listed], starts), shape=self.shape)
