"""Best candidates and prediction sets of a few texts with few steps in Python: what a service answers most often.

The kernels are those of the engines. The best few candidates are taken, members or not. If one of them is not a member,
those before it are the whole prediction set, and all that is asked for follows from them.
"""

from __future__ import annotations

import bisect
import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from surelabel._core.packing import n_words
from surelabel._core.validation import FloatArray
from surelabel._kernels import best_first, forced, walk
from surelabel._kernels import mixture as listing
from surelabel._kernels.one_row import cut_rows, scan_row
from surelabel.calibration import Calibration
from surelabel.engines.base import Scored
from surelabel.engines.dense import FIRST_STEPS
from surelabel.engines.mixture import MixtureEngine, best_first_key
from surelabel.engines.sizes import Bounds
from surelabel.measures import costs_of
from surelabel.measures.mixture import Mixture

# Candidates that are taken at first, members that are all listed, and members that can be named.
_FIRST, _MOST_LISTED, _MOST_NAMED = 9, 64, 100
_FIRST_ROW = np.zeros(1, dtype=np.int64)


Costs: TypeAlias = tuple[FloatArray, FloatArray]
"""Costs of texts, absent and present, (n, d) each."""


class Cut(NamedTuple):
    """The best candidate of one text, and its prediction set.

    Attributes
    ----------
    labels : tuple of int
        The best candidate.
    credibility, confidence : float
        Its p-value, and 1 minus that of the second best, 0 if there is none.
    size : int
    certain, still_open : tuple of int
        Labels that all members have, and labels that some have.
    best, p_values : tuple of tuple of int, list of float
        Labels and p-values of the best members: all of them if they are few, else as many as were asked for; p-values
        of some other candidates may follow.
    costs, row : Costs or None, int
        Costs of the texts that were cut together, and which of them this is; None if totals are not sums of costs.
    guess : (float, float)
        Total of the best candidate and what the second adds, as `Automation.totals` has them.
    considered : tuple of int
        Labels whose probability is at least the first threshold of tags, most probable first.
    n_assigned : int
        How many of them reach the second.
    """

    labels: tuple[int, ...]
    credibility: float
    confidence: float
    size: int
    certain: tuple[int, ...]
    still_open: tuple[int, ...]
    best: tuple[tuple[int, ...], ...]
    p_values: list[float]
    costs: Costs | None
    row: int
    guess: tuple[float, float]
    considered: tuple[int, ...]
    n_assigned: int

    @property
    def own_costs(self) -> Costs:
        """Costs of the text, (1, d) each; totals must be sums of them."""
        assert self.costs is not None
        absent, present = self.costs
        return absent[self.row : self.row + 1], present[self.row : self.row + 1]


CutTexts: TypeAlias = Callable[[FloatArray, float, int, int], list[Cut | None]]
"""Cuts texts: probabilities (n, d), threshold, members to name, work limit.

None stands for a text that an engine has to cut; for all of them if a probability is not within [0, 1].
"""


def cutter(calibration: Calibration, tags: tuple[float, float]) -> CutTexts | None:
    """Return what cuts a few texts of a calibration; None if only an engine can.

    tags: the probabilities from which on labels are considered, and assigned.
    """
    measure = calibration.separable_measure
    if calibration.constraints is not None or calibration.categories is not None:
        return None
    if measure is not None and measure.aggregate == "sum":
        return _SumsCutter(calibration, tags)
    if type(calibration.measure) is Mixture and calibration.measure.hubs is None and calibration.measure.weight > 0.0:
        return _MixtureCutter(calibration, tags)
    return None


class _SumsCutter:
    """Cuts texts whose totals are sums."""

    def __init__(self, calibration: Calibration, tags: tuple[float, float]) -> None:
        self._calibration, self._measure, self._limits = calibration, calibration.separable, calibration.limits
        self._totals, self._n_words, self._tags = calibration.totals, n_words(calibration.n_labels), tags

    def __call__(self, probabilities: FloatArray, threshold: float, n_best: int, work_limit: int) -> list[Cut | None]:
        """Cut those texts whose members can be counted quickly."""
        n_texts, n_labels = probabilities.shape
        if n_best > _MOST_NAMED:
            return [None] * n_texts
        costs, number = costs_of(self._measure, probabilities), max(n_best, _FIRST) + 1
        room = 2 + 2 * number + 16
        counts, values = np.empty((n_texts, 4 + n_labels), dtype=np.int64), np.empty((n_texts, room))
        words = np.empty((n_texts, room, self._n_words), dtype=np.uint64)
        asked = self._totals, threshold, self._limits, number
        cut_rows(probabilities, self._tags, costs, *asked, counts, words, values)
        cuts: list[Cut | None] = []
        for row, (n_considered, n_assigned, n_taken, size) in enumerate(counts[:, :4].tolist()):
            if n_considered < 0:
                return [None] * n_texts
            total, margin, *p_values = values[row, : 2 + max(n_taken, 0)].tolist()
            if n_taken < (1 if margin == math.inf else 2):
                cuts.append(None)
                continue
            certain, still_open, best = _unpacked(words[row, : 2 + (size or 1)].tobytes(), self._n_words)
            cut = Cut(
                best[0],
                p_values[0],
                1.0 - (p_values[1] if n_taken > 1 else 0.0),
                size,
                certain,
                still_open,
                best if size else (),
                p_values,
                costs,
                row,
                (total, margin),
                tuple(counts[row, 4 : 4 + n_considered].tolist()),
                n_assigned,
            )
            cuts.append(cut if size < number else self._with_all(cut, threshold, n_best, work_limit))
        return cuts

    def _with_all(self, cut: Cut, threshold: float, n_best: int, work_limit: int) -> Cut | None:
        """Count all members of a text that has more than were taken; None if that takes many steps."""
        costs = cut.own_costs
        size = count(costs, self._limits, threshold, work_limit)
        if size < 0:
            return None
        at = np.array([threshold])
        if size > _MOST_LISTED:
            certain, still_open = _reach(costs, self._limits, at)
            return cut._replace(size=size, certain=certain, still_open=still_open, best=cut.best[:n_best])
        listed = _take(costs, self._limits, at, size)
        if listed is None:
            return None
        best = tuple([labels for _, labels in listed])
        certain, still_open = _sorted_labels(best)
        p_values = self._calibration.p_values(np.array([total for total, _ in listed])).tolist()
        return cut._replace(size=size, certain=certain, still_open=still_open, best=best, p_values=p_values)


