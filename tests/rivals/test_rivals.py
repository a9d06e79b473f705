"""Rivals: equal to slow obvious versions, exact sizes, one protocol."""

import itertools
import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cases
import reference
from surelabel import LogLoss, LpNorm
from surelabel.exceptions import InvalidInputError, MissingDependencyError, NotCalibratedError
from surelabel.rivals import (
    BonferroniRelevance,
    CrossConformalRidge,
    InstanceReproduction,
    LabelPowerset,
    PerLabelRelevance,
    ProductSets,
    RecallControl,
    SeenPowerset,
    TransductiveRidge,
)
from surelabel.rivals.protocol import Limits


def every(n_labels, limits=(0, 99)):
    rows = itertools.product((False, True), repeat=n_labels)
    return np.array([row for row in rows if limits[0] <= sum(row) <= limits[1]])


def members_of(sets, row, n_labels):
    """All label-sets that a set says it contains."""
    n_texts = len(sets.sizes())
    return {
        tuple(y)
        for y in every(n_labels).tolist()
        if sets.contains(np.tile(y, (n_texts, 1)))[row]
    }  # fmt: skip


@given(st.data())
@settings(max_examples=cases.examples(60))
def test_products_are_counted_as_by_listing(data):
    d = data.draw(st.integers(1, 5))
    allowed = np.array(
        data.draw(
            st.lists(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=d, max_size=d), min_size=2, max_size=2)
        )
    )
    lo = data.draw(st.integers(0, d))
    hi = data.draw(st.one_of(st.none(), st.integers(lo, d)))
    sets = ProductSets(allowed, Limits(lo, hi))
    for row in range(2):
        listed = {
            y for y in itertools.product((False, True), repeat=d)
            if lo <= sum(y) <= (d if hi is None else hi) and all(allowed[row, k, int(y[k])] for k in range(d))
        }  # fmt: skip
        assert members_of(sets, row, d) == listed
        assert sets.sizes()[row] == len(listed)


def test_a_product_of_many_free_labels_is_counted_exactly():
    sets = ProductSets(np.ones((1, 200, 2), dtype=bool), Limits(0, None))
    assert sets.sizes().tolist() == [2**200]
    assert ProductSets(np.ones((1, 90, 2), dtype=bool), Limits(1, 3)).sizes().tolist() == [
        sum(math.comb(90, k) for k in (1, 2, 3))
    ]


@pytest.mark.parametrize("rival", [PerLabelRelevance, BonferroniRelevance])
@given(problem=cases.problems(max_labels=4))
@settings(max_examples=cases.examples(40))
def test_relevance_is_the_product_of_conformal_predictors(rival, problem):
    sets = rival(problem.min_labels, problem.max_labels).calibrate(problem.calibration, problem.calibration_labels)
    sets = sets.predict_set(problem.test, significance=problem.level)
    level = problem.level / (problem.n_labels if rival is BonferroniRelevance else 1)
    lo, hi = problem.limits
    for row, probabilities in enumerate(problem.test):
        expected = set()
        for y in itertools.product((False, True), repeat=problem.n_labels):
            p_values = [
                reference.p_value(
                    abs(y[k] - probabilities[k]),
                    [
                        abs(int(t[k]) - o[k])
                        for o, t in zip(problem.calibration, problem.calibration_labels, strict=True)
                    ],
                )
                for k in range(problem.n_labels)
            ]
            if lo <= sum(y) <= hi and all(p > level for p in p_values):
                expected.add(y)
        assert members_of(sets, row, problem.n_labels) == expected
        assert sets.sizes()[row] == len(expected)


