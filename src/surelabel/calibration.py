"""Calibration: sorted totals of the calibration texts, and what follows from them alone.

p(Y) = (#{i : a_i >= a(Y)} + 1) / (n + 1). The prediction set at significance e is {Y : p(Y) > e}, which is {Y : a(Y) <=
threshold} with the k-th largest a_i as threshold, k = floor(e (n + 1)). k is computed in exact arithmetic.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from surelabel._core.validation import BoolArray, FloatArray, IntArray, as_labels
from surelabel.exceptions import InvalidInputError
from surelabel.labels.constraints import LabelConstraints
from surelabel.labels.counting import count_by_size
from surelabel.labels.sparse import SparseProbabilities, as_any_probabilities, as_sparse_labels, is_sparse
from surelabel.measures import Measure, SeparableMeasure, same_measure, totals_by_costs
from surelabel.measures.compressed import check_sparse_measure, sparse_totals

if TYPE_CHECKING:
    from surelabel.taxonomies.categories import Categories

# What calibrations must have in common to be merged, as messages call it.
_MERGED = {
    "n_labels": "number of labels",
    "label_names": "label names",
    "limits": "limits on the number of labels",
    "constraints": "constraints",
}


def _shortened(value: Any) -> str:
    """Write a value for a message; of many names the beginning."""
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


def totals_of(measure: Measure, probabilities: FloatArray | SparseProbabilities, labels: Any) -> FloatArray:
    """Return the total of one label-set per text, (n,): the one function that all totals come from.

    Totals are correctly rounded, so they do not depend on the order of labels. Labels are sparse if probabilities
    are.
    """
    if isinstance(measure, SeparableMeasure):
        if isinstance(probabilities, SparseProbabilities):
            return sparse_totals(measure, probabilities, labels)
        return totals_by_costs(measure, probabilities, labels)
    return measure.totals(probabilities, labels)


@dataclasses.dataclass(frozen=True, eq=False)
class Calibration:
    """A calibrated measure: immutable, and all that predictions need.

    `totals`, (n,), are ascending. Candidates are the label-sets of min_labels..max_labels labels that obey
    `constraints`; `categories` has the totals by category, if there is a taxonomy.
    """

    measure: Measure
    totals: FloatArray
    n_labels: int
    min_labels: int
    max_labels: int
    label_names: tuple[str, ...] | None
    constraints: LabelConstraints | None = None
    categories: Categories | None = None

    def __post_init__(self) -> None:
        totals = np.sort(self.totals)
        totals.flags.writeable = False
        object.__setattr__(self, "totals", totals)

    def __setstate__(self, state: dict[str, object]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)
        self.totals.flags.writeable = False

    @classmethod
    def merged(cls, parts: Sequence[Calibration]) -> Calibration:
        """Return the calibration by all texts of several: the same as one by all of them at once."""
        if not parts:
            raise InvalidInputError("At least one calibration is needed to merge. Got none.")
        first = parts[0]
        for part in parts[1:]:
            for what, words in _MERGED.items():
                if getattr(part, what) != getattr(first, what):
                    raise InvalidInputError(
                        f"Only calibrations with the same {words} can be merged. Got "
                        f"{_shortened(getattr(first, what))} and {_shortened(getattr(part, what))}."
                    )
            if not same_measure(first.measure, part.measure):
                raise InvalidInputError(
                    f"Only calibrations with the same measure can be merged. Got {first.measure!r} and "
                    f"{part.measure!r}."
                )
        divided = [part.categories for part in parts if part.categories is not None]
        if divided and len(divided) < len(parts):
            raise InvalidInputError("Only calibrations with the same taxonomy can be merged. Got one without.")
        together = type(divided[0]).merged(divided) if divided else None
        return dataclasses.replace(first, totals=np.concatenate([part.totals for part in parts]), categories=together)

    @property
    def n_texts(self) -> int:
        """Number of calibration texts."""
        return len(self.totals)

    @functools.cached_property
    def separable_measure(self) -> SeparableMeasure | None:
        """The measure if it is a separable one. Kept: asking a protocol takes longer than predicting a text."""
        return self.measure if isinstance(self.measure, SeparableMeasure) else None

    @property
    def is_separable(self) -> bool:
        """Whether totals add up label by label and candidates are limited by their number of labels alone."""
        return self.constraints is None and self.separable_measure is not None

    @property
    def separable(self) -> SeparableMeasure:
        """The measure, which must be a separable one: only those have costs."""
        measure = self.separable_measure
        assert measure is not None
        return measure

    @property
    def limits(self) -> tuple[int, int]:
        """Smallest and largest number of labels of a candidate."""
        return self.min_labels, self.max_labels

    @functools.cached_property
    def n_candidates(self) -> int:
        """Number of candidate label-sets, the paper's c(d, l)."""
        return self.count_candidates(self.limits)

    def count_candidates(self, limits: tuple[int, int]) -> int:
        """Return how many label-sets with limits[0]..limits[1] labels obey the constraints."""
        if self.constraints is None:
            return count_by_size(self.n_labels, *limits)
        return sum(self._valid_by_size[limits[0] : limits[1] + 1])

    @functools.cached_property
    def _valid_by_size(self) -> tuple[int, ...]:
        """How many label-sets obey the constraints, by their number of labels."""
        assert self.constraints is not None
        return self.constraints.count_by_size(self.n_labels)

    def as_probabilities(self, values: Any, *, who: str) -> Any:
        """Return probabilities (n, d), dense or sparse, checked against the labels, measure and constraints."""
        self.check_sparse(values, who=who)
        return as_any_probabilities(values, who=who, n_labels=self.n_labels)

    def check_sparse(self, probabilities: Any, *, who: str) -> None:
        """Raise if probabilities are sparse and the measure or the constraints need dense ones."""
        if not is_sparse(probabilities):
            return
        check_sparse_measure(self.measure, who=who)
        if self.constraints is not None:
            raise InvalidInputError(
                f"{who} takes no sparse probabilities where label-sets must obey constraints; give dense ones."
            )

    def as_labels(self, values: Any, probabilities: Any, *, who: str) -> Any:
        """Return the label-sets (n, d) of texts with checked probabilities, checked; sparse if those are."""
        n_texts = len(probabilities)
        if is_sparse(probabilities):
            return as_sparse_labels(values, who=who, shape=(n_texts, self.n_labels), index=self.label_index)
        return as_labels(values, who=who, n_labels=self.n_labels, n_texts=n_texts, label_names=self.label_names)

    @functools.cached_property
    def label_index(self) -> dict[str, int] | None:
        """Column of each label name, None if names are not known."""
        return None if self.label_names is None else {name: k for k, name in enumerate(self.label_names)}

    def is_candidate(self, labels: Any, limits: tuple[int, int] | None = None) -> BoolArray:
        """Tell for each label-set, (n,), whether it is within the limits, its own or others, and obeys constraints."""
        fewest, most = self.limits if limits is None else limits
        sizes = labels.sum(axis=1)
        within = np.asarray((sizes >= fewest) & (sizes <= most))
        return within if self.constraints is None else within & self.constraints.obeyed_by(labels)

    def threshold(self, level: Fraction, assurance: Fraction | None = None) -> float:
        """Return the largest total of a member at this significance; inf if every candidate is one."""
        return threshold_of(self.totals, level, assurance)

    def thresholds(
        self,
        levels: Sequence[Fraction],
        which: IntArray,
        assurance: Fraction | None = None,
        tie_breaks: FloatArray | None = None,
    ) -> FloatArray:
        """Return the largest total of a member for each text, (n,), as `thresholds_of`."""
        if tie_breaks is None:
            return np.array([self.threshold(level, assurance) for level in levels])[which]
        return thresholds_of(self.totals, levels, which, assurance, tie_breaks)

    def p_values(self, totals: FloatArray, tie_breaks: FloatArray | None = None) -> FloatArray:
        """Return p-values of totals of any shape, smoothed if tie-breaks in [0, 1] are given."""
        return p_values_among(self.totals, totals, tie_breaks)


