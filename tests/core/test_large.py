"""Sets that no list holds: order, sizes, labels and sums stay right, and bounds are bounds."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.problems import draw_texts
from surelabel import ConformalLabelSets, LogLoss, LpNorm, Mixture
from surelabel.evaluation.criteria import s_criterion
from surelabel.exceptions import ProhibitiveSearchError, SearchLimitError, TruncationWarning
from surelabel.search.counting import count_by_table

pytestmark = pytest.mark.filterwarnings("ignore::surelabel.exceptions.CalibrationWarning")


def test_all_label_sets_tie():
    d = 40
    predictor = ConformalLabelSets().calibrate(np.full((99, d), 0.5), np.tile([True, False], (99, d // 2)))
    one = predictor.predict_set(np.full((1, d), 0.5), significance=0.1)[0]
    assert one.size == 2**d - 1
    first = [frozenset(d - 1 - k for k in range(d) if number >> k & 1) for number in range(1, 1001)]
    assert [label_set for label_set, _ in one.top(1000)] == first
    assert list(itertools.islice(one, 1000)) == first
    assert predictor.predict(np.full((1, d), 0.5)).label_sets == [frozenset({d - 1})]
    assert len(one.open) == d
    assert not one.certain | one.excluded
    assert one.inclusion_bounds()[0] == pytest.approx(np.full(d, 0.5))
    with pytest.warns(TruncationWarning, match="limit"):
        assert one.to_array(limit=5).sum(axis=1).tolist() == [1, 1, 2, 1, 2]


def test_sizes_of_few_different_costs_are_exact():
    d = 60
    probabilities = np.where(np.arange(d) < 20, 0.25, 0.125)
    labels = np.tile(np.arange(d) < 5, (99, 1))
    predictor = ConformalLabelSets(LpNorm(1), min_labels=0, work_limit=1000)
    predictor.calibrate(np.tile(probabilities, (99, 1)), labels)
    pairs = itertools.product(range(21), range(41))
    want = sum(math.comb(20, a) * math.comb(40, b) for a, b in pairs if a * 0.5 + b * 0.75 <= 2.5)
    one = predictor.predict_set(probabilities[None], significance=0.1)[0]
    assert one.size == want
    assert one.inclusion()[0] == one.inclusion()[19]


def test_sizes_past_64_bits():
    predictor = ConformalLabelSets().calibrate(*draw_texts(20, 80))
    sets = predictor.predict_set(draw_texts(3, 80, 1)[0], significance=0.01)
    assert sets.sizes().tolist() == [2**80 - 1] * 3
    sets = predictor.predict_set(draw_texts(3, 80, 1)[0], significance=0.1)
    lower, upper = sets.size_bounds()
    assert (lower <= upper).all()
    assert (upper < 2**80).all()
    with pytest.raises(SearchLimitError) as caught:
        sets.sizes()
    assert caught.value.bounds == (lower[0], upper[0])
    assert "label-sets" in sets[0].describe()
    low, high = s_criterion(predictor, draw_texts(3, 80, 1)[0]).mean
    assert 0 < low <= high < 2**80


@pytest.mark.parametrize("measure", [LogLoss(), LpNorm(2), Mixture(0.9).fit(draw_texts(60, 24, 7)[1])])
def test_bounds_hold_the_exact_size(measure):
    probabilities = np.random.default_rng(3).beta(0.3, 2, (60, 24))
    labels = np.random.default_rng(4).random((60, 24)) < probabilities
    labels[~labels.any(axis=1), 0] = True
    exact, rough = (ConformalLabelSets(measure, work_limit=n).calibrate(probabilities, labels) for n in (10**8, 100))
    sizes = exact.predict_set(probabilities, significance=0.2).sizes()
    lower, upper = rough.predict_set(probabilities, significance=0.2).size_bounds()
    assert (lower <= sizes).all()
    assert (sizes <= upper).all()
    assert (lower < upper).any()
    assert (upper <= 1.5 * lower + 200).all()


@given(seed=st.integers(0, 10**9))
def test_the_table_bounds_counts(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 9))
    changes = rng.integers(-50, 50, d) * int(rng.choice([1, 7, 10**6])) + int(rng.choice([0, 1]))
    least = int(rng.integers(0, d + 1))
    limits = (least, int(rng.integers(least, d + 1)))
    room = np.sort(rng.integers(-5, 200, 6) * int(rng.choice([1, 10**6])))
    lower, upper = count_by_table(changes, limits, room, int(rng.choice([8, 64, 4096])))
    flips = np.array(list(itertools.product((0, 1), repeat=d)))
    sizes, costs = ((changes < 0) != flips).sum(axis=1), (flips * np.abs(changes)).sum(axis=1)
    counts = [np.sum((costs <= at) & (limits[0] <= sizes) & (sizes <= limits[1])) for at in room]
    assert (lower <= counts).all()
    assert (counts <= upper).all()


@pytest.mark.parametrize("measure", [LpNorm(1), LpNorm(2), LogLoss()])
def test_near_ties_by_one_ulp(measure):
    up, down = 0.5 + 2.0**-53, 0.5 - 2.0**-53
    predictor = ConformalLabelSets(measure, min_labels=0).calibrate([[0.5, 0.5]] * 19, [[1, 1]] * 19)
    p = predictor.predict_p([[0.5, 0.5], [down, down], [up, up]], [[1, 1]] * 3)
    assert p[0] == p[2] == 1.0
    assert p[1] < 0.1


def test_costs_below_the_unit_still_count():
    probabilities, labels = np.full((40, 90), 1e-3), np.zeros((40, 90), dtype=bool)
    probabilities[:, 0] = np.linspace(0.96, 0.995, 40)
    labels[:, 0] = True
    predictor = ConformalLabelSets(LpNorm(8)).calibrate(probabilities, labels)
    assert len(np.unique(predictor.predict(probabilities).credibility)) == 40


def test_the_paper_searches_refuse_what_is_out_of_reach():
    predictor = ConformalLabelSets(search="powerset").calibrate(*draw_texts(40, 40))
    with pytest.raises(ProhibitiveSearchError, match="label-sets"):
        predictor.predict_set(draw_texts(1, 40)[0], significance=0.1).sizes()


def test_demand_of_the_paper_searches():
    probabilities, labels = draw_texts(99, 12)
    predictor = ConformalLabelSets(max_labels=5).calibrate(probabilities, labels)
    demand = predictor.predict_set(probabilities, significance=0.2).demand()
    assert set(demand.powerset) == {sum(math.comb(12, c) for c in range(1, 6))}
    sizes = predictor.predict_set(probabilities, significance=0.2).sizes()
    assert all(size <= ball <= all_ for size, ball, all_ in zip(sizes, demand.ball, demand.powerset, strict=True))
    assert ((demand.radii == 0) <= (sizes == 0)).all()
