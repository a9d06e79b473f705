"""A bundle: from texts to answers, and back from its folder to the last bit."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest

import surelabel
from bundle_cases import corpus, quiet_answers, small_bundle
from surelabel import Automation, Bundle, ConformalLabelSets, Recalibration, TagBounds, load_bundle
from surelabel.answers import answer_probabilities
from surelabel.exceptions import ArtifactError, InvalidInputError
from surelabel.guarantees.decisions import Decisions
from surelabel.guarantees.familiarity import Familiarity
from surelabel.models import BundleInfo

TEXTS = list(corpus().part("test").texts[:20])


def test_the_way_back_from_a_folder_is_exact(tmp_path):
    bundle = small_bundle()
    assert bundle.save(tmp_path / "model") == tmp_path / "model"
    loaded = load_bundle(tmp_path / "model")
    assert loaded.predict_proba(TEXTS).tobytes() == bundle.predict_proba(TEXTS).tobytes()
    assert loaded.answers(TEXTS, significance="0.1") == bundle.answers(TEXTS, significance="0.1")
    assert loaded.info == bundle.info
    assert loaded.evaluation == bundle.evaluation
    assert loaded.label_names == corpus().label_names
    assert loaded.report is None
    assert repr(loaded).startswith("<Bundle 'small | <model>': linear, 8 labels, LogLoss")


def test_what_a_bundle_predicts():
    bundle = small_bundle()
    probabilities = bundle.predict_proba(TEXTS)
    assert probabilities.shape == (20, 8)
    assert np.array_equal(bundle.predict(TEXTS).labels, bundle.predictor.predict(probabilities).labels)
    labels = corpus().part("test").labels[:20]
    assert np.array_equal(bundle.predict_p(TEXTS, labels), bundle.predictor.predict_p(probabilities, labels))
    sets = bundle.predict_set(TEXTS, confidence_level=0.9)
    assert np.array_equal(sets.sizes(), [answer.size for answer in bundle.answers(TEXTS, significance=0.1)])
    assert bundle.answers([], significance=0.1) == []


def test_the_report_goes_with_it(tmp_path):
    dataclasses.replace(small_bundle(), report=b"<!DOCTYPE html>").save(tmp_path / "model")
    loaded = load_bundle(tmp_path / "model")
    (tmp_path / "model" / "report.html").write_text("changed after it was checked")
    assert loaded.report == b"<!DOCTYPE html>"
    loaded.save(tmp_path / "model")  # onto itself
    assert load_bundle(tmp_path / "model").report == b"<!DOCTYPE html>"


def _recalibration():
    validation = corpus().part("validation")
    probabilities = small_bundle().classifier.predict_proba(validation.texts)
    return Recalibration.fit(probabilities, validation.labels, min_texts=5)


def test_a_recalibration_goes_with_it_and_comes_before_the_predictor(tmp_path):
    recalibration = _recalibration()
    assert set(recalibration.methods) != {"none"}
    bundle = dataclasses.replace(small_bundle(), recalibration=recalibration)
    expected = recalibration.transform(bundle.classifier.predict_proba(TEXTS))
    bundle.save(tmp_path / "model")
    loaded = load_bundle(tmp_path / "model")
    assert np.array_equal(loaded.predict_proba(TEXTS), expected)
    assert loaded.predict_proba([]).shape == (0, 8)
    assert loaded.answers(TEXTS, significance="0.1") == answer_probabilities(
        bundle.predictor,
        expected,
        significance="0.1",
        decisions=bundle.decisions,
        known_words=bundle.classifier.known_words(TEXTS),
    )
    assert "| recalibration | " in (tmp_path / "model" / "README.md").read_text()
    small_bundle().save(tmp_path / "model")
    assert load_bundle(tmp_path / "model").recalibration is None


def test_a_recalibration_of_other_labels_is_refused():
    other = Recalibration.fit(np.full((4, 3), 0.5), np.zeros((4, 3)))
    with pytest.raises(InvalidInputError, match="of its 8 labels"):
        dataclasses.replace(small_bundle(), recalibration=other)


def test_totals_of_forced_predictions_go_with_it(tmp_path):
    calibration = corpus().part("calibration")
    predictor = small_bundle().predictor
    totals = predictor.totals(small_bundle().predict_proba(calibration.texts))
    dataclasses.replace(small_bundle(), forced_totals=totals).save(tmp_path / "model")
    assert np.array_equal(load_bundle(tmp_path / "model").forced_totals, np.sort(totals))
    small_bundle().save(tmp_path / "model")
    assert load_bundle(tmp_path / "model").forced_totals is None  # as a bundle of an older version
    with pytest.raises(InvalidInputError, match="of its 90 calibration texts"):
        dataclasses.replace(small_bundle(), forced_totals=totals[1:])


def test_the_card_says_what_it_is(tmp_path):
    small_bundle().save(tmp_path / "model")
    card = (tmp_path / "model" / "README.md").read_text()
    assert card.startswith("# small \\| \\<model>\n")
    for part in ("8 labels", "made for tests", "| LogLoss | 0.05 |", corpus().fingerprint(), "When not to trust it"):
        assert part in card


def test_a_folder_with_something_else_is_not_replaced(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"cat")
    with pytest.raises(InvalidInputError, match="something else than a bundle"):
        small_bundle().save(tmp_path / "photos")
    with pytest.raises(InvalidInputError, match="is a file"):
        small_bundle().save(tmp_path / "photos" / "cat.jpg")
    assert (tmp_path / "photos" / "cat.jpg").read_bytes() == b"cat"
    (tmp_path / "empty").mkdir()
    small_bundle().save(tmp_path / "empty")
    assert load_bundle(tmp_path / "empty").info.kind == "linear"


def test_labels_must_agree():
    bundle = small_bundle()
    other = ConformalLabelSets(label_names=[f"other {k}" for k in range(8)])
    other.calibrate(np.full((3, 8), 0.5), np.eye(8)[:3])
    with pytest.raises(InvalidInputError, match="same label names"):
        Bundle(bundle.classifier, other, bundle.info)


def test_a_description_that_is_none_is_refused():
    values = small_bundle().info.to_dict()
    assert BundleInfo.from_dict(values) == small_bundle().info
    for name, wrong in (
        ("name", 3),
        ("seed", "x"),
        ("notes", [1]),
        ("versions", []),
        ("seed", True),
        ("examples", "x"),
    ):
        with pytest.raises(ArtifactError, match=name):
            BundleInfo.from_dict({**values, name: wrong})
    with pytest.raises(ArtifactError, match="must have the fields"):
        BundleInfo.from_dict({**values, "more": 1})
    with pytest.raises(ArtifactError, match="must have the fields"):
        BundleInfo.from_dict(None)


def test_the_linear_one_loads_without_torch(tmp_path):
    small_bundle().save(tmp_path / "model")
    code = (
        "import sys, surelabel\n"
        f"bundle = surelabel.load_bundle({str(tmp_path / 'model')!r})\n"
        "assert bundle.answers(['wheat and corn'], significance=0.1)[0].labels\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_public_names():
    assert surelabel.Bundle is Bundle
    assert surelabel.load_bundle is load_bundle


def test_a_description_from_before_labels_were_listed_is_read():
    values = small_bundle().info.to_dict()
    assert values.pop("listed") is None
    assert BundleInfo.from_dict(values) == dataclasses.replace(small_bundle().info, listed=None)
    with pytest.raises(ArtifactError, match="'listed'"):
        BundleInfo.from_dict({**values, "listed": "some"})


def test_listed_probabilities_cannot_be_recalibrated():
    found = corpus().part("calibration")
    probabilities = small_bundle().predict_proba(found.texts)
    recalibration = Recalibration.fit(probabilities, found.labels)
    info = dataclasses.replace(small_bundle().info, listed=3)
    with pytest.raises(InvalidInputError, match="cannot recalibrate"):
        dataclasses.replace(small_bundle(), info=info, recalibration=recalibration)


def test_a_bundle_without_certificates_has_no_decisions(tmp_path):
    older = dataclasses.replace(small_bundle(), decisions=None)
    older.save(tmp_path / "model")
    assert not (tmp_path / "model" / "automation.npz").exists()
    loaded = load_bundle(tmp_path / "model")
    assert loaded.decisions is None
    assert loaded.level == "0.05"
    answer = loaded.answers(TEXTS[:1])[0]
    assert (answer.decision, answer.reason, answer.assign, answer.consider) == (None, None, (), ())


def test_decisions_must_be_about_the_labels_of_the_bundle():
    rng = np.random.default_rng(0)
    probabilities = rng.random((80, 3))
    other = Decisions(Automation(0.5), TagBounds(0.5, 0.5), Familiarity()).calibrate(
        probabilities, probabilities > 0.5, np.ones(80)
    )
    with pytest.raises(InvalidInputError, match="decisions of a bundle must be of its 8 labels"):
        dataclasses.replace(small_bundle(), decisions=other)


@pytest.mark.parametrize(
    ("change", "named"),
    [({"level": "1.5"}, "significance"), ({"short_lists": {"max": 3}}, "short_lists"), ({"level": 0.05}, "'level'")],
)
def test_a_damaged_level_or_list_is_named(change, named):
    with pytest.raises(ArtifactError, match=named):
        BundleInfo.from_dict({**small_bundle().info.to_dict(), **change})


@pytest.mark.parametrize(
    "text", ["", "   ", "asdf qwer", "\U0001f600 \U0001f600", "Die Ernte war schlecht in diesem Jahr"]
)
def test_texts_unlike_any_seen_are_read(text):
    answer = quiet_answers(small_bundle(), [text], significance="0.05")[0]
    assert answer.unfamiliar
    assert answer.decision == "read"
    assert answer.reason.endswith("read it yourself.")
