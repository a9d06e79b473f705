"""What a user reads about one text: the same on the command line, from the service and on the page."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from surelabel._core.validation import FloatArray, as_level, check_count
from surelabel._kernels.one_row import scan_row
from surelabel.calibration import Calibration
from surelabel.conformal import ConformalLabelSets, ForcedPredictions
from surelabel.engines.base import Engine
from surelabel.engines.one_row import CutOne, cutter
from surelabel.engines.sparse import MOST_DESCRIBED
from surelabel.guarantees.decisions import Decision, Decisions, Verdict
from surelabel.labels.label_sets import label_indices
from surelabel.labels.sparse import is_sparse
from surelabel.sets.prediction_set import describe_few
from surelabel.sets.prediction_sets import PredictionSets
from surelabel.taxonomies.engine import KindsEngine

__all__ = ["Answer", "PlausibleLabelSet", "answer_probabilities", "exact_level"]

# Open labels that a text does not list are named if there are no more open labels than this.
_MOST_NAMED = 1_000
# Texts that are answered one by one: that takes less time for so few.
_FEW_TEXTS = 128


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
    credibility : float
        The p-value of the best guess.
    confidence : float
        1 minus the highest p-value of any other label-set.
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

    @property
    def highest_p_value(self) -> float:
        """The credibility of the most plausible label-set: low if the text is unlike the calibration texts."""
        return max(self.credibility, 1.0 - self.confidence)

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
    # Twos and fives in the denominator are fewer than its bits.
    digits = next((k for k in range(level.denominator.bit_length()) if 10**k % level.denominator == 0), None)
    if digits is None:
        return str(level)
    return f"{Decimal(int(level * 10**digits)).scaleb(-digits):f}"


def exact_level(significance: Any = None, confidence_level: Any = None) -> str:
    """Return the significance as an exact decimal, from exactly one of the two ways to give it.

    Examples
    --------
    >>> exact_level(confidence_level="0.95")
    '0.05'
    """
    return _as_decimal(as_level(significance, confidence_level, who="predict"))


class _OneText:
    """Answers for single texts of dense probabilities, with all that no text changes worked out before.

    The answers are those of the general way, which costs several times as much for a single text. That way is left to
    answer if `answer` returns None.
    """

    def __init__(self, calibration: Calibration, cut: CutOne, decisions: Decisions | None, work_limit: int) -> None:
        self._calibration = calibration
        self._cut = cut
        self._decisions = decisions
        self._work_limit = work_limit
        self._n_labels, self._n_candidates = calibration.n_labels, calibration.n_candidates
        name = _namer(calibration)
        # The same label-sets come often.
        self._names = functools.lru_cache(maxsize=4096)(lambda labels: tuple(map(name, labels)))
        self._described = functools.lru_cache(maxsize=4096)(lambda members: describe_few(members, name))
        # Probabilities from which on tags are to be considered, and assigned.
        self._tags = (math.inf, math.inf)
        if decisions is not None:
            bounds = decisions.tag_bounds
            self._tags = min(bounds.consider_threshold_, bounds.assign_threshold_), bounds.assign_threshold_
        self.asked = functools.lru_cache(maxsize=64, typed=True)(self._as_asked)

    def _as_asked(self, significance: Any, confidence_level: Any, top: int) -> tuple[float, str, int] | None:
        """Return threshold, level as it is written, and `top`; None if the general way is to warn or to take all."""
        level = as_level(significance, confidence_level, who="answer_probabilities")
        if level * (self._calibration.n_texts + 1) <= 1:
            return None
        check_count("k", top, who="top_indices")
        return self._calibration.threshold(level), _as_decimal(level), top

    def answer(
        self, probabilities: FloatArray, known_words: float, asked: tuple[float, str, int], describe: bool
    ) -> Answer | None:
        """Return the answer for one text, float64 (1, d), to what `asked` gives."""
        threshold, significance, top = asked
        tags = np.empty(self._n_labels, dtype=np.int64)
        n_considered, n_assigned = scan_row(probabilities, *self._tags, tags)
        cut = None if n_considered < 0 else self._cut(probabilities, threshold, top, self._work_limit)
        if cut is None or (describe and len(cut.best) < cut.size):
            return None
        decided: Any = (None, None, False)
        if self._decisions is not None:
            decided = self._decisions.decide_one(cut, n_considered, known_words)
            if decided is None:
                return None
        names, size, consider = self._names, cut.size, tuple(tags[:n_considered].tolist())
        values = {
            "labels": names(cut.labels),
            "confidence": cut.confidence,
            "credibility": cut.credibility,
            "significance": significance,
            "size": size,
            "size_bounds": (size, size),
            "n_candidates": self._n_candidates,
            "certain": names(cut.certain),
            "open": names(cut.still_open),
            "top": tuple(map(PlausibleLabelSet, map(names, cut.best[:top]), cut.p_values)),
            "description": self._described(tuple(cut.best)) if describe else None,
            "n_more_open": 0,
            "decision": decided[0],
            "reason": decided[1],
            "assign": names(consider[:n_assigned]),
            "consider": names(consider),
            "unfamiliar": decided[2],
            "category": None,
            "picture": None,
        }
        # All fields at once: to set one after the other, as frozen dataclasses do, takes thrice the time.
        answer = object.__new__(Answer)
        object.__setattr__(answer, "__dict__", values)
        return answer


@functools.lru_cache(maxsize=8)
def _one_text(calibration: Calibration, decisions: Decisions | None, work_limit: int) -> _OneText | None:
    """Return what answers for single texts of a model, None if only the general way does."""
    cut = cutter(calibration) if type(calibration) is Calibration else None  # not one with weights
    if cut is None or (decisions is not None and not decisions.automation.fits(calibration)):
        return None
    return _OneText(calibration, cut, decisions, work_limit)


def _one_by_one(
    predictor: ConformalLabelSets,
    probabilities: Any,
    level: tuple[Any, Any],
    known_words: Any,
    top: int,
    describe: bool,
    decisions: Decisions | None,
) -> list[Any]:
    """Return the answers for a few texts at a level, one of significance and confidence level, each on its own.

    None stands for those that the general way is to answer; an empty list if that is all of them.
    """
    is_few = isinstance(probabilities, np.ndarray) and probabilities.ndim == 2 and 0 < len(probabilities) <= _FEW_TEXTS
    is_usual = is_few and predictor.search == "exact" and hasattr(predictor, "calibration_") and isinstance(top, int)
    if not is_usual or not isinstance(level[1] if level[0] is None else level[0], (float, str, Fraction)):
        return []
    calibration = predictor.calibration_
    one = _one_text(calibration, decisions, predictor.work_limit)
    asked = None if one is None else one.asked(*level, top)
    if one is None or asked is None:
        return []
    # The values of a single text are checked by `answer`.
    is_fit = probabilities.shape == (1, calibration.n_labels) and probabilities.dtype == np.float64
    if not is_fit or type(probabilities) is not np.ndarray or not probabilities.flags.c_contiguous:
        probabilities = calibration.as_probabilities(probabilities, who="answer_probabilities")
    known = [1.0] * len(probabilities) if known_words is None else np.asarray(known_words, dtype=np.float64).tolist()
    if is_fit:
        return [one.answer(probabilities, known[0], asked, describe)]
    return [one.answer(probabilities[row : row + 1], known[row], asked, describe) for row in range(len(known))]


def _namer(calibration: Calibration) -> Callable[[int], str]:
    """Return what gives the name of a label, its number if labels have no names."""
    return str if calibration.label_names is None else calibration.label_names.__getitem__


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
    quick = []
    if best_guesses is None and groups is None and assurance is None and not picture:
        at = (significance, confidence_level)
        quick = _one_by_one(predictor, probabilities, at, known_words, top, describe, decisions)
        if quick and all(quick):
            return quick
    if any(quick):
        rest = [row for row, answer in enumerate(quick) if answer is None]
        probabilities = probabilities[rest]
        known_words = None if known_words is None else np.asarray(known_words)[rest]
    level = as_level(significance, confidence_level, who="answer_probabilities")
    engine = predictor.bind(probabilities, groups=groups, who="answer_probabilities")
    calibration = engine.calibration
    forced = predictor.predict(engine)
    sets = predictor.predict_set(engine, significance=level, assurance=assurance)
    lower, upper = sets.size_bounds()
    sizes = list(zip(lower.tolist(), upper.tolist(), strict=True))
    decided: Sequence[Decision | None] = [None] * len(engine)
    if decisions is not None:
        best = forced.labels if decisions.automation.fits(calibration) else None
        decided = decisions.decide(engine.probabilities, sizes, known_words, best)
    is_described = (describe or picture) and (not is_sparse(forced.labels) or calibration.n_labels <= MOST_DESCRIBED)
    guesses = _guesses(engine, forced, best_guesses, decided)
    members = _members(sets, forced, upper, top)
    significance, name = _as_decimal(level), _namer(calibration)
    answers = []
    for row, (guess, bounds, one) in enumerate(zip(guesses, sizes, decided, strict=True)):
        is_exact = bounds[0] == bounds[1]
        # Only sets of a known size are described.
        description = sets[row].describe() if is_described and is_exact else None
        answers.append(
            Answer(
                labels=tuple(map(name, guess.labels)),
                confidence=guess.confidence,
                credibility=guess.credibility,
                significance=significance,
                size=bounds[0] if is_exact else None,
                size_bounds=bounds,
                n_candidates=calibration.n_candidates,
                certain=tuple(map(name, members.certain[row])),
                open=tuple(map(name, members.still_open[row])),
                top=tuple(PlausibleLabelSet(tuple(map(name, best)), p_value) for best, p_value in members.tops[row]),
                description=str(description) if describe and description is not None else None,
                n_more_open=members.n_more[row],
                category=guess.category,
                picture=description.to_svg() if picture and description is not None else None,
                **_decided(one, name),
            )
        )
    following = iter(answers)
    return [answer or next(following) for answer in quick] if quick else answers


class _Guess(NamedTuple):
    """A best guess, its confidence and credibility, and the category that it was compared in."""

    labels: list[int]
    confidence: float
    credibility: float
    category: str | None


def _guesses(
    engine: Engine, forced: ForcedPredictions, best_guesses: Any, decided: Sequence[Decision | None]
) -> list[_Guess]:
    """Return each text's best guess: what is filed, else what another rule gives, else the most plausible label-set.

    The most plausible label-set is the other one that is compared with a best guess that is not it.
    """
    most_plausible = label_indices(forced.labels)
    guesses = label_indices(forced.labels if best_guesses is None else best_guesses)
    guesses = [
        guess if one is None or one.labels is None else one.labels for guess, one in zip(guesses, decided, strict=True)
    ]
    confidence, credibility = forced.confidence, forced.credibility
    rows = engine.as_rows([tuple(guess) for guess in guesses])
    if guesses != most_plausible:
        is_other = np.array([one != other for one, other in zip(guesses, most_plausible, strict=True)])
        confidence = np.where(is_other, 1.0 - credibility, confidence)
        credibility = np.where(is_other, engine.p_values_of(rows, None), credibility)
    categories = engine.names_of(rows) if isinstance(engine, KindsEngine) else [None] * len(guesses)
    return list(map(_Guess, guesses, confidence.tolist(), credibility.tolist(), categories))


class _Members(NamedTuple):
    """For each text: certain labels, open labels, how many more are open, and the best members with their p-values."""

    certain: list[list[int]]
    still_open: list[list[int]]
    n_more: list[int]
    tops: list[list[tuple[list[int], float]]]


def _members(sets: PredictionSets, forced: ForcedPredictions, sizes: Any, top: int) -> _Members:
    """Return what there is to say of the members.

    If a set has one member, that is the forced prediction's label-set, with its p-value: nothing is searched.
    """
    alone, one, more = label_indices(forced.labels), sizes == 1, sizes > 1
    if more.any() or is_sparse(forced.labels):
        certain, still_open, n_more = sets.certain_and_open(_MOST_NAMED)
        sorted_labels = label_indices(certain), label_indices(still_open), n_more.tolist()
    else:
        certain_of_one = [labels if is_one else [] for labels, is_one in zip(alone, one.tolist(), strict=True)]
        sorted_labels = certain_of_one, [[] for _ in alone], [0] * len(alone)
    tops = sets.top_indices(top, np.flatnonzero(more).tolist())
    for row in np.flatnonzero(one).tolist() if top > 0 else ():
        tops[row] = [(alone[row], float(forced.credibility[row]))]
    return _Members(*sorted_labels, tops)


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
