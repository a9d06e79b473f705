"""An answer: what conformal prediction says about one text, by the names of labels."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

from surelabel._core.validation import as_level
from surelabel.calibration import Calibration
from surelabel.guarantees.decisions import Verdict

__all__ = ["Answer", "PlausibleLabelSet", "exact_level"]


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
def as_decimal(level: Fraction) -> str:
    """Write a level exactly: as a decimal number if it is one, else as a fraction.

    Examples
    --------
    >>> as_decimal(Fraction(1, 20)), as_decimal(Fraction(1, 3))
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
    return as_decimal(as_level(significance, confidence_level, who="predict"))


def namer(calibration: Calibration) -> Callable[[int], str]:
    """Return what gives the name of a label, its number if labels have no names."""
    return str if calibration.label_names is None else calibration.label_names.__getitem__
