"""The tags of calibration texts that thresholds of `TagBounds` are found from."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from surelabel._core.validation import FloatArray, as_label_names
from surelabel.labels.sparse import SparseProbabilities, as_any_labels, as_any_probabilities

ROUNDING = 1e-9
"""Shares that differ by less are equal."""

# Tags with a smaller probability are not kept for adding texts.
_LEAST_KEPT = 0.01


class TagTexts(NamedTuple):
    """True tags, and all tags that may be assigned, by text; those with a probability up to `floor` are not."""

    true_rows: Any
    true_values: Any
    rows: Any
    values: Any
    is_true: Any
    n_texts: int
    floor: float

    @classmethod
    def of(cls, arrays: dict[str, Any], n_texts: int, floor: Any) -> TagTexts:
        """Return texts from the arrays of a file; ValueError if they are not such texts."""
        texts = cls(**arrays, n_texts=n_texts, floor=float(floor))
        for rows, values in ((texts.true_rows, texts.true_values), (texts.rows, texts.values)):
            is_typed = rows.dtype == np.int64 and values.dtype == np.float64 and texts.is_true.dtype == np.bool_
            if not is_typed or rows.ndim != 1 or rows.shape != values.shape:
                raise ValueError("its tags are not those of tag bounds")
            if len(rows) and not (rows.min() >= 0 and rows.max() < n_texts and values.min() >= 0 and values.max() <= 1):
                raise ValueError("its tags do not belong to its texts")
        if texts.is_true.shape != texts.rows.shape or (np.diff(texts.rows) < 0).any():
            raise ValueError("its tags are not in the order of its texts")
        return texts

    def trimmed(self) -> TagTexts:
        """Return the texts without improbable tags, which are never assigned when texts are added."""
        kept = self.values >= _LEAST_KEPT
        floor = max(self.floor, math.nextafter(_LEAST_KEPT, 0.0))
        return self._replace(rows=self.rows[kept], values=self.values[kept], is_true=self.is_true[kept], floor=floor)

    def joined(self, others: TagTexts) -> TagTexts:
        """Return these texts and others after them, trimmed."""
        new = others.trimmed()
        new = new._replace(true_rows=new.true_rows + self.n_texts, rows=new.rows + self.n_texts)
        names = ("true_rows", "true_values", "rows", "values", "is_true")
        arrays = {name: np.concatenate([getattr(self, name), getattr(new, name)]) for name in names}
        return TagTexts(**arrays, n_texts=self.n_texts + new.n_texts, floor=max(self.floor, new.floor))


def tag_texts_of(
    probabilities: Any, labels: Any, names: Any, *, who: str
) -> tuple[Any, tuple[str, ...] | None, TagTexts]:
    """Return checked probabilities, the names of tags, and what thresholds are found from."""
    checked = as_any_probabilities(probabilities, who=who)
    tags = as_label_names(names, checked.shape[1], who=who)
    truth = as_any_labels(labels, checked, who=who, names=tags)
    if isinstance(checked, SparseProbabilities):
        (true_rows, true_values), (rows, values, is_true) = _sparse_texts(checked, truth)
        floor = checked.unlisted
    else:
        true_rows, true_values = truth.nonzero()[0], checked[truth]
        rows = np.repeat(np.arange(len(checked)), checked.shape[1])
        values, is_true, floor = checked.ravel(), truth.ravel(), -1.0
    return checked, tags, TagTexts(true_rows.astype(np.int64), true_values, rows, values, is_true, len(checked), floor)


def _sparse_texts(probabilities: SparseProbabilities, truth: Any) -> tuple[Any, Any]:
    """Return rows and probabilities of true tags, and rows, probabilities and truth of listed tags."""
    rows, columns = truth.nonzero()
    rows_listed = np.repeat(np.arange(len(probabilities)), probabilities.n_listed)
    width = probabilities.shape[1]
    keys, wanted = rows_listed * width + probabilities.labels, rows.astype(np.int64) * width + columns
    places = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    present = keys[places] == wanted if len(keys) else np.zeros(len(wanted), dtype=np.bool_)
    values = np.where(present, probabilities.values[places] if len(keys) else 0.0, probabilities.unlisted)
    return (rows, values), (rows_listed, probabilities.values, np.isin(keys, wanted))


def false_shares(rows: Any, values: FloatArray, is_false: Any) -> tuple[FloatArray, FloatArray]:
    """Return at which thresholds, and by how much, a text's largest share of false tags so far grows as they fall."""
    # Tags are sorted by text, then by falling probability. A text's share at a threshold is that of the false among its
    # tags with this probability or more.
    if len(rows) == 0:
        return np.empty(0), np.empty(0)
    starts = np.flatnonzero(np.append(True, rows[1:] != rows[:-1]))
    first = np.repeat(starts, np.diff(np.append(starts, len(rows))))
    n_false = np.cumsum(is_false)
    before = (n_false - is_false)[first]
    shares = (n_false - before) / (np.arange(len(rows)) - first + 1.0)
    # Tags of equal probability are assigned together: only the last of them has a share that counts.
    together = np.append((values[1:] == values[:-1]) & (rows[1:] == rows[:-1]), False)
    shares[together] = 0.0
    # A running maximum per text in one pass: each text is lifted over all that come before it.
    lift = 2.0 * np.cumsum(np.append(0, rows[1:] != rows[:-1]))
    largest = np.maximum.accumulate(shares + lift) - lift
    largest[np.abs(largest) < ROUNDING] = 0.0
    previous = np.append(0.0, largest[:-1])
    previous[starts] = 0.0
    growth = largest - previous
    grows = growth > ROUNDING
    return values[grows], growth[grows]
