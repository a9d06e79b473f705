"""What a user reads about one text: the same on the command line, from the service and on the page."""

from __future__ import annotations

import bisect
import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from surelabel._core.validation import IntArray, as_level, check_count
from surelabel.calibration import Calibration
from surelabel.conformal import ConformalLabelSets, ForcedPredictions
from surelabel.engines.base import Engine
from surelabel.engines.one_row import Costs, Cut, best_members, cut, two_best
from surelabel.engines.sparse import MOST_DESCRIBED
from surelabel.guarantees.decisions import Decision, Decisions, Verdict
from surelabel.labels.label_sets import label_indices
from surelabel.labels.sparse import is_sparse
from surelabel.measures import costs_of
from surelabel.sets.descriptions import Description
from surelabel.sets.prediction_set import describe_members
from surelabel.sets.prediction_sets import PredictionSets
from surelabel.taxonomies.engine import KindsEngine

__all__ = ["Answer", "PlausibleLabelSet", "answer_probabilities", "exact_level"]

# Open labels that a text does not list are named if there are no more open labels than this.
_MOST_NAMED = 1_000
# Members that are listed for a description.
_MOST_LISTED = 32


@dataclasses.dataclass(frozen=True)
class PlausibleLabelSet:
    """A plausible label-set, its labels in the order of the label names, and its p-value."""

    labels: tuple[str, ...]
    p_value: float


@dataclasses.dataclass(frozen=True)
class Answer:
    """What conformal prediction says about one text.

    Attributes
    ----------
    labels : tuple of str
        The best guess. It is the forced prediction, the label-set with the highest p-value, unless a model decides by
        thresholds for F1. Here and below labels are in the order of the label names; if labels have no names, their
        numbers from 0 are.
    confidence, credibility : float
        Of the forced prediction, see `ForcedPredictions`.
    significance : str
        The level, as an exact decimal (a fraction if there is none).
    size : int or None
        Exact number of plausible label-sets; None if only bounds can be had within the work limit.
    size_bounds : (int, int)
        Certified bounds of the size, equal if it is exact.
    n_candidates : int
        How many candidates there are.
    certain : tuple of str
        Labels that every plausible label-set has.
    open : tuple of str
        Labels that some plausible label-sets have, but not all. If sparse probabilities leave more than 1,000 of
        them, those that the text lists; `n_more_open` says how many more there are.
    top : tuple of PlausibleLabelSet
        The most plausible label-sets, best first.
    description : str or None
        The prediction set in a sentence, see `PredictionSet.describe`; None if it was not asked for, if only
        bounds of the size are known, or if sparse probabilities are of more than 10,000 labels.
    n_more_open : int
        Open labels that are not named: 0, or how many labels a text does not list if each of them is open.
    decision : {"file", "choose", "read"} or None
        What to do with the text, see `surelabel.guarantees.decisions`; None if nothing certifies it. If the text is
        filed, `labels` are what is certified.
    reason : str or None
        Why, in plain words.
    assign, consider : tuple of str
        Tags to assign and tags to consider, see `TagBounds`: the most probable first.
    unfamiliar : bool
        Whether the text is unlike the calibration texts: read it yourself.
    category : str or None
        The calibration texts that the best guess was compared with, in words, such as "group 'mail', 2 labels"; None
        if it was compared with all of them.
    picture : str or None
        What `describe` draws of the prediction set, as SVG; None if it was not asked for, or as `description`.
    """

    labels: tuple[str, ...]
    confidence: float
    credibility: float
    significance: str
    size: int | None
    size_bounds: tuple[int, int]
    n_candidates: int
    certain: tuple[str, ...]
    open: tuple[str, ...]
    top: tuple[PlausibleLabelSet, ...]
    description: str | None = None
    n_more_open: int = 0
    decision: Verdict | None = None
    reason: str | None = None
    assign: tuple[str, ...] = ()
    consider: tuple[str, ...] = ()
    unfamiliar: bool = False
    category: str | None = None
    picture: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: lists, strings and numbers."""
        values = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}
        values["top"] = [{"labels": list(each.labels), "p_value": each.p_value} for each in self.top]
        return values


@functools.lru_cache(maxsize=256)
def _as_decimal(level: Fraction) -> str:
    """Write a level exactly: as a decimal number if it is one, else as a fraction.

    Examples
    --------
    >>> _as_decimal(Fraction(1, 20)), _as_decimal(Fraction(1, 3))
    ('0.05', '1/3')
    """
    rest = level.denominator
    places = dict.fromkeys((2, 5), 0)
    for prime in places:
        while rest % prime == 0:
            rest //= prime
            places[prime] += 1
    if rest != 1:
        return str(level)
    digits = max(places.values())
    return f"{Decimal(level.numerator * 10**digits // level.denominator).scaleb(-digits):f}"


def exact_level(significance: Any = None, confidence_level: Any = None) -> str:
    """Return the significance as an exact decimal, from exactly one of the two ways to give it.

    Examples
    --------
    >>> exact_level(confidence_level="0.95")
    '0.05'
    """
    return _as_decimal(as_level(significance, confidence_level, who="predict"))


def _named(labels: Any, name: Callable[[int], str]) -> list[tuple[str, ...]]:
    """Return the names of each row's labels."""
    return [tuple(map(name, row)) for row in label_indices(labels)]


