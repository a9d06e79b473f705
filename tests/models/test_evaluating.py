"""New calibrations and measurements of a bundle, never on texts that it was trained on."""

import dataclasses
import warnings

import numpy as np
import pytest

from bundle_cases import corpus, small_bundle
from surelabel import ConformalLabelSets, LabelConstraints, LogLoss, LpNorm, Mahalanobis, corpora, load_bundle
from surelabel.corpora import Corpus
from surelabel.evaluation.metrics import counts_at_levels
from surelabel.exceptions import CalibrationWarning, InvalidInputError
from surelabel.measures import measure_name
from surelabel.models import add_to_calibration, calibrate_bundle, evaluate_bundle, held_out_part


def _other(n_texts=150, seed=5):
    """Return new texts of the same kind, as a user's file gives them: all of them in the training part."""
    return corpora.load("synthetic", n_texts=n_texts, n_labels=8, seed=seed, test=0, validation=0, calibration=0)


def test_the_same_calibration_is_the_same(tmp_path):
    bundle = small_bundle()
    again = calibrate_bundle(bundle, corpus(), work_folder=tmp_path)
    assert np.array_equal(again.predictor.calibration_.totals, bundle.predictor.calibration_.totals)
    assert list(again.evaluation) == ["LogLoss", "L2", "L4", "L8"]
    assert again.report.startswith(b"<!DOCTYPE html>")
    assert again.classifier is bundle.classifier


def test_prediction_sets_are_counted_once_per_measure_for_figures_report_and_examples(tmp_path, monkeypatch):
    counted = []

    def count(engine, levels, n_cells):
        counted.append((measure_name(engine.calibration.measure), len(engine)))
        return counts_at_levels(engine, levels, n_cells)

    monkeypatch.setattr("surelabel.evaluation.predicted.counts_at_levels", count)
    made = calibrate_bundle(small_bundle(), corpus(), work_folder=tmp_path)
    assert made.report is not None
    assert made.info.examples
    n_test, n_validation = (len(corpus().parts[name]) for name in ("test", "validation"))
    measures = [(name, n_test) for name in ("LogLoss", "L2", "L4", "L8")]
    assert counted == [*measures, ("LogLoss", n_validation)]


def test_a_new_measure_and_new_texts():
    bundle = small_bundle()
    new = calibrate_bundle(bundle, _other(), measure=LpNorm(4))
    assert new.predictor.measure == LpNorm(4)
    assert new.info.measure == "L4"
    assert new.predictor.calibration_.n_texts == 150
    assert new.info.calibrated_on["n_texts"] == 150
    assert new.info.corpus == bundle.info.corpus
    assert new.evaluation is None
    assert new.info.evaluated_on == {}
    assert new.report is None
    assert new.predictor.max_labels == bundle.predictor.max_labels


def test_added_texts_count_as_if_they_had_been_there_at_once(tmp_path):
    bundle = calibrate_bundle(small_bundle(), corpus())
    added = add_to_calibration(bundle, corpus(), part="test")
    calibration, test = corpus().part("calibration"), corpus().part("test")
    at_once = ConformalLabelSets(LogLoss(), 1, 3, label_names=corpus().label_names).calibrate(
        bundle.predict_proba([*calibration.texts, *test.texts]), np.vstack([calibration.labels, test.labels])
    )
    assert np.array_equal(added.predictor.calibration_.totals, at_once.calibration_.totals)
    assert added.evaluation is None
    loaded = load_bundle(added.save(tmp_path / "model"))
    assert loaded.info == added.info
    for part in ("test", "calibration", "all"):
        with pytest.raises(InvalidInputError, match=r"already: a text counts once|trained on the"):
            add_to_calibration(loaded, corpus(), part=part)
    other = corpora.load("synthetic", n_texts=60, n_labels=8, seed=5)
    twice = add_to_calibration(loaded, other, part="all")
    assert twice.predictor.calibration_.n_texts == len(calibration) + len(test) + 60
    assert [each["n_texts"] for each in twice.info.calibrated_on["added"]] == [len(test), 60]
    with pytest.raises(InvalidInputError, match="already"):
        add_to_calibration(twice, other)


def test_a_measure_that_is_fitted_takes_the_corpus_of_training():
    bundle = small_bundle()
    validation = corpus().part("validation")
    new = calibrate_bundle(bundle, corpus(), measure=Mahalanobis())
    assert new.predictor.measure == Mahalanobis().fit(bundle.predict_proba(validation.texts), validation.labels)
    kept = calibrate_bundle(new, _other())
    assert kept.predictor.measure == new.predictor.measure
    with pytest.raises(InvalidInputError, match="fitted on a validation part"):
        calibrate_bundle(bundle, _other(), measure=Mahalanobis())


