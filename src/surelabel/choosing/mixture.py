"""Settings of a mixture, chosen on validation texts by their likelihood, and confirmed by sizes of held-out sets."""

from __future__ import annotations

import dataclasses
import functools
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from surelabel._core.validation import FloatArray, as_level
from surelabel.choosing.folds import Fold, HubLabels, Sizes
from surelabel.choosing.likelihood import likeliest
from surelabel.exceptions import InvalidInputError
from surelabel.labels.constraints import LabelConstraints
from surelabel.labels.sparse import as_any_labels, as_any_probabilities, is_sparse
from surelabel.measures.hubs import log_odds_ratios
from surelabel.measures.mixture import Mixture
from surelabel.measures.odds import RefinedOdds

_log = logging.getLogger(__name__)

# Settings that are moved: the usual ones; with neighbours; and those that leave label-sets with as many labels in the
# order that the probabilities give them, so that best guesses stay good.
_USUAL = ("weight", "temperature", "prior", "discount")
_NEAR = (*_USUAL, "neighbours")
_ORDERLY = ("weight", "temperature", "cardinality")
# Ways to refine log-odds: not at all, each label by itself, or by all labels; the last up to this many labels.
_KINDS: tuple[bool | None, ...] = (None, False, True)
_MOST_LABELS_ACROSS = 200
# Parts that validation texts are divided into; each is held out once.
_N_FOLDS = 3
_FEWEST_TEXTS = 60
# Changes of one label that are listed at most: each takes time with every text.
_MOST_CHANGES = 10_000
# Hubs at most, labels up to which they are looked for, and labels that are fitted as the next one.
_MOST_HUBS, _MOST_LABELS_HUBS, _TRIED_AS_HUB = 2, 300, 3
# Standard errors by which the likelihood must be better: to refine log-odds, and to be taken instead of LogLoss.
_CLEARLY, _SURELY = 1.0, 2.0
# Share by which neighbours and hubs must make held-out sets smaller.
_LEAST_GAIN_NEAR = 0.1
# Share of best guesses that orderly settings may lose, beside those of LogLoss: a difference that is chance. Other
# settings must win by a standard error.
_MOST_LOST = 0.005


@dataclasses.dataclass(frozen=True)
class _Choice:
    """Settings, where the search for them ended, and the kind of refined log-odds and the hubs that go with them."""

    settings: Mapping[str, float]
    place: Mapping[str, float]
    kind: bool | None
    hubs: HubLabels = ()

    @property
    def near(self) -> bool:
        """Whether there are neighbours."""
        return "neighbours" in self.place

    def on(self, fold: Fold) -> Mixture:
        """Return the measure for a fold's texts: its log-odds were refined on other texts."""
        return fold.measure(self.kind, self.hubs).reweighted(**self.settings)

    def losses(self, fold: Fold) -> FloatArray:
        """Return minus the log-likelihood of the label-sets of a fold's texts."""
        return fold.likelihood(self.kind, self.hubs, self.near).losses(self.place, ())[0]