@given(problem=cases.problems(max_labels=4))
@settings(max_examples=cases.examples(40))
def test_instance_reproduction_ranks_labels_among_true_labels(problem):
    rival = InstanceReproduction(0).calibrate(problem.calibration, problem.calibration_labels)
    sets = rival.predict_set(problem.test, significance=problem.level)
    pairs = zip(problem.calibration, problem.calibration_labels, strict=True)
    scores = [1.0 - o[k] for o, t in pairs for k in range(problem.n_labels) if t[k]]
    for row, probabilities in enumerate(problem.test):
        plausible = [reference.p_value(1.0 - o, scores) > problem.level for o in probabilities]
        assert sets.sizes()[row] == 2 ** sum(plausible)
        assert sets.contains(np.tile(plausible, (len(problem.test), 1)))[row]


@pytest.mark.parametrize("measure", [LpNorm(2), LogLoss()])
@given(problem=cases.problems(max_labels=4))
@settings(max_examples=cases.examples(40))
def test_seen_label_sets_are_ranked_with_unseen_ones_as_strange_as_can_be(measure, problem):
    seen = np.unique(np.vstack([problem.test_labels, problem.calibration_labels[::2]]), axis=0)
    rival = SeenPowerset(seen, measure).calibrate(problem.calibration, problem.calibration_labels)
    sets = rival.predict_set(problem.test, significance=problem.level)
    known = {tuple(y) for y in seen.tolist()}
    scores = [
        total if tuple(labels.tolist()) in known else math.inf
        for total, labels in zip(problem.totals(measure), problem.calibration_labels, strict=True)
    ]
    for row, probabilities in enumerate(problem.test):
        costs = cases.costs_of(measure, probabilities)
        expected = {y for y in known if reference.p_value(reference.total(costs, y), scores) > problem.level}
        assert members_of(sets, row, problem.n_labels) == expected
        assert sets.sizes()[row] == len(expected)


def ridge_fit(features, labels, penalty):
    features = np.column_stack([features, np.ones(len(features))])
    return np.linalg.solve(features.T @ features + penalty * np.eye(features.shape[1]), features.T @ labels)


def fitted_values(features, coefficients):
    return np.column_stack([features, np.ones(len(features))]) @ coefficients


@pytest.mark.parametrize("seed", range(4))
def test_transductive_ridge_refits_for_every_candidate(seed):
    rng = np.random.default_rng(seed)
    X, Y, new = rng.normal(size=(19, 3)), rng.random((19, 3)) < 0.4, rng.normal(size=(4, 3))
    level = Fraction(seed + 1, 10)
    sets = TransductiveRidge(penalty=0.7, min_labels=0).calibrate(X, Y).predict_set(new, significance=level)
    for row, text in enumerate(new):
        expected = set()
        for candidate in every(3):
            features, labels = np.vstack([X, text]), np.vstack([Y, candidate]).astype(float)
            residuals = labels - fitted_values(features, ridge_fit(features, labels, 0.7))
            scores = (residuals**2).sum(axis=1)
            if Fraction(int((scores >= scores[-1] - 1e-12).sum()), 20) > level:
                expected.add(tuple(candidate.tolist()))
        assert members_of(sets, row, 3) == expected


@pytest.mark.parametrize("seed", range(3))
def test_cross_conformal_ridge_ranks_in_every_fold(seed):
    rng = np.random.default_rng(seed)
    X, Y, new = rng.normal(size=(23, 3)), rng.random((23, 3)) < 0.4, rng.normal(size=(4, 3))
    rival = CrossConformalRidge(n_folds=4, seed=seed, penalty=0.5, min_labels=0).calibrate(X, Y)
    sets = rival.predict_set(new, significance="0.3")
    fold = np.random.default_rng(seed).permutation(np.arange(23) % 4)
    for row, text in enumerate(new):
        expected = set()
        for candidate in every(3):
            at_least = 0
            for k in range(4):
                coefficients = ridge_fit(X[fold != k], Y[fold != k].astype(float), 0.5)
                scores = ((Y[fold == k] - fitted_values(X[fold == k], coefficients)) ** 2).sum(axis=1)
                own = ((candidate - fitted_values(text[None, :], coefficients)) ** 2).sum()
                at_least += int((scores >= own).sum())
            if Fraction(at_least + 1, 24) > Fraction(3, 10):
                expected.add(tuple(candidate.tolist()))
        assert members_of(sets, row, 3) == expected


