"""Penalties of packed label-sets, and scores with them: one order of adding up, for calibration and searches alike."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from surelabel._kernels.compiling import inlined, kernel, part
from surelabel._kernels.packed import count_bits, count_shared, find, has

Array = Any


class Penalties(NamedTuple):
    """What is added to scores, all >= 0.

    seen : (K, W) uint64, label-sets seen in training, ascending; their penalties are `of_seen` (K,). They are scored
        directly, all others have the penalty `unseen`, plus `hamming` a label away from the nearest seen one.
    of_size : (d + 1,) penalty of a number of labels; from_size (d + 2,) the least of it and of larger candidates'
        numbers
    apart : (d, W) uint64, labels never seen with label k; empty where pairs cost nothing; `pair` a pair
    """

    seen: Array
    of_seen: Array
    unseen: float
    hamming: float
    of_size: Array
    from_size: Array
    apart: Array
    pair: float


@inlined
def score(total: float, power: float) -> float:
    """Return total^(1 / power)."""
    total = max(total, 0.0)
    if power == 1.0:
        return total
    if power == 2.0:
        return np.sqrt(total)
    return total ** (1.0 / power)


@part
def nearest(seen: Array, words: Array) -> tuple[int, int]:
    """Return the distance to the nearest seen label-set, and the least that adding labels can bring it to."""
    distance = 64 * words.shape[0]
    superfluous = distance
    for i in range(seen.shape[0]):
        away = 0
        more = 0
        for w in range(words.shape[0]):
            away += count_bits(words[w] ^ seen[i, w])
            more += count_bits(words[w] & ~seen[i, w])
        distance = min(distance, away)
        superfluous = min(superfluous, more)
    return distance, superfluous


@part
def count_apart(apart: Array, words: Array) -> int:
    """Return the number of pairs of a packed label-set that were never seen together."""
    twice = 0
    for label in range(apart.shape[0]):
        if has(words, label):
            twice += count_shared(words, apart[label])
    return twice >> 1


@part
def penalty_of_unseen(penalties: Penalties, words: Array, size: int) -> float:
    """Return the penalty of a label-set that was not seen in training, always added up in this order."""
    penalty = 0.0
    if penalties.hamming > 0.0:
        penalty += penalties.hamming * nearest(penalties.seen, words)[0]
    penalty += penalties.of_size[size]
    if penalties.apart.shape[0] > 0:
        penalty += penalties.pair * count_apart(penalties.apart, words)
    return penalty + penalties.unseen


@kernel
def penalties_of_words(penalties: Penalties, words: Array, out: Array) -> None:
    """Penalties of packed label-sets (m, W), seen or not: out (m,) is written."""
    for i in range(words.shape[0]):
        place = find(penalties.seen, words[i])
        if place >= 0:
            out[i] = penalties.of_seen[place]
        else:
            size = np.int64(0)
            for w in range(words.shape[1]):
                size += count_bits(words[i, w])
            out[i] = penalty_of_unseen(penalties, words[i], size)


@kernel
def scores_of_totals(totals: Array, power: float, penalties: Array, out: Array) -> None:
    """Add penalties to scores, (m,) each: the one way in which that is done."""
    for i in range(totals.shape[0]):
        out[i] = score(totals[i], power) + penalties[i]
