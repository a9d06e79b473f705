"""Label-sets packed into words of 64 bits, label 0 the highest: see `surelabel._core.packing`."""

from __future__ import annotations

from typing import Any

import numpy as np

from surelabel._kernels.compiling import inlined, kernel

Array = Any


@inlined
def count_bits(word: Any) -> Any:
    """Return how many bits of a word are set."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    word = word + (word >> np.uint64(8))
    word = word + (word >> np.uint64(16))
    word = word + (word >> np.uint64(32))
    return np.int64(word & np.uint64(0x7F))


@inlined
def bit(label: int) -> Any:
    """Return the bit of a label in its word: label 0 is the highest."""
    return np.uint64(1) << np.uint64(63 - (label & 63))


@inlined
def pack_member(member: Array, words: Array) -> None:
    """Write a 0/1 row (d,) packed into words (W,)."""
    for w in range(words.shape[0]):
        words[w] = 0
    for k in range(member.shape[0]):
        if member[k]:
            words[k >> 6] |= bit(k)


@inlined
def has(words: Array, label: int) -> Any:
    """Return 1 where a packed label-set has a label, else 0."""
    return np.int64((words[label >> 6] >> np.uint64(63 - (label & 63))) & np.uint64(1))


@inlined
def count_shared(words: Array, others: Array) -> int:
    """Return how many labels two packed label-sets share."""
    shared = 0
    for w in range(words.shape[0]):
        shared += count_bits(words[w] & others[w])
    return shared


@kernel
def find(seen: Array, words: Array) -> int:
    """Return the place of a packed label-set in ascending ones, -1 where it is none of them."""
    low, high = 0, seen.shape[0]
    while low < high:
        middle = (low + high) >> 1
        smaller = False
        for w in range(words.shape[0]):
            if seen[middle, w] != words[w]:
                smaller = seen[middle, w] < words[w]
                break
        if smaller:
            low = middle + 1
        else:
            high = middle
    if low < seen.shape[0]:
        for w in range(words.shape[0]):
            if seen[low, w] != words[w]:
                return -1
        return low
    return -1
