"""The paper's searches score label-sets one by one: all within some flips of a label-set (Algorithms 1 and 2)."""

from __future__ import annotations

from typing import Any

from surelabel._kernels.compile import kernel

Array = Any


@kernel
def score_ball(
    flips: Array, n_labels: int, budget: int, limits: Array, radius: int, chosen: Array, found: Array
) -> int:
    """Score all sets of fewer than `radius` flips away from a label-set of n_labels labels.

    flips (m, 2): what each adds to the total, and +1 for labels that are added, -1 for those that are removed; chosen
    (m + 1,) is scratch. Sets within budget that end with limits[0]..limits[1] labels go to found (capacity, m) as 0/1
    rows. Returns how many there are, written or not. All int64, found uint8.
    """
    if radius <= 0:
        return 0
    m, n_found, depth, i, cost = flips.shape[0], 0, 0, 0, 0
    if limits[0] <= n_labels <= limits[1] and cost <= budget:
        if found.shape[0] > 0:
            for j in range(m):
                found[0, j] = 0
        n_found = 1
    while radius > 1:
        # The last flip of each set: every label-set is scored here, in one tight loop.
        for last in range(i, m):
            size = n_labels + flips[last, 1]
            if cost + flips[last, 0] <= budget and limits[0] <= size <= limits[1]:
                if n_found < found.shape[0]:
                    for j in range(m):
                        found[n_found, j] = 0
                    for j in range(depth):
                        found[n_found, chosen[j]] = 1
                    found[n_found, last] = 1
                n_found += 1
        if depth + 2 < radius and i + 1 < m:
            chosen[depth] = i
            cost += flips[i, 0]
            n_labels += flips[i, 1]
            depth, i = depth + 1, i + 1
            continue
        # Go back to the deepest flip that can be moved one place on and still leave one for the last.
        while depth > 0:
            depth -= 1
            i = chosen[depth]
            cost -= flips[i, 0]
            n_labels -= flips[i, 1]
            if i + 2 < m:
                break
            if depth == 0:
                return n_found
        else:
            return n_found
        i += 1
        chosen[depth] = i
        cost += flips[i, 0]
        n_labels += flips[i, 1]
        depth, i = depth + 1, i + 1
    return n_found
