"""Evaluation of bundles: only texts that were not seen, figures by hand, unknown and missing labels."""

import json

import numpy as np
import pytest

from models.quick import quick_train
from surelabel.corpora import Corpus
from surelabel.evaluation import summary
from surelabel.exceptions import ArtifactError, InvalidInputError
from surelabel.guarantees.decisions import Decision
from surelabel.models import BundleEvaluation, evaluate_bundle, new_texts, verdict
from surelabel.models.evaluate import decision_figures


def test_decision_figures_by_hand():
    names = ("a", "b", "c")
    decisions = [
        Decision("file", "", (0,), (0,), (0,)),
        Decision("file", "", (1,), (1,), (1,)),
        Decision("choose", "", (0,), (), (0, 1)),
        Decision("choose", "", (0,), (), (0,)),
        Decision("read", "", (2,), (), (0, 1, 2)),
    ]
    true = [frozenset("a"), frozenset("ab"), frozenset("ab"), frozenset("b"), frozenset({"a", "new"})]
    found = decision_figures(decisions, true, names)
    assert (found["file"].n_texts, found["file"].share, found["file"].wrong) == (2, 0.4, 0.5)
    assert found["file"].missed is None
    assert (found["choose"].missed, found["choose"].n_tags) == (0.5, 1.5)
    assert (found["read"].missed, found["read"].missed_error) == (0.5, None)
    assert found["seen"].missed == pytest.approx((0 + 1 + 0.5) / 3)
    assert found["seen"].missed_error == pytest.approx(np.std([0, 1, 0.5], ddof=1) / np.sqrt(3))
    none = decision_figures(decisions[:2], true[:2], names)
    assert none["choose"].share == 0.0
    assert none["choose"].missed is None


def test_errors_are_those_of_the_prediction_sets(bundle, new):
    found = evaluate_bundle(bundle, new)
    assert found.n_texts == len(new)
    for level in ("0.05", "0.1", "0.2"):
        sets = bundle.predict_set(new.texts, significance=level)
        missed = ~sets.contains(new.label_sets)
        assert found.errors[level] == pytest.approx(missed.mean())
        assert found.result.at(level).error == found.errors[level]
    n_filed, n_seen = found.n_filed, found.n_texts - found.n_filed
    both = n_filed * found.errors_filed["0.1"] + n_seen * found.errors_seen["0.1"]
    assert both / found.n_texts == pytest.approx(found.errors["0.1"])


def test_decisions_are_those_of_the_answers(bundle, new):
    found = evaluate_bundle(bundle, new).decisions
    answers = bundle.answers(new.texts)
    for kind in ("file", "choose", "read"):
        assert found[kind].n_texts == sum(answer.decision == kind for answer in answers)
    filed = [
        (answer.labels, true) for answer, true in zip(answers, new.label_sets, strict=True) if answer.decision == "file"
    ]
    assert found["file"].wrong == pytest.approx(np.mean([set(guessed) != true for guessed, true in filed]))
    shares = [found[kind].share for kind in ("file", "choose", "read")]
    assert sum(shares) == pytest.approx(1.0)
    assert found["seen"].share == pytest.approx(shares[1] + shares[2])


def test_the_file_of_training_gives_the_figures_of_its_test_part(bundle, corpus):
    again = evaluate_bundle(bundle, corpus)
    assert again.errors == bundle.evaluation.errors
    assert again.decisions == bundle.evaluation.decisions
    assert again.left_out == {"training": 1_050, "calibration": 300}
    assert len(new_texts(bundle, corpus)) == 150


def test_ten_more_rows_are_ten_more_texts(bundle, corpus, new):
    more = Corpus.from_label_sets(
        "longer", (*corpus.texts, *new.texts[:10]), [*corpus.label_sets, *new.label_sets[:10]]
    )
    assert evaluate_bundle(bundle, more).n_texts == 160


def test_texts_of_one_kind_without_labels_and_with_unknown_ones(bundle, new):
    one_kind = new.rows([row for row, labels in enumerate(new.label_sets) if len(labels) == 1])
    assert evaluate_bundle(bundle, one_kind).n_texts == len(one_kind)
    label_sets = [
        None if row < 5 else labels | {"unheard of"} if row < 15 else labels
        for row, labels in enumerate(new.label_sets)
    ]
    found = evaluate_bundle(bundle, Corpus.from_label_sets("mixed", new.texts, label_sets))
    assert found.left_out == {"no labels": 5}
    assert (found.n_texts, found.n_unknown) == (len(new) - 5, 10)
    assert min(found.errors.values()) >= 10 / found.n_texts
    assert found.result.labels[-1].name == "unheard of"
    assert found.result.labels[-1].support == 10
    none = Corpus.from_label_sets("none", new.texts[:9], [()] * 9)
    assert evaluate_bundle(bundle, none).n_texts == 9


def test_nothing_to_measure_on_is_an_error(bundle, corpus, divided):
    with pytest.raises(InvalidInputError, match="training"):
        evaluate_bundle(bundle, divided.part("train"))
    with pytest.raises(InvalidInputError, match="no labels"):
        evaluate_bundle(bundle, Corpus.from_label_sets("untagged", ["a", "b"], [None, None], label_names=["x"]))


def test_as_json_and_back(bundle):
    values = json.loads(json.dumps(bundle.evaluation.to_dict(), allow_nan=False))
    assert BundleEvaluation.from_dict(values) == bundle.evaluation
    assert set(values["errors"]) == {"0.01", "0.05", "0.1", "0.2"}
    assert {"share", "wrong"} <= set(values["decisions"]["file"])
    assert {"share", "missed", "n_tags"} <= set(values["decisions"]["choose"])
    assert 0 < values["underlying"]["f1_micro"] <= 1
    for damaged in (None, [], {}, {**values, "n_texts": "many"}, {**values, "errors": {"0.05": None}}):
        with pytest.raises(ArtifactError):
            BundleEvaluation.from_dict(damaged)


def test_sentences_name_their_texts(bundle, corpus, new):
    lines = summary.training_lines(bundle)
    assert len(lines) == 4
    assert "1,050" in lines[0]
    assert "all 150 test texts" in lines[1]
    assert "people see" in lines[1]
    assert "wrong" in lines[2]
    assert "people see" in lines[3]
    label_sets = [labels | {"unheard of"} for labels in new.label_sets]
    mixed = Corpus.from_label_sets("more", (*corpus.texts, *new.texts), [*corpus.label_sets, *label_sets])
    evaluation = evaluate_bundle(bundle, mixed)
    said = " ".join(summary.evaluation_lines(evaluation, bundle.info.levels))
    assert "Left out" in said
    assert "does not know" in said


def test_the_verdict_is_measured_on_test_texts(bundle):
    said = verdict(bundle)
    assert list(bundle.info.verdict) == said
    assert summary.error_line(bundle.evaluation, "0.05") in said


def test_advice_names_a_weaker_level_and_changes_nothing(corpus):
    bundle = quick_train(corpus, max_wrong="0.001")
    assert bundle.policy.share_ == 0.0
    assert any("--max-wrong 0." in line for line in bundle.info.verdict)
    assert bundle.info.levels["max_wrong"] == "0.001"
    assert any("--max-wrong" in line for line in summary.training_lines(bundle))
