"""Measures whose labels interact, and constrained label-sets: every search gives the reference's answers."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cases
import interaction_cases
import reference
from surelabel import ConformalLabelSets, LabelConstraints, LogLoss, LpNorm, Mahalanobis, Mixture, Penalised
from surelabel.engines import interacting, sums
from surelabel.engines.bounds import TABLE_CELLS
from surelabel.evaluation.criteria import of_criterion, s_criterion
from surelabel.evaluation.evaluate import evaluate
from surelabel.exceptions import InvalidInputError, SearchLimitError

SEARCHES = ("exact", "powerset")


def _reference_total(measure, row, labels):
    """One total, coded again; penalties and mixtures through the package's own, which have tests of their own."""
    if isinstance(measure, Mixture):
        return float(measure.totals(np.array([row]), np.array([labels], dtype=bool))[0])
    if isinstance(measure, Mahalanobis):
        return reference.quadratic_total(measure.matrix, row, labels)
    if not isinstance(measure, Penalised):
        return reference.total(cases.costs_of(measure, row), labels, measure.aggregate)
    base = _reference_total(measure.measure, row, labels)
    score = math.sqrt(base) if measure.power == 2 else base if measure.power == 1 else math.pow(base, 1 / measure.power)
    return score + float(measure.penalties_of(np.array([labels], dtype=bool))[0])


def _predictor(problem, measure, search="exact", constraints=None, **parameters):
    with cases.calibration_warnings_ignored():
        predictor = ConformalLabelSets(
            measure, problem.min_labels, problem.max_labels, search, constraints=constraints, **parameters
        )
        return predictor.calibrate(problem.calibration, problem.calibration_labels)


def _scored(problem, measure, row, constraints=None):
    """(total, row) of all candidates, best first."""
    found = []
    for labels in reference.candidates(problem.n_labels, *problem.limits):
        if constraints is None or reference.is_valid(
            labels, constraints.implications, constraints.exclusions, constraints.at_most
        ):
            found.append((_reference_total(measure, row, labels), labels))
    return sorted(found)


def _check(problem, measure, constraints=None):
    """All answers of all searches against the reference."""
    totals = [
        _reference_total(measure, row, labels)
        for row, labels in zip(problem.calibration, problem.calibration_labels, strict=True)
    ]
    d = problem.n_labels
    predictor = _predictor(problem, measure, constraints=constraints)
    assert predictor.calibration_.totals.tolist() == sorted(totals)
    forced = predictor.predict(problem.test)
    given_p = predictor.predict_p(problem.test, problem.test_labels)
    scored = [_scored(problem, measure, row.tolist(), constraints) for row in problem.test]
    assert predictor.calibration_.n_candidates == len(scored[0])
    for i, ranked in enumerate(scored):
        p_values = [float(reference.p_value(total, totals)) for total, _ in ranked]
        assert tuple(forced.labels[i].astype(int)) == ranked[0][1]
        assert forced.credibility[i] == p_values[0]
        assert forced.confidence[i] == 1.0 - (p_values[1] if len(ranked) > 1 else 0.0)
        own = _reference_total(measure, problem.test[i].tolist(), problem.test_labels[i])
        assert given_p[i] == float(reference.p_value(own, totals))
    for search in SEARCHES:
        sets = problem.predict_set(_predictor(problem, measure, search, constraints))
        for one, ranked, labels in zip(sets, scored, problem.test_labels, strict=True):
            members = [row for total, row in ranked if reference.p_value(total, totals) > problem.level]
            expected = [(cases.as_set(row), float(reference.p_value(t, totals))) for t, row in ranked[: len(members)]]
            assert one.size_bounds == (len(members), len(members))
            assert one.top(10**6) == expected
            assert one.top(1) == expected[:1]
            assert one.to_array().tolist() == [[bool(x) for x in row] for row in members]
            assert (one.certain, one.possible) == (reference.certain(members, d), reference.possible(members, d))
            assert one.excluded == reference.excluded(members, d)
            assert one.inclusion().tolist() == reference.inclusion(members, d)
            assert (labels in one) == (tuple(int(y) for y in labels) in members)
            assert one.describe().size_bounds == (len(members), len(members))
        assert sets.sizes().tolist() == [one.size for one in sets]
    return predictor, totals, scored


