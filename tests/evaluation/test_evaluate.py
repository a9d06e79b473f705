import dataclasses
import json

import numpy as np
import pytest

from surelabel import ConformalLabelSets, LogLoss, metrics
from surelabel.evaluation.evaluate import Evaluation, evaluate
from surelabel.exceptions import ArtifactError
from surelabel.probabilities_file import PartProbabilities, Probabilities


@pytest.fixture(scope="module")
def evaluation():
    rng = np.random.default_rng(0)
    probabilities = rng.beta(0.3, 0.7, size=(400, 6))
    labels = rng.random((400, 6)) < probabilities
    predictor = ConformalLabelSets(LogLoss(), 0).calibrate(probabilities[:199], labels[:199])
    return predictor, probabilities[199:], labels[199:], evaluate(predictor, probabilities[199:], labels[199:])


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


def test_goes_through_json(evaluation):
    found = evaluation[3]
    assert Evaluation.from_dict(json.loads(json.dumps(found.to_dict()))) == found


@pytest.mark.parametrize("damage", [{}, {"curve": 3}, {"s": {"floor": 1}}])
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
