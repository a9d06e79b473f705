"""Which words of a text speak for a label, and which against it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

Span = tuple[int, int]

_CHARACTER_LENGTHS = (3, 4, 5)


@dataclasses.dataclass(frozen=True)
class WordWeight:
    """A word of a text, the characters from `start` to `end`, and how much it adds to the score of a label.

    Examples
    --------
    >>> WordWeight(4, 8, "corn", 0.7).word
    'corn'
    """

    start: int
    end: int
    word: str
    weight: float


@dataclasses.dataclass(frozen=True)
class Explanation:
    """What the score of a label is made of: `score` is the sum of the words' weights, `intercept` and `rest`.

    Attributes
    ----------
    label : str or int
        Name of the label, its number if labels have no names.
    score : float
        For linear classifiers, what the curve to probabilities starts from; for neural ones, the log-odds.
    words : tuple of WordWeight
        In the order of the text. What a pair of words adds is shared by the two, and what a term adds that occurs
        several times is shared by its places.
    intercept : float
        What the label has without any word.
    rest : float
        What words do not explain: the vectors of `hybrid`, and what is not linear in neural classifiers.
    is_exact : bool
        Whether the weights are the classifier's own contributions. If not, they are gradient times input, or sums of
        members of a blend.

    Examples
    --------
    >>> from surelabel import text
    >>> texts = ["wheat and corn", "the dollar fell", "corn prices", "dollar and yen"] * 5
    >>> labels = [[1, 0], [0, 1], [1, 0], [0, 1]] * 5
    >>> classifier = text.make("linear").fit(texts, labels, label_names=["grain", "money"])
    >>> explanation = classifier.explain("Corn, not dollars", "grain")
    >>> [(word.word, word.weight > 0) for word in explanation.words]
    [('Corn', True)]
    >>> bool(abs(explanation.words[0].weight + explanation.intercept - explanation.score) < 1e-9)
    True
    """

    label: str | int
    score: float
    words: tuple[WordWeight, ...]
    intercept: float = 0.0
    rest: float = 0.0
    is_exact: bool = True

    def speaking_for(self, most: int = 12) -> list[WordWeight]:
        """Return the words that speak most for the label, the strongest first."""
        return sorted((word for word in self.words if word.weight > 0), key=lambda word: -word.weight)[:most]


class Occurrences:
    """The words of a text (by a pattern, in lower case, or their stems), and which of them each term is made of."""

    def __init__(self, text: str, pattern: str, stem: Callable[[str], str] | None = None) -> None:
        self.spans: list[Span] = []
        self.places: dict[str, list[tuple[int, ...]]] = {}
        self._lowered = text.lower()
        # A few letters have more characters in lower case than they had.
        self._origins: Sequence[int] = range(len(self._lowered) + 1)
        if len(self._lowered) != len(text):
            origins = [place for place, letter in enumerate(text) for _ in letter.lower()]
            self._origins = [*origins, len(text)]
        self._starts: list[int] = []
        tokens: list[tuple[str, int]] = []
        for match in re.finditer(pattern, self._lowered):
            number = self._add_span(match.start(), match.end())
            parts = [match.group()] if stem is None else re.findall(pattern, stem(match.group()))
            tokens += [(part, number) for part in parts]
        for place, (token, number) in enumerate(tokens):
            self.places.setdefault(token, []).append((number,))
            if place:
                before, other = tokens[place - 1]
                self.places.setdefault(f"{before} {token}", []).append((other, number))

    def _add_span(self, start: int, end: int) -> int:
        first, last = self._origins[start], self._origins[end - 1]
        self.spans.append((first, last + 1))
        self._starts.append(start)
        return len(self.spans) - 1

    def add_characters(self) -> dict[str, list[tuple[int, ...]]]:
        """Return where character n-grams occur: in the words of the piece between spaces that has them."""
        places: dict[str, list[tuple[int, ...]]] = {}
        n_words, place = len(self._starts), 0
        for match in re.finditer(r"\S+", self._lowered):
            first = place
            while place < n_words and self._starts[place] < match.end():
                place += 1
            numbers = tuple(range(first, place)) or (self._add_span(match.start(), match.end()),)
            for sequence in sequences_of(match.group()):
                places.setdefault(sequence, []).append(numbers)
        return places


def sequences_of(word: str) -> Iterator[str]:
    """Yield the sequences of 3 to 5 characters within a word, which has a space at either end."""
    padded = f" {word} "
    for length in _CHARACTER_LENGTHS:
        for start in range(max(1, len(padded) - length + 1)):
            yield padded[start : start + length]
        if len(padded) <= length:
            break  # the whole word, once


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
        for (start, end), weight in sorted(zip(spans, weights, strict=True))
        if weight != 0.0
    )


def merged(text: str, members: Iterable[tuple[float, Explanation]]) -> tuple[WordWeight, ...]:
    """Add the words of several explanations, each times its weight."""
    totals: dict[Span, float] = {}
    for factor, explanation in members:
        for word in explanation.words:
            span = (word.start, word.end)
            totals[span] = totals.get(span, 0.0) + factor * word.weight
    return tuple(WordWeight(*span, text[slice(*span)], weight) for span, weight in sorted(totals.items()))
