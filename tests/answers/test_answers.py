"""Answers: against the predictor and the policy, one text and many, groups by decision, records, how little is run."""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import surelabel
from surelabel.answers import Answer, build_answers
from surelabel.conformal import ConformalLabelSets
from surelabel.exceptions import CalibrationWarning, InvalidInputError
from surelabel.guarantees.decisions import FILE, Evidence, FilingPolicy
from surelabel.guarantees.groups import ByCardinality, ByGroup
from surelabel.labels.constraints import LabelConstraints
from surelabel.labels.shortlists import Shortlists
from surelabel.measures import LogLoss, LpNorm

NAMES = tuple("abcdef")
pytestmark = pytest.mark.filterwarnings("ignore::surelabel.exceptions.CalibrationWarning")


def texts(rng, n, d=6):
    """Texts half of which are easy."""
    easy = rng.random(n) < 0.5
    probabilities = np.where(easy[:, None], 0.004, rng.beta(0.5, 1.5, (n, d)))
    probabilities[np.arange(n), rng.integers(0, d, n)] = np.where(easy, 0.996, 0.6)
    labels = rng.random((n, d)) < probabilities
    labels[np.arange(n), probabilities.argmax(axis=1)] = True
    return probabilities, labels


RNG = np.random.default_rng(0)
FILING, CALIBRATION, NEW = texts(RNG, 400), texts(RNG, 400), texts(RNG, 60)[0]


@pytest.fixture(scope="module")
def policy():
    with warnings.catch_warnings(action="ignore", category=CalibrationWarning):
        return FilingPolicy("0.1", label_names=NAMES).calibrate(Evidence(*FILING), Evidence(*CALIBRATION))


def predictor(measure=None, **options):
    groups = options.pop("groups", None)
    options = {"label_names": NAMES} | options
    return ConformalLabelSets(measure or LogLoss(), **options).calibrate(*CALIBRATION, groups)


def as_names(indices):
    return tuple(NAMES[k] for k in indices)


@pytest.mark.parametrize("measure", [LogLoss(), LpNorm(2)])
@pytest.mark.parametrize("level", ["0.02", "0.1", "0.3"])
def test_answers_are_those_of_the_predictor_and_the_policy(policy, measure, level):
    own = predictor(measure)
    forced, sets = own.predict(NEW), own.predict_set(NEW, significance=level)
    answers = build_answers(own, NEW, policy=policy, significance=level, top=3, describe=True)
    for row, (answer, decision, one) in enumerate(zip(answers, policy.decide(NEW), sets, strict=True)):
        assert (answer.decision, answer.reason) == (decision.decision, decision.reason)
        assert answer.consider == as_names(decision.consider)
        assert answer.assign == as_names(decision.assign)
        if decision.decision == FILE:
            assert answer.labels == as_names(decision.labels)
        else:
            assert set(answer.labels) == forced.label_sets[row]
            assert (answer.confidence, answer.credibility) == (forced.confidence[row], forced.credibility[row])
        assert answer.credibility == own.predict_p(NEW[[row]], [set(answer.labels)])[0]
        assert answer.size_bounds == one.size_bounds
        assert answer.size == one.size
        assert (set(answer.certain), set(answer.open)) == (one.certain, one.open)
        assert [(frozenset(labels), p) for labels, p in answer.top] == one.top(3)
        assert answer.description == one.describe()
        assert answer.significance == level
        assert answer.n_candidates == 63


def test_one_text_and_many_agree(policy):
    many = build_answers(predictor(), NEW, policy=policy, significance="0.1")
    assert [build_answers(predictor(), NEW[[row]], policy=policy, significance="0.1")[0] for row in range(60)] == many


def test_blocks_do_not_matter(policy, monkeypatch):
    more = texts(np.random.default_rng(1), 600)[0]
    answers = build_answers(predictor(), more, significance="0.1", top=2)
    assert answers[500:] == build_answers(predictor(), more[500:], significance="0.1", top=2)


def test_sets_with_more_members_than_are_listed():
    rng = np.random.default_rng(2)
    flat = np.clip(rng.normal(0.5, 0.02, (5, 14)), 0, 1)
    own = ConformalLabelSets(LpNorm(2)).calibrate(flat, rng.random((5, 14)) < 0.5)
    (answer,) = build_answers(own, flat[:1], significance="0.1", top=300)
    assert answer.size == 2**14 - 1
    assert len(answer.top) == 300
    assert answer.certain == ()
    assert answer.open == tuple(map(str, range(14)))


def test_without_a_policy_or_a_level_there_is_no_decision_or_set():
    answer = build_answers(predictor(), NEW[:1])[0]
    assert answer.decision is answer.reason is answer.significance is answer.size_bounds is answer.top is None
    assert answer.consider == answer.assign == ()
    assert list(answer.record()) == ["decision", "reason", "labels", "consider", "assign", "confidence", "credibility"]


def test_records_are_plain_values_in_a_fixed_order(policy):
    record = build_answers(predictor(), NEW[:1], policy=policy, confidence_level="0.9", top=1)[0].record()
    assert list(record)[7:] == ["significance", "size", "size_bounds", "certain", "open", "top"]
    assert record["significance"] == "0.1"
    assert json.loads(json.dumps(record)) == record


def test_counts_that_not_every_reader_of_json_holds_are_strings():
    large = Answer(None, None, (), (), (), 0.5, 0.5, "0.1", None, (2**53, 2**53 + 1), 2**60, (), (), [])
    assert large.record()["size_bounds"] == [2**53, str(2**53 + 1)]


