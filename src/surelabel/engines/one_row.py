"""One text's prediction set with as few steps in Python as there can be: what a service answers most often.

The kernels are those of `DenseEngine`; a call with one row through its general ways takes ten times as long as they do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surelabel._core.packing import n_words
from surelabel._core.validation import BoolArray, FloatArray
from surelabel._kernels import best_first, forced, walk
from surelabel.engines.dense import FIRST_STEPS
from surelabel.engines.sizes import Bounds

# More of the best members than this are asked of the engine.
_MOST_BEST = 100


class Costs(NamedTuple):
    """Costs of one text, absent and present, (1, d) each, and the limits on the number of labels."""

    absent: FloatArray
    present: FloatArray
    limits: Bounds


class Cut(NamedTuple):
    """The prediction set of one text.

    Attributes
    ----------
    size : int
    certain, still_open : list of int
        Labels that all members have, and labels that some have.
    best : list of (float, list of int)
        Totals and labels of the best members.
    reachable : (d, 2) bool or None
        Whether some member has a label absent, and present; None if there are fewer than two members.
    """

    size: int
    certain: list[int]
    still_open: list[int]
    best: list[tuple[float, list[int]]]
    reachable: BoolArray | None = None


def two_best(costs: Costs) -> tuple[list[int], float, float]:
    """Return the labels of the best candidate, its total, and that of the second best, inf if there is none."""
    labels, totals = np.empty(costs.absent.shape, dtype=np.uint8), np.empty((1, 2))
    forced.forced_rows(*costs, labels, totals)
    best, second = totals[0].tolist()
    return np.flatnonzero(labels).tolist(), best, second


def count(costs: Costs, threshold: float, work_limit: int) -> int:
    """Return the number of members; -1 if counting them takes too many steps to begin with."""
    sizes, work = np.empty((2, 1), dtype=np.int64)
    walk.count_rows(
        costs.absent,
        costs.present,
        np.array([threshold]),
        costs.limits,
        min(work_limit, FIRST_STEPS),
        sizes,
        work,
    )
    return int(sizes[0])


def cut(costs: Costs, threshold: float, n_best: int, work_limit: int, best: tuple[float, list[int]]) -> Cut | None:
    """Return the prediction set of one text at a finite threshold.

    Parameters
    ----------
    costs : Costs
        They add up: not of a measure that takes the maximum.
    threshold : float
    n_best : int
        Members to name.
    work_limit : int
    best : float and list of int
        Total and labels of the best candidate.

    Returns
    -------
    Cut, or None if an engine has to find it
    """
    size = count(costs, threshold, work_limit)
    if size < 0 or n_best > _MOST_BEST:
        return None
    if size == 0:
        return Cut(0, [], [], [])
    if size == 1:
        return Cut(1, best[1], [], [best] if n_best else [])
    members = best_members(costs, threshold, n_best)
    if members is None:
        return None
    thresholds, reachable = np.array([threshold]), np.empty((1, costs.absent.shape[1], 2), dtype=np.bool_)
    forced.reachable_rows(costs.absent, costs.present, thresholds, costs.limits, reachable)
    absent, present = reachable[0, :, 0], reachable[0, :, 1]
    certain, still_open = np.flatnonzero(present > absent).tolist(), np.flatnonzero(present & absent).tolist()
    return Cut(size, certain, still_open, members, reachable[0])


def best_members(costs: Costs, threshold: float, number: int) -> list[tuple[float, list[int]]] | None:
    """Return totals and labels of the best members; None if too many are tied with the last."""
    if number == 0:
        return []
    capacity, n_labels = 2 * number + 16, costs.absent.shape[1]
    words, totals = np.empty((capacity, n_words(n_labels)), dtype=np.uint64), np.empty(capacity)
    ends = np.empty(1, dtype=np.int64)
    thresholds = np.array([threshold])
    if best_first.take_rows(costs.absent, costs.present, thresholds, costs.limits, number, words, totals, ends):
        return None
    taken = ends[0]
    ranked = sorted(zip(totals[:taken].tolist(), words[:taken].tolist(), strict=True))
    return [(total, _labels_of(packed)) for total, packed in ranked[:number] if total <= threshold]


def _labels_of(words: list[int]) -> list[int]:
    """Return the ascending labels of a packed label-set.

    Examples
    --------
    >>> _labels_of([2**63 + 2**61, 1])
    [0, 2, 127]
    """
    labels = []
    for place, word in enumerate(words):
        rest = word
        while rest:
            bit = rest.bit_length() - 1
            labels.append(64 * place + 63 - bit)
            rest -= 1 << bit
    return labels
