"""Figures that users of taggers know: a table of labels, and the rank figures of Annif's `eval`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from surelabel._core.validation import FloatArray
from surelabel.evaluation.metrics import label_matrices

# Precision at k, nDCG at k and F1 at k, as `annif eval` prints them, and further ones that are often compared.
_PRECISION_AT = (1, 3, 5)
_NDCG_AT = (5, 10)
_F1_AT = (5,)


@dataclasses.dataclass(frozen=True)
class LabelFigures:
    """One label: texts that have it, precision, recall and F1 of best guesses; None if a figure is not defined."""

    name: str
    support: int
    precision: float | None
    recall: float | None
    f1: float | None


def label_table(labels: Any, predicted: Any, label_names: Sequence[str]) -> tuple[LabelFigures, ...]:
    """Return support, precision, recall and F1 of each label, in the order of the label names.

    Labels of the texts that are not among the names come last, by name; nothing is predicted for them.

    Examples
    --------
    >>> label_table([["oil"], ["oil", "gold"]], [["oil", "gold"], ["gold"]], ["oil", "gold"])[0]
    LabelFigures(name='oil', support=2, precision=1.0, recall=0.5, f1=0.666...)
    """
    names = list(label_names)
    if not hasattr(labels, "shape"):
        names += sorted({name for row in labels for name in row} - set(names))
    true, given = label_matrices(labels, predicted, names)
    support, guessed, both = (
        np.asarray(matrix.sum(axis=0)).reshape(-1).tolist() for matrix in (true, given, true.multiply(given))
    )
    return tuple(
        LabelFigures(
            name,
            int(n),
            hits / m if m else None,
            hits / n if n else None,
            2 * hits / (n + m) if n + m else None,
        )
        for name, n, m, hits in zip(names, support, guessed, both, strict=True)
    )


def ranked(probabilities: Any, most: int = 10) -> tuple[Any, FloatArray]:
    """Return the `most` likeliest labels of each text with their probabilities, best first, (n, k) each.

    `probabilities` are (n, d), or shortlists, where places beyond a list have the label `n_labels`.
    """
    lists = hasattr(probabilities, "n_labels")
    values = np.asarray(probabilities.probabilities if lists else probabilities, dtype=np.float64)
    order = np.argsort(-values, axis=1, kind="stable")[:, :most]
    columns = np.take_along_axis(np.asarray(probabilities.labels), order, axis=1) if lists else order
    return columns, np.take_along_axis(values, order, axis=1)


def rank_figures(probabilities: Any, label_sets: Sequence[Any], label_names: Sequence[str]) -> dict[str, float]:
    """Return Precision@k, NDCG@k and F1@k, named and defined as in Annif's `eval`.

    Labels with a probability of 0 are not suggested. F1@k is the mean over texts, and nDCG of a text without labels
    is 1. A label that the model does not know counts as one that is never suggested.

    Parameters
    ----------
    probabilities : (n, d) array or Shortlists
    label_sets : one collection of label names per text
    label_names : names of the columns

    Examples
    --------
    >>> figures = rank_figures([[0.9, 0.2, 0.1]], [{"oil", "gold"}], ["oil", "tin", "gold"])
    >>> figures["Precision@1"], round(figures["NDCG@5"], 3)
    (1.0, 0.92)
    """
    most = max(*_PRECISION_AT, *_NDCG_AT, *_F1_AT)
    columns, values = ranked(probabilities, most)
    known, suggested = {name: k for k, name in enumerate(label_names)}, values > 0
    wanted = [{known.get(name, -1) for name in names} for names in label_sets]
    is_wanted = [[column in some for column in row] for row, some in zip(columns.tolist(), wanted, strict=True)]
    hits = np.array(is_wanted, dtype=np.float64).reshape(columns.shape) * suggested
    n_true = np.array([len(names) for names in label_sets], dtype=np.float64)
    found = {}
    for k in _F1_AT:
        found[f"F1@{k}"] = float(_ratio(2 * hits[:, :k].sum(axis=1), n_true + suggested[:, :k].sum(axis=1)).mean())
    discount = 1.0 / np.log2(np.arange(2, most + 2))
    ideal = np.concatenate([[0.0], np.cumsum(discount)])
    for k in _NDCG_AT:
        gain = hits[:, :k] @ discount[: hits[:, :k].shape[1]]
        best = ideal[np.minimum(n_true, k).astype(np.int64)]
        found[f"NDCG@{k}"] = float(np.where(n_true > 0, _ratio(gain, best), 1.0).mean())
    for k in _PRECISION_AT:
        found[f"Precision@{k}"] = float(_ratio(hits[:, :k].sum(axis=1), suggested[:, :k].sum(axis=1)).mean())
    return found


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    """Divide, with 0 where the denominator is 0."""
    return np.divide(above, below, out=np.zeros(len(above)), where=np.asarray(below) > 0)
