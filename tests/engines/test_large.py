"""Many labels: exact sizes from binomials, certified bounds, the best of sets that nothing could list."""

import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cases
import reference
from surelabel import ConformalLabelSets, LogLoss, LpNorm
from surelabel.engines.bounds import bounds_by_table
from surelabel.exceptions import SearchLimitError, TruncationWarning


def _cut(row, labels, *, measure=None, min_labels=1, max_labels=None, **parameters):
    """The prediction set of `row` whose threshold is the total of `labels` in that same row."""
    row = np.asarray(row, dtype=float)[None, :]
    labels = np.asarray(labels, dtype=bool)[None, :]
    predictor = ConformalLabelSets(measure or LpNorm(1), min_labels, max_labels, **parameters)
    with cases.calibration_warnings_ignored():
        predictor = predictor.calibrate(row.repeat(9, axis=0), labels.repeat(9, axis=0))
    return predictor.predict_set(row, significance=0.5)[0]


def _first(n_labels, count):
    labels = np.zeros(n_labels, dtype=bool)
    labels[:count] = True
    return labels


@pytest.mark.parametrize("n_labels", [1, 20, 90, 147, 1000, 10_000])
@pytest.mark.parametrize("measure", [LpNorm(1), LpNorm(2), LpNorm(8), LogLoss()], ids=repr)
def test_sizes_of_rows_of_equal_values_are_sums_of_binomials(n_labels, measure):
    # All 1/4: a label-set of c labels is within the total of one with j labels iff c <= j.
    labels = min(5, n_labels)
    one = _cut(np.full(n_labels, 0.25), _first(n_labels, labels), measure=measure)
    assert one.size == sum(math.comb(n_labels, c) for c in range(1, labels + 1))
    one = _cut(np.full(n_labels, 0.25), _first(n_labels, labels), measure=measure, min_labels=0)
    assert one.size == sum(math.comb(n_labels, c) for c in range(labels + 1))


@pytest.mark.parametrize("n_labels", [1, 20, 90, 147, 1000, 10_000])
def test_exact_halves_put_every_candidate_in_the_set(n_labels):
    half = np.full(n_labels, 0.5)
    assert _cut(half, _first(n_labels, 1)).size == 2**n_labels - 1
    assert _cut(half, _first(n_labels, 1), min_labels=0).size == 2**n_labels
    limited = _cut(half, _first(n_labels, 1), max_labels=min(3, n_labels))
    assert limited.size == sum(math.comb(n_labels, c) for c in range(1, min(3, n_labels) + 1))


@pytest.mark.parametrize(("labels", "bits"), [(32, 63), (33, 64), (70, 100)])
def test_sizes_beyond_64_bits_are_exact_python_integers(labels, bits):
    # The two labels at 1/2 are free; of the 147 at 1/4 up to `labels` may be added. The empty set is no candidate.
    row = np.concatenate([[0.5] * 2, np.full(147, 0.25)])
    one = _cut(row, _first(149, 2 + labels), max_labels=149)
    expected = sum(math.comb(147, c) for c in range(labels + 1)) * 4 - 1
    assert expected > 2**bits
    assert one.size == expected
    assert isinstance(one.size, int)


def test_sizes_of_a_batch_are_int64_where_they_fit_and_objects_where_not():
    predictor = ConformalLabelSets(LpNorm(1)).calibrate(np.full((9, 80), 0.5), np.eye(9, 80))
    small = ConformalLabelSets(LpNorm(1)).calibrate(np.full((8, 8), 0.5), np.eye(8))
    assert small.predict_set(np.full((2, 8), 0.5), significance=0.5).sizes().dtype == np.int64
    large = predictor.predict_set(np.array([[0.5] * 80, [0.0] * 80]), significance=0.5).sizes()
    assert large.dtype == object
    # The threshold is 40; a row of zeros pays 1 a label.
    assert large.tolist() == [2**80 - 1, sum(math.comb(80, c) for c in range(1, 41))]


