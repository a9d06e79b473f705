"""Answers for a few texts, each on its own: what a service gives most often, in a fraction of the time."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any

import numpy as np

from surelabel._core.validation import FloatArray, as_level, check_count
from surelabel.answers.answer import Answer, PlausibleLabelSet, as_decimal, namer
from surelabel.calibration import Calibration
from surelabel.conformal import ConformalLabelSets
from surelabel.engines.one_row import CutOne, cutter
from surelabel.guarantees.decisions import Decisions
from surelabel.sets.prediction_set import describe_few

# Texts that are answered one by one: that takes less time for so few.
_FEW_TEXTS = 128


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
        self._n_candidates = calibration.n_candidates
        name = namer(calibration)
        # The same label-sets come often.
        self._names = functools.lru_cache(maxsize=4096)(lambda labels: tuple(map(name, labels)))
        self._described = functools.lru_cache(maxsize=4096)(lambda members: describe_few(members, name))
        self.asked = functools.lru_cache(maxsize=64, typed=True)(self._as_asked)

    def _as_asked(self, significance: Any, confidence_level: Any, top: int) -> tuple[float, str, int] | None:
        """Return threshold, level as it is written, and `top`; None if the general way is to warn or to take all."""
        level = as_level(significance, confidence_level, who="answer_probabilities")
        if level * (self._calibration.n_texts + 1) <= 1:
            return None
        check_count("k", top, who="top_indices")
        return self._calibration.threshold(level), as_decimal(level), top

    def answer(
        self, probabilities: FloatArray, known_words: float, asked: tuple[float, str, int], describe: bool
    ) -> Answer | None:
        """Return the answer for one text, float64 (1, d), to what `asked` gives."""
        threshold, significance, top = asked
        cut = self._cut(probabilities, threshold, top, self._work_limit)
        if cut is None or (describe and len(cut.best) < cut.size):
            return None
        decided: Any = (None, None, False)
        if self._decisions is not None:
            decided = self._decisions.decide_one(cut, known_words)
            if decided is None:
                return None
        names, size = self._names, cut.size
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
            "assign": names(cut.considered[: cut.n_assigned]),
            "consider": names(cut.considered),
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
    tags = (math.inf, math.inf)
    if decisions is not None:
        bounds = decisions.tag_bounds
        tags = min(bounds.consider_threshold_, bounds.assign_threshold_), bounds.assign_threshold_
    cut = cutter(calibration, tags) if type(calibration) is Calibration else None  # not one with weights
    if cut is None or (decisions is not None and not decisions.automation.fits(calibration)):
        return None
    return _OneText(calibration, cut, decisions, work_limit)


def one_by_one(
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
