"""Total of the cheapest label-set of rows and its lead over the second, in plain floating point: to rank texts by.

`forced.py` finds the same label-sets with exact totals. Here costs are added once, label by label, which is all that a
threshold on a score needs, at a quarter of the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surelabel._kernels.compiling import part, quick

Array = Any


@part
def guess_row(absent: Array, present: Array, limits: Any, changes: Array, member: Array) -> tuple[float, float]:
    """Return the smallest total of a candidate of one row, and what the second adds: inf if there is no second."""
    n_labels = absent.shape[0]
    total, size = 0.0, 0
    for k in range(n_labels):
        member[k] = present[k] < absent[k]
        size += 1 if member[k] else 0
        total += present[k] if member[k] else absent[k]
        changes[k] = abs(absent[k] - present[k])
    # Bring the number of labels within the limits: a label that was flipped back has a negative change.
    while size < limits[0] or size > limits[1]:
        adds, cheapest = size < limits[0], -1
        for k in range(n_labels):
            if member[k] != adds and (cheapest < 0 or changes[k] < changes[cheapest]):
                cheapest = k
        total += changes[cheapest]
        changes[cheapest] = -changes[cheapest]
        member[cheapest] = adds
        size += 1 if adds else -1
    addition = removal = np.inf
    for k in range(n_labels):
        if member[k]:
            removal = min(removal, changes[k])
        else:
            addition = min(addition, changes[k])
    step = addition + removal
    if size < limits[1]:
        step = min(step, addition)
    if size > limits[0]:
        step = min(step, removal)
    return total, step


@quick(lambda absent, *_: absent.size)
def guess_rows(absent: Array, present: Array, limits: Any, guesses: Array) -> None:
    """Write smallest total and margin of each row to `guesses` (n, 2); costs are (n, d)."""
    n_labels = absent.shape[1]
    changes = np.empty(n_labels)
    member = np.empty(n_labels, dtype=np.uint8)
    for i in range(absent.shape[0]):
        guesses[i, 0], guesses[i, 1] = guess_row(absent[i], present[i], limits, changes, member)
