"""The count of kinds of label-sets in one pass: as all label-sets are counted one by one, with ties."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from surelabel._kernels.kinds import count_kinds
from surelabel._kernels.walk import OVER_LIMIT


def reference(absent, present, thresholds, limits, rarest, of_label, last):
    """Count label-set after label-set."""
    sizes = np.zeros(thresholds.shape, dtype=np.int64)
    for i, member in itertools.product(range(len(absent)), itertools.product((0, 1), repeat=absent.shape[1])):
        chosen = np.array(member, dtype=bool)
        total = np.where(chosen, present[i], absent[i]).sum()
        kind = min((of_label[k] for k in np.flatnonzero(chosen)), default=last)
        for j, (lo, hi) in enumerate(limits):
            sizes[i, j] += kind == rarest[j] and lo <= chosen.sum() <= hi and total <= thresholds[i, j]
    return sizes


def counted(costs, thresholds, limits, rarest, classes, limit=10**6):
    sizes = np.empty(thresholds.shape, dtype=np.int64)
    count_kinds(costs, thresholds, limits, rarest, classes, limit, sizes)
    return sizes


def test_by_hand():
    # Flips from {0}: add label 1 for 1, add label 2 for 3, remove label 0 for 2.
    costs = np.array([[2.0, 0.0, 0.0]]), np.array([[0.0, 1.0, 3.0]])
    of_label = np.array([1, 0, 1])
    limits = np.array([[1, 1], [2, 3], [1, 1], [2, 3]])
    rarest = np.array([0, 0, 1, 1])
    sizes = counted(costs, np.full((1, 4), 3.0), limits, rarest, (of_label, 1))
    # {1} costs 3; {0, 1} costs 1; {0} costs 0; {0, 2} costs 3; {0, 1, 2} and {1, 2} cost too much.
    assert sizes.tolist() == [[1, 1, 1, 1]]


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 3))
def test_as_counted_one_by_one(seed, n_labels, n_classes):
    rng = np.random.default_rng(seed)
    # Small whole numbers: sums are exact, and many of them equal a threshold.
    absent, present = rng.integers(0, 5, size=(2, 4, n_labels)).astype(np.float64)
    of_label = rng.integers(0, n_classes, n_labels)
    ends = [(0, 1), (2, 2), (3, n_labels)]
    kinds = [(lo, hi, c) for lo, hi in ends if lo <= hi for c in range(n_classes)]
    limits, rarest = np.array([kind[:2] for kind in kinds]), np.array([kind[2] for kind in kinds])
    thresholds = rng.integers(-1, 12, size=(4, len(kinds))).astype(np.float64)
    thresholds[rng.random(thresholds.shape) < 0.1] = -np.inf
    sizes = counted((absent, present), thresholds, limits, rarest, (of_label, n_classes - 1))
    assert np.array_equal(sizes, reference(absent, present, thresholds, limits, rarest, of_label, n_classes - 1))


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 4))
def test_large_kinds_as_counted_one_by_one(seed, n_classes):
    """More label-sets than are counted by a difference: by the first label of the class, with ties of prices."""
    rng = np.random.default_rng(seed)
    n_labels = 15
    absent, present = rng.integers(0, 3, size=(2, 1, n_labels)).astype(np.float64)
    of_label = rng.integers(0, n_classes, n_labels)
    kinds = [(lo, hi, c) for lo, hi in ((0, n_labels), (1, 6), (9, 12)) for c in range(n_classes)]
    limits, rarest = np.array([kind[:2] for kind in kinds]), np.array([kind[2] for kind in kinds])
    thresholds = rng.integers(4, 26, size=(1, len(kinds))).astype(np.float64)
    members = (np.arange(2**n_labels)[:, None] >> np.arange(n_labels)) & 1 == 1
    totals, n_members = np.where(members, present[0], absent[0]).sum(axis=1), members.sum(axis=1)
    kind = np.where(members, of_label, n_classes - 1).min(axis=1)
    expected = [
        int(((kind == c) & (lo <= n_members) & (n_members <= hi) & (totals <= at)).sum())
        for (lo, hi, c), at in zip(kinds, thresholds[0], strict=True)
    ]
    assert counted((absent, present), thresholds, limits, rarest, (of_label, n_classes - 1))[0].tolist() == expected


def test_a_kind_that_takes_too_many_steps_is_given_up():
    absent, present = np.zeros((1, 40)), np.linspace(0.001, 0.002, 40)[None, :]
    sizes = counted(
        (absent, present), np.full((1, 2), 1.0), np.array([[0, 1], [0, 40]]), np.zeros(2, dtype=np.int64),
        (np.zeros(40, dtype=np.int64), 0), limit=500,
    )  # fmt: skip
    assert sizes.tolist() == [[41, OVER_LIMIT]]
