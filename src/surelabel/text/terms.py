"""TF-IDF of words and pairs of words, as they are, stemmed or lemmatised; and the words of the training texts."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse
from sklearn.feature_extraction.text import CountVectorizer

from surelabel._core.extras import require
from surelabel._core.files import read_arrays, write_arrays
from surelabel._core.validation import FloatArray
from surelabel.exceptions import ArtifactError, InvalidInputError
from surelabel.text.explain import WordWeights

_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*|\d+")
_VOCABULARY = "vocabulary.json"
_REDUCED_KEPT = 200_000  # different words whose stems or lemmas are remembered
_CHARACTERS_READ = 20_000  # of a text, to tell which of its words are known
_MOST_KNOWN = 500_000


def words_of(text: str) -> list[str]:
    """Return the words and numbers of a text in lower case."""
    return list(map(str.lower, _WORD.findall(text)))


def word_reducer(language: str | None, lemmas: str | None) -> Callable[[str], str] | None:
    """Return a function from words to stems or lemmas, None if words stay as they are."""
    if language is not None and lemmas is not None:
        raise InvalidInputError("Set either 'language' (stems) or 'lemmas', not both.")
    if language is not None:
        library = require("snowballstemmer", "stems", "The 'language' setting")
        if language not in library.algorithms():
            known = ", ".join(sorted(library.algorithms()))
            raise InvalidInputError(f"The 'language' setting must be one of {known}. Got {language!r} instead.")
        return functools.lru_cache(_REDUCED_KEPT)(library.stemmer(language).stemWord)
    if lemmas is not None:
        library = require("simplemma", "lemmas", "The 'lemmas' setting")
        lemmatize = functools.partial(library.lemmatize, lang=lemmas)
        try:
            lemmatize("a")
        except ValueError as error:
            raise InvalidInputError(
                f"The 'lemmas' setting must be a language code of simplemma, such as 'cs'. Got {lemmas!r} instead."
            ) from error
        return functools.lru_cache(_REDUCED_KEPT)(lambda word: str(lemmatize(word)).lower())
    return None


class Terms:
    """Words and pairs of the training texts with their weights."""

    def __init__(
        self, *, pair_weight: float, min_texts: int, max_features: int, language: str | None, lemmas: str | None
    ) -> None:
        self._pair_weight, self._min_texts, self._max_features = pair_weight, min_texts, max_features
        self._reduce = word_reducer(language, lemmas)

    @property
    def n_features(self) -> int:
        """Number of terms."""
        return len(self.vocabulary)

    def fit(self, texts: list[str]) -> Any:
        """Choose terms and weights; return the features of the texts, a float32 CSR array."""
        least = min(self._min_texts, len(texts))
        counter = CountVectorizer(
            analyzer=self._terms_of, min_df=least, max_features=self._max_features, dtype=np.float32
        )
        try:
            counts = counter.fit_transform(texts)
            terms = list(counter.get_feature_names_out())
        except ValueError:  # no term is frequent enough
            counts, terms = scipy.sparse.csr_array((len(texts), 0), dtype=np.float32), []
        in_texts = np.bincount(counts.indices, minlength=len(terms))
        self._keep(terms, (np.log((1 + len(texts)) / (1 + in_texts)) + 1).astype(np.float32))
        return self._weigh(counts)

    def transform(self, texts: list[str]) -> Any:
        """Return the features of new texts, a float32 CSR array. Each text is computed alone."""
        if not self.vocabulary:
            return scipy.sparse.csr_array((len(texts), 0), dtype=np.float32)
        return self._weigh(self._counter.transform(texts))

    def word_weights(self, text: str, columns: Any, values: Any) -> WordWeights:
        """Distribute the values (m,) of a text's columns (m,) over its words; two words share what their pair adds."""
        terms = self._terms_of(text)
        occurrences = Counter(terms)
        added = dict(zip([self.vocabulary[column] for column in columns], values.tolist(), strict=True))
        each = [added.get(term, 0.0) / occurrences[term] for term in terms]
        spans = [match.span() for match in _WORD.finditer(text)]
        weights = dict(zip(spans, each, strict=False))
        for (first, second), weight in zip(itertools.pairwise(spans), each[len(spans) :], strict=False):
            weights[first] += weight / 2
            weights[second] += weight / 2
        return weights

    def write(self, folder: Path) -> dict[str, Any]:
        """Write the terms as JSON; return the arrays that the caller stores."""
        (folder / _VOCABULARY).write_text(json.dumps(self.vocabulary, ensure_ascii=False), encoding="utf-8")
        return {"idf": self.idf}

    def read(self, folder: Path, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Restore what `write` wrote; ValueError if it is not a list of terms with a weight each."""
        terms = json.loads((folder / _VOCABULARY).read_text(encoding="utf-8"))
        if not isinstance(terms, list) or not all(isinstance(term, str) for term in terms):
            raise ValueError(f"{_VOCABULARY} is not a list of terms")
        idf = arrays["idf"]
        if idf.shape != (len(terms),) or idf.dtype != np.float32 or len(set(terms)) < len(terms):
            raise ValueError("terms and their weights do not fit together")
        if not np.all((idf >= 1) & (idf < np.inf)):
            raise ValueError("the weights of terms must be finite, and at least 1")
        self._keep(terms, idf)

    def _terms_of(self, text: str) -> list[str]:
        """Return the words of a text, then the pairs of neighbours if they count."""
        words = words_of(text)
        if self._reduce is not None:
            words = list(map(self._reduce, words))
        return words + list(map(" ".join, itertools.pairwise(words))) if self._pair_weight else words

    def _keep(self, terms: list[str], idf: npt.NDArray[np.float32]) -> None:
        self.vocabulary, self.idf = terms, idf
        self._is_pair = np.array([" " in term for term in terms], dtype=bool)
        self._counter = CountVectorizer(analyzer=self._terms_of, vocabulary=terms or None, dtype=np.float32)

    def _weigh(self, counts: Any) -> Any:
        """Turn counts into TF-IDF: words are scaled to length 1, pairs to length `pair_weight`."""
        rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        values = ((1 + np.log(counts.data)) * self.idf[counts.indices]).astype(np.float64)
        is_pair = self._is_pair[counts.indices]
        for members, length in ((~is_pair, 1.0), (is_pair, self._pair_weight)):
            squares = np.bincount(rows[members], weights=values[members] ** 2, minlength=counts.shape[0])
            values[members] *= (length / np.sqrt(np.where(squares > 0, squares, 1)))[rows[members]]
        return scipy.sparse.csr_array((values.astype(np.float32), counts.indices, counts.indptr), shape=counts.shape)


class KnownWords:
    """The words of the training texts, kept as hashes.

    Examples
    --------
    >>> KnownWords.from_texts(["wheat and corn"]).share(["Corn and gold", "..."])
    array([0.66666667,        nan])
    """

    def __init__(self, hashes: npt.NDArray[np.uint64]) -> None:
        self._hashes = hashes

    @classmethod
    def from_texts(cls, texts: Iterable[str]) -> Self:
        """Return the words of texts, of very many the most frequent."""
        counts = Counter(itertools.chain.from_iterable(map(words_of, texts)))
        return cls(np.unique(_hashes(word for word, _ in counts.most_common(_MOST_KNOWN))))

    def share(self, texts: Iterable[str]) -> FloatArray:
        """Return the share of each text's words that are known (n_texts,), NaN for a text without words."""
        by_text = [words_of(text[:_CHARACTERS_READ]) for text in texts]
        distinct = list(set(itertools.chain.from_iterable(by_text)))
        hashes = _hashes(distinct)
        places = np.searchsorted(self._hashes, hashes)  # far faster than np.isin for a few words
        is_known = np.zeros(len(hashes), dtype=np.bool_)
        if len(self._hashes):
            is_known = self._hashes.take(places, mode="clip") == hashes
        known = dict(zip(distinct, is_known.tolist(), strict=True))
        shares = [sum(map(known.__getitem__, words)) / len(words) if words else np.nan for words in by_text]
        return np.array(shares, dtype=np.float64)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the hashes to a file."""
        write_arrays(path, {"kind": "known words"}, {"hashes": self._hashes})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return what `save` wrote; ArtifactError if the file holds something else."""
        _, arrays = read_arrays(path, "known words")
        hashes = arrays.get("hashes", np.empty(0))
        if hashes.ndim != 1 or hashes.dtype != np.uint64 or np.any(hashes[1:] <= hashes[:-1]):
            raise ArtifactError(f"{path} does not hold the sorted hashes of known words.")
        return cls(hashes)


def _hashes(words: Iterable[str]) -> npt.NDArray[np.uint64]:
    """Return a 64-bit hash of each word."""
    return np.frombuffer(b"".join(map(_hash, words)), dtype="<u8").astype(np.uint64)


@functools.lru_cache(2**16)
def _hash(word: str) -> bytes:
    return hashlib.blake2b(word.encode(), digest_size=8).digest()
