"""The two cheapest label-sets where a total is the maximum of the label costs instead of their sum.

At a given total every label is free, held at one value, or impossible on its own, so the candidates within it are
counted by binomials. The sum's searches serve for listing: with costs replaced by 0 (within) and 1 (over), the
threshold is 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surelabel._kernels.compiling import kernel, part
from surelabel._kernels.exact_sum import row_starts

Array = Any


@part
def _has_two(absent: Array, present: Array, limits: Any, total: float) -> bool:
    """Tell whether at least two candidates are within a total that at least one is within."""
    held = 0
    free = 0
    for k in range(absent.shape[0]):
        if absent[k] > total:
            held += 1
        elif present[k] <= total:
            free += 1
    fewest = max(0, limits[0] - held)
    most = min(free, limits[1] - held)
    # One size of subset only, and that one none or all of the free labels: a single candidate.
    return most > fewest or 0 < fewest < free


@part
def _forced_row_maximum(absent: Array, present: Array, limits: Any, labels: Array, totals: Array) -> None:
    """Write a row's cheapest candidate (d,), and the totals (2,) of the two cheapest."""
    n_labels = absent.shape[0]
    lo, hi = limits
    best = np.max(np.minimum(absent, present))
    if hi < n_labels:
        best = max(best, np.sort(absent)[n_labels - 1 - hi])
    if lo > 0:
        best = max(best, np.sort(present)[lo - 1])
    totals[0] = best
    totals[1] = np.inf
    for dearer in np.sort(np.maximum(absent, present)):
        if _has_two(absent, present, limits, max(best, dearer)):
            totals[1] = max(best, dearer)
            break
    may_follow = 0
    for k in range(n_labels):
        may_follow += present[k] <= best
    size = 0
    for k in range(n_labels):
        may_follow -= present[k] <= best
        labels[k] = 0 if absent[k] <= best and size + may_follow >= lo else 1
        size += labels[k]


@kernel
def forced_flat_maximum(
    starts: Array, absent: Array, present: Array, limits: Any, labels: Array, totals: Array
) -> None:
    """Write each flat row's cheapest candidate, and the totals of the two cheapest; as `forced.forced_flat`."""
    for i in range(starts.shape[0] - 1):
        row = slice(starts[i], starts[i + 1])
        _forced_row_maximum(absent[row], present[row], limits, labels[row], totals[i])


def forced_rows_maximum(absent: Array, present: Array, limits: Any, labels: Array, totals: Array) -> None:
    """Write each row's cheapest candidate, and the totals of the two cheapest; as `forced.forced_rows`."""
    forced_flat_maximum(row_starts(absent), absent.ravel(), present.ravel(), limits, labels.reshape(-1), totals)