def rank_of(n_texts: int, level: Fraction, assurance: Fraction | None = None) -> int:
    """Return how many calibration texts must be at least as strange as a member: k = floor(e (n + 1)).

    With assurance, a smaller one: the k-th largest total is missed by a share of texts that has a Beta(k, n + 1 - k)
    distribution over calibrations (exactly, unless totals tie; then the share is smaller). The largest k is taken for
    which this share is at most e with the probability asked for: P(Bin(n, e) >= k) >= assurance.
    """
    k = math.floor(level * (n_texts + 1))
    if assurance is None or k == 0:
        return k
    from scipy.special import betainc  # noqa: PLC0415 (only this option needs scipy)

    ranks = np.arange(1, min(k, n_texts) + 1)
    assured = betainc(ranks, n_texts + 1.0 - ranks, float(level)) >= float(assurance)
    return int(np.count_nonzero(assured))


def fewest_assured(level: Fraction, assurance: Fraction) -> int:
    """Return the smallest number of calibration texts that can rule out a candidate with assurance."""
    n = max(1, math.ceil(math.log(1 - assurance) / math.log(1 - level)) - 1)
    while (1 - level) ** n > 1 - assurance:
        n += 1
    return n


def threshold_of(totals: FloatArray, level: Fraction, assurance: Fraction | None = None) -> float:
    """Return the largest total of a member among ascending calibration totals; inf if every candidate is one."""
    k = rank_of(len(totals), level, assurance)
    return math.inf if k == 0 else float(totals[len(totals) - k])


