"""Rows of a few listed labels and a group of equal ones, as flat rows for the other searches.

Row i has columns starts[i]..starts[i + 1] of flat arrays: listed labels, some representatives of the unlisted ones,
all ascending, then N_CONSTANTS columns for the unlisted labels that are held at one value. A constant column costs
`absent` and can never be flipped, present = inf. Together they add, without rounding, what those labels cost.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surelabel._kernels.compiling import kernel

Array = Any

# Present and absent unlisted labels, each with the high and the low half of the digits of its cost.
N_CONSTANTS = 4


@kernel
def arrange_rows(listed: Any, costs: Any, unlisted: Any, all_labels: Any, starts: Array, out: Any) -> None:
    """Lay out rows: listed labels merged with representatives, the last of the unlisted labels; constants free.

    listed (starts (n + 1,), labels) and costs (absent, present) of the listed labels; unlisted (absent, present, number
    of representatives (n,)); all_labels (their number, which of them are barred and represent none (d,), or an empty
    array); out (labels, absent, present) is written, of constants with label -1, costs 0 and inf.
    """
    from_starts, from_labels = listed
    labels, absent, present = out
    n_labels, barred = all_labels
    for i in range(starts.shape[0] - 1):
        place = starts[i + 1] - N_CONSTANTS
        labels[place : place + N_CONSTANTS] = -1
        absent[place : place + N_CONSTANTS] = 0.0
        present[place : place + N_CONSTANTS] = np.inf
        at = from_starts[i + 1] - 1
        label = n_labels - 1
        left = unlisted[2][i]
        while at >= from_starts[i] or left > 0:
            if at >= from_starts[i] and (left == 0 or from_labels[at] == label):
                place -= 1
                labels[place] = from_labels[at]
                absent[place] = costs[0][at]
                present[place] = costs[1][at]
                at -= 1
            elif barred.shape[0] == 0 or not barred[label]:
                place -= 1
                labels[place] = label
                absent[place] = unlisted[0]
                present[place] = unlisted[1]
                left -= 1
            label -= 1


@kernel
def mark_members(labels: Array, starts: Array, true_labels: Array, true_starts: Array, member: Array) -> None:
    """Write for each column, uint8, whether its label is among its text's true ones; both ascend."""
    for i in range(starts.shape[0] - 1):
        at = true_starts[i]
        for column in range(starts[i], starts[i + 1]):
            while at < true_starts[i + 1] and true_labels[at] < labels[column]:
                at += 1
            hit = labels[column] >= 0 and at < true_starts[i + 1] and true_labels[at] == labels[column]
            member[column] = 1 if hit else 0
