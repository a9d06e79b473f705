"""Texts with very many labels, from a generator with a seed: labels are a sparse matrix, which no `Corpus` holds."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import scipy.sparse

from surelabel.corpora.synthetic import draw_labels, draw_text
from surelabel.exceptions import InvalidInputError

_SYLLABLES = ("ba", "ce", "di", "fo", "gu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "zu", "xy")
_WORDS = 8


@dataclasses.dataclass(frozen=True, eq=False)
class ManyLabels:
    """Texts, their labels (n_texts, n_labels) as a bool CSR array, and the labels' names."""

    texts: list[str]
    labels: Any
    label_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.texts)


class _Vocabulary:
    """The words of each label, made when they are asked for: eight that no other label has."""

    def __init__(self, n_labels: int) -> None:
        self._n_labels = n_labels

    def __len__(self) -> int:
        return self._n_labels

    def __getitem__(self, label: int) -> tuple[str, list[str]]:
        digits = [_SYLLABLES[label // 16**place % 16] for place in range(5)]
        ending = "".join(digits[1:])
        return f"subject-{label + 1}", [digits[0] + syllable + ending for syllable in _SYLLABLES[:_WORDS]]


def generate_many_labels(n_texts: int, n_labels: int, seed: int = 0) -> ManyLabels:
    """Make texts with one to three labels out of very many, as the synthetic corpus does.

    The k-th label is the main one with a probability proportional to 1/k, so most labels have a text or two.

    Parameters
    ----------
    n_texts, n_labels : int
        Up to 1,000,000 labels.
    seed : int, default=0

    Examples
    --------
    >>> made = generate_many_labels(n_texts=100, n_labels=5_000, seed=7)
    >>> made.labels.shape, len(made.texts), made.label_names[0]
    ((100, 5000), 100, 'subject-1')
    """
    if n_texts < 1 or not 2 <= n_labels <= 1_000_000:
        raise InvalidInputError(
            "The generator of texts with many labels needs 1 text or more and 2 to 1,000,000 labels. "
            f"Got {n_texts} texts and {n_labels} labels instead."
        )
    vocabulary = _Vocabulary(n_labels)
    state = np.random.RandomState(seed)
    cumulative = np.cumsum(1.0 / np.arange(1, n_labels + 1))
    texts, columns, ends = [], [], [0]
    for _ in range(n_texts):
        labels = draw_labels(state, cumulative)
        texts.append(draw_text(state, labels, vocabulary))
        columns += sorted(labels)
        ends.append(len(columns))
    matrix = scipy.sparse.csr_array((np.ones(len(columns), dtype=bool), columns, ends), shape=(n_texts, n_labels))
    return ManyLabels(texts, matrix, tuple(f"subject-{label + 1}" for label in range(n_labels)))
