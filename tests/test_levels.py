"""Levels are the decimals that were typed: thresholds and p-values computed by hand, no rounding anywhere."""

import dataclasses
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from surelabel import ConformalLabelSets, LpNorm
from surelabel.calibration import Calibration, rank_of, smoothed_thresholds_of
from surelabel.exceptions import CalibrationWarning


@dataclasses.dataclass(frozen=True)
class Thousands:
    """One label whose presence costs its probability times 1000: totals are the whole numbers 1 to 999."""

    aggregate = "sum"

    def costs(self, probabilities):
        return np.full_like(probabilities, 5000.0), np.rint(1000.0 * probabilities)

    def score(self, totals):
        return totals


def _predictor():
    probabilities = np.arange(1, 1000)[:, None] / 1000.0
    return ConformalLabelSets(Thousands()).calibrate(probabilities, np.ones((999, 1)))


def _largest_member(**level):
    """The largest whole-number score that is still in the prediction set."""
    scores = np.arange(0, 1001)
    sets = _predictor().predict_set(scores[:, None] / 1000.0, **level)
    inside = scores[sets.sizes() == 1]
    assert inside.tolist() == list(range(len(inside)))
    return int(inside[-1])


def test_the_papers_example():
    # Section 5.2: scores 1 to 999, e = 0.05: T = {1, ..., 950}, so 950 is the threshold.
    assert _largest_member(significance=0.05) == 950
    assert _predictor().calibration_.threshold(Fraction(5, 100)) == 950.0


