"""Calibration: sorted totals of the calibration texts, and the ranks, thresholds and p-values that follow from them.

p(Y) = (#{i : a_i >= a(Y)} + 1) / (n + 1). The prediction set at significance e is {Y : p(Y) > e}, which is {Y : a(Y) <=
threshold} with the k-th largest a_i as threshold, k = floor(e (n + 1)) in exact arithmetic.

A candidate's p-value counts only calibration texts of its *category*, a pair (group, class): texts of the same group
whose true label-set has a similar number of labels. The group is "" and the class 0 where they do not matter. The
classes begin at `edges`: (1, 3) makes the classes 0, 1 to 2, and 3 or more labels.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol, TypeAlias

import numpy as np

from surelabel._core.validation import FloatArray, IntArray, Names, invalid
from surelabel.exceptions import CalibrationWarning, InvalidInputError
from surelabel.labels.constraints import LabelConstraints, Rules

Limits: TypeAlias = tuple[int, int]
_NONE = np.empty(0)


class Taxonomy(Protocol):
    """A division of texts into categories."""

    @property
    def by_group(self) -> bool:
        """Whether texts come with groups."""

    @property
    def edges(self) -> tuple[int, ...]:
        """Numbers of labels at which classes begin, besides 0."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """The calibration of a predictor: immutable.

    `totals` has ascending totals by category. They are in units, `units` of which make 1, and infinite for texts with a
    label that is unknown or not listed. `min_labels` and `max_labels` limit the candidates. `n_outside` counts texts
    whose label-set is no candidate.
    """

    measure: Any
    units: float
    n_labels: int
    min_labels: int
    max_labels: int
    label_names: Names | None
    constraints: LabelConstraints | None
    taxonomy: Taxonomy | None
    totals: Mapping[tuple[str, int], FloatArray]
    n_outside: int = 0

    @functools.cached_property
    def rules(self) -> Rules | None:
        """The constraints with indices for labels; None without constraints."""
        return None if self.constraints is None else self.constraints.rules(self.label_names, self.n_labels)

    @property
    def n_texts(self) -> int:
        """Number of calibration texts."""
        return sum(map(len, self.totals.values()))

    @property
    def share_unlisted(self) -> float:
        """Share of calibration texts with a label that is unknown or not listed."""
        n_infinite = sum(int(np.isinf(totals).sum()) for totals in self.totals.values())
        return n_infinite / max(self.n_texts, 1)

    @property
    def scores(self) -> FloatArray:
        """Totals of all calibration texts, ascending, in the scale of the measure's costs."""
        return np.sort(np.concatenate([_NONE, *self.totals.values()])) / self.units

    @functools.cached_property
    def groups(self) -> list[str]:
        """Groups with calibration texts."""
        return sorted({group for group, _ in self.totals})

    @functools.cached_property
    def edges(self) -> tuple[int, ...]:
        """Numbers of labels at which classes begin, besides 0."""
        return () if self.taxonomy is None else self.taxonomy.edges

    @functools.cached_property
    def classes(self) -> list[tuple[int, Limits]]:
        """The classes that have candidates, with their least and most labels."""
        starts, ends = (0, *self.edges), (*self.edges, self.n_labels + 1)
        limits = [
            (max(self.min_labels, start), min(self.max_labels, end - 1))
            for start, end in zip(starts, ends, strict=True)
        ]
        return [(place, one) for place, one in enumerate(limits) if one[0] <= one[1]]

    def classes_of(self, sizes: IntArray) -> IntArray:
        """Return the class of label-sets with these numbers of labels."""
        return np.searchsorted(np.array(self.edges, dtype=np.int64), sizes, side="right")

    def totals_of(self, group: str, place: int) -> FloatArray:
        """Return the totals of a category, ascending; none if it has no texts."""
        return self.totals.get((group, place), _NONE)

    def with_totals(self, totals: FloatArray, sizes: IntArray, groups: Any, n_outside: int) -> Calibration:
        """Return the calibration by texts with these totals, label-sets of these sizes, and groups, (n,) each."""
        classes = self.classes_of(sizes)
        divided = {
            (group, place): np.sort(totals[(groups == group) & (classes == place)])
            for group, place in sorted(set(zip(groups.tolist(), classes.tolist(), strict=True)))
        }
        return replace(self, totals=divided, n_outside=n_outside)

    @classmethod
    def merged(cls, parts: Sequence[Calibration]) -> Calibration:
        """Return the calibration by the texts of several: the same as one by all of them at once."""
        first = parts[0]
        for part in parts[1:]:
            for name in ("n_labels", "label_names", "min_labels", "max_labels", "constraints", "taxonomy", "measure"):
                one, other = getattr(first, name), getattr(part, name)
                if one != other:
                    got = f"{one!r:.100} and {other!r:.100}"
                    raise InvalidInputError(f"Only calibrations with the same {name} can be merged. Got {got}.")
        keys = sorted({key for part in parts for key in part.totals})
        joined = {key: np.sort(np.concatenate([part.totals_of(*key) for part in parts])) for key in keys}
        return replace(first, totals=joined, n_outside=sum(part.n_outside for part in parts))

    def check_groups(self, groups: Any, who: str) -> None:
        """Raise if a text is of a group without calibration texts."""
        known = self.groups
        unknown = sorted(set(groups.tolist()) - set(known))
        if known and unknown:
            raise invalid("groups", who, f"groups with calibration texts, {known[:5]}", f"{unknown[:5]}")

    def thresholds(self, level: Fraction, assurance: Fraction | None, groups: Any) -> FloatArray:
        """Return the largest total of a member for each text and class, (n, n_classes); inf if all candidates are.

        Columns of classes without candidates are -1.
        """
        thresholds = np.full((len(groups), len(self.edges) + 1), -1.0)
        for group in set(groups.tolist()):
            rows = groups == group
            for place, _ in self.classes:
                thresholds[rows, place] = threshold_of(self.totals_of(group, place), level, assurance)
        return thresholds

    def p_values(self, totals: FloatArray, sizes: Any, groups: Any) -> FloatArray:
        """Return p-values of label-sets, (m,), with these totals and sizes (or one size), of texts of these groups."""
        if not self.edges and len(self.totals) == 1:
            return p_values_among(next(iter(self.totals.values())), totals)
        classes, values = self.classes_of(np.broadcast_to(sizes, len(totals))), np.empty(len(totals))
        for group, place in set(zip(groups.tolist(), classes.tolist(), strict=True)):
            rows = (groups == group) & (classes == place)
            values[rows] = p_values_among(self.totals_of(group, place), totals[rows])
        return values

    def warn_of_few(self, level: Fraction, assurance: Fraction | None, groups: Any, stacklevel: int = 4) -> None:
        """Warn of categories in which no candidate can be excluded at a level."""
        few, infinite = [], []
        for group in sorted(set(groups.tolist())):
            for place, _ in self.classes:
                totals = self.totals_of(group, place)
                rank = rank_of(len(totals), level, assurance)
                words = [f"group {group!r}"] if group else []
                words += [class_name(self.edges, place)] if self.edges else []
                name = f" ({', '.join(words)})" if words else ""
                if rank == 0:
                    few.append(f"{len(totals)}{name}")
                elif rank <= len(totals) and math.isinf(totals[-rank]):
                    infinite.append(f"{np.isinf(totals).mean():.1%}{name}")
        if few:
            assured = "" if assurance is None else f" with assurance {float(assurance):g}"
            warnings.warn(
                f"Too few calibration texts for significance {float(level):g}{assured}: "
                f"{fewest_texts(level, assurance)} are needed, there are {'; '.join(few[:5])}. "
                "Prediction sets hold all candidates there.",
                CalibrationWarning,
                stacklevel=stacklevel,
            )
        if infinite:
            warnings.warn(
                f"The promise cannot be kept at significance {float(level):g}: {'; '.join(infinite[:5])} of the "
                "calibration texts have a label that is unknown or not on their shortlist. Lists are too short for "
                "this level, or the classifier knows too few labels. Prediction sets hold all candidates.",
                CalibrationWarning,
                stacklevel=stacklevel,
            )


