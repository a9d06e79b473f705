"""The heap gives every label-set once, by ascending total, within the limits on the number of labels."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernel_rows
import reference
from surelabel._core.packing import unpack
from surelabel._kernels import best_first

pytestmark = pytest.mark.kernels


def _take_all(row, *, maximum, batch=2**20):
    """Take every candidate, so many at a time; return them, their totals, and the running totals of first ones."""
    absent, present, limits, _ = row
    d = len(absent)
    number = min(batch, 2**d)
    frontier = best_first.make_frontier(number, d)
    taken, totals, keys, key = [], [], [], 0.0
    while not taken or frontier.has_next:
        frontier = frontier.with_room(number, d)
        words, exact = best_first.take(absent, present, np.inf, limits, maximum, frontier, number)
        keys += [key] if taken else []
        taken += [tuple(map(int, r)) for r in unpack(words, d)]
        totals += exact.tolist()
        key = frontier.next_total
    return taken, np.array(totals), keys


@pytest.mark.parametrize("maximum", [False, True])
@settings(max_examples=kernel_rows.examples(200))
@given(kernel_rows.rows(), st.integers(1, 9))
def test_every_candidate_comes_once_by_ascending_total(maximum, row, batch):
    absent, present, limits, _ = row
    taken, totals, keys = _take_all(row, maximum=maximum, batch=batch)
    assert sorted(taken) == reference.candidates(len(absent), *limits)
    costs = absent.tolist(), present.tolist()
    assert totals.tolist() == [reference.total(costs, r, "max" if maximum else "sum") for r in taken]
    tolerance = 1e-12 * totals.max()
    assert np.all(np.diff(totals) >= -2 * tolerance)
    # What the frontier says comes next.
    first = totals[batch::batch]
    assert np.all(np.abs(np.array(keys) - first) <= tolerance)
    if maximum:
        assert keys == first.tolist()


@settings(max_examples=kernel_rows.examples(200))
@given(st.lists(st.tuples(*2 * [st.builds(math.ldexp, st.floats(0.5, 1.0), st.integers(-900, 900))]), max_size=5))
def test_totals_are_correctly_rounded_over_all_exponents(costs):
    absent, present = np.array([(0.1, 0.3), *costs]).T.copy()
    taken, totals, _ = _take_all((absent, present, (0, len(absent)), None), maximum=False)
    assert totals.tolist() == [reference.total((absent.tolist(), present.tolist()), r, "sum") for r in taken]


@settings(max_examples=kernel_rows.examples(50))
@given(kernel_rows.rows(), st.integers(1, 9))
def test_label_sets_come_the_same_in_one_go_or_in_several(row, batch):
    whole, totals, _ = _take_all(row, maximum=False)
    parts, of_parts, _ = _take_all(row, maximum=False, batch=batch)
    assert whole == parts
    assert totals.tolist() == of_parts.tolist()


@settings(max_examples=kernel_rows.examples(50))
@given(st.lists(st.integers(0, 6), min_size=1, max_size=6 if kernel_rows.JIT else 4), st.data())
def test_whole_numbers_come_in_exact_order(costs, data):
    d = len(costs)
    lo = data.draw(st.integers(0, d))
    row = np.zeros(d), np.array(costs, dtype=float), (lo, d), 0.0
    taken, totals, _ = _take_all(row, maximum=False)
    assert totals.tolist() == [float(np.dot(r, costs)) for r in taken]
    assert totals.tolist() == sorted(totals.tolist())
