"""Numbers of label-sets."""

from __future__ import annotations

import functools
import math


@functools.lru_cache(maxsize=1024)
def count_label_sets(n_labels: int, least: int, most: int) -> int:
    """Return how many label-sets of n_labels labels have least..most labels.

    >>> count_label_sets(20, 1, 7)
    137979
    """
    least, most = max(least, 0), min(most, n_labels)
    if least <= 1 and most == n_labels:
        return int(2**n_labels) - least
    return sum(math.comb(n_labels, c) for c in range(least, most + 1))
