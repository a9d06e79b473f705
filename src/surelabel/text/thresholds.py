"""From probabilities to labels for a high F1: labels at or above thresholds chosen on held-out texts."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse

from surelabel._core.validation import BoolArray, FloatArray, IntArray
from surelabel.exceptions import InvalidInputError
from surelabel.labels.shortlists import Shortlists

# Texts with a label, and without it, that a threshold of its own requires.
_LEAST_TEXTS = 10
# The lowest threshold of a label with fewer.
_LOWEST = 0.02


@dataclasses.dataclass(frozen=True, eq=False)
class Thresholds:
    """The lowest probability at which each label is assigned.

    Parameters
    ----------
    values : (d,) float64
    at_least_one : bool
        Whether a text whose labels all lie below their thresholds gets its most probable one.

    Examples
    --------
    >>> probabilities = [[0.9, 0.1], [0.4, 0.2], [0.1, 0.8], [0.2, 0.3]]
    >>> thresholds = Thresholds.fit(probabilities, [[1, 0], [1, 0], [0, 1], [0, 1]])
    >>> thresholds.predict([[0.35, 0.1], [0.2, 0.1]]).astype(int)
    array([[1, 0],
           [1, 0]])
    """

    values: FloatArray
    at_least_one: bool

    def __post_init__(self) -> None:
        values = np.asarray(self.values, dtype=np.float64)
        if values.ndim != 1 or not len(values) or not np.all((values >= 0) & (values <= 1)):
            raise InvalidInputError("The 'values' of Thresholds must be numbers from 0 to 1, one per label.")
        if not isinstance(self.at_least_one, bool):
            raise InvalidInputError("The 'at_least_one' of Thresholds must be true or false.")
        object.__setattr__(self, "values", values)

    @classmethod
    def fit(cls, probabilities: Any, labels: Any, rule: Literal["f1", "macro-f1"] = "f1") -> Self:
        """Choose thresholds on texts that the classifier was not trained on and that calibrate nothing.

        Parameters
        ----------
        probabilities : (n, d) array or Shortlists
        labels : (n, d) 0/1 array or sparse array
            If every text has at least one label, every prediction gets at least one.
        rule : {"f1", "macro-f1"}
            One threshold for all labels and micro-F1, or one per label and macro-F1.
        """
        if rule not in {"f1", "macro-f1"}:
            raise InvalidInputError(f"The 'rule' of Thresholds.fit must be 'f1' or 'macro-f1'. Got {rule!r} instead.")
        if rule == "macro-f1" and isinstance(probabilities, Shortlists):
            raise InvalidInputError("A threshold per label needs the probabilities of all labels, not shortlists.")
        columns, values, n_labels = _places(probabilities)
        truth = scipy.sparse.csr_array(labels).astype(bool)
        if truth.shape != (len(values), n_labels) or not len(values):
            raise InvalidInputError(
                "The labels given to Thresholds.fit must have the shape of the probabilities, "
                f"{(len(values), n_labels)}, and at least one row. Got {truth.shape} instead."
            )
        counts = truth.sum(axis=1)
        if rule == "macro-f1":
            chosen = _per_label(values, truth.toarray())
        else:  # any threshold misses the labels that are not listed
            is_listed = columns < n_labels
            hits = np.asarray(truth[np.nonzero(is_listed)[0], columns[is_listed]]).ravel()
            chosen = np.full(n_labels, _best_threshold(values[is_listed], hits, int(counts.sum())))
        return cls(chosen, bool((counts > 0).all()))

    def predict(self, probabilities: Any) -> Any:
        """Return the labels of each text: bool (n, d), for Shortlists a bool CSR array."""
        columns, values, n_labels = _places(probabilities)
        if n_labels != len(self.values):
            raise InvalidInputError(
                f"The probabilities given to Thresholds.predict must be of {len(self.values)} labels. "
                f"Got {n_labels} instead."
            )
        is_listed = columns < n_labels
        chosen = values >= np.append(self.values, np.inf)[columns]
        if self.at_least_one:
            best = np.where(is_listed, values, -1.0).argmax(axis=1)
            empty = np.flatnonzero(~chosen.any(axis=1) & is_listed.any(axis=1))
            chosen[empty, best[empty]] = True
        if not isinstance(probabilities, Shortlists):
            return chosen
        rows = np.nonzero(chosen)[0]
        return scipy.sparse.csr_array((np.ones(len(rows), bool), (rows, columns[chosen])), shape=probabilities.shape)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"values": self.values.tolist(), "at_least_one": self.at_least_one}

    @classmethod
    def from_dict(cls, document: Any) -> Self:
        """Return the inverse of `to_dict`; InvalidInputError if it is something else."""
        try:
            return cls(np.asarray(document["values"], dtype=np.float64), document["at_least_one"])
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidInputError(f"Thresholds are described by 'values' and 'at_least_one': {error!r}.") from error


def _places(probabilities: Any) -> tuple[IntArray, FloatArray, int]:
    """Return labels and probabilities (n, k) that texts list, and the number of labels, which stands for none."""
    if isinstance(probabilities, Shortlists):
        return probabilities.labels, probabilities.probabilities, probabilities.n_labels
    values = np.asarray(probabilities, dtype=np.float64)
    if values.ndim != 2:
        raise InvalidInputError(f"Probabilities must have shape (n_texts, n_labels). Got {values.shape} instead.")
    return np.broadcast_to(np.arange(values.shape[1]), values.shape), values, values.shape[1]


def _best_threshold(probabilities: FloatArray, hits: BoolArray, n_positive: int) -> float:
    """Return the threshold with the highest F1: halfway to the next lower probability; of equal ones the highest."""
    if not hits.any():
        return 0.5
    order = np.argsort(-probabilities, kind="stable")
    ordered = probabilities[order]
    f1 = 2.0 * np.cumsum(hits[order]) / (np.arange(1, len(order) + 1) + n_positive)
    # Equal probabilities are taken together or not at all.
    f1[~np.append(ordered[1:] < ordered[:-1], True)] = -1.0
    place = int(f1.argmax())
    following = ordered[place + 1] if place + 1 < len(order) else 0.0
    return float(0.5 * (ordered[place] + following))


def _per_label(probabilities: FloatArray, labels: BoolArray) -> FloatArray:
    """Return a threshold per label; labels of few texts get half of their expected F1.

    With the highest k labelled, the expected hits are the sum of their probabilities. If probabilities are right, half
    of the highest expected F1 is the best threshold (Lipton, Elkan and Naryanaswamy, 2014).
    """
    ordered = -np.sort(-probabilities, axis=0)
    n_taken = np.arange(1, len(ordered) + 1)[:, None]
    expected = (2.0 * np.cumsum(ordered, axis=0) / (n_taken + ordered.sum(axis=0))).max(axis=0)
    values = np.maximum(0.5 * expected, _LOWEST)
    counts = labels.sum(axis=0)
    for label in np.flatnonzero((counts >= _LEAST_TEXTS) & (len(labels) - counts >= _LEAST_TEXTS)):
        values[label] = _best_threshold(probabilities[:, label], labels[:, label], int(counts[label]))
    return values
