"""Inputs of every kind: what is taken, and errors that name the parameter and the first offending place."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from surelabel import ConformalLabelSets, LpNorm
from surelabel._core.threads import over_rows, threads_to_use
from surelabel._core.validation import as_labels, as_probabilities
from surelabel.evaluation.criteria import of_criterion, s_criterion
from surelabel.exceptions import InvalidInputError

GOOD = np.array([[0.9, 0.2, 0.1], [0.3, 0.8, 0.4], [0.6, 0.5, 0.2], [0.1, 0.3, 0.7]])
LABELS = np.array([[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1]])


def replaced(row, column, value):
    changed = GOOD.copy()
    changed[row, column] = value
    return changed


@pytest.mark.parametrize(
    ("wrong", "place"),
    [
        (replaced(2, 1, math.nan), "nan in row 2, column 1"),
        (replaced(1, 2, math.inf), "inf in row 1, column 2"),
        (replaced(0, 0, np.nextafter(1, 2)), "row 0, column 0"),
        (replaced(3, 2, -1e-9), "row 3, column 2"),
        (GOOD[0], "reshape one text"),
        (GOOD[:0], "at least one text"),
        (GOOD + 0j, "complex"),
        (np.ma.array(GOOD, mask=GOOD > 0.8), "masked"),
        (csr_matrix(GOOD), "sparse"),
        ([["a", "b", "c"]], "type"),
        ([[0.1], [0.2, 0.3]], "list"),
        ([GOOD, GOOD[:2]], "label 0"),
        (None, "shape"),
    ],
)
def test_probabilities_that_cannot_be(wrong, place):
    predictor = ConformalLabelSets().calibrate(GOOD, LABELS)
    for name, call in {
        "calibrate": lambda: ConformalLabelSets().calibrate(wrong, LABELS),
        "predict": lambda: predictor.predict(wrong),
        "predict_p": lambda: predictor.predict_p(wrong, LABELS),
        "predict_set": lambda: predictor.predict_set(wrong, significance=0.5),
        "s_criterion": lambda: s_criterion(predictor, wrong),
    }.items():
        with pytest.raises(InvalidInputError, match=f"'probabilities' parameter of {name} .*{place}"):
            call()


@pytest.mark.parametrize(
    ("wrong", "place"),
    [
        (LABELS * 2, "2 in row 0, column 0"),
        (LABELS + 0.5, "1.5 in row 0, column 0"),
        (csr_matrix(LABELS * 3), "3 in row 0, column 0"),
        (LABELS[:3], "4"),
        (LABELS[:, :2], "3 labels"),
        (["a", "b", "c", "d"], "'a' in row 0"),
        ([{0}, {1}, 2, {0}], "2 in row 2"),
        ("abcd", "labels"),
    ],
)
def test_labels_that_cannot_be(wrong, place):
    with pytest.raises(InvalidInputError, match=f"'labels' parameter of calibrate .*{place}"):
        ConformalLabelSets().calibrate(GOOD, wrong)


def test_inputs_of_every_kind_are_the_same():
    two = np.stack([1 - GOOD.T, GOOD.T], axis=2)
    kinds = [GOOD.tolist(), np.asfortranarray(GOOD), GOOD.astype(object), pd.DataFrame(GOOD), two, list(two)]
    for values in kinds:
        assert np.array_equal(as_probabilities(values, None, "test"), GOOD)
    named = [["a"], ("b",), {"a", "b"}, frozenset("c")]
    kinds = [LABELS, LABELS.tolist(), LABELS.astype(bool), csr_matrix(LABELS), pd.DataFrame(LABELS), named]
    kinds += [pd.Series(named), np.array([{0}, {1}, {0, 1}, {2}], dtype=object)]
    for values in kinds:
        names = None if isinstance(values, np.ndarray) and values.dtype == object else ("a", "b", "c")
        rows, has_unknown = as_labels(values, 4, 3, names, "test")
        assert np.array_equal(rows, LABELS)
        assert not has_unknown.any()
    rows, has_unknown = as_labels([[], ["a", "x"]], 2, 3, ("a", "b", "c"), "test")
    assert rows.tolist() == [[False] * 3, [True, False, False]]
    assert has_unknown.tolist() == [False, True]


def test_s_and_of_by_hand():
    # n = 1 with total 1/4; {0} and {1} under L1 of (3/4, 1/4) cost 1/2 and 3/2, of (1, 0) they cost 0 and 2.
    predictor = ConformalLabelSets(LpNorm(1), max_labels=1).calibrate([[1.0, 0.25]], [[1, 0]])
    sums = s_criterion(predictor, [[0.75, 0.25], [1.0, 0.0]])
    assert sums.floor.tolist() == [1.0, 1.0]
    assert sums.lower.tolist() == sums.upper.tolist() == [0.0, 0.5]
    assert (sums.excess, sums.mean) == ((0.25, 0.25), (1.25, 1.25))
    assert of_criterion(predictor, [[1.0, 0.0]], [[1, 1]]).mean == s_criterion(predictor, [[1.0, 0.0]]).mean
    of = of_criterion(predictor, [[1.0, 0.0]], [[1, 0]])
    assert (of.floor.tolist(), of.excess, of.mean) == ([0.5], (0.0, 0.0), (0.5, 0.5))


def test_blocks_come_back_in_order(monkeypatch):
    for n_jobs in (1, 4, None):
        parts = over_rows(lambda rows: list(range(rows.start, rows.stop)), 1000, n_jobs, step=7)
        assert [row for part in parts for row in part] == list(range(1000))
    monkeypatch.setenv("SURELABEL_NUM_THREADS", "3")
    assert (threads_to_use(None), threads_to_use(2)) == (3, 2)
