"""The exchangeability watch: ranks, fair bets, the bound on false alarms, alarms, going on after a stop."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, kstest

import cases
from surelabel import ConformalLabelSets, LogLoss, LpNorm
from surelabel.exceptions import ArtifactError, InvalidInputError, NotCalibratedError
from surelabel.guarantees.watch import ExchangeabilityWatch, _Gambler


def p_values_of(scores, n_calibration, seed=0):
    """The p-values that a watch bets on."""
    seen = []

    class Listening(_Gambler):
        def bet(self, p_value):
            seen.append(p_value)
            return super().bet(p_value)

    watch = ExchangeabilityWatch(scores[:n_calibration], seed=seed)
    watch._gambler = Listening()
    watch.update_scores(scores[n_calibration:])
    return np.array(seen)


@given(st.lists(st.sampled_from([0.0, 1.0, 1.5, 2.0, np.inf]), max_size=40), st.lists(st.integers(0, 3), max_size=40))
@settings(max_examples=cases.examples(100))
def test_ranks_are_those_of_counting(first, later):
    pool = list(first)
    drawn = np.random.default_rng(3).random(len(later))
    p_values = p_values_of([*first, *map(float, later)], len(first), seed=3).tolist()
    for value, p_value, u in zip(map(float, later), p_values, drawn, strict=True):
        assert p_value == (sum(v > value for v in pool) + u * (pool.count(value) + 1)) / (len(pool) + 1)
        pool.append(value)
    watch = ExchangeabilityWatch(first)
    watch.update_scores(later)
    assert watch.to_dict()["scores"] == sorted(pool)


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0]), min_size=1, max_size=25), st.integers(0, 10))
@settings(max_examples=cases.examples(60))
def test_p_values_rank_among_all_that_came_before(scores, n_calibration):
    n_calibration = min(n_calibration, len(scores))
    rng = np.random.default_rng(7)
    expected = []
    for t in range(n_calibration, len(scores)):
        larger = sum(a > scores[t] for a in scores[:t])
        equal = sum(a == scores[t] for a in scores[: t + 1])
        expected.append((larger + rng.random() * equal) / (t + 1))
    assert p_values_of(scores, n_calibration, seed=7).tolist() == expected


@given(st.lists(st.floats(0, 1), max_size=30))
@settings(max_examples=cases.examples(40))
def test_every_bet_is_fair(history):
    """Whatever came before, the mean of the next capital over a uniform p-value is the capital now."""
    gambler = _Gambler()
    for p_value in history:
        gambler.bet(p_value)
    before = gambler.log_capital
    shares = []
    middles = (np.arange(64) + 0.5) / 64  # exact for straight lines, and for 16 bins
    state = gambler.jumpers.copy(), [b.copy() for b in gambler.bins], gambler.accounts.copy()
    for p_value in middles:
        gambler.jumpers, gambler.bins, gambler.accounts = state[0].copy(), [b.copy() for b in state[1]], state[2].copy()
        shares.append(np.exp(gambler.bet(float(p_value)) - before))
    assert np.mean(shares) == pytest.approx(1.0, abs=1e-12)


def test_p_values_of_exchangeable_texts_are_independent_and_uniform():
    rng = np.random.default_rng(0)
    scores = np.round(rng.normal(size=4000), 1)  # many ties
    p_values = p_values_of(scores, 20)
    assert kstest(p_values, "uniform").pvalue > 1e-3
    assert abs(np.corrcoef(p_values[1:], p_values[:-1])[0, 1]) < 4 / np.sqrt(len(p_values))


def peaks(n_streams, n_calibration, n_texts, seed=0):
    rng = np.random.default_rng(seed)
    return [
        ExchangeabilityWatch(scores[:n_calibration], seed=i).update_scores(scores[n_calibration:]).log10_peak
        for i, scores in enumerate(np.round(rng.exponential(size=(n_streams, n_calibration + n_texts)), 2))
    ]


def check_false_alarms(found):
    for alpha in (0.01, 0.05, 0.1, 0.25):
        alarms = sum(peak >= -np.log10(alpha) for peak in found)
        assert alarms <= binom.ppf(0.999, len(found), alpha)


def test_false_alarms_keep_to_their_bound():
    check_false_alarms(peaks(150, 30, 150))


@pytest.mark.slow
def test_false_alarms_keep_to_their_bound_over_a_thousand_orders():
    check_false_alarms(peaks(1000, 100, 1500))


def test_ranks_among_the_calibration_alone_would_not_keep_it():
    """Why scores are ranked among all before them: against one small calibration set p-values are shifted together."""
    rng = np.random.default_rng(0)
    false_alarms = 0
    for _ in range(20):
        calibration, stream = np.sort(rng.normal(size=30)), rng.normal(size=1000)
        gambler = _Gambler()
        capital = [gambler.bet(float(p)) for p in (30 - np.searchsorted(calibration, stream) + rng.random(1000)) / 31]
        false_alarms += max(capital) >= -np.log(0.01)
    assert false_alarms >= 15


@pytest.mark.parametrize("change", [0.5, -0.5], ids=["stranger", "less strange"])
def test_a_change_raises_the_alarm_and_it_stays(change):
    rng = np.random.default_rng(1)
    watch = ExchangeabilityWatch(rng.normal(size=300))
    assert not watch.update_scores(rng.normal(size=300)).alarm
    state = watch.update_scores(rng.normal(size=400) + change)
    assert state.alarm
    assert 300 < state.alarm_at <= 700
    assert state.n_seen == 700
    assert len(state.path) == 400
    assert state.path[-1] == state.log10_martingale
    assert state.path[state.alarm_at - 301] >= 2 > state.path[state.alarm_at - 302]
    later = watch.update_scores(rng.normal(size=1500))
    assert later.alarm_at == state.alarm_at
    assert later.log10_peak >= later.log10_martingale
    assert repr(watch) == f"<ExchangeabilityWatch of labels: 2200 texts, alarm at text {state.alarm_at}>"


def test_a_change_of_spread_alone_raises_the_alarm():
    rng = np.random.default_rng(2)
    watch = ExchangeabilityWatch(rng.normal(size=500))
    assert watch.update_scores(2.5 * rng.normal(size=500)).alarm


@pytest.fixture(scope="module")
def predictor():
    rng = np.random.default_rng(3)
    probabilities = rng.beta(0.4, 0.6, (200, 5))
    labels = rng.random((200, 5)) < probabilities
    return ConformalLabelSets(LogLoss(), min_labels=0).calibrate(probabilities, labels), probabilities


def test_true_label_sets_and_forced_predictions_are_watched(predictor):
    predictor, calibration = predictor
    rng = np.random.default_rng(4)
    probabilities = rng.beta(0.4, 0.6, (250, 5))
    labels = rng.random((250, 5)) < probabilities
    watch = ExchangeabilityWatch.from_predictor(predictor, alpha="0.01", seed=1)
    by_hand = ExchangeabilityWatch(predictor.calibration_.totals, alpha=0.01, seed=1)
    expected = by_hand.update_scores(predictor.totals(probabilities, labels))
    assert watch.update(probabilities, labels).path.tolist() == expected.path.tolist()
    assert not expected.alarm
    assert watch.update(probabilities, ~labels).alarm
    unlabelled = ExchangeabilityWatch.from_predictor(predictor, probabilities=calibration)
    assert unlabelled.watched == "predictions"
    assert not unlabelled.update_unlabelled(probabilities).alarm
    assert unlabelled.update_unlabelled(np.full((250, 5), 0.45)).alarm


def test_totals_rank_as_scores_do(predictor):
    predictor, probabilities = predictor
    forced = predictor.predict(probabilities)
    assert predictor.totals(probabilities).tolist() == predictor.totals(probabilities, forced.labels).tolist()
    p_values = predictor.calibration_.p_values(predictor.totals(probabilities))
    assert p_values.tolist() == forced.credibility.tolist()


@pytest.mark.parametrize("form", ["file", "values"])
def test_a_watch_goes_on_as_if_it_had_never_stopped(tmp_path, form):
    rng = np.random.default_rng(5)
    scores = np.round(rng.normal(size=500), 1)
    whole = ExchangeabilityWatch(scores[:100], alpha="0.07", seed=9)
    state = whole.update_scores(scores[100:])
    watch = ExchangeabilityWatch(scores[:100], alpha="0.07", seed=9)
    for start in range(100, 500, 80):
        watch.update_scores(scores[start : start + 80])
        if form == "file":
            watch.save(tmp_path / "watch.json")
            watch = ExchangeabilityWatch.load(tmp_path / "watch.json")
        else:
            watch = ExchangeabilityWatch.from_dict(json.loads(json.dumps(watch.to_dict())))
    assert watch.state.log10_martingale == state.log10_martingale
    assert (watch.state.n_seen, watch.state.alarm_at, watch.alpha) == (400, state.alarm_at, 0.07)
    assert watch.state.log10_peak == state.log10_peak


def test_bad_input_says_what_to_do(predictor, tmp_path):
    predictor, probabilities = predictor
    watch = ExchangeabilityWatch([0.1, 0.2])
    with pytest.raises(InvalidInputError, match="update_scores"):
        watch.update(probabilities, probabilities > 0.5)
    with pytest.raises(InvalidInputError, match="make a second watch"):
        ExchangeabilityWatch.from_predictor(predictor).update_unlabelled(probabilities)
    with pytest.raises(InvalidInputError, match="NaN"):
        watch.update_scores([0.1, np.nan])
    assert watch.state.n_seen == 0
    with pytest.raises(InvalidInputError, match="'labels' or 'predictions'"):
        ExchangeabilityWatch(watched="texts")
    with pytest.raises(InvalidInputError, match=r"in \(0, 1\)"):
        ExchangeabilityWatch(alpha=1)
    with pytest.raises(NotCalibratedError):
        ExchangeabilityWatch.from_predictor(ConformalLabelSets(LpNorm(2)))


@pytest.mark.parametrize(
    "damage",
    [
        {"version": 2},
        {"scores": ["a"]},
        {"accounts": [0.0]},
        {"jumpers": None},
        {"bins": [[1.0]]},
        {"random": {"bit_generator": "os.system"}},
        {"alpha": "2"},
        {"alpha": "1/0"},
        {"watched": "x"},
    ],
)
def test_damaged_files_are_refused(tmp_path, damage):
    values = ExchangeabilityWatch([0.5]).to_dict() | damage
    path = tmp_path / "watch.json"
    path.write_text(json.dumps(values))
    with pytest.raises(ArtifactError, match="watch"):
        ExchangeabilityWatch.load(path)
    path.write_text("{")
    with pytest.raises(ArtifactError, match="damaged"):
        ExchangeabilityWatch.load(path)
