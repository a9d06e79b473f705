import dataclasses
import json

import numpy as np
import pytest

from surelabel import ConformalLabelSets, LogLoss, Penalised, metrics
from surelabel.evaluation.evaluate import Evaluation, evaluate
from surelabel.exceptions import ArtifactError
from surelabel.probabilities_file import PartProbabilities, Probabilities


@pytest.fixture(scope="module")
def evaluation():
    rng = np.random.default_rng(0)
    probabilities = rng.beta(0.3, 0.7, size=(400, 6))
    labels = rng.random((400, 6)) < probabilities
    predictor = ConformalLabelSets(LogLoss(), 0).calibrate(probabilities[:199], labels[:199])
    found = evaluate(predictor, probabilities[199:], labels[199:])
    return predictor, probabilities[199:], labels[199:], found


def test_everything_is_what_its_own_function_says(evaluation):
    predictor, probabilities, labels, found = evaluation
    forced = predictor.predict(probabilities)
    assert found.forced == metrics.classification_metrics(labels, forced.labels)
    assert found.underlying == metrics.classification_metrics(labels, probabilities >= 0.5)
    assert found.confidence == pytest.approx(forced.confidence.mean())
    assert found.n_candidates == 64
    sets = predictor.predict_set(probabilities, significance="0.05")
    assert found.at("0.05").error == pytest.approx((~sets.contains(labels)).mean())
    assert found.at("0.050").sizes.mean == pytest.approx(sets.sizes().mean())
    assert found.demand.exact_label_sets == sets.sizes().sum()
    assert found.demand.powerset_label_sets == 64 * len(probabilities)
    assert found.s.mean[0] == pytest.approx(metrics.s_criterion(predictor, probabilities).mean[0])
    assert min(float(point.significance) for point in found.curve) * 200 > 1


def test_without_criteria_it_computes_what_a_reader_needs(evaluation, monkeypatch):
    predictor, probabilities, labels, whole = evaluation
    for name in ("p_value_sums", "of_criterion", "_demand"):
        monkeypatch.setattr(f"surelabel.evaluation.evaluate.{name}", lambda *_, **__: pytest.fail("research"))
    found = evaluate(predictor, probabilities, labels, criteria=False)
    assert [point.significance for point in found.curve] == ["0.01", "0.05", "0.1", "0.2"]
    for point in found.standard:
        assert (point.error, point.sizes) == (whole.at(point.significance).error, whole.at(point.significance).sizes)
    assert (found.s, found.of, found.demand, found.n_sized) == (None, None, None, 201)
    assert found.errors == whole.errors == {str(float(p.significance)): p.error for p in whole.curve}
    assert dataclasses.replace(whole, curve=found.curve, s=None, of=None, demand=None) == found
    assert Evaluation.from_dict(json.loads(json.dumps(found.to_dict()))) == found


def test_sets_of_interacting_measures_are_counted_on_texts_spread_evenly(evaluation, monkeypatch):
    monkeypatch.setattr("surelabel.evaluation.predicted._MOST_SIZED", 3)
    _, probabilities, labels, _ = evaluation
    measure = Penalised(LogLoss(), hamming=0.5).fit(labels)
    predictor = ConformalLabelSets(measure, 0).calibrate(probabilities[:100], labels[:100])
    found = evaluate(predictor, probabilities[100:], labels[100:], criteria=False)
    sizes = predictor.predict_set(probabilities[[100, 150, 200]], significance="0.1").sizes()
    assert found.n_sized == 3
    assert found.at("0.1").sizes.mean == pytest.approx(sizes.mean())
    sets = predictor.predict_set(probabilities[100:], significance="0.1")
    assert found.at("0.1").error == pytest.approx((~sets.contains(labels[100:])).mean())


def test_an_error_rate_above_what_chance_explains_is_a_broken_promise(evaluation):
    predictor, probabilities, labels, found = evaluation
    assert found.broken == ()
    shuffled = evaluate(predictor, probabilities, np.roll(labels, 7, axis=0), criteria=False)
    assert [point.significance for point in shuffled.broken] == ["0.01", "0.05", "0.1", "0.2"]
    assert shuffled.verdict(shuffled.at("0.1")) == "above"
    lower, upper = shuffled.band(shuffled.at("0.1"))
    assert lower < 0.1 < upper < shuffled.at("0.1").error


def test_figures_of_older_versions_are_read(evaluation):
    values = evaluation[3].to_dict()
    del values["errors"], values["n_sized"]
    assert Evaluation.from_dict(values).curve == evaluation[3].curve


def test_goes_through_json(evaluation):
    found = evaluation[3]
    assert Evaluation.from_dict(json.loads(json.dumps(found.to_dict()))) == found


@pytest.mark.parametrize("damage", [
    {}, {"curve": 3}, {"s": {"floor": 1}}, {"n_texts": "many"}, {"confidence": True}, {"curve": [{"sizes": None}]},
    {"forced": {"accuracy": [], "f1_micro": 1.0, "f1_macro": 1.0, "hamming_loss": 0.0}}, {"errors": {"low": 0.1}},
    {"unheard-of": 1},
])  # fmt: skip
def test_refuses_other_values(evaluation, damage):
    values = {**evaluation[3].to_dict(), **damage} if damage else {}
    with pytest.raises(ArtifactError, match="evaluation"):
        Evaluation.from_dict(values)


def test_a_level_that_is_not_on_the_curve(evaluation):
    with pytest.raises(KeyError, match=r"0\.0505"):
        evaluation[3].at("0.0505")


def _seam():
    rng = np.random.default_rng(0)
    part = PartProbabilities(rng.random((3, 70)), rng.random((3, 70)) < 0.5, ("a", "b", "č"))
    names = tuple(f"label {k}" for k in range(70))
    return Probabilities({"calibration": part, "test": part}, names, 40, {"seed": 1})


def test_seam_round_trip(tmp_path):
    seam = _seam()
    seam.save(tmp_path / "p.npz")
    again = Probabilities.load(tmp_path / "p.npz")
    assert (again.label_names, again.max_labels, again.settings) == (seam.label_names, 40, {"seed": 1})
    for name, part in seam.parts.items():
        assert np.array_equal(again.parts[name].probabilities, part.probabilities)
        assert np.array_equal(again.parts[name].labels, part.labels)
        assert again.parts[name].ids == part.ids


def test_seam_refuses_damage(tmp_path):
    path = tmp_path / "p.npz"
    _seam().save(path)
    whole = path.read_bytes()
    for damaged in (whole[:100], whole[: len(whole) // 2], b"", b"not a zip"):
        path.write_bytes(damaged)
        with pytest.raises(ArtifactError):
            Probabilities.load(path)
    np.savez(path, header=np.array(json.dumps({"format": "other"})))
    with pytest.raises(ArtifactError, match="other"):
        Probabilities.load(path)
    with pytest.raises(FileNotFoundError):
        Probabilities.load(tmp_path / "nothing.npz")


def test_seam_holds_plain_values_only():
    assert {field.name for field in dataclasses.fields(Probabilities)} == {
        "parts", "label_names", "max_labels", "settings",
    }  # fmt: skip
