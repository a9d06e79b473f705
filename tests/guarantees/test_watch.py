"""The exchangeability watch: ranks, fair bets, the bound on false alarms, alarms, files."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from surelabel.exceptions import ArtifactError, InvalidInputError
from surelabel.guarantees.watch import ExchangeabilityWatch


def capital_by_definition(p_values):
    """The capital after bets, from the formulas of the two papers."""
    slopes, accounts = np.array([-1.0, 0.0, 1.0]), []
    for jump in (1.0, 0.1, 0.01, 0.001, 0.0001):
        shares = np.full(3, 1 / 3)
        for p in p_values:
            shares = ((1 - jump) * shares + jump * shares.sum() / 3) * (1 + slopes * (p - 0.5))
        accounts.append(shares.sum())
    histograms = []
    for n in (2, 4, 8, 16):
        counts, capital = np.full(n, 0.5), 1.0
        for p in p_values:
            chosen = min(int(p * n), n - 1)
            capital *= n * counts[chosen] / counts.sum()
            counts[chosen] += 1
        histograms.append(capital)
    return (np.mean(accounts) + np.mean(histograms)) / 2


@given(st.lists(st.sampled_from([0.0, 1.0, 1.5, 2.0, np.inf]), max_size=40), st.lists(st.integers(0, 3), max_size=30))
def test_the_martingale_is_that_of_the_definition(first, later):
    pool, p_values = list(first), []
    drawn = np.random.default_rng(3).random(len(later))
    for value, u in zip(map(float, later), drawn, strict=True):
        n_larger = sum(other > value for other in pool)
        p_values.append((n_larger + u * (pool.count(value) + 1)) / (len(pool) + 1))
        pool.append(value)
    state = ExchangeabilityWatch(first, seed=3).update(later)
    assert 10**state.log10_martingale == pytest.approx(capital_by_definition(p_values))
    assert state.n_seen == len(later)
    assert len(state.path) == len(later)


def false_alarms(n_streams, n_calibration, n_texts, seed=0):
    rng = np.random.default_rng(seed)
    streams = np.round(rng.exponential(size=(n_streams, n_calibration + n_texts)), 2)  # with ties
    peaks = [
        ExchangeabilityWatch(scores[:n_calibration], seed=i).update(scores[n_calibration:]).log10_peak
        for i, scores in enumerate(streams)
    ]
    for alpha in (0.01, 0.05, 0.1, 0.25):
        assert sum(peak >= -np.log10(alpha) for peak in peaks) <= binom.ppf(0.999, n_streams, alpha)


def test_false_alarms_keep_to_their_bound():
    false_alarms(80, 30, 120)


@pytest.mark.slow
def test_false_alarms_keep_to_their_bound_over_a_thousand_streams():
    false_alarms(1000, 100, 1000)


@pytest.mark.parametrize("change", [0.5, -0.5], ids=["higher", "lower"])
def test_a_change_raises_the_alarm_and_it_stays(change):
    rng = np.random.default_rng(1)
    watch = ExchangeabilityWatch(rng.normal(size=300), alpha=0.01)
    assert not watch.update(rng.normal(size=200)).alarm
    state = watch.update(rng.normal(change, size=600))
    assert state.alarm
    assert 200 < state.alarm_at <= 800
    assert watch.update(rng.normal(size=300)).alarm
    assert watch.state.alarm_at == state.alarm_at


def test_a_change_of_spread_alone_raises_the_alarm():
    rng = np.random.default_rng(2)
    watch = ExchangeabilityWatch(rng.normal(size=500), alpha="0.01")
    assert watch.update(rng.normal(scale=0.4, size=800)).alarm


def test_a_watch_continues_as_if_it_had_never_stopped(tmp_path):
    scores = np.round(np.random.default_rng(3).exponential(size=200), 1)
    whole, watch = (ExchangeabilityWatch([*scores[:50], np.inf], alpha="0.02", seed=7) for _ in range(2))
    watch.update(scores[50:120])
    watch.save(tmp_path / "watch.json")
    watch = ExchangeabilityWatch.load(tmp_path / "watch.json")
    whole.update(scores[50:120])
    assert watch.update(scores[120:]).path.tolist() == whole.update(scores[120:]).path.tolist()
    assert watch.alpha == 0.02


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kind", "other"),
        ("alpha", "1e-999999999"),
        ("alpha", 0.5),
        ("scores", [float("nan")]),
        ("scores", "abc"),
        ("n_seen", -1),
        ("n_seen", 10**9),
        ("seed", "zero"),
        ("alarm_at", 10**6),
        ("peak", [1.0]),
        ("jumpers", [[0.0, 0.0, 0.0]] * 5),
        ("accounts", [float("nan")] * 9),
        ("bins", [[1.0]]),
    ],
)
def test_damaged_files_are_refused(name, value, tmp_path):
    path = tmp_path / "watch.json"
    watch = ExchangeabilityWatch([1.0, 2.0])
    watch.update([1.5])
    watch.save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {name: value}))
    with pytest.raises(ArtifactError, match="damaged"):
        ExchangeabilityWatch.load(path)


def test_files_of_others_are_refused(tmp_path):
    for content in ("", "[1, 2]", "[" * 100_000):
        (tmp_path / "watch.json").write_text(content)
        with pytest.raises(ArtifactError, match="not a watch"):
            ExchangeabilityWatch.load(tmp_path / "watch.json")


def test_bad_input():
    for scores in ([[1.0]], [float("nan")]):
        with pytest.raises(InvalidInputError, match="numbers"):
            ExchangeabilityWatch().update(scores)
    with pytest.raises(InvalidInputError, match="alpha"):
        ExchangeabilityWatch(alpha=2)
