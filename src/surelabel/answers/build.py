"""Answers for texts whose label probabilities are known: one search per text, then names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from surelabel._core.validation import FloatArray, aligned_rows, as_fraction, as_groups, as_significance, check_count
from surelabel.answers.answer import Answer, LabelNames
from surelabel.conformal import ConformalLabelSets
from surelabel.guarantees.decisions import FILE, Decision, FilingPolicy, as_indices
from surelabel.guarantees.levels import as_decimal
from surelabel.labels.counting import count_label_sets
from surelabel.search.dense import ranks
from surelabel.sets.prediction_sets import ForcedPredictions, PredictionSets, Texts

# Members that are listed of each set: they answer everything about sets that have no more.
_LISTED = 200
# Texts whose members are listed at once.
_BLOCK = 256


def build_answers(
    predictor: ConformalLabelSets,
    probabilities: Any,
    *,
    policy: FilingPolicy | None = None,
    known_words: Any = None,
    groups: Any = None,
    by_decision: bool = False,
    significance: Any = None,
    confidence_level: Any = None,
    assurance: Any = None,
    top: int = 5,
    best_guesses: Any = None,
    describe: bool = False,
) -> list[Answer]:
    """Return an answer for each text.

    Parameters
    ----------
    predictor : ConformalLabelSets
        Calibrated.
    probabilities : (n, d) array-like, data frame or Shortlists
    policy : FilingPolicy, optional
        Without one no answer has a decision.
    known_words : (n,) array-like, optional
        Share of each text's words that the classifier knows, for the policy; all count as known by default.
    groups : (n,) array-like, optional
        The group of each text, if the predictor was calibrated with groups.
    by_decision : bool
        Whether the predictor was calibrated with `policy.categories`: groups are then derived from the decisions.
    significance, confidence_level, assurance
        As of `ConformalLabelSets.predict_set`. Without a level answers have no prediction set.
    top : int
        Plausible label-sets to name.
    best_guesses : (n, d) bool array or CSR array, optional
        Best guesses by another rule than the highest p-value. Filed texts keep their certified label-set.
    describe : bool
        Whether to describe each prediction set in a sentence; this takes longer for large sets.

    Examples
    --------
    >>> from surelabel import ConformalLabelSets
    >>> predictor = ConformalLabelSets(label_names=["grain", "trade", "wheat"])
    >>> probabilities = [[0.9, 0.2, 0.3], [0.1, 0.8, 0.3], [0.7, 0.1, 0.4], [0.2, 0.9, 0.1]]
    >>> predictor = predictor.calibrate(probabilities, [["grain", "wheat"], ["trade"], ["grain"], ["trade"]])
    >>> answer = build_answers(predictor, [[0.8, 0.1, 0.55]], significance=0.25)[0]
    >>> answer.labels, answer.certain, answer.open, answer.size, answer.n_candidates
    (('grain', 'wheat'), ('grain',), ('wheat',), 2, 7)
    """
    check_count("top", top, "build_answers")
    has_level = significance is not None or confidence_level is not None
    level = as_significance(significance, confidence_level, "build_answers") if has_level else None
    assured = None if assurance is None else as_fraction(assurance, "assurance", "build_answers")
    texts, decisions, is_same = _decide(predictor, probabilities, policy, known_words, groups, by_decision)
    forced = ForcedPredictions.from_texts(texts)
    if policy is not None and not by_decision:
        decisions = policy.decide(probabilities, known_words, guesses=forced if is_same else None)
    # Of the same measure and limits, the policy's best guesses are the forced predictions.
    plausible = (
        [one.labels for one in decisions if one is not None] if is_same else as_indices(forced.members, forced.columns)
    )
    names = texts.calibration.label_names
    known = tuple(map(str, range(texts.calibration.n_labels))) if names is None else names
    sets = _describe_sets(texts, level, assured, top, known, describe) if level is not None else iter([{}] * len(texts))
    answers = []
    for guess, decision, described in zip(
        _guess(texts, forced, plausible, best_guesses, decisions), decisions, sets, strict=True
    ):
        answers.append(
            Answer(
                decision=None if decision is None else decision.decision,
                reason=None if decision is None else decision.reason,
                labels=_name(guess.labels, known),
                consider=() if decision is None else _name(decision.consider, known),
                assign=() if decision is None else _name(decision.assign, known),
                confidence=guess.confidence,
                credibility=guess.credibility,
                **described,
            )
        )
    return answers


def _decide(
    predictor: Any,
    probabilities: Any,
    policy: FilingPolicy | None,
    known_words: Any,
    groups: Any,
    first: bool,
) -> tuple[Texts, Sequence[Decision | None], bool]:
    """Return the texts, costed and sorted, decisions if they come first, and whether both have the same best guesses.

    Decisions come first if groups follow from them.
    """
    if policy is None or not first:
        texts = predictor.texts(probabilities, groups, who="build_answers")
        return texts, [None] * len(texts), policy is not None and policy.guesses_as(predictor)
    if groups is not None:
        groups = aligned_rows(groups, probabilities, "groups", "build_answers")
    own = policy.texts(probabilities)
    decisions: list[Any] = policy.decide(probabilities, known_words, guesses=ForcedPredictions.from_texts(own))
    filed = np.array([decision.decision == FILE for decision in decisions])
    known = policy.categories(filed, groups, predictor.calibration_.groups)
    categories = as_groups(known, len(filed), "build_answers")
    predictor.calibration_.check_groups(categories, "build_answers")
    if not policy.guesses_as(predictor):
        return predictor.texts(probabilities, categories, who="build_answers"), decisions, False
    # The same measure and limits: the texts need no second search.
    return replace(own, calibration=predictor.calibration_, groups=categories), decisions, True


class _Guess(NamedTuple):
    labels: tuple[int, ...]
    confidence: float
    credibility: float


def _guess(
    texts: Texts, forced: ForcedPredictions, plausible: list[tuple[int, ...]], best_guesses: Any, decisions: Any
) -> list[_Guess]:
    """Return each text's best guess: the certified label-set, else that of another rule, else the most plausible one.

    The most plausible label-set is the other one that a best guess unlike it is compared with.
    """
    guesses = list(plausible)
    if best_guesses is not None:
        rows, columns = best_guesses.nonzero()
        order = np.lexsort((columns, rows))
        ends = np.cumsum(np.bincount(rows, minlength=len(texts)))[:-1]
        guesses = [tuple(part.tolist()) for part in np.split(columns[order], ends)]
    for row, decision in enumerate(decisions):
        if decision is not None and decision.decision == FILE:
            guesses[row] = decision.labels
    confidence, credibility = forced.confidence, forced.credibility
    if guesses != plausible:
        is_other = np.array([one != other for one, other in zip(guesses, plausible, strict=True)])
        confidence = np.where(is_other, 1.0 - credibility, confidence)
        credibility = np.where(is_other, _p_values(texts, guesses), credibility)
    return list(map(_Guess, guesses, confidence.tolist(), credibility.tolist()))


def _p_values(texts: Texts, guesses: list[tuple[int, ...]]) -> FloatArray:
    """Return the p-value of one label-set of indices per text, (n,); 0 if it is no candidate."""
    starts = np.cumsum([0, *map(len, guesses)])
    columns = np.array([label for guess in guesses for label in guess], dtype=np.int64)
    shape = (len(guesses), texts.calibration.n_labels)
    rows = csr_array((np.ones(len(columns), dtype=np.bool_), columns, starts), shape=shape)
    totals, sizes, candidates = texts.score(rows, "build_answers")
    return np.where(candidates, texts.calibration.p_values(totals, sizes, texts.groups), 0.0)


def _describe_sets(
    texts: Texts, level: Fraction, assured: Fraction | None, top: int, names: LabelNames, describe: bool
) -> Iterator[dict[str, Any]]:
    """Yield the fields of an answer that describe each text's prediction set."""
    calibration = texts.calibration
    thresholds = calibration.thresholds(level, assured, texts.groups)
    shared = {
        "significance": as_decimal(level),
        "n_candidates": count_label_sets(calibration.n_labels, calibration.min_labels, calibration.max_labels),
    }
    for start in range(0, len(texts), _BLOCK):
        rows = slice(start, start + _BLOCK)
        block = texts if len(texts) <= _BLOCK else texts[rows]
        sets = PredictionSets(block, thresholds[rows])
        tops = _top(sets, top, names)
        certain, possible = sets.status()
        lower, upper = sets.size_bounds()
        bounds = zip(lower.tolist(), upper.tolist(), strict=True)
        labels = as_indices(certain, block.columns), as_indices(possible & ~certain, block.columns)
        for row, (size, in_all, in_some, best) in enumerate(zip(bounds, *labels, tops, strict=True)):
            yield shared | {
                "size": size[0] if size[0] == size[1] else None,
                "size_bounds": size,
                "certain": _name(in_all, names),
                "open": _name(in_some, names),
                "top": best,
                "description": sets[row].describe() if describe else None,
            }


def _top(sets: PredictionSets, top: int, names: LabelNames) -> list[list[tuple[LabelNames, float]]]:
    """List the members of each set once; return the best ones with their p-values."""
    found, p_values = sets.first(max(top, _LISTED))
    kept = ranks(found.rows) < top
    columns = None if sets.texts.columns is None else sets.texts.columns[found.rows[kept]]
    tops: list[list[tuple[LabelNames, float]]] = [[] for _ in range(len(sets))]
    members = as_indices(found.members[kept], columns)
    for row, labels, p_value in zip(found.rows[kept].tolist(), members, p_values[kept].tolist(), strict=True):
        tops[row].append((_name(labels, names), p_value))
    return tops


def _name(labels: tuple[int, ...], names: LabelNames) -> LabelNames:
    """Return labels by name."""
    return tuple(map(names.__getitem__, labels))
