"""From a corpus to a bundle."""

import dataclasses
import logging

import numpy as np
import pytest

from bundle_cases import corpus
from surelabel import (
    LabelConstraints,
    LogLoss,
    LpNorm,
    Mahalanobis,
    Penalised,
    Recalibration,
    choose_weights,
    corpora,
    load_bundle,
    text,
)
from surelabel._core.progress import reporting_to
from surelabel.corpora import Corpus
from surelabel.exceptions import ArtifactError, CalibrationWarning, CorpusError, InvalidInputError, TrainingError
from surelabel.models import TrainingSettings, add_to_calibration, calibrate_bundle, train_bundle, train_to_folder
from surelabel.models.card import model_card

QUICK = TrainingSettings(compared={})


def test_each_part_is_used_for_its_purpose():
    found = corpus()
    bundle = train_bundle(found, QUICK)
    train, calibration, test = (found.part(name) for name in ("train", "calibration", "test"))
    held = found.part("validation")
    alone = text.make("linear", seed=0)
    alone.fit(
        train.texts, train.label_matrix, validation=(held.texts, held.label_matrix), label_names=found.label_names
    )
    assert np.array_equal(alone.predict_proba(test.texts), bundle.predict_proba(test.texts))
    totals = bundle.predictor.calibration_.totals
    assert len(totals) == len(calibration)
    again = dataclasses.replace(QUICK, seed=0)
    assert np.array_equal(train_bundle(found, again).predictor.calibration_.totals, totals)
    assert bundle.predictor.max_labels == train.labels.sum(axis=1).max()
    assert bundle.evaluation["LogLoss"].n_texts == len(test)
    assert bundle.info.part_sizes == {name: len(rows) for name, rows in found.parts.items()}
    assert bundle.info.fingerprint == found.fingerprint()
    assert bundle.info.versions["numpy"] == np.__version__
    assert 1 <= len(bundle.info.examples) <= 3
    assert bundle.report is None


def test_what_is_asked_for(tmp_path):
    settings = TrainingSettings(
        measure=LpNorm(4), compared={"L2": LpNorm(2)}, min_labels=0, max_labels=2, name="mine", options={"min_texts": 1}
    )
    bundle = train_to_folder(corpus(), tmp_path / "model", settings)
    assert list(bundle.evaluation) == ["L4", "L2"]
    assert bundle.predictor.measure == LpNorm(4)
    assert (bundle.predictor.min_labels, bundle.predictor.max_labels) == (0, 2)
    assert bundle.info.name == "mine"
    assert bundle.info.settings["min_texts"] == 1
    assert bundle.report.startswith(b"<!DOCTYPE html>")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_measures_are_fitted_on_the_validation_part_alone(tmp_path):
    found = corpus()
    validation = found.part("validation")
    settings = dataclasses.replace(QUICK, measure=Mahalanobis())
    bundle = train_to_folder(found, tmp_path / "model", settings)
    known = bundle.predict_proba(validation.texts), validation.labels
    assert bundle.predictor.measure == Mahalanobis().fit(*known)
    assert bundle.info.measure == "Mahalanobis"
    assert list(bundle.evaluation) == ["Mahalanobis"]

    bundle = train_bundle(found, dataclasses.replace(QUICK, measure=Penalised(LogLoss())))
    chosen = choose_weights(LogLoss(), found.part("train").labels, *known, max_labels=bundle.predictor.max_labels)
    assert bundle.predictor.measure == chosen.measure
    assert bundle.info.measure == "Penalised(LogLoss)"
    assert "| measure | Penalised(LogLoss), " in model_card(bundle)


