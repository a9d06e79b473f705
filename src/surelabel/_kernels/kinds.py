"""Count the label-sets of a row for several kinds of them, by number of labels and by the rarest label."""

from __future__ import annotations

from typing import Any

import numpy as np

from surelabel._kernels.compiling import kernel, part
from surelabel._kernels.exact_sum import band
from surelabel._kernels.flips import ADDITIONS, IN_ORDER, IS_SUM, REMOVALS, Row, Scratch, make_scratch, open_flips
from surelabel._kernels.walk import OVER_LIMIT, count_opened, count_row

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


@part
def _count_without(
    row: Row, classes: Array, rarest: int, threshold: float, within: Any, limit: int, flips: Scratch, scratch: Scratch
) -> Any:
    """Count the label-sets without labels of a class below `rarest`, or OVER_LIMIT.

    `row` and `flips` are those of the largest threshold, and hold all flips by their cost: those of this count are
    taken from them in that order.
    """
    absent, present = row.absent, row.present
    size = np.int64(0)
    base = 0.0
    for k in range(absent.shape[0]):
        is_member = flips.member[k] == 1 and classes[k] >= rarest
        scratch.member[k] = 1 if is_member else 0
        size += 1 if is_member else 0
        base += present[k] if is_member else absent[k]
    margin = band(absent.shape[0]) * threshold
    budget = threshold - base + margin
    counts = (row.n_add, row.n_remove)
    kept = np.zeros(2, dtype=np.int64)
    for side in range(2):
        for j in range(counts[side]):
            cost, label = flips.costs[side, j], flips.index[side, j]
            if cost > budget:
                break
            if classes[label] >= rarest:
                scratch.costs[side, kept[side]] = cost
                scratch.index[side, kept[side]] = label
                kept[side] += 1
    own = Row(absent, present, threshold, 2.0 * margin, kept[ADDITIONS], kept[REMOVALS])
    return max(OVER_LIMIT, count_opened(own, size, budget, within, limit, scratch)[0])


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
    cheapest flip: most kinds of most rows need no walk. Flips are sorted once per row, for all classes.
    """
    absent, present = costs
    of_label, last = classes
    n_labels = absent.shape[1]
    scratch, flips = make_scratch(n_labels), make_scratch(n_labels)
    for i in range(absent.shape[0]):
        row = Row(absent[i], present[i], -np.inf, 0.0, 0, 0)
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
            if last == 0:
                counted = count_row(absent[i], present[i], threshold, within, limit, scratch)[0]
                sizes[i, j] = max(OVER_LIMIT, counted)
                continue
            if row.threshold == -np.inf:
                largest = thresholds[i].max()
                drift = 2.0 * band(n_labels)
                opened = open_flips(absent[i], present[i], largest, drift, IS_SUM, IN_ORDER, flips)
                row = Row(absent[i], present[i], largest, 0.0, opened[0], opened[1])
            count = _count_without(row, of_label, seen, threshold, within, limit, flips, scratch)
            if count > 0 and seen < last:
                less = _count_without(row, of_label, seen + 1, threshold, within, limit, flips, scratch)
                count = OVER_LIMIT if less == OVER_LIMIT else count - less
            sizes[i, j] = count
