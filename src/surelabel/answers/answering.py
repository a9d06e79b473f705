"""Answers for texts whose label probabilities are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from surelabel._core.validation import as_level
from surelabel.answers.answer import Answer, PlausibleLabelSet, as_decimal, namer
from surelabel.answers.one_text import one_by_one
from surelabel.conformal import ConformalLabelSets, ForcedPredictions
from surelabel.engines.base import Engine
from surelabel.engines.sparse import MOST_DESCRIBED
from surelabel.guarantees.decisions import Decision, Decisions
from surelabel.labels.label_sets import label_indices
from surelabel.labels.sparse import is_sparse
from surelabel.sets.prediction_sets import PredictionSets
from surelabel.taxonomies.engine import KindsEngine

# Open labels that a text does not list are named if there are no more open labels than this.
_MOST_NAMED = 1_000


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
        quick = one_by_one(predictor, probabilities, at, known_words, top, describe, decisions)
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
    significance, name = as_decimal(level), namer(calibration)
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
