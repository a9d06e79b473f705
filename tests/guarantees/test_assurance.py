"""Assurance, and one significance per text."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from cases import calibration_warnings_ignored
from surelabel import ByCardinality, ConformalLabelSets, ConformalMultilabelClassifier, LogLoss, LpNorm
from surelabel.calibration import fewest_assured, rank_of
from surelabel.exceptions import CalibrationWarning, InvalidInputError


def _texts(rng, n_texts, n_labels=3):
    logits = rng.normal(-0.5, 1.5, (n_texts, n_labels))
    labels = rng.random((n_texts, n_labels)) < 1 / (1 + np.exp(-logits))
    return 1 / (1 + np.exp(-logits - rng.normal(0, 0.3, logits.shape))), labels


def _rank_by_definition(n, level, assurance):
    """Largest k with P(Bin(n, e) >= k) >= assurance, in exact arithmetic."""
    below, k = Fraction(0), 0
    for i in range(n):
        below += math.comb(n, i) * level**i * (1 - level) ** (n - i)
        if 1 - below < assurance:
            return k
        k = i + 1
    return k


@pytest.mark.parametrize("n", [1, 5, 58, 59, 60, 92, 93, 150])
@pytest.mark.parametrize("level", ["0.05", "0.1", "0.3"])
@pytest.mark.parametrize("assurance", ["0.5", "0.9", "0.95"])
def test_ranks_are_those_of_the_definition(n, level, assurance):
    level, assurance = Fraction(level), Fraction(assurance)
    expected = min(_rank_by_definition(n, level, assurance), math.floor(level * (n + 1)))
    assert rank_of(n, level, assurance) == expected
    assert (rank_of(n, level, assurance) > 0) == (n >= fewest_assured(level, assurance)) or level * (n + 1) < 1


def test_999_texts_at_5_percent_are_cut_as_at_3_9_percent():
    rng = np.random.default_rng(1)
    probabilities, labels = _texts(rng, 1049)
    predictor = ConformalLabelSets(LpNorm(2), 0).calibrate(probabilities[:999], labels[:999])
    assured = predictor.predict_set(probabilities[999:], significance=0.05, assurance=0.95)
    plain = predictor.predict_set(probabilities[999:], significance=0.039)
    assert assured.sizes().tolist() == plain.sizes().tolist()


def test_assurance_that_the_texts_cannot_give_is_told():
    probabilities, labels = _texts(np.random.default_rng(2), 40)
    predictor = ConformalLabelSets(min_labels=0).calibrate(probabilities, labels)
    with pytest.warns(
        CalibrationWarning, match=r"cannot give an assurance of 0\.95 at significance 0\.05: 59 are needed"
    ):
        sets = predictor.predict_set(probabilities[:2], significance=0.05, assurance=0.95)
    assert sets.sizes().tolist() == [8, 8]
    with pytest.raises(InvalidInputError, match="'assurance' parameter of predict_set must be in"):
        predictor.predict_set(probabilities, significance=0.1, assurance=1)
    with pytest.raises(InvalidInputError, match="'assurance' or 'smoothing', not both"):
        predictor.predict_set(probabilities, significance=0.1, assurance=0.9, smoothing=np.random.default_rng(0))


def test_few_calibrations_pass_the_level_with_assurance():
    rng = np.random.default_rng(3)
    pool, truth = _texts(rng, 20_000)
    past = dict.fromkeys((None, 0.9), 0)
    for _ in range(300):
        probabilities, labels = _texts(rng, 200)
        predictor = ConformalLabelSets(LogLoss(), 0, n_jobs=1).calibrate(probabilities, labels)
        p_values = predictor.predict_p(pool, truth)
        for assurance in past:
            k = rank_of(200, Fraction("0.1"), None if assurance is None else Fraction("0.9"))
            past[assurance] += np.mean(p_values <= k / 201) > 0.1
    k = rank_of(200, Fraction("0.1"), Fraction("0.9"))
    exact = scipy.stats.beta.sf(0.1, k, 201 - k)
    assert exact <= 0.1
    assert past[0.9] <= scipy.stats.binom.isf(1e-6, 300, 0.1)
    assert past[0.9] >= scipy.stats.binom.ppf(1e-6, 300, exact * 0.7)
    assert past[None] > 90


def test_a_level_per_text_is_that_of_each_text_alone():
    rng = np.random.default_rng(4)
    probabilities, labels = _texts(rng, 140)
    predictor = ConformalLabelSets(LpNorm(2), 0).calibrate(probabilities[:99], labels[:99])
    test = probabilities[99:]
    levels = rng.choice([0.07, 0.1, 0.25], len(test))
    for taxonomy in (None, ByCardinality((1, 2))):
        chosen = ConformalLabelSets(LpNorm(2), 0, taxonomy=taxonomy).calibrate(probabilities[:99], labels[:99])
        with calibration_warnings_ignored():
            together = chosen.predict_set(test, significance=levels).sizes().tolist()
            pairs = zip(test, levels, strict=True)
            apart = [chosen.predict_set(row[None], significance=level)[0].size for row, level in pairs]
        assert together == apart
    # 0.07 * 100 is 7, and 1 - 0.9 is 0.1: decimals as they were typed.
    same = [
        predictor.predict_set(test, **{name: values}).sizes().tolist()
        for name, values in (
            ("significance", ["0.1"] * 41),
            ("significance", [Decimal("0.1")] * 41),
            ("confidence_level", np.full(41, 0.9)),
            ("significance", 0.1),
            ("significance", np.array(0.1)),
        )
    ]
    assert all(sizes == same[0] for sizes in same)
    ties = predictor.predict_set(test, significance=levels, smoothing=np.random.default_rng(5)).sizes()
    assert len(ties) == 41


def test_bad_levels():
    probabilities, labels = _texts(np.random.default_rng(6), 30)
    predictor = ConformalLabelSets(min_labels=0).calibrate(probabilities, labels)
    for levels, words in (
        ([0.1, 0.2], "one for all or one per text"),
        (np.full((30, 1), 0.1), "one for all or one per text"),
        ([0.1] * 29 + [1.0], "must be in"),
        ([0.1] * 29 + [math.nan], "a number in"),
        (None, "Exactly one of 'significance' and 'confidence_level'"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            predictor.predict_set(probabilities, significance=levels)
    with pytest.raises(InvalidInputError, match="Got both"):
        predictor.predict_set(probabilities, significance=[0.1] * 30, confidence_level=0.9)


def test_the_scikit_learn_estimator_has_the_same_options():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(400, 5))
    Y = (X[:, :3] + rng.normal(0, 0.5, (400, 3)) > 0).astype(int)
    Y[~Y.any(axis=1), 0] = 1
    fitted = OneVsRestClassifier(LogisticRegression()).fit(X[:150], Y[:150])
    model = ConformalMultilabelClassifier(FrozenEstimator(fitted), taxonomy=ByCardinality((1, 2)))
    model.calibrate(X[150:350], Y[150:350])
    predictor, probabilities = model.predictor_, model.predict_proba(X[350:])
    assert predictor.taxonomy == ByCardinality((1, 2))
    sets = model.predict_set(X[350:], significance=[0.1, 0.2] * 25, assurance=0.8)
    again = predictor.predict_set(probabilities, significance=[0.1, 0.2] * 25, assurance=0.8)
    assert sets.sizes().tolist() == again.sizes().tolist()
    assert model.predict_p(X[350:], Y[350:]).tolist() == predictor.predict_p(probabilities, Y[350:]).tolist()


def test_ranks_by_hand():
    five, sure = Fraction("0.05"), Fraction("0.95")
    assert (rank_of(999, five), rank_of(999, five, sure)) == (50, 39)
    assert (rank_of(58, five, sure), rank_of(59, five, sure)) == (0, 1)
