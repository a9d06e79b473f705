"""Automation: the certified threshold, the batch selection, and what they promise."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from cases import Weighted, calibration_warnings_ignored, examples
from surelabel import (
    Automation,
    ConformalLabelSets,
    LabelConstraints,
    LogLoss,
    LpNorm,
    Mahalanobis,
    SparseProbabilities,
)
from surelabel._kernels import guesses
from surelabel.calibration import fewest_assured
from surelabel.exceptions import ArtifactError, InvalidInputError, NotCalibratedError
from surelabel.guarantees.automation import SCORES
from surelabel.guarantees.certifying import certified_threshold

FIVE, SURE = Fraction("0.05"), Fraction("0.95")
DOUBT = 1e-6


def _texts(rng, n_texts, n_labels=4, spread=0.25):
    probabilities = rng.beta(spread, spread, (n_texts, n_labels))
    return probabilities, rng.random((n_texts, n_labels)) < probabilities


def _tail(count, n, p):
    """P(Bin(n, p) <= count), exactly."""
    return sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(count + 1))


def _threshold_by_definition(scores, wrong, max_wrong, assurance, share=None):
    """Try thresholds one after the other, with exact binomial tails; from two places on if no share is given."""

    def fewest(doubt):
        return next(n for n in range(1, 10**4) if (1 - max_wrong) ** n <= doubt)

    n, doubt = len(scores), 1 - assurance
    if share is not None:
        return _sequence(scores, wrong, max_wrong, doubt, max(fewest(doubt), math.ceil(share * n)))
    places = {max(fewest(doubt / 2), math.ceil(n * percent / 100)) for percent in (10, 40)}
    places = places if len(places) > 1 else {fewest(doubt)}
    return min(_sequence(scores, wrong, max_wrong, doubt / len(places), first) for first in places)


def _sequence(scores, wrong, max_wrong, doubt, first):
    best = math.inf
    for threshold in [*sorted(set(scores), reverse=True), -math.inf]:
        over = [w for s, w in zip(scores, wrong, strict=True) if s > threshold]
        if len(over) < first:
            continue
        if _tail(sum(over), len(over), max_wrong) > doubt:
            break
        best = threshold
    return best


def test_fewest_texts_by_hand():
    assert fewest_assured(FIVE, SURE) == 59  # .95^58 = .0510, .95^59 = .0485
    assert fewest_assured(Fraction("0.5"), Fraction("0.75")) == 2  # .5^2 = 1 - .75
    assert fewest_assured(Fraction("0.02"), SURE) == 149


def test_a_threshold_by_hand():
    # Two labels at .5: of the 10 surest none is wrong; (1/2)^10 is far below 1/4. The next two are wrong:
    # P(Bin(11, 1/2) <= 1) = 12/2048, P(Bin(12, 1/2) <= 2) = 79/4096, then all wrong: P(Bin(16, .5) <= 6) = .227 passes,
    # P(Bin(17, .5) <= 7) = .315 does not.
    wrong = np.array([False] * 10 + [True] * 20)
    scores = np.arange(30, 0, -1.0)
    found = certified_threshold(scores, wrong, Fraction("0.5"), Fraction("0.75"), Fraction(1, 20))
    assert (scores > found).sum() == 16
    assert _tail(6, 16, Fraction(1, 2)) <= Fraction(1, 4) < _tail(7, 17, Fraction(1, 2))


@given(st.data())
@settings(max_examples=examples(25))
def test_thresholds_are_those_of_the_definition(data):
    n = data.draw(st.integers(1, 150))
    # Ties on purpose.
    scores = data.draw(st.lists(st.integers(0, data.draw(st.sampled_from([3, 20, 1000]))), min_size=n, max_size=n))
    cut = data.draw(st.integers(0, 1000))
    wrong = [data.draw(st.integers(0, 1000)) < cut and data.draw(st.booleans()) for _ in range(n)]
    max_wrong, assurance = (Fraction(data.draw(st.sampled_from(["0.05", "0.1", "0.3", "0.5"]))) for _ in range(2))
    assurance = 1 - assurance
    share = data.draw(st.sampled_from([None, Fraction(1, 20), Fraction(1, 3)]))
    expected = _threshold_by_definition(scores, wrong, max_wrong, assurance, share)
    assert certified_threshold(np.array(scores, float), np.array(wrong), max_wrong, assurance, share) == expected


@pytest.mark.parametrize("measure", [LogLoss(), LpNorm(2), LpNorm(4), Weighted("sum")], ids=repr)
@pytest.mark.parametrize("limits", [(0, None), (1, None), (1, 1), (2, 3), (3, 3), (0, 0)], ids=repr)
def test_totals_and_margins_are_those_of_the_two_cheapest(measure, limits):
    rng = np.random.default_rng(1)
    probabilities = np.vstack([rng.random((30, 5)), rng.choice([0.0, 0.25, 0.5, 1.0], (30, 5))])
    most = 5 if limits[1] is None else limits[1]
    absent, present = measure.costs(probabilities)
    results = np.empty((60, 2))
    guesses.guess_rows(absent, present, (limits[0], most), results)
    for row, (total, margin) in enumerate(results):
        costs = absent[row].tolist(), present[row].tolist()
        ranked = [score for score, _ in reference.scored(costs, (limits[0], most))]
        assert total == pytest.approx(ranked[0], abs=1e-12)
        assert margin == pytest.approx(ranked[1] - ranked[0] if len(ranked) > 1 else math.inf, abs=1e-12)


def test_nothing_that_can_be_filed_is_no_error():
    rng = np.random.default_rng(2)
    probabilities, labels = rng.random((200, 6)), rng.random((200, 6)) < 0.5
    automation = Automation(min_labels=0).calibrate(probabilities, labels)
    assert automation.share_ == 0.0
    assert automation.threshold_ == math.inf
    assert not automation.decide(probabilities).any()
    assert math.isnan(automation.wrong_bound_)
    assert automation.summary_.startswith(
        "Nothing can be filed with at most 5 % of them wrong (assurance 95 %): 98 % of the 200 "
    )
    few = Automation(min_labels=0).calibrate(probabilities[:20], labels[:20])
    assert "20 certification texts are too few: 59 are needed even if no best guess is wrong" in few.summary_
    assert not few.select(probabilities).any()


def test_all_texts_are_filed_if_no_best_guess_is_wrong():
    labels = np.random.default_rng(3).random((60, 4)) < 0.5
    automation = Automation(min_labels=0).calibrate(np.where(labels, 0.9, 0.1), labels)
    assert automation.share_ == 1.0
    assert automation.decide(np.full((3, 4), 0.5)).all()
    assert automation.wrong_bound_ == pytest.approx(1 - 0.05 ** (1 / 60))
    assert "100 % of texts can be filed" in repr(automation)


@pytest.mark.parametrize("score", [score for score in SCORES if score != "size"])
@pytest.mark.parametrize("measure", [LogLoss(), LpNorm(2), LpNorm(math.inf), "mahalanobis"], ids=repr)
def test_decisions_are_scores_over_the_threshold(score, measure, tmp_path):
    rng = np.random.default_rng(4)
    probabilities, labels = _texts(rng, 900, spread=0.1)
    if measure == "mahalanobis":
        measure = Mahalanobis().fit(probabilities[:300], labels[:300])
    automation = Automation(0.1, measure=measure, min_labels=0, score=score).calibrate(
        probabilities[300:600], labels[300:600]
    )
    assert 0 < automation.share_ < 1
    filed = automation.decide(probabilities[600:])
    assert np.array_equal(filed, automation.scores(probabilities[600:]) > automation.threshold_)
    one_by_one = [bool(automation.decide(row[None])[0]) for row in probabilities[600:640]]
    assert one_by_one == filed[:40].tolist()
    automation.save(tmp_path / "automation.npz")
    again = Automation.load(tmp_path / "automation.npz")
    assert (again.threshold_, again.share_, again.summary_) == (
        automation.threshold_,
        automation.share_,
        automation.summary_,
    )
    assert np.array_equal(again.decide(probabilities[600:]), filed)
    assert np.array_equal(again.select(probabilities[600:]), automation.select(probabilities[600:]))


def test_sparse_texts_are_decided_as_dense_ones():
    rng = np.random.default_rng(5)
    probabilities, labels = _texts(rng, 400, 6, spread=0.1)
    probabilities[probabilities < 0.02] = 0.01
    listed = scipy.sparse.csr_array(np.where(probabilities > 0.01, probabilities, 0.0))
    sparse = SparseProbabilities(listed, unlisted=0.01)
    automation = Automation(0.3, min_labels=0).calibrate(probabilities[:300], labels[:300])
    from_sparse = Automation(0.3, min_labels=0).calibrate(sparse[:300], scipy.sparse.csr_array(labels[:300]))
    assert from_sparse.share_ == automation.share_ > 0
    assert np.array_equal(from_sparse.decide(sparse[300:]), automation.decide(probabilities[300:]))


def test_more_texts_certify_again_and_the_old_one_stays():
    rng = np.random.default_rng(6)
    probabilities, labels = _texts(rng, 600)
    first = Automation(0.2, min_labels=0).calibrate(probabilities[:200], labels[:200])
    before = (first.threshold_, first.share_)
    more = first.add(probabilities[200:], labels[200:])
    whole = Automation(0.2, min_labels=0).calibrate(probabilities, labels)
    assert (more.threshold_, more.share_) == (whole.threshold_, whole.share_)
    assert (first.threshold_, first.share_) == before != (more.threshold_, more.share_)
    assert more.predictor_.calibration_.n_texts == 600


def test_the_score_is_chosen_on_validation_texts(tmp_path):
    rng = np.random.default_rng(7)
    # Label 0 decides whether a guess is right; the others are always right, but their costs blur the total.
    others = np.repeat(rng.uniform(0.9, 0.99, (3600, 1)), 20, axis=1)
    probabilities = np.hstack([rng.beta(0.3, 0.3, (3600, 1)), others])
    labels = np.hstack([rng.random((3600, 1)) < probabilities[:, :1], np.ones((3600, 20), dtype=bool)])
    chosen = Automation(0.1, min_labels=0).choose_score(probabilities[:2400], labels[:2400])
    assert chosen.score in {"margin", "size"}
    assert not hasattr(chosen, "share_")
    better = chosen.calibrate(probabilities[2400:], labels[2400:])
    total = Automation(0.1, min_labels=0).calibrate(probabilities[2400:], labels[2400:])
    assert better.share_ > total.share_
    with calibration_warnings_ignored():
        sets = ConformalLabelSets(LogLoss(), 0).calibrate(probabilities[:2400], labels[:2400])
    by_size = Automation(0.1, min_labels=0, score="size", reference=sets).calibrate(probabilities[2400:], labels[2400:])
    by_size.save(tmp_path / "by_size")
    again = Automation.load(tmp_path / "by_size")
    assert np.array_equal(again.scores(probabilities), by_size.scores(probabilities))
    sizes = sets.predict_set(probabilities, significance=0.1).sizes()
    assert (sizes == 0).any()
    sizes[sizes == 0] = 2**40  # not even the best guess is plausible: filed last
    assert np.array_equal(-np.floor(-by_size.scores(probabilities) + 1e-9), -np.floor(sizes + 1e-9))


def test_bad_input():
    for parameters, words in (
        ({"max_wrong": 0}, "'max_wrong' parameter of Automation must be in"),
        ({"assurance": 1.0}, "'assurance' parameter of Automation must be in"),
        ({"score": "luck"}, "'score' parameter of Automation must be one of"),
        ({"score": "size"}, "'reference' parameter of Automation must be a calibrated"),
        ({"measure": "L2"}, "must be a measure"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            Automation(**parameters)
    automation = Automation()
    for method in (automation.decide, automation.select, automation.predict, automation.scores):
        with pytest.raises(NotCalibratedError, match="is not calibrated yet"):
            method([[0.5]])
    automation.calibrate([[0.9, 0.1]] * 3, [[1, 0]] * 3)
    with pytest.raises(InvalidInputError, match="2 labels"):
        automation.decide([[0.5]])


def test_names_constraints_and_limits_are_those_of_best_guesses():
    rules = LabelConstraints(exclusions=[("a", "b")])
    automation = Automation(label_names=["a", "b", "c"], constraints=rules).calibrate(
        [[0.9, 0.8, 0.1]] * 70, [["a"]] * 70
    )
    assert automation.predict([[0.9, 0.8, 0.1]]).label_sets == [frozenset({"a"})]
    assert automation.share_ == 1.0


def test_damaged_files_are_rejected(tmp_path):
    path = tmp_path / "automation"
    Automation().calibrate([[0.9, 0.1]] * 3, [[1, 0]] * 3).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ArtifactError, match="not a file of format 'surelabel-automation'"):
        Automation.load(path)
    with np.load(_written(path, whole)) as arrays:
        entries = dict(arrays)
    with path.open("wb") as stream:
        np.savez(stream, **{**entries, "scores": np.array([np.nan] * 3)})
    with pytest.raises(ArtifactError, match="do not belong"):
        Automation.load(path)
    with path.open("wb") as stream:
        np.savez(stream, **{**entries, "header": np.array(str(entries["header"]).replace("1/20", "7/5"))})
    with pytest.raises(ArtifactError, match="max_wrong"):
        Automation.load(path)


def _written(path, data):
    path.write_bytes(data)
    return path


def _past(rng, n_draws, n_texts, rate, draw, share):
    """Number of draws in which the share of wrong texts over the threshold passes 5 %."""
    past = 0
    grid = np.arange(10) / 10 if draw is _atoms else (np.arange(2000) + 0.5) / 2000
    for _ in range(n_draws):
        scores = draw(rng, n_texts)
        wrong = rng.random(n_texts) < rate(scores)
        threshold = certified_threshold(scores, wrong, FIVE, SURE, share)
        if math.isinf(threshold) and threshold > 0:
            continue
        past += rate(grid[grid > threshold]).mean() > 0.05 + 1e-9
    return past


def _uniform(rng, n):
    return rng.random(n)


def _atoms(rng, n):
    return rng.integers(0, 10, n) / 10


RATES = {
    "always a little too often wrong": lambda s: np.full_like(s, 0.0501),
    "the lower the worse": lambda s: 0.25 * (1.0 - s),
    "worst at the top": lambda s: np.where(s > 0.8, 0.09, 0.03),
    "up and down": lambda s: 0.05 + 0.05 * np.sin(40.0 * s),
    "a cliff": lambda s: np.where(s > 0.5, 0.045, 0.5),
}


@pytest.mark.parametrize("rate", RATES.values(), ids=RATES.keys())
@pytest.mark.parametrize("draw", [_uniform, _atoms], ids=["no ties", "ties"])
@pytest.mark.parametrize("share", [None, Fraction(1, 20)], ids=["two places", "one place"])
def test_the_promise_is_broken_no_more_often_than_the_assurance_allows(rate, draw, share):
    n_draws = 800
    past = _past(np.random.default_rng(8), n_draws, 400, rate, draw, share)
    assert past <= scipy.stats.binom.isf(DOUBT, n_draws, 0.05)


def test_the_assurance_is_not_wasted():
    # If every threshold is just too bad, the first one tried decides: 59 texts without a wrong one, .95^59.
    rate = RATES["always a little too often wrong"]
    past = _past(np.random.default_rng(9), 1500, 400, rate, _uniform, Fraction(1, 20))
    assert past >= scipy.stats.binom.ppf(DOUBT, 1500, (1 - 0.0501) ** 59)


def test_selection_by_hand():
    # Wrong certification texts have scores 1 and 3, among 19: p-values are (1 + those at least as high) / 20.
    automation = Automation(0.1, min_labels=0, measure=LpNorm(1))
    probabilities = np.linspace(0.01, 0.49, 19)[:, None]
    labels = np.zeros((19, 1), dtype=bool)
    labels[[9, 15]] = True
    automation.calibrate(probabilities, labels)
    batch = np.array([[0.01], [0.02], [0.3], [0.45]])
    assert automation.p_values(batch).tolist() == [1 / 20, 1 / 20, 2 / 20, 3 / 20]
    # Benjamini-Hochberg at .1 of 4: .05 <= .1 * 2 / 4, but .1 > .1 * 3 / 4.
    assert automation.select(batch).tolist() == [True, True, False, False]


def _false_discoveries(rng, n_draws, n_batch):
    shares = []
    for _ in range(n_draws):
        probabilities, labels = _texts(rng, 200 + n_batch, 2, spread=0.3)
        automation = Automation(0.1, min_labels=0, n_jobs=1).calibrate(probabilities[:200], labels[:200])
        chosen = automation.select(probabilities[200:])
        wrong = (automation.predict(probabilities[200:]).labels != labels[200:]).any(axis=1)
        shares.append(wrong[chosen].mean() if chosen.any() else 0.0)
    return np.array(shares)


@pytest.mark.parametrize("n_batch", [20, 200])
def test_false_discoveries_stay_below_the_level_on_average(n_batch):
    shares = _false_discoveries(np.random.default_rng(10), 120, n_batch)
    error = shares.std() / math.sqrt(len(shares))
    assert shares.mean() - 5 * error <= 0.1
    assert shares.mean() > 0


@pytest.mark.slow
def test_automation_end_to_end_over_many_splits():
    rng = np.random.default_rng(11)
    probabilities, labels = _texts(rng, 60_000, 3, spread=0.2)
    past = n_filed = 0
    for _ in range(400):
        order = rng.permutation(len(labels))[:500]
        automation = Automation(0.1, min_labels=0).calibrate(probabilities[order], labels[order])
        filed = automation.decide(probabilities)
        if not filed.any():
            continue
        wrong = (automation.predict(probabilities[filed]).labels != labels[filed]).any(axis=1)
        past += wrong.mean() > 0.1
        n_filed += filed.mean()
    assert past <= scipy.stats.binom.isf(DOUBT, 400, 0.05)
    # Not part of the promise, but a rule that files nothing would keep it too: .28 of the texts are filed here.
    assert n_filed / 400 > 0.25


def test_a_wrong_guess_among_the_surest_ends_nothing_if_the_sequence_starts_later():
    scores = np.arange(400.0)[::-1]
    wrong = np.isin(np.arange(400), [3, 250, 300, *range(350, 400, 2)])
    assert certified_threshold(scores, wrong, FIVE, SURE, Fraction(1, 20)) == math.inf
    assert 300 < (scores > certified_threshold(scores, wrong, FIVE, SURE)).sum() < 400
    # From the 200th best on: until P(Bin(k, .05) <= W) passes .05.
    late = certified_threshold(scores, wrong, FIVE, SURE, Fraction(1, 2))
    n_filed = int((scores > late).sum())
    assert 300 < n_filed < 400
    tails = [scipy.stats.binom.cdf(wrong[:k].sum(), k, 0.05) for k in range(200, 401)]
    assert n_filed == 200 + next(k for k, tail in enumerate(tails) if tail > 0.05) - 1


def test_a_threshold_is_certified_if_the_surest_are_right():
    scores = np.arange(100.0)
    assert certified_threshold(scores, scores < 30, FIVE, SURE) == 29.0
    assert certified_threshold(scores, scores < 60, FIVE, SURE) == math.inf