def thresholds_of(
    totals: FloatArray,
    levels: Sequence[Fraction],
    which: IntArray,
    assurance: Fraction | None = None,
    tie_breaks: FloatArray | None = None,
) -> FloatArray:
    """Return the largest total of a member for each text, (n,): text i is cut at levels[which[i]].

    Smoothed if tie-breaks, one per text, are given.
    """
    if tie_breaks is None:
        return np.array([threshold_of(totals, level, assurance) for level in levels])[which]
    thresholds = np.empty(len(which))
    for place, level in enumerate(levels):
        rows = which == place
        thresholds[rows] = smoothed_thresholds_of(totals, level, tie_breaks[rows])
    return thresholds


def smoothed_thresholds_of(totals: FloatArray, level: Fraction, tie_breaks: FloatArray) -> FloatArray:
    """Return the largest total per text whose smoothed p-value is over the level, for one tie-break in [0, 1] per text.

    A smoothed p-value falls with the total: from g + u just below a calibration total with g strictly
    larger ones, over G + u (ties + 1) at it, to G + u above it.
    """
    n = len(totals)
    scaled = float(level * (n + 1))
    if n == 0:
        return np.where(tie_breaks > scaled, np.inf, -np.inf)
    larger = np.maximum(np.floor(scaled - tie_breaks).astype(np.int64) + 1, 0)
    value = totals[np.clip(n - larger, 0, n - 1)]
    ties_from = np.searchsorted(totals, value, side="left")
    ties_to = np.searchsorted(totals, value, side="right")
    at_value = (n - ties_to) + tie_breaks * (ties_to - ties_from + 1) > scaled
    thresholds = np.where(at_value, value, np.nextafter(value, -np.inf))
    thresholds = np.where(larger == 0, np.inf, thresholds)
    return np.asarray(np.where(larger > n, -np.inf, thresholds))


def p_values_among(totals: FloatArray, values: FloatArray, tie_breaks: FloatArray | None = None) -> FloatArray:
    """Return p-values of totals of any shape among ascending calibration totals, smoothed if tie-breaks are given."""
    n = len(totals)
    from_left = np.searchsorted(totals, values, side="left")
    if tie_breaks is None:
        return np.asarray((n - from_left + 1) / (n + 1))
    from_right = np.searchsorted(totals, values, side="right")
    return np.asarray((n - from_right + tie_breaks * (from_right - from_left + 1)) / (n + 1))
