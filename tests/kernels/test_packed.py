"""Label-sets packed into words: counted, and found among others."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernel_rows
from surelabel._core.packing import pack
from surelabel._kernels import packed

pytestmark = pytest.mark.kernels


def test_label_0_is_the_highest_bit():
    assert (pack(np.array([[True, False, True]])) >> np.uint64(61)).tolist() == [[5]]


@settings(max_examples=kernel_rows.examples(100))
@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=5))
def test_bits_are_counted(words):
    assert [int(packed.count_bits(np.uint64(word))) for word in words] == [word.bit_count() for word in words]


@settings(max_examples=kernel_rows.examples(60))
@given(st.data())
def test_a_label_set_is_found_among_ascending_ones(data):
    d = data.draw(st.sampled_from([3, 63, 64, 65, 130]))
    rows = np.array(data.draw(st.lists(st.lists(st.booleans(), min_size=d, max_size=d), min_size=1, max_size=6)))
    words = pack(np.unique(rows, axis=0))
    words = words[np.lexsort(words.T[::-1])]
    for i, word in enumerate(words):
        assert packed.find(words, word) == i
        assert packed.find(np.delete(words, i, axis=0), word) == -1


@settings(max_examples=kernel_rows.examples(60))
@given(st.data())
def test_shared_labels_are_counted(data):
    d = data.draw(st.sampled_from([3, 63, 64, 65, 130]))
    one, other = (np.array(data.draw(st.lists(st.booleans(), min_size=d, max_size=d))) for _ in range(2))
    assert packed.count_shared(*pack(np.stack([one, other]))) == np.count_nonzero(one & other)