@settings(max_examples=cases.examples(40))
@given(data=st.data())
def test_counting_without_walking_holds_the_reference_count(data):
    """A work limit of one step sends counting to groups of equal costs and to tables."""
    d = data.draw(st.integers(2, 10))
    values = data.draw(st.lists(st.sampled_from(cases.QUARTERS + cases.DECIMALS), min_size=1, max_size=3))
    row = data.draw(st.lists(st.sampled_from(values), min_size=d, max_size=d))
    labels = data.draw(st.lists(st.booleans(), min_size=d, max_size=d))
    lo = data.draw(st.integers(0, d))
    hi = data.draw(st.integers(lo, d))
    measure = data.draw(st.sampled_from([LpNorm(1), LpNorm(2), LogLoss()]))
    costs = cases.costs_of(measure, row)
    expected = reference.subset_count(costs, (lo, hi), reference.total(costs, labels))
    one = _cut(row, labels, measure=measure, min_labels=lo, max_labels=hi, work_limit=1)
    lower, upper = one.size_bounds
    assert lower <= expected <= upper
    assert len(one.to_array()) == expected
    assert one.refine(0.0, work_limit=10**6) == (expected, expected)


def _random_problem(seed, n_labels, n_texts=40):
    rng = np.random.default_rng(seed)
    probabilities = rng.beta(0.3, 1.0, (n_texts, n_labels))
    return probabilities, rng.random((n_texts, n_labels)) < probabilities


def test_past_the_work_limit_the_error_names_the_bounds_and_they_hold():
    probabilities, labels = _random_problem(1, 24)
    with cases.calibration_warnings_ignored():
        quick = ConformalLabelSets(work_limit=20).calibrate(probabilities, labels)
        patient = ConformalLabelSets().calibrate(probabilities, labels)
    bounded = quick.predict_set(probabilities, significance=0.1)
    exact = patient.predict_set(probabilities, significance=0.1).sizes()
    lower, upper = bounded.size_bounds()
    assert ((lower <= exact) & (exact <= upper)).all()
    row = int(np.argmax(upper - lower))
    assert lower[row] < upper[row]
    with pytest.raises(SearchLimitError, match=f"text {row} lies between {lower[row]:,} and {upper[row]:,}") as caught:
        bounded[row].size  # noqa: B018
    assert caught.value.bounds == (lower[row], upper[row])
    with pytest.raises(SearchLimitError, match="size_bounds"):
        bounded.sizes()
    with pytest.raises(SearchLimitError, match=r"inclusion_bounds"):
        bounded[row].inclusion()
    low, high = bounded[row].inclusion_bounds()
    shares = patient.predict_set(probabilities, significance=0.1)[row].inclusion()
    assert ((low <= shares) & (shares <= high)).all()
    assert f"{lower[row]:,} to {upper[row]:,}" in repr(bounded[row])


def test_to_array_lists_every_member_where_only_bounds_are_known():
    probabilities, labels = _random_problem(1, 24)
    with cases.calibration_warnings_ignored():
        quick = ConformalLabelSets(work_limit=20).calibrate(probabilities, labels)
        patient = ConformalLabelSets().calibrate(probabilities, labels)
    for one, other in zip(
        quick.predict_set(probabilities[:9], significance=0.2),
        patient.predict_set(probabilities[:9], significance=0.2),
        strict=True,
    ):
        assert np.array_equal(one.to_array(), other.to_array())


def test_refinement_reaches_a_percent_with_seven_hundred_labels():
    rng = np.random.default_rng(0)
    shares = rng.beta(0.08, 12, (202, 700))
    probabilities = np.clip(shares * np.exp(rng.normal(0, 0.7, shares.shape)), 1e-5, 0.999)
    predictor = ConformalLabelSets(LogLoss(), 0, 13).calibrate(
        probabilities[:199], rng.random((199, 700)) < shares[:199]
    )
    for one in predictor.predict_set(probabilities[199:], significance=0.1):
        lower, upper = one.size_bounds
        assert 10**9 < lower < upper / 1.01
        finer = one.refine(0.01)
        assert lower <= finer[0] < finer[1] <= upper
        assert finer[1] <= 1.01 * finer[0]