# k = e * 1000 and the threshold is the k-th largest of 1..999, which is 1000 - k.
@pytest.mark.parametrize(
    ("level", "threshold"),
    [
        ({"significance": 0.05}, 950),
        ({"significance": 0.07}, 930),  # 0.07 * 1000 is 70.00000000000001
        ({"significance": 0.1}, 900),
        ({"significance": 0.29}, 710),  # 0.29 * 1000 is 290 only by rounding up
        ({"significance": 0.57}, 430),  # 0.57 * 1000 is 570 by luck, 0.57 * 100 is not 57
        ({"significance": 0.001}, 999),
        ({"significance": 0.999}, 1),
        ({"confidence_level": 0.9}, 900),  # 1 - 0.9 is 0.09999999999999998
        ({"confidence_level": 0.95}, 950),
        ({"confidence_level": 0.93}, 930),
        ({"confidence_level": 0.71}, 710),
        ({"significance": "0.07"}, 930),
        ({"significance": "7e-2"}, 930),
        ({"significance": Decimal("0.29")}, 710),
        ({"confidence_level": Decimal("0.9")}, 900),
        ({"significance": Fraction(1, 3)}, 667),  # k = floor(333.33) = 333
        ({"significance": np.float32(0.1)}, 900),
        ({"significance": np.float32(0.29)}, 710),
        ({"confidence_level": np.float32(0.9)}, 900),
        ({"significance": np.float64(0.07)}, 930),
        ({"significance": 0.0709}, 930),  # never rounded: k = floor(70.9) = 70
        ({"significance": 0.06999}, 931),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::surelabel.exceptions.CalibrationWarning")
def test_thresholds_of_999_whole_number_scores(level, threshold):
    assert _largest_member(**level) == threshold


def test_p_values_of_999_whole_number_scores():
    # p(a) = (number of scores >= a, plus one) / 1000 = (1001 - a) / 1000.
    scores = np.array([1, 2, 500, 950, 951, 999, 1000])
    p_values = _predictor().predict_p(scores[:, None] / 1000.0, np.ones((7, 1)))
    assert p_values.tolist() == [1.0, 0.999, 0.501, 0.051, 0.05, 0.002, 0.001]


@pytest.mark.parametrize("significance", [0.0005, "0.00099999", Fraction(1, 1001)])
def test_below_one_in_n_plus_one_every_candidate_is_a_member(significance):
    rng = np.random.default_rng(0)
    probabilities = rng.random((999, 4))
    predictor = ConformalLabelSets(max_labels=3).calibrate(probabilities, np.eye(4)[rng.integers(0, 4, 999)])
    with pytest.warns(CalibrationWarning, match=r"999 calibration texts are too few for significance .*0\.001"):
        sets = predictor.predict_set(probabilities[:5], significance=significance)
    assert sets.sizes().tolist() == [4 + 6 + 4] * 5
    assert sets[0].inclusion().tolist() == [7 / 14] * 4
    assert sets[0].possible == {0, 1, 2, 3}
    assert len(sets[0].top(99)) == 14
    assert len(sets[0].to_array()) == 14
    for search in ("hamming-ball", "powerset"):
        other = ConformalLabelSets(max_labels=3, search=search)
        other.calibrate(probabilities, np.eye(4)[rng.integers(0, 4, 999)])
        with pytest.warns(CalibrationWarning):
            assert other.predict_set(probabilities[:2], significance=significance).sizes().tolist() == [14, 14]


def test_the_warning_is_for_levels_that_calibration_cannot_tell_from_zero():
    predictor = _predictor()
    with pytest.warns(CalibrationWarning, match="smallest p-value there can be is 0.001"):
        predictor.predict_set([[0.5]], significance=0.001)
    # Warnings are errors here: none may come at a level just above.
    predictor.predict_set([[0.5]], significance=0.0011)


def test_labels_that_are_no_candidates_are_counted_in_a_warning_and_still_calibrate():
    probabilities = [[0.9, 0.9], [0.1, 0.2], [0.9, 0.1]]
    with pytest.warns(CalibrationWarning, match=r"2 of 3 calibration texts .* 1 to 1 labels"):
        predictor = ConformalLabelSets(LpNorm(1), max_labels=1).calibrate(probabilities, [[1, 1], [0, 0], [1, 0]])
    assert predictor.calibration_.totals == pytest.approx([0.2, 0.2, 0.3])
    sets = predictor.predict_set([[0.9, 0.9], [0.9, 0.1]], significance=0.5)
    assert sets.contains([[1, 1], [1, 0]]).tolist() == [False, True]
    assert predictor.predict_p([[0.9, 0.9]], [[1, 1]]) == pytest.approx([1.0])


def test_empty_label_rows_are_data():
    predictor = ConformalLabelSets(LpNorm(1), min_labels=0).calibrate([[0.1, 0.2], [0.0, 0.5]], [[0, 0], [0, 1]])
    assert predictor.calibration_.totals == pytest.approx([0.3, 0.5])
    assert predictor.predict([[0.1, 0.1]]).label_sets == [frozenset()]


def test_a_calibration_orders_its_totals_and_does_not_change():
    calibration = Calibration(LpNorm(2), np.array([3.0, 1.0, 2.0]), 2, 1, 2, None)
    assert calibration.totals.tolist() == [1.0, 2.0, 3.0]
    assert (calibration.n_texts, calibration.n_candidates, calibration.limits) == (3, 3, (1, 2))
    with pytest.raises(ValueError, match="read-only"):
        calibration.totals[0] = 9.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        calibration.n_labels = 5
    assert [rank_of(calibration.n_texts, Fraction(k, 8)) for k in range(1, 8)] == [0, 1, 1, 2, 2, 3, 3]
    assert calibration.threshold(Fraction(1, 8)) == float("inf")
    assert [calibration.threshold(Fraction(k, 4)) for k in (1, 2, 3)] == [3.0, 2.0, 1.0]


def test_smoothed_p_values_by_hand():
    # Totals 1, 2, 2, 3. At 2 with u = 1/4: (1 + (2 + 1) / 4) / 5 = 0.35; at 4: u / 5; at 0: (4 + u) / 5.
    calibration = Calibration(LpNorm(1), np.array([1.0, 2.0, 2.0, 3.0]), 1, 0, 1, None)
    totals = np.array([2.0, 4.0, 0.0])
    assert calibration.p_values(totals, np.full(3, 0.25)).tolist() == [0.35, 0.05, 0.85]
    assert calibration.p_values(totals, np.ones(3)).tolist() == calibration.p_values(totals).tolist()
    # At e = 0.34 a total of 2 is in for u = 1/4 (0.35) and out for u = 1/5 (0.32).
    thresholds = smoothed_thresholds_of(calibration.totals, Fraction(34, 100), np.array([0.25, 0.2]))
    assert thresholds[0] == 2.0
    assert 1.0 < thresholds[1] < 2.0
