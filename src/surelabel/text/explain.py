"""Which words of a text speak for a label, and which against it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

Span: TypeAlias = tuple[int, int]


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
    >>> Explanation("grain", 1.5, (WordWeight(0, 4, "corn", 2.0),), rest=-0.5).speaking_for()[0].word
    'corn'
    """

    label: str
    log_odds: float
    words: tuple[WordWeight, ...]
    rest: float = 0.0

    def speaking_for(self, most: int = 12) -> list[WordWeight]:
        """Return the words that speak most for the label, the strongest first."""
        return sorted((word for word in self.words if word.weight > 0), key=lambda word: -word.weight)[:most]


class Occurrences:
    """The words of a text, in lower case or reduced, and where each word and pair occurs."""

    def __init__(self, text: str, pattern: re.Pattern[str], reduce: Callable[[str], str] | None = None) -> None:
        lowered = text.lower()
        # A few letters have more characters in lower case than they had.
        origins: Sequence[int] = range(len(lowered) + 1)
        if len(lowered) != len(text):
            origins = [place for place, letter in enumerate(text) for _ in letter.lower()]
        self.spans: list[Span] = []
        self.places: dict[str, list[tuple[int, ...]]] = {}
        before = ""
        for number, match in enumerate(pattern.finditer(lowered)):
            self.spans.append((origins[match.start()], origins[match.end() - 1] + 1))
            word = match.group() if reduce is None else reduce(match.group())
            self.places.setdefault(word, []).append((number,))
            if number:
                self.places.setdefault(f"{before} {word}", []).append((number - 1, number))
            before = word


def word_weights(
    text: str, spans: Sequence[Span], parts: Iterable[tuple[Sequence[tuple[int, ...]], float]]
) -> tuple[WordWeight, ...]:
    """Distribute what terms add over their words; `parts` are the places of each term and what it adds."""
    weights = [0.0] * len(spans)
    for places, value in parts:
        for numbers in places:
            for number in numbers:
                weights[number] += value / len(places) / len(numbers)
    return tuple(
        WordWeight(start, end, text[start:end], weight)
        for (start, end), weight in zip(spans, weights, strict=True)
        if weight != 0.0
    )


def merge_words(text: str, members: Iterable[tuple[float, Explanation]]) -> tuple[WordWeight, ...]:
    """Add the words of several explanations, each times its factor."""
    totals: dict[Span, float] = {}
    for factor, explanation in members:
        for word in explanation.words:
            span = (word.start, word.end)
            totals[span] = totals.get(span, 0.0) + factor * word.weight
    return tuple(WordWeight(*span, text[slice(*span)], weight) for span, weight in sorted(totals.items()))