def test_refinement_tightens_the_bounds_and_keeps_the_size_between_them():
    row = np.random.default_rng(3).uniform(0.05, 0.45, 22)
    exact = _cut(row, _first(22, 9), work_limit=10**9).size
    one = _cut(row, _first(22, 9), work_limit=10)
    first = one.size_bounds
    assert first[0] < exact < first[1]
    finer = one.refine(0.004)
    assert first[0] <= finer[0] <= exact <= finer[1] <= first[1]
    assert finer[1] <= 1.004 * finer[0]
    assert one.size_bounds == finer
    assert one.refine(0.0, work_limit=10**9) == (exact, exact)
    assert one.size == exact
    assert one.refine() == (exact, exact)


@settings(max_examples=cases.examples(40))
@given(data=st.data())
def test_table_bounds_hold_at_every_threshold(data):
    d = data.draw(st.integers(1, 12))
    row = data.draw(st.lists(st.floats(0.0, 1.0), min_size=d, max_size=d))
    lo = data.draw(st.integers(0, d))
    hi = data.draw(st.integers(lo, d))
    n_cells = data.draw(st.sampled_from([64, 257, 8192]))
    measure = data.draw(st.sampled_from([LpNorm(1), LpNorm(2), LpNorm(8), LogLoss()]))
    costs = cases.costs_of(measure, row)
    totals = sorted(total for total, _ in reference.scored(costs, (lo, hi)))
    absent, present = (np.array(part) for part in costs)
    for rank in sorted({0, len(totals) // 7, len(totals) // 3, len(totals) // 2, len(totals) - 1}):
        for threshold in (totals[rank], math.nextafter(totals[rank], 0.0), 1.01 * totals[rank] + 1e-3):
            expected = sum(total <= threshold for total in totals)
            lower, upper = bounds_by_table(absent, present, threshold, (lo, hi), n_cells)
            assert lower <= expected <= upper <= len(totals)


def test_bounds_at_a_million_million_label_sets_are_within_a_few_percent():
    probabilities, labels = _random_problem(5, 90, 200)
    predictor = ConformalLabelSets(LpNorm(4), max_labels=15, work_limit=1000)
    with cases.calibration_warnings_ignored():
        predictor = predictor.calibrate(probabilities, labels)
    lower, upper = predictor.predict_set(probabilities[:5], significance=0.01).size_bounds()
    assert lower.min() > 10**9
    assert (upper.astype(float) / lower.astype(float)).max() < 1.1


@pytest.mark.parametrize("n_labels", [147, 1000, 10_000])
def test_the_best_of_an_astronomical_set_come_at_once_and_in_order(n_labels):
    probabilities, labels = _random_problem(7, n_labels, 30)
    with cases.calibration_warnings_ignored():
        predictor = ConformalLabelSets().calibrate(probabilities, labels)
    one = predictor.predict_set(probabilities, significance=0.1)[3]
    one.top(1)
    started = time.perf_counter()
    best = one.top(200)
    assert time.perf_counter() - started < 30.0  # listing them would take longer than the universe has
    assert len({label_set for label_set, _ in best}) == 200
    p_values = [p for _, p in best]
    assert p_values == sorted(p_values, reverse=True)
    rows = np.array([[k in label_set for k in range(n_labels)] for label_set, _ in best])
    again = predictor.predict_p(np.repeat(probabilities[3:4], 200, axis=0), rows)
    assert again.tolist() == p_values
    costs = cases.costs_of(LpNorm(2), probabilities[3])
    totals = [reference.total(costs, row) for row in rows]
    assert totals == sorted(totals)
    # No single flip of the best one that is not listed is better than the last one listed.
    flips = {best[0][0] ^ {k} for k in range(n_labels)} - {label_set for label_set, _ in best}
    singles = (reference.total(costs, [k in s for k in range(n_labels)]) for s in itertools.islice(flips, 100) if s)
    assert all(total >= totals[-1] for total in singles)
    assert best[0][0] == predictor.predict(probabilities[3:4]).label_sets[0]


def test_iteration_is_lazy_and_membership_needs_no_search():
    n_labels = 1000
    one = _cut(np.full(n_labels, 0.5), _first(n_labels, 1))
    assert one.size == 2**n_labels - 1
    assert len(list(itertools.islice(one, 3))) == 3
    assert len(list(itertools.islice(one.label_sets, 3))) == 3
    assert frozenset(range(500)) in one
    assert frozenset() not in one
    assert (len(one.certain), len(one.possible), len(one.excluded)) == (0, n_labels, 0)
    assert repr(one) == "<PredictionSet of text 0: 1.1 × 10^301 label-sets>"


def test_listing_stops_at_the_limit_with_a_warning_that_says_so():
    one = _cut(np.full(40, 0.25), _first(40, 3))
    size = 40 + math.comb(40, 2) + math.comb(40, 3)
    with pytest.warns(TruncationWarning, match=r"10,700 label-sets or more; the best 50 are returned.*'limit'"):
        listed = one.to_array(limit=50)
    assert one.size == size == 10_700
    assert listed.shape == (50, 40)
    assert listed.sum(axis=1).tolist() == [1] * 40 + [2] * 10
    assert len(one.to_array(limit=size)) == size


@pytest.mark.parametrize("search", cases.SEARCH_NAMES)
def test_every_search_stops_listing_at_the_limit(search):
    one = _cut(np.full(8, 0.25), _first(8, 3), search=search)
    with pytest.warns(TruncationWarning, match="the best 8"):
        listed = one.to_array(limit=8)
    # Lexicographic order of 0/1 rows: the last label first.
    assert listed.tolist() == np.eye(8, dtype=bool)[::-1].tolist()


def test_near_ties_by_the_thousand_are_all_given_once():
    # 142,506 label-sets of five labels differ by units in the last place; the threshold lies among them.
    values = [0.3, math.nextafter(0.3, 1), math.nextafter(0.3, 0), math.nextafter(math.nextafter(0.3, 0), 0)]
    row = np.array([values[k % 4] for k in range(30)])
    labels = np.zeros(30, dtype=bool)
    labels[[0, 4, 8, 12, 16]] = True
    one = _cut(row, labels, measure=LpNorm(2))
    given = set(one.label_sets)
    assert len(given) == one.size
    members = {frozenset(np.flatnonzero(row).tolist()) for row in one.to_array()}
    assert given == members


@pytest.mark.parametrize("measure", [LpNorm(math.inf), cases.Weighted("max", (0.5,) * 200, (1.0,) * 200)], ids=repr)
def test_maximum_measures_count_by_binomials_at_many_labels(measure):
    # At the cost of a present label of 1/2, the first hundred labels are free and the others must stay absent.
    row = np.concatenate([np.full(100, 0.5), np.full(100, 0.125)])
    one = _cut(row, _first(200, 3), measure=measure, max_labels=60)
    costs = [np.array(part) for part in cases.costs_of(measure, row)]
    threshold = reference.total(costs, _first(200, 3), "max")
    free = int(((costs[0] <= threshold) & (costs[1] <= threshold)).sum())
    held = int((costs[0] > threshold).sum())
    assert (free, held) == (100, 0)
    assert one.size == sum(math.comb(100, c) for c in range(1, 61))
    assert one.excluded == set(range(100, 200))
    assert one.possible == set(range(100))
    share = sum(math.comb(99, c - 1) for c in range(1, 61)) / one.size
    assert one.inclusion() == pytest.approx([share] * 100 + [0.0] * 100, rel=1e-15)
    assert len(set(one.top(300))) == 300


def test_the_length_of_a_huge_set_says_what_to_use():
    one = _cut(np.full(70, 0.5), _first(70, 1))
    assert one.size == 2**70 - 1
    with pytest.raises(OverflowError, match=r"1\.2 × 10\^21 label-sets\. Use its 'size'"):
        len(one)


def test_shares_of_very_many_labels_are_bounded_in_bounded_time():
    n_labels = 400
    row = np.random.default_rng(0).random(n_labels)
    one = _cut(row, row > 0.45)
    start = time.process_time()
    lower, upper = one.inclusion_bounds()
    assert time.process_time() - start < 10
    assert np.all(lower <= upper)
    assert np.all((lower >= 0) & (upper <= 1))
    assert np.any(upper - lower > 0)
    with pytest.raises(SearchLimitError, match="Use inclusion_bounds"):
        one.inclusion()
