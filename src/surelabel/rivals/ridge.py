"""Prediction without a calibration part, for small data: transductive and cross-conformal, around ridge regression.

Ridge regression of the 0/1 labels on features is the cheap classifier: refitting it with one more text is a rank-one
update, so that transductive prediction is exact and affordable. Its score is the squared distance between a text's
labels and its fitted values.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from surelabel._core.validation import BoolArray, FloatArray, as_labels, as_level, check_count, invalid, not_calibrated
from surelabel._kernels import transductive
from surelabel.exceptions import InvalidInputError
from surelabel.labels.counting import binomials
from surelabel.rivals.protocol import Limits, ListedSets, checked_limits

# Candidates that are listed if none are given.
_MAX_CANDIDATES = 2**14
# Scores this near to each other, relative to the larger, count as equal: p-values may only err upwards.
_TIE = 1e-9


def _as_features(values: Any, who: str, n_features: int | None = None) -> FloatArray:
    """Return features as a float64 array (n, p) of finite numbers with a constant behind them."""
    array = np.asarray(values.toarray() if hasattr(values, "toarray") else values, dtype=np.float64)
    if array.ndim != 2 or not np.isfinite(array).all() or len(array) == 0:
        raise InvalidInputError(
            f"The features given to {who} must be a (n_texts, n_features) array of finite numbers. "
            f"Got shape {array.shape} instead."
        )
    if n_features is not None and array.shape[1] != n_features:
        raise InvalidInputError(f"The features given to {who} must be {n_features}. Got {array.shape[1]} instead.")
    return np.column_stack([array, np.ones(len(array))])


def _list_candidates(n_labels: int, limits: Limits) -> BoolArray:
    """Return all candidates, if they are not too many."""
    lo, hi = limits.of(n_labels)
    count = sum(binomials(n_labels)[lo : hi + 1])
    if count > _MAX_CANDIDATES:
        raise InvalidInputError(
            f"There are {count:,} candidates, more than {_MAX_CANDIDATES:,}. Give 'candidates', such as the label-sets "
            "seen in training, or lower max_labels."
        )
    rows = np.zeros((count, n_labels), dtype=np.bool_)
    chosen = itertools.chain.from_iterable(itertools.combinations(range(n_labels), size) for size in range(lo, hi + 1))
    for row, labels in zip(rows, chosen, strict=True):
        row[list(labels)] = True
    return rows


class _Ridge:
    """What both have: features, labels, candidates."""

    _features: FloatArray
    _labels: FloatArray
    _candidates: BoolArray

    def __init__(
        self, *, penalty: float = 1.0, candidates: Any = None, min_labels: int = 1, max_labels: int | None = None
    ) -> None:
        who = type(self).__name__
        if isinstance(penalty, bool) or not isinstance(penalty, (int, float)) or not penalty > 0:
            raise invalid("penalty", who, "a number > 0", repr(penalty))
        self._penalty = float(penalty)
        self._limits = checked_limits(min_labels, max_labels, who)
        self._given = None if candidates is None else as_labels(candidates, who=who, parameter="candidates")

    def _take(self, features: Any, labels: Any) -> None:
        """Keep checked data."""
        checked = _as_features(features, "calibrate")
        truth = as_labels(labels, who="calibrate", n_texts=len(checked))
        if self._given is None:
            self._candidates = _list_candidates(truth.shape[1], self._limits)
        else:
            as_labels(self._given, who="calibrate", parameter="candidates", n_labels=truth.shape[1])
            admitted = self._given[self._limits.admit(self._given)]
            self._candidates = np.unique(admitted, axis=0)
        self._features, self._labels = checked, truth.astype(np.float64)

    def _fit(self, rows: Any) -> tuple[FloatArray, FloatArray]:
        """Return (X'X + penalty)^-1 and the coefficients of a ridge regression on some rows."""
        features = self._features[rows]
        inverse = np.linalg.inv(features.T @ features + self._penalty * np.eye(features.shape[1]))
        return inverse, inverse @ (features.T @ self._labels[rows])

    def _ranks(self, features: FloatArray) -> Any:
        """Return for each text and candidate how many calibration texts are at least as strange, (n, m)."""
        raise NotImplementedError

    def predict_set(self, features: Any, *, significance: Any) -> ListedSets:
        """Return the candidates whose p-value is over the significance."""
        return self.predict_sets(features, [significance])[0]

    def predict_sets(self, features: Any, levels: Sequence[Any]) -> list[ListedSets]:
        """Return the same at several significances; candidates are ranked once."""
        if not hasattr(self, "_features"):
            raise not_calibrated(self, "predict_set")
        n_texts = len(self._features)
        least = [int(as_level(level, None, who="predict_set") * (n_texts + 1)) for level in levels]
        ranks = self._ranks(_as_features(features, "predict_set", self._features.shape[1] - 1))
        return [ListedSets(ranks >= k, self._candidates) for k in least]


class TransductiveRidge(_Ridge):
    """Full (transductive) conformal prediction: for each candidate the model is fitted again with it.

    Parameters
    ----------
    penalty : float
        Of ridge regression.
    candidates : (m, d) 0/1 array-like, optional
        Label-sets to consider, all within the limits by default, at most 2^14.
    min_labels, max_labels : int
        Limits of candidates.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> features = rng.random((300, 3))
    >>> labels = rng.random((300, 3)) < features
    >>> rival = TransductiveRidge(min_labels=0).calibrate(features[:200], labels[:200])
    >>> sets = rival.predict_set(features[200:], significance=0.2)
    >>> round(float(sets.contains(labels[200:]).mean()), 2), round(float(sets.sizes().mean()), 2)
    (0.85, 3.27)
    """

    name = "transductive ridge"
    guarantee = "the label-set is missed in at most e of texts, if it is a candidate; no text is kept from training"

    def calibrate(self, features: Any, labels: Any) -> TransductiveRidge:
        """Take all texts with known labels, (n, p) and (n, d): nothing is held out."""
        self._take(features, labels)
        self._inverse, self._coefficients = self._fit(slice(None))
        self._residuals = self._labels - self._features @ self._coefficients
        return self

    def _ranks(self, features: FloatArray) -> Any:
        """Rank by rank-one updates.

        With h_i = x_i' G x and c = 1 + x' G x, residuals of the refitted model are r_i - (h_i / c) (Y - f) for a
        calibration text and (Y - f) / c for the new one, f its fitted values before.
        """
        candidates = self._candidates.astype(np.float64)
        across = candidates @ self._residuals.T
        squares = (self._residuals**2).sum(axis=1)
        sizes = candidates.sum(axis=1)
        ranks = np.empty((len(features), len(candidates)), dtype=np.int64)
        for row, text in enumerate(features):
            direction = self._inverse @ text
            scale = 1.0 + float(text @ direction)
            weights = (self._features @ direction) / scale
            fitted = text @ self._coefficients
            distance = np.maximum(float(fitted @ fitted) - 2.0 * (candidates @ fitted) + sizes, 0.0)
            own = self._residuals @ fitted
            transductive.ranks_row(across, own, squares, weights, distance, scale, _TIE, ranks[row])
        return ranks


class CrossConformalRidge(_Ridge):
    """Cross-conformal prediction: each fold is calibrated with a model fitted on the others (Vovk 2015).

    Parameters
    ----------
    n_folds : int
    seed : int
        Of the folds.
    **parameters
        `penalty`, `candidates`, `min_labels` and `max_labels`, as of `TransductiveRidge`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> features = rng.random((300, 3))
    >>> labels = rng.random((300, 3)) < features
    >>> rival = CrossConformalRidge(min_labels=0).calibrate(features[:200], labels[:200])
    >>> sets = rival.predict_set(features[200:], significance=0.2)
    >>> round(float(sets.contains(labels[200:]).mean()), 2), round(float(sets.sizes().mean()), 2)
    (0.83, 3.18)
    """

    name = "cross-conformal ridge"
    guarantee = (
        "the label-set, if it is a candidate, is missed in at most 2 e of texts and a little more (2 K / n for K "
        "folds of n texts); in practice in about e"
    )

    def __init__(self, *, n_folds: int = 5, seed: int = 0, **parameters: Any) -> None:
        super().__init__(**parameters)
        check_count("n_folds", n_folds, who="CrossConformalRidge", least=2)
        self._n_folds, self._seed = int(n_folds), seed

    def calibrate(self, features: Any, labels: Any) -> CrossConformalRidge:
        """Fit a model to all other folds, (n, p) and (n, d), and score each fold with it."""
        self._take(features, labels)
        n_texts = len(self._features)
        if n_texts < self._n_folds:
            raise InvalidInputError(f"calibrate needs {self._n_folds} texts, one per fold. Got {n_texts} instead.")
        fold = np.random.default_rng(self._seed).permutation(np.arange(n_texts) % self._n_folds)
        self._models = []
        for k in range(self._n_folds):
            _, coefficients = self._fit(fold != k)
            residuals = self._labels[fold == k] - self._features[fold == k] @ coefficients
            self._models.append((coefficients, np.sort((residuals**2).sum(axis=1))))
        return self

    def _ranks(self, features: FloatArray) -> Any:
        """Rank among each fold under the fold's own model."""
        candidates = self._candidates.astype(np.float64)
        sizes = candidates.sum(axis=1)
        ranks = np.zeros((len(features), len(candidates)), dtype=np.int64)
        for coefficients, scores in self._models:
            fitted = features @ coefficients
            new = (fitted**2).sum(axis=1)[:, None] - 2.0 * fitted @ candidates.T + sizes
            ranks += len(scores) - np.searchsorted(scores, new * (1.0 - _TIE) - _TIE, side="left")
        return ranks
