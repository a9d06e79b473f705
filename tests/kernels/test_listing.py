"""All members of several rows at once are the reference's, each with its exact total."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernel_rows
import reference
from surelabel._core.packing import unpack
from surelabel._kernels import exact_sum, walk

pytestmark = pytest.mark.kernels


@settings(max_examples=kernel_rows.examples(100))
@given(row=kernel_rows.rows(), shares=st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=1, max_size=4))
def test_members_and_totals_of_several_rows(row, shares):
    absent, present, limits, threshold = row
    thresholds = np.array([share * threshold for share in shares])
    costs = absent.tolist(), present.tolist()
    scored = reference.scored(costs, limits)
    expected = [sorted((total, tuple(r)) for total, r in scored if total <= each) for each in thresholds]
    ends = np.cumsum([len(members) for members in expected])
    words = np.empty((ends[-1], 1), dtype=np.uint64)
    totals = np.empty(ends[-1])
    n = len(shares)
    rows_of_costs = np.tile(absent, (n, 1)), np.tile(present, (n, 1))
    counts = np.empty(n, dtype=np.int64)
    walk.list_rows(*rows_of_costs, thresholds, limits, ends, words, np.empty(0), counts)
    assert counts.tolist() == [len(members) for members in expected]
    exact_sum.totals_of_listed(*rows_of_costs, ends, words, totals)
    rows = [tuple(map(int, r)) for r in unpack(words, len(absent))]
    found = list(zip(totals.tolist(), rows, strict=True))
    for start, end, members in zip([0, *ends[:-1]], ends, expected, strict=True):
        assert sorted(found[start:end]) == members
