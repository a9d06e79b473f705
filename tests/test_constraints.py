"""Constraints: counted exactly, checked, read from files, refused where they are not what they must be."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cases
import interaction_cases
import reference
from surelabel import ConformalLabelSets, LabelConstraints, LogLoss, counting
from surelabel.exceptions import InvalidInputError, SearchLimitError

NAMES = ("corn", "grain", "oil", "wheat")


@settings(max_examples=cases.examples(200))
@given(data=st.data())
def test_counts_by_size_are_those_of_all_label_sets(data):
    d = data.draw(st.integers(1, 7))
    constraints = data.draw(interaction_cases.constraints(d))
    rules = constraints.implications, constraints.exclusions, constraints.at_most
    every = reference.candidates(d, 0, d)
    valid = [row for row in every if reference.is_valid(row, *rules)]
    resolved = constraints.resolved(None, d)
    assert resolved.count_by_size(d) == tuple(sum(sum(row) == size for row in valid) for size in range(d + 1))
    assert resolved.obeyed_by(np.array(every, dtype=bool)).tolist() == [row in set(valid) for row in every]


def test_a_forest_of_many_labels_is_counted_in_parts():
    # A chain of n labels has n + 1 valid label-sets; ten chains of nine are independent of each other.
    forest = {10 * tree + k: 10 * tree + k - 1 for tree in range(10) for k in range(1, 10)}
    counts = LabelConstraints(forest=forest).resolved(None, 120).count_by_size(120)
    assert sum(counts) == 11**10 * 2**20
    stars = LabelConstraints(forest=dict.fromkeys(range(1, 200), 0)).resolved(None, 200).count_by_size(200)
    assert sum(stars) == 1 + 2**199


def test_groups_are_counted_by_binomials():
    counts = LabelConstraints(at_most=[(2, range(50))]).resolved(None, 60).count_by_size(60)
    assert sum(counts) == (1 + 50 + 1225) * 2**10


def test_tangled_constraints_are_given_up_with_an_error(monkeypatch):
    monkeypatch.setattr(counting, "_MAX_COMPONENTS", 3)
    rng = np.random.default_rng(0)
    pairs = [tuple(map(int, rng.choice(30, 2, replace=False))) for _ in range(60)]
    with pytest.raises(SearchLimitError, match="too many labels depend on each other"):
        LabelConstraints(exclusions=pairs).resolved(None, 30).count_by_size(30)


def test_a_report_says_who_breaks_what():
    constraints = LabelConstraints([("wheat", "grain")], [("oil", "grain")], [(2, NAMES)], {"corn": "grain"})
    labels = [["wheat"], ["grain", "wheat"], ["grain", "oil"], ["corn", "grain", "wheat"], ["corn", "wheat"]]
    report = constraints.check(labels, label_names=NAMES)
    assert report.rows == (0, 2, 3, 4)
    assert report.by_constraint() == {
        "wheat implies grain": 2,
        "grain excludes oil": 1,
        "at most 2 of corn, grain, oil, wheat": 1,
        "corn implies grain": 1,
    }
    assert str(report).startswith("4 of 5 label-sets do not obey the constraints:\n  wheat implies grain: 2")
    assert str(constraints.check([["grain"]], label_names=NAMES)) == "All 1 label-sets obey the constraints."
    many = LabelConstraints(exclusions=[range(6)]).check(np.ones((1, 6), dtype=bool))
    assert str(many).endswith("and 10 more constraints")


def test_constraints_come_back_from_a_file(tmp_path):
    constraints = LabelConstraints([("wheat", "grain")], [("oil", "grain")], [(2, NAMES)], {"corn": "grain"})
    path = tmp_path / "constraints.json"
    path.write_text(json.dumps(constraints.to_dict()))
    assert LabelConstraints.load(path) == constraints
    assert hash(LabelConstraints.load(path)) == hash(constraints)
    by_index = LabelConstraints(forest={1: 0})
    assert LabelConstraints.from_dict(by_index.to_dict()).resolved(None, 2) == by_index.resolved(None, 2)


def test_names_are_those_of_the_predictor():
    constraints = LabelConstraints(forest={"wheat": "grain", "corn": "grain"})
    predictor = ConformalLabelSets(LogLoss(), constraints=constraints, label_names=NAMES)
    predictor = predictor.calibrate([[0.1, 0.8, 0.1, 0.6]] * 20, [["grain", "wheat"]] * 20)
    assert predictor.calibration_.n_candidates == 9
    assert predictor.predict([[0.1, 0.3, 0.1, 0.9]]).label_sets == [frozenset({"grain", "wheat"})]
    assert {"wheat"} not in predictor.predict_set([[0.1, 0.3, 0.1, 0.9]], significance=0.1)[0]


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"must": []}', '{"at_most": [[2, ["a"]]]}', '{"implications": [["a"]]}', "\udcff"]
)
def test_files_that_are_not_of_constraints_are_refused(tmp_path, text):
    path = tmp_path / "constraints.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InvalidInputError):
        LabelConstraints.load(path)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LabelConstraints(implications=[("a",)]), "parameters of LabelConstraints must be"),
        (lambda: LabelConstraints(exclusions=["ab"]), "no collection of labels"),
        (lambda: LabelConstraints(implications=[(1.5, 2)]), "neither a label's name nor its index"),
        (lambda: LabelConstraints(at_most=[(-1, ["a"])]), "whole numbers, 0 or more"),
        (lambda: LabelConstraints(at_most=[(True, ["a"])]), "whole numbers, 0 or more"),
        (lambda: LabelConstraints(forest={"a": "b", "b": "a"}), "must have no cycle"),
        (lambda: LabelConstraints(forest={"a": "a"}), "must have no cycle"),
        (lambda: LabelConstraints([("a", "b")]).resolved(("a", "c"), 2), "there is no label of that name"),
        (lambda: LabelConstraints([("a", "b")]).resolved(None, 2), "label names are not known"),
        (lambda: LabelConstraints([(0, 2)]).resolved(None, 2), "labels 0 to 1"),
    ],
)
def test_bad_constraints_are_refused(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()
