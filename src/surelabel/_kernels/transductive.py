"""Ranks of candidates under ridge regression that is fitted again for each of them."""

from __future__ import annotations

from typing import Any, TypeAlias

from surelabel._kernels.compiling import kernel

Array: TypeAlias = Any


@kernel
def ranks_row(
    across: Array, fitted: Array, squares: Array, weights: Array, distance: Array, scale: float, tie: float, out: Array
) -> None:
    """Count, for each of m candidates Y of one text, the n calibration texts that are at least as strange.

    With residuals r_i before, h_i = weights, f the text's fitted values before, the score of calibration text i is
    |r_i - h_i (Y - f)|^2 = squares_i - 2 h_i (across_Yi - fitted_i) + h_i^2 distance_Y, where across_Yi = r_i . Y,
    fitted_i = r_i . f and distance_Y = |Y - f|^2; that of the text itself is distance_Y / scale^2. Scores within `tie`
    of each other, relative to their parts, count as equal.

    across (m, n); fitted, squares and weights (n,); distance and out (m,).
    """
    for j in range(across.shape[0]):
        new = distance[j] / (scale * scale)
        count = 0
        for i in range(across.shape[1]):
            weight = weights[i]
            score = squares[i] - 2.0 * weight * (across[j, i] - fitted[i]) + weight * weight * distance[j]
            if score >= new - tie * (squares[i] + new):
                count += 1
        out[j] = count
