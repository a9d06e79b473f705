import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from sklearn import metrics as sk

import reference
from surelabel import ConformalLabelSets, LogLoss, LpNorm, metrics
from surelabel.engines import dense
from surelabel.evaluation.bands import count_band
from surelabel.exceptions import InvalidInputError

MATRICES = hnp.array_shapes(min_dims=2, max_dims=2, max_side=6).flatmap(
    lambda shape: st.tuples(hnp.arrays(np.bool_, shape), hnp.arrays(np.bool_, shape))
)


def test_classification_metrics_by_hand():
    found = metrics.classification_metrics([[1, 0, 0], [1, 1, 0]], [[1, 0, 0], [0, 1, 1]])
    assert found.accuracy == 0.5
    assert found.f1_micro == pytest.approx(2 * 2 / (3 + 3))
    # Labels: 2*1/(2+1), 2*1/(1+1), 2*0/(0+1).
    assert found.f1_macro == pytest.approx((2 / 3 + 1 + 0) / 3)
    assert found.hamming_loss == pytest.approx(2 / 6)


@given(MATRICES)
def test_classification_metrics_equal_scikit_learn(pair):
    labels, predicted = pair
    found = metrics.classification_metrics(labels, predicted)
    true, given_ = labels.astype(int), predicted.astype(int)
    micro = sk.f1_score(true, given_, average="micro", zero_division=0) if true.shape[1] > 1 else found.f1_micro
    macro = sk.f1_score(true, given_, average="macro", zero_division=0) if true.shape[1] > 1 else found.f1_macro
    assert found.accuracy == pytest.approx((labels == predicted).all(axis=1).mean())
    assert found.f1_micro == pytest.approx(micro)
    assert found.f1_macro == pytest.approx(macro)
    assert found.hamming_loss == pytest.approx((labels != predicted).mean())


def test_classification_metrics_refuses_other_shapes():
    with pytest.raises(InvalidInputError, match=r"'predicted'.*2 labels"):
        metrics.classification_metrics([[1, 0]], [[1, 0, 0]])


def test_size_statistics_by_hand():
    found = metrics.size_statistics([0, 1, 1, 4, 14])
    assert (found.mean, found.mean_lower, found.median, found.largest) == (4.0, 4.0, 1.0, 14.0)
    assert (found.empty, found.single) == (0.2, 0.4)
    assert found.quantiles[0.75] == 4.0
    assert metrics.size_statistics([10**30, 10**30]).mean == pytest.approx(1e30)
    assert metrics.size_statistics([4, 8], [2, 8]).mean_lower == 5.0


def test_size_statistics_refuses_nothing():
    with pytest.raises(InvalidInputError, match="sizes"):
        metrics.size_statistics([])


def _data(seed, n_labels=5, n=60):
    rng = np.random.default_rng(seed)
    probabilities = rng.choice([0.0, 0.1, 0.25, 0.5, 0.75, 1.0], size=(n, n_labels))
    return probabilities, rng.random((n, n_labels)) < probabilities


@pytest.mark.filterwarnings("ignore::surelabel.exceptions.CalibrationWarning")
@pytest.mark.parametrize("measure", [LpNorm(2), LpNorm(math.inf), LogLoss()])
def test_curves_equal_one_prediction_a_level(measure):
    probabilities, labels = _data(1)
    predictor = ConformalLabelSets(measure, 1, 3).calibrate(probabilities[:40], labels[:40])
    levels = ["0.01", "0.024", "0.05", "0.1", "0.29", "0.5", "0.9", "0.99"]
    errors = metrics.error_rates(predictor, probabilities[40:], labels[40:], levels)
    sizes = metrics.size_curve(predictor, probabilities[40:], levels)
    for level, error, size in zip(levels, errors, sizes, strict=True):
        one = predictor.predict_set(probabilities[40:], significance=level)
        assert error == pytest.approx((~one.contains(labels[40:])).mean())
        assert size.mean == size.mean_lower == pytest.approx(np.mean(one.sizes()))
        assert size.median == np.median(one.sizes())


