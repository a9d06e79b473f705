"""The Mahalanobis measure: how strange the errors of all labels are together (Katsios & Papadopoulos 2024)."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from surelabel._core.validation import BoolArray, FloatArray, IntArray, as_texts, invalid
from surelabel._kernels import quadratic
from surelabel.exceptions import InvalidInputError
from surelabel.measures.base import Frozen

# Smallest eigenvalue of the covariance beside its largest: what keeps the inverse positive definite in float64.
_LEAST_EIGENVALUE = 1e-10
# What the diagonals below and above give away, beside the matrix's own, to be certain in spite of rounding.
_MARGIN = 1e-10
# Places in the order of labels from where on a new diagonal is computed: as many as take a second or so to compute.
_LEAST_STAGES = 16
_STAGES_TIMES_LABELS = 20_000
_BARRIERS = (1.0, 10.0, 100.0, 1000.0)
_NEWTON_STEPS = 12


@dataclasses.dataclass(frozen=True, eq=False)
class Mahalanobis(Frozen):
    """The Mahalanobis norm of the errors |o - y| of a label-set y beside probabilities o.

    score^2 = e' M e with e = |o - y| and M the inverse of the Ledoit-Wolf covariance of the errors on texts apart from
    calibration. An error that usually comes with another one counts less than the two would separately.

    Parameters
    ----------
    matrix : (d, d) array, optional
        M, symmetric and positive definite. `fit` makes it.

    Examples
    --------
    >>> from surelabel import ConformalLabelSets, Mahalanobis
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.random((200, 3)) < 0.4
    >>> probabilities = np.clip(labels + rng.normal(0, 0.3, (200, 3)), 0, 1)
    >>> measure = Mahalanobis().fit(probabilities[:100], labels[:100])
    >>> predictor = ConformalLabelSets(measure, min_labels=0).calibrate(probabilities[100:], labels[100:])
    >>> predictor.predict_set([[0.9, 0.1, 0.2]], significance=0.1)[0].top(1)[0][0]
    frozenset({0})
    """

    matrix: FloatArray | None = None

    def __post_init__(self) -> None:
        if self.matrix is None:
            return
        matrix = np.array(self.matrix, dtype=np.float64, order="C")
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
            raise invalid("matrix", "Mahalanobis", "a square matrix", f"shape {matrix.shape}")
        if not np.all(np.abs(matrix) < 1e100) or not np.array_equal(matrix, matrix.T):
            raise InvalidInputError("The 'matrix' parameter of Mahalanobis must be finite (below 1e100) and symmetric.")
        smallest = np.linalg.eigvalsh(matrix)[0] if np.all(np.diag(matrix) > 0) else -1.0
        if smallest <= 0:
            raise invalid("matrix", "Mahalanobis", "positive definite", f"an eigenvalue of {smallest:g}")
        self._freeze(matrix=matrix)

    def __repr__(self) -> str:
        return "Mahalanobis()" if self.matrix is None else f"<Mahalanobis of {self.n_labels} labels>"

    @property
    def n_labels(self) -> int:
        """Number of labels that the measure was fitted on."""
        return len(self.fitted_matrix)

    @property
    def fitted_matrix(self) -> FloatArray:
        """M, (d, d); an error if there is none yet."""
        matrix: FloatArray = self._learnt("matrix", "probabilities and labels of texts apart from calibration")
        return matrix

    def fit(self, probabilities: Any, labels: Any) -> Mahalanobis:
        """Return a fitted copy: the inverse of the Ledoit-Wolf covariance of the errors |o - y|.

        Parameters
        ----------
        probabilities : (n, d) array-like
            Of texts apart from calibration: best those of a validation part, whose errors the classifier has not been
            trained to make small.
        labels : (n, d) 0/1 array-like or sparse matrix
        """
        checked, truth = as_texts(probabilities, labels, who="Mahalanobis.fit")
        n_texts, n_labels = checked.shape
        if n_texts < 2:
            raise invalid("probabilities", "Mahalanobis.fit", "those of 2 texts or more", f"{n_texts}")
        from sklearn.covariance import ledoit_wolf  # noqa: PLC0415 (predictions do without scikit-learn)

        covariance, _ = ledoit_wolf(np.abs(checked - truth))
        values, vectors = np.linalg.eigh(np.atleast_2d(covariance))
        largest = float(values[-1])
        # Errors that do not vary at all say nothing: all labels count the same.
        values = np.ones(n_labels) if largest < 1e-90 else np.maximum(values, _LEAST_EIGENVALUE * largest)
        matrix = (vectors / values) @ vectors.T
        return Mahalanobis((matrix + matrix.T) / 2.0)

    def to_spec(self) -> dict[str, Any]:
        """Describe the measure in plain values; `arrays` has the rest."""
        return {"kind": "mahalanobis", "n_labels": self.n_labels}

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what a file must keep beside `to_spec`."""
        return {"matrix": self.fitted_matrix}

    def totals(self, probabilities: FloatArray, labels: BoolArray) -> FloatArray:
        """Return e' M e of one label-set per text, (n,), correctly rounded, for probabilities and labels (n, d)."""
        return self._totals(quadratic.totals_of_rows, probabilities, labels)

    def totals_of_label_sets(self, probabilities: FloatArray, labels: BoolArray) -> FloatArray:
        """Return the totals of many label-sets (m, d) of one text (d,); the same as `totals`, faster."""
        return self._totals(quadratic.totals_of_label_sets, probabilities, labels)

    def _totals(self, add_up: Callable[..., None], probabilities: FloatArray, labels: BoolArray) -> FloatArray:
        """Add up in a kernel, and in exact arithmetic what it cannot round for certain."""
        totals, settled = np.empty(len(labels)), np.empty(len(labels), dtype=np.bool_)
        add_up(self.kernel_matrix, probabilities, labels, totals, settled)
        for i in np.flatnonzero(~settled):
            totals[i] = self._exact_total(probabilities if probabilities.ndim == 1 else probabilities[i], labels[i])
        return totals

    def _exact_total(self, probabilities: FloatArray, labels: BoolArray) -> float:
        """Add one form up in exact arithmetic and round it once."""
        matrix = self.fitted_matrix
        errors = np.where(labels, 1.0 - probabilities, probabilities)
        exact = [Fraction(float(error)) for error in errors]
        places = np.flatnonzero(errors)
        rows = (exact[i] * sum((Fraction(float(matrix[i, j])) * exact[j] for j in places), Fraction(0)) for i in places)
        return float(sum(rows, Fraction(0)))

    def score(self, totals: FloatArray) -> FloatArray:
        """Return the norm: the square roots of totals."""
        return np.sqrt(totals)

    @functools.cached_property
    def kernel_matrix(self) -> FloatArray:
        """A writable copy of M: kernels would be compiled a second time for read-only memory."""
        return self.fitted_matrix.copy()

    @functools.cached_property
    def order(self) -> IntArray:
        """Labels in the order in which searches decide them: those whose errors weigh most first."""
        return np.argsort(-np.diag(self.fitted_matrix), kind="stable").astype(np.int64)

    @functools.cached_property
    def stages(self) -> tuple[FloatArray, IntArray]:
        """Diagonals below M for what is left of the order: (slacks (s, d), stages (d,)).

        slacks[s, k] is M[k, k] - D[k] of a diagonal D such that M - D is positive semidefinite on the labels of stage
        s and later; stages[k] is the stage once label k has been decided.
        """
        # Matrices are small: more than one thread only waits for the others.
        with threadpool_limits(1):
            return self._stages()

    def _stages(self) -> tuple[FloatArray, IntArray]:
        """Compute `stages`."""
        matrix, order, n_labels = self.fitted_matrix, self.order, self.n_labels
        scale = np.sqrt(np.diag(matrix))[order]
        correlation = matrix[np.ix_(order, order)] / np.outer(scale, scale)
        n_stages = min(n_labels, max(_LEAST_STAGES, _STAGES_TIMES_LABELS // n_labels))
        starts = np.unique(np.linspace(0, n_labels, n_stages, endpoint=False).astype(np.int64))
        slacks = np.zeros((len(starts), n_labels))
        diagonal: FloatArray | None = None
        previous = 0
        for s, start in enumerate(starts):
            guess = None if diagonal is None else diagonal[start - previous :]
            diagonal = _diagonal_below(correlation[start:, start:], guess)
            previous = int(start)
            slacks[s, order[start:]] = (1.0 - diagonal + _MARGIN) * scale[start:] ** 2
        after = np.searchsorted(starts, np.arange(1, n_labels + 1), side="right") - 1
        stages = np.empty(n_labels, dtype=np.int64)
        stages[order] = after
        return slacks, stages

    @functools.cached_property
    def diagonals(self) -> tuple[FloatArray, FloatArray]:
        """Diagonals (below, above), (d,) each, with sum below[k] e[k]^2 <= e' M e <= sum above[k] e[k]^2 for e >= 0."""
        matrix = self.fitted_matrix
        own = np.diag(matrix)
        slacks, _ = self.stages
        below = np.maximum(own - slacks[0], 0.0)
        scale = np.sqrt(own)
        correlation = matrix / np.outer(scale, scale)
        positive = np.maximum(correlation, 0.0)
        # For e >= 0 negative entries only lower the form, and 2 e_i e_j <= e_i^2 + e_j^2.
        by_rows = positive.sum(axis=1)
        by_eigenvalue = np.full(len(own), np.linalg.eigvalsh(positive)[-1])
        above = by_rows if by_rows.sum() < by_eigenvalue.sum() else by_eigenvalue
        return below, own * (above + _MARGIN)


def _is_positive_definite(matrix: FloatArray) -> bool:
    """Tell whether a symmetric matrix has a Cholesky factor."""
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True


def _diagonal_below(correlation: FloatArray, guess: FloatArray | None) -> FloatArray:
    """Return a diagonal x >= 0, (d,), of large sum such that correlation - x is positive semidefinite."""
    # Newton's method with barriers for both conditions (minimum trace factor analysis). Any x that has a Cholesky
    # factor will do: it need not be the best one.
    identity = np.eye(len(correlation))
    x = np.full(len(correlation), 0.5 * float(np.linalg.eigvalsh(correlation)[0])) if guess is None else guess.copy()
    if not np.all(x > 0) or not _is_positive_definite(correlation - identity * x):
        return np.zeros(len(correlation))
    for weight in _BARRIERS if guess is None else _BARRIERS[-1:]:
        for _ in range(_NEWTON_STEPS):
            inverse = np.linalg.inv(correlation - identity * x)
            slope = weight - np.diag(inverse) + 1.0 / x
            step = np.linalg.solve(inverse * inverse + identity / x**2, slope)
            length = 1.0
            while length > 1e-6:
                trial = x + length * step
                if np.all(trial > 0) and _is_positive_definite(correlation - identity * trial):
                    x = trial
                    break
                length *= 0.5
            if length <= 1e-6 or float(slope @ step) < 1e-3:
                break
    return x
