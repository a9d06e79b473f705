"""Quadratic forms are right to the last bit, or say that they may not be."""

import math
from fractions import Fraction

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernel_rows
import reference
from surelabel._kernels import quadratic

pytestmark = pytest.mark.kernels
VALUES = st.sampled_from([0.0, 1.0, 0.5, 0.1, 1 / 3, 1e-17, 0.9, 5e-324])


@settings(max_examples=kernel_rows.examples(200))
@given(st.data())
def test_settled_totals_are_the_correctly_rounded_ones(data):
    d = data.draw(st.integers(1, 5 if numba.config.DISABLE_JIT == 0 else 3))
    entries = st.sampled_from([1.0, -0.1, 0.3, 1e9, -1e-9, 2.0])
    upper = np.array([[data.draw(entries) for _ in range(d)] for _ in range(d)])
    matrix = np.triu(upper) + np.triu(upper, 1).T
    row = np.array(data.draw(st.lists(VALUES, min_size=d, max_size=d)))
    labels = np.array(reference.candidates(d, 0, d), dtype=bool)
    totals, settled = np.empty(len(labels)), np.empty(len(labels), dtype=bool)
    quadratic.totals_of_label_sets(matrix, row, labels, totals, settled)
    alone, sure = np.empty(len(labels)), np.empty(len(labels), dtype=bool)
    quadratic.totals_of_rows(matrix, np.repeat(row[None, :], len(labels), axis=0), labels, alone, sure)
    for i, label_set in enumerate(labels):
        exact = reference.exact_quadratic_total(matrix, row.tolist(), label_set)
        assert not settled[i] or totals[i] == float(exact)
        assert not sure[i] or alone[i] == float(exact)
        # Sums without cancellation or underflow leave nothing open, ties between two doubles apart.
        is_plain = matrix.min() > 0 and len(set(row.tolist()) - {0.1, 1 / 3, 0.9}) == 0
        if exact > 1e-9 and is_plain and not _is_near_tie(exact):
            assert settled[i]


def _is_near_tie(exact):
    """Whether a number lies half-way between two doubles, but for an error of a pair of doubles."""
    nearest = float(exact)
    middles = [(Fraction(nearest) + Fraction(math.nextafter(nearest, end))) / 2 for end in (0.0, math.inf)]
    return any(abs(exact - middle) < exact / 2**90 for middle in middles)


def test_a_tie_between_two_doubles_is_not_settled():
    # 1 + 2^-53 lies half-way between two doubles: its last bits decide, and they are beyond any pair's error.
    matrix = np.array([[1.0, 0.0], [0.0, 2.0**-53]])
    totals, settled = np.empty(1), np.empty(1, dtype=bool)
    quadratic.totals_of_rows(matrix, np.array([[1.0, 1.0]]), np.array([[False, False]]), totals, settled)
    assert not settled[0]
