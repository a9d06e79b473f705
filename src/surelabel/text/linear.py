"""TF-IDF of words and word pairs, and one logistic regression a label: seconds to fit, no torch.

More than 1,000 labels are learnt and predicted by shortlists (`shortlist.py`).
"""

from __future__ import annotations

import json
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
import scipy.special
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from surelabel._core.npz_file import read_arrays
from surelabel.exceptions import ArtifactError
from surelabel.labels.sparse import SparseProbabilities
from surelabel.text.base import FitOptions, LabelledTexts, TextClassifier
from surelabel.text.settings import LinearSettings
from surelabel.text.shortlist import ShortlistModel, fit_shortlists

__all__ = ["LinearClassifier"]

_WORD = r"[^\W\d_]+(?:['\u2019][^\W\d_]+)*|\d+"
_ARRAYS, _VOCABULARY = "linear.npz", "vocabulary.json"
# Fits at the same time would draw from one stream of random numbers, and none would be repeatable.
_SOLVER = threading.Lock()


class LinearClassifier(TextClassifier):
    """One-vs-rest logistic regression on TF-IDF.

    The vectors of words and of word pairs are brought to their lengths (1 and `pair_weight`) apart, so that
    the many pairs do not drown the words. A label with no or only positive training texts gets the same
    probability for every text, 1/(n+2) or (n+1)/(n+2).

    Weights are rounded to float32 when fitted, and every text is computed alone: a saved classifier gives
    bit for bit the same probabilities, in any batch.

    Parameters
    ----------
    settings : LinearSettings, optional
        What can be set.

    Examples
    --------
    >>> from surelabel.text import LinearClassifier
    >>> texts = ["wheat and corn", "the dollar fell", "corn prices", "dollar and yen"] * 5
    >>> labels = [[1, 0], [0, 1], [1, 0], [0, 1]] * 5
    >>> classifier = LinearClassifier().fit(texts, labels, label_names=["grain", "money"])
    >>> classifier.predict_proba(["corn and wheat"]).round(1)
    array([[1., 0.]])
    """

    kind = "linear"
    settings_class = LinearSettings

    def _fit(
        self, training: LabelledTexts, validation: LabelledTexts | None, options: FitOptions
    ) -> list[dict[str, float]]:
        self._vocabulary, counts = self._count(training.texts)
        self._vectorizer = self._make_vectorizer()
        n_texts, n_features = counts.shape
        in_texts = np.bincount(counts.indices, minlength=n_features)
        self._idf = (np.log((1 + n_texts) / (1 + in_texts)) + 1).astype(np.float32)
        features = self._weigh(counts)
        self._shortlists = None
        if training.labels.shape[1] > self.settings.many_labels:
            self._shortlists = fit_shortlists(features, scipy.sparse.csr_array(training.labels), self.settings)
            return []
        self._weights = np.zeros((n_features, training.labels.shape[1]), dtype=np.float32)
        self._intercepts = np.zeros(training.labels.shape[1])
        self._fit_labels(features.astype(np.float64), training.labels)
        return []

    def _count(self, texts: list[str]) -> tuple[list[str], Any]:
        """Return the words and pairs that are kept, and how often each text has them."""
        vectorizer = CountVectorizer(
            token_pattern=_WORD,
            ngram_range=(1, 2 if self.settings.pair_weight else 1),
            min_df=min(self.settings.min_texts, len(texts)),
            max_features=self.settings.max_features,
        )
        try:
            counts = vectorizer.fit_transform(texts)
        except ValueError:  # there is not one word that is frequent enough
            return [], scipy.sparse.csr_array((len(texts), 0))
        return list(vectorizer.get_feature_names_out()), scipy.sparse.csr_array(counts)

    def _make_vectorizer(self) -> Any:
        """Return a vectorizer for the words and pairs that are kept."""
        columns = {term: column for column, term in enumerate(self._vocabulary)}
        pairs = 2 if self.settings.pair_weight else 1
        self._is_pair = np.array([" " in term for term in self._vocabulary], dtype=bool)
        return CountVectorizer(token_pattern=_WORD, ngram_range=(1, pairs), vocabulary=columns)

    def _weigh(self, counts: Any) -> Any:
        """Turn counts into TF-IDF with a logarithmic term frequency, words and pairs of their own lengths."""
        rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        values = (1 + np.log(counts.data)) * self._idf[counts.indices]
        is_pair = self._is_pair[counts.indices]
        for part, length in ((~is_pair, 1.0), (is_pair, self.settings.pair_weight)):
            squares = np.bincount(rows, weights=np.where(part, values**2, 0), minlength=counts.shape[0])
            scale = length / np.sqrt(np.where(squares > 0, squares, 1))
            values = np.where(part, values * scale[rows], values)
        return scipy.sparse.csr_array((values.astype(np.float32), counts.indices, counts.indptr), shape=counts.shape)

    def _fit_labels(self, features: Any, labels: Any) -> None:
        """Fit every label's regression, one after the other: the solver's random numbers are the process' own."""
        n_texts = labels.shape[0]
        columns: Any = labels if isinstance(labels, np.ndarray) else scipy.sparse.csc_array(labels)

        def fit_label(label: int) -> None:
            target = columns[:, label] if columns is labels else columns[:, [label]].toarray()[:, 0]
            positive = int(target.sum())
            if positive in {0, n_texts} or features.shape[1] == 0:
                self._intercepts[label] = np.log((positive + 1) / (n_texts - positive + 1))
                return
            regression = LogisticRegression(
                C=self.settings.inverse_regularisation,
                solver="liblinear",
                dual=True,
                tol=1e-2,
                random_state=self.settings.seed,
            )
            regression.fit(features, target)
            self._weights[:, label] = regression.coef_[0]
            self._intercepts[label] = regression.intercept_[0]

        with _SOLVER, warnings.catch_warnings():
            # The last digits of a rare label's weights do not move its probabilities.
            warnings.simplefilter("ignore", ConvergenceWarning)
            for label in range(labels.shape[1]):
                fit_label(label)

    def listed_for(self, n_labels: int) -> int | None:
        """Return as many as a shortlist has where labels are learnt by shortlists: no others have probabilities."""
        return self.settings.shortlist if n_labels > self.settings.many_labels else super().listed_for(n_labels)

    def _features(self, texts: list[str]) -> Any:
        """Return the TF-IDF features of texts."""
        return self._weigh(scipy.sparse.csr_array(self._vectorizer.transform(texts)))

    def _predict_sparse(self, texts: list[str], k: int, batch_size: int | None) -> SparseProbabilities:
        if self._shortlists is None:
            return super()._predict_sparse(texts, k, batch_size)
        return self._shortlists.predict(self._features(texts), self.settings.shortlist, k)

    def _predict(self, texts: list[str], batch_size: int | None) -> npt.NDArray[np.float64]:
        if self._shortlists is not None:
            return self._predict_sparse(texts, self.settings.shortlist, batch_size).toarray()
        if not self._vocabulary:
            return np.tile(scipy.special.expit(self._intercepts), (len(texts), 1))
        logits = (self._features(texts) @ self._weights).astype(np.float64) + self._intercepts
        return np.asarray(scipy.special.expit(logits), dtype=np.float64)

    def _write(self, folder: Path) -> None:
        if self._shortlists is not None:
            learnt = self._shortlists.arrays()
        else:
            learnt = {"weights": self._weights, "intercepts": self._intercepts}
        np.savez(folder / _ARRAYS, allow_pickle=False, idf=self._idf, **learnt)
        (folder / _VOCABULARY).write_text(json.dumps(self._vocabulary, ensure_ascii=False), encoding="utf-8")

    def _read(self, folder: Path) -> None:
        try:
            self._vocabulary = json.loads((folder / _VOCABULARY).read_text(encoding="utf-8"))
            arrays = read_arrays(folder / _ARRAYS)
            self._idf = arrays["idf"]
            n_features = len(self._vocabulary)
            self._shortlists = None
            if self.n_labels_ > self.settings.many_labels:
                self._shortlists = ShortlistModel.from_arrays(arrays, n_features, self.n_labels_)
            else:
                self._weights, self._intercepts = arrays["weights"], arrays["intercepts"]
        except ArtifactError:
            raise
        except (OSError, KeyError, ValueError) as error:
            raise ArtifactError(f"The saved classifier {folder} is damaged: {error}") from error
        self._vectorizer = self._make_vectorizer()
        fits = self._idf.shape == (n_features,)
        if self._shortlists is None:
            shapes = (self._weights.shape, self._intercepts.shape)
            fits = fits and shapes == ((n_features, self.n_labels_), (self.n_labels_,))
        if not fits:
            raise ArtifactError(f"The saved classifier {folder} is damaged: its arrays do not fit together.")
