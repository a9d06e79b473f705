"""Counts without enumeration: groups of equal costs, tables of quantised costs, sums of ranks."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernel_rows
import reference
from surelabel._kernels import exact_sum, groups, table
from surelabel.engines.bounds import bounds_by_table, count_of_maximum, count_row, greatest_size, rank_sum_of_row

pytestmark = pytest.mark.kernels


def _expected(row):
    absent, present, limits, threshold = row
    return reference.subset_count((absent.tolist(), present.tolist()), limits, threshold)


@settings(max_examples=kernel_rows.examples(200))
@given(kernel_rows.rows())
def test_counts_without_walking_hold_the_reference_count(row):
    absent, present, limits, threshold = row
    if threshold < 0:
        return
    lower, upper = count_row(absent, present, threshold, limits)
    assert lower <= _expected(row) <= upper
    if (np.abs(absent - present) <= threshold).all() and len({*zip(absent, present, strict=True)}) < len(absent):
        assert lower == upper


def _multisets(row, binomials, limit=10**6, count=groups.count_multisets):
    """Every label a group of its own, sorted by what its flip costs."""
    absent, present, limits, threshold = row
    inside = present <= absent
    costs = np.where(inside[:, None], np.column_stack([present, absent]), np.column_stack([absent, present]))
    order = np.argsort(costs[:, 1] - costs[:, 0], kind="stable")
    costs, inside = costs[order], inside[order]
    margin = exact_sum.band(len(absent)) * threshold
    budget = (threshold - float(costs[:, 0].sum()) + margin, 2.0 * margin)
    if budget[0] < 0:
        return 0
    step = np.where(inside, -1, 1).astype(np.int64)
    size = int(inside.sum())
    window = (limits[0] - size, limits[1] - size)
    return count(
        costs, np.ones(len(absent), dtype=np.int64), step, budget, threshold, window, binomials(len(absent)), limit
    )


@settings(max_examples=kernel_rows.examples(150))
@given(kernel_rows.rows())
def test_groups_of_one_label_are_the_reference(row):
    if row[3] < 0:
        return
    assert _multisets(row, lambda n: np.ones((n, 2))) == _expected(row)
    plain = getattr(groups.count_multisets, "py_func", groups.count_multisets)
    whole = _multisets(row, lambda n: [[1, 1]] * n, count=plain)
    assert whole == _expected(row)
    assert isinstance(whole, int)


def test_groups_give_up_at_their_limit():
    row = np.zeros(8), np.ones(8), (0, 8), 8.0
    assert _multisets(row, lambda n: np.ones((n, 2)), limit=100) == groups.OVER_LIMIT
    assert _multisets(row, lambda n: np.ones((n, 2)), limit=256) == 256


@settings(max_examples=kernel_rows.examples(150))
@given(kernel_rows.rows(), st.integers(0, 3))
def test_tables_bound_counts_at_every_threshold(row, seed):
    absent, present, limits, _ = row
    costs = absent.tolist(), present.tolist()
    totals = [total for total, _ in reference.scored(costs, limits)]
    rng = np.random.default_rng(seed)
    thresholds = np.sort(np.concatenate([totals, rng.uniform(0, 1.2 * max(totals) + 0.1, 5)]))
    lower, upper = np.empty(len(thresholds)), np.empty(len(thresholds))
    n_cells = 512 if kernel_rows.JIT else 64
    table.bounds_row(absent, present, thresholds, limits, n_cells, lower, upper)
    for i, threshold in enumerate(thresholds):
        expected = sum(total <= threshold for total in totals)
        assert lower[i] <= expected <= upper[i] or upper[i] == pytest.approx(expected, rel=1e-9)
        low, high = bounds_by_table(absent, present, float(threshold), limits, n_cells)
        assert low <= expected <= high
        most = greatest_size(absent, present, float(threshold), limits[1])
        assert all(sum(r) <= most for total, r in reference.scored(costs, limits) if total <= threshold)


@settings(max_examples=kernel_rows.examples(100))
@given(kernel_rows.rows(), st.lists(kernel_rows.COSTS, min_size=1, max_size=6))
def test_rank_sums_are_the_reference_ones(row, others):
    absent, present, limits, threshold = row
    scored = reference.scored((absent.tolist(), present.tolist()), limits)
    calibration = np.sort(np.array([*others, max(threshold, 0.0), scored[0][0], scored[-1][0]]))
    expected = sum(sum(total <= a for a in calibration) for total, _ in scored)
    costs = absent, present
    lower, upper = rank_sum_of_row(costs, calibration, limits, -1, 128)
    assert lower <= expected <= upper * (1 + 1e-12)
    # Listed one by one, with the near ones ranked by their exact totals, it is exact.
    assert rank_sum_of_row(costs, calibration, limits, len(scored), 128) == (expected, expected)


@settings(max_examples=kernel_rows.examples(100))
@given(st.lists(st.sampled_from([(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0)]), min_size=1, max_size=7), st.data())
def test_maximum_counts_are_the_reference_counts(pairs, data):
    absent, present = np.array(pairs).T
    lo = data.draw(st.integers(0, len(pairs)))
    hi = data.draw(st.integers(lo, len(pairs)))
    expected = reference.subset_count((absent.tolist(), present.tolist()), (lo, hi), 0.0, "max")
    assert count_of_maximum(absent, present, 0.0, (lo, hi)) == expected
    assert count_of_maximum(absent, present, -math.inf, (lo, hi)) == 0
