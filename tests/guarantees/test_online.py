"""Levels that follow errors: by hand, the bound on adversarial streams, outcomes in any order, files."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surelabel._core import files
from surelabel.conformal import ConformalLabelSets
from surelabel.exceptions import ArtifactError, CalibrationWarning, InvalidInputError
from surelabel.guarantees.groups import ByGroup
from surelabel.guarantees.online import OnlineConformal
from surelabel.labels.shortlists import Shortlists
from surelabel.measures import LpNorm


def texts(rng, n, drift=0.0, d=3):
    """Texts whose classifier becomes too sure with the drift, (n,)."""
    logits = rng.normal(-0.5, 1.5, (n, d))
    labels = rng.random((n, d)) < 1 / (1 + np.exp(-logits))
    return 1 / (1 + np.exp(-(1.0 + np.broadcast_to(drift, n)[:, None]) * logits)), labels


@pytest.fixture(scope="module")
def predictor():
    return ConformalLabelSets(LpNorm(2), 0, n_jobs=1).calibrate(*texts(np.random.default_rng(0), 199))


def test_levels_by_hand(predictor):
    online = OnlineConformal(predictor, 0.1, rate=0.05)
    probabilities = np.array([[0.99, 0.02, 0.97], [0.9, 0.1, 0.2]])
    first = online.predict_set(probabilities[:1])
    assert first.sizes().tolist() == predictor.predict_set(probabilities[:1], significance=0.1).sizes().tolist()
    assert online.update(1 - (probabilities[:1] >= 0.5)).tolist() == [True]
    assert online.level_ == pytest.approx(0.1 + 0.05 * (0.1 - 1))
    online.predict_set(probabilities[1:])
    assert online.update((probabilities[1:] >= 0.5).astype(int)).tolist() == [False]
    assert online.level_ == pytest.approx(0.055 + 0.05 * 0.1)
    assert (online.error_rate_, online.n_settled_, online.n_pending_) == (0.5, 2, 0)


def test_missed_is_what_the_set_does_not_contain(predictor):
    rng = np.random.default_rng(1)
    probabilities, labels = texts(rng, 200, 1.0)
    online = OnlineConformal(predictor, 0.15, rate=0.2)
    for row, truth in zip(probabilities, labels, strict=True):
        sets = online.predict_set(row[None])
        assert online.update(truth[None]).tolist() == (~sets.contains(truth[None])).tolist()


@settings(max_examples=12)
@given(st.integers(0, 1000), st.sampled_from(["last", "level", "random", "drift"]), st.floats(0.01, 0.5))
def test_the_bound_holds_on_adversarial_streams(seed, adversary, rate):
    """An adversary that knows the level chooses how well each label-set fits; the extremes are out of its reach."""
    rng = np.random.default_rng(seed)
    # One label: the score of {0} is 1 - o. Calibration scores are 1 to 19 twentieths.
    grid = np.arange(1, 20) / 20
    predictor = ConformalLabelSets(LpNorm(1), 1).calibrate(1 - grid[:, None], np.ones((19, 1)))
    online, significance, missed = OnlineConformal(predictor, 0.2, rate=rate), 0.2, False
    for step in range(80):
        rank = {
            "last": 2 if missed else 19,
            "level": 2 if online.level_ > 0.2 else 19,
            "random": int(rng.integers(2, 20)),
            "drift": 2 if step > 40 else 19,
        }[adversary]
        online.predict_set([[1 - grid[20 - rank]]])  # a p-value of rank / 20
        missed = bool(online.update([[1]])[0])
    n = online.n_settled_
    assert abs(online.error_rate_ - significance) <= (1 + rate) / (rate * n) + 1e-12


def test_errors_stay_near_the_level_while_texts_drift(predictor):
    rng = np.random.default_rng(2)
    probabilities, labels = texts(rng, 1500, np.linspace(0, 3, 1500))
    online = OnlineConformal(predictor, 0.1, rate=0.02)
    for start in range(0, 1500, 10):
        online.predict_set(probabilities[start : start + 10])
        online.update(labels[start : start + 10])
    fixed = (~predictor.predict_set(probabilities, significance=0.1).contains(labels)).mean()
    assert fixed > 0.16
    assert abs(online.error_rate_ - 0.1) < 0.03


def test_no_set_is_cut_past_the_extreme_scores(predictor):
    online = OnlineConformal(predictor, 0.5, rate=0.9)
    row = np.array([[0.9, 0.1, 0.2]])
    for label_set, level in ((1 - (row >= 0.5), Fraction(1, 200)), (row >= 0.5, Fraction(199, 200))):
        for _ in range(20):
            online.predict_set(row)
            online.update(label_set.astype(int))
            if online.level_ == float(level):
                break
        sets, expected = online.predict_set(row), predictor.predict_set(row, significance=level)
        assert sets.sizes().tolist() == expected.sizes().tolist()
        online.drop(online.last_ids_)


def test_outcomes_come_in_any_order_and_some_never(predictor, tmp_path):
    rng = np.random.default_rng(3)
    probabilities, labels = texts(rng, 60)
    online = OnlineConformal(predictor, 0.2)
    ids = [f"text {k}" for k in range(60)]
    online.predict_set(probabilities[:40], ids[:40])
    order = rng.permutation(40)[:25]
    online.update(labels[order], [ids[k] for k in order])
    online.save(tmp_path / "stream.npz")
    again = OnlineConformal.load(tmp_path / "stream.npz")
    for one in (online, again):
        one.predict_set(probabilities[40:], ids[40:])
        one.drop([ids[int(k)] for k in range(40) if k not in order])
        one.update([set(np.flatnonzero(row)) for row in labels[40:]])
    assert repr(again) == repr(online)
    assert (again.level_, again.error_rate_, again.n_pending_) == (online.level_, online.error_rate_, 0)


def test_texts_that_are_pending_too_long_are_forgotten(predictor):
    online = OnlineConformal(predictor, max_pending=3)
    online.predict_set(np.full((5, 3), 0.5))
    assert online.last_ids_ == ("0", "1", "2", "3", "4")
    assert online.n_pending_ == 3
    with pytest.raises(InvalidInputError, match="pending"):
        online.update([[1, 0, 0]], ["1"])


def test_refused_outcomes_change_nothing(predictor):
    online = OnlineConformal(predictor)
    online.predict_set(np.full((2, 3), 0.5), ["a", "b"])
    for labels, ids in (
        ([[1, 0, 0]], ["c"]),
        ([[1, 0, 0]] * 2, ["a", "a"]),
        ([[1, 0, 2]], ["a"]),
        ([[1, 0]], ["a"]),
        ([[1, 0, 0]] * 3, None),
    ):
        with pytest.raises(InvalidInputError):
            online.update(labels, ids)
    assert (online.n_pending_, online.n_settled_, online.level_) == (2, 0, 0.05)
    with pytest.raises(InvalidInputError, match="pending"):
        online.predict_set(np.full((1, 3), 0.5), ["a"])
    with pytest.raises(InvalidInputError, match="pending"):
        online.drop(["c"])


def test_bad_parameters(predictor):
    for options in ({"rate": 0}, {"rate": 1.0}, {"rate": True}, {"significance": 2}, {"max_pending": 0}):
        with pytest.raises(InvalidInputError):
            OnlineConformal(predictor, **options)
    with pytest.raises(InvalidInputError, match="calibrated"):
        OnlineConformal(ConformalLabelSets())
    with warnings.catch_warnings(action="ignore", category=CalibrationWarning):
        grouped = ConformalLabelSets(taxonomy=ByGroup()).calibrate([[0.5]], [[1]], ["a"])
    with pytest.raises(InvalidInputError, match="taxonomy"):
        OnlineConformal(grouped)
    with pytest.raises(InvalidInputError, match="Shortlists"):
        OnlineConformal(predictor).predict_set(Shortlists([[0]], [[0.5]], 3))
    assert math.isnan(OnlineConformal(predictor).error_rate_)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("significance", "1e-999999999"),
        ("rate", 2.0),
        ("level", math.nan),
        ("level", 5.0),
        ("counts", [0, 1, 0]),
        ("counts", [-1, 0, 0]),
        ("pending", [["a", 1]]),
        ("pending", [["a", 1], ["a", 1]]),
        ("pending", [["a", 0], ["b", 1]]),
        ("pending", [["a", 1000], ["b", 1]]),
        ("predictor", None),
    ],
)
def test_damaged_files_are_refused(predictor, name, value, tmp_path):
    path = tmp_path / "stream.npz"
    online = OnlineConformal(predictor)
    online.predict_set(np.full((2, 3), 0.5), ["a", "b"])
    online.save(path)
    header, arrays = files.read_arrays(path, "online-conformal")
    files.write_arrays(path, header | {name: value}, arrays)
    with pytest.raises(ArtifactError, match="damaged"):
        OnlineConformal.load(path)