class _Members(NamedTuple):
    """What there is to say of the members of prediction sets.

    certain, still_open : (n, d) bool array or CSR array
    n_more : (n,) int
        Open labels that are not in `still_open`.
    tops : one list of (labels, p-value) per text, the best members
    """

    certain: Any
    still_open: Any
    n_more: IntArray
    tops: list[list[tuple[list[int], float]]]


def _members(sets: PredictionSets, forced: ForcedPredictions, sizes: Any, top: int) -> _Members:
    """Return what there is to say of the members.

    If a set has one member, that is the forced prediction's label-set, with its p-value: nothing is searched.
    """
    is_one, is_more = sizes == 1, sizes > 1
    if is_more.any() or is_sparse(forced.labels):
        certain, still_open, n_more = sets.certain_and_open(_MOST_NAMED)
    else:
        certain, n_more = forced.labels & is_one[:, None], np.zeros(len(sizes), dtype=np.int64)
        still_open = np.zeros_like(certain)
    tops = sets.top_indices(top, np.flatnonzero(is_more).tolist())
    if top > 0:
        alone, credibility = label_indices(forced.labels), forced.credibility.tolist()
        for row in np.flatnonzero(is_one).tolist():
            tops[row] = [(alone[row], credibility[row])]
    return _Members(certain, still_open, n_more, tops)


class _OneText:
    """Answers for one text of dense probabilities, with all that no text changes worked out before.

    The answers are those of the general way, which costs several times as much for a single text. That way is left to
    answer if `answer` returns None.
    """

    def __init__(self, calibration: Calibration, decisions: Decisions | None, work_limit: int) -> None:
        self._calibration = calibration
        self._decisions = decisions
        self._work_limit = work_limit
        self._totals = calibration.totals.tolist()
        self._name = str if calibration.label_names is None else calibration.label_names.__getitem__
        self._at = functools.lru_cache(maxsize=64)(self._cut_at)

    def _cut_at(self, level: Fraction) -> tuple[float, str]:
        """Return the threshold of a level, inf if the general way is to warn or to take all, and how it is written."""
        is_usual = level * (self._calibration.n_texts + 1) > 1
        return self._calibration.threshold(level) if is_usual else math.inf, _as_decimal(level)

    def answer(
        self, probabilities: Any, level: Fraction, known_words: float, *, top: int, describe: bool
    ) -> Answer | None:
        """Return the answer for one text, (1, d)."""
        (threshold, significance), calibration = self._at(level), self._calibration
        if math.isinf(threshold):
            return None
        check_count("k", top, who="top_indices")
        checked = calibration.as_probabilities(probabilities, who="answer_probabilities")
        costs = Costs(*costs_of(calibration.separable, checked), calibration.limits)
        labels, total, second = two_best(costs)
        found = cut(costs, threshold, int(top), self._work_limit, (total, labels))
        if found is None:
            return None
        told = self._description(found, costs, threshold) if describe else None
        if describe and told is None:
            return None
        one = None
        if self._decisions is not None:
            one = self._decisions.decide_one(checked[0], costs, labels, found.size, known_words)
            if one is None:
                return None
        return Answer(
            labels=self._named(labels),
            confidence=1.0 - (0.0 if math.isinf(second) else self._p_value(second)),
            credibility=self._p_value(total),
            significance=significance,
            size=found.size,
            size_bounds=(found.size, found.size),
            n_candidates=calibration.n_candidates,
            certain=self._named(found.certain),
            open=self._named(found.still_open),
            top=tuple(PlausibleLabelSet(self._named(best), self._p_value(at)) for at, best in found.best),
            description=told,
            **_decided(one, self._name),
        )

    def _named(self, labels: list[int]) -> tuple[str, ...]:
        return tuple(map(self._name, labels))

    def _p_value(self, total: float) -> float:
        """Return the p-value of a total."""
        n_texts = len(self._totals)
        return (n_texts - bisect.bisect_left(self._totals, total) + 1) / (n_texts + 1)

    def _description(self, found: Cut, costs: Costs, threshold: float) -> str | None:
        """Return what `PredictionSet.describe` says of a set with few members, None of others."""
        if found.size <= 1:
            names = self._named(found.certain)
            return str(Description(names, (), (), None, names, None, (found.size, found.size), found.size))
        best = best_members(costs, threshold, found.size) if found.size <= _MOST_LISTED else None
        if best is None or len(best) < found.size or found.reachable is None:
            return None
        rows = np.zeros((found.size, self._calibration.n_labels), dtype=np.bool_)
        for row, (_, labels) in zip(rows, best, strict=True):
            row[labels] = True
        return str(describe_members(rows, found.reachable, self._calibration.label_names))


