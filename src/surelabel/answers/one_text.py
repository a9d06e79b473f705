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
from surelabel.engines.one_row import Cut, CutTexts, cutter
from surelabel.guarantees.decisions import Decisions
from surelabel.sets.prediction_set import describe_few

# Texts that are answered one by one: that takes less time for so few.
_FEW_TEXTS = 128


class _FewTexts:
    """Answers for a few texts of dense probabilities, with all that no text changes worked out before.

    The answers are those of the general way, which costs several times as much for so few texts.
    """

    def __init__(self, calibration: Calibration, cut: CutTexts, decisions: Decisions | None, work_limit: int) -> None:
        self._calibration = calibration
        self._cut = cut
        self._decisions = decisions
        self._work_limit = work_limit
        self._n_candidates = calibration.n_candidates
        name = namer(calibration)
        # The same label-sets come often, and so do the same prediction sets.
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

    def answers(
        self, probabilities: FloatArray, known_words: list[float], asked: tuple[float, str, int], describe: bool
    ) -> list[Answer | None]:
        """Return the answers for texts, float64 (n, d), to what `asked` gives; None for those of the general way."""
        threshold, significance, top = asked
        cuts = self._cut(probabilities, threshold, top, self._work_limit)
        return [
            None if cut is None else self._answer(cut, known, significance, top, describe)
            for cut, known in zip(cuts, known_words, strict=True)
        ]

    def _answer(self, cut: Cut, known_words: float, significance: str, top: int, describe: bool) -> Answer | None:
        """Return the answer for a text that was cut; None if that is left to the general way."""
        names, size, best = self._names, cut.size, cut.best
        if describe and len(best) < size:
            return None
        decided: Any = (None, None, False)
        if self._decisions is not None:
            decided = self._decisions.decide_one(cut, known_words)
            if decided is None:
                return None
        consider = names(cut.considered)
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
            "top": tuple(map(PlausibleLabelSet, map(names, best[:top]), cut.p_values)),
            "description": self._described(best) if describe else None,
            "n_more_open": 0,
            "decision": decided[0],
            "reason": decided[1],
            "assign": consider[: cut.n_assigned],
            "consider": consider,
            "unfamiliar": decided[2],
            "category": None,
            "picture": None,
        }
        # All fields at once: to set one after the other, as frozen dataclasses do, takes thrice the time.
        answer = object.__new__(Answer)
        object.__setattr__(answer, "__dict__", values)
        return answer


@functools.lru_cache(maxsize=8)
def _few_texts(calibration: Calibration, decisions: Decisions | None, work_limit: int) -> _FewTexts | None:
    """Return what answers for a few texts of a model, None if only the general way does."""
    tags = (math.inf, math.inf)
    if decisions is not None:
        bounds = decisions.tag_bounds
        tags = min(bounds.consider_threshold_, bounds.assign_threshold_), bounds.assign_threshold_
    cut = cutter(calibration, tags) if type(calibration) is Calibration else None  # not one with weights
    if cut is None or (decisions is not None and not decisions.automation.fits(calibration)):
        return None
    return _FewTexts(calibration, cut, decisions, work_limit)


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
    few = _few_texts(calibration, decisions, predictor.work_limit)
    asked = None if few is None else few.asked(*level, top)
    if few is None or asked is None:
        return []
    # The values of a single text are checked where it is cut.
    is_fit = probabilities.shape == (1, calibration.n_labels) and probabilities.dtype == np.float64
    if not is_fit or type(probabilities) is not np.ndarray or not probabilities.flags.c_contiguous:
        probabilities = calibration.as_probabilities(probabilities, who="answer_probabilities")
    known = [1.0] * len(probabilities) if known_words is None else np.asarray(known_words, dtype=np.float64).tolist()
    return few.answers(probabilities, known, asked, describe)
