"""Settings of a mixture, chosen on validation texts for the smallest prediction sets, and confirmed on a hold-out."""

from __future__ import annotations

import dataclasses
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from surelabel._core.validation import FloatArray, as_labels, as_level, as_probabilities
from surelabel.calibration import Calibration, totals_of
from surelabel.engines import engine_for
from surelabel.exceptions import InvalidInputError
from surelabel.labels.constraints import LabelConstraints
from surelabel.labels.sparse import as_sparse_labels, as_sparse_probabilities, is_sparse
from surelabel.measures.mixture import Mixture

__all__ = ["choose_mixture"]

_log = logging.getLogger(__name__)

# Settings that are tried, one parameter after the other, with the others as they are.
GRID: Mapping[str, tuple[float, ...]] = {
    "temperature": (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0, 1.3),
    "prior": (0.0, 0.25, 0.5, 0.75, 1.0),
    "weight": (0.5, 0.8, 0.9, 0.95, 0.99, 0.999),
    "neighbours": (0.03, 0.1, 0.3, 1.0),
}
_ORDER = ("temperature", "prior", "weight", "temperature", "prior")
_START = Mixture(weight=0.9, prior=0.5, temperature=0.7)
# Share of the validation texts that settings are chosen on; the others confirm them.
_CHOOSING_SHARE = 2 / 3
_FEWEST_TEXTS = 60
# Texts of each share that are scored, and of these that are sized.
_SCORED, _SIZED = 2000, 300
# The same for settings with neighbours, whose lists are long; changes of one label that are listed at most.
_SCORED_NEAR, _SIZED_NEAR, _MOST_CHANGES = 600, 150, 150_000
# Levels that stand for one, in multiples of it: one threshold depends on one calibration text, several on several.
_NEARBY = (Fraction(2, 3), Fraction(5, 6), Fraction(1), Fraction(6, 5), Fraction(3, 2))
# Cells of the tables that bound large sets, and steps of counting: sizes need not be exact here.
_CELLS = 512
_WORK_LIMIT = 20_000
# Share by which the hold-out's sets must be smaller than those of LogLoss, and by which neighbours must pay.
_LEAST_GAIN, _LEAST_GAIN_NEAR = 0.05, 0.1
# Settings whose criterion is so little above the best are as good; so many of them are compared by their best guesses.
_AS_GOOD, _COMPARED = 0.04, 8
# Share by which the hold-out's sets may be larger at one of the levels: a difference that is chance.
_LEVEL_CHANCE = 0.02
# Share of the hold-out's best guesses that may be lost, beside those of LogLoss: a difference that is chance.
_MOST_LOST = 0.01


@dataclasses.dataclass(frozen=True)
class _Part:
    """Some validation texts: what candidates are limited to, and the levels that sets are sized at."""

    probabilities: Any
    labels: Any
    limits: Mapping[str, Any]
    levels: tuple[Fraction, ...]

    def accuracy(self, measure: Mixture) -> float:
        """Return the share of texts whose best guess is their label-set."""
        probabilities, labels = self.probabilities[:_SCORED], self.labels[:_SCORED]
        calibration = Calibration(measure, np.zeros(1), labels.shape[1], label_names=None, **self.limits)
        wrong = engine_for(calibration, probabilities).forced()[0] != labels
        return float((np.asarray(wrong.sum(axis=1)) == 0).mean())

    def sizes(self, measure: Mixture) -> FloatArray:
        """Return typical sizes of the sets of these texts, one per level, calibrated by the same texts.

        The typical size is exp(mean log(1 + N)) - 1, the mean over texts and over levels near to the one asked for: a
        few huge sets cannot decide it, nor one calibration text. It is nan for a level at which
        no text or only the strangest one would be missed.
        """
        near = measure.neighbours > 0.0
        scored, sized = (_SCORED_NEAR, _SIZED_NEAR) if near else (_SCORED, _SIZED)
        probabilities, labels = self.probabilities[:scored], self.labels[:scored]
        totals = totals_of(measure, probabilities, labels)
        calibration = Calibration(measure, totals, labels.shape[1], label_names=None, **self.limits)
        engine = engine_for(calibration, probabilities[:sized], work_limit=_WORK_LIMIT)
        nearby = [level * near for level in self.levels for near in _NEARBY]
        thresholds = np.array([calibration.threshold(e) if calibration.rank(e) > 1 else math.inf for e in nearby])
        at, places = np.unique(thresholds[np.isfinite(thresholds)], return_inverse=True)
        logs = np.full(len(nearby), np.nan)
        if len(at):
            counts = engine.counts_at(at, _CELLS)[:, :, 1]
            logs[np.isfinite(thresholds)] = np.log1p(counts).mean(axis=0)[places]
        by_level = logs.reshape(-1, len(_NEARBY))
        told = np.isfinite(by_level)
        means = np.where(told, by_level, 0.0).sum(axis=1) / np.maximum(told.sum(axis=1), 1)
        return np.asarray(np.where(told.any(axis=1), np.expm1(means), np.nan))


