"""Which words of a text speak for a label, and which against it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Self, TypeAlias

WordWeights: TypeAlias = Mapping[tuple[int, int], float]
"""What each word of a text, characters start to end, adds to the log-odds of a label."""


@dataclasses.dataclass(frozen=True)
class WordWeight:
    """A word of a text, characters `start` to `end`, and what it adds to the log-odds of a label."""

    start: int
    end: int
    word: str
    weight: float


@dataclasses.dataclass(frozen=True)
class Explanation:
    """The log-odds of a label as a sum: weights of the words plus `rest`.

    Attributes
    ----------
    label : str
    log_odds : float
        log(p / (1 - p)) of the probability that `predict_proba` returns.
    words : tuple of WordWeight
        In the order of the text. Two words share what their pair adds.
    rest : float
        What no word adds: the intercept, an encoder's vector, and what is not linear.

    Examples
    --------
    >>> Explanation.of_words("corn", {(0, 4): 2.0}, "grain", 1.5).speaking_for()[0].word
    'corn'
    """

    label: str
    log_odds: float
    words: tuple[WordWeight, ...]
    rest: float

    @classmethod
    def of_words(cls, text: str, weights: WordWeights, label: str, log_odds: float) -> Self:
        """Return the explanation of a label's log-odds by the weights of a text's words."""
        words = (WordWeight(*span, text[slice(*span)], weight) for span, weight in sorted(weights.items()) if weight)
        return cls(label, log_odds, tuple(words), rest=log_odds - sum(weights.values()))

    def speaking_for(self, most: int = 12) -> list[WordWeight]:
        """Return the words that speak most for the label, the strongest first."""
        return sorted((word for word in self.words if word.weight > 0), key=lambda word: -word.weight)[:most]
