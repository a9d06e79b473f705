"""From probabilities to one label-set per text, for F1: labels at or above thresholds chosen on validation texts.

The most plausible label-set (the forced prediction) is meant to be exactly right as often as possible. F1 counts
labels, and needs another rule: a threshold, usually below one half, and at least one label if every training text has
one. Prediction sets do not depend on it.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse

from surelabel._core.validation import FloatArray, as_labels, as_probabilities
from surelabel.exceptions import InvalidInputError
from surelabel.labels.sparse import SparseProbabilities, as_sparse_labels

# Validation texts with a label, and without it, that a threshold of its own requires.
_LEAST_TEXTS = 10
# The lowest threshold of a label with fewer.
_LOWEST = 0.02
_FOLDS = 5
# Micro-F1 that thresholds per label must add: so many numbers must be worth it.
_LEAST_GAIN = 0.002


@dataclasses.dataclass(frozen=True, eq=False)
class Thresholds:
    """The lowest probability at which each label is assigned; made by `fit`.

    Parameters
    ----------
    values : (d,) float64
        A threshold per label; all the same if one for all is better.
    at_least_one : bool
        Whether a text whose labels all lie below their thresholds gets its most probable one.
    average : {"micro", "macro"}
        The F1 they were chosen for: of all labels together, or of each label by itself.

    Examples
    --------
    >>> from surelabel.text import Thresholds
    >>> probabilities = [[0.9, 0.1], [0.4, 0.2], [0.1, 0.8], [0.2, 0.3]]
    >>> thresholds = Thresholds.fit(probabilities, [[1, 0], [1, 0], [0, 1], [0, 1]])
    >>> thresholds.values.round(2), thresholds.at_least_one
    (array([0.25, 0.25]), True)
    >>> thresholds.predict([[0.35, 0.1], [0.2, 0.1]]).astype(int)
    array([[1, 0],
           [1, 0]])
    """

    values: FloatArray
    at_least_one: bool
    average: Literal["micro", "macro"] = "micro"

    def __post_init__(self) -> None:
        values = np.asarray(self.values, dtype=np.float64)
        if values.ndim != 1 or not len(values) or not np.all((values >= 0) & (values <= 1)):
            raise InvalidInputError(
                "The 'values' of Thresholds must be numbers from 0 to 1, one per label. "
                f"Got an array of shape {values.shape} with others."
            )
        if self.average not in {"micro", "macro"}:
            raise InvalidInputError(f"The 'average' of Thresholds must be 'micro' or 'macro'. Got {self.average!r}.")
        object.__setattr__(self, "values", values)

    @classmethod
    def fit(cls, probabilities: Any, labels: Any, *, per_label: bool | None = None, seed: int = 0) -> Self:
        """Choose thresholds for the highest F1 on validation texts.

        Parameters
        ----------
        probabilities : (n, d) array-like, or SparseProbabilities
            Of texts that the classifier was not trained on and that are not used to calibrate.
        labels : (n, d) 0/1 array-like or sparse matrix
            If every text has at least one, every prediction gets at least one.
        per_label : bool, optional
            True chooses one threshold per label, for macro-F1. A label that fewer than 10 texts have gets half of its
            expected F1 by its probabilities, which is best if they are right. False chooses one for all, for
            micro-F1; None, whichever has the higher cross-validated micro-F1. Listed probabilities get one for all.
        seed : int
            Of the folds.
        """
        if isinstance(probabilities, SparseProbabilities):
            if per_label:
                raise InvalidInputError("Thresholds per label need the probabilities of all labels, not listed ones.")
            return cls._fit_listed(probabilities, labels)
        checked = as_probabilities(probabilities, who="Thresholds.fit")
        truth = as_labels(labels, who="Thresholds.fit", n_texts=len(checked), n_labels=checked.shape[1])
        at_least_one = bool(truth.any(axis=1).all())
        average: Literal["micro", "macro"] = "macro" if per_label else "micro"
        if per_label is None:
            per_label = _per_label_wins(checked, truth, at_least_one, seed)
        return cls(_values(checked, truth, per_label), at_least_one, average)

    @classmethod
    def _fit_listed(cls, probabilities: SparseProbabilities, labels: Any) -> Self:
        """Choose one threshold among the listed probabilities; labels that are not listed are missed by any."""
        matrix = probabilities.matrix
        truth = as_sparse_labels(labels, who="Thresholds.fit", shape=matrix.shape)
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        hits = np.asarray(truth[rows, matrix.indices]).ravel().astype(bool)
        value = _best_threshold(matrix.data, hits, int(truth.sum()))
        at_least_one = bool((np.diff(truth.indptr) > 0).all())
        return cls(np.full(matrix.shape[1], value), at_least_one)

    def predict(self, probabilities: Any) -> Any:
        """Return the labels of each text: bool (n, d), a bool CSR array for listed probabilities."""
        if isinstance(probabilities, SparseProbabilities):
            return self._predict_listed(probabilities)
        checked = as_probabilities(probabilities, who="Thresholds.predict", n_labels=len(self.values))
        predicted = checked >= self.values
        if self.at_least_one:
            empty = np.flatnonzero(~predicted.any(axis=1))
            predicted[empty, checked[empty].argmax(axis=1)] = True
        return predicted

    def _predict_listed(self, probabilities: SparseProbabilities) -> Any:
        matrix = probabilities.matrix
        if matrix.shape[1] != len(self.values):
            raise InvalidInputError(
                f"The probabilities given to Thresholds.predict must be of {len(self.values)} labels. "
                f"Got {matrix.shape[1]} instead."
            )
        chosen = matrix.data >= self.values[matrix.indices]
        if self.at_least_one:
            for row in range(matrix.shape[0]):
                part = slice(matrix.indptr[row], matrix.indptr[row + 1])
                if part.stop > part.start and not chosen[part].any():
                    chosen[part.start + int(matrix.data[part].argmax())] = True
        predicted = scipy.sparse.csr_array((chosen, matrix.indices.copy(), matrix.indptr.copy()), shape=matrix.shape)
        predicted.eliminate_zeros()
        return predicted

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as JSON can hold them."""
        return {"values": self.values.tolist(), "at_least_one": self.at_least_one, "average": self.average}

    @classmethod
    def from_dict(cls, document: Any) -> Self:
        """Return the inverse of `to_dict`; InvalidInputError if it is something else."""
        try:
            values = np.asarray(document["values"], dtype=np.float64)
            at_least_one, average = document["at_least_one"], document.get("average", "micro")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InvalidInputError(f"Thresholds are described by 'values' and 'at_least_one': {error!r}.") from error
        if not isinstance(at_least_one, bool):
            raise InvalidInputError(f"The 'at_least_one' of Thresholds must be true or false. Got {at_least_one!r}.")
        return cls(values, at_least_one, average)