def _take(costs: Costs, limits: Bounds, threshold: FloatArray, number: int) -> list[Scored] | None:
    """Return the best candidates within a threshold (1,), at most so many; None if too many are tied with the last."""
    absent, present = costs
    capacity = 2 * number + 16
    words, totals = np.empty((capacity, n_words(absent.shape[1])), dtype=np.uint64), np.empty(capacity)
    ends = np.empty(1, dtype=np.int64)
    if best_first.take_rows(absent, present, threshold, limits, number, words, totals, ends):
        return None
    taken, most = ends[0], threshold[0]
    ranked = sorted(zip(totals[:taken].tolist(), words[:taken].tolist(), strict=True))[:number]
    return [(total, _labels_of(*packed)) for total, packed in ranked if total <= most]


_NO_THRESHOLD = np.array([math.inf])


def count(costs: Costs, limits: Bounds, threshold: float, work_limit: int) -> int:
    """Return the number of members of sums; -1 if counting them takes too many steps to begin with."""
    sizes, work = np.empty((2, 1), dtype=np.int64)
    limit = min(work_limit, FIRST_STEPS)
    walk.count_rows(*costs, np.array([threshold]), limits, limit, sizes, work)
    return int(sizes[0])


def _reach(costs: Costs, limits: Bounds, threshold: FloatArray) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the labels that all members of sums have, and those that some have."""
    reachable = np.empty((1, costs[0].shape[1], 2), dtype=np.bool_)
    forced.reachable_rows(*costs, threshold, limits, reachable)
    absent, present = reachable[0, :, 0], reachable[0, :, 1]
    return tuple(np.flatnonzero(present > absent).tolist()), tuple(np.flatnonzero(present & absent).tolist())


def _sorted_labels(members: Sequence[tuple[int, ...]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the labels that all members have, and those that some have."""
    if len(members) < 2:
        return members[0] if members else (), ()
    sets = [set(labels) for labels in members]
    certain = set.intersection(*sets)
    return tuple(sorted(certain)), tuple(sorted(set.union(*sets) - certain))


