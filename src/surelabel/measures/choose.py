"""Settings of a mixture, chosen by likelihood on texts that the classifier has not seen, and confirmed by sizes."""

from __future__ import annotations

import functools
import logging
import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from surelabel._core.validation import (
    BoolArray,
    FloatArray,
    IntArray,
    aligned_rows,
    as_fraction,
    as_labels,
    as_probabilities,
    column_names,
)
from surelabel.conformal import ConformalLabelSets
from surelabel.exceptions import CalibrationWarning
from surelabel.measures.mixture import Mixture
from surelabel.measures.refinement import LEAST_TEXTS, Refinement
from surelabel.measures.separable import LogLoss

_log = logging.getLogger(__name__)
_N_FOLDS, _FEWEST_TEXTS = 3, 60
# Of each fold: texts that are scored (fewer if there are very many label-sets), texts that are guessed, and texts whose
# sets are sized; steps of counting.
_SCORED, _FEWEST_SCORED, _MOST_SCORES, _GUESSED, _SIZED, _WORK_LIMIT = 700, 150, 2_000_000, 700, 100, 100_000
# The search moves log-odds of the weight, logarithm of the temperature, prior and discount: starts, and limits.
_START = (1.5, math.log(0.7), 0.4, 0.2)
BOUNDS = ((-3.0, 6.0), (math.log(0.1), math.log(1.5)), (0.0, 1.5), (0.0, 1.5))
# Standard errors by which likelihood must be better, share by which sets must be smaller, and of best guesses to lose.
_SURELY, _LEAST_GAIN, _MOST_LOST = 2.0, 0.05, 0.01
# Probabilities of more labels are not refined: the table is square.
_MOST_REFINED_LABELS = 200


def choose_mixture(
    probabilities: Any,
    labels: Any,
    training_labels: Any,
    significances: Sequence[Any] = ("0.05",),
    *,
    min_labels: int = 1,
    max_labels: int | None = None,
    seed: int = 0,
) -> Mixture | LogLoss:
    """Choose the settings of `Mixture`, and confirm on held-out texts that prediction sets get smaller.

    The settings are those under which the label-sets of the texts are likeliest. Texts are divided into three folds.
    Settings chosen on two of them must make the third likelier than `LogLoss` by two standard errors, its sets a
    twentieth smaller at every significance (by exp(mean log(1 + N)) - 1), and at most one more best guess in a hundred
    wrong. If not, or with fewer than 60 texts, the result is `LogLoss()`. Calibration texts take no part, so the
    promise stays as it was.

    With 100 texts or more and up to 200 labels, a mixture of refined probabilities is tried too: each fold is refined
    by a fit on the two others. It must win against the result so far in the same way.

    Parameters
    ----------
    probabilities : (m, d) array-like
        Of texts that the classifier's fit has not seen; never of calibration texts.
    labels : (m, d) 0/1 array-like, or one collection of label names per text
        Texts with unknown labels are left out.
    training_labels : (n, d) 0/1 array-like or sparse matrix
        Of training texts.
    significances : sequence of float or str
        Levels at which sets should be small.
    min_labels, max_labels
        As of `ConformalLabelSets`.
    seed : int
        For the division into folds.
    """
    who = "choose_mixture"
    labels = aligned_rows(labels, probabilities, "labels", who)
    names = column_names(probabilities) or column_names(labels)
    values = as_probabilities(probabilities, names, who)
    own, has_unknown = as_labels(labels, len(values), values.shape[1], names, who)
    values, own = values[~has_unknown], own[~has_unknown]
    levels = [as_fraction(level, "significances", who) for level in significances]
    fitted = Mixture().fit(training_labels).with_names(names, values.shape[1])
    if len(values) < _FEWEST_TEXTS:
        _log.debug("%d texts are too few to choose a mixture (%d are needed): LogLoss", len(values), _FEWEST_TEXTS)
        return LogLoss(fitted.clip)
    folds = np.array_split(np.random.default_rng(seed).permutation(len(values)), _N_FOLDS)
    limits: dict[str, Any] = {"min_labels": min_labels, "max_labels": max_labels, "work_limit": _WORK_LIMIT}
    trial = functools.partial(_trial, labels=own, folds=folds, limits=limits, levels=levels)
    plain = best = trial(LogLoss(fitted.clip), fitted, values)
    candidates = {"as they are": trial(None, fitted, values)}
    if len(values) >= LEAST_TEXTS and 1 < values.shape[1] <= _MOST_REFINED_LABELS:
        candidates["refined"] = trial(None, fitted, _refined(values, own, folds))
    for name, candidate in candidates.items():
        gain = best.losses - candidate.losses
        confirmed = {
            "likelihood": gain.mean() > _SURELY * gain.std() / math.sqrt(len(gain)),
            "best guesses": candidate.hits >= plain.hits - _MOST_LOST,
            "sizes": bool(np.all(candidate.sizes <= (1.0 - _LEAST_GAIN) * best.sizes)),
        }
        _log.debug("%r, probabilities %s, confirmed: %s", candidate.measure, name, confirmed)
        _log.debug("typical sizes %s, best so far %s", candidate.sizes.round(2), best.sizes.round(2))
        if all(confirmed.values()):
            best = candidate
    if isinstance(best.measure, Mixture) and best is candidates.get("refined"):
        return replace(best.measure, refinement=Refinement.fit_probabilities(values, own))
    return best.measure