def test_groups_follow_from_decisions(policy):
    filed = policy.file(CALIBRATION[0])
    own = predictor(taxonomy=ByGroup(), groups=policy.categories(filed))
    groups = policy.categories(policy.file(NEW))
    assert len(set(groups)) == 2
    expected = build_answers(own, NEW, policy=policy, groups=groups, significance="0.1")
    assert build_answers(own, NEW, policy=policy, by_decision=True, significance="0.1") == expected
    sets = own.predict_set(NEW, significance="0.1", groups=groups)
    assert [answer.size for answer in expected] == sets.sizes().tolist()
    mail = predictor(taxonomy=ByGroup(), groups=policy.categories(filed, ["mail"] * 400))
    answers = build_answers(mail, NEW, policy=policy, by_decision=True, groups=["mail"] * 60, significance="0.1")
    assert answers == expected


def test_groups_by_decision_with_another_measure(policy):
    own = predictor(LpNorm(2), taxonomy=ByGroup(), groups=policy.categories(policy.file(CALIBRATION[0])))
    groups = policy.categories(policy.file(NEW))
    expected = build_answers(own, NEW, policy=policy, groups=groups, significance="0.1")
    assert build_answers(own, NEW, policy=policy, by_decision=True, significance="0.1") == expected


def test_sets_of_seen_texts_keep_their_level_by_decision(policy):
    own = predictor(taxonomy=ByGroup(), groups=policy.categories(policy.file(CALIBRATION[0])))
    rng, errors = np.random.default_rng(3), []
    for _ in range(20):
        probabilities, labels = texts(rng, 200)
        seen = ~policy.file(probabilities)
        groups = policy.categories(~seen)
        sets = own.predict_set(probabilities, significance="0.2", groups=groups)
        errors.extend((~sets.contains(labels))[seen].tolist())
    assert np.mean(errors) < 0.2 + 0.08


def test_classes_of_cardinality(policy):
    own = predictor(taxonomy=ByCardinality((2,)))
    answers = build_answers(own, NEW, policy=policy, significance="0.1", top=4)
    sets = own.predict_set(NEW, significance="0.1")
    for answer, decision, one in zip(answers, policy.decide(NEW), sets, strict=True):
        assert answer.decision == decision.decision
        assert answer.size_bounds == one.size_bounds
        assert [p for _, p in answer.top] == [p for _, p in one.top(4)]


def test_another_rule_of_best_guesses(policy):
    own = predictor()
    given = NEW >= 0.3
    given[:, 0] = True
    answers = build_answers(own, NEW, policy=policy, best_guesses=given)
    p_values = own.predict_p(NEW, given)
    forced = own.predict(NEW)
    for row, (answer, decision) in enumerate(zip(answers, policy.decide(NEW), strict=True)):
        if decision.decision == FILE:
            assert answer.labels == as_names(decision.labels)
            continue
        assert answer.labels == as_names(np.flatnonzero(given[row]))
        assert answer.credibility == p_values[row]
        if set(answer.labels) != forced.label_sets[row]:
            assert answer.confidence == 1 - forced.credibility[row]


def test_shortlists_answer_as_dense_probabilities(policy):
    short = [Evidence(Shortlists.from_dense(P, 6), Y) for P, Y in (FILING, CALIBRATION)]
    lists = FilingPolicy("0.1", label_names=NAMES).calibrate(*short)
    own = ConformalLabelSets(LogLoss(), label_names=NAMES).calibrate(
        Shortlists.from_dense(CALIBRATION[0], 6), CALIBRATION[1]
    )
    answers = build_answers(own, Shortlists.from_dense(NEW, 6), policy=lists, significance="0.1")
    assert answers == build_answers(predictor(), NEW, policy=policy, significance="0.1")


def test_constraints_hold_in_answers():
    rules = LabelConstraints(exclusions=[("a", "b")])
    own = predictor(constraints=rules)
    for answer in build_answers(own, NEW, significance="0.05", top=20):
        assert all(not {"a", "b"} <= set(labels) for labels, _ in answer.top)


def test_bad_input(policy):
    with pytest.raises(InvalidInputError, match="exactly one"):
        build_answers(predictor(), NEW, significance=0.1, confidence_level=0.9)
    with pytest.raises(InvalidInputError, match="top"):
        build_answers(predictor(), NEW, top=-1)
    with pytest.raises(InvalidInputError, match="labels"):
        build_answers(predictor(), NEW[:, :3], policy=policy)


# Of one answer from probabilities to decision: modules that run, and calls of the package's own functions.
@pytest.mark.parametrize(("by_decision", "most_modules", "most_calls"), [(False, 15, 150), (True, 16, 170)])
def test_one_answer_runs_little(policy, by_decision, most_modules, most_calls):
    options = {"policy": policy, "significance": "0.1", "by_decision": by_decision}
    groups = {"taxonomy": ByGroup(), "groups": policy.categories(policy.file(CALIBRATION[0]))} if by_decision else {}
    own, package = predictor(**groups), str(Path(surelabel.__file__).parent)
    build_answers(own, NEW[:1], **options)
    calls, modules = 0, set()

    def count(frame, event, _):
        nonlocal calls
        if event == "call" and frame.f_code.co_filename.startswith(package):
            calls += 1
            modules.add(frame.f_code.co_filename)

    sys.setprofile(count)
    try:
        build_answers(own, NEW[1:2], **options)
    finally:
        sys.setprofile(None)
    assert calls <= most_calls
    assert len(modules) <= most_modules
