"""TF-IDF of words, word pairs and character n-grams: the features of the linear kinds."""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from surelabel._core.extras import import_extra
from surelabel.exceptions import InvalidInputError
from surelabel.text.explaining import Occurrences, WordWeight, sequences_of, word_weights

_WORD = r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*|\d+"
_VOCABULARY, _CHARACTERS = "vocabulary.json", "characters.json"
# Different words whose stems are remembered.
_STEMS_KEPT = 200_000
# Characters of a text that are read to tell which of its words are terms.
_READ = 20_000


def _stemmer(language: str) -> Callable[[str], str]:
    """Return a function that replaces every word of a text by its stem."""
    library = import_extra("snowballstemmer", "stems", "The 'language' setting")
    if language not in library.algorithms():
        raise InvalidInputError(
            f"The 'language' setting must be one of {', '.join(sorted(library.algorithms()))}. "
            f"Got {language!r} instead."
        )
    stem = functools.lru_cache(_STEMS_KEPT)(library.stemmer(language).stemWord)
    words = re.compile(_WORD)
    return lambda text: " ".join(stem(word) for word in words.findall(text.lower()))


class Terms:
    """Words, pairs and character n-grams of training texts, and their weights, by the settings of a linear kind."""

    def __init__(self, settings: Any) -> None:
        self._settings = settings
        self._stem = None if settings.language is None else _stemmer(settings.language)
        self._pattern = re.compile(_WORD)

    @property
    def n_features(self) -> int:
        """Columns of the features."""
        return len(self.vocabulary) + len(self.characters)

    def fit(self, texts: list[str]) -> Any:
        """Choose terms and weights; return the features of the texts, a float32 CSR array."""
        self.vocabulary, counts = self._choose(texts, self._words_and_pairs)
        self.characters: list[str] = []
        if self._settings.character_weight:
            self.characters, others = self._choose(texts, _sequences)
            counts = scipy.sparse.csr_array(scipy.sparse.hstack([counts, others]))
        self._prepare()
        in_texts = np.bincount(counts.indices, minlength=counts.shape[1])
        self.idf = (np.log((1 + len(texts)) / (1 + in_texts)) + 1).astype(np.float32)
        return self._weigh(counts)

    def transform(self, texts: list[str]) -> Any:
        """Return the features of new texts, each of which is computed alone."""
        columns, values, ends = [], [], [0]
        for text in texts:
            counts: Counter[Any] = Counter()
            for column_of, terms_of in self._counted:
                counts.update(map(column_of.get, terms_of(text)))
            del counts[None]  # what is not a term
            for column in sorted(counts):
                columns.append(column)
                values.append(counts[column])
            ends.append(len(columns))
        arrays = (np.array(values, dtype=np.float32), np.array(columns, dtype=np.int32), np.array(ends, dtype=np.int32))
        return self._weigh(scipy.sparse.csr_array(arrays, shape=(len(texts), self.n_features)))

    def word_weights(self, text: str, columns: Any, values: Any) -> tuple[WordWeight, ...]:
        """Distribute the values of a text's columns, (m,) each, over its words."""
        occurrences = Occurrences(text, _WORD, self._stem)
        characters = occurrences.add_characters() if self.characters else {}
        n_words = len(self.vocabulary)
        places = [
            occurrences.places[self.vocabulary[column]]
            if column < n_words
            else characters[self.characters[column - n_words]]
            for column in columns.tolist()
        ]
        return word_weights(text, occurrences.spans, zip(places, values.tolist(), strict=True))

    def known(self, texts: list[str]) -> list[float]:
        """Return the share of each text's words that are terms; of a long text its beginning is read."""
        by_text = [self._words(text[:_READ]) for text in texts]
        return [sum(word in self._terms for word in words) / max(len(words), 1) for words in by_text]

    def write(self, folder: Path) -> None:
        """Write the terms as JSON; their weights are the caller's to write."""
        files = [(_VOCABULARY, self.vocabulary), (_CHARACTERS, self.characters)]
        for name, terms in files if self._settings.character_weight else files[:1]:
            (folder / name).write_text(json.dumps(terms, ensure_ascii=False), encoding="utf-8")

    def read(self, folder: Path, idf: npt.NDArray[np.float32]) -> None:
        """Restore what `write` wrote; ValueError if it is not a list of terms with a weight each."""
        self.vocabulary = _read_terms(folder / _VOCABULARY)
        self.characters = _read_terms(folder / _CHARACTERS) if self._settings.character_weight else []
        self.idf = idf
        if idf.shape != (self.n_features,) or idf.dtype != np.float32:
            raise ValueError("its arrays do not fit together")
        # A term that every text has weighs 1, others more.
        if not np.all((idf >= 1) & (idf < np.inf)):
            raise ValueError("the weights of its terms must be finite, and at least 1")
        self._prepare()

    def _words(self, text: str) -> list[str]:
        """Return the words of a text, or their stems."""
        return self._pattern.findall((self._stem or str.lower)(text))

    def _words_and_pairs(self, text: str) -> list[str]:
        """Return the words of a text, then the pairs of neighbours if they count."""
        words = self._words(text)
        if self._settings.pair_weight:
            words += list(map(" ".join, itertools.pairwise(words)))
        return words

    def _choose(self, texts: list[str], terms_of: Callable[[str], list[str]]) -> tuple[list[str], Any]:
        """Return the terms that are kept, and how often each text has them."""
        from sklearn.feature_extraction.text import CountVectorizer  # noqa: PLC0415 (predictions do without it)

        least, most = min(self._settings.min_texts, len(texts)), self._settings.max_features
        vectorizer = CountVectorizer(analyzer=terms_of, min_df=least, max_features=most, dtype=np.float32)
        try:
            counts = vectorizer.fit_transform(texts)
        except ValueError:  # no term is frequent enough
            return [], scipy.sparse.csr_array((len(texts), 0), dtype=np.float32)
        return list(vectorizer.get_feature_names_out()), scipy.sparse.csr_array(counts)

    def _prepare(self) -> None:
        """Set where terms are counted, and the group of each column: 0 words, 1 pairs, 2 characters."""
        n_words = len(self.vocabulary)
        self._terms = {term: column for column, term in enumerate(self.vocabulary)}
        self._counted: list[tuple[dict[str, int], Callable[[str], list[str]]]] = [(self._terms, self._words_and_pairs)]
        if self.characters:
            columns = {term: column for column, term in enumerate(self.characters, n_words)}
            self._counted.append((columns, _sequences))
        pairs = np.array([" " in term for term in self.vocabulary], dtype=np.int8)
        self._groups = np.concatenate([pairs, np.full(len(self.characters), 2, dtype=np.int8)])

    def _weigh(self, counts: Any) -> Any:
        """Turn counts into TF-IDF with logarithmic term frequencies, each group of terms scaled to its own length."""
        # Words have length 1, pairs `pair_weight` and characters `character_weight`: many pairs do not drown the words.
        rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        values = ((1 + np.log(counts.data)) * self.idf[counts.indices]).astype(np.float64)
        groups = self._groups[counts.indices]
        lengths = (1.0, self._settings.pair_weight, self._settings.character_weight)
        for group, length in enumerate(lengths):
            members = groups == group
            squares = np.bincount(rows[members], weights=values[members] ** 2, minlength=counts.shape[0])
            scale = length / np.sqrt(np.where(squares > 0, squares, 1))
            values[members] *= scale[rows[members]]
        return scipy.sparse.csr_array((values.astype(np.float32), counts.indices, counts.indptr), shape=counts.shape)


def _sequences(text: str) -> list[str]:
    """Return the character n-grams of all words of a text."""
    return [sequence for word in text.lower().split() for sequence in sequences_of(word)]


def _read_terms(path: Path) -> list[str]:
    """Read a list of different terms; ValueError if the file holds something else."""
    terms = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(terms, list) or not all(isinstance(term, str) for term in terms) or len(set(terms)) < len(terms):
        raise ValueError(f"{path.name} is not a list of different terms")
    return terms
