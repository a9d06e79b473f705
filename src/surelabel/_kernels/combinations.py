"""The paper's two searches: score every label-set of a Hamming ball, or every candidate.

Both visit label-sets one by one and keep those with total <= threshold. They are the description the paper gives and
the oracle that the exact search is held against.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surelabel._kernels.compiling import kernel, part
from surelabel._kernels.exact_sum import N_PARTIALS, total_of_members, total_of_row
from surelabel._kernels.flips import cheapest, price_of_flip
from surelabel._kernels.packed import bit, pack_member

Array = Any


@part
def _next_combination(chosen: Array, size: int, n: int) -> bool:
    """Advance an ascending combination of `size` out of n; False after the last."""
    i = size - 1
    while i >= 0 and chosen[i] == n - size + i:
        i -= 1
    if i < 0:
        return False
    chosen[i] += 1
    for j in range(i + 1, size):
        chosen[j] = chosen[j - 1] + 1
    return True


@part
def _flip(member: Array, chosen: Array, size: int) -> None:
    """Flip the labels of a combination."""
    for j in range(size):
        member[chosen[j]] ^= 1


@kernel
def radius_rows(absent: Array, present: Array, thresholds: Array, maximum: bool, radius: Array, centre: Array) -> None:
    """Algorithm 2, lines 3 to 5: the paper's t, radius (n,), and its z, centre (n, d) uint8, for each row.

    t counts the flips, nearest to 0.5 first, until the total passes the threshold: every label-set within it has
    fewer than t flips. 0 where z itself is over; d + 1 where even all flips are within (the paper's t stops at d
    there, and would lose the complement of z).
    """
    n_labels = absent.shape[1]
    partials = np.empty(N_PARTIALS)
    member = np.empty(n_labels, dtype=np.uint8)
    added = np.empty(n_labels)
    for i in range(absent.shape[0]):
        cheapest(absent[i], present[i], member)
        for k in range(n_labels):
            centre[i, k] = member[k]
            added[k] = price_of_flip(absent[i, k], present[i, k], maximum)
        order = np.argsort(added, kind="mergesort")
        t = 0
        while total_of_row(absent[i], present[i], member, partials, maximum) <= thresholds[i]:
            t += 1
            if t > n_labels:
                break
            member[order[t - 1]] ^= 1
        radius[i] = t


@kernel
def ball_row(
    absent: Array, present: Array, threshold: float, limits: Any, centre: Array, radius: int, words: Array
) -> int:
    """Algorithm 2, lines 6 and 7: score every candidate with fewer than `radius` flips away from the centre.

    Candidates within the threshold go to words (capacity, W); returns how many, written or not. Algorithm 1, which
    scores every candidate, is the ball of those with fewer than hi + 1 flips away from the empty label-set.
    """
    n_labels = absent.shape[0]
    partials = np.empty(N_PARTIALS)
    member = centre.copy()
    found = 0
    for size in range(min(radius, n_labels + 1)):
        chosen = np.arange(size)
        while True:
            _flip(member, chosen, size)
            labels = 0
            for k in range(n_labels):
                labels += member[k]
            if limits[0] <= labels <= limits[1] and (total_of_members(absent, present, member, partials) <= threshold):
                if found < words.shape[0]:
                    pack_member(member, words[found])
                found += 1
            _flip(member, chosen, size)
            if not _next_combination(chosen, size, n_labels):
                break
    return found


@kernel
def fill_combinations(n_labels: int, chosen: Array, state: Array, words: Array) -> int:
    """Write packed label-sets of state[0]..state[1] labels until `words` (capacity, W) is full; return how many.

    chosen (d,) and state (3,) int64 keep the place: state[2] is 0 at the start of a number of labels.
    """
    written = 0
    while written < words.shape[0] and state[0] <= state[1]:
        size = state[0]
        if state[2] == 0:
            for j in range(size):
                chosen[j] = j
            state[2] = 1
        words[written] = 0
        for j in range(size):
            words[written, chosen[j] >> 6] |= bit(chosen[j])
        written += 1
        if not _next_combination(chosen, size, n_labels):
            state[0] += 1
            state[2] = 0
    return written
