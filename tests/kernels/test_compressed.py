"""Short rows of listed labels and a group of equal ones, against the long rows that they stand for."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernel_rows
import reference
from surelabel._kernels import compressed
from surelabel._kernels.exact_sum import totals_of_flat
from surelabel._kernels.forced import forced_flat, reachable_flat
from surelabel._kernels.maximum import forced_flat_maximum
from surelabel._kernels.walk import count_flat

pytestmark = pytest.mark.kernels


@st.composite
def grouped_rows(draw):
    """(listed labels, absent, present, limits, threshold): all labels that are not listed cost the same."""
    absent, present, limits, threshold = draw(kernel_rows.rows())
    d = len(absent)
    group = sorted(draw(st.tuples(kernel_rows.COSTS, kernel_rows.COSTS)))
    listed = np.array(draw(st.lists(st.booleans(), min_size=d, max_size=d)))
    absent, present = np.where(listed, absent, group[0]), np.where(listed, present, group[1])
    return np.flatnonzero(listed), absent, present, group, limits, threshold


def _arranged(row, n_representatives):
    """The short row, and the constants' place filled for the labels without columns, none of them present."""
    listed, absent, present, group, _, _ = row
    own = min(n_representatives, len(absent) - len(listed))
    size = len(listed) + own + compressed.N_CONSTANTS
    starts = np.array([0, size])
    labels, short = np.empty(size, dtype=np.int64), (np.empty(size), np.empty(size))
    compressed.arrange_rows(
        (np.array([0, len(listed)]), listed),
        (absent[listed], present[listed]),
        (*group, np.array([own])),
        (len(absent), np.zeros(0, dtype=bool)),
        starts,
        (labels, *short),
    )
    hidden = len(absent) - len(listed) - own
    # Small numbers of labels: adding one by one is exact enough to stand for the halves that the package makes.
    constants = [group[0]] * hidden + [0.0] * compressed.N_CONSTANTS
    return hidden, constants, starts, labels, short


@settings(max_examples=kernel_rows.examples(200))
@given(row=grouped_rows(), n_representatives=st.integers(0, 3))
def test_columns_are_listed_labels_and_the_last_unlisted_ones(row, n_representatives):
    listed, absent, present, _, _, _ = row
    _, _, _, labels, short = _arranged(row, n_representatives)
    others = [k for k in range(len(absent)) if k not in listed]
    kept = others[len(others) - n_representatives :] if n_representatives < len(others) else others
    columns = sorted([*listed.tolist(), *kept])
    assert labels.tolist() == columns + [-1] * compressed.N_CONSTANTS
    assert short[0].tolist() == absent[columns].tolist() + [0.0] * compressed.N_CONSTANTS
    assert short[1].tolist() == present[columns].tolist() + [math.inf] * compressed.N_CONSTANTS


@settings(max_examples=kernel_rows.examples(200))
@given(row=grouped_rows())
def test_the_two_cheapest_and_what_is_reachable_are_the_reference_ones(row):
    _, absent, present, _, limits, threshold = row
    hidden, constants, starts, labels, (short_absent, short_present) = _arranged(row, limits[0] + 1)
    if hidden > compressed.N_CONSTANTS:
        return
    short_absent[-compressed.N_CONSTANTS :] = constants[: compressed.N_CONSTANTS]
    costs = (absent.tolist(), present.tolist())
    for aggregate in ("sum", "max"):
        member, totals = np.empty(len(labels), dtype=np.uint8), np.empty((1, 2))
        find = forced_flat_maximum if aggregate == "max" else forced_flat
        find(starts, short_absent, short_present, limits, member, totals)
        ranked = reference.scored(costs, limits, aggregate)
        assert totals[0].tolist() == [ranked[0][0], ranked[1][0] if len(ranked) > 1 else math.inf]
        assert labels[member == 1].tolist() == [k for k, value in enumerate(ranked[0][1]) if value]
    reachable = np.empty((len(labels), 2), dtype=np.bool_)
    reachable_flat(starts, short_absent, short_present, np.array([threshold]), limits, reachable)
    members = [r for total, r in reference.scored(costs, limits) if total <= threshold]
    for label, found in zip(labels.tolist(), reachable.tolist(), strict=True):
        if label >= 0:
            assert found == [any(r[label] == value for r in members) for value in (0, 1)]


@settings(max_examples=kernel_rows.examples(200))
@given(row=grouped_rows(), data=st.data())
def test_totals_and_counts_without_unlisted_labels_are_the_reference_ones(row, data):
    _, absent, present, _, limits, threshold = row
    _, _, starts, labels, (short_absent, short_present) = _arranged(row, len(absent))
    costs = (absent.tolist(), present.tolist())
    truth = np.array(data.draw(st.lists(st.booleans(), min_size=len(absent), max_size=len(absent))))
    member, total = np.empty(len(labels), dtype=np.uint8), np.empty(1)
    true_labels = np.flatnonzero(truth)
    compressed.mark_members(labels, starts, true_labels, np.array([0, len(true_labels)]), member)
    assert labels[member == 1].tolist() == true_labels.tolist()
    totals_of_flat(starts, short_absent, short_present, member, total)
    assert total[0] == reference.total(costs, truth)
    sizes, work = np.empty((2, 1), dtype=np.int64)
    count_flat(starts, short_absent, short_present, np.array([threshold]), limits, 10**6, sizes, work)
    assert sizes[0] == reference.subset_count(costs, limits, threshold)