def test_recalibration_constraints_and_a_fitted_measure_together(tmp_path, caplog):
    found = corpus()
    a, b, c = found.label_names[:3]
    rules = LabelConstraints(implications=[(a, b)], exclusions=[(b, c)])
    settings = dataclasses.replace(QUICK, measure=Mahalanobis(), constraints=rules, recalibrate=True)
    with caplog.at_level(logging.WARNING):
        bundle = train_to_folder(found, tmp_path / "model", settings)
    validation = found.part("validation")
    raw = bundle.classifier.predict_proba(validation.texts)
    fitted = Recalibration.fit(raw, validation.labels)
    assert np.array_equal(bundle.predict_proba(validation.texts), fitted.transform(raw))
    assert bundle.predictor.measure == Mahalanobis().fit(fitted.transform(raw), validation.labels)
    broken = rules.check(found.part("train").labels, found.label_names)
    assert f"{len(broken.rows)} of the {broken.n_texts} training texts do not obey" in caplog.text
    assert str(found.part("train").ids[broken.rows[0]]) in bundle.info.notes[-1]
    for answer in bundle.answers(found.part("test").texts[:20], significance="0.05", top=50):
        assert all(b in each.labels for each in answer.top if a in each.labels)
    card = (tmp_path / "model" / "README.md").read_text()
    assert "implications 1, exclusions 1" in card

    with pytest.warns(CalibrationWarning, match="obey the constraints"):
        assert add_to_calibration(bundle, found, part="test").recalibration is bundle.recalibration
    again = calibrate_bundle(bundle, found)
    assert again.recalibration is bundle.recalibration
    assert again.predictor.constraints == bundle.predictor.constraints
    assert np.array_equal(again.predictor.calibration_.totals, bundle.predictor.calibration_.totals)
    assert again.evaluation["Mahalanobis"].curve == bundle.evaluation["Mahalanobis"].curve


def test_without_validation_texts_nothing_is_fitted_on_them():
    whole = corpora.load("synthetic", n_texts=200, n_labels=4, validation=0)
    for settings in (TrainingSettings(recalibrate=True), TrainingSettings(measure=Mahalanobis())):
        with pytest.raises(CorpusError, match="must have a validation part"):
            train_bundle(whole, settings)


def test_labels_that_constraints_do_not_know_are_told_before_training():
    with pytest.raises(InvalidInputError, match="unheard-of"):
        train_bundle(corpus(), TrainingSettings(constraints=LabelConstraints(implications=[("unheard-of", "x")])))


def test_rules_that_leave_no_candidate_are_told_before_training(tmp_path, monkeypatch):
    monkeypatch.setattr("surelabel.text.make", lambda *given, **options: pytest.fail("a classifier was made"))
    found = corpus()
    rules = LabelConstraints(at_most=[(0, found.label_names)])
    with pytest.raises(InvalidInputError, match=r"leaves no candidate with 1 to .*: at most 0 of"):
        train_to_folder(found, tmp_path / "model", TrainingSettings(constraints=rules))
    with pytest.raises(InvalidInputError, match="'max_labels' parameter of train_bundle"):
        train_to_folder(found, tmp_path / "model", TrainingSettings(min_labels=3, max_labels=2))
    assert list(tmp_path.iterdir()) == []


def test_texts_without_labels_admit_the_empty_label_set():
    whole = corpora.load("synthetic", n_texts=400, n_labels=4, test=0, validation=0, calibration=0)
    sets = [set() if row % 10 == 0 else each for row, each in enumerate(whole.label_sets)]
    with pytest.warns(UserWarning, match="have no label"):
        found = Corpus.from_label_sets("some", whole.texts, sets)
    parts = {"train": range(300), "calibration": range(300, 400)}
    bundle = train_bundle(found.with_parts({name: list(rows) for name, rows in parts.items()}), QUICK)
    assert bundle.predictor.min_labels == 0
    assert bundle.evaluation is None
    assert bundle.info.examples == ()


def test_repeated_texts_are_told(caplog):
    found = corpus()
    texts = list(found.texts)
    texts[found.parts["test"][0]] = texts[found.parts["train"][0]].upper()
    with caplog.at_level(logging.WARNING):
        bundle = train_bundle(dataclasses.replace(found, texts=tuple(texts)), QUICK)
    assert "1 of the 120 test texts also appear in an earlier part" in bundle.info.notes[0]
    assert bundle.info.notes[0] in caplog.text


def test_a_corpus_without_calibration_texts_is_refused():
    whole = corpora.load("synthetic", n_texts=100, test=0, validation=0, calibration=0)
    with pytest.raises(CorpusError, match="must have a calibration part"):
        train_bundle(whole)