def _criterion(sizes: FloatArray) -> float:
    """Return what is made small: the geometric mean of typical sizes over levels, 0.1 added so that none decides."""
    told = sizes[np.isfinite(sizes)]
    return float(np.exp(np.log(told + 0.1).mean())) if len(told) else math.inf


class _Search:
    """Tries settings on one part, each once."""

    def __init__(self, part: _Part, progress: Callable[[str], None]) -> None:
        self.part, self._progress = part, progress
        self._tried: dict[Mixture, float] = {}

    def value(self, measure: Mixture) -> float:
        """Return the criterion of a measure."""
        if measure not in self._tried:
            self._tried[measure] = _criterion(self.part.sizes(measure))
            self._progress(f"{measure!r}: typical size {self._tried[measure]:.4g}")
        return self._tried[measure]

    def descend(self, start: Mixture, names: Sequence[str]) -> Mixture:
        """Set one parameter after the other to its best value, with the others as they are."""
        best = start
        for name in names:
            best = min((best, *(best.reweighted(**{name: value}) for value in GRID[name])), key=self.value)
        return best

    def most_accurate(self, best: Mixture) -> Mixture:
        """Return, of the settings that are as good as the best, the one whose best guesses are right most often."""
        limit = (1.0 + _AS_GOOD) * self.value(best)
        alike = [one for one in self._tried if one.neighbours == best.neighbours and self._tried[one] <= limit]
        return max(sorted(alike, key=self.value)[:_COMPARED], key=self.part.accuracy)