@functools.lru_cache(maxsize=8)
def _one_text(calibration: Calibration, decisions: Decisions | None, work_limit: int) -> _OneText | None:
    """Return what answers for one text of a model, None if only the general way does."""
    measure = calibration.separable_measure
    if type(calibration) is not Calibration or calibration.categories is not None:  # one with weights, or kinds
        return None
    if measure is None or not calibration.is_separable or measure.aggregate == "max":
        return None
    if decisions is not None and not decisions.automation.fits(calibration):
        return None
    return _OneText(calibration, decisions, work_limit)


def _for_one_text(predictor: ConformalLabelSets, probabilities: Any, decisions: Decisions | None) -> _OneText | None:
    """Return what answers for one text, if there is one and the predictor searches in the usual way."""
    is_one = isinstance(probabilities, np.ndarray) and len(probabilities) == 1
    if not is_one or predictor.search != "exact" or not hasattr(predictor, "calibration_"):
        return None
    return _one_text(predictor.calibration_, decisions, predictor.work_limit)


def answer_probabilities(
    predictor: ConformalLabelSets,
    probabilities: Any,
    *,
    significance: Any = None,
    confidence_level: Any = None,
    top: int = 5,
    describe: bool = False,
    picture: bool = False,
    best_guesses: Any = None,
    decisions: Decisions | None = None,
    known_words: Any = None,
    groups: Any = None,
    assurance: Any = None,
) -> list[Answer]:
    """Answer for texts whose label probabilities are known.

    A prediction set is never listed: one with 10^15 members takes as long as any other.

    Parameters
    ----------
    predictor : ConformalLabelSets
        Calibrated.
    probabilities : (n, d) array-like or sparse
        Of sparse ones, no array of all texts and all labels is made, and no list of all labels.
    significance, confidence_level
        As in `ConformalLabelSets.predict_set`: exactly one of the two.
    top : int
        Most plausible label-sets to name for each text.
    describe : bool
        Whether to say each prediction set in a sentence: some milliseconds per text.
    picture : bool
        Whether to draw each prediction set.
    best_guesses : (n, d) bool array or CSR array, optional
        Labels to give as best guesses, by another rule than the highest p-value; see `surelabel.text.Thresholds`.
    decisions : Decisions, optional
        Certificates for these texts' probabilities; without them no answer has a decision.
    known_words : (n,) array-like, optional
        Share of each text's words that the classifier knows, for decisions; None if all words count as known.
    groups, assurance
        As in `ConformalLabelSets.predict_set`.

    Returns
    -------
    list of Answer, one per text

    Examples
    --------
    >>> predictor = ConformalLabelSets(label_names=["grain", "trade", "wheat"])
    >>> probabilities = [[0.9, 0.2, 0.3], [0.1, 0.8, 0.3], [0.7, 0.1, 0.4], [0.2, 0.9, 0.1]]
    >>> predictor = predictor.calibrate(probabilities, [["grain", "wheat"], ["trade"], ["grain"], ["trade"]])
    >>> answer = answer_probabilities(predictor, [[0.8, 0.1, 0.55]], confidence_level=0.75)[0]
    >>> answer.labels, answer.certain, answer.open, answer.size, answer.n_candidates, answer.significance
    (('grain', 'wheat'), ('grain',), ('wheat',), 2, 7, '0.25')
    >>> answer_probabilities(predictor, [[0.8, 0.1, 0.55]], confidence_level=0.75, describe=True)[0].description
    'certain: grain; open: wheat (50 %); 2 label-sets'
    """
    level = as_level(significance, confidence_level, who="answer_probabilities")
    is_plain = best_guesses is None and groups is None and assurance is None and not picture
    if is_plain and (one_text := _for_one_text(predictor, probabilities, decisions)) is not None:
        known = 1.0 if known_words is None else float(known_words[0])
        answer = one_text.answer(probabilities, level, known, top=top, describe=describe)
        if answer is not None:
            return [answer]
    engine = predictor.bind(probabilities, groups=groups, who="answer_probabilities")
    calibration = engine.calibration
    name = str if calibration.label_names is None else calibration.label_names.__getitem__
    forced = predictor.predict(engine)
    sets = predictor.predict_set(engine, significance=level, assurance=assurance)
    categories = engine.names_of(forced.labels) if isinstance(engine, KindsEngine) else [None] * len(engine)
    lower, upper = sets.size_bounds()
    members = _members(sets, forced, upper, top)
    is_told = (describe or picture) and (not is_sparse(forced.labels) or calibration.n_labels <= MOST_DESCRIBED)
    significance, n_candidates = _as_decimal(level), calibration.n_candidates
    bounds_of_sizes = list(zip(lower.tolist(), upper.tolist(), strict=True))
    decided: Sequence[Decision | None] = [None] * len(engine)
    if decisions is not None:
        best = forced.labels if decisions.automation.fits(calibration) else None
        decided = decisions.decide(engine.probabilities, bounds_of_sizes, known_words, best)
    columns = (
        _named(forced.labels if best_guesses is None else best_guesses, name),
        forced.confidence.tolist(),
        forced.credibility.tolist(),
        bounds_of_sizes,
        _named(members.certain, name),
        _named(members.still_open, name),
        members.n_more.tolist(),
        members.tops,
        categories,
        # Only sets of a known size are described.
        [
            sets[row].describe() if is_told and at_least == at_most else None
            for row, (at_least, at_most) in enumerate(bounds_of_sizes)
        ],
        decided,
    )
    answers = [
        Answer(
            labels=labels if one is None or one.labels is None else tuple(map(name, one.labels)),
            confidence=confidence,
            credibility=credibility,
            significance=significance,
            size=bounds[0] if bounds[0] == bounds[1] else None,
            size_bounds=bounds,
            n_candidates=n_candidates,
            certain=certain,
            open=still_open,
            top=tuple(PlausibleLabelSet(tuple(map(name, each)), p_value) for each, p_value in best),
            description=str(told) if describe and told is not None else None,
            n_more_open=n_more,
            category=category,
            picture=told.to_svg() if picture and told is not None else None,
            **_decided(one, name),
        )
        for labels, confidence, credibility, bounds, certain, still_open, n_more, best, category, told, one in zip(
            *columns, strict=True
        )
    ]
    for row, (one, most_plausible) in enumerate(zip(decided, label_indices(forced.labels), strict=True)):
        if one is not None and one.labels is not None and one.labels != most_plausible:
            answers[row] = _with_own_trust(answers[row], engine[row : row + 1], one.labels)
    return answers


def _decided(one: Decision | None, name: Callable[[int], str]) -> dict[str, Any]:
    """Return what a decision adds to an answer."""
    if one is None:
        return {}
    return {
        "decision": one.decision,
        "reason": one.reason,
        "assign": tuple(map(name, one.assign)),
        "consider": tuple(map(name, one.consider)),
        "unfamiliar": one.unfamiliar,
    }


def _with_own_trust(answer: Answer, engine: Engine, labels: list[int]) -> Answer:
    """Return the answer with confidence and credibility of a certified label-set that is not the most plausible one.

    That is so if a predictor compares label-sets by their kind, or has another measure than the certificate.
    """
    p_value = float(engine.p_values_of(engine.as_rows([tuple(labels)]), None)[0])
    return dataclasses.replace(answer, credibility=p_value, confidence=1.0 - answer.credibility)