def test_a_stopped_training_goes_on(tmp_path, monkeypatch, caplog):
    found = corpus()
    whole = train_to_folder(found, tmp_path / "whole", QUICK)
    work = tmp_path / ".model.training"

    def stop(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("surelabel.models.training.completed", stop)
        with pytest.raises(KeyboardInterrupt):
            train_to_folder(found, tmp_path / "model", QUICK)
    assert not (tmp_path / "model").exists()
    assert (work / "classifier").is_dir()
    with caplog.at_level(logging.INFO):
        bundle = train_to_folder(found, tmp_path / "model", QUICK)
    assert "was trained already" in caplog.text
    assert not work.exists()
    assert np.array_equal(bundle.predictor.calibration_.totals, whole.predictor.calibration_.totals)


def test_an_evaluation_that_was_done_is_not_repeated(tmp_path, monkeypatch):
    found = corpus()
    settings = TrainingSettings(measure=Mahalanobis(), compared={"L2": LpNorm(2)})
    whole = train_to_folder(found, tmp_path / "whole", settings)
    from surelabel.models import evaluating

    evaluated, fitted = [], evaluating.evaluate

    def one_only(predictor, *arguments, **options):
        evaluated.append(predictor.measure)
        if len(evaluated) == 2:
            raise KeyboardInterrupt
        return fitted(predictor, *arguments, **options)

    monkeypatch.setattr("surelabel.models.evaluating.evaluate", one_only)
    with pytest.raises(KeyboardInterrupt):
        train_to_folder(found, tmp_path / "model", settings)
    monkeypatch.setattr("surelabel.models.training.fitted_measure", lambda *_, **__: pytest.fail("fitted again"))
    bundle = train_to_folder(found, tmp_path / "model", settings)
    assert [type(measure).__name__ for measure in evaluated] == ["Mahalanobis", "LpNorm", "LpNorm"]
    assert bundle.evaluation == whole.evaluation
    assert list(bundle.evaluation) == ["Mahalanobis", "L2"]
    assert np.array_equal(bundle.predictor.calibration_.totals, whole.predictor.calibration_.totals)


def test_every_step_is_reported():
    steps = []
    with reporting_to(lambda name, done, total: steps.append(name)):
        train_bundle(corpus(), QUICK)
    for begin in ("fitting the linear", "classifying 90 calibration", "classifying 120 test", "evaluating LogLoss"):
        assert any(name.startswith(begin) for name in steps)


@pytest.mark.parametrize("change", [{"seed": 1}, {"options": {"min_texts": 1}}])
def test_other_settings_start_anew(tmp_path, monkeypatch, change):
    found = corpus()
    with monkeypatch.context() as patched:
        patched.setattr("surelabel.models.Bundle.save", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            train_to_folder(found, tmp_path / "model", QUICK)
    bundle = train_to_folder(found, tmp_path / "model", dataclasses.replace(QUICK, **change))
    assert {**bundle.info.settings, "options": None}.items() >= ({"seed": 1} if "seed" in change else {}).items()
    assert bundle.info.settings["min_texts"] == (1 if "options" in change else 2)


def test_a_damaged_work_folder_is_made_again(tmp_path):
    work = tmp_path / ".model.training"
    (work / "classifier").mkdir(parents=True)
    (work / "classifier" / "classifier.json").write_text("{")
    bundle = train_to_folder(corpus(), tmp_path / "model", QUICK)
    assert load_bundle(tmp_path / "model").info == bundle.info


def test_a_folder_of_something_else_is_told_before_training(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("x")
    monkeypatch.setattr("surelabel.models.training.train_bundle", lambda *_: 1 / 0)
    with pytest.raises(InvalidInputError, match="something else"):
        train_to_folder(corpus(), tmp_path)


def test_several_processes_do_not_write_one_bundle(tmp_path, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(TrainingError, match="written by one process"):
        train_to_folder(corpus(), tmp_path / "model")


def test_a_blend_is_one_classifier_of_the_bundle(tmp_path):
    quick = {"linear": {"loss": "svm", "inverse_regularisation": 1.0}}
    settings = dataclasses.replace(QUICK, kind="blend", options={"of": "linear,linear", "members": quick})
    bundle = train_bundle(corpus(), settings)
    texts = corpus().part("test").texts[:5]
    again = load_bundle(bundle.save(tmp_path / "model"))
    assert np.array_equal(again.predict_proba(texts), bundle.predict_proba(texts))
    (tmp_path / "model" / "classifier" / "member-1" / "unknown.json").write_text("{}")
    with pytest.raises(ArtifactError, match=r"member-1/unknown\.json"):
        load_bundle(tmp_path / "model")
