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
    n_removed, n_added = _n_fitting(removals, largest), _n_fitting(additions, largest)
    # Row r is for fewest + r labels; the cheapest assignment is in row n_removed.
    fewest = int(np.count_nonzero(changes < 0)) - n_removed
    n_rows = 1 + min(n_removed + n_added, max(n_removed, limits[1] - fewest))
    table = np.zeros((n_rows, largest // cell + 1))
    table[n_removed, 0] = 1.0
    with np.errstate(over="ignore"):
        # Row by row, from the far end, so that each flip is used once; rows that nothing has reached are left out.
        for i, cost in enumerate((removals[::-1] // cell).tolist()):
            for row in range(max(0, n_removed - i - 1), n_removed):
                table[row, cost:] += table[row + 1, : table.shape[1] - cost]
        for i, cost in enumerate((additions[::-1] // cell).tolist()):
            for row in range(min(n_rows - 1, n_removed + i + 1), 0, -1):
                table[row, cost:] += table[row - 1, : table.shape[1] - cost]
        counts = np.cumsum(table[max(0, limits[0] - fewest) : max(0, limits[1] - fewest + 1)].sum(axis=0))
    # Sums of whole numbers are exact up to 2^53. Beyond, each addition may be off by half a unit in the last place.
    error = 0.0 if counts[-1] < 2.0**53 else (len(flips) + len(counts) + n_rows) * 2.0**-52
    cells = room // cell
    upper = np.where(cells >= 0, counts[np.maximum(cells, 0)], 0.0)
    lower = np.where(cells >= n_lossy, counts[np.maximum(cells - n_lossy, 0)], 0.0)
    return lower * (1.0 - error), upper * (1.0 + error)


def _n_fitting(costs: IntArray, room: int) -> int:
    """Return how many of the cheapest of ascending costs fit together."""
    return int(np.searchsorted(np.cumsum(costs.astype(np.float64)), float(room) * (1.0 + 2.0**-40), side="right"))
