"""TF-IDF and one linear score per label, chosen and turned into probabilities on held-out texts: seconds, no torch.

More than 1,000 labels are learnt and predicted by shortlists (`shortlist.py`).
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
import scipy.special

from surelabel._core.npz_file import read_arrays
from surelabel._core.validation import FloatArray, IntArray
from surelabel.labels.sparse import SparseProbabilities
from surelabel.measures.odds import RefinedOdds
from surelabel.text.base import History, TextClassifier
from surelabel.text.curves import ScoreCurve
from surelabel.text.explaining import Explanation
from surelabel.text.inputs import FitOptions, LabelledTexts
from surelabel.text.refining import Refinement
from surelabel.text.searching import HeldOut, Search
from surelabel.text.separating import LinearScores, fit_scores
from surelabel.text.settings import LinearSettings
from surelabel.text.shortlist import ShortlistModel, fit_shortlists
from surelabel.text.terms import Terms

_ARRAYS = "linear.npz"
_log = logging.getLogger(__name__)


class LinearClassifier(TextClassifier):
    """One-vs-rest linear scores on TF-IDF, refined by each other, and one curve from scores to probabilities.

    Loss and C are those with the lowest log-loss on the validation texts, on which the curve is fitted too. If `fit`
    gets none, a fifth of the training texts is held out for that (small corpora are cross-fitted), and the weights are
    then fitted on all training texts. What labels say about each other is learnt from training texts, each scored by a
    fit that has not seen it, and kept if it lowers that log-loss. A label with no or only positive training texts gets
    the same probability for every text, 1/(n+2) or (n+1)/(n+2).

    Weights are rounded to float32 when fitted, and every text is computed alone: a saved classifier gives
    bit for bit the same probabilities, in any batch.

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

    def _fit(self, training: LabelledTexts, validation: LabelledTexts | None, options: FitOptions) -> History:
        features = self._fit_features(training.texts)
        self._shortlists: ShortlistModel | None = None
        self._refinement: Refinement | None = None
        if training.labels.shape[1] > self.settings.many_labels:
            self._shortlists = fit_shortlists(features, scipy.sparse.csr_array(training.labels), self.settings)
            return []
        n_texts, n_labels = training.labels.shape
        counts = np.asarray(training.labels.sum(axis=0)).ravel()
        # A label that cannot be learnt has a fixed logit; NaN marks the others.
        self._fixed = np.where(
            (counts == 0) | (counts == n_texts), np.log((counts + 1) / (n_texts - counts + 1)), np.nan
        )
        learnt = np.flatnonzero(np.isnan(self._fixed))
        if features.shape[1] == 0 or not len(learnt):
            self._fixed = np.log((counts + 1) / (n_texts - counts + 1))
            self._scores = LinearScores(np.zeros((features.shape[1], n_labels), dtype=np.float32), np.zeros(n_labels))
            self._curve = ScoreCurve(np.zeros(9), np.zeros(n_labels), np.zeros(2))
            return []
        return self._search(features, training, validation, learnt)

    def _search(
        self, features: Any, training: LabelledTexts, validation: LabelledTexts | None, learnt: IntArray
    ) -> History:
        """Choose loss and C, fit the learnt labels; return what was tried."""
        n_labels = training.labels.shape[1]
        labels = training.labels[:, learnt]
        held = None if validation is None else (self._features(validation.texts), validation.labels[:, learnt])
        search = Search(HeldOut.of(features, labels, held, seed=self.settings.seed), self.settings)
        best = search.refined(features, labels)
        lowest = min(loss for _, loss in search.tried)
        _log.info("of %d ways to fit, %s has the lowest log-loss: %.4f", len(search.tried), best.candidate, lowest)
        if best.refinement is not None:
            _log.info("with what labels say about each other it is %.4f", best.log_loss)
        scores = best.scores or fit_scores(features, labels, best.candidate, self.settings.seed)
        self._scores = LinearScores(
            _spread(scores.weights, learnt, n_labels), _spread(scores.intercepts, learnt, n_labels)
        )
        self._refinement = best.refinement
        frequencies = _spread(best.curve.frequencies, learnt, n_labels)
        self._curve = ScoreCurve(best.curve.coefficients, frequencies, best.curve.limits)
        return search.history()

    def _fit_features(self, texts: list[str]) -> Any:
        """Choose the features; return those of the training texts, a float32 CSR array."""
        self._terms = Terms(self.settings)
        return self._terms.fit(texts)

    def _features(self, texts: list[str]) -> Any:
        """Return the features of texts."""
        return self._terms.transform(texts)

    def _known(self, texts: list[str]) -> list[float]:
        return self._terms.known(texts)

    def listed_for(self, n_labels: int) -> int | None:
        """Return as many as a shortlist has if labels are learnt by shortlists: no others have probabilities."""
        return self.settings.shortlist if n_labels > self.settings.many_labels else super().listed_for(n_labels)

    def _predict_sparse(self, texts: list[str], k: int, batch_size: int | None) -> SparseProbabilities:
        if self._shortlists is None:
            return super()._predict_sparse(texts, k, batch_size)
        return self._shortlists.predict(self._features(texts), self.settings.shortlist, k)

    def _predict(self, texts: list[str], batch_size: int | None) -> FloatArray:
        if self._shortlists is not None:
            return self._predict_sparse(texts, self.settings.shortlist, batch_size).toarray()
        learnt = np.flatnonzero(np.isnan(self._fixed))
        logits = np.tile(self._fixed, (len(texts), 1))
        if len(learnt):
            scores = self._scores(self._features(texts))[:, learnt]
            if self._refinement is not None:
                scores = self._refinement(scores)
            curve = ScoreCurve(self._curve.coefficients, self._curve.frequencies[learnt], self._curve.limits)
            logits[:, learnt] = curve.logits(scores)
        return np.asarray(scipy.special.expit(logits), dtype=np.float64)

    def _explain(self, text: str, number: int, label: str | int) -> Explanation:
        features = self._features([text])
        if self._shortlists is not None:
            weights = self._shortlists.weights[[number]].toarray()[0]
            intercept = float(self._shortlists.intercepts[number])
        elif np.isnan(self._fixed[number]):
            weights, intercept = self._scores.weights[:, number], float(self._scores.intercepts[number])
        else:
            return Explanation(label, float(self._fixed[number]), (), intercept=float(self._fixed[number]))
        values = features.data.astype(np.float64) * weights[features.indices]
        of_terms = features.indices < self._terms.n_features
        words = self._terms.word_weights(text, features.indices[of_terms], values[of_terms])
        rest = float(values[~of_terms].sum())
        return Explanation(label, float(values.sum()) + intercept, words, intercept, rest)

    def _write(self, folder: Path) -> None:
        if self._shortlists is not None:
            learnt = self._shortlists.arrays()
        else:
            learnt = {
                "weights": self._scores.weights,
                "intercepts": self._scores.intercepts,
                "fixed": self._fixed,
                "curve": self._curve.coefficients,
                "curve_frequencies": self._curve.frequencies,
                "curve_limits": self._curve.limits,
            }
            if self._refinement is not None:
                learnt |= {
                    "refined": self._refinement.odds.table,
                    "refined_curve": self._refinement.curve.coefficients,
                    "refined_limits": self._refinement.curve.limits,
                }
        np.savez(folder / _ARRAYS, allow_pickle=False, idf=self._terms.idf, **learnt)
        self._terms.write(folder)

    def _read(self, folder: Path) -> None:
        arrays = read_arrays(folder / _ARRAYS)
        self._terms = Terms(self.settings)
        self._terms.read(folder, arrays["idf"])
        self._shortlists, self._refinement = None, None
        if self.n_labels_ > self.settings.many_labels:
            self._shortlists = ShortlistModel.from_arrays(arrays, self._n_features(), self.n_labels_)
        else:
            self._read_scores(arrays)

    def _n_features(self) -> int:
        """Columns of the features."""
        return self._terms.n_features

    def _read_scores(self, arrays: Any) -> None:
        """Restore weights and curve; older files have no curve, and their scores are log-odds."""
        n_labels = self.n_labels_
        self._scores = LinearScores(arrays["weights"], arrays["intercepts"])
        if "curve" in arrays:
            parts = (arrays["curve"], arrays["curve_frequencies"], arrays["curve_limits"])
            self._fixed = arrays["fixed"]
        else:
            parts = (np.eye(9)[0], np.zeros(n_labels), np.zeros(2))
            self._fixed = np.full(n_labels, np.nan)
        self._curve = ScoreCurve(*parts)
        check_arrays(
            (self._scores.weights, (self._n_features(), n_labels)),
            (self._scores.intercepts, (n_labels,)),
            (np.nan_to_num(self._fixed), (n_labels,)),
            *zip(parts, ((9,), (n_labels,), (2,)), strict=True),
        )
        if "refined" in arrays:
            frequencies = self._curve.frequencies[np.isnan(self._fixed)]
            n_learnt = len(frequencies)
            table, coefficients, limits = (arrays[f"refined{part}"] for part in ("", "_curve", "_limits"))
            check_arrays((table, (1 + n_learnt, n_learnt)), (coefficients, (9,)), (limits, (2,)))
            self._refinement = Refinement(ScoreCurve(coefficients, frequencies, limits), RefinedOdds(table))


def check_arrays(*expected: tuple[npt.NDArray[Any], tuple[int, ...]]) -> None:
    """Raise ValueError unless arrays that were read have these shapes and hold finite numbers."""
    for array, shape in expected:
        if array.shape != shape:
            raise ValueError("its arrays do not fit together")
        if not np.isfinite(array).all():
            raise ValueError("its weights are not all numbers")


def _spread(values: Any, columns: IntArray, n_columns: int) -> Any:
    """Put the columns of some labels in their places among all labels; the others are 0."""
    if len(columns) == n_columns:
        return values
    spread = np.zeros((*values.shape[:-1], n_columns), dtype=values.dtype)
    spread[..., columns] = values
    return spread