def test_an_evaluation_is_of_the_right_texts(tmp_path):
    bundle = small_bundle()
    own = evaluate_bundle(bundle, corpus(), report=tmp_path / "report.html")
    assert own.n_texts == 120
    assert own.at("0.05").error == bundle.evaluation["LogLoss"].at("0.05").error
    assert (tmp_path / "report.html").read_text().startswith("<!DOCTYPE html>")
    assert evaluate_bundle(bundle, _other()).n_texts == 150
    assert evaluate_bundle(bundle, corpus(), part="calibration").n_texts == 90


def test_training_texts_are_refused():
    bundle = small_bundle()
    for part in ("train", "validation", "all"):
        with pytest.raises(InvalidInputError, match="was trained on"):
            held_out_part(bundle, corpus(), "test", part)
    drawn_otherwise = corpora.split(
        corpora.generate_synthetic(600, 8, seed=0), test=0.2, validation=0.1, calibration=0.15, seed=9
    )
    with pytest.raises(InvalidInputError, match="Use seed 0"):
        held_out_part(bundle, drawn_otherwise, "test")


def test_another_corpus_own_parts_are_kept():
    other = _other()
    parts = {"train": np.arange(100), "test": np.arange(100, 150)}
    assert len(held_out_part(small_bundle(), other.with_parts(parts), "test")) == 50
    assert len(held_out_part(small_bundle(), other.with_parts(parts), "calibration")) == 150
    drawn = corpora.load("synthetic", n_texts=150, n_labels=8, seed=5)
    assert len(held_out_part(small_bundle(), drawn, "test")) == 150
    assert len(held_out_part(small_bundle(), drawn, "test", "test")) == 30


def test_labels_are_matched_by_name():
    other = _other()
    kept = [name for name in other.label_names if name != other.label_names[0]]
    sets = [each - {other.label_names[0]} or {kept[0]} for each in other.label_sets]
    fewer = Corpus.from_label_sets("fewer", other.texts, sets, label_names=kept[::-1])
    same = Corpus.from_label_sets("same", other.texts, sets, label_names=other.label_names)
    totals = [calibrate_bundle(small_bundle(), each).predictor.calibration_.totals for each in (fewer, same)]
    assert np.array_equal(*totals)
    unknown = Corpus.from_label_sets("unknown", other.texts, [{*each, "astrology"} for each in sets])
    with pytest.raises(InvalidInputError, match="'astrology'"):
        evaluate_bundle(small_bundle(), unknown)


def test_texts_with_unknown_labels_count_as_errors(caplog, tmp_path):
    other = _other()
    sets = [{*each, "astrology"} if row % 50 == 0 else each for row, each in enumerate(other.label_sets)]
    some = Corpus.from_label_sets("some", other.texts, sets)
    rest = other.with_parts({"test": np.array([row for row in range(150) if row % 50])})
    measured = evaluate_bundle(small_bundle(), some, report=tmp_path / "report.html")
    assert "3 of the 150 texts have labels that the model does not know ('astrology')" in caplog.text
    expected = evaluate_bundle(small_bundle(), rest)
    assert (measured.n_texts, measured.n_unknown, expected.n_texts) == (150, 3, 147)
    assert measured.outside_candidates == expected.outside_candidates + 3
    for point, of_rest in zip(measured.curve, expected.curve, strict=True):
        assert point.error == pytest.approx((147 * of_rest.error + 3) / 150, abs=1e-12)
        assert point.sizes == of_rest.sizes
        assert measured.errors[str(float(point.significance))] == point.error
    assert measured.forced.accuracy == pytest.approx(147 / 150 * expected.forced.accuracy)
    assert measured.conditional.labels == expected.conditional.labels
    with pytest.raises(InvalidInputError, match=r"Got 'astrology' \(1 unknown\)"):
        calibrate_bundle(small_bundle(), some)


def test_constraints_stay_with_the_model(tmp_path):
    names = small_bundle().label_names
    rules = LabelConstraints(exclusions=[names[:2]])
    predictor = ConformalLabelSets(LogLoss(), 1, 3, label_names=names, constraints=rules)
    part = corpus().part("calibration")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        predictor.calibrate(small_bundle().predict_proba(part.texts), part.labels)
    bundle = dataclasses.replace(small_bundle(), predictor=predictor, evaluation=None)
    bundle.save(tmp_path / "model")
    new = calibrate_bundle(load_bundle(tmp_path / "model"), _other())
    assert new.predictor.calibration_.n_candidates == predictor.calibration_.n_candidates < 92