def choose_mixture(
    probabilities: Any,
    labels: Any,
    training_labels: Any,
    significances: Sequence[Any] = ("0.05",),
    *,
    min_labels: int = 1,
    max_labels: int | None = None,
    constraints: LabelConstraints | None = None,
    random_state: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Mixture:
    """Choose the settings of `Mixture` that make prediction sets smallest on validation texts.

    Two thirds of the validation texts choose. Starting from weight 0.9, prior 0.5 and temperature 0.7, one parameter
    after the other is set to the value of a grid that makes the typical size of prediction sets smallest: the mean of
    log(1 + N), over texts, over the levels you name and over levels near to these, so a few huge sets cannot decide.
    Then the same with `neighbours`, which must make the typical size a tenth smaller to be kept, as they take time.

    The last third confirms: if its sets are not a twentieth smaller than those of `LogLoss`, or larger at one of the
    levels, the choice does not carry over. Then the result has weight 0, which scores exactly as `LogLoss` does.

    Calibration texts take no part, so the guarantee is what it was. Sets of at most 300 texts are sized for each
    setting, large ones by bounds; it takes seconds.

    Parameters
    ----------
    probabilities, labels : (m, d) array-likes, dense or sparse
        Of validation texts, at least 60; never of training or calibration texts.
    training_labels : (n, d) 0/1 array-like or sparse matrix
        Of proper training texts.
    significances : sequence of float or str
        Levels at which sets should be small.
    min_labels, max_labels, constraints
        As of `ConformalLabelSets`.
    random_state : int
        Of the division into thirds.
    progress : callable, optional
        Called with a line of text for each setting that is tried; the log has these lines too.

    Returns
    -------
    Mixture
        Fitted on the training labels, ready for `ConformalLabelSets`; of weight 0 if nothing better than `LogLoss` was
        confirmed.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> label_sets = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0]], dtype=bool)
    >>> labels = label_sets[rng.integers(0, 3, 400)]
    >>> probabilities = np.clip(labels + rng.normal(0, 0.5, labels.shape), 0.05, 0.95)
    >>> measure = choose_mixture(probabilities[100:], labels[100:], labels[:100])
    >>> measure.weight > 0
    True
    """
    who = "choose_mixture"
    if is_sparse(probabilities):
        checked: Any = as_sparse_probabilities(probabilities, who=who)
        own: Any = as_sparse_labels(labels, who=who, shape=checked.shape)
    else:
        checked = as_probabilities(probabilities, who=who)
        own = as_labels(labels, who=who, n_labels=checked.shape[1], n_texts=len(checked))
    if len(checked) < _FEWEST_TEXTS:
        raise InvalidInputError(f"{who} needs {_FEWEST_TEXTS} validation texts or more. Got {len(checked)} instead.")
    n_labels = int(checked.shape[1])
    levels = tuple(as_level(level, None, who=who) for level in significances)
    if not levels:
        raise InvalidInputError(f"The 'significances' parameter of {who} must name at least one level. Got none.")
    most = n_labels if max_labels is None else min(int(max_labels), n_labels)
    limits = {"min_labels": min_labels, "max_labels": most, "constraints": constraints}
    order = np.random.default_rng(random_state).permutation(len(checked))
    cut = round(_CHOOSING_SHARE * len(order))
    chooses, confirms = (_Part(checked[rows], own[rows], limits, levels) for rows in (order[:cut], order[cut:]))

    def report(line: str) -> None:
        _log.debug("%s", line)
        if progress is not None:
            progress(line)

    fitted = _START.fit(training_labels)
    if fitted.n_labels != n_labels:
        raise InvalidInputError(
            f"The 'training_labels' parameter of {who} must have {n_labels} labels (columns). Got {fitted.n_labels}."
        )
    chosen = _chosen(_Search(chooses, report), fitted)
    return _confirmed(chosen, confirms, report)


def _chosen(search: _Search, start: Mixture) -> Mixture:
    """Return the best settings, with neighbours only if they pay."""
    best = search.descend(start, _ORDER)
    if start.fitted.n_changes > _MOST_CHANGES:
        return best
    near = search.descend(best, ("neighbours",))
    if near.neighbours > 0.0:
        near = search.descend(near, ("temperature", "prior", "neighbours", "weight"))
    pays = near.neighbours > 0.0 and search.value(near) <= (1.0 - _LEAST_GAIN_NEAR) * search.value(best)
    return search.most_accurate(near if pays else best)


def _confirmed(chosen: Mixture, part: _Part, report: Callable[[str], None]) -> Mixture:
    """Return settings if the hold-out confirms that they are better than LogLoss, else those that are LogLoss."""
    plain = chosen.reweighted(weight=0.0, neighbours=0.0)
    sizes, without = part.sizes(chosen), part.sizes(plain)
    right, right_without = part.accuracy(chosen), part.accuracy(plain)
    told = np.isfinite(without)
    carries_over = bool(told.any()) and right >= right_without - _MOST_LOST
    carries_over = carries_over and bool(np.all(sizes[told] <= (1.0 + _LEVEL_CHANCE) * without[told]))
    carries_over = carries_over and _criterion(sizes) <= (1.0 - _LEAST_GAIN) * _criterion(without)
    shown, plainly = (", ".join(f"{size:.4g}" for size in values) for values in (sizes, without))
    report(
        f"On the hold-out {chosen!r} has typical sizes of {shown} and best guesses right in {right:.1%}; LogLoss "
        f"{plainly} and {right_without:.1%}: {'confirmed' if carries_over else 'not confirmed, so LogLoss it is'}"
    )
    return chosen if carries_over else plain