@settings(max_examples=cases.examples(60))
@given(problem=cases.problems(max_labels=5), data=st.data())
def test_every_search_gives_the_reference_answers(problem, data):
    _check(problem, data.draw(interaction_cases.any_measures(problem.n_labels)))


@settings(max_examples=cases.examples(60))
@given(problem=cases.problems(max_labels=5), data=st.data())
def test_constrained_candidates_are_the_reference_ones(problem, data):
    d = problem.n_labels
    bases = [base for base in interaction_cases.BASES if not isinstance(base, LpNorm) or base.p != 8]
    measure = data.draw(st.one_of(st.sampled_from(bases), interaction_cases.any_measures(d)))
    constraints = data.draw(interaction_cases.constraints(d))
    rules = constraints.implications, constraints.exclusions, constraints.at_most
    valid = [row for row in reference.candidates(d, *problem.limits) if reference.is_valid(row, *rules)]
    if not valid:
        with pytest.raises(InvalidInputError, match="leaves no candidate"):
            _predictor(problem, measure, constraints=constraints)
        return
    predictor, totals, scored = _check(problem, measure, constraints)
    sums_ = [sum((reference.p_value(t, totals) for t, _ in ranked), start=0) for ranked in scored]
    s = s_criterion(predictor, problem.test)
    assert s.mean == pytest.approx([float(sum(sums_) / len(sums_))] * 2, rel=1e-12)


@settings(max_examples=cases.examples(40))
@given(problem=cases.problems(max_labels=5), data=st.data())
def test_s_and_of_are_the_reference_sums(problem, data):
    measure = data.draw(interaction_cases.any_measures(problem.n_labels))
    predictor = _predictor(problem, measure)
    totals = predictor.calibration_.totals.tolist()
    all_sums, rests = [], []
    for row, labels in zip(problem.test, problem.test_labels, strict=True):
        ranked = _scored(problem, measure, row.tolist())
        all_sums.append(sum(reference.p_value(t, totals) for t, _ in ranked))
        rests.append(sum(reference.p_value(t, totals) for t, y in ranked if y != tuple(int(x) for x in labels)))
    s = s_criterion(predictor, problem.test)
    of = of_criterion(predictor, problem.test, problem.test_labels)
    assert s.mean == pytest.approx([float(sum(all_sums)) / len(all_sums)] * 2, rel=1e-12)
    assert of.mean == pytest.approx([float(sum(rests)) / len(rests)] * 2, rel=1e-12, abs=1e-12)


@settings(max_examples=cases.examples(25), deadline=None)
@given(problem=cases.problems(max_labels=10, max_texts=30, n_test=1), data=st.data())
def test_larger_sets_are_those_of_the_powerset(problem, data):
    measure = data.draw(interaction_cases.any_measures(problem.n_labels))
    exact, powerset = (problem.predict_set(_predictor(problem, measure, search))[0] for search in SEARCHES)
    assert exact.size == powerset.size
    assert np.array_equal(exact.to_array(), powerset.to_array())
    assert exact.inclusion().tolist() == powerset.inclusion().tolist()
    assert (exact.certain, exact.possible) == (powerset.certain, powerset.possible)


@settings(max_examples=cases.examples(60))
@given(data=st.data())
def test_penalties_are_the_reference_ones(data):
    d = data.draw(st.integers(1, 6))
    weights = [data.draw(interaction_cases.WEIGHTS) for _ in range(4)]
    seen = data.draw(interaction_cases.label_rows(d))
    measure = Penalised(LogLoss(), *weights).fit(seen)
    rows = reference.candidates(d, 0, d)
    expected = [reference.penalty(row, seen.tolist(), weights) for row in rows]
    assert measure.penalties_of(np.array(rows, dtype=bool)).tolist() == pytest.approx(expected, rel=1e-12, abs=1e-12)


