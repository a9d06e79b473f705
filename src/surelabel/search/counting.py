"""Certified counts past the work limit, from a table over (number of labels, quantised cost)."""

from __future__ import annotations

import numpy as np

from surelabel._core.validation import FloatArray, IntArray

# Cells of the table: some milliseconds per text.
N_CELLS = 8192


def count_by_table(
    changes: IntArray, limits: tuple[int, int], room: IntArray, n_cells: int = N_CELLS
) -> tuple[FloatArray, FloatArray]:
    """Bound the label-sets whose flips, away from the cheapest assignment, cost at most room (m,), ascending.

    changes (k,) are what labels add to the total. Each flip's cost is rounded down to whole cells. If at most F flips
    that lose something fit together, a set loses less than F cells. So the table is an upper bound at any room, and a
    lower bound F cells below it: at all m at once.

    Examples
    --------
    >>> count_by_table(np.array([-3, 1, 2, 2]), (1, 4), np.array([-1, 0, 3, 8]))
    (array([ 0.,  1.,  6., 15.]), array([ 0.,  1.,  6., 15.]))
    """
    largest = int(room[-1])
    if largest < 0:
        return np.zeros(len(room)), np.zeros(len(room))
    flips = np.sort(np.abs(changes[np.abs(changes) <= largest]))
    removals = np.sort(-changes[(changes < 0) & (changes >= -largest)])
    additions = np.sort(changes[(changes >= 0) & (changes <= largest)])
    # If all costs are multiples of few different ones, a cell can be their common divisor, and nothing is lost.
    common = int(np.gcd.reduce(flips)) if len(flips) else 0
    cell = common if common > 0 and largest // common < n_cells else max(1, -(-largest // (n_cells - 1)))
    n_lossy = _n_fitting(flips[flips % cell > 0], largest)
    # By number of labels: the label-sets of each cell, and the first cell that has any.
    width, start = largest // cell + 1, int(np.count_nonzero(changes < 0))
    table, begins = {start: np.zeros(width)}, {start: 0}
    table[start][0] = 1.0
    most = max(start, limits[1])
    with np.errstate(over="ignore"):
        # From the far end, so that each flip is used once; the largest flips first, as they reach few cells.
        for costs, step in ((removals, -1), (additions, 1)):
            sizes = sorted(table, reverse=step > 0)
            for cost in (costs[::-1] // cell).tolist():
                for size in sizes:
                    first, target = begins[size] + cost, size + step
                    if first >= width or target > most:
                        continue
                    label_sets = table[size][first - cost : width - cost]
                    if target in table:
                        reached = table[target][first:]
                        np.add(reached, label_sets, out=reached)
                        begins[target] = first if first < begins[target] else begins[target]
                    else:
                        table[target], begins[target] = np.append(np.zeros(first), label_sets), first
                if len(table) > len(sizes):
                    sizes = sorted(table, reverse=step > 0)
        counts = np.zeros(width)
        for size, label_sets in table.items():
            if limits[0] <= size <= limits[1]:
                counts[begins[size] :] += label_sets[begins[size] :]
        np.cumsum(counts, out=counts)
    # Sums of whole numbers are exact up to 2^53. Beyond, each addition may be off by half a unit in the last place.
    error = 0.0 if counts[-1] < 2.0**53 else (len(flips) + len(counts) + len(table)) * 2.0**-52
    cells = room // cell
    upper = np.where(cells >= 0, counts[np.maximum(cells, 0)], 0.0)
    lower = np.where(cells >= n_lossy, counts[np.maximum(cells - n_lossy, 0)], 0.0)
    return lower * (1.0 - error), upper * (1.0 + error)


def _n_fitting(costs: IntArray, room: int) -> int:
    """Return how many of the cheapest of ascending costs fit together."""
    return int(np.searchsorted(np.cumsum(costs.astype(np.float64)), float(room) * (1.0 + 2.0**-40), side="right"))