def _refined(values: FloatArray, labels: BoolArray, folds: Sequence[IntArray]) -> FloatArray:
    """Return probabilities (n, d), each fold refined by a fit on the others."""
    refined = np.empty(values.shape)
    for fold in folds:
        rest = np.setdiff1d(np.arange(len(values)), fold)
        refined[fold] = Refinement.fit_probabilities(values[rest], labels[rest]).probabilities(values[fold])
    return refined


class _Trial(NamedTuple):
    """A measure, and held-out texts' losses (n,), share of right best guesses, and typical sizes by level."""

    measure: Mixture | LogLoss
    losses: FloatArray
    hits: float
    sizes: FloatArray


def _trial(
    measure: LogLoss | None,
    fitted: Mixture,
    values: FloatArray,
    labels: BoolArray,
    folds: Sequence[IntArray],
    limits: dict[str, Any],
    levels: Sequence[Any],
) -> _Trial:
    """Try a measure on each fold, or if it is None the mixture whose settings are likeliest on the other folds."""
    scored = max(_FEWEST_SCORED, min(_SCORED, _MOST_SCORES // len(fitted.fitted)))
    likelihoods = [Likelihood(fitted, values[fold[:scored]], labels[fold[:scored]]) for fold in folds]
    losses, hits, sizes = [], [], []
    for held_out, fold in enumerate(folds):
        rest = np.concatenate([other for place, other in enumerate(folds) if place != held_out])
        chosen: Any = measure
        if measure is None:
            place, chosen = _fit(fitted, [one for other, one in enumerate(likelihoods) if other != held_out])
        losses.append(likelihoods[held_out].plain if measure else likelihoods[held_out].losses(place))
        predictor = ConformalLabelSets(chosen, **limits)
        right, logs = _results(predictor, (values[rest], labels[rest]), (values[fold], labels[fold]), levels)
        hits.append(right)
        sizes.append(logs)
    best = measure or _fit(fitted, likelihoods)[1]
    return _Trial(best, np.concatenate(losses), float(np.mean(hits)), np.expm1(np.mean(sizes, axis=0)))


def _results(predictor: ConformalLabelSets, known: Any, new: Any, levels: Sequence[Any]) -> tuple[float, list[float]]:
    """Return the share of right best guesses, and the mean log(1 + N) at each level, of new texts."""
    with warnings.catch_warnings(action="ignore", category=CalibrationWarning):
        calibrated = predictor.calibrate(*known)
        guesses = calibrated.predict(new[0][:_GUESSED]).labels
        sets = [calibrated.predict_set(new[0][:_SIZED], significance=level).size_bounds()[1] for level in levels]
    right = (guesses == new[1][:_GUESSED]).all(axis=1)
    return float(right.mean()), [float(np.log1p(sizes.astype(np.float64)).mean()) for sizes in sets]


class Likelihood:
    """Losses of texts under mixtures with the same seen label-sets and other settings, and their slopes."""

    def __init__(self, fitted: Mixture, probabilities: FloatArray, labels: BoolArray) -> None:
        seen, (absent, present) = fitted.fitted, LogLoss(fitted.clip).costs(probabilities)
        # Of all seen label-sets, (n, M): sums of costs. (M, 2): what prior and discount multiply.
        self._sums = np.ascontiguousarray((seen.matrix @ (present - absent).T).T) + absent.sum(axis=1)[:, None]
        self._features = np.stack([np.log(seen.counts), -(seen.members @ seen.log_odds)], axis=1)
        self.plain = np.where(labels, present, absent).sum(axis=1)
        places = seen.places_of(labels)
        self._rows, self._places = np.flatnonzero(places >= 0), places[places >= 0]

    def losses(self, place: FloatArray) -> FloatArray:
        """Return minus the log-likelihood of each text's label-set, (n,)."""
        return self._losses_and_shares(place)[0]

    def _losses_and_shares(self, place: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return losses (n,), the seen part's share of each likelihood (n,), and the softmax (n, M)."""
        softmax = self._features @ place[2:] - math.exp(place[1]) * self._sums
        softmax -= softmax.max(axis=1, keepdims=True)
        np.exp(softmax, out=softmax)
        softmax /= softmax.sum(axis=1, keepdims=True)
        weight, logs = _share(place[0]), np.full(len(self.plain), -np.inf)
        with np.errstate(divide="ignore"):
            logs[self._rows] = math.log(weight) + np.log(softmax[self._rows, self._places])
        losses = -np.logaddexp(math.log1p(-weight) - self.plain, logs)
        return losses, np.exp(logs + losses), softmax

    def mean_and_slopes(self, place: FloatArray) -> tuple[float, FloatArray]:
        """Return the mean loss and its slopes by the settings."""
        losses, shares, softmax = self._losses_and_shares(place)
        own, sums = shares[self._rows], self._sums[self._rows]
        expected = softmax[self._rows] @ self._features
        by_features = -(own[:, None] * (self._features[self._places] - expected)).sum(axis=0)
        own_sums = sums[np.arange(len(own)), self._places]
        by_temperature = (own * (own_sums - (softmax[self._rows] * sums).sum(axis=1))).sum() * math.exp(place[1])
        by_weight = (_share(place[0]) - shares).sum()
        return float(losses.mean()), np.array([by_weight, by_temperature, *by_features]) / len(losses)


def _share(log_odds: float) -> float:
    """Return the share with these log-odds."""
    return 1.0 / (1.0 + math.exp(-log_odds))


def _fit(fitted: Mixture, likelihoods: Sequence[Likelihood]) -> tuple[FloatArray, Mixture]:
    """Return the place where texts are likeliest, and its mixture."""

    def loss(place: FloatArray) -> tuple[float, FloatArray]:
        means, slopes = zip(*(likelihood.mean_and_slopes(place) for likelihood in likelihoods), strict=True)
        return float(np.mean(means)), np.mean(slopes, axis=0)

    from scipy.optimize import minimize  # noqa: PLC0415 (slow to import, and only those who choose need it)

    options: Any = {"maxiter": 40, "ftol": 1e-6}
    found: Any = minimize(loss, np.array(_START), jac=True, bounds=BOUNDS, method="L-BFGS-B", options=options)
    log_odds, log_temperature, prior, discount = found.x.tolist()
    settings = _share(log_odds), prior, math.exp(log_temperature), discount
    return found.x, Mixture(*settings, fitted.clip, fitted.seen)
