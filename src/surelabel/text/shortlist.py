"""One-vs-rest for very many labels: each text is scored for the labels nearest to it, and learnt from by those alone.

A label's centroid is the sum of its training texts' features, its largest components kept. A text's shortlist is the
labels whose centroids are most similar to it. A label's regression is fitted to its own texts and to the other texts
that have it on their shortlists, which is exactly what it meets at prediction: no negatives have to be guessed, and
probabilities need no correction for those that were left out. Fitting and predicting take time in proportion to
texts times shortlist, whatever the number of labels (as Slice does: Jain et al. 2019; pruned weights as in DiSMEC:
Babbar & Schoelkopf 2017).
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
import scipy.special

from surelabel._core.threads import over_rows
from surelabel._core.validation import FloatArray, IntArray
from surelabel._kernels import shortlist as kernel
from surelabel.labels.sparse import SparseProbabilities

# Largest components of a centroid that are kept.
_CENTROID_FEATURES = 200
# C if none is set.
_INVERSE_REGULARISATION = 200.0
# Change of the weights at which a label's regression is done.
_TOLERANCE = 1e-2

Rows = tuple[IntArray, IntArray, FloatArray]
_ARRAYS = ("index_starts", "index_labels", "index_values", "weight_starts", "weight_features", "weight_values")
_INTERCEPTS = "intercepts"


def _as_rows(matrix: Any) -> Rows:
    """Return a CSR array as kernels take it."""
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data.astype(np.float64)


@dataclasses.dataclass(frozen=True, eq=False)
class ShortlistModel:
    """Centroids (n_features, n_labels) and weights (n_labels, n_features): CSR arrays, the largest of each label."""

    centroids: Any
    weights: Any
    intercepts: FloatArray

    def predict(self, features: Any, shortlist: int, k: int) -> SparseProbabilities:
        """Return the k highest probabilities of each text's shortlist."""
        n_labels = len(self.intercepts)
        index, weights = _as_rows(self.centroids), _as_rows(self.weights)

        def score(rows: slice) -> Any:
            texts = _as_rows(features[rows])
            n_texts = len(texts[0]) - 1
            labels = np.empty((n_texts, min(shortlist, n_labels)), dtype=np.int64)
            scores = np.empty(labels.shape)
            kernel.nearest_labels(texts, index, n_labels, labels, scores)
            kernel.score_labels(texts, weights, self.intercepts, labels, scores)
            return _best(labels, scores, k, n_labels)

        parts = over_rows(score, features.shape[0], None)
        return SparseProbabilities(scipy.sparse.vstack(parts, format="csr"))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays that make it up, by name."""
        centroids, weights = self.centroids, self.weights
        parts = (centroids.indptr, centroids.indices, centroids.data, weights.indptr, weights.indices, weights.data)
        return {**dict(zip(_ARRAYS, parts, strict=True)), _INTERCEPTS: self.intercepts}

    @classmethod
    def from_arrays(cls, arrays: Any, n_features: int, n_labels: int) -> ShortlistModel:
        """Return the model of arrays as `arrays` gives them; ValueError if they do not fit together."""
        parts, intercepts = [arrays[name] for name in _ARRAYS], arrays[_INTERCEPTS]
        centroids = scipy.sparse.csr_array((parts[2], parts[1], parts[0]), shape=(n_features, n_labels))
        weights = scipy.sparse.csr_array((parts[5], parts[4], parts[3]), shape=(n_labels, n_features))
        for matrix in (centroids, weights):
            matrix.check_format(full_check=True)
            if not np.isfinite(matrix.data).all():
                raise ValueError("its weights are not all numbers")
        if np.isnan(intercepts).any() or np.isposinf(intercepts).any():
            raise ValueError("its intercepts are not all numbers")
        if intercepts.shape != (n_labels,) or intercepts.dtype != np.float64:
            raise ValueError("its arrays do not fit together")
        return cls(centroids, weights, intercepts)


def _best(labels: IntArray, scores: FloatArray, k: int, n_labels: int) -> Any:
    """Return the probabilities of the k best labels of each text as a CSR array."""
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    chosen = np.take_along_axis(labels, order, axis=1)
    probabilities = scipy.special.expit(np.take_along_axis(scores, order, axis=1))
    rows, places = np.nonzero(chosen >= 0)
    best = scipy.sparse.csr_array(
        (probabilities[rows, places], (rows, chosen[rows, places])), shape=(len(labels), n_labels)
    )
    best.sort_indices()
    return best


def _centroids(features: Any, labels: Any) -> Any:
    """Return the centroids as a CSR array (n_labels, n_features), of length 1, pruned to their largest components."""
    sums = scipy.sparse.csr_array(labels.T.astype(np.float32) @ features)
    starts, columns, values = [0], [], []
    for label in range(sums.shape[0]):
        part = slice(sums.indptr[label], sums.indptr[label + 1])
        kept_columns, kept = sums.indices[part], sums.data[part]
        if len(kept) > _CENTROID_FEATURES:
            largest = np.argpartition(-kept, _CENTROID_FEATURES)[:_CENTROID_FEATURES]
            kept_columns, kept = kept_columns[largest], kept[largest]
        length = np.linalg.norm(kept)
        columns.append(kept_columns)
        values.append(kept / length if length > 0 else kept)
        starts.append(starts[-1] + len(kept))
    pruned = scipy.sparse.csr_array(
        (np.concatenate(values).astype(np.float32), np.concatenate(columns), starts), shape=sums.shape
    )
    pruned.sort_indices()
    return pruned


def _samples(labels: Any, nearest: IntArray, max_negatives: int, seed: int) -> Any:
    """Return (learnt labels, starts, texts, signs, importances) of the texts that each label is learnt from.

    If a label has more than `max_negatives` negatives, that many are drawn at random and weighted to stand for all.
    """
    positives, (rows, places) = labels.astype(np.int8).tocsc(), np.nonzero(nearest >= 0)
    listed = scipy.sparse.csc_array((np.ones(len(rows), dtype=np.int8), (rows, nearest[rows, places])), labels.shape)
    negatives = (listed > positives).tocsc()
    learnt = np.flatnonzero(np.diff(positives.indptr))
    random = np.random.default_rng(seed)
    starts, texts, signs, importances = [0], [], [], []
    for label in learnt:
        own, others = (
            np.sort(table.indices[table.indptr[label] : table.indptr[label + 1]]).astype(np.int64)
            for table in (positives, negatives)
        )
        importance = 1.0
        if len(others) > max_negatives:
            importance = len(others) / max_negatives
            others = np.sort(random.choice(others, max_negatives, replace=False))
        texts += [own, others]
        signs += [np.ones(len(own)), -np.ones(len(others))]
        importances += [np.ones(len(own)), np.full(len(others), importance)]
        starts.append(starts[-1] + len(own) + len(others))
    return learnt, np.array(starts), np.concatenate(texts), np.concatenate(signs), np.concatenate(importances)


def _weights(features: Any, samples: Any, inverse_regularisation: float, max_weights: int, n_labels: int) -> Any:
    """Fit every learnt label; return weights as a CSR array (n_labels, n_features), and intercepts (n_labels,)."""
    texts = _as_rows(features)
    learnt, starts, rows, signs, importances = samples
    costs = inverse_regularisation * importances
    n_features = features.shape[1]

    def fit(block: slice) -> Any:
        n = block.stop - block.start
        part = slice(starts[block.start], starts[block.stop])
        kept = np.empty((n, max_weights), dtype=np.int64), np.empty((n, max_weights), dtype=np.float32)
        counts, intercepts = np.empty(n, dtype=np.int64), np.empty(n)
        sampled = (starts[block.start : block.stop + 1] - part.start, rows[part], signs[part], costs[part])
        kernel.fit_labels(texts, n_features, sampled, _TOLERANCE, max_weights, (*kept, counts, intercepts))
        used = np.arange(max_weights) < counts[:, None]
        return kept[0][used], kept[1][used], counts, intercepts

    columns, values, counts, intercepts = (
        np.concatenate(parts) for parts in zip(*over_rows(fit, len(learnt), None), strict=True)
    )
    ends = np.zeros(n_labels + 1, dtype=np.int64)
    ends[learnt + 1] = counts
    all_intercepts = np.full(n_labels, -np.inf)
    all_intercepts[learnt] = intercepts
    weights = scipy.sparse.csr_array((values, columns, np.cumsum(ends)), shape=(n_labels, n_features))
    return weights, all_intercepts


def fit_shortlists(features: Any, labels: Any, settings: Any) -> ShortlistModel:
    """Learn from TF-IDF features (n, F) and labels (n, d), both CSR arrays, with the settings of the linear kind."""
    n_texts, n_labels = labels.shape
    centroids = _centroids(features, labels).tocsc()
    by_feature = scipy.sparse.csr_array(
        (centroids.data, centroids.indices, centroids.indptr), shape=(features.shape[1], n_labels)
    )
    index = _as_rows(by_feature)
    nearest = np.empty((n_texts, min(settings.shortlist, n_labels)), dtype=np.int64)

    def search(rows: slice) -> None:
        similarities = np.empty((rows.stop - rows.start, nearest.shape[1]))
        kernel.nearest_labels(_as_rows(features[rows]), index, n_labels, nearest[rows], similarities)

    over_rows(search, n_texts, None)
    samples = _samples(labels, nearest, settings.max_negatives, settings.seed)
    cost = settings.inverse_regularisation or _INVERSE_REGULARISATION
    weights, intercepts = _weights(features, samples, cost, settings.max_weights, n_labels)
    return ShortlistModel(by_feature, weights, intercepts)