@settings(max_examples=cases.examples(60))
@given(data=st.data())
def test_totals_do_not_depend_on_the_order_of_labels(data):
    d = data.draw(st.integers(1, 6))
    matrix = data.draw(interaction_cases.matrices(d))
    order = np.array(data.draw(st.permutations(range(d))))
    rows = data.draw(cases.probabilities_of(3, d))
    labels = np.array([data.draw(st.lists(st.booleans(), min_size=d, max_size=d)) for _ in range(3)])
    totals = Mahalanobis(matrix).totals(rows, labels)
    moved = Mahalanobis(matrix[np.ix_(order, order)])
    assert moved.totals(np.ascontiguousarray(rows[:, order]), labels[:, order]).tolist() == totals.tolist()
    for i in range(3):
        assert Mahalanobis(matrix).totals_of_label_sets(rows[i], labels[i : i + 1])[0] == totals[i]


@settings(max_examples=cases.examples(30))
@given(data=st.data())
def test_diagonals_are_below_and_above_the_form(data):
    d = data.draw(st.integers(1, 7))
    measure = Mahalanobis(data.draw(interaction_cases.matrices(d)))
    below, above = measure.diagonals
    errors = np.array(data.draw(st.lists(st.floats(0.0, 1.0), min_size=d, max_size=d)))
    form = errors @ measure.matrix @ errors
    rounding = 1e-9 * float(np.abs(measure.matrix).sum()) + 1e-300
    assert (below * errors**2).sum() <= form + rounding
    assert form <= (above * errors**2).sum() + rounding
    slacks, stages = measure.stages
    position = np.empty(d, dtype=int)
    position[measure.order] = np.arange(d)
    for label in range(d):
        left = position > position[label]
        diagonal = np.diag(measure.matrix)[left] - slacks[stages[label]][left]
        part = errors[left]
        assert (diagonal * part**2).sum() <= part @ measure.matrix[np.ix_(left, left)] @ part + rounding