def _best_threshold(probabilities: Any, hits: Any, n_positive: int) -> float:
    """Return the threshold with the highest F1: halfway to the next lower probability; of equal ones the highest."""
    order = np.argsort(-probabilities, kind="stable")
    sorted_probabilities = probabilities[order]
    n_taken = np.arange(1, len(order) + 1)
    f1 = 2.0 * np.cumsum(hits[order]) / (n_taken + n_positive)
    # Equal probabilities are taken together or not at all.
    is_last = np.append(sorted_probabilities[1:] < sorted_probabilities[:-1], True)
    f1[~is_last] = -1.0
    place = int(f1.argmax())
    following = sorted_probabilities[place + 1] if place + 1 < len(order) else 0.0
    return float(0.5 * (sorted_probabilities[place] + following))


def _values(probabilities: Any, labels: Any, per_label: bool) -> FloatArray:
    """Return thresholds (d,)."""
    one = _best_threshold(probabilities.ravel(), labels.ravel(), int(labels.sum())) if labels.any() else 0.5
    values = np.full(probabilities.shape[1], one)
    if per_label:
        counts = labels.sum(axis=0)
        values = np.maximum(0.5 * _expected_f1(probabilities), _LOWEST)
        for label in np.flatnonzero((counts >= _LEAST_TEXTS) & (len(labels) - counts >= _LEAST_TEXTS)):
            values[label] = _best_threshold(probabilities[:, label], labels[:, label], int(counts[label]))
    return values


def _expected_f1(probabilities: Any) -> FloatArray:
    """Return the highest expected F1 (d,) of each label over all thresholds, by its probabilities.

    With the highest k labelled, the expected hits are their sum. If probabilities are right, the best threshold is half
    of this F1 (Lipton, Elkan and Naryanaswamy, 2014).
    """
    ordered = -np.sort(-probabilities, axis=0)
    n_taken = np.arange(1, len(ordered) + 1)[:, None]
    return np.asarray((2.0 * np.cumsum(ordered, axis=0) / (n_taken + ordered.sum(axis=0))).max(axis=0))


def _per_label_wins(probabilities: Any, labels: Any, at_least_one: bool, seed: int) -> bool:
    """Tell whether a threshold per label has a higher micro-F1 than one for all, each fitted on the other folds."""
    n_texts = len(labels)
    if n_texts < 2 * _FOLDS:
        return False
    folds = np.random.default_rng(seed).permutation(n_texts) % _FOLDS
    agreed = np.zeros(2)
    taken = np.zeros(2)
    for fold in range(_FOLDS):
        held = folds == fold
        for place in (0, 1):
            values = _values(probabilities[~held], labels[~held], per_label=bool(place))
            predicted = Thresholds(values, at_least_one).predict(probabilities[held])
            agreed[place] += (predicted & labels[held]).sum()
            taken[place] += predicted.sum()
    f1 = 2.0 * agreed / (taken + labels.sum())
    return bool(f1[1] >= f1[0] + _LEAST_GAIN)
