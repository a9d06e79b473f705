"""Which packed label-sets obey constraints."""

from __future__ import annotations

from typing import Any, NamedTuple

from surelabel._kernels.compiling import part
from surelabel._kernels.packed import count_shared, has

Array = Any


class Rules(NamedTuple):
    """What candidates must obey.

    forbidden : (m, 3) int64: label a present together with label b at value 0 or 1
    groups : (g, W) uint64, at_most (g,) int64
    lo, hi : limits on the number of labels
    """

    forbidden: Array
    groups: Array
    at_most: Array
    lo: int
    hi: int


@part
def obeys(rules: Rules, words: Array) -> bool:
    """Tell whether a packed label-set obeys the rules, the limits apart."""
    for i in range(rules.forbidden.shape[0]):
        if has(words, rules.forbidden[i, 0]) and has(words, rules.forbidden[i, 1]) == rules.forbidden[i, 2]:
            return False
    for i in range(rules.groups.shape[0]):
        size = count_shared(words, rules.groups[i])
        if size > rules.at_most[i]:
            return False
    return True
