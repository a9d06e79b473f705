"""One linear score per label: support vector machines or logistic regressions, labels in parallel.

Each label draws from a random stream of its own, so the weights do not depend on the number of threads.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse

from surelabel._core.threads import threads_to_use
from surelabel._core.validation import FloatArray
from surelabel._kernels import solver as kernels

Loss: TypeAlias = Literal["svm", "logistic"]

_TOLERANCE = 0.05
_MOST_PASSES = 100
_STREAMS = 1_000_003  # odd, so that seeds and labels do not share streams


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A way to fit: the loss, C, and how much more texts with a rare label count."""

    loss: Loss
    c: float
    rare_weight: float = 0.0


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
    features: Any, labels: Any, candidate: Candidate, seed: int, advance: Callable[[int], None] | None = None
) -> LinearScores:
    """Fit one score per label on features (n, n_features), a float32 CSR array, and labels (n, n_labels), bool.

    A text with a label that m of n texts have costs C ((n - m) / m)^rare_weight. The seed orders the texts; `advance`
    is called after each label, from any thread.
    """
    n_texts, n_labels = labels.shape
    texts = (features.indptr.astype(np.int64), features.indices.astype(np.int32), features.data.astype(np.float32))
    squares = np.asarray(features.multiply(features).sum(axis=1), dtype=np.float64).ravel() + 1.0
    columns: Any = labels if isinstance(labels, np.ndarray) else scipy.sparse.csc_array(labels)
    fit = kernels.fit_svm if candidate.loss == "svm" else kernels.fit_logistic
    weights = np.zeros((features.shape[1], n_labels), dtype=np.float32)
    intercepts = np.zeros(n_labels)

    def fit_label(label: int) -> None:
        target = np.ascontiguousarray(columns[:, label] if columns is labels else columns[:, [label]].toarray()[:, 0])
        positive = max(1, int(target.sum()))
        raised = candidate.c * (max(1, n_texts - positive) / positive) ** candidate.rare_weight
        learnt = np.zeros(features.shape[1] + 1)
        stream = np.uint64((seed * _STREAMS + label + 1) % 2**63)
        rule = (raised, float(candidate.c), _TOLERANCE, _MOST_PASSES)
        fit(texts, squares, rule, target, stream, np.zeros(n_texts), learnt)
        weights[:, label] = learnt[:-1]
        intercepts[label] = learnt[-1]
        if advance is not None:
            advance(1)

    with concurrent.futures.ThreadPoolExecutor(min(threads_to_use(None), n_labels)) as threads:
        list(threads.map(fit_label, range(n_labels)))
    return LinearScores(weights, intercepts)
