"""Novelty: texts unlike any calibration text, because the classifier knows few of their words or nothing fits them.

A classifier answers every text, and is surest when it knows nothing: "", "asdf qwer", emoji or another language often
get one confident label-set. Two figures tell such texts apart, each compared with the calibration texts:

- *known words*: the share of the text's words that the classifier knows;
- *score*: that of the best guess, which is high if no label-set fits.

Let n be the number of calibration texts and k = floor(max_flagged * n). At most k of them are flagged:

1. A text without words is always flagged. A text without a known word is flagged too, unless more than k calibration
   texts are like it. Both count towards k.
2. Of the rest, the limit is the w-th lowest share of known words (from 0), w = ceil(k / 2): a lower share is flagged.
3. Of what is left, the highest scores are flagged, as many as k still allows.

Limits are values of calibration texts, and only texts past them are flagged. So steps 2 and 3 flag a new text that is
exchangeable with the calibration texts with a probability of at most (k + 2) / (n + 1). Given the limits, the
calibration texts strictly within them are exchangeable with new texts within them: those can certify what is filed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel._core.validation import BoolArray, FloatArray, as_fraction, invalid
from surelabel.exceptions import InvalidInputError, NotCalibratedError
from surelabel.guarantees.levels import from_file

FAMILIAR, NO_WORDS, FEW_WORDS, UNUSUAL = range(4)
"""The flags of texts."""

_LIMITS = ("fewest_known_", "largest_score_", "share_")


class Novelty:
    """Flag texts that are unlike the calibration texts.

    Parameters
    ----------
    max_flagged : float, str, Decimal or Fraction in (0, 1)
        Largest share of calibration texts that are flagged, texts without words aside.

    Attributes
    ----------
    fewest_known_ : float
        A text with a smaller share of known words is flagged.
    largest_score_ : float
        A text whose best guess has a larger score is flagged.
    flags_unknown_ : bool
        Whether a text without a known word is always flagged.
    share_ : float
        Share of the calibration texts that are flagged.

    Examples
    --------
    >>> novelty = Novelty().calibrate(scores=np.linspace(0, 5, 200), known_words=np.linspace(0.7, 1, 200))
    >>> novelty.flags(scores=[1.0, 1.0, 9.0, 1.0], known_words=[0.9, 0.2, 0.9, np.nan]).tolist()
    [0, 2, 3, 1]
    """

    fewest_known_: float
    largest_score_: float
    share_: float
    flags_unknown_: bool

    def __init__(self, max_flagged: Any = "0.01") -> None:
        self._max_flagged = as_fraction(max_flagged, "max_flagged", "Novelty")

    @property
    def max_flagged(self) -> float:
        """Largest share of calibration texts that are flagged, texts without words aside."""
        return float(self._max_flagged)

    def __repr__(self) -> str:
        return f"Novelty(max_flagged={self.max_flagged:g})"

    def calibrate(self, scores: Any, known_words: Any) -> Novelty:
        """Find the limits; return self.

        `scores`, (n,), are those of the best guesses of calibration texts; `known_words`, (n,), the shares of their
        words that the classifier knows, nan for texts without words.
        """
        values, known = _as_figures(scores, known_words, "calibrate")
        if not len(values):
            raise InvalidInputError("Novelty.calibrate needs at least one calibration text. Got none.")
        n_allowed = math.floor(self._max_flagged * len(values))
        has_none, is_unknown = np.isnan(known), known == 0
        self.flags_unknown_ = bool(np.count_nonzero(has_none | is_unknown) <= n_allowed)
        rest = ~(has_none | is_unknown) if self.flags_unknown_ else ~has_none
        n_allowed = max(0, n_allowed - int(np.count_nonzero(~rest)))
        self.fewest_known_ = _limit(known[rest], -(-n_allowed // 2))
        flagged = rest & (known < self.fewest_known_)
        rest &= ~flagged
        self.largest_score_ = -_limit(-values[rest], n_allowed - int(flagged.sum()))
        self.share_ = float(np.mean(self.flags(values, known) != FAMILIAR))
        return self

    def flags(self, scores: Any, known_words: Any) -> npt.NDArray[np.int8]:
        """Return why each text is novel, (n,): FAMILIAR, NO_WORDS (or none known), FEW_WORDS or UNUSUAL."""
        if not hasattr(self, "largest_score_"):
            raise NotCalibratedError("This Novelty is not calibrated. Call 'calibrate' before 'flags'.")
        values, known = _as_figures(scores, known_words, "flags")
        flags = np.zeros(len(values), dtype=np.int8)
        flags[values > self.largest_score_] = UNUSUAL
        flags[known < self.fewest_known_] = FEW_WORDS
        flags[np.isnan(known) | (self.flags_unknown_ & (known == 0))] = NO_WORDS
        return flags

    def can_certify(self, scores: Any, known_words: Any) -> BoolArray:
        """Return which calibration texts, (n,), are familiar and do not set a limit themselves.

        Given the limits, such texts are exchangeable with new familiar texts.
        """
        values, known = _as_figures(scores, known_words, "can_certify")
        inside = self.flags(values, known) == FAMILIAR
        for at_limit in (values == self.largest_score_, known == self.fewest_known_):
            # Of several texts at a limit none stands out, so none has to be left out.
            if np.count_nonzero(at_limit) == 1:
                inside &= ~at_limit
        return np.asarray(inside)

    def to_dict(self) -> dict[str, Any]:
        """Return the limits as plain values; infinite ones as strings."""
        limits = {name: repr(float(getattr(self, name))) for name in _LIMITS}
        return {"max_flagged": str(self._max_flagged), "flags_unknown_": self.flags_unknown_, **limits}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Novelty:
        """Return the inverse of `to_dict`; raise ValueError, KeyError or TypeError for anything else."""
        novelty = cls(from_file(values["max_flagged"]))
        for name in _LIMITS:
            limit = float(values[name])
            if math.isnan(limit):
                raise ValueError(f"{name} is not a number")
            setattr(novelty, name, limit)
        if not 0.0 <= novelty.share_ <= 1.0 or not isinstance(values["flags_unknown_"], bool):
            raise ValueError("these are not the limits of a Novelty")
        novelty.flags_unknown_ = values["flags_unknown_"]
        return novelty


def _limit(values: FloatArray, n_below: int) -> float:
    """Return the value that at most `n_below` values are below; -inf if there are no more values."""
    return float(np.partition(values, n_below)[n_below]) if n_below < len(values) else -math.inf


def _as_figures(scores: Any, known_words: Any, who: str) -> tuple[FloatArray, FloatArray]:
    """Return scores and shares of known words as arrays."""
    values, known = np.asarray(scores, dtype=np.float64), np.asarray(known_words, dtype=np.float64)
    if values.ndim != 1 or values.shape != known.shape:
        got = f"shapes {values.shape} and {known.shape}"
        raise invalid("known_words", who, "one value per text, as are the scores", got)
    if np.isnan(values).any() or (known < 0).any() or (known > 1).any():
        raise invalid("known_words", who, "shares from 0 to 1 (nan for a text without words)", "others")
    return values, known
