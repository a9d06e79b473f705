"""One linear score per label: support vector machines or logistic regressions, labels in parallel.

Every label draws from its own stream of random numbers and releases the GIL, so the weights depend neither on the
number of threads nor on what else runs.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse

from surelabel._core.threads import threads_to_use
from surelabel._core.validation import FloatArray
from surelabel._kernels import separating as kernel

Loss: TypeAlias = Literal["svm", "logistic"]

_TOLERANCE = 0.05
_MOST_PASSES = 100
# Odd, so that seeds and labels do not share streams.
_STREAMS = 1_000_003


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A way to fit: the loss, C (`inverse_regularisation`), and how much more the texts with a rare label count."""

    loss: Loss
    inverse_regularisation: float
    rare_weight: float = 0.0

    def __str__(self) -> str:
        return f"{self.loss} with C = {self.inverse_regularisation:g}"


@dataclasses.dataclass(frozen=True, eq=False)
class LinearScores:
    """Weights (n_features, n_labels) float32 and intercepts (n_labels,) float64."""

    weights: npt.NDArray[np.float32]
    intercepts: FloatArray

    def __call__(self, features: Any) -> FloatArray:
        """Return the scores (n, n_labels) of features, a float32 CSR array."""
        if features.shape[1] == 0:
            return np.tile(self.intercepts, (features.shape[0], 1))
        return np.asarray(features @ self.weights, dtype=np.float64) + self.intercepts


def fit_scores(
    features: Any, labels: Any, candidate: Candidate, seed: int, advance: Callable[[], None] | None = None
) -> LinearScores:
    """Fit one score per label on features (n, n_features), a float32 CSR array, and labels (n, n_labels), bool.

    A text with a label that m of n texts have costs C ((n - m) / m)^rare_weight. `seed` orders the texts; `advance` is
    called after each label, from any thread.
    """
    n_texts, n_labels = labels.shape
    texts = (features.indptr.astype(np.int64), features.indices.astype(np.int32), features.data.astype(np.float32))
    squares = np.asarray(features.multiply(features).sum(axis=1), dtype=np.float64).ravel() + 1.0
    columns: Any = labels if isinstance(labels, np.ndarray) else scipy.sparse.csc_array(labels)
    fit = kernel.fit_svm if candidate.loss == "svm" else kernel.fit_logistic
    weights = np.zeros((features.shape[1], n_labels), dtype=np.float32)
    intercepts = np.zeros(n_labels)
    cost = float(candidate.inverse_regularisation)

    def fit_label(label: int) -> None:
        target = np.ascontiguousarray(columns[:, label] if columns is labels else columns[:, [label]].toarray()[:, 0])
        positive = max(1, int(target.sum()))
        raised = cost * (max(1, n_texts - positive) / positive) ** candidate.rare_weight
        learnt = np.zeros(features.shape[1] + 1)
        stream = np.uint64((seed * _STREAMS + label + 1) % 2**63)
        rule = (raised, cost, _TOLERANCE, _MOST_PASSES)
        fit(texts, squares, rule, target, stream, np.zeros(n_texts), learnt)
        weights[:, label] = learnt[:-1]
        intercepts[label] = learnt[-1]
        if advance is not None:
            advance()

    with concurrent.futures.ThreadPoolExecutor(min(threads_to_use(None), n_labels)) as threads:
        list(threads.map(fit_label, range(n_labels)))
    return LinearScores(weights, intercepts)


def parts_of(features: Any, labels: Any, folds: Iterable[Any]) -> Iterator[tuple[Any, Any, Any]]:
    """Yield, for the rows of each fold, features and labels of all other texts, and the features of the fold."""
    for rows in folds:
        kept = np.setdiff1d(np.arange(features.shape[0]), rows)
        yield features[kept], labels[kept], features[rows]


def fit_parts(
    parts: Iterable[tuple[Any, Any, Any]], candidate: Candidate, seed: int, advance: Callable[[], None]
) -> tuple[LinearScores, FloatArray]:
    """Fit on each part; return the last fit, and the scores of the texts that parts hold out, part after part."""
    scores = []
    for features, labels, held_out in parts:
        fitted = fit_scores(features, labels, candidate, seed, advance)
        scores.append(fitted(held_out))
    return fitted, np.concatenate(scores)
