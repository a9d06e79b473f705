"""The walk counts and lists what the reference does, within its limits on work and room."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernel_rows
import reference
from surelabel._core.packing import unpack
from surelabel._kernels import exact_sum, walk

pytestmark = pytest.mark.kernels


def _members(row):
    absent, present, limits, threshold = row
    costs = absent.tolist(), present.tolist()
    return sorted(r for total, r in reference.scored(costs, limits) if total <= threshold)


def _count(row, limit=10**9):
    absent, present, limits, threshold = row
    sizes, work = np.empty(1, dtype=np.int64), np.empty(1, dtype=np.int64)
    walk.count_rows(absent[None, :], present[None, :], np.array([threshold]), limits, limit, sizes, work)
    return int(sizes[0]), int(work[0])


def _list(row, capacity):
    absent, present, limits, threshold = row
    words = np.empty((capacity, (len(absent) + 63) // 64), dtype=np.uint64)
    totals = np.empty(capacity)
    found = walk.list_row(absent, present, threshold, limits, words, totals)
    return [tuple(map(int, r)) for r in unpack(words[:found], len(absent))], totals[:found]


@settings(max_examples=kernel_rows.examples(300))
@given(kernel_rows.rows())
def test_counts_are_the_reference_counts(row):
    assert _count(row)[0] == len(_members(row))


@settings(max_examples=kernel_rows.examples(300))
@given(kernel_rows.rows())
def test_lists_are_the_reference_members_once_each(row):
    members = _members(row)
    listed, totals = _list(row, len(members) + 3)
    assert sorted(listed) == members
    exact = np.array([reference.total((row[0].tolist(), row[1].tolist()), r) for r in listed])
    # Running totals are what the threshold leaves: right up to its rounding.
    assert np.all(np.abs(totals - exact) <= exact_sum.band(len(row[0])) * max(row[3], 0.0))


@settings(max_examples=kernel_rows.examples(100))
@given(kernel_rows.rows(), st.integers(0, 10))
def test_a_full_list_stops_with_members_only(row, capacity):
    members = _members(row)
    listed, _ = _list(row, capacity)
    assert len(listed) == min(capacity, len(members))
    assert len(set(listed)) == len(listed)
    assert set(listed) <= set(members)


@settings(max_examples=kernel_rows.examples(100))
@given(kernel_rows.rows(), st.integers(1, 200))
def test_a_count_is_exact_or_given_up_at_the_limit(row, limit):
    size, work = _count(row, limit)
    if size < 0:
        assert work > limit
        # One leaf more than the limit, at most: a leaf costs as much as its last exact total.
        assert work <= limit + 4 * len(row[0]) + 4
    else:
        assert size == len(_members(row))
        assert work <= limit


def test_ties_at_the_threshold_do_not_pass_the_work_limit(compiled):
    # Every pair costs just the threshold, so that each asks for its exact total.
    d = 3000 if compiled else 60
    row = np.full(d, 0.25), np.full(d, 0.75), (0, d), math.fsum([0.25] * (d - 2) + [0.75] * 2)
    size, work = _count(row, 10 * d)
    assert size <= walk.OVER_LIMIT
    assert work <= 12 * d
    d = 12
    row = np.full(d, 0.25), np.full(d, 0.75), (0, d), math.fsum([0.25] * (d - 2) + [0.75] * 2)
    assert _count(row)[0] == 1 + d + math.comb(d, 2)


@pytest.mark.parametrize("d", [63, 64, 65, 127, 128, 129, 200])
def test_words_of_label_sets_cross_64_bits(d):
    # Only the first, the last and the labels beside word borders may be flipped.
    flips = sorted({k for k in (0, 62, 63, 64, 65, 127, 128, d - 1) if k < d})
    present = np.full(d, 100.0)
    present[flips] = 1.0
    row = np.zeros(d), present, (1, d), 2.0
    listed, _ = _list(row, 1000)
    sets = {frozenset(np.flatnonzero(r).tolist()) for r in listed}
    expected = {frozenset({a, b}) for a in flips for b in flips}
    assert sets == expected
    assert len(listed) == len(expected) == _count(row)[0]
