"""The two cheapest candidates, and which labels can be in or out, without a search."""

import math

import numpy as np
import pytest
from hypothesis import given, settings

import kernel_rows
import reference
from surelabel._kernels import forced, maximum

pytestmark = pytest.mark.kernels


@pytest.mark.parametrize(("kernel", "aggregate"), [(forced.forced_rows, "sum"), (maximum.forced_rows_maximum, "max")])
@settings(max_examples=kernel_rows.examples(300))
@given(kernel_rows.rows())
def test_the_two_cheapest_are_the_reference_ones(kernel, aggregate, row):
    absent, present, limits, _ = row
    labels, totals = np.empty((1, len(absent)), dtype=np.uint8), np.empty((1, 2))
    kernel(absent[None, :], present[None, :], limits, labels, totals)
    ranked = reference.scored((absent.tolist(), present.tolist()), limits, aggregate)
    assert totals[0, 0] == ranked[0][0]
    assert totals[0, 1] == (ranked[1][0] if len(ranked) > 1 else math.inf)
    assert tuple(labels[0].tolist()) == ranked[0][1]


@settings(max_examples=kernel_rows.examples(300))
@given(kernel_rows.rows())
def test_reachable_values_are_those_of_some_member(row):
    absent, present, limits, threshold = row
    ranked = reference.scored((absent.tolist(), present.tolist()), limits)
    members = [r for total, r in ranked if total <= threshold]
    expected = [[any(r[k] == value for r in members) for value in (0, 1)] for k in range(len(absent))]
    both = np.empty((2, len(absent), 2), dtype=np.bool_)
    rows = [np.stack([costs, costs]) for costs in (absent, present)]
    forced.reachable_rows(*rows, np.array([threshold, -np.inf]), limits, both)
    assert both[0].tolist() == expected
    assert not both[1].any()
