"""Best guesses by the most plausible label-set or by thresholds for F1: what changes, and what does not."""

import dataclasses
import json

import numpy as np
import pytest

from bundle_cases import corpus, small_bundle
from surelabel import corpora, load_bundle
from surelabel.exceptions import ArtifactError, CorpusError, InvalidInputError
from surelabel.labels.constraints import LabelConstraints
from surelabel.metrics import classification_metrics
from surelabel.models import TrainingSettings, evaluate_bundle, train_bundle
from surelabel.models.card import model_card
from surelabel.text import Thresholds

TEXTS = list(corpus().part("test").texts[:20])


@pytest.fixture(scope="module")
def low():
    """A bundle whose thresholds give nearly every text more labels than its most plausible label-set has."""
    return dataclasses.replace(small_bundle(), thresholds=Thresholds(np.full(8, 0.02), at_least_one=True))


def test_only_the_best_guess_changes(low):
    # Without certificates: what is filed is the most plausible label-set, whatever the rule.
    exact = dataclasses.replace(small_bundle(), decisions=None).answers(TEXTS, significance="0.1")
    by_thresholds = dataclasses.replace(low, decisions=None).answers(TEXTS, significance="0.1")
    rows = low.predict_proba(TEXTS) >= 0.02
    names = np.array(low.label_names)
    expected = [tuple(names[row]) if row.any() else answer.labels for row, answer in zip(rows, exact, strict=True)]
    assert [answer.labels for answer in by_thresholds] == expected
    assert [answer.labels for answer in by_thresholds] != [answer.labels for answer in exact]
    given = np.array([[name in answer.labels for name in names] for answer in by_thresholds])
    p_values = low.predictor.predict_p(low.predict_proba(TEXTS), given)
    assert [answer.credibility for answer in by_thresholds] == p_values.tolist()
    of_the_guess = {"labels": (), "confidence": 0.0, "credibility": 0.0}
    assert [dataclasses.replace(answer, **of_the_guess) for answer in by_thresholds] == [
        dataclasses.replace(answer, **of_the_guess) for answer in exact
    ]
    assert (low.decision, small_bundle().decision) == ("f1", "exact")


def test_what_is_filed_is_the_most_plausible_label_set_that_was_certified(low):
    filed = [answer for answer in low.answers(TEXTS, significance="0.1") if answer.decision == "file"]
    certified = [answer for answer in small_bundle().answers(TEXTS, significance="0.1") if answer.decision == "file"]
    assert filed == certified != []


def test_it_is_in_the_folder(low, tmp_path):
    loaded = load_bundle(low.save(tmp_path / "model"))
    assert np.array_equal(loaded.thresholds.values, low.thresholds.values)
    assert loaded.thresholds.at_least_one
    assert loaded.answers(TEXTS, significance="0.1") == low.answers(TEXTS, significance="0.1")
    assert load_bundle(small_bundle().save(tmp_path / "exact")).thresholds is None


@pytest.mark.parametrize(("decision", "average"), [("f1", "micro"), ("macro-f1", "macro")])
def test_it_is_trained_on_validation_texts(decision, average):
    found = corpus()
    bundle = train_bundle(found, TrainingSettings(compared={}, decision=decision))
    exact = train_bundle(found, TrainingSettings(compared={}))
    validation, test = found.part("validation"), found.part("test")
    per_label = True if average == "macro" else None
    fitted = Thresholds.fit(bundle.predict_proba(validation.texts), validation.labels, per_label=per_label)
    assert (bundle.decision, exact.decision) == (decision, "exact")
    assert np.array_equal(bundle.thresholds.values, fitted.values)
    assert bundle.predictor.calibration_.totals.tobytes() == exact.predictor.calibration_.totals.tobytes()
    own, plain = (next(iter(one.evaluation.values())) for one in (bundle, exact))
    assert own.guesses == classification_metrics(test.labels, fitted.predict(bundle.predict_proba(test.texts)))
    assert dataclasses.replace(own, guesses=None) == plain
    assert evaluate_bundle(bundle, found).guesses == own.guesses
    card = model_card(bundle)
    assert f"| best guess | thresholds for {average}-F1 |" in card
    assert "by thresholds for F1: exactly right" in card
    assert "the paper's rule" in card
    assert "the paper's rule" not in model_card(exact)


def test_what_cannot_be_decided_by_thresholds():
    with pytest.raises(InvalidInputError, match=r"'decision' must be 'exact', 'f1' or 'macro-f1'. Got 'best'"):
        TrainingSettings(decision="best")
    with pytest.raises(InvalidInputError, match="know no constraints"):
        TrainingSettings(decision="f1", constraints=LabelConstraints(exclusions=[("trade", "oil")]))
    found = corpora.load("synthetic", n_texts=100, n_labels=4)
    with pytest.raises(InvalidInputError, match="The decision 'macro-f1' needs"):
        train_bundle(found, TrainingSettings(decision="macro-f1", listed=2))
    parts = {name: rows for name, rows in found.parts.items() if name != "validation"}
    with pytest.raises(CorpusError, match="must have a validation part"):
        train_bundle(dataclasses.replace(found, parts=parts), TrainingSettings(decision="f1"))
    with pytest.raises(InvalidInputError, match=r"thresholds of a bundle must be of its 8 labels. Got 3"):
        dataclasses.replace(small_bundle(), thresholds=Thresholds(np.full(3, 0.5), at_least_one=False))


@pytest.mark.parametrize("wrong", ["{", "[]", '{"values": [2, 0], "at_least_one": true}', '{"values": [0.5]}'])
def test_thresholds_that_are_none(low, tmp_path, wrong):
    from surelabel.models.bundle import _read_thresholds

    (tmp_path / "decision.json").write_text(wrong)
    with pytest.raises(ArtifactError, match="damaged"):
        _read_thresholds(tmp_path / "decision.json")


def test_a_changed_file_is_refused(low, tmp_path):
    folder = low.save(tmp_path / "model")
    document = json.loads((folder / "decision.json").read_text())
    document["values"][0] = 0.9
    (folder / "decision.json").write_text(json.dumps(document))
    with pytest.raises(ArtifactError):
        load_bundle(folder)