class _MixtureCutter:
    """Cuts texts of a mixture one by one: the best few of the independent part, and the list to check (design 2.5)."""

    def __init__(self, calibration: Calibration, tags: tuple[float, float]) -> None:
        assert isinstance(calibration.measure, Mixture)
        self._tags = tags
        self._measure, self._limits, self._totals = calibration.measure, calibration.limits, calibration.totals.tolist()
        engine = MixtureEngine(calibration, np.zeros((1, calibration.n_labels)))
        self._listing, self._candidates, self._settings = engine._kernel_arguments()
        self._shifted = functools.lru_cache(maxsize=64)(self._shifted_to)

    def _shifted_to(self, threshold: float) -> FloatArray:
        """Return the threshold of the independent part, (1,)."""
        return self._measure.shifted(np.array([threshold]))

    def __call__(self, probabilities: FloatArray, threshold: float, n_best: int, work_limit: int) -> list[Cut | None]:
        """Cut those texts whose members are few."""
        n_texts, tags = len(probabilities), np.empty(probabilities.shape[1], dtype=np.int64)
        scanned: list[tuple[FloatArray, tuple[int, ...], int]] = []
        for start in range(n_texts):
            row = probabilities[start : start + 1]
            n_considered, n_assigned = scan_row(row, self._tags, tags)
            if n_considered < 0:
                return [None] * n_texts
            scanned.append((row, tuple(tags[:n_considered].tolist()), n_assigned))
        return [self._cut(*one, threshold, n_best) for one in scanned]

    def _cut(
        self, probabilities: FloatArray, considered: tuple[int, ...], n_assigned: int, threshold: float, n_best: int
    ) -> Cut | None:
        """Cut a text, (1, d), with these labels to consider, if its members are few."""
        costs = costs_of(self._measure.independent, probabilities)
        texts = self._measure.texts_of_costs(*costs)
        shifted = self._shifted(threshold)
        listed = self._listed(texts, threshold, shifted[0])
        if listed is None or n_best > _MOST_NAMED:
            return None
        number = max(n_best, _FIRST) + _FIRST
        taken = _take(costs, self._limits, shifted, number)
        if taken is not None and len(taken) == number:
            number = 2 * _MOST_NAMED
            taken = _take(costs, self._limits, shifted, number)
        if taken is None or len(taken) == number:
            return None
        members = listed + self._unlisted(taken)
        members.sort(key=best_first_key)
        two = members if len(members) > 1 else self._two_best(texts, costs)
        if two is None:
            return None
        best, second = two[0][0], two[1][0] if len(two) > 1 else math.inf
        labels_of_members = tuple([tuple(labels) for _, labels in members])
        p_values = [self._p_value(total) for total, _ in members]
        return Cut(
            tuple(two[0][1]),
            p_values[0] if p_values else self._p_value(best),
            1.0 - (0.0 if second == math.inf else self._p_value(second)),
            len(members),
            *_sorted_labels(labels_of_members),
            labels_of_members,
            p_values,
            None,
            0,
            (best, second - best),
            considered,
            n_assigned,
        )

    def _p_value(self, total: float) -> float:
        """Return the p-value of a total."""
        n_texts = len(self._totals)
        return (n_texts - bisect.bisect_left(self._totals, total) + 1) / (n_texts + 1)

    def _unlisted(self, taken: list[Scored]) -> list[Scored]:
        """Return those candidates of the independent part that are not listed, with their totals."""
        shift, node_of = self._settings.shift, self._measure.node_of
        return [(total + shift, labels) for total, labels in taken if node_of(labels) < 0]

    def _listed(self, texts: Any, threshold: float, shifted: float) -> list[Scored] | None:
        """Return the listed members; None if they are not few."""
        bounds = np.array([[threshold, shifted]])
        arguments = self._listing, self._candidates, self._settings
        flags = listing.listed_members(texts, _FIRST_ROW, bounds, *arguments).flags
        nodes = (flags & listing.MEMBER).nonzero()[0]
        if not 0 < len(nodes) <= _MOST_LISTED:
            return None if len(nodes) else []
        rows = np.zeros(len(nodes), dtype=np.int64)
        _, totals = listing.totals_of_nodes(texts, rows, nodes, self._listing, self._settings)
        return [(total, self._labels(node)) for total, node in zip(totals.tolist(), nodes.tolist(), strict=True)]

    def _two_best(self, texts: Any, costs: Costs) -> list[Scored] | None:
        """Return the best candidate and the total of the second; None if that takes a longer search."""
        number = 2 * _FIRST
        taken = _take(costs, self._limits, _NO_THRESHOLD, number)
        if taken is None:
            return None
        unlisted = sorted(self._unlisted(taken), key=best_first_key)
        # A label-set that was not taken may have the total of the last one that was.
        last = taken[-1][0] + self._settings.shift if len(taken) == number else math.inf
        if last < math.inf and (len(unlisted) < 2 or unlisted[1][0] >= last):
            return None
        arguments = self._listing, self._candidates, self._settings
        nodes, totals = listing.best_listed(texts, 1, *arguments)
        first, second = totals[0].tolist()
        listed = [] if nodes[0] < 0 else [(first, self._labels(nodes[0]))]
        best = sorted([*listed, *unlisted], key=best_first_key)[:2]
        # The labels of the second are not asked for.
        return best if second == math.inf else sorted([*best, (second, ())], key=operator.itemgetter(0))[:2]

    def _labels(self, node: int) -> tuple[int, ...]:
        """Return the labels of a node."""
        starts = self._listing.starts
        return tuple(self._listing.labels[starts[node] : starts[node + 1]].tolist())


@functools.lru_cache(maxsize=4096)
def _unpacked(packed: bytes, n_words: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[tuple[int, ...], ...]]:
    """Return what `cut_rows` writes to the words of a text: certain labels, open ones, candidates; the same come often.

    Examples
    --------
    >>> _unpacked(np.array([0, 2**63 + 2**61, 2**63, 2**61], dtype=np.uint64).tobytes(), 1)
    ((), (0, 2), ((0,), (2,)))
    """
    rows = np.frombuffer(packed, dtype=np.uint64).reshape(-1, n_words).tolist()
    certain, still_open, *candidates = [_labels_of(*row) for row in rows]
    return certain, still_open, tuple(candidates)


@functools.lru_cache(maxsize=4096)
def _labels_of(*words: int) -> tuple[int, ...]:
    """Return the ascending labels of a packed label-set; the same ones come often.

    Examples
    --------
    >>> _labels_of(2**63 + 2**61, 1)
    (0, 2, 127)
    """
    labels = []
    for place, word in enumerate(words):
        rest = word
        while rest:
            bit = rest.bit_length() - 1
            labels.append(64 * place + 63 - bit)
            rest -= 1 << bit
    return tuple(labels)
