"""TF-IDF and one linear score per label, with a curve from scores to probabilities: seconds, no torch.

Loss, C, curve and refinement are chosen by fits that have not seen the texts they are judged on: training texts are
divided into folds, equal texts in the same fold. The last fit uses all training texts.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from scipy.special import expit

from surelabel._core import progress
from surelabel._core.files import read_arrays, write_arrays
from surelabel._core.validation import BoolArray, FloatArray, IntArray
from surelabel.measures.refinement import LEAST_TEXTS, Refinement
from surelabel.text.base import (
    HeldOut,
    History,
    Labelled,
    TextClassifier,
    Within,
    check_arrays,
    settings,
)
from surelabel.text.curve import ScoreCurve, log_loss
from surelabel.text.explain import Explanation
from surelabel.text.refinement import ScoreRefinement
from surelabel.text.solver import Candidate, LinearScores, Loss, fit_scores
from surelabel.text.terms import Terms

_ARRAYS, _ARRAYS_KIND = "linear.npz", "linear classifier"
# Up to this many training texts have five folds, and every trial is fitted on all of them. More texts have three, and
# trials are fitted on the first only.
_FEW_TEXTS = 3_000
_FOLDS, _FOLDS_OF_MANY = 5, 3
# Trials are judged after the refinement if texts times squared labels stay below this.
_MOST_TRIAL_WORK = 50_000_000
# C that are tried, as multiples of the first one.
_SMALLER, _LARGER = (0.3, 0.1, 0.03, 0.01), (3.0, 10.0, 30.0)
# C of a logistic regression that is about as smooth as a support vector machine with C = 1.
_LOGISTIC_FACTOR = 15.0
# Slope of the curve if there are few texts.
_SLOPES = {"svm": 2.0, "logistic": 1.0}


@settings
class LinearClassifier(TextClassifier):
    """One-vs-rest linear scores on TF-IDF, refined by each other, and one curve from scores to probabilities.

    A label with no or only positive training texts gets the same probability for every text, 1/(n+2) or (n+1)/(n+2).
    Each text is computed alone: its probabilities are bit for bit the same in any batch.

    Parameters
    ----------
    loss : {"auto", "svm", "logistic"}
        Squared hinge or logistic loss. "auto" takes the one with the lower log-loss on held-out folds.
    C : float or None
        Inverse regularisation. None chooses it on held-out folds.
    rare_weight : float
        If m of n training texts have a label, each of them counts ((n - m) / m)^rare_weight times.
    pair_weight : float
        Length of the vector of word pairs if that of words is 1. 0 leaves pairs out.
    language : str or None
        Replace words by their stems in a language of snowballstemmer, such as "english" or "czech".
    lemmas : str or None
        Replace words by their lemmas in a language of simplemma, such as "cs".
    min_texts, max_features : int
        Fewest training texts that a term must occur in, and the number of most frequent terms that are kept.
    seed : int
        Decides the folds and the order in which the solver visits texts.
    """

    kind = "linear"

    loss: Literal["auto", "svm", "logistic"] = "auto"
    C: Annotated[float | None, Within(1e-6, 1e9)] = None
    rare_weight: Annotated[float, Within(0, 1)] = 0.3
    pair_weight: Annotated[float, Within(0, 10)] = 0.3
    language: str | None = None
    lemmas: str | None = None
    min_texts: Annotated[int, Within(1, 1e9)] = 2
    max_features: Annotated[int, Within(1, 1e9)] = 200_000
    seed: Annotated[int, Within(0, 2**31 - 1)] = 0

    def _check_settings(self) -> None:
        super()._check_settings()
        self._new_terms()

    def _fit(self, training: Labelled, validation: Labelled | None, work_folder: Path | None) -> History:
        labels = training.labels
        features = self._fit_features(training.texts)
        n_texts = len(labels)
        counts = labels.sum(axis=0)
        odds = np.log((counts + 1) / (n_texts - counts + 1))
        can_learn = (counts > 0) & (counts < n_texts) & (features.shape[1] > 0) & (n_texts > 1)
        self._fixed = np.where(can_learn, np.nan, odds)
        learnt = np.flatnonzero(can_learn)
        if not len(learnt):
            return []
        with progress.step(f"fitting {self.kind}") as advance:
            trials = _Trials(features, labels[:, learnt], folds_of(training.texts, self.seed), self, advance)
            best, self._curve, self._refinement, logits = trials.best()
            self._scores = fit_scores(features, labels[:, learnt], best, self.seed, advance)
        all_logits = np.tile(self._fixed, (n_texts, 1))
        all_logits[:, learnt] = logits
        self.held_out_ = HeldOut(np.arange(n_texts), expit(all_logits))
        return trials.history

    def _new_terms(self) -> Terms:
        return Terms(
            pair_weight=self.pair_weight,
            min_texts=self.min_texts,
            max_features=self.max_features,
            language=self.language,
            lemmas=self.lemmas,
        )

    def _fit_features(self, texts: list[str]) -> Any:
        """Choose the features; return those of the training texts, a float32 CSR array."""
        self._terms = self._new_terms()
        return self._terms.fit(texts)

    def _features(self, texts: list[str]) -> Any:
        """Return the features of texts, a float32 CSR array."""
        return self._terms.transform(texts)

    def _write_features(self, folder: Path) -> dict[str, Any]:
        """Write what `_features` needs; return the arrays that are stored with the others."""
        return self._terms.write(folder)

    def _read_features(self, folder: Path, arrays: dict[str, Any]) -> int:
        """Restore what `_write_features` wrote; return the number of features."""
        self._terms = self._new_terms()
        self._terms.read(folder, arrays)
        return self._terms.n_features

    def _predict(self, texts: list[str]) -> FloatArray:
        learnt = np.flatnonzero(np.isnan(self._fixed))
        logits = np.tile(self._fixed, (len(texts), 1))
        if len(learnt):
            logits[:, learnt] = self._logits(self._scores(self._features(texts)))
        return np.asarray(expit(logits), dtype=np.float64)

    def _logits(self, scores: FloatArray) -> FloatArray:
        """Return the log-odds (n, d) of scores (n, d) of the labels that were learnt."""
        return self._curve.logits(scores if self._refinement is None else self._refinement(scores))

    def _explain(self, text: str, number: int) -> Explanation:
        name = self.label_names_[number]
        if not np.isnan(self._fixed[number]):
            return Explanation(name, float(self._fixed[number]), (), rest=float(self._fixed[number]))
        place = int(np.isnan(self._fixed[:number]).sum())
        features = self._features([text])
        scores = self._scores(features)
        log_odds = float(self._logits(scores)[0, place])
        # Contributions to the label's log-odds: the gradient in the scores of all labels, times what terms add to them.
        step = 1e-4
        gradient = (self._logits(scores + step * np.eye(scores.shape[1]))[:, place] - log_odds) / step
        values = features.data.astype(np.float64) * (
            self._scores.weights[features.indices].astype(np.float64) @ gradient
        )
        of_terms = features.indices < self._terms.n_features
        words = self._terms.word_weights(text, features.indices[of_terms], values[of_terms])
        return Explanation.of_words(text, words, name, log_odds)

    def _write(self, folder: Path) -> None:
        arrays = {"fixed": self._fixed, **self._write_features(folder)}
        if np.isnan(self._fixed).any():
            arrays |= {"weights": self._scores.weights, "intercepts": self._scores.intercepts}
            arrays |= _curve_arrays(self._curve, "curve")
            if self._refinement is not None:
                table = self._refinement.refinement.table
                arrays |= _curve_arrays(self._refinement.curve, "refined") | {"refined_table": table}
        write_arrays(folder / _ARRAYS, {"kind": _ARRAYS_KIND}, arrays)

    def _read(self, folder: Path) -> None:
        _, arrays = read_arrays(folder / _ARRAYS, _ARRAYS_KIND)
        n_features = self._read_features(folder, arrays)
        self._fixed = arrays["fixed"]
        check_arrays((np.nan_to_num(self._fixed, posinf=np.inf, neginf=-np.inf), (self.n_labels_,)))
        n_learnt = int(np.isnan(self._fixed).sum())
        if n_learnt:
            self._scores = LinearScores(arrays["weights"], arrays["intercepts"])
            check_arrays((self._scores.weights, (n_features, n_learnt)), (self._scores.intercepts, (n_learnt,)))
            self._curve = _read_curve(arrays, "curve", n_learnt)
            self._refinement = None
            if "refined_table" in arrays:
                check_arrays((arrays["refined_table"], (1 + n_learnt, n_learnt)))
                curve = _read_curve(arrays, "refined", n_learnt)
                self._refinement = ScoreRefinement(curve, Refinement(arrays["refined_table"]))


class _Outcome(NamedTuple):
    """A curve fitted on held-out scores, the log-odds (n, d) that it makes of them, and their log-loss."""

    log_loss: float
    curve: ScoreCurve
    is_refined: bool
    logits: FloatArray


class _Trials:
    """Fits on held-out folds, by the settings of a linear classifier."""

    def __init__(
        self,
        features: Any,
        labels: BoolArray,
        folds: list[IntArray],
        settings: LinearClassifier,
        advance: Callable[[int], None],
    ) -> None:
        self._features, self._labels, self._folds, self._settings = features, labels, folds, settings
        self._advance, self._shares = advance, labels.mean(axis=0)
        self._n_trial_folds = len(folds) if len(labels) <= _FEW_TEXTS else 1
        self._parts: dict[Candidate, list[FloatArray]] = {}
        self._losses: dict[Candidate, float] = {}
        self.history: History = []

    def best(self) -> tuple[Candidate, ScoreCurve, ScoreRefinement | None, FloatArray]:
        """Return the candidate with the lowest log-loss, its curve and refinement, and log-odds of held-out texts.

        C is searched downhill or uphill from 1 by steps of about 3 with the squared hinge, then downhill from the C
        of a logistic regression that usually corresponds. The best of each loss are compared on all folds.
        """
        loss, c = self._settings.loss, self._settings.C
        losses: tuple[Loss, ...] = ("svm", "logistic") if loss == "auto" else (loss,)
        if c is not None:
            for one in losses:
                self._try(one, c)
        else:
            self._climb(losses[0], _LOGISTIC_FACTOR if losses[0] == "logistic" else 1.0, (_SMALLER, _LARGER))
            if loss == "auto":
                self._climb("logistic", _LOGISTIC_FACTOR * self._lowest("svm").c, (_SMALLER,))
        judged = []
        for candidate in map(self._lowest, losses):
            scores, rows = self._held_out(candidate, len(self._folds))
            scores = scores[np.argsort(rows)]
            judged.append((_judge(scores, self._labels, self._shares, candidate.loss), candidate, scores))
        outcome, candidate, scores = min(judged, key=lambda one: one[0].log_loss)
        refinement = None
        if outcome.is_refined:
            refinement = ScoreRefinement.fit(scores, self._labels, self._shares, _SLOPES[candidate.loss])
        return candidate, outcome.curve, refinement, outcome.logits

    def _lowest(self, loss: Loss) -> Candidate:
        return min((one for one in self._losses if one.loss == loss), key=self._losses.__getitem__)

    def _climb(self, loss: Loss, start: float, directions: tuple[tuple[float, ...], ...]) -> None:
        """Try C from the start in the first direction as long as the log-loss falls, otherwise in the next."""
        lowest = first = self._try(loss, start)
        for steps in directions:
            for step in steps:
                following = self._try(loss, step * start)
                if following >= lowest:
                    break
                lowest = following
            if lowest < first:
                return

    def _try(self, loss: Loss, c: float) -> float:
        """Fit one candidate on the folds of trials; return its log-loss."""
        candidate = Candidate(loss, float(c), self._settings.rare_weight)
        scores, rows = self._held_out(candidate, self._n_trial_folds)
        may_refine = scores.size * scores.shape[1] <= _MOST_TRIAL_WORK
        value = _judge(scores, self._labels[rows], self._shares, loss, may_refine=may_refine).log_loss
        self._losses[candidate] = value
        self.history.append({"is_logistic": float(loss == "logistic"), "C": candidate.c, "log_loss": value})
        return value

    def _held_out(self, candidate: Candidate, n_folds: int) -> tuple[FloatArray, IntArray]:
        """Return the scores of the first folds, each by a fit on all other folds, and their rows."""
        parts = self._parts.setdefault(candidate, [])
        for rows in self._folds[len(parts) : n_folds]:
            kept = np.setdiff1d(np.arange(len(self._labels)), rows)
            own = self._features[kept], self._labels[kept]
            parts.append(fit_scores(*own, candidate, self._settings.seed, self._advance)(self._features[rows]))
        return np.concatenate(parts), np.concatenate(self._folds[:n_folds])


def folds_of(texts: list[str], seed: int) -> list[IntArray]:
    """Return the rows of each fold, equal texts in one fold; there are fewer folds if there are few different texts."""
    _, group = np.unique(np.array(texts, dtype=object), return_inverse=True)
    if group.max() == 0:  # one text, many times
        group = np.arange(len(texts))
    n_groups = int(group.max()) + 1
    n_folds = min(_FOLDS if len(texts) <= _FEW_TEXTS else _FOLDS_OF_MANY, n_groups)
    fold_of = np.random.default_rng(seed).permutation(n_groups) % n_folds
    return [np.flatnonzero(fold_of[group] == fold) for fold in range(n_folds)]


def _judge(
    scores: FloatArray, labels: BoolArray, shares: FloatArray, loss: Loss, *, may_refine: bool = True
) -> _Outcome:
    """Fit a curve on held-out scores (n, d), refined if that lowers the log-loss.

    Each half of the texts is refined by a refinement that was fitted on the other half.
    """
    curve = ScoreCurve.fit(scores, labels, shares, _SLOPES[loss])
    logits = curve.logits(scores)
    plain = _Outcome(log_loss(logits, labels), curve, False, logits)
    if not may_refine or len(labels) < LEAST_TEXTS or labels.shape[1] < 2:
        return plain
    refined, is_odd = np.empty(scores.shape), np.arange(len(scores)) % 2 == 1
    for half in (is_odd, ~is_odd):
        refined[half] = ScoreRefinement.fit(scores[~half], labels[~half], shares, _SLOPES[loss])(scores[half])
    curve = ScoreCurve.fit(refined, labels, shares)
    logits = curve.logits(refined)
    return min(plain, _Outcome(log_loss(logits, labels), curve, True, logits), key=lambda outcome: outcome.log_loss)


def _curve_arrays(curve: ScoreCurve, name: str) -> dict[str, FloatArray]:
    return {f"{name}_{part}": getattr(curve, part) for part in ("coefficients", "frequencies", "limits")}


def _read_curve(arrays: dict[str, Any], name: str, n_labels: int) -> ScoreCurve:
    curve = ScoreCurve(*(arrays[f"{name}_{part}"] for part in ("coefficients", "frequencies", "limits")))
    check_arrays((curve.coefficients, (9,)), (curve.frequencies, (n_labels,)), (curve.limits, (2,)))
    return curve
