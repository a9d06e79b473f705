"""The paper's searches as kernels: every label-set of the ball, or every candidate, scored."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernel_rows
import reference
from surelabel._core.packing import unpack
from surelabel._kernels import combinations

pytestmark = pytest.mark.kernels


def _members(row):
    absent, present, limits, threshold = row
    ranked = reference.scored((absent.tolist(), present.tolist()), limits)
    return sorted(r for total, r in ranked if total <= threshold)


def _unpacked(words, d):
    return sorted(tuple(map(int, r)) for r in unpack(words, d))


@settings(max_examples=kernel_rows.examples(150))
@given(kernel_rows.rows(), st.integers(0, 5))
def test_the_powerset_gives_the_reference_members(row, capacity):
    absent, present, limits, threshold = row
    powerset = absent, present, threshold, limits, np.zeros(len(absent), dtype=np.uint8), limits[1] + 1
    members = _members(row)
    words = np.empty((len(members), 1), dtype=np.uint64)
    assert combinations.ball_row(*powerset, words) == len(members)
    assert _unpacked(words, len(absent)) == members
    # More than there is room for are counted, not written.
    few = np.empty((capacity, 1), dtype=np.uint64)
    assert combinations.ball_row(*powerset, few) == len(members)


def _radius(row, *, maximum=False):
    absent, present, _, threshold = row
    radius, centre = np.empty(1, dtype=np.int64), np.empty((1, len(absent)), dtype=np.uint8)
    combinations.radius_rows(absent[None, :], present[None, :], np.array([threshold]), maximum, radius, centre)
    return int(radius[0]), centre[0]


@settings(max_examples=kernel_rows.examples(150))
@given(kernel_rows.rows())
def test_the_ball_holds_every_member(row):
    absent, present, limits, threshold = row
    radius, centre = _radius(row)
    members = _members(row)
    words = np.empty((len(members), 1), dtype=np.uint64)
    assert combinations.ball_row(absent, present, threshold, limits, centre, radius, words) == len(members)
    assert _unpacked(words, len(absent)) == members


@pytest.mark.parametrize("maximum", [False, True])
@settings(max_examples=kernel_rows.examples(100))
@given(kernel_rows.rows())
def test_no_label_set_within_the_threshold_is_radius_flips_away(maximum, row):
    absent, present, _, threshold = row
    radius, centre = _radius(row, maximum=maximum)
    d = len(absent)
    ranked = reference.scored((absent.tolist(), present.tolist()), (0, d), "max" if maximum else "sum")
    flips = [sum(a != b for a, b in zip(r, centre, strict=True)) for total, r in ranked if total <= threshold]
    # t is one more than the most flips that a label-set within the threshold has; 0 where there is none.
    assert radius == max(flips, default=-1) + 1


@pytest.mark.parametrize(
    ("threshold", "radius"), [(0.9, 0), (1.0, 1), (1.4, 1), (1.5, 2), (2.4, 2), (2.5, 3), (math.inf, 3)]
)
def test_radius_by_hand(threshold, radius):
    # z costs 1; the nearer label's flip adds 1/2, the other's 1.
    row = np.array([0.5, 0.5]), np.array([1.0, 1.5]), (0, 2), threshold
    assert _radius(row)[0] == radius
