"""Count label-sets by groups of labels with equal costs: binomials instead of enumeration.

Labels with bitwise the same (absent, present) costs are interchangeable. A multiset of flips, j_g of the m_g labels of
each group g, stands for prod binomial(m_g, j_g) label-sets of one and the same total.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surelabel._kernels.compiling import kernel
from surelabel._kernels.exact_sum import N_PARTIALS, add_to_partials, round_partials

Array = Any

OVER_LIMIT = -1


@kernel
def _multiset_total(costs: Array, sizes: Array, chosen: Array, partials: Array) -> float:
    """Total of a multiset: of group g, chosen[g] labels pay costs[g, 1] and the rest costs[g, 0]."""
    n_partials = 0
    for g in range(sizes.shape[0]):
        for _ in range(chosen[g]):
            n_partials = add_to_partials(partials, n_partials, costs[g, 1])
        for _ in range(sizes[g] - chosen[g]):
            n_partials = add_to_partials(partials, n_partials, costs[g, 0])
    return round_partials(partials, n_partials)


@kernel
def count_multisets(
    costs: Array, sizes: Array, step: Array, budget: Any, threshold: float, window: Any, binomials: Any, limit: int
) -> Any:
    """Count label-sets with total <= threshold by multisets of flips.

    Parameters
    ----------
    costs : (G, 2) float64
        Cost of one label of the group as in the cheapest assignment, and flipped; groups by ascending difference.
    sizes : (G,) int64
        Labels in each group.
    step : (G,) int64
        +1 where a flip adds a label, -1 where it removes one.
    budget : (float, float)
        What flips may sum to, and the slack below it within which the exact total decides.
    threshold : float
    window : (int, int)
        Limits on the sum of steps.
    binomials : (G, max size + 1) float64, or a list of lists of int
        With floats the count is exact below 2^53; the undecorated function with ints is exact at any size.
    limit : int
        Multisets that may be visited.

    Returns
    -------
    count
        OVER_LIMIT where the limit was passed.
    """
    n_groups = sizes.shape[0]
    partials = np.empty(N_PARTIALS)
    chosen = np.zeros(n_groups, dtype=np.int64)
    order = np.empty(n_groups + 1, dtype=np.int64)
    before = np.empty(n_groups + 1)  # what was left when the group was opened: never added back, so never drifting
    left = budget[0]
    count = binomials[0][0] * 0
    depth = 0
    steps = 0
    group = 0
    visited = 0
    entering = True
    while True:
        if entering:
            entering = False
            visited += 1
            if visited > limit:
                return binomials[0][0] * 0 + OVER_LIMIT
            if window[0] <= steps <= window[1] and (
                left >= budget[1] or _multiset_total(costs, sizes, chosen, partials) <= threshold
            ):
                weight = binomials[0][0]
                for position in range(depth):
                    weight = weight * binomials[order[position]][chosen[order[position]]]
                count += weight
        if group < n_groups and costs[group, 1] - costs[group, 0] <= left:
            # Open the next group with one flip.
            order[depth] = group
            before[depth] = left
            depth += 1
            chosen[group] = 1
            steps += step[group]
            left -= costs[group, 1] - costs[group, 0]
            group += 1
            entering = True
            continue
        if depth == 0:
            return count
        # Back to the last open group: one more flip of it, or close it and go on to the next.
        group = order[depth - 1]
        price = costs[group, 1] - costs[group, 0]
        if chosen[group] < sizes[group] and price <= left:
            chosen[group] += 1
            steps += step[group]
            left = before[depth - 1] - chosen[group] * price
            entering = True
        else:
            left = before[depth - 1]
            steps -= chosen[group] * step[group]
            chosen[group] = 0
            depth -= 1
        group += 1
