"""Bounds of sizes: integers of any size, in arrays of int64 wherever they fit."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from surelabel.engines.sizes import SizeBounds, as_sizes

MOST = np.iinfo(np.int64).max
numbers = st.one_of(st.integers(0, 5), st.integers(MOST - 2, MOST + 2), st.integers(0, 10**40))
pairs = st.tuples(numbers, numbers).map(lambda pair: (min(pair), max(pair)))


@given(st.lists(numbers, min_size=1))
def test_sizes_are_kept_exactly(values):
    sizes = as_sizes(values)
    assert sizes.tolist() == values
    assert (sizes.dtype == np.int64) == (max(values) <= MOST)


@given(st.lists(pairs, min_size=1), st.data())
def test_bounds_are_like_a_list_of_pairs(bounds, data):
    made = SizeBounds.unknown(len(bounds))
    assert not made.known.any()
    for row in data.draw(st.permutations(range(len(bounds)))):
        made[row] = bounds[row]
    assert list(made) == list(SizeBounds.of(bounds)) == bounds
    assert made.known.all()
    part = data.draw(st.slices(len(bounds)))
    assert list(made[part]) == bounds[part]
    cut = data.draw(st.integers(0, len(bounds)))
    assert list(SizeBounds.joined([made[:cut], made[cut:]])) == bounds


def test_a_part_does_not_change_with_the_whole():
    whole = SizeBounds.of([(1, 1), (2, 3)])
    part = whole[1:]
    whole[1] = (5, 10**30)
    assert part[0] == (2, 3)
    assert whole[1] == (5, 10**30)


@given(st.lists(pairs, min_size=2), st.data())
def test_some_rows_can_be_put(bounds, data):
    chosen = np.array(data.draw(st.lists(st.booleans(), min_size=len(bounds), max_size=len(bounds))))
    made = SizeBounds.of([(1, 2)] * len(bounds))
    made.put(chosen, SizeBounds.of(pair for pair, is_chosen in zip(bounds, chosen, strict=True) if is_chosen))
    assert list(made) == [pair if is_chosen else (1, 2) for pair, is_chosen in zip(bounds, chosen, strict=True)]
