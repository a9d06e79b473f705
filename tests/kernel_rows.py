"""Rows of costs for kernels, drawn so that sums tie, nearly tie, or differ widely."""

import math

import numba
import numpy as np
from hypothesis import strategies as st

JIT = not numba.config.DISABLE_JIT
MAX_LABELS = 7 if JIT else 5
COSTS = st.one_of(
    st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0]),
    st.sampled_from([0.1, 0.2, 0.3, 0.7, 0.1 + 0.2, math.nextafter(0.3, 1.0)]),
    st.floats(0.0, 1e6, allow_subnormal=False),
    st.floats(0.0, 1e-9, allow_subnormal=False),
)


def examples(count):
    """Number of hypothesis examples, fewer where kernels are not compiled."""
    return count if JIT else max(10, count // 4)


@st.composite
def rows(draw, max_labels=MAX_LABELS):
    """(absent, present, limits, threshold): the threshold is often a total of the row, or next to one."""
    d = draw(st.integers(1, max_labels))
    costs = st.sampled_from(draw(st.lists(COSTS, min_size=1, max_size=5)))
    absent = draw(st.lists(costs, min_size=d, max_size=d))
    present = draw(st.lists(costs, min_size=d, max_size=d))
    lo = draw(st.integers(0, d))
    hi = draw(st.integers(lo, d))
    labels = draw(st.lists(st.booleans(), min_size=d, max_size=d))
    total = math.fsum(p if chosen else a for a, p, chosen in zip(absent, present, labels, strict=True))
    threshold = draw(
        st.sampled_from(
            [total, math.nextafter(total, math.inf), math.nextafter(total, -math.inf), total * 1.5, total / 2, 1e9]
        )
    )
    return np.array(absent), np.array(present), (lo, hi), float(threshold)
