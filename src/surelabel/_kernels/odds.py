"""Refined log-odds of labels: those of a text, times a slope or a matrix, plus offsets.

Every row is worked out by the same steps in the same order, however many rows there are: its log-odds are the same to
the last bit, one row at a time or many.
"""

from __future__ import annotations

from typing import Any

from surelabel._kernels.compiling import kernel

Array = Any


@kernel
def refine_rows(given: Array, largest: float, table: Array, refined: Array) -> None:
    """Write refined log-odds (n, d) of log-odds (n, d), clipped to [-largest, largest].

    table (1 + m, d): row 0 has offsets. With m = 1, row 1 has slopes: z = offset + slope x, x the log-odds of the same
    label. With m = d, row 1 + j says how the log-odds of label j count for each label: z = offset + sum over j.
    """
    n_texts, n_labels = given.shape
    for i in range(n_texts):
        if table.shape[0] == 2:
            for k in range(n_labels):
                refined[i, k] = table[0, k] + table[1, k] * given[i, k]
        else:
            own = refined[i]
            own[:] = table[0]
            # Four labels at a time: each sum is read and written a fourth as often.
            whole = n_labels - n_labels % 4
            for j in range(0, whole, 4):
                a, b, c, d = given[i, j], given[i, j + 1], given[i, j + 2], given[i, j + 3]
                row_a, row_b, row_c, row_d = table[1 + j], table[2 + j], table[3 + j], table[4 + j]
                for k in range(n_labels):
                    own[k] += (row_a[k] * a + row_b[k] * b) + (row_c[k] * c + row_d[k] * d)
            for j in range(whole, n_labels):
                times, row = given[i, j], table[1 + j]
                for k in range(n_labels):
                    own[k] += row[k] * times
        for k in range(n_labels):
            refined[i, k] = min(max(refined[i, k], -largest), largest)
