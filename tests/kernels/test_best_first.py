"""The heap gives every label-set once, by ascending total, within the limits on the number of labels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernel_rows
import reference
from surelabel._core.packing import pack, unpack
from surelabel._kernels import best_first

pytestmark = pytest.mark.kernels


def _frontier(capacity):
    return best_first.Frontier(
        np.empty(capacity),
        np.empty(capacity, dtype=np.int64),
        np.empty((capacity, best_first.N_COLUMNS), dtype=np.int64),
        np.empty((capacity, 2), dtype=np.int64),
        np.zeros(4, dtype=np.int64),
    )


def _take_all(row, *, maximum):
    absent, present, (lo, hi), _ = row
    d = len(absent)
    inside = present <= absent
    kept, flipped = np.minimum(absent, present), np.maximum(absent, present)
    prices = flipped if maximum else flipped - kept
    index = []
    for which in (~inside, inside):
        labels = np.flatnonzero(which)
        index.append(labels[np.argsort(prices[labels], kind="stable")])
    base = float(kept.max() if maximum else kept.sum())
    flips = best_first.SortedFlips(prices[index[0]], prices[index[1]], base, maximum)
    size = int(inside.sum())
    frontier = _frontier(best_first.MAX_CHILDREN * 2**d + d + 1)
    best_first.open_classes(frontier, flips, size, (lo, hi))
    words, keys = np.empty((2**d, 1), dtype=np.uint64), np.empty(2**d)
    start = pack(inside[None, :])[0]
    taken = best_first.take(frontier, flips, tuple(index), (size, hi), (2**d, np.inf), start, words, keys)
    return [tuple(map(int, r)) for r in unpack(words[:taken], d)], keys[:taken]


@pytest.mark.parametrize("maximum", [False, True])
@settings(max_examples=kernel_rows.examples(200))
@given(kernel_rows.rows())
def test_every_candidate_comes_once_by_ascending_total(maximum, row):
    absent, present, limits, _ = row
    taken, keys = _take_all(row, maximum=maximum)
    assert sorted(taken) == reference.candidates(len(absent), *limits)
    costs = absent.tolist(), present.tolist()
    exact = np.array([reference.total(costs, r, "max" if maximum else "sum") for r in taken])
    tolerance = 1e-12 * exact.max()
    assert np.all(np.abs(keys - exact) <= tolerance)
    assert np.all(np.diff(exact) >= -2 * tolerance)
    if maximum:
        assert keys.tolist() == exact.tolist()


@settings(max_examples=kernel_rows.examples(50))
@given(st.lists(st.integers(0, 6), min_size=1, max_size=6 if kernel_rows.JIT else 4), st.data())
def test_whole_numbers_come_in_exact_order(costs, data):
    d = len(costs)
    lo = data.draw(st.integers(0, d))
    row = np.zeros(d), np.array(costs, dtype=float), (lo, d), 0.0
    taken, keys = _take_all(row, maximum=False)
    assert keys.tolist() == [float(np.dot(r, costs)) for r in taken]
    assert keys.tolist() == sorted(keys.tolist())
