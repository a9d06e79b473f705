"""Label constraints: rules, reports, contradictions, and bounds where too few label-sets obey."""

import json
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from core.problems import draw_rules
from surelabel import ConformalLabelSets, LabelConstraints, LpNorm
from surelabel.exceptions import InvalidInputError, SearchLimitError

pytestmark = pytest.mark.filterwarnings("ignore::surelabel.exceptions.CalibrationWarning")


@settings(max_examples=60)
@given(seed=st.integers(0, 10**9))
def test_contradictions_are_never_claimed_wrongly(seed):
    rng = random.Random(seed)
    d = rng.randint(1, 7)
    least = rng.randint(0, d)
    most, rules = rng.randint(least, d), draw_rules(rng, d)
    found = LabelConstraints(**rules).rules(None, d).contradiction(least, most)
    assert found is None or not reference.candidates(d, least, most, rules)


def test_contradictions_are_named():
    labels = [[1, 0, 0]] * 3
    for rules, limits, match in (
        ({"at_least": [(1, [0])], "at_most": [(0, [0])]}, (1, 3), "at least 1 of 0"),
        ({"implications": [(0, 1), (1, 2), (2, 0)], "exclusions": [[0, 2]]}, (1, 3), "0, 2 exclude"),
        ({"at_least": [(1, [0]), (1, [1])], "exclusions": [[0, 1]]}, (0, 3), "contradict each other"),
        ({"implications": [(0, 1), (1, 2), (2, 0)]}, (1, 2), "more than 2"),
    ):
        with pytest.raises(InvalidInputError, match=match):
            ConformalLabelSets(LpNorm(2), *limits, constraints=LabelConstraints(**rules)).calibrate(
                [[0.5, 0.2, 0.1]] * 3, labels
            )


def test_a_tree_of_thousands_of_labels():
    d, rng = 4000, np.random.default_rng(0)
    parents = {k: (k - 1) // 3 for k in range(1, d)}
    probabilities = np.full((30, d), 1e-4)
    labels = [{int(k), parents[k], parents[parents[k]], 0} for k in rng.integers(4, 12, 30)]
    for row, label_set in enumerate(labels):
        probabilities[row, list(label_set)] = rng.uniform(0.6, 0.99, len(label_set))
    predictor = ConformalLabelSets(max_labels=12, constraints=LabelConstraints(forest=parents)).calibrate(
        probabilities, labels
    )
    assert predictor.calibration_.n_outside == 0
    guess = predictor.predict(probabilities[:3])
    assert guess.label_sets == [frozenset(label_set) for label_set in labels[:3]]


def test_reports_and_files(tmp_path):
    names = ["corn", "grain", "oil", "wheat"]
    rules = LabelConstraints(
        forest={"wheat": "grain", "corn": "grain"}, exclusions=[("grain", "oil")], at_most=[(2, names)]
    )
    report = rules.check([["wheat"], ["grain", "corn"], ["wheat", "oil", "corn"]], names)
    assert report.rows == (0, 2)
    assert report.by_constraint() == {
        "wheat implies grain": 2,
        "corn implies grain": 1,
        "at most 2 of corn, grain, oil, wheat": 1,
    }
    assert "2 of 3" in str(report)
    path = tmp_path / "rules.json"
    path.write_text(json.dumps(rules.to_dict()))
    assert LabelConstraints.load(path) == rules
    for text in (
        "{",
        '{"implies": []}',
        '{"at_most": [[2, ["a"]]]}',
        '{"exclusions": ["ab"]}',
        "[]",
        '{"forest": [1]}',
    ):
        path.write_text(text)
        with pytest.raises(InvalidInputError):
            LabelConstraints.load(path)


def test_rules_are_checked():
    for wrong in (
        {"exclusions": ["ab"]}, {"implications": [("a",)]}, {"at_most": [(-1, ["a"])]}, {"at_least": [("a", 1)]},
        {"implications": [(True, 1)]}, {"at_most": [(1.5, [1])]}, {"forest": {"a": "b", "b": "a"}}, {"exclusions": 3},
    ):  # fmt: skip
        with pytest.raises(InvalidInputError, match="LabelConstraints"):
            LabelConstraints(**wrong)
    unknown = LabelConstraints(implications=[("zebra", "a")])
    with pytest.raises(InvalidInputError, match="zebra"):
        ConformalLabelSets(label_names=["a", "b"], constraints=unknown).calibrate([[0.5, 0.2]], [[1, 0]])


def test_past_their_limit_answers_stay_true():
    rng = np.random.default_rng(0)
    probabilities, labels = rng.uniform(0.3, 0.7, (40, 14)), rng.random((40, 14)) < 0.4
    rules = LabelConstraints(implications=[(k, k + 1) for k in range(0, 12, 2)], at_most=[(5, range(14))])
    labels[:, 1:13:2] |= labels[:, 0:12:2]
    exact, rough = (
        ConformalLabelSets(constraints=rules, work_limit=limit).calibrate(probabilities, labels)
        for limit in (10**6, 16 * 500)
    )
    sets, bounded = (cp.predict_set(probabilities, significance=0.3) for cp in (exact, rough))
    (lower, upper), sizes = bounded.size_bounds(), sets.sizes()
    assert np.all(lower <= sizes)
    assert np.all(sizes <= upper)
    assert np.any(lower < upper)
    (certain, possible), (rough_certain, rough_possible) = sets.status(), bounded.status()
    assert not (rough_certain & ~certain).any()
    assert not (possible & ~rough_possible).any()
    for one, two in zip(sets, bounded, strict=True):
        assert one.top(3)[: len(two.top(3))] == two.top(3)
    with pytest.raises(SearchLimitError, match="between"):
        bounded.sizes()
    strict = LabelConstraints(at_least=[(13, range(14))])
    with pytest.raises(SearchLimitError, match="obey"):
        ConformalLabelSets(constraints=strict, work_limit=160).calibrate(probabilities, labels).predict(probabilities)
