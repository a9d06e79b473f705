"""Figures by kind of text: counted by hand, and kept through JSON."""

import json

import numpy as np
import pytest

from surelabel import ByGroup, ConformalLabelSets, LogLoss
from surelabel.evaluation.conditional import TextDetails, month_of
from surelabel.evaluation.evaluate import Evaluation, evaluate
from surelabel.exceptions import ArtifactError, InvalidInputError


def drawn(n_texts, seed):
    rng = np.random.default_rng(seed)
    probabilities = rng.beta(0.4, 0.9, size=(n_texts, 4))
    labels = rng.random((n_texts, 4)) < probabilities
    labels[~labels.any(axis=1), 0] = True
    return probabilities, labels


@pytest.fixture(scope="module")
def measured():
    predictor = ConformalLabelSets(LogLoss(), label_names=list("abcd"), taxonomy=ByGroup())
    probabilities, labels = drawn(400, 0)
    predictor.calibrate(probabilities, labels, groups=["x", "y"] * 200)
    probabilities, labels = drawn(300, 1)
    groups = ["x", "y", "y"] * 100
    details = TextDetails(
        [f"t{k}" for k in range(300)], ["2026-01-05", "28.2.2026", "2026-01-31T10:00"] * 100, [2000, 500, 50, 5]
    )
    evaluation = evaluate(predictor, probabilities, labels, criteria=False, groups=groups, details=details)
    sets = predictor.predict_set(probabilities, significance="0.05", groups=groups)
    return evaluation, labels, np.array(groups), sets


def shares(evaluation, division):
    return {kind.name: (kind.n_texts, kind.missed) for kind in evaluation.conditional.kinds[division]}


def test_misses_are_those_of_each_kind(measured):
    evaluation, labels, groups, sets = measured
    missed = ~sets.contains(labels)
    n_true = labels.sum(axis=1)
    assert shares(evaluation, "number of true labels") == {
        name: (int(rows.sum()), pytest.approx(missed[rows].mean()))
        for name, rows in (("1 label", n_true == 1), ("2 labels", n_true == 2), ("3 or more labels", n_true > 2))
    }
    assert shares(evaluation, "group") == {
        name: (int((groups == name).sum()), pytest.approx(missed[groups == name].mean())) for name in "xy"
    }
    assert shares(evaluation, "month")["2026-02"] == (100, pytest.approx(missed[1::3].mean()))
    assert list(shares(evaluation, "month")) == ["2026-01", "2026-02"]
    rarest = labels[:, 3]
    assert shares(evaluation, "rarest label")["fewer than 10 training texts"] == (
        int(rarest.sum()), pytest.approx(missed[rarest].mean())
    )  # fmt: skip
    only_first = labels[:, 0] & ~labels[:, 1:].any(axis=1)
    assert shares(evaluation, "rarest label")["1,000 or more"][0] == int(only_first.sum())
    single = sets.sizes() == 1
    assert shares(evaluation, "plausible label-sets")["1 plausible label-set"] == (
        int(single.sum()), pytest.approx(missed[single].mean())
    )  # fmt: skip


def test_labels_have_support_precision_and_recall(measured):
    evaluation, labels, _, _ = measured
    label = evaluation.conditional.labels[1]
    assert (label.name, label.support) == ("b", int(labels[:, 1].sum()))
    assert 0 <= label.precision <= 1
    assert 0 <= label.recall <= 1


def test_kinds_far_past_the_level_are_broken_and_come_worst_first():
    probabilities, labels = drawn(600, 0)
    predictor = ConformalLabelSets(LogLoss()).calibrate(probabilities[:300], labels[:300])
    labels = labels.copy()
    labels[300:450] = True
    evaluation = evaluate(predictor, probabilities[300:], labels[300:], criteria=False)
    (division, kind), *_ = evaluation.conditional.broken
    assert (division, kind.name) == ("number of true labels", "3 or more labels")
    assert kind.missed > 0.2


def test_json_keeps_them_and_damage_is_noticed(measured):
    evaluation = measured[0]
    values = json.loads(json.dumps(evaluation.to_dict()))
    again = Evaluation.from_dict(values)
    assert again.conditional == evaluation.conditional
    for change in ({"n_sure": "many"}, {"kinds": 3}, {"labels": [{"name": 1}]}, {"unknown": 1}):
        with pytest.raises(ArtifactError):
            Evaluation.from_dict({**values, "conditional": {**values["conditional"], **change}})
    values.pop("conditional")
    assert Evaluation.from_dict(values).conditional is None  # a file of an older version


def test_dates_that_are_none_are_named():
    with pytest.raises(InvalidInputError, match="must be like 2026-05-31"):
        month_of("yesterday")
    probabilities, labels = drawn(120, 0)
    predictor = ConformalLabelSets(LogLoss()).calibrate(probabilities[:60], labels[:60])
    details = TextDetails(ids=list(map(str, range(60))), dates=["2026-01-01"] * 59 + ["?"])
    with pytest.raises(InvalidInputError, match="Text '59'"):
        evaluate(predictor, probabilities[60:], labels[60:], criteria=False, details=details)
