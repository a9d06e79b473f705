"""Which loss and C to fit a linear classifier with: the log-loss on held-out texts decides.

C is searched downhill or uphill from 1 in steps of about 3, as long as the log-loss falls, with the squared hinge;
then downhill with logistic regression from the C that usually corresponds. The best fit's scores are refined by each
other if that lowers the log-loss, too. Held-out texts are the validation texts, or texts of the training part that each
trial is not fitted on; calibration texts are never seen here.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Self

import numpy as np

from surelabel._core import progress
from surelabel._core.validation import BoolArray, FloatArray
from surelabel.text.curves import ScoreCurve, log_loss
from surelabel.text.refining import LEAST_TEXTS, Refinement, out_of_fold
from surelabel.text.separating import Candidate, LinearScores, Loss, fit_parts, parts_of

# Up to this many training texts are cross-fitted in this many folds; of more, a fifth is held out once.
_FEW_TEXTS, _FOLDS = 3_000, 5
_MOST_HELD_OUT = 5_000
# C that are tried, as multiples of the first one.
_SMALLER, _LARGER = (0.3, 0.1, 0.03, 0.01), (3.0, 10.0, 30.0)
# C of a logistic regression that is about as smooth as a support vector machine with C = 1.
_LOGISTIC_FACTOR = 15.0
# Slope of the curve if there are few texts.
_SLOPES = {"svm": 2.0, "logistic": 1.0}


@dataclasses.dataclass(frozen=True, eq=False)
class HeldOut:
    """Parts to fit on, with the features of the texts held out of each, and the labels of all held-out texts."""

    parts: list[tuple[Any, Any, Any]]
    labels: BoolArray
    shares: FloatArray
    is_validation: bool

    @classmethod
    def of(cls, features: Any, labels: Any, validation: tuple[Any, Any] | None, *, seed: int) -> Self:
        """Take the validation texts, features and labels; if there are none, hold out training texts."""
        n_texts = features.shape[0]
        shares = np.asarray(labels.sum(axis=0)).ravel() / n_texts
        if validation is not None:
            return cls([(features, labels, validation[0])], _dense(validation[1]), shares, is_validation=True)
        order = np.random.default_rng(seed).permutation(n_texts)
        if n_texts <= _FEW_TEXTS:
            held = [order[fold::_FOLDS] for fold in range(min(_FOLDS, n_texts))]
        else:
            held = [order[: min(n_texts // 5, _MOST_HELD_OUT)]]
        # One text alone is all there is.
        parts = list(parts_of(features, labels, held)) if n_texts > 1 else [(features, labels, features)]
        return cls(parts, _dense(labels[np.concatenate(held)]), shares, is_validation=False)


def _dense(labels: Any) -> BoolArray:
    """Return labels as a bool array."""
    return np.asarray(labels if isinstance(labels, np.ndarray) else labels.toarray(), dtype=bool)


@dataclasses.dataclass(frozen=True, eq=False)
class Trial:
    """A candidate with its curve and log-loss; its scores too if they were fitted on all training texts.

    If there is a refinement, scores go through it before the curve.
    """

    candidate: Candidate
    curve: ScoreCurve
    log_loss: float
    scores: LinearScores | None
    refinement: Refinement | None = None


class Search:
    """Trials of candidates on held-out texts, by the settings of a linear kind."""

    def __init__(self, held_out: HeldOut, settings: Any) -> None:
        self._held_out = held_out
        self._settings = settings
        self.tried: list[tuple[Candidate, float]] = []
        self._best: Trial | None = None

    def best(self) -> Trial:
        """Return the trial with the lowest log-loss."""
        settings = self._settings
        fixed = settings.inverse_regularisation
        if fixed is not None:
            losses: tuple[Loss, ...] = ("svm", "logistic") if settings.loss == "auto" else (settings.loss,)
            for loss in losses:
                self._try(loss, fixed)
        else:
            first: Loss = "svm" if settings.loss == "auto" else settings.loss
            self._climb(first, _LOGISTIC_FACTOR if first == "logistic" else 1.0, (_SMALLER, _LARGER))
            if settings.loss == "auto":
                assert self._best is not None
                start = _LOGISTIC_FACTOR * self._best.candidate.inverse_regularisation
                self._climb("logistic", start, (_SMALLER,))
        assert self._best is not None
        return self._best

    def refined(self, features: Any, labels: Any) -> Trial:
        """Return the best trial, its scores refined if that lowers the log-loss of held-out texts.

        Without validation texts, training texts are refined by halves, each by what the other half says.
        """
        best, held_out = self.best(), self._held_out
        if features.shape[0] < LEAST_TEXTS or labels.shape[1] < 2:
            return best
        slope = _SLOPES[best.candidate.loss]
        scores, rows = out_of_fold(features, labels, best.candidate, self._settings.seed)
        own = _dense(labels[rows])
        refinement = Refinement.fit(scores, own, held_out.shares, slope)
        if best.scores is not None:
            after, truth, before = refinement(best.scores(held_out.parts[0][2])), held_out.labels, best.log_loss
        else:
            truth, after, odd = own, np.empty(scores.shape), np.arange(len(own)) % 2 == 1
            for half in (odd, ~odd):
                after[half] = Refinement.fit(scores[~half], own[~half], held_out.shares, slope)(scores[half])
            plain = ScoreCurve.fit(scores, own, held_out.shares, slope)
            before = log_loss(plain.logits(scores), own)
        curve = ScoreCurve.fit(after, truth, held_out.shares)
        value = log_loss(curve.logits(after), truth)
        if value < before:
            return dataclasses.replace(best, curve=curve, log_loss=value, refinement=refinement)
        return best

    def history(self) -> list[dict[str, float]]:
        """Return what was tried, for `history_`."""
        return [
            {
                "is_logistic": float(candidate.loss == "logistic"),
                "inverse_regularisation": candidate.inverse_regularisation,
                "log_loss": loss,
            }
            for candidate, loss in self.tried
        ]

    def _climb(self, loss: Loss, start: float, directions: tuple[tuple[float, ...], ...]) -> None:
        """Try C from the start in the first direction as long as the log-loss falls; if it does not, in the next."""
        lowest = self._try(loss, start)
        for steps in directions:
            falls = False
            for step in steps:
                following = self._try(loss, step * start)
                if following >= lowest:
                    break
                lowest, falls = following, True
            if falls:
                return

    def _try(self, loss: Loss, inverse_regularisation: float) -> float:
        """Fit one candidate on every part; return its log-loss, and keep it if it is the best so far."""
        candidate = Candidate(loss, float(inverse_regularisation), self._settings.rare_weight)
        held_out = self._held_out
        n_labels = held_out.labels.shape[1]
        name = f"fitting {n_labels:,} labels: trial {len(self.tried) + 1}, {candidate}"
        with progress.step(name, len(held_out.parts) * n_labels) as advance:
            fitted, scores = fit_parts(held_out.parts, candidate, self._settings.seed, advance)
        curve = ScoreCurve.fit(scores, held_out.labels, held_out.shares, _SLOPES[loss])
        value = log_loss(curve.logits(scores), held_out.labels)
        self.tried.append((candidate, value))
        if self._best is None or value < self._best.log_loss:
            self._best = Trial(candidate, curve, value, fitted if held_out.is_validation else None)
        return value
