"""Costs of labels from refined log-odds: those of a text, times a slope or a matrix, plus offsets.

Every row is worked out by the same steps in the same order, however many rows there are: its costs are the same to the
last bit, one row at a time or many.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

Array = Any


@njit(cache=True, nogil=True)
def log_odds_of_row(probabilities: Array, clip: float, out: Array) -> None:
    """Write log(o / (1 - o)) of probabilities (d,), o clipped to [clip, 1 - clip]."""
    for k in range(probabilities.shape[0]):
        clipped = min(max(probabilities[k], clip), 1.0 - clip)
        out[k] = np.log(clipped / (1.0 - clipped))


@njit(cache=True, nogil=True)
def refined_costs(probabilities: Array, clip: float, table: Array, absent: Array, present: Array) -> None:
    """Write the costs (n, d) of labels, log(1 + exp(z)) absent and log(1 + exp(-z)) present.

    table (1 + m, d): row 0 has offsets. With m = 1, row 1 has slopes: z = offset + slope x, x the log-odds of the same
    label. With m = d, row 1 + j says how the log-odds of label j count for each label: z = offset + sum over j. z is
    clipped to what clipped probabilities can have.
    """
    n_texts, n_labels = probabilities.shape
    largest = np.log((1.0 - clip) / clip)
    given, refined = np.empty(n_labels), np.empty(n_labels)
    for i in range(n_texts):
        log_odds_of_row(probabilities[i], clip, given)
        if table.shape[0] == 2:
            for k in range(n_labels):
                refined[k] = table[0, k] + table[1, k] * given[k]
        else:
            refined[:] = table[0]
            for j in range(n_labels):
                times, row = given[j], table[1 + j]
                for k in range(n_labels):
                    refined[k] += row[k] * times
        for k in range(n_labels):
            z = min(max(refined[k], -largest), largest)
            rest = np.log1p(np.exp(-abs(z)))
            absent[i, k] = max(z, 0.0) + rest
            present[i, k] = max(-z, 0.0) + rest
