"""Constraints: counted exactly, checked, read from files, refused where they are not what they must be."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.dummy import DummyClassifier

import cases
import interaction_cases
import reference
from surelabel import ConformalLabelSets, ConformalMultilabelClassifier, LabelConstraints, LogLoss, Penalised
from surelabel.exceptions import InvalidInputError, SearchLimitError
from surelabel.labels import counting
from surelabel.labels.constraints import _smallest, _together

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
    counting.count_valid_by_size.cache_clear()
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
        (lambda: LabelConstraints(exclusions=["ab"]), "not a collection of labels"),
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


@pytest.mark.parametrize(
    ("constraints", "limits", "told"),
    [
        # The first rule has nothing to do with it.
        (
            LabelConstraints([("corn", "grain")], at_most=[(1, NAMES), (0, NAMES)]),
            (1, None),
            "1 to 4 of 4 labels. What contradicts these limits: at most 0 of corn, grain, oil, wheat.",
        ),
        (
            LabelConstraints(exclusions=[("grain", "oil"), NAMES]),
            (2, 3),
            "2 to 3 of 4 labels. What contradicts these limits: corn, grain, oil, wheat exclude each other.",
        ),
        # Of a cycle of implications no one can be left out.
        (
            LabelConstraints([("corn", "grain"), ("grain", "oil"), ("oil", "wheat"), ("wheat", "corn")]),
            (1, 3),
            "corn implies grain; grain implies oil; oil implies wheat; wheat implies corn.",
        ),
    ],
)
def test_a_contradiction_is_an_error_at_construction_that_names_the_rules(constraints, limits, told):
    with pytest.raises(InvalidInputError, match=re.escape(told)):
        ConformalLabelSets(LogLoss(), *limits, label_names=NAMES, constraints=constraints)
    # The labels are not known yet: it is told as soon as they are.
    later = ConformalLabelSets(LogLoss(), *limits, constraints=constraints)
    with pytest.raises(InvalidInputError, match=re.escape(told)):
        later.calibrate(pd.DataFrame([[0.1, 0.8, 0.1, 0.6]] * 20, columns=NAMES), [["grain"]] * 20)


def test_a_fitted_measure_knows_how_many_labels_there_are():
    measure = Penalised(LogLoss(), hamming=1.0).fit(np.eye(3, dtype=bool))
    with pytest.raises(InvalidInputError, match="leaves no candidate with 1 to 3 of 3 labels"):
        ConformalLabelSets(measure, constraints=LabelConstraints(at_most=[(0, range(3))]))
    with pytest.raises(InvalidInputError, match="'min_labels' parameter"):
        ConformalLabelSets(measure, min_labels=4)


def test_a_meta_estimator_tells_of_a_contradiction_before_it_fits_anything():
    class Never(DummyClassifier):
        def fit(self, X, y):
            raise AssertionError("fitted")

    constraints = LabelConstraints([(0, 1), (1, 2), (2, 0)])
    model = ConformalMultilabelClassifier(Never(), constraints=constraints)
    labels = np.eye(3, dtype=int)
    with pytest.raises(InvalidInputError, match="leaves no candidate with 1 to 1 of 3 labels"):
        model.fit(np.zeros((3, 2)), labels)
    with pytest.raises(AssertionError, match="fitted"):
        model.set_params(max_labels=None).fit(np.zeros((3, 2)), labels)


@settings(max_examples=cases.examples(100))
@given(data=st.data())
def test_the_rules_that_are_named_contradict_and_none_can_be_left_out(data):
    d = data.draw(st.integers(1, 5))
    constraints = data.draw(interaction_cases.constraints(d))
    fewest = data.draw(st.integers(1, d))
    rules = list(constraints._rules())

    def contradict(some):
        joined = _together(some)
        valid = joined.resolved(None, d).count_by_size(d)[fewest:]
        return not sum(valid)

    assume(contradict(rules))
    found = _smallest(contradict, rules)
    assert contradict(found)
    assert not any(contradict(found[:i] + found[i + 1 :]) for i in range(len(found)))


def test_rules_too_tangled_to_be_told_apart_are_all_named(monkeypatch):
    def give_up(contradict, rules):
        raise SearchLimitError("too much")

    monkeypatch.setattr("surelabel.labels.constraints._smallest", give_up)
    constraints = LabelConstraints(at_most=[(0, [k]) for k in range(8)])
    with pytest.raises(InvalidInputError, match="at most 0 of 4; and 3 more"):
        constraints.check_candidates(None, 8, 1, None, who="test")


def test_counts_of_a_few_labels():
    assert counting.binomials(4) == (1, 4, 6, 4, 1)
    assert (counting.count_by_size(4, 1, 2), counting.count_by_size(4, 1, 4)) == (10, 15)
    assert counting.count_valid_by_size(3, ((0, 1, 0),), ()) == (1, 2, 2, 1)  # the first label needs the second
