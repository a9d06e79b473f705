"""Errors and sizes at many levels with a taxonomy: the same as one level at a time."""

import warnings

import numpy as np
import pytest

from surelabel import ByCardinality, ByGroup, ByRarity, ConformalLabelSets, LogLoss, LpNorm, metrics
from surelabel.evaluation.criteria import s_criterion
from surelabel.evaluation.evaluate import evaluate
from surelabel.exceptions import CalibrationWarning

LEVELS = ("0.05", "0.1", "0.3")
COUNTS = np.array([200, 40, 12, 3, 90])


def drawn(n_texts, seed):
    rng = np.random.default_rng(seed)
    probabilities = rng.beta(0.4, 0.8, size=(n_texts, 5)).round(2)
    return probabilities, rng.random((n_texts, 5)) < probabilities, rng.choice(["a", "b"], n_texts)


@pytest.mark.parametrize("measure", [LpNorm(2), LogLoss(), LpNorm(np.inf)])
@pytest.mark.parametrize(
    "taxonomy",
    [
        ByGroup(),
        ByCardinality((1, 2)),
        ByRarity(COUNTS, (10, 50)),
        ByGroup() * ByCardinality() * ByRarity(COUNTS, (50,)),
    ],
)
def test_levels_agree_with_single_sets(measure, taxonomy):
    probabilities, labels, groups = drawn(400, 0)
    given = groups if taxonomy.by_group else None
    predictor = ConformalLabelSets(measure, min_labels=0, taxonomy=taxonomy)
    predictor.calibrate(probabilities, labels, groups=given)
    probabilities, labels, groups = drawn(150, 1)
    given = groups if taxonomy.by_group else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        sets = [predictor.predict_set(probabilities, significance=level, groups=given) for level in LEVELS]
    errors = metrics.error_rates(predictor, probabilities, labels, LEVELS, groups=given)
    assert errors == pytest.approx([1 - one.contains(labels).mean() for one in sets])
    curve = metrics.size_curve(predictor, probabilities, LEVELS, groups=given)
    assert [point.mean for point in curve] == pytest.approx([one.sizes().mean() for one in sets])
    assert [point.largest for point in curve] == [one.sizes().max() for one in sets]


def test_evaluate_takes_groups_and_has_no_demand_with_a_taxonomy():
    probabilities, labels, groups = drawn(400, 0)
    predictor = ConformalLabelSets(LogLoss(), min_labels=0, taxonomy=ByGroup())
    predictor.calibrate(probabilities, labels, groups=groups)
    probabilities, labels, groups = drawn(700, 1)
    evaluation = evaluate(predictor, probabilities, labels, groups=groups)
    sums = s_criterion(predictor, probabilities, groups=groups)
    assert (evaluation.s.floor, evaluation.s.excess_lower) == (sums.floor, sums.excess[0])
    assert evaluation.of.excess_lower < evaluation.s.excess_lower
    assert evaluation.demand is None
    sets = predictor.predict_set(probabilities, significance="0.1", groups=groups)
    assert evaluation.at("0.1").error == pytest.approx(1 - sets.contains(labels).mean())
