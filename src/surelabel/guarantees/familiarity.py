"""Which texts are unlike any seen: the classifier knows few of their words, or their best guess is very strange.

A classifier answers every text, and is surest when it knows nothing: "", "asdf qwer", emoji or another language often
get one confident label-set. Two figures tell such texts apart, each compared with the calibration texts:

- *known words*: the share of the text's words that the classifier knows;
- *strangeness*: the total of the best guess, which ranks texts as credibility does, with fewer ties.

Let n be the number of calibration texts and k = floor(max_flagged * n). At most k of them are flagged:

1. A text without any word is always flagged, and so is one without a known word, as long as no more than k calibration
   texts have none. The k texts are reduced by all of these.
2. Of the rest, the w = ceil(k / 2)-th lowest share of known words (from 0) is the limit: a lower share is flagged.
3. Of what is left, as many of the strangest as k still allows: a larger total than the next one is flagged.

Limits are values of calibration texts, and only texts past them are flagged. So a new text that is exchangeable with
the calibration texts is flagged with a probability of at most (k + 2) / (n + 1) by steps 2 and 3. Given the limits, the
calibration texts within them are exchangeable with new texts within them: they can certify what is said of such texts.
"""

from __future__ import annotations

import math
import os
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel._core.npz_file import NpzFormat
from surelabel._core.validation import BoolArray, FloatArray, as_share, check_calibrated
from surelabel.exceptions import InvalidInputError
from surelabel.guarantees.files import damaged

FAMILIAR, NO_WORDS, FEW_WORDS, STRANGE = range(4)
"""What `Familiarity.flags` says about a text."""

_FORMAT = NpzFormat("surelabel-familiarity", 1, "a file", ("totals", "known_words"))


