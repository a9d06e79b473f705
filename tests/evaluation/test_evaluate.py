"""Evaluation of a predictor: figures equal those of its parts, unknown labels count, JSON and back."""

import json

import numpy as np
import pytest

from surelabel.conformal import ConformalLabelSets
from surelabel.evaluation import metrics
from surelabel.evaluation.evaluate import EvaluationResult, evaluate
from surelabel.exceptions import ArtifactError, CalibrationWarning
from surelabel.guarantees.groups import ByCardinality, ByGroup
from surelabel.labels.shortlists import Shortlists
from surelabel.measures import LogLoss, LpNorm

NAMES = ["a", "b", "c", "d", "e", "f"]
RNG = np.random.default_rng(0)
PROBABILITIES = RNG.beta(0.3, 0.7, size=(400, 6))
LABELS = RNG.random((400, 6)) < PROBABILITIES
NEW, TRUE = PROBABILITIES[199:], LABELS[199:]


def _predictor(measure=None, **options):
    predictor = ConformalLabelSets(measure or LogLoss(), 0, label_names=NAMES, **options)
    groups = ["x", "y"] * 100 if isinstance(options.get("taxonomy"), ByGroup) else None
    return predictor.calibrate(PROBABILITIES[:199], LABELS[:199], groups=None if groups is None else groups[:199])


def _sets(rows):
    return [{NAMES[k] for k in np.flatnonzero(row)} for row in rows]


@pytest.mark.filterwarnings("ignore::surelabel.exceptions.CalibrationWarning")
@pytest.mark.parametrize("taxonomy", [None, ByGroup(), ByCardinality((2,))])
def test_figures_are_those_of_the_parts(taxonomy):
    predictor = _predictor(taxonomy=taxonomy)
    groups = ["x", "y", "y"] * 67 if isinstance(taxonomy, ByGroup) else None
    found = evaluate(predictor, NEW, TRUE, groups=groups)
    for point in found.curve:
        sets = predictor.predict_set(NEW, significance=point.significance, groups=groups)
        assert point.error == pytest.approx((~sets.contains(TRUE)).mean())
        assert point.sizes.mean == pytest.approx(np.mean(sets.sizes()))
        assert point.error == found.errors[point.significance] == found.at(float(point.significance)).error
    forced = predictor.predict(NEW, groups=groups)
    assert found.forced == metrics.classification_metrics(TRUE, forced.labels)
    assert found.underlying == metrics.classification_metrics(TRUE, NEW >= 0.5)
    assert found.confidence == pytest.approx(forced.confidence.mean())
    assert found.true_p_value == pytest.approx(predictor.predict_p(NEW, TRUE, groups=groups).mean())
    assert (found.n_texts, found.n_labels, found.n_calibration, found.n_unknown) == (201, 6, 199, 0)
    assert found.n_candidates == 64


def test_rows_and_names_give_the_same():
    assert evaluate(_predictor(), NEW, TRUE) == evaluate(_predictor(), NEW, _sets(TRUE))


def test_a_valid_predictor_is_not_broken_and_a_wrong_one_is():
    assert evaluate(_predictor(), NEW, TRUE).broken == ()
    found = evaluate(_predictor(), NEW, TRUE[:, ::-1])
    assert {point.significance for point in found.broken} >= {"0.05", "0.1"}


def test_unknown_labels_are_errors_everywhere():
    label_sets = [labels | {"new"} if row < 20 else labels for row, labels in enumerate(_sets(TRUE))]
    plain, found = evaluate(_predictor(), NEW, TRUE), evaluate(_predictor(), NEW, label_sets)
    assert found.n_unknown == 20
    assert all(found.errors[level] >= max(20 / 201, plain.errors[level]) for level in found.errors)
    assert found.forced.accuracy < plain.forced.accuracy
    assert found.forced.f1_micro < plain.forced.f1_micro
    assert found.labels[-1].name == "new"


def test_best_guesses_by_another_rule():
    found = evaluate(_predictor(), NEW, TRUE, best_guesses=NEW >= 0.3)
    assert found.guesses == metrics.classification_metrics(TRUE, NEW >= 0.3)
    assert found.labels[0].support == TRUE[:, 0].sum()


def test_shortlists():
    lists = Shortlists.from_dense(PROBABILITIES, 4)
    predictor = ConformalLabelSets(LogLoss(), 0, label_names=NAMES)
    with pytest.warns(CalibrationWarning):
        predictor.calibrate(lists[:199], LABELS[:199])
    found = evaluate(predictor, lists[np.arange(199, 400)], TRUE)
    # Lists are too short for 1 %: more true labels are not listed. At larger levels the promise is kept.
    assert found.n_outside / found.n_texts > 0.01
    assert [point.significance for point in found.broken] == ["0.01"]


def test_criteria_and_demand_only_if_asked_for():
    plain, full = evaluate(_predictor(LpNorm(2)), NEW, TRUE), evaluate(_predictor(LpNorm(2)), NEW, TRUE, criteria=True)
    assert plain.s is plain.of is plain.demand is None
    assert full.s.excess_lower <= full.s.excess_upper
    assert full.of.excess_lower < full.s.excess_lower
    assert full.of.floor < full.s.floor
    assert full.demand.powerset_label_sets == 64 * 201
    assert full.demand.prohibitive == 0.0


def test_the_papers_sizes_are_of_all_texts():
    # Of many texts only the first are sized; their probabilities are all but certain here, those of the others are not.
    many = np.concatenate([np.full((2_000, 6), 0.01), np.full((500, 6), 0.5)])
    few, every = (
        evaluate(_predictor(), many, np.zeros(many.shape), levels=["0.05"], criteria=criteria)
        for criteria in (False, True)
    )
    sizes = _predictor().predict_set(many, significance="0.05").sizes()
    assert few.at("0.05").sizes.mean == pytest.approx(np.mean(sizes[:2_000]))
    assert every.at("0.05").sizes.mean == pytest.approx(np.mean(sizes))
    assert np.mean(sizes) != pytest.approx(np.mean(sizes[:2_000]))


def test_as_json_and_back():
    found = evaluate(_predictor(), NEW, TRUE, criteria=True)
    values = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert EvaluationResult.from_dict(values) == found
    for name, wrong in (("n_texts", 1.5), ("curve", None), ("errors", {"0.1": "x"}), ("ranks", []), ("more", 1)):
        with pytest.raises(ArtifactError):
            EvaluationResult.from_dict({**values, name: wrong})
    with pytest.raises(ArtifactError):
        EvaluationResult.from_dict("nothing")


@pytest.mark.filterwarnings("ignore::surelabel.exceptions.CalibrationWarning")
def test_curves_equal_one_prediction_a_level():
    predictor, levels = _predictor(), ["0.01", "0.024", "0.05", "0.29", "0.5", "0.99"]
    errors = metrics.error_rates(predictor, NEW, TRUE, levels)
    sizes = metrics.size_curve(predictor, NEW, levels)
    for level, error, size in zip(levels, errors, sizes, strict=True):
        one = predictor.predict_set(NEW, significance=level)
        assert error == pytest.approx((~one.contains(TRUE)).mean())
        assert size.mean == size.mean_lower == pytest.approx(np.mean(one.sizes()))
