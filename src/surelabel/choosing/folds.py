"""Validation texts in folds: likelihoods, sizes of sets and best guesses of mixtures, on texts held out of the fit."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from scipy.special import expit

from surelabel._core.validation import FloatArray
from surelabel.calibration import Calibration, rank_of, totals_of
from surelabel.choosing.likelihood import Likelihood
from surelabel.engines import engine_for
from surelabel.measures.base import costs_of
from surelabel.measures.mixture import Mixture
from surelabel.measures.odds import RefinedOdds

HubLabels: TypeAlias = tuple[int, ...]

# Texts of a fold that are scored, sized and guessed; the same with neighbours, whose lists are long.
_SCORED, _SIZED, _GUESSED = 1000, 100, 1000
_SCORED_NEAR, _SIZED_NEAR = 150, 60
# Texts times listed label-sets that are scored per fold, unless texts are then fewer than with neighbours.
_MOST_SCORES = 500_000
# Texts that hubs are fitted on, and judged by, per fold.
_HUB_TEXTS = 1500
# Levels that stand for one, in multiples of it: one threshold depends on one calibration text, several on several.
_NEARBY = (Fraction(2, 3), Fraction(1), Fraction(3, 2))
# Cells of the tables that bound large sets, and steps of counting: sizes need not be exact here.
_CELLS = 512
_WORK_LIMIT = 20_000
# Share by which held-out sets must be smaller than those of LogLoss.
_LEAST_GAIN = 0.05


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Sizes of sets, (levels, 3): at each level and two near to it, so that one calibration text does not decide.

    logs: mean log(1 + N), which a few huge sets cannot decide. means: of N. Both are nan at levels at which no text or
    only the strangest would be missed.
    """

    logs: FloatArray
    means: FloatArray

    @property
    def typical(self) -> FloatArray:
        """exp(mean log(1 + N)) - 1 by level, averaged with the levels near it; nan if there is none."""
        finite = np.isfinite(self.logs)
        sums = np.where(finite, self.logs, 0.0).sum(axis=1)
        return np.expm1(np.where(finite.any(axis=1), sums / np.maximum(finite.sum(axis=1), 1), np.nan))

    @property
    def criterion(self) -> float:
        """The geometric mean of typical sizes over levels, 0.1 added so that none decides."""
        finite = self.typical[np.isfinite(self.typical)]
        return float(np.exp(np.log(finite + 0.1).mean())) if len(finite) else math.inf

    def failures(self, plain: Sizes) -> list[str]:
        """Return by what these sizes do not improve on those of `LogLoss`.

        Thresholds of both measures come from the same few texts, so sizes at one level say little. Were the measures
        as good as each other, each comparison would be won about every other time: none of them may be lost.
        """
        finite = np.isfinite(plain.logs) & np.isfinite(self.logs)
        checks = {
            "levels": finite.any() and np.all(self.logs[finite] <= plain.logs[finite]),
            "means": np.all(self.means[finite] <= plain.means[finite]),
            "typical sizes": self.criterion <= (1.0 - _LEAST_GAIN) * plain.criterion,
        }
        return [name for name, passed in checks.items() if not passed]

    @classmethod
    def joined(cls, parts: Sequence[Sizes]) -> Sizes:
        """Return sizes of several folds as one."""
        return cls(*(np.mean([getattr(part, name) for part in parts], axis=0) for name in ("logs", "means")))