@pytest.mark.filterwarnings("ignore::surelabel.exceptions.CalibrationWarning")
def test_sizes_past_the_walk_are_bounded():
    rng = np.random.default_rng(0)
    probabilities = rng.random((40, 40))
    labels = rng.random((40, 40)) < 0.5
    predictor = ConformalLabelSets(LpNorm(2), 1, 20).calibrate(probabilities[:30], labels[:30])
    for point in metrics.size_curve(predictor, probabilities[30:], ["0.1", "0.5"]):
        assert point.mean_lower <= point.mean
        assert point.mean_lower > 1e6
        assert point.mean < 1.2 * point.mean_lower


@pytest.mark.parametrize("unsure", [0.0, 1.5, 1e9])
def test_sizes_whose_count_is_given_up_early_are_bounded(monkeypatch, unsure):
    rng = np.random.default_rng(3)
    probabilities = rng.beta(0.5, 0.5, (60, 12))
    labels = rng.random((60, 12)) < probabilities
    predictor = ConformalLabelSets(LogLoss(), 0).calibrate(probabilities[:50], labels[:50])
    exact = predictor.bind(probabilities[50:]).counts_at(predictor.calibration_.totals[10::10], 256)
    assert np.array_equal(exact[..., 0], exact[..., 1])
    for name, value in (("FIRST_STEPS", 20), ("_MAX_STEPS", 60), ("_UNSURE", unsure)):
        monkeypatch.setattr(dense, name, value)
    bounds = predictor.bind(probabilities[50:]).counts_at(predictor.calibration_.totals[10::10], 256)
    assert np.all(bounds[..., 0] <= exact[..., 0])
    assert np.all(exact[..., 0] <= bounds[..., 1])
    assert np.any(bounds[..., 0] < bounds[..., 1])
    assert np.any(bounds[..., 0] == bounds[..., 1])


@pytest.mark.filterwarnings("ignore::surelabel.exceptions.CalibrationWarning")
def test_s_and_of_by_definition():
    probabilities, labels = _data(2, n_labels=4)
    predictor = ConformalLabelSets(LpNorm(2), 1, 3).calibrate(probabilities[:40], labels[:40])
    s = metrics.s_criterion(predictor, probabilities[40:])
    of = metrics.of_criterion(predictor, probabilities[40:], labels[40:])
    candidates = reference.candidates(4, 1, 3)
    rows = np.array(candidates, dtype=bool)
    by_definition = []
    for row in probabilities[40:]:
        by_definition.append(predictor.predict_p(np.repeat(row[None], len(rows), axis=0), rows).sum())
    assert s.mean[0] == pytest.approx(np.mean(by_definition))
    assert s.mean[1] == pytest.approx(np.mean(by_definition))
    is_candidate = (labels[40:].sum(axis=1) >= 1) & (labels[40:].sum(axis=1) <= 3)
    true = np.where(is_candidate, predictor.predict_p(probabilities[40:], labels[40:]), 0.0)
    assert of.mean[0] == pytest.approx(np.mean(by_definition) - true.mean())


@pytest.mark.parametrize("n_calibration", [None, 5, 292, 999])
@pytest.mark.parametrize("n_texts", [1, 20, 390])
@pytest.mark.parametrize("share", [0.01, 0.05, 1 / 3, 0.9])
def test_bands_of_chance_are_those_of_scipy(share, n_texts, n_calibration):
    ranks = None if n_calibration is None else n_calibration + 1
    counts = stats.binom(n_texts, share)
    if ranks is not None:
        counts = stats.betabinom(n_texts, share * ranks, (1 - share) * ranks)
    for inside in (0.9, 0.99):
        expected = counts.ppf([(1 - inside) / 2, (1 + inside) / 2]) / n_texts
        assert count_band(share, n_texts, n_calibration, inside) == tuple(expected)