def p_values_among(among: FloatArray, totals: FloatArray) -> FloatArray:
    """Return (#{a >= total} + 1) / (n + 1) for ascending `among` (n,)."""
    n_at_least = len(among) - np.searchsorted(among, totals, side="left")
    return np.asarray((n_at_least + 1) / (len(among) + 1))


@functools.lru_cache(maxsize=1024)
def rank_of(n_texts: int, level: Fraction, assurance: Fraction | None = None) -> int:
    """Return how many calibration texts must fit no better than a member: k = floor(e (n + 1)).

    With assurance, the largest k for which P(Bin(n, e) >= k) >= assurance: over calibrations, the k-th largest total is
    exceeded by a share of texts that has a Beta(k, n + 1 - k) distribution, and this share must be at most e.

    >>> rank_of(99, Fraction(1, 20)), rank_of(999, Fraction(1, 20), Fraction(19, 20))
    (5, 39)
    """
    k = math.floor(level * (n_texts + 1))
    if assurance is None or k == 0:
        return k
    from scipy.special import betainc  # noqa: PLC0415 (only this option needs it)

    ranks = np.arange(1, min(k, n_texts) + 1)
    return int(np.count_nonzero(betainc(ranks, n_texts + 1.0 - ranks, float(level)) >= float(assurance)))


def fewest_texts(level: Fraction, assurance: Fraction | None = None) -> int:
    """Return the smallest number of calibration texts that can exclude a candidate at a level."""
    if assurance is None:
        return math.ceil(1 / level) - 1
    n = max(1, math.ceil(math.log(1 - assurance) / math.log1p(-level)) - 1)
    while rank_of(n, level, assurance) == 0:
        n += 1
    return n


def threshold_of(totals: FloatArray, level: Fraction, assurance: Fraction | None = None) -> float:
    """Return the largest total of a member among ascending totals; inf if every candidate is one."""
    k = rank_of(len(totals), level, assurance)
    return math.inf if k == 0 else float(totals[len(totals) - k])


def class_name(edges: Sequence[int], place: int) -> str:
    """Return a class of sizes in words."""
    starts = (0, *edges)
    if place == len(starts) - 1:
        return f"{starts[place]} or more labels"
    last = starts[place + 1] - 1
    return f"{last} label{'' if last == 1 else 's'}" if last == starts[place] else f"{starts[place]} to {last} labels"
