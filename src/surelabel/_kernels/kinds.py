"""Count the label-sets of a row for several kinds of them, by number of labels and by the rarest label."""

from __future__ import annotations

from typing import Any

import numpy as np

from surelabel._kernels.compiling import kernel
from surelabel._kernels.exact_sum import band
from surelabel._kernels.flips import make_scratch
from surelabel._kernels.walk import OVER_LIMIT, count_row

Array = Any

# Room for rounding when a kind is left out because its cheapest label-set costs too much.
_ROUNDING = 1e-9


@kernel
def _cheapest(absent: Array, present: Array, classes: Array, rarest: int) -> tuple[int, float, float, float, float]:
    """Look at the cheapest assignment without labels of a class below `rarest`.

    Returns its size and total, the prices of the cheapest addition and removal, and the price of having a label of
    class `rarest`: 0 where it has one.
    """
    size = 0
    base = 0.0
    addition = np.inf
    removal = np.inf
    having = np.inf
    for k in range(absent.shape[0]):
        if classes[k] < rarest:
            base += absent[k]
            continue
        price = present[k] - absent[k]
        if price <= 0.0:
            size += 1
            base += present[k]
            removal = min(removal, -price)
        else:
            base += absent[k]
            addition = min(addition, price)
        if classes[k] == rarest:
            having = min(having, max(price, 0.0))
    return size, base, addition, removal, having


@kernel
def _without(present: Array, classes: Array, rarest: int, out: Array) -> None:
    """Write the costs of presence with labels of a class below `rarest` made unaffordable."""
    for k in range(present.shape[0]):
        out[k] = np.inf if classes[k] < rarest else present[k]


@kernel
def count_kinds(
    costs: Any, thresholds: Array, limits: Array, rarest: Array, classes: Any, limit: int, sizes: Array
) -> None:
    """Write how many label-sets of each kind are within its threshold, OVER_LIMIT where it takes over `limit` steps.

    costs are absent and present, (n, d) each; thresholds (n, k). Kind j has limits[j, 0] to limits[j, 1] labels, (k, 2)
    int64, and its rarest label is of class rarest[j], (k,) int64. `classes` are those of labels, (d,) int64, and the
    last class there is, which the empty label-set belongs to. sizes (n, k) int64 are written.

    A kind of a class is a difference: without rarer labels, less without those of the class too. A label-set of a
    kind is some flips away from the cheapest one without rarer labels, and each costs at least as much as the
    cheapest flip: most kinds of most rows need no walk.
    """
    absent, present = costs
    of_label, last = classes
    n_labels = absent.shape[1]
    scratch = make_scratch(n_labels)
    held = np.empty(n_labels)
    for i in range(absent.shape[0]):
        seen = -1
        size, base, addition, removal, having = 0, 0.0, 0.0, 0.0, 0.0
        for j in range(thresholds.shape[1]):
            if rarest[j] != seen:
                seen = rarest[j]
                size, base, addition, removal, having = _cheapest(absent[i], present[i], of_label, seen)
            threshold = thresholds[i, j]
            need = 0.0 if seen == last else having
            if limits[j, 0] > size:
                need = max(need, (limits[j, 0] - size) * addition)
            elif limits[j, 1] < size:
                need = max(need, (size - limits[j, 1]) * removal)
            if threshold - base + band(n_labels) * threshold < need * (1.0 - _ROUNDING):
                sizes[i, j] = 0
                continue
            within = (limits[j, 0], limits[j, 1])
            _without(present[i], of_label, seen, held)
            count = count_row(absent[i], held, threshold, within, limit, scratch)[0]
            if count > 0 and seen < last:
                _without(present[i], of_label, seen + 1, held)
                less = count_row(absent[i], held, threshold, within, limit, scratch)[0]
                count = OVER_LIMIT if less == OVER_LIMIT else count - less
            sizes[i, j] = count
