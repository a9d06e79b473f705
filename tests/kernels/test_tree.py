"""The tree of flips visits every member once, in whatever pieces it is walked."""

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cases
import interaction_cases
import kernel_rows
import reference
from surelabel._core.packing import unpack
from surelabel._kernels import combinations, tree
from surelabel.calibration import Calibration
from surelabel.engines.forms import problem_of

pytestmark = pytest.mark.kernels
MAX_LABELS = 5 if numba.config.DISABLE_JIT == 0 else 3


def _walk(form, problem, threshold, capacity, listing, step=10**9):
    """All label-sets that a walk gives back, and how many it counted."""
    width = problem.penalties.seen.shape[1]
    stack = tree.make_stack(len(form.member), len(form.member), width)
    tree.open_tree(form, stack)
    out = np.empty((capacity, width), dtype=np.uint64)
    counts = np.zeros(len(form.member), dtype=np.int64)
    given_back, limit, done = [], step, False
    while not done:
        done = tree.advance(form, problem.penalties, problem.rules, threshold, stack, out, counts, listing, limit)
        given_back.append(out[: stack.state[tree.WRITTEN]].copy())
        limit += step
    return (
        unpack(np.concatenate(given_back), len(form.member)),
        int(stack.state[tree.FOUND]),
        counts,
        float(stack.beyond[0]),
    )


@settings(max_examples=kernel_rows.examples(120), deadline=None)
@given(st.data())
def test_every_candidate_within_the_threshold_is_given_once(data):
    d = data.draw(st.integers(1, MAX_LABELS))
    lo = data.draw(st.integers(0, d))
    hi = data.draw(st.integers(lo, d))
    measure = data.draw(interaction_cases.measures(d))
    constraints = data.draw(st.one_of(st.none(), interaction_cases.constraints(d)))
    rules = None if constraints is None else constraints.resolved(None, d)
    calibration = Calibration(measure, np.zeros(1), d, lo, hi, None, rules)
    problem = problem_of(calibration)
    row = data.draw(cases.probabilities_of(1, d))[0]
    every = np.array(reference.candidates(d, lo, hi), dtype=bool)
    every = every[calibration.is_candidate(every)]
    totals = measure.totals_of_label_sets(row, every)
    threshold = float(data.draw(st.sampled_from([*totals.tolist(), 0.0, 1.0, np.inf])))
    members = {tuple(labels) for labels in every[totals <= threshold].tolist()}
    capacity, step = data.draw(st.sampled_from([1, 3, 100])), data.draw(st.sampled_from([1, 10**6]))
    form = problem.form(row, threshold)
    listed, _, _, beyond = _walk(form, problem, threshold, capacity, True, step)
    rows = [tuple(labels) for labels in listed.tolist()]
    assert len(set(rows)) == len(rows)
    assert members <= set(rows)
    assert all(calibration.is_candidate(listed)) if len(listed) else not members
    left = [
        total for total, labels in zip(totals.tolist(), every.tolist(), strict=True) if tuple(labels) not in set(rows)
    ]
    assert all(beyond <= total * (1 + 1e-9) + 1e-9 for total in left)
    undecided, found, counts, _ = _walk(form, problem, threshold, capacity, False, step)
    late = measure.totals_of_label_sets(row, undecided) <= threshold if len(undecided) else np.zeros(0, dtype=bool)
    assert found + int(late.sum()) == len(members)
    expected = np.array(sorted(members), dtype=bool).reshape(len(members), d).sum(axis=0)
    assert (counts + undecided[late].sum(axis=0)).tolist() == expected.tolist()


@pytest.mark.parametrize("capacity", [1, 2, 100])
def test_combinations_are_filled_in_pieces(capacity):
    chosen, state = np.empty(5, dtype=np.int64), np.array([1, 3, 0], dtype=np.int64)
    words = np.empty((capacity, 1), dtype=np.uint64)
    rows = []
    while filled := combinations.fill_combinations(4, chosen, state, words):
        rows += unpack(words[:filled], 4).astype(int).tolist()
    assert sorted(map(tuple, rows)) == sorted(reference.candidates(4, 1, 3))
