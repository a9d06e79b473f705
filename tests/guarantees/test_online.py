"""Online conformal prediction: levels by hand, outcomes in any order, files, and errors that stay near the level."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse

import reference
from cases import calibration_warnings_ignored
from surelabel import ByCardinality, ByGroup, ByRarity, ConformalLabelSets, LpNorm, OnlineConformal
from surelabel.calibration import threshold_of
from surelabel.exceptions import ArtifactError, InvalidInputError
from surelabel.guarantees.online import METHODS
from surelabel.guarantees.streams import RATES, Stream, WeightedCalibration, WeightedTotals


def _texts(rng, n_texts, drift=0.0, n_labels=3):
    logits = rng.normal(-0.5, 1.5, (n_texts, n_labels))
    labels = rng.random((n_texts, n_labels)) < 1 / (1 + np.exp(-logits))
    strength = 1.0 + np.broadcast_to(drift, n_texts)[:, None]
    return 1 / (1 + np.exp(-strength * logits)), labels


@pytest.fixture(scope="module")
def predictor():
    probabilities, labels = _texts(np.random.default_rng(0), 199)
    return ConformalLabelSets(LpNorm(2), 0, n_jobs=1).calibrate(probabilities, labels)


def test_levels_by_hand(predictor):
    online = OnlineConformal(predictor, 0.1, rate=0.05)
    probabilities = np.array([[0.99, 0.02, 0.97], [0.9, 0.1, 0.2]])
    first = online.predict_set(probabilities[:1])
    plain = predictor.predict_set(probabilities[:1], significance=0.1)
    assert first.sizes().tolist() == plain.sizes().tolist()
    worst = 1 - (probabilities[:1] >= 0.5)
    assert online.update(worst).tolist() == [True]
    assert online.level_ == pytest.approx(0.1 + 0.05 * (0.1 - 1))
    online.predict_set(probabilities[1:])
    assert online.update((probabilities[1:] >= 0.5).astype(int)).tolist() == [False]
    assert online.level_ == pytest.approx(0.055 + 0.05 * 0.1)
    assert (online.error_rate_, online.n_settled_, online.n_pending_) == (0.5, 2, 0)


def test_several_rates_move_as_their_paper_says():
    levels = Stream(0.1, RATES)
    expected, weights = np.full(8, 0.1), np.full(8, 1 / 8)
    eagerness = math.sqrt(3 / 500) * math.sqrt((math.log(8 * 500) + 2) / (0.9**2 * 0.1**3 + 0.1**2 * 0.9**3))
    for p_value in (0.05, 0.5, 0.2, 0.01):
        loss = 0.1 * (p_value - expected) - np.minimum(0, p_value - expected)
        weights = weights * np.exp(-eagerness * loss)
        weights = 0.999 * weights / weights.sum() + 0.001 / 8
        expected = expected + np.array(RATES) * (0.1 - (p_value <= expected))
        levels.update(p_value, p_value <= levels.level)
        assert levels.levels == pytest.approx(expected)
        assert levels.weights == pytest.approx(weights)


def test_weighted_p_values_are_those_of_the_definition(predictor):
    base = predictor.calibration_
    rng = np.random.default_rng(2)
    totals, weights = rng.choice([0.1, 0.2, 0.3, 0.5], 30), rng.random(30)
    given = WeightedTotals(totals, weights)
    weighted = WeightedCalibration(base.measure, totals, base.n_labels, 0, 3, None, weighted=given)
    for value in (0.05, 0.1, 0.15, 0.5, 0.6):
        expected = (weights[totals >= value].sum() + 1) / (weights.sum() + 1)
        assert weighted.p_values(np.array([value]))[0] == pytest.approx(expected)
    for level in (0.05, 0.1, 0.3, 0.7):
        members = [value for value in (0.1, 0.2, 0.3, 0.5) if weighted.p_values(np.array(value)) > level]
        unlimited = 1 / (weights.sum() + 1) > level
        assert weighted.threshold(level) == (math.inf if unlimited else max(members, default=-math.inf))
    given = WeightedTotals(base.totals, np.ones(199))
    equal = WeightedCalibration(base.measure, base.totals, base.n_labels, 0, 3, None, weighted=given)
    assert equal.p_values(totals).tolist() == pytest.approx(base.p_values(totals).tolist())


def test_a_window_is_a_calibration_by_the_last_scores(predictor):
    rng = np.random.default_rng(3)
    online = OnlineConformal(predictor, 0.1, "window", window=50)
    probabilities, labels = _texts(rng, 80, drift=2.0)
    for row, known in zip(probabilities[:60], labels[:60], strict=True):
        online.predict_set(row[None])
        online.update(known[None])
    last = ConformalLabelSets(LpNorm(2), 0).calibrate(probabilities[10:60], labels[10:60])
    found = online.predict_set(probabilities[60:])
    expected = last.predict_set(probabilities[60:], significance=0.1)
    assert found.sizes().tolist() == expected.sizes().tolist()
    assert [one.top(3) for one in found] == [one.top(3) for one in expected]


@pytest.mark.parametrize("method", METHODS)
def test_outcomes_come_later_in_any_order_and_some_never(predictor, method, tmp_path):
    probabilities, labels = _texts(np.random.default_rng(4), 60)
    online = OnlineConformal(predictor, 0.2, method)
    online.predict_set(probabilities[:30], ids=[f"t{i}" for i in range(30)])
    online.update(labels[[7, 2]], ids=["t7", "t2"])
    online.save(tmp_path / "state")
    again = OnlineConformal.load(tmp_path / "state")
    for stream in (online, again):
        stream.update(labels[[0, 1]])  # those that have waited longest
        stream.drop(["t3"])
        assert stream.n_pending_ == 25
        stream.predict_set(probabilities[30:], ids=range(30, 60))
        stream.update(scipy.sparse.csr_array(labels[40:50]), ids=range(40, 50))
        assert stream.n_settled_ == 14
    assert (again.error_rate_, again.level_) == (online.error_rate_, online.level_)
    last = [stream.predict_set(probabilities[:5]).sizes().tolist() for stream in (online, again)]
    assert last[0] == last[1]
    assert online.last_ids_ == again.last_ids_ == ("0", "1", "2", "3", "4")


def test_bad_outcomes_change_nothing(predictor):
    probabilities, labels = _texts(np.random.default_rng(5), 4)
    online = OnlineConformal(predictor, 0.1)
    online.predict_set(probabilities, ids="abcd")
    online.update(labels[:1], ids=["a"])
    before = repr(online), online.level_
    contradiction = ~labels[:1]
    for known, ids, words in (
        (labels[:2], ["b", "x"], "There is no text 'x' that waits"),
        (labels[:1], ["a"], "'a' is settled already, with the same label-set"),
        (contradiction, ["a"], "'a' is settled already, with another label-set, which this one contradicts"),
        (labels[:2], ["b", "b"], "2 different identifiers"),
        (labels[:2], ["b"], "2 different identifiers"),
        (np.ones((4, 3)), None, "labels of 4 texts, and 3 texts wait"),
        (np.ones((1, 2)), ["b"], "3 labels"),
        ([[2, 0, 1]], ["b"], "0 and 1"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            online.update(known, ids=ids)
        assert (repr(online), online.level_) == before
    with pytest.raises(InvalidInputError, match=r"must be new\. Got 'b', which waits"):
        online.predict_set(probabilities[:1], ids=["b"])
    with pytest.raises(InvalidInputError, match=r"must be new\. Got 'a', which is settled"):
        online.predict_set(probabilities[:1], ids=["a"])
    with pytest.raises(InvalidInputError, match="'ids' parameter of drop"):
        online.drop(["a"])
    with pytest.raises(InvalidInputError, match="takes dense probabilities"):
        online.predict_set(scipy.sparse.csr_array(probabilities))


def test_bad_parameters(predictor):
    for parameters, words in (
        ({"method": "magic"}, "'method' parameter"),
        ({"rate": 0.0}, "'rate' parameter"),
        ({"decay": 1.0}, "'decay' parameter"),
        ({"window": 0}, "'window' parameter"),
        ({"max_pending": True}, "'max_pending' parameter"),
        ({"significance": 1.5}, "'significance' parameter"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            OnlineConformal(predictor, **parameters)
    with pytest.raises(InvalidInputError, match="must be a calibrated ConformalLabelSets"):
        OnlineConformal("predictor")
    grouped = ConformalLabelSets(taxonomy=ByGroup()).calibrate([[0.9]] * 3, [[1]] * 3, ["a"] * 3)
    with pytest.raises(InvalidInputError, match="must hold the group of each text"):
        OnlineConformal(grouped).predict_set([[0.9]])
    with pytest.raises(InvalidInputError, match="is for predictors with a taxonomy"):
        OnlineConformal(predictor).predict_set([[0.9, 0.1, 0.2]], groups=["a"])


def test_no_set_is_empty_and_none_holds_everything(predictor):
    online = OnlineConformal(predictor, 0.1, rate=0.5, keep_best=True)
    probabilities = np.random.default_rng(6).choice([0.02, 0.99], (40, 3))
    largest = predictor.calibration_.totals[-1]
    for row in probabilities[:20]:
        online.predict_set(row[None])
        online.update(1 - (row[None] >= 0.5))  # always as wrong as can be
    assert online.level_ == pytest.approx(1 / 200)
    sets = online.predict_set(probabilities[20:21])
    assert sets.contains([[0, 0, 0]]).tolist() == [predictor.totals(probabilities[20:21], [[0, 0, 0]])[0] <= largest]
    for row in np.vstack([probabilities[20:], probabilities[20:]]):
        assert online.predict_set(row[None])[0].size >= 1
        online.update((row[None] >= 0.5), ids=online.last_ids_)  # always right
    assert online.level_ == pytest.approx(1 - 1 / 200)


def test_texts_that_wait_too_long_are_forgotten(predictor):
    probabilities, labels = _texts(np.random.default_rng(7), 10)
    online = OnlineConformal(predictor, 0.1, max_pending=4)
    online.predict_set(probabilities)
    assert online.n_pending_ == 4
    with pytest.raises(InvalidInputError, match="or was forgotten"):
        online.update(labels[:1], ids=["5"])
    online.update(labels[6:7], ids=["6"])


def test_damaged_files_are_rejected(predictor, tmp_path):
    online = OnlineConformal(predictor, 0.1, "dtaci")
    online.predict_set(_texts(np.random.default_rng(8), 3)[0])
    online.save(tmp_path / "state")
    with np.load(tmp_path / "state") as arrays:
        entries = dict(arrays)
    for name, value in (("levels", np.zeros(3)), ("pending", np.zeros((3, 9))), ("scores", np.array([np.nan]))):
        with (tmp_path / "damaged").open("wb") as stream:
            np.savez(stream, **{**entries, name: value})
        with pytest.raises(ArtifactError, match="damaged"):
            OnlineConformal.load(tmp_path / "damaged")


TAXONOMIES = {
    "group": ByGroup(),
    "cardinality": ByCardinality((1, 2)),
    "rarity": ByRarity([5, 50, 500], (10, 100)),
    "group x cardinality": ByGroup() * ByCardinality((2,)),
}


def _divided(taxonomy, rng, n_texts=300):
    probabilities, labels = _texts(rng, n_texts)
    groups = rng.choice(["mail", "wire"], n_texts).tolist() if taxonomy.by_group else None
    with calibration_warnings_ignored():
        return ConformalLabelSets(LpNorm(2), 0, n_jobs=1, taxonomy=taxonomy).calibrate(probabilities, labels, groups)


def test_an_outcome_moves_the_level_of_its_own_category_by_hand():
    predictor = _divided(ByGroup() * ByCardinality((1,)), np.random.default_rng(20))
    online = OnlineConformal(predictor, 0.1, rate=0.05)
    assert set(online.levels_.values()) == {0.1}
    online.predict_set([[0.99, 0.02, 0.97]] * 2, ids=["first", "second"], groups=["mail", "wire"])
    assert online.update([[0, 1, 0]], ids=["first"]).tolist() == [True]
    moved = {name: level for name, level in online.levels_.items() if level != 0.1}
    assert moved == {"group 'mail', 1 or more labels": pytest.approx(0.1 + 0.05 * (0.1 - 1))}
    assert online.update([[1, 0, 1]], ids=["second"]).tolist() == [False]
    assert online.levels_["group 'wire', 1 or more labels"] == pytest.approx(0.105)
    assert online.error_rates_ == {"group 'mail', 1 or more labels": 1.0, "group 'wire', 1 or more labels": 0.0}
    assert online.level_ == 0.1
    # The next sets are those of categories that are cut at these levels.
    texts = _texts(np.random.default_rng(21), 40)[0]
    found = online.predict_set(texts, groups=["mail"] * 40).sizes()
    levels = [Fraction(online.levels_[f"group 'mail', {kind}"]) for kind in ("0 labels", "1 or more labels")]
    categories = predictor.calibration_.categories
    at = [threshold_of(categories.category(0, kind), level) for kind, level in enumerate(levels)]
    every = np.array(reference.candidates(3, 0, 3), dtype=bool)
    totals = np.array([predictor.totals(np.tile(text, (8, 1)), every) for text in texts])
    kinds = (every.sum(axis=1) > 0).astype(int)
    assert found.tolist() == (totals <= np.array(at)[kinds]).sum(axis=1).tolist()


@pytest.mark.parametrize("taxonomy", TAXONOMIES.values(), ids=TAXONOMIES)
@pytest.mark.parametrize("method", METHODS)
def test_errors_of_every_category_stay_near_the_level_while_texts_drift(taxonomy, method):
    rng = np.random.default_rng(22)
    predictor = _divided(taxonomy, rng)
    probabilities, labels = _texts(rng, 1200, drift=np.linspace(0.0, 2.0, 1200))
    groups = rng.choice(["mail", "wire"], 1200).tolist() if taxonomy.by_group else [None] * 1200
    online = OnlineConformal(predictor, 0.1, method, rate=0.05)
    errors, of = [], []
    for row, known, group in zip(probabilities, labels, groups, strict=True):
        asked = None if group is None else [group]
        found = online.predict_set(row[None], groups=asked)
        errors.append(bool(online.update(known[None])[0]))
        assert errors[-1] is not bool(found.contains(known[None])[0])
        of.append((group, int(taxonomy.kinds_of(known[None])[0])))
    plain = predictor.predict_p(probabilities, labels, groups=groups if taxonomy.by_group else None) <= 0.1
    for category in set(of):
        here = np.array([one == category for one in of])
        rate = np.array(errors)[here].mean()
        if method == "aci":  # the theorem, for every category
            assert abs(rate - 0.1) <= (1 + 0.05) / (0.05 * here.sum())
        assert abs(rate - 0.1) < max(0.06, abs(plain[here].mean() - 0.1))
    assert len(online.error_rates_) == len(set(of))
    assert np.mean(errors) == pytest.approx(online.error_rate_)


@pytest.mark.parametrize("method", METHODS)
def test_categories_are_saved_and_resumed(method, tmp_path):
    taxonomy = TAXONOMIES["group x cardinality"]
    rng = np.random.default_rng(23)
    online = OnlineConformal(_divided(taxonomy, rng), 0.2, method, keep_best=True)
    probabilities, labels = _texts(rng, 60)
    groups = rng.choice(["mail", "wire"], 60).tolist()
    online.predict_set(probabilities[:30], groups=groups[:30])
    online.update(labels[:12])
    online.save(tmp_path / "state")
    again = OnlineConformal.load(tmp_path / "state")
    for stream in (online, again):
        stream.update(labels[12:30])
        assert stream.predict_set(probabilities[30:], groups=groups[30:]).sizes().min() >= 1
    assert again.levels_ == online.levels_
    assert again.error_rates_ == online.error_rates_
    last = [stream.predict_set(probabilities[:9], groups=groups[:9]) for stream in (online, again)]
    assert [one.top(4) for one in last[0]] == [one.top(4) for one in last[1]]


def test_a_category_without_calibration_texts_holds_all_its_candidates():
    probabilities, labels = _texts(np.random.default_rng(24), 60)
    labels[:, 2] = False
    labels[:, :2] = [True, False]
    with calibration_warnings_ignored():
        predictor = ConformalLabelSets(LpNorm(2), 1, taxonomy=ByCardinality((1, 2))).calibrate(probabilities, labels)
    for method in METHODS:
        online = OnlineConformal(predictor, 0.1, method)
        found = online.predict_set([[0.9, 0.1, 0.1]])[0]
        assert found.size >= 4  # {0, 1}, {0, 2}, {1, 2} and {0, 1, 2} are all there
        assert {0, 1, 2} in found
        online.update([[1, 1, 0]])
        assert list(online.error_rates_.values()) == [0.0]
        is_plain = method in ("aci", "dtaci")
        assert ({0, 1, 2} in online.predict_set([[0.9, 0.1, 0.1]])[0]) is is_plain or method == "nexcp"


@pytest.mark.parametrize("method", METHODS)
def test_errors_stay_near_the_level_while_texts_drift(predictor, method):
    rng = np.random.default_rng(9)
    drift = np.linspace(0.0, 2.0, 1500)
    probabilities, labels = _texts(rng, 1500, drift=drift)
    plain = (predictor.predict_p(probabilities, labels) <= 0.1).mean()
    online = OnlineConformal(predictor, 0.1, method)
    for row, known in zip(probabilities, labels, strict=True):
        online.predict_set(row[None])
        online.update(known[None])
    assert plain > 0.13
    assert abs(online.error_rate_ - 0.1) < (0.015 if method in ("aci", "dtaci") else 0.03)
    if method == "aci":
        assert abs(online.error_rate_ - 0.1) <= (1 + 0.01) / (0.01 * 1500)


def test_levels_and_weights_by_hand():
    levels = Stream(0.1, (0.01,))
    levels.update(0.02, True)
    assert levels.level == pytest.approx(0.091)
    totals = WeightedTotals(np.array([2.0, 1.0]), np.array([1.0, 0.5]))
    assert totals.p_values(np.array([1.0, 1.5, 3.0])).tolist() == [1.0, 0.8, 0.4]


def test_the_predictor_of_the_moment_cuts_with_its_weights(predictor):
    probabilities, labels = _texts(np.random.default_rng(31), 400, drift=np.linspace(0.0, 2.0, 400))
    online = OnlineConformal(predictor, 0.1, "nexcp")
    for row in range(300):
        online.predict_set(probabilities[row : row + 1])
        online.update(labels[row : row + 1])
    sets = online.current().predict_set(probabilities[300:], significance=0.1)
    assert sets.sizes().tolist() == online.predict_set(probabilities[300:]).sizes().tolist()
    assert sets.sizes().sum() != predictor.predict_set(probabilities[300:], significance=0.1).sizes().sum()