class _Search:
    """Finds the settings under which label-sets of held-out texts are likeliest."""

    def __init__(self, folds: Sequence[Fold], progress: Callable[[str], None]) -> None:
        self.folds, self._progress = folds, progress
        self.plain_sizes = functools.cache(lambda few: self.sizes([fold.plain for fold in folds], few))

    def fit(
        self, kind: bool | None, names: Sequence[str], hubs: HubLabels = (), held_out: Fold | None = None
    ) -> _Choice:
        """Return the likeliest settings on all folds, or on all but one."""
        folds = [fold for fold in self.folds if fold is not held_out]
        settings, place = likeliest([fold.likelihood(kind, hubs, "neighbours" in names) for fold in folds], names)
        choice = _Choice(settings, place, kind, hubs)
        if held_out is None:
            refined = {None: "as they are", False: "refined label by label", True: "refined by all labels"}[kind]
            loss = np.mean([choice.losses(fold).mean() for fold in folds])
            self._progress(f"log-odds {refined}: {choice.on(folds[0])!r} has a mean loss of {loss:.4g}")
        return choice

    def gains(self, better: _Choice, than: _Choice) -> FloatArray:
        """Return by how much texts are likelier under one choice than under another."""
        pairs = [(than.losses(fold), better.losses(fold)) for fold in self.folds]
        return np.concatenate([one[: len(other)] - other[: len(one)] for one, other in pairs])

    def sizes(self, measures: Sequence[Mixture], few: bool) -> Sizes:
        """Return sizes of sets with one measure per fold, calibrated by all folds: thresholds need many texts."""
        pairs = list(zip(self.folds, measures, strict=True))
        totals = np.concatenate([fold.totals(measure, few) for fold, measure in pairs])
        return Sizes.joined([fold.sizes(measure, totals, few) for fold, measure in pairs])

    def typical_size(self, choice: _Choice) -> float:
        """Return the typical size of a few held-out sets, over all levels."""
        return self.sizes([choice.on(fold) for fold in self.folds], few=True).criterion

    def hubs(self, kind: bool | None) -> HubLabels:
        """Return the labels that tell most about others beside the text, up to two, if each is surely worth it."""
        # The next hub is looked for where what is left of labels goes together as training labels do, and is the one of
        # a few under which held-out label-sets are likeliest.
        start = self.folds[0].start
        hubs: HubLabels = ()
        if is_sparse(self.folds[0].probabilities) or start.n_labels > _MOST_LABELS_HUBS:
            return ()
        ratios = log_odds_ratios(start.fitted, range(start.n_labels))
        losses = np.concatenate([fold.product_losses(kind, ()) for fold in self.folds])
        while len(hubs) < min(_MOST_HUBS, start.n_labels - 1):
            parted = zip(*(fold.residuals(kind, hubs) for fold in self.folds), strict=True)
            left, spread = (np.concatenate(parts) for parts in parted)
            together, chance = (ratios * (left.T @ left)).sum(axis=1), (ratios**2 * (spread.T @ spread)).sum(axis=1)
            strength = together / np.sqrt(np.maximum(chance, 1e-12))
            strength[list(hubs)] = -math.inf
            trials = []
            for label in np.argsort(-strength, kind="stable")[:_TRIED_AS_HUB].tolist():
                parts = [fold.product_losses(kind, (*hubs, label)) for fold in self.folds]
                trials.append((np.concatenate(parts), label))
            least, label = min(trials, key=lambda trial: float(trial[0].mean()))
            if not _is_above_chance(losses - least, _SURELY):
                break
            losses, hubs = least, (*hubs, label)
        return hubs

    def choices(self) -> Iterator[_Choice]:
        """Yield the best settings, then simpler ones in case these are not confirmed."""
        # Log-odds are refined if that is clearly likelier; hubs and neighbours must be likelier, and pay.
        best = self.fit(None, _USUAL)
        for kind in [kind for kind in _KINDS if kind is not None and kind in self.folds[0].odds]:
            other = self.fit(kind, _USUAL)
            if _is_above_chance(self.gains(other, best), _CLEARLY):
                best = other
        without = best
        if hubs := self.hubs(best.kind):
            best = self._if_it_pays(self.fit(best.kind, _USUAL, hubs), best)
        for base in (best, without) if best.hubs else (best,):
            if self.folds[0].start.fitted.n_changes <= _MOST_CHANGES:
                near = self._if_it_pays(self.fit(base.kind, _NEAR, base.hubs), base)
                if near is not base:
                    yield near
            yield base
        yield self.fit(best.kind, _ORDERLY)
        if best.kind is not None:
            yield self.fit(None, _ORDERLY)

    def _if_it_pays(self, other: _Choice, best: _Choice) -> _Choice:
        """Return what takes longer to count if it is clearly likelier and makes sets a tenth smaller, else the best."""
        pays = _is_above_chance(self.gains(other, best), _CLEARLY)
        pays = pays and self.typical_size(other) <= (1.0 - _LEAST_GAIN_NEAR) * self.typical_size(best)
        return other if pays else best

    def confirms(self, choice: _Choice) -> bool:
        """Tell whether settings chosen on the other folds beat LogLoss on each fold that they have not seen."""
        names = tuple(choice.place)
        held_out = [(fold, self.fit(choice.kind, names, choice.hubs, fold)) for fold in self.folds]
        lines, failed, gains = [], [], []
        for fold, other in held_out:
            losses = other.losses(fold)
            gains.append(fold.likelihood(None, (), choice.near).plain_losses[: len(losses)] - losses)
        gain = np.concatenate(gains)
        lines.append(f"is likelier than LogLoss by {gain.mean():.3g} per text")
        if not _is_above_chance(gain, _SURELY):
            failed.append("likelihood")
        if not failed:
            rights = [(fold.hits(other.on(fold)), fold.plain_hits) for fold, other in held_out]
            won = np.concatenate([right - plain[: len(right)] for right, plain in rights])
            lines.append(f"best guesses are right in {won.mean():+.1%}")
            if won.mean() < (-_MOST_LOST if names == _ORDERLY else won.std() / math.sqrt(len(won))):
                failed.append("best guesses")
        if not failed:  # counting sets takes longest
            sizes = self.sizes([other.on(fold) for fold, other in held_out], choice.near)
            plain = self.plain_sizes(choice.near)
            shown, plainly = (", ".join(f"{size:.4g}" for size in values.typical) for values in (sizes, plain))
            lines.append(f"typical sizes are {shown} (LogLoss {plainly})")
            failed = sizes.failures(plain)
        verdict = f"not confirmed by {', '.join(failed)}" if failed else "confirmed"
        self._progress(f"Held out, {choice.on(self.folds[0])!r} {'; '.join(lines)}: {verdict}")
        return not failed