@dataclasses.dataclass(frozen=True, eq=False)
class Fold:
    """Held-out validation texts: what candidates are limited to, the levels that sets are sized at.

    start: a mixture fitted on label-sets of training. odds: refined log-odds by kind, fitted on the other folds, whose
    texts are `rest`.
    """

    probabilities: Any
    labels: Any
    limits: Mapping[str, Any]
    levels: tuple[Fraction, ...]
    start: Mixture
    odds: Mapping[bool | None, RefinedOdds | None]
    rest: tuple[Any, Any]

    @functools.cached_property
    def measure(self) -> Callable[[bool | None, HubLabels], Mixture]:
        """Return a measure with log-odds refined and hubs fitted on the other folds, by kind and hubs; made once."""

        def make(kind: bool | None, hubs: HubLabels) -> Mixture:
            refined, (probabilities, labels) = self.start.reweighted(odds=self.odds[kind]), self.rest
            return refined.with_hubs(probabilities[:_HUB_TEXTS], labels[:_HUB_TEXTS], hubs) if hubs else refined

        return functools.cache(make)

    @functools.cached_property
    def likelihood(self) -> Callable[[bool | None, HubLabels, bool], Likelihood]:
        """Return the likelihood of the texts that are scored, by kind, hubs and neighbours; made once."""

        def make(kind: bool | None, hubs: HubLabels, near: bool) -> Likelihood:
            n_texts = _SCORED_NEAR if near else max(_SCORED_NEAR, min(_SCORED, _MOST_SCORES // len(self.start.fitted)))
            measure = self.measure(kind, hubs).reweighted(neighbours=float(near))
            return Likelihood(measure, self.probabilities[:n_texts], self.labels[:n_texts])

        return functools.cache(make)

    def product_losses(self, kind: bool | None, hubs: HubLabels) -> FloatArray:
        """Return the losses of the independent part, given hubs."""
        return self.measure(kind, hubs).product_losses(self.probabilities[:_HUB_TEXTS], self.labels[:_HUB_TEXTS])

    def residuals(self, kind: bool | None, hubs: HubLabels) -> tuple[FloatArray, FloatArray]:
        """Return labels less their probabilities given hubs, and these probabilities' variances, (n, d) each."""
        measure, own = self.measure(kind, hubs), self.labels[:_HUB_TEXTS].astype(np.float64)
        absent, present = costs_of(measure.independent, self.probabilities[:_HUB_TEXTS])
        odds = absent - present
        if measure.hubs is not None:
            odds = measure.hubs.changed(odds, own[:, measure.hubs.labels])
        shares = expit(odds)
        return own - shares, shares * (1.0 - shares)

    def hits(self, measure: Mixture) -> FloatArray:
        """Tell of each text whether its best guess is its label-set: 1 or 0."""
        guessed = _SCORED_NEAR if measure.neighbours > 0.0 else _GUESSED
        probabilities, labels = self.probabilities[:guessed], self.labels[:guessed]
        calibration = Calibration(measure, np.zeros(1), labels.shape[1], label_names=None, **self.limits)
        wrong = engine_for(calibration, probabilities).forced()[0] != labels
        return np.asarray(np.asarray(wrong.sum(axis=1)) == 0, dtype=np.float64)

    @functools.cached_property
    def plain(self) -> Mixture:
        """The mixture that scores as `LogLoss` does."""
        return self.start.reweighted(weight=0.0)

    @functools.cached_property
    def plain_hits(self) -> FloatArray:
        """The same with `LogLoss`."""
        return self.hits(self.plain)

    def totals(self, measure: Mixture, few: bool) -> FloatArray:
        """Return the totals of the label-sets of texts, or of a few."""
        scored = _SCORED_NEAR if few else _SCORED
        return totals_of(measure, self.probabilities[:scored], self.labels[:scored])

    def sizes(self, measure: Mixture, totals: FloatArray, few: bool) -> Sizes:
        """Return sizes of the sets of some texts, or of a few, calibrated by totals."""
        calibration = Calibration(measure, totals, self.labels.shape[1], label_names=None, **self.limits)
        sized = self.probabilities[: _SIZED_NEAR if few else _SIZED]
        engine = engine_for(calibration, sized, work_limit=_WORK_LIMIT)
        nearby = [level * near for level in self.levels for near in _NEARBY]
        thresholds = np.array([calibration.threshold(e) if rank_of(len(totals), e) > 1 else math.inf for e in nearby])
        at, places = np.unique(thresholds[np.isfinite(thresholds)], return_inverse=True)
        by_level = np.full((2, len(nearby)), np.nan)
        if len(at):
            counts = engine.counts_at(at, _CELLS)[:, :, 1]
            by_level[0, np.isfinite(thresholds)] = np.log1p(counts).mean(axis=0)[places]
            by_level[1, np.isfinite(thresholds)] = counts.mean(axis=0)[places]
        return Sizes(*by_level.reshape(2, -1, len(_NEARBY)))
