"""Ranks under a refitted ridge regression: equal to residuals that are written out."""

import numpy as np
import pytest

from surelabel._kernels.transductive import ranks_row

pytestmark = pytest.mark.kernels


@pytest.mark.parametrize("seed", range(5))
def test_ranks_are_those_of_residuals(seed):
    rng = np.random.default_rng(seed)
    residuals, weights, fitted = rng.normal(size=(12, 3)), rng.normal(size=12), rng.normal(size=3)
    candidates = rng.integers(0, 2, (7, 3)).astype(float)
    scale = 1.5
    out = np.empty(7, dtype=np.int64)
    distance = ((candidates - fitted) ** 2).sum(axis=1)
    squares = (residuals**2).sum(axis=1)
    ranks_row(candidates @ residuals.T, residuals @ fitted, squares, weights, distance, scale, 1e-12, out)
    for candidate, rank in zip(candidates, out, strict=True):
        scores = ((residuals - weights[:, None] * (candidate - fitted)) ** 2).sum(axis=1)
        own = (((candidate - fitted) / scale) ** 2).sum()
        assert rank == int((scores >= own).sum())


def test_equal_scores_count_as_at_least_as_strange():
    # One calibration text with the very residual of the new one.
    out = np.empty(1, dtype=np.int64)
    ranks_row(np.zeros((1, 1)), np.zeros(1), np.array([0.25]), np.zeros(1), np.array([0.25]), 1.0, 1e-9, out)
    assert out.tolist() == [1]