def test_candidates_of_ridge_are_within_limits_or_given():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 2)), rng.random((30, 20)) < 0.1
    with pytest.raises(InvalidInputError, match="Give 'candidates'"):
        TransductiveRidge().calibrate(X, Y)
    rival = TransductiveRidge(max_labels=2).calibrate(X, Y)
    assert rival.predict_set(X[:2], significance=0.001).sizes().tolist() == [20 + 190] * 2
    rival = TransductiveRidge(candidates=Y).calibrate(X, Y)
    seen = {tuple(y) for y in Y.tolist() if any(y)}
    assert rival.predict_set(X[:1], significance=0.001).sizes().tolist() == [len(seen)]


def test_label_powerset_is_the_package_itself():
    rng = np.random.default_rng(0)
    probabilities = rng.random((60, 4))
    labels = rng.random((60, 4)) < probabilities
    rival = LabelPowerset(LogLoss(), 0).calibrate(probabilities[:50], labels[:50])
    expected = rival.predictor.predict_set(probabilities[50:], significance=0.1)
    sets = rival.predict_set(probabilities[50:], significance=0.1)
    assert sets.sizes().tolist() == expected.sizes().tolist()
    assert rival.name == "LogLoss(clip=1e-06)"


RIVALS = [
    LabelPowerset(),
    SeenPowerset(np.eye(3)),
    BonferroniRelevance(),
    PerLabelRelevance(),
    InstanceReproduction(),
    TransductiveRidge(),
    CrossConformalRidge(),
    RecallControl(),
]


@pytest.mark.parametrize("rival", RIVALS, ids=lambda rival: type(rival).__name__)
def test_all_keep_to_one_protocol(rival):
    if isinstance(rival, RecallControl):
        pytest.importorskip("mapie")
    assert rival.name
    assert " e " in f" {rival.guarantee} "
    rng = np.random.default_rng(0)
    probabilities = rng.random((40, 3))
    labels = np.eye(3, dtype=int)[rng.integers(0, 3, 40)]
    with pytest.raises(NotCalibratedError, match="calibrate"):
        rival.predict_set(probabilities, significance=0.1)
    assert rival.calibrate(probabilities[:30], labels[:30]) is rival
    with pytest.raises(InvalidInputError, match="significance"):
        rival.predict_set(probabilities[30:], significance=1.5)
    before = None
    for level in ("0.4", "0.2", "0.1"):
        sets = rival.predict_set(probabilities[30:], significance=level)
        sizes = sets.sizes()
        assert sizes.dtype.kind == "i"
        assert sets.contains(labels[30:]).shape == (10,)
        assert before is None or (sizes >= before).all()
        before = sizes
    assert not sets.contains(np.zeros((10, 3))).any()


def test_bad_input_is_said():
    with pytest.raises(InvalidInputError, match="penalty"):
        TransductiveRidge(penalty=0)
    with pytest.raises(InvalidInputError, match="n_folds"):
        CrossConformalRidge(n_folds=1)
    with pytest.raises(InvalidInputError, match="one per fold"):
        CrossConformalRidge().calibrate([[1.0]], [[1]])
    with pytest.raises(InvalidInputError, match="finite"):
        TransductiveRidge().calibrate([[np.nan]], [[1]])
    with pytest.raises(InvalidInputError, match="adds costs up label by label"):
        SeenPowerset([[1]], LpNorm(math.inf))
    with pytest.raises(InvalidInputError, match="min_labels"):
        BonferroniRelevance(-1)


def test_recall_control_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mapie.risk_control", None)
    with pytest.raises(MissingDependencyError, match=r"surelabel\[rivals\]"):
        RecallControl().calibrate([[0.5]], [[1]])