def _large(n_labels=40, seed=0):
    """A problem of many labels, a few of them open, with correlated errors."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(300, 1))
    labels = rng.random((300, n_labels)) < 0.06
    noise = 0.06 * rng.normal(size=(300, n_labels)) + 0.05 * common
    probabilities = np.clip(np.abs(labels * rng.uniform(0.2, 1.0, labels.shape) + noise), 0.0, 1.0)
    return (probabilities[:100], labels[:100]), (probabilities[100:200], labels[100:200]), probabilities[200:]


@pytest.mark.parametrize("penalise", [False, True])
def test_a_set_too_large_to_walk_has_certified_bounds(penalise):
    train, calibration, test = _large()
    measure = Mahalanobis().fit(*train)
    if penalise:
        measure = Penalised(measure, hamming=1.0, cardinality=0.5, pairs=0.2, prior=0.3).fit(train[1])
    exact = ConformalLabelSets(measure, 0, 6).calibrate(*calibration)
    short = ConformalLabelSets(measure, 0, 6, work_limit=50).calibrate(*calibration)
    sets = exact.predict_set(test[:6], significance=0.02)
    bounded = short.predict_set(test[:6], significance=0.02)
    sizes = sets.sizes()
    assert sizes.max() > 100
    lower, upper = bounded.size_bounds()
    assert np.all(lower <= sizes)
    assert np.all(sizes <= upper)
    assert np.any(lower < upper)
    i = int(np.argmax(upper - lower))
    with pytest.raises(SearchLimitError, match="lies between"):
        bounded[i].size  # noqa: B018
    fewest, most = bounded[i].inclusion_bounds()
    share = sets[i].inclusion()
    assert np.all((fewest <= share) & (share <= most))
    refined = bounded[i].refine(0.0, work_limit=10**7)
    assert refined == (sizes[i], sizes[i])
    assert bounded[i].top(20) == sets[i].top(20)
    assert (bounded[i].certain, bounded[i].possible) == (sets[i].certain, sets[i].possible)
    assert [label_set for label_set, _ in sets[i].top(50)] == [s for _, s in zip(range(50), sets[i], strict=False)]


def test_labels_are_searched_for_one_by_one_where_members_are_many(monkeypatch):
    train, calibration, test = _large()
    predictor = ConformalLabelSets(Mahalanobis().fit(*train), 0, 6).calibrate(*calibration)
    sets = predictor.predict_set(test[:3], significance=0.02)
    expected = [(one.certain, one.possible) for one in sets]
    monkeypatch.setattr(interacting, "_LOOKED_AT", 1)
    assert [(one.certain, one.possible) for one in sets] == expected


@pytest.mark.parametrize("most_counted_one_by_one", [0, 1000])
def test_bounds_of_counts_hold_the_counts(monkeypatch, most_counted_one_by_one):
    monkeypatch.setattr(sums, "_FEW", most_counted_one_by_one)
    train, calibration, test = _large(14)
    measure = Mahalanobis().fit(*train)
    predictor = ConformalLabelSets(measure, 0).calibrate(*calibration)
    thresholds = np.unique(predictor.calibration_.totals)[::10]
    exact = predictor.bind(test[:5]).counts_at(thresholds, TABLE_CELLS)
    assert np.array_equal(exact[..., 0], exact[..., 1])
    label_sets = np.array(list(itertools.product([0, 1], repeat=14)), dtype=bool)
    everyone = np.stack([predictor.totals(np.repeat(row[None], 2**14, axis=0), label_sets) for row in test[:5]])
    assert np.array_equal(exact[..., 0], (everyone[:, None, :] <= thresholds[:, None]).sum(axis=2))
    monkeypatch.setattr(sums, "_MAX_STEPS", 2)
    monkeypatch.setattr(sums, "_STEPS_OF_FEW", 2)
    bounds = predictor.bind(test[:5]).counts_at(thresholds, TABLE_CELLS)
    assert np.all(bounds[..., 0] <= exact[..., 0])
    assert np.all(exact[..., 0] <= bounds[..., 1])
    assert np.any(bounds[..., 0] < bounds[..., 1])


def test_an_evaluation_has_no_ball_where_labels_interact():
    train, calibration, test = _large(8)
    predictor = ConformalLabelSets(Mahalanobis().fit(*train), 0).calibrate(*calibration)
    result = evaluate(predictor, test, test > 0.5, levels=["0.1", "0.2"])
    assert result.demand.mean_radius is None
    assert result.measure == {"kind": "mahalanobis", "n_labels": 8}
    assert dataclasses.asdict(result) == result.to_dict()


def test_equal_labels_are_exact_ties():
    # Labels with equal variances and probabilities are the same to the measure: totals tie to the last bit.
    measure = Mahalanobis(np.eye(6) * 1.7 - 0.1)
    predictor = ConformalLabelSets(measure, 0).calibrate([[0.3] * 6] * 9, [[1, 0, 0, 0, 0, 0]] * 9)
    one = predictor.predict_set([[0.3] * 6], significance=0.2)[0]
    assert one.top(99) == [(frozenset(s), 1.0) for s in [(), (5,), (4,), (3,), (2,), (1,), (0,)]]


@pytest.mark.parametrize("constraints", [None, LabelConstraints([(0, 1)], [(2, 3)], [(1, [0, 1, 2])])])
@pytest.mark.parametrize("kind", ["log", "mahalanobis", "penalised", "both", "mixture"])
def test_a_saved_predictor_comes_back_to_the_last_bit(tmp_path, kind, constraints):
    train, calibration, test = _large(8)
    measure = LogLoss() if kind in ("log", "penalised") else Mahalanobis().fit(*train)
    if kind in ("penalised", "both"):
        measure = Penalised(measure, 1.0, 0.5, 0.1 + 0.2, 1 / 3).fit(train[1])
    if kind == "mixture":
        measure = Mixture(0.1 + 0.2, 1 / 3, 0.7, neighbours=0.1).fit(train[1])
    with cases.calibration_warnings_ignored():
        saved = ConformalLabelSets(measure, 0, constraints=constraints).calibrate(*calibration)
    saved.save(tmp_path / "a.predictor")
    loaded = ConformalLabelSets.load(tmp_path / "a.predictor")
    assert loaded.measure == measure
    assert hash(loaded.measure) == hash(measure)
    assert loaded.calibration_.totals.tobytes() == saved.calibration_.totals.tobytes()
    one, other = (predictor.predict_set(test, significance=0.1) for predictor in (saved, loaded))
    assert one.sizes().tolist() == other.sizes().tolist()
    assert [s.top(5) for s in one] == [s.top(5) for s in other]
    assert loaded.calibration_.n_candidates == saved.calibration_.n_candidates


def test_measures_are_fitted_copies_and_do_not_change():
    train, _, _ = _large(5)
    unfitted = Mahalanobis()
    fitted = unfitted.fit(*train)
    assert unfitted.matrix is None
    assert fitted != unfitted
    with pytest.raises(ValueError, match="read-only"):
        fitted.matrix[0, 0] = 1.0
    plain = Penalised(LogLoss(), hamming=1.0)
    known = plain.fit(train[1])
    assert plain.label_sets is None
    assert known.reweighted(hamming=2.0).hamming == 2.0
    assert known != plain
    assert repr(known) == "Penalised(LogLoss(clip=1e-06), hamming=1)"


def test_errors_that_do_not_vary_count_alike():
    measure = Mahalanobis().fit([[0.0, 1.0]] * 5, [[0, 1]] * 5)
    assert np.array_equal(measure.matrix, np.eye(2))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ConformalLabelSets(Mahalanobis()), "not fitted yet"),
        (lambda: ConformalLabelSets(Penalised(LogLoss())), "not fitted yet"),
        (lambda: Mahalanobis([[1.0, 2.0]]), "must be a square matrix"),
        (lambda: Mahalanobis([[1.0, 2.0], [2.0, 1.0]]), "positive definite"),
        (lambda: Mahalanobis([[1.0, 0.5], [0.4, 1.0]]), "finite .* and symmetric"),
        (lambda: Mahalanobis([[np.nan, 0.0], [0.0, 1.0]]), "finite .* and symmetric"),
        (lambda: Mahalanobis().fit([[0.5, 0.5]], [[1, 0]]), "2 texts or more"),
        (lambda: Mahalanobis().fit([[0.5, 0.5]] * 2, [[1, 0, 1]] * 2), "labels"),
        (lambda: Penalised(LogLoss(), hamming=-1.0), "'hamming' parameter of Penalised must be a number, 0 or more"),
        (lambda: Penalised(LogLoss(), prior=math.inf), "'prior' parameter"),
        (lambda: Penalised(LogLoss(), pairs=True), "'pairs' parameter"),
        (lambda: Penalised(Penalised(LogLoss())), "must not be a Penalised one itself"),
        (lambda: Penalised("L2"), "must be a measure"),
        (lambda: Penalised(Mahalanobis(np.eye(3))).fit([[1, 0]]), "must have 3 labels"),
        (lambda: Penalised(LogLoss(), label_sets=[[1, 0], [1, 0]], counts=[1, 2]), "each label-set once"),
        (lambda: Penalised(LogLoss(), label_sets=[[1, 0]], counts=[0]), "'counts' parameter"),
        (lambda: ConformalLabelSets(Mahalanobis(np.eye(3)), search="hamming-ball"), "must be 'exact' or 'powerset'"),
        (lambda: ConformalLabelSets(search="hamming-ball", constraints=LabelConstraints()), "with constraints"),
        (lambda: ConformalLabelSets(constraints=[(0, 1)]), "must be LabelConstraints or None"),
        (lambda: ConformalLabelSets(Mahalanobis(np.eye(3))).calibrate([[0.5, 0.5]], [[1, 0]]), "must have 3 labels"),
    ],
)
def test_bad_input_is_refused_with_what_to_do(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()


def test_a_measure_with_another_score_cannot_be_penalised():
    @dataclasses.dataclass(frozen=True)
    class Squared(cases.Weighted):
        def score(self, totals):
            return totals**2

    with pytest.raises(InvalidInputError, match="whose score is the total itself"):
        Penalised(Squared())


def test_a_hard_search_for_the_best_gives_up_with_an_error(monkeypatch):
    monkeypatch.setattr(interacting, "_PATIENCE", 1)
    rng = np.random.default_rng(0)
    factor = rng.normal(size=(24, 24))
    measure = Mahalanobis(np.round(factor @ factor.T + 1e-3 * np.eye(24), 6))
    predictor = ConformalLabelSets(measure, 0, work_limit=20)
    predictor = predictor.calibrate(rng.random((30, 24)), rng.random((30, 24)) < 0.5)
    with pytest.raises(SearchLimitError, match="cannot be found in 20 steps"):
        predictor.predict_set(rng.random((1, 24)), significance=0.1)[0].top(1)