class Familiarity:
    """Flag texts that are unlike the calibration texts.

    Parameters
    ----------
    max_flagged : float, str, Decimal or Fraction in (0, 1)
        Largest share of calibration texts that are flagged, texts without words aside.

    Attributes
    ----------
    fewest_known_ : float
        A text with a smaller share of known words is flagged.
    largest_total_ : float
        A text whose best guess has a larger total is flagged.
    flags_unknown_ : bool
        Whether a text without a known word is always flagged.
    share_ : float
        Share of the calibration texts that are flagged.

    Examples
    --------
    >>> familiarity = Familiarity().calibrate(totals=np.linspace(0, 5, 200), known_words=np.linspace(0.7, 1, 200))
    >>> familiarity.flags(totals=[1.0, 1.0, 9.0, 1.0], known_words=[0.9, 0.2, 0.9, np.nan]).tolist()
    [0, 2, 3, 1]
    >>> familiarity.share_
    0.01
    """

    def __init__(self, max_flagged: Any = 0.01) -> None:
        self._max_flagged = as_share(max_flagged, "max_flagged", who=type(self).__name__)

    @property
    def max_flagged(self) -> float:
        """Largest share of calibration texts that are flagged, texts without words aside."""
        return float(self._max_flagged)

    def __repr__(self) -> str:
        shown = f"{type(self).__name__}(max_flagged={self.max_flagged:g})"
        if not hasattr(self, "share_"):
            return shown
        return f"<{shown}: {100 * self.share_:.2g} % of {len(self._totals):,} calibration texts flagged>"

    def calibrate(self, totals: Any, known_words: Any) -> Familiarity:
        """Find the limits; return self.

        `totals`, (n,), are those of calibration texts' best guesses (`ConformalLabelSets.totals`); `known_words`, (n,),
        the shares of their words that the classifier knows (`TextClassifier.known_words`), nan for texts without words.
        """
        strange, known = _checked(totals, known_words, "calibrate")
        if not len(strange):
            raise InvalidInputError("calibrate needs at least one calibration text. Got none.")
        n_allowed = math.floor(self._max_flagged * len(strange))
        has_none, is_unknown = np.isnan(known), known == 0
        self.flags_unknown_ = bool(np.count_nonzero(has_none | is_unknown) <= n_allowed)
        rest = ~(has_none | is_unknown) if self.flags_unknown_ else ~has_none
        n_allowed = max(0, n_allowed - int(np.count_nonzero(~rest)))
        self.fewest_known_ = _limit(known[rest], -(-n_allowed // 2))
        flagged = rest & (known < self.fewest_known_)
        rest &= ~flagged
        self.largest_total_ = -_limit(-strange[rest], n_allowed - int(flagged.sum()))
        self._totals, self._known = strange, known
        self.share_ = float(np.mean(self.flags(strange, known) != FAMILIAR))
        return self

    def add(self, totals: Any, known_words: Any) -> Familiarity:
        """Return a familiarity with the limits of more calibration texts; this one stays as it is."""
        check_calibrated(self, "share_", "add")
        strange, known = _checked(totals, known_words, "add")
        return Familiarity(self._max_flagged).calibrate(
            np.concatenate([self._totals, strange]), np.concatenate([self._known, known])
        )

    def flags(self, totals: Any, known_words: Any) -> npt.NDArray[np.int8]:
        """Tell for each text, (n,), why it is unfamiliar: FAMILIAR, NO_WORDS (or none known), FEW_WORDS or STRANGE."""
        strange, known = _checked(totals, known_words, "flags")
        check_calibrated(self, "largest_total_", "flags")
        flags = np.zeros(len(strange), dtype=np.int8)
        flags[strange > self.largest_total_] = STRANGE
        flags[known < self.fewest_known_] = FEW_WORDS
        flags[np.isnan(known) | (self.flags_unknown_ & (known == 0))] = NO_WORDS
        return flags

    def flag(self, total: float, known_words: float) -> int:
        """Return the flag of one text, as `flags` does."""
        if math.isnan(known_words) or (self.flags_unknown_ and known_words == 0):
            return NO_WORDS
        if known_words < self.fewest_known_:
            return FEW_WORDS
        return STRANGE if total > self.largest_total_ else FAMILIAR

    def within(self, totals: Any, known_words: Any) -> BoolArray:
        """Tell for calibration texts, (n,), whether they are familiar and do not set a limit themselves.

        Given the limits, such texts are exchangeable with new familiar texts.
        """
        strange, known = _checked(totals, known_words, "within")
        is_inside = self.flags(strange, known) == FAMILIAR
        for at_limit in (strange == self.largest_total_, known == self.fewest_known_):
            # Of several texts at a limit none stands out, and none has to be left out.
            if np.count_nonzero(at_limit) == 1:
                is_inside &= ~at_limit
        return np.asarray(is_inside)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the limits, and what they come from, to one file, whole or not at all."""
        check_calibrated(self, "share_", "save")
        # In the order of the totals, so that the file does not say which text has which.
        order = np.lexsort((self._known, self._totals))
        arrays = {"totals": self._totals[order], "known_words": self._known[order]}
        _FORMAT.write(path, {"max_flagged": str(self._max_flagged)}, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Familiarity:
        """Read a file made by `save`; no code from the file is run."""
        header, arrays = _FORMAT.read(path)
        with damaged(path, "Save the familiarity again."):
            if any(array.dtype != np.float64 for array in arrays.values()):
                raise ValueError("its values are not those of familiarity")
            return cls(Fraction(header["max_flagged"])).calibrate(arrays["totals"], arrays["known_words"])


def _limit(values: FloatArray, n_below: int) -> float:
    """Return the value that at most `n_below` values are below; -inf if there are no more values."""
    return float(np.partition(values, n_below)[n_below]) if n_below < len(values) else -math.inf


def _checked(totals: Any, known_words: Any, who: str) -> tuple[FloatArray, FloatArray]:
    """Return the two figures of texts as arrays."""
    strange, known = np.asarray(totals, dtype=np.float64), np.asarray(known_words, dtype=np.float64)
    if strange.ndim != 1 or strange.shape != known.shape:
        raise InvalidInputError(
            f"The 'totals' and 'known_words' parameters of {who} must have one value per text. "
            f"Got shapes {strange.shape} and {known.shape} instead."
        )
    if np.isnan(strange).any() or (known < 0).any() or (known > 1).any():
        raise InvalidInputError(
            f"The 'known_words' parameter of {who} must be shares from 0 to 1 (nan for a text without words), and "
            "'totals' must be numbers. Got others."
        )
    return strange, known
