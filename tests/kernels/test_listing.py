"""All members of a row at several thresholds are the reference's, each with its exact total."""

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
def test_members_and_totals_at_several_thresholds(row, shares):
    absent, present, limits, threshold = row
    thresholds = np.array([share * threshold for share in shares])
    costs = absent.tolist(), present.tolist()
    scored = reference.scored(costs, limits)
    expected = [sorted((total, tuple(r)) for total, r in scored if total <= each) for each in thresholds]
    for each, members in zip(thresholds, expected, strict=True):
        words, totals = np.empty((len(members), 1), dtype=np.uint64), np.empty(len(members))
        assert walk.list_row(absent, present, each, limits, words, np.empty(0)) == len(members)
        exact_sum.totals_of_words(absent, present, words, totals)
        rows = [tuple(map(int, r)) for r in unpack(words, len(absent))]
        assert sorted(zip(totals.tolist(), rows, strict=True)) == members