def _is_above_chance(gains: FloatArray, n_errors: float) -> bool:
    """Tell whether the mean of gains is above 0 by this many standard errors."""
    return bool(gains.mean() > n_errors * gains.std() / math.sqrt(len(gains)))


def choose_mixture(
    probabilities: Any,
    labels: Any,
    training_labels: Any,
    significances: Sequence[Any] = ("0.05",),
    *,
    min_labels: int = 1,
    max_labels: int | None = None,
    constraints: LabelConstraints | None = None,
    refine: bool = True,
    random_state: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Mixture:
    """Choose the settings of `Mixture` on validation texts, and confirm on held-out ones that sets get smaller.

    The smallest valid sets come from the likeliest score, so settings are chosen by likelihood: it takes all texts into
    account, not those near one threshold, and carries over. Validation texts are divided into three folds. Weight,
    prior, temperature and discount are those under which label-sets of all folds are likeliest, found by the slopes of
    the likelihood. Log-odds are refined on two folds for the third, label by label or by all labels, which is kept if
    it is likelier by more than a standard error. Up to two hubs (`Mixture.with_hubs`) are looked for among labels whose
    presence says most about others. Hubs and `neighbours` take time: they must be likelier and make the typical size of
    held-out sets a tenth smaller. Neighbours are tried if no more than 10,000 label-sets are to be listed, hubs with up
    to 300 labels.

    Then each fold is held out: settings chosen on the other two must make it likelier than `LogLoss` by two standard
    errors, and its sets a twentieth smaller at the levels you name; at none of these, nor at two thirds or three halves
    of them, may sets be larger, typically or on average, and best guesses must be better, by a standard error. The
    typical size is exp(mean log(1 + N)) - 1, so a few huge sets cannot decide. If that fails, simpler settings are
    tried: without neighbours; without hubs; then with `cardinality` in place of prior and discount, which leaves
    label-sets with as many labels in the order that probabilities give them, so best guesses need only be as good; then
    without refined log-odds. If these fail too, the result has weight 0, which scores exactly as `LogLoss` does.

    Calibration texts take no part, so the guarantee is what it was. At most 1,000 texts per fold are scored, fewer (but
    150) if training has more than 500 different label-sets, and the sets of at most 100 are sized, large ones by
    bounds. It takes some seconds.

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
    refine : bool
        Whether log-odds may be refined; those of sparse texts never are.
    random_state : int
        Of the division into folds.
    progress : callable, optional
        Called with a line of text for each choice; the log has these lines too.

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
    checked = as_any_probabilities(probabilities, who=who)
    own = as_any_labels(labels, checked, who=who)
    if len(checked) < _FEWEST_TEXTS:
        raise InvalidInputError(f"{who} needs {_FEWEST_TEXTS} validation texts or more. Got {len(checked)} instead.")
    n_labels = int(checked.shape[1])
    levels = tuple(as_level(level, None, who=who) for level in significances)
    if not levels:
        raise InvalidInputError(f"The 'significances' parameter of {who} must name at least one level. Got none.")
    fitted = Mixture().fit(training_labels)
    if fitted.n_labels != n_labels:
        raise InvalidInputError(
            f"The 'training_labels' parameter of {who} must have {n_labels} labels (columns). Got {fitted.n_labels}."
        )
    most = n_labels if max_labels is None else min(int(max_labels), n_labels)
    limits = {"min_labels": min_labels, "max_labels": most, "constraints": constraints}
    kinds = _kinds(n_labels, refine=refine and not is_sparse(checked))
    order = np.random.default_rng(random_state).permutation(len(checked))
    folds = []
    for rows in np.array_split(order, _N_FOLDS):
        others = np.setdiff1d(order, rows)
        odds = {
            kind: None if kind is None else RefinedOdds.of(checked[others], own[others], across=kind) for kind in kinds
        }
        rest = checked[others], own[others]
        folds.append(Fold(checked[rows], own[rows], limits, levels, fitted, odds, rest))

    def report(line: str) -> None:
        _log.debug("%s", line)
        if progress is not None:
            progress(line)

    search = _Search(folds, report)
    with threadpool_limits(1, user_api="blas"):  # products are small: dividing them takes longer than the work
        choice = next((choice for choice in search.choices() if search.confirms(choice)), None)
    if choice is None:
        return fitted.reweighted(weight=0.0)
    chosen = fitted.reweighted(**choice.settings)
    if choice.kind is not None:
        chosen = chosen.refine(checked, own, across=choice.kind)
    return chosen.with_hubs(checked, own, choice.hubs) if choice.hubs else chosen


def _kinds(n_labels: int, *, refine: bool) -> tuple[bool | None, ...]:
    """Return the ways to refine log-odds that are tried."""
    if not refine:
        return (None,)
    return _KINDS if n_labels <= _MOST_LABELS_ACROSS else _KINDS[:2]
