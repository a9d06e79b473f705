"""Which labels the members of a prediction set have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from surelabel._core.validation import BoolArray, IntArray


class Reach(NamedTuple):
    """Which labels of one text some members have absent, and some present.

    labels : (m,) int64, ascending
        Labels that are told apart: all of them, or those that a sparse text lists.
    reachable : (m, 2) bool
        Column 0: some member has the label absent; column 1: some member has it present.
    others : (bool, bool)
        The same for every other label; (False, False) if there is none.
    """

    labels: IntArray
    reachable: BoolArray
    others: tuple[bool, bool]


def sorted_labels(engine: Any, reaches: Iterable[Reach], most: int | None) -> tuple[Any, Any, IntArray]:
    """Do what `Engine.certain_and_open` says for sparse texts, from which labels members have."""
    certain, still_open, n_more = [], [], []
    for row, (labels, reachable, others) in enumerate(reaches):
        absent, present = reachable[:, 0], reachable[:, 1]
        every, some = labels[present & ~absent], labels[present & absent]
        n_left = engine.n_labels - len(labels) if others[1] else 0
        if n_left and not others[0]:
            every, n_left = _with_unlisted(every, labels, engine.n_labels), 0
        elif n_left and (most is None or n_left + len(some) <= most):
            some, n_left = _with_unlisted(some, labels, engine.n_labels), 0
        elif most is not None and len(some) > most:
            text = engine.probabilities[row : row + 1].labels
            n_left, some = n_left + len(np.setdiff1d(some, text)), np.intersect1d(some, text)
        certain.append(every.tolist())
        still_open.append(some.tolist())
        n_more.append(n_left)
    return engine.as_rows(certain), engine.as_rows(still_open), np.array(n_more, dtype=np.int64)


def _with_unlisted(chosen: IntArray, told_apart: IntArray, n_labels: int) -> IntArray:
    """Return some labels and all that are not told apart, ascending."""
    return np.union1d(chosen, np.setdiff1d(np.arange(n_labels), told_apart))
