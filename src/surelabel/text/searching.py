"""Which loss and C to fit a linear classifier with: the log-loss on held-out texts decides.

C is searched uphill and downhill from 1 in steps of about 3, as long as the log-loss falls, with the squared hinge;
then one logistic regression is tried at the C that usually corresponds. Held-out texts are the validation texts, or
texts of the training part that each trial is not fitted on; calibration texts are never seen here.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from surelabel._core import progress
from surelabel.text.curves import ScoreCurve, log_loss
from surelabel.text.separating import Candidate, LinearScores, Loss, fit_scores

__all__ = ["HeldOut", "Search", "Trial"]

# Up to so many training texts are cross-fitted in so many folds; of more, a fifth is held out once.
_FEW_TEXTS, _FOLDS = 3_000, 5
_MOST_HELD_OUT = 5_000
_STEPS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
_START = 4
# C of a logistic regression that is about as smooth as a support vector machine with C = 1.
_LOGISTIC_FACTOR = 50.0
# Slope of the curve if there are few texts.
_SLOPES = {"svm": 2.0, "logistic": 1.0}


@dataclasses.dataclass(frozen=True, eq=False)
class HeldOut:
    """Parts to fit on, with the features of the texts held out of each, and the labels of all held-out texts."""

    parts: list[tuple[Any, Any, Any]]
    labels: npt.NDArray[np.bool_]
    shares: npt.NDArray[np.float64]
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
        parts = []
        for rows in held:
            kept = np.setdiff1d(order, rows)
            parts.append((features[kept], labels[kept], features[rows]))
        if not len(parts[0][0].indptr) > 1:  # one text only: it is all there is
            parts = [(features, labels, features)]
        return cls(parts, _dense(labels[np.concatenate(held)]), shares, is_validation=False)


def _dense(labels: Any) -> npt.NDArray[np.bool_]:
    """Return labels as a bool array."""
    return np.asarray(labels if isinstance(labels, np.ndarray) else labels.toarray(), dtype=bool)


@dataclasses.dataclass(frozen=True, eq=False)
class Trial:
    """A candidate with its curve and log-loss; its scores too if they were fitted on all training texts."""

    candidate: Candidate
    curve: ScoreCurve
    log_loss: float
    scores: LinearScores | None


class Search:
    """Trials of candidates on held-out texts.

    Parameters
    ----------
    held_out : HeldOut
    settings : LinearSettings
    """

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
            self._climb(first, _LOGISTIC_FACTOR if first == "logistic" else 1.0)
            if settings.loss == "auto":
                assert self._best is not None
                self._try("logistic", _LOGISTIC_FACTOR * self._best.candidate.inverse_regularisation)
        assert self._best is not None
        return self._best

    def summary(self) -> tuple[str, float]:
        """Return the best candidate in words, and its log-loss."""
        assert self._best is not None
        return str(self._best.candidate), self._best.log_loss

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

    def _climb(self, loss: Loss, factor: float) -> None:
        """Try larger C from the start as long as the log-loss falls; if the first is no better, smaller ones."""
        lowest = self._try(loss, _STEPS[_START] * factor)
        for steps in (_STEPS[_START + 1 :], _STEPS[:_START][::-1]):
            falls = False
            for step in steps:
                following = self._try(loss, step * factor)
                if following >= lowest:
                    break
                lowest, falls = following, True
            if falls:
                return

    def _try(self, loss: Loss, inverse_regularisation: float) -> float:
        """Fit one candidate on every part; return its log-loss, and keep it if it is the best so far."""
        candidate = Candidate(loss, float(inverse_regularisation), self._settings.rare_weight)
        held_out = self._held_out
        fitted = None
        scores = []
        n_labels = held_out.labels.shape[1]
        name = f"fitting {n_labels:,} labels: trial {len(self.tried) + 1}, {candidate}"
        with progress.step(name, len(held_out.parts) * n_labels) as advance:
            for features, labels, held in held_out.parts:
                fitted = fit_scores(features, labels, candidate, self._settings.seed, advance)
                scores.append(fitted(held))
        joined = np.concatenate(scores)
        curve = ScoreCurve.fit(joined, held_out.labels, held_out.shares, _SLOPES[loss])
        value = log_loss(curve.logits(joined), held_out.labels)
        self.tried.append((candidate, value))
        if self._best is None or value < self._best.log_loss:
            self._best = Trial(candidate, curve, value, fitted if held_out.is_validation else None)
        return value
