"""Totals are correctly rounded: `math.fsum`, to the last bit, over all exponents."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernel_rows
from surelabel._core.packing import pack
from surelabel._kernels import exact_sum

pytestmark = pytest.mark.kernels

TERMS = st.one_of(
    st.builds(math.ldexp, st.floats(0.5, 1.0, exclude_max=True), st.integers(-1070, 1000)),
    st.floats(0.0, 1.0),
    st.sampled_from([0.0, 0.1, 0.3, 1.0, 2.0**53]),
)


def _total(terms):
    absent = np.array(terms)
    out = np.empty(1)
    starts, nothing = np.array([0, len(terms)]), np.zeros(len(terms), dtype=np.uint8)
    exact_sum.totals_of_flat(starts, absent, absent + 1.0, nothing, out)
    return out[0]


@settings(max_examples=kernel_rows.examples(400))
@given(st.lists(TERMS, min_size=1, max_size=24))
def test_totals_are_correctly_rounded(terms):
    assert _total(terms) == math.fsum(terms)


@settings(max_examples=kernel_rows.examples(100))
@given(st.lists(TERMS, min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_totals_do_not_depend_on_the_order_of_labels(terms, random):
    shuffled = list(terms)
    random.shuffle(shuffled)
    assert _total(shuffled) == _total(terms)


@pytest.mark.parametrize(
    ("terms", "total"),
    [
        ([0.1, 0.2, 0.3], 0.6),  # left to right it is 0.6000000000000001
        ([0.1] * 10, 1.0),
        ([1.0, 2.0**-53], 1.0),  # half way: to even
        ([1.0, 2.0**-53, 2.0**-1000], 1.0 + 2.0**-52),  # a trace above half way: up
        ([1.0 + 2.0**-52, 2.0**-53], 1.0 + 2.0**-51),  # half way: to even, up
        ([2.0**53, 1.0, 1.0], 2.0**53 + 2),
        ([0.0, 0.0], 0.0),
        ([5e-324, 5e-324], 1e-323),
    ],
)
def test_hand_computed_totals(terms, total):
    assert _total(terms) == total
    assert math.fsum(terms) == total


@pytest.mark.parametrize("step", [1, 2, 3, 17, 53, 54])
def test_many_terms_of_every_exponent_fit_the_partials(step):
    # Ascending terms peel one bit off after the other: hundreds of partials.
    terms = [2.0**k for k in range(-1074, 1000, step)]
    assert _total(terms) == math.fsum(terms)
    assert _total(terms[::-1]) == math.fsum(terms)


def test_sharp_probabilities_in_ascending_order_fit_the_partials():
    # What a sure classifier gives under L8 needs 70 partials at 90 labels, hundreds at 1,000.
    rng = np.random.default_rng(0)
    for d in (90, 1000):
        costs = np.sort(1.0 / (1.0 + np.exp(-rng.normal(-20.0, 20.0, d)))) ** 8
        assert _total(costs) == math.fsum(costs)


def test_packed_and_plain_label_sets_have_one_total():
    rng = np.random.default_rng(0)
    absent, present = rng.random(130), rng.random(130)
    labels = rng.random((20, 130)) < 0.5
    packed, plain = np.empty(20), np.empty(20)
    exact_sum.totals_of_words(absent, present, pack(labels), packed)
    exact_sum.totals_of_rows(np.tile(absent, (20, 1)), np.tile(present, (20, 1)), labels, plain)
    assert packed.tolist() == plain.tolist()
    assert plain.tolist() == [math.fsum(np.where(row, present, absent)) for row in labels]


def test_the_band_holds_every_order_of_addition():
    rng = np.random.default_rng(1)
    for _ in range(20):
        terms = rng.random(6) ** 4
        exact = math.fsum(terms)
        for order in itertools.permutations(range(6)):
            running = 0.0
            for k in order:
                running += terms[k]
            assert abs(running - exact) <= exact_sum.band(6) * exact
