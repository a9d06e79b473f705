"""Find a short description of a prediction set.

Open labels, those that some members have and some have not, are put in order of how likely they are, and the order is
cut into groups. Every group has the smallest and largest number of its labels that a member has. Cuts are chosen for
the shortest description: bits that the groups leave open, plus one for each label that is named, and a little for each
statement. Only the last group, of the rarest labels, may go unnamed, for the price of one name.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from surelabel._core.validation import BoolArray, FloatArray
from surelabel.labels.counting import binomials
from surelabel.sets.descriptions.description import Description, LabelGroup, LabelShare

IntArray: TypeAlias = npt.NDArray[np.intp]
Shares: TypeAlias = Callable[[Sequence[int]], Sequence[tuple[float, float]]]
# Labels in one group that is named in full; a last group of more is "83 others".
_MOST_NAMED = 8
_MOST_NAMED_LAST = 4
# What a statement costs, in bits: enough to prefer one to two that leave as much open.
_STATEMENT_PRICE = 0.1
# Steps that counting the label-sets that fit a description may take.
_MAX_STEPS = 1_000_000


class Members:
    """Facts of a prediction set that is listed: 0/1 rows (m, d), m >= 1, the best first."""

    def __init__(self, rows: BoolArray) -> None:
        self._rows = rows

    def order(self, labels: IntArray) -> IntArray:
        """Return labels, those that most members have first; of equal ones those of the best member first."""
        counts = self._rows[:, labels].sum(axis=0)
        return labels[np.lexsort((~self._rows[0, labels], -counts))]

    def span(self, labels: IntArray) -> tuple[int, int]:
        """Return the fewest and the most of these labels that a member has."""
        counts = self._rows[:, labels].sum(axis=1)
        return int(counts.min()), int(counts.max())

    def most_changes(self, best: BoolArray) -> int:
        """Return in how many labels a member differs from `best` at most."""
        return int((self._rows != best).sum(axis=1).max())


class Budget:
    """Facts of a prediction set that is too large to list: costs (d,) whose sum is at most a threshold.

    The cheapest way to have so many labels of a group is the sum of that many cheapest of the group and the cheapest
    choice of the rest. The threshold is widened by more than sums can be off by rounding: statements stay true.
    """

    def __init__(self, absent: FloatArray, present: FloatArray, threshold: float, limits: tuple[int, int]) -> None:
        self._extra = present - absent
        self._limits = limits
        largest = float(np.maximum(absent, present).sum())
        rounding = 8.0 * len(absent) * np.finfo(np.float64).eps * largest
        self._room = threshold - float(absent.sum()) + rounding

    def order(self, labels: IntArray) -> IntArray:
        """Order by what a label costs more present than absent."""
        return labels[np.argsort(self._extra[labels], kind="stable")]

    def span(self, labels: IntArray) -> tuple[int, int]:
        """Find the numbers of labels for which the cheapest label-set is within the threshold."""
        inside = np.zeros(len(self._extra), dtype=np.bool_)
        inside[labels] = True
        group, rest = _sums(self._extra[inside]), _sums(self._extra[~inside])
        taken = np.arange(len(group))
        fewest = np.maximum(self._limits[0] - taken, 0)
        most = np.minimum(self._limits[1] - taken, len(rest) - 1)
        cheapest = np.clip(int(np.argmin(rest)), fewest, np.maximum(most, fewest))
        possible = fewest <= most
        possible &= group + rest[np.minimum(cheapest, len(rest) - 1)] <= self._room
        within = np.flatnonzero(possible)
        return int(within[0]), int(within[-1])

    def most_changes(self, best: BoolArray) -> int:
        """Find the numbers of additions and removals for which the cheapest are within the threshold."""
        added = _sums(self._extra[~best])[:, None]
        removed = _sums(-self._extra[best])[None, :]
        n_added, n_removed = np.arange(len(added))[:, None], np.arange(removed.shape[1])[None, :]
        sizes = int(best.sum()) + n_added - n_removed
        total = float(self._extra[best].sum()) + added + removed
        within = (total <= self._room) & (sizes >= self._limits[0]) & (sizes <= self._limits[1])
        return int((n_added + n_removed)[within].max())


# What must be known of a prediction set, with at least one member, to describe it.
Facts: TypeAlias = Members | Budget


def _sums(values: FloatArray) -> FloatArray:
    """Return the sums of the 0, 1, 2, ... smallest values."""
    return np.concatenate([[0.0], np.cumsum(np.sort(values))])


def _bits(size: int, span: tuple[int, int]) -> float:
    """Return the logarithm of the number of ways to take span[0]..span[1] of `size` labels."""
    return math.log2(sum(binomials(size)[span[0] : span[1] + 1]))


def _last_words(size: int) -> int:
    """Return how many names the last group takes: its own if they are few, else "others"."""
    return size if size <= _MOST_NAMED_LAST else 1


def _cut(facts: Facts, ordered: IntArray, first_last: int, n_named: int) -> list[tuple[slice, tuple[int, int]]]:
    """Cut ordered labels into groups, for the shortest description; return (labels, span) of each.

    `first_last` is the first place where the last, unnamed group may start: labels that most members have are named.
    `n_named` is the last such place.
    """
    total = len(ordered)
    named = min(n_named, total)
    spans: dict[tuple[int, int], tuple[int, int]] = {}

    def price(start: int, stop: int, words: int) -> float:
        spans[start, stop] = (0, 1) if stop - start == 1 else facts.span(ordered[start:stop])
        return _bits(stop - start, spans[start, stop]) + words + _STATEMENT_PRICE

    best = [0.0] + [math.inf] * named
    before = [0] * (named + 1)
    for stop in range(1, named + 1):
        for start in range(max(0, stop - _MOST_NAMED), stop):
            cost = best[start] + price(start, stop, stop - start)
            if cost < best[stop]:
                best[stop], before[stop] = cost, start
    ends = range(min(first_last, named), named + 1)
    costs = [best[end] + (price(end, total, _last_words(total - end)) if end < total else 0.0) for end in ends]
    end = ends[int(np.argmin(costs))]
    cuts = [total] if end < total else []
    while end > 0:
        cuts.append(end)
        end = before[end]
    cuts = [0, *reversed(cuts)]
    return [(slice(a, b), spans[a, b]) for a, b in itertools.pairwise(cuts)]


# A group as a count sees it: labels within and outside the best guess, and the span.
_Group = tuple[int, int, int, int]


def _count_fitting(groups: Sequence[_Group], sizes: tuple[int, int] | None, changes: int | None) -> int | None:
    """Count the choices that keep to every group's span, to numbers of labels and to a number of changes.

    None if that takes too many steps.
    """
    counts: dict[tuple[int, int], int] = {(0, 0): 1}
    steps = 0
    for inside, outside, least, most in groups:
        ways: dict[tuple[int, int], int] = {}
        for removed in range(inside + 1):
            for added in range(max(0, least - inside + removed), min(outside, most - inside + removed) + 1):
                key = (0 if sizes is None else inside - removed + added, 0 if changes is None else removed + added)
                ways[key] = ways.get(key, 0) + binomials(inside)[removed] * binomials(outside)[added]
        steps += len(counts) * len(ways)
        if steps > _MAX_STEPS:
            return None
        following: dict[tuple[int, int], int] = {}
        for (size, changed), count in counts.items():
            for (more, further), many in ways.items():
                key = (size + more, changed + further)
                if (sizes is None or key[0] <= sizes[1]) and (changes is None or key[1] <= changes):
                    following[key] = following.get(key, 0) + count * many
        counts = following
    return sum(count for (size, _), count in counts.items() if sizes is None or size >= sizes[0])


def _needed(
    groups: Sequence[_Group], sizes: tuple[int, int], changes: int
) -> tuple[tuple[int, int] | None, int | None, int | None]:
    """Leave out the limits on sizes and changes if they say nothing new; return what stays and the count."""
    tightest = _count_fitting(groups, sizes, changes)
    if tightest is None:
        return sizes, changes, None
    for kept in ((None, None), (sizes, None), (None, changes)):
        if _count_fitting(groups, *kept) == tightest:
            return (*kept, tightest)
    return sizes, changes, tightest


def build_description(
    facts: Facts | None,
    reachable: BoolArray,
    best: BoolArray,
    size_bounds: tuple[int, int],
    *,
    shares: Shares,
    names: tuple[str, ...] | None,
    n_named: int = 24,
) -> Description:
    """Describe a prediction set; without facts an empty one.

    reachable (d, 2) tells whether some member has a label absent, and present; best (d,) is the best member. `shares`
    gives bounds of the share of members that have each of some labels; up to `n_named` open labels may be named.
    """

    def of(labels: Any) -> tuple[Any, ...]:
        indices = [int(k) for k in labels]
        return tuple(indices if names is None else (names[k] for k in indices))

    excluded = of(np.flatnonzero(~reachable[:, 1]))
    if facts is None:
        return Description((), excluded, (), None, (), None, size_bounds, 0)
    certain = np.flatnonzero(reachable[:, 1] & ~reachable[:, 0])
    open_labels = facts.order(np.flatnonzero(reachable.all(axis=1)))
    share_of: dict[int, tuple[float, float]] = {}

    def look_up(labels: Sequence[int]) -> None:
        if new := [k for k in labels if k not in share_of]:
            share_of.update(zip(new, shares(new), strict=True))

    look_up(open_labels[best[open_labels]][:n_named].tolist())
    likely = [i for i, k in enumerate(open_labels.tolist()) if k in share_of and sum(share_of[k]) >= 1.0]
    pieces = _cut(facts, open_labels, likely[-1] + 1 if likely else 0, n_named)
    groups, counted = [], []
    for where, (least, most) in pieces:
        labels = open_labels[where]
        inside = int(best[labels].sum())
        counted.append((inside, len(labels) - inside, least, most))
        unnamed = where.stop == len(open_labels) and len(labels) > (_MOST_NAMED if inside else _MOST_NAMED_LAST)
        shown = [] if unnamed else labels.tolist()
        look_up(shown)
        named = tuple(LabelShare(label, *share_of[k]) for label, k in zip(of(shown), shown, strict=True))
        groups.append(LabelGroup(of(labels), named, least, most))
    least, most = facts.span(open_labels) if len(open_labels) else (0, 0)
    sizes, changes, n_fitting = _needed(counted, (least, most), facts.most_changes(best))
    if n_fitting is not None:
        # The members are among what fits, so there are no more of them.
        size_bounds = size_bounds[0], max(size_bounds[0], min(size_bounds[1], n_fitting))
    return Description(
        certain=of(certain),
        excluded=excluded,
        groups=tuple(groups),
        n_labels_bounds=None if sizes is None else (sizes[0] + len(certain), sizes[1] + len(certain)),
        best_guess=of(np.flatnonzero(best)),
        most_changes=changes,
        size_bounds=size_bounds,
        n_fitting=n_fitting,
    )
