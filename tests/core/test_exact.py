"""All answers on small problems, against every label-set scored with exact fractions."""

import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from core.problems import costs_of, draw_problem, draw_rules
from surelabel import ByCardinality, ByGroup, ConformalLabelSets, LabelConstraints, LogLoss, LpNorm, Mixture
from surelabel.evaluation.criteria import of_criterion, s_criterion
from surelabel.exceptions import InvalidInputError
from surelabel.measures import SeparableMeasure
from surelabel.measures.refinement import Refinement

pytestmark = pytest.mark.filterwarnings("ignore::surelabel.exceptions.CalibrationWarning")
LARGEST = np.log((1 - 1e-6) / 1e-6)
LEVELS = [Fraction(1, 100), Fraction(1, 20), Fraction(1, 10), Fraction(29, 100), Fraction(1, 2), Fraction(99, 100)]
MEASURES = [LpNorm(1), LpNorm(2), LpNorm(4), LpNorm(8), LpNorm(1.5), LogLoss(), LogLoss(0.1), LogLoss(1e-15)]


class Lopsided(SeparableMeasure):
    """A measure of one's own, with costs that are no powers of two and depend on the label."""

    def costs(self, probabilities):
        weights = 1.0 + np.arange(probabilities.shape[1]) / 3.0
        return weights * probabilities, 2.5 * (1.0 - probabilities)


class Case:
    """A predictor, its test texts, and all totals that the reference needs."""

    def __init__(self, rng, measure, problem, *, kinds="plain", totals_of=None, **options):
        self.calibration, self.labels, self.test, self.least, self.most = problem
        self.d, self.options = self.calibration.shape[1], options
        rules = draw_rules(rng, self.d) if kinds == "constraints" else {}
        self.candidates = reference.candidates(self.d, self.least, self.most, rules)
        self.class_of, taxonomy, self.groups, self.test_groups = (lambda y: 0), None, None, None
        if kinds == "cardinality":
            edges = tuple(sorted(rng.sample(range(1, self.d + 2), rng.randint(1, min(3, self.d)))))
            taxonomy, self.class_of = ByCardinality(edges), lambda y: sum(sum(y) >= e for e in edges)
        if kinds == "groups":
            self.groups = [rng.choice("ab") for _ in self.calibration]
            self.test_groups = [rng.choice(sorted(set(self.groups))) for _ in self.test]
            taxonomy = ByGroup()
        constraints = LabelConstraints(**rules) if kinds == "constraints" else None
        self.predictor = ConformalLabelSets(
            measure, self.least, self.most, taxonomy=taxonomy, constraints=constraints, n_jobs=1, **options
        )
        if not self.candidates:
            return
        self.predictor.calibrate(self.calibration, self.labels, groups=self.groups)
        units, every = self.predictor.calibration_.units, reference.candidates(self.d, 0, self.d)
        self.totals_of = totals_of or (lambda row: reference.totals(*costs_of(measure, row), units, every))
        self.own = [
            (self.totals_of(row)[y], self.class_of(y), group)
            for row, y, group in zip(
                self.calibration,
                [tuple(map(int, y)) for y in self.labels],
                self.groups or [""] * len(self.labels),
                strict=True,
            )
        ]

    def scores_for(self, row):
        """Return the function from label-sets to the calibration scores of their category, for a test text."""
        group = "" if self.test_groups is None else self.test_groups[row]
        return lambda y: [score for score, place, of in self.own if place == self.class_of(y) and of == group]

    def check(self, rng):
        """Compare everything at all levels."""
        if not self.candidates:
            return
        texts = self.predictor.texts(self.test, groups=self.test_groups)
        guesses = self.predictor.predict(texts)
        everything = [self.totals_of(row) for row in self.test]
        for i, totals in enumerate(everything):
            inside = {y: totals[y] for y in self.candidates}
            best, confidence, credibility = reference.forced(self.scores_for(i), inside)
            assert tuple(map(int, guesses.labels[i])) == best
            assert guesses.credibility[i] == float(credibility)
            assert guesses.confidence[i] == pytest.approx(float(confidence), abs=1e-15)
            for y in rng.sample(reference.candidates(self.d, 0, self.d), min(6, 2**self.d)):
                given_groups = None if self.test_groups is None else self.test_groups[i : i + 1]
                p = self.predictor.predict_p(self.test[i : i + 1], np.array([y]), groups=given_groups)[0]
                assert p == (float(reference.p_value(self.scores_for(i)(y), totals[y])) if y in inside else 0.0)
        for level in LEVELS:
            asked = {"significance": level} if rng.random() < 0.5 else {"confidence_level": str(float(1 - level))}
            sets = self.predictor.predict_set(texts, **asked)
            if rng.random() < 0.5:
                sets.first(rng.choice([1, 5, 300]))  # later answers may come from the list
            bounds, (certain, possible) = sets.size_bounds(), sets.status()
            for i, totals in enumerate(everything):
                inside = {y: totals[y] for y in self.candidates}
                want = reference.members(self.scores_for(i), inside, level)
                self.check_set(rng, sets[i], want, [int(bound[i]) for bound in bounds])
                have = [sum(y[k] for y, _ in want) for k in range(self.d)]
                assert set(np.flatnonzero(possible[i])) == {k for k in range(self.d) if have[k]}
                assert set(np.flatnonzero(certain[i])) == {k for k in range(self.d) if want and have[k] == len(want)}

    def check_set(self, rng, one, want, bounds):
        """Compare one prediction set with its members and their p-values."""
        columns, members = range(self.d), [y for y, _ in want]
        as_sets = [frozenset(k for k in columns if y[k]) for y in members]
        assert [tuple(map(int, row)) for row in one.to_array()] == members
        assert list(one) == as_sets
        assert one.top(3) == [(label_set, float(p)) for label_set, (_, p) in zip(as_sets, want, strict=True)][:3]
        assert bounds[0] <= len(want) <= bounds[1]
        if self.options.get("work_limit", 10**6) > 1000:
            assert bounds == [len(want)] * 2
            assert one.size == len(want)
        have = np.array([sum(y[k] for y in members) for k in columns])
        assert one.certain == {k for k in columns if want and have[k] == len(want)}
        assert one.possible == {k for k in columns if have[k]}
        assert one.open == {k for k in columns if 0 < have[k] < len(want)}
        assert one.excluded == {k for k in columns if not have[k]}
        assert np.allclose(one.inclusion(), have / max(len(want), 1), atol=1e-12)
        assert bool(one) == bool(want)
        for y in rng.sample(reference.candidates(self.d, 0, self.d), min(4, 2**self.d)):
            assert ({k for k in columns if y[k]} in one) == (y in members)

    def check_criteria(self, rng):
        """Compare S and OF with sums over all candidates."""
        true = np.array([rng.choice(reference.candidates(self.d, 0, self.d)) for _ in self.test])
        if self.predictor.constraints is not None:
            with pytest.raises(InvalidInputError, match="constraints"):
                s_criterion(self.predictor, self.test)
            return
        texts = self.predictor.texts(self.test, groups=self.test_groups)
        sums = [s_criterion(self.predictor, texts), of_criterion(self.predictor, texts, true)]
        for i, row in enumerate(self.test):
            totals = self.totals_of(row)
            p = {y: reference.p_value(self.scores_for(i)(y), totals[y]) for y in self.candidates}
            every = sum(p.values())
            for one, want in zip(sums, [every, every - p.get(tuple(map(int, true[i])), 0)], strict=True):
                slack = 1e-9 * (1.0 + float(every))
                assert one.floor[i] + one.lower[i] <= float(want) + slack
                assert one.floor[i] + one.upper[i] >= float(want) - slack
                assert one.upper[i] - one.lower[i] <= slack


@pytest.mark.parametrize("kinds", ["plain", "cardinality", "groups", "constraints"])
@settings(max_examples=12)
@given(seed=st.integers(0, 10**9))
def test_exact_search(kinds, seed):
    rng = random.Random(seed)
    case = Case(rng, rng.choice(MEASURES), draw_problem(rng), kinds=kinds)
    case.check(rng)
    if case.candidates:
        case.check_criteria(rng)


@pytest.mark.parametrize("search", ["hamming-ball", "powerset"])
@settings(max_examples=8)
@given(seed=st.integers(0, 10**9))
def test_searches_of_the_paper(search, seed):
    rng = random.Random(seed)
    kinds = rng.choice(["plain", "cardinality", "groups"])
    Case(rng, rng.choice(MEASURES), draw_problem(rng, 6), kinds=kinds, search=search).check(rng)


@settings(max_examples=10)
@given(seed=st.integers(0, 10**9))
def test_measures_of_ones_own(seed):
    rng = random.Random(seed)
    Case(rng, Lopsided(), draw_problem(rng), kinds=rng.choice(["plain", "cardinality"])).check(rng)


@settings(max_examples=12)
@given(seed=st.integers(0, 10**9))
def test_bounds_past_the_work_limit(seed):
    rng = random.Random(seed)
    kinds = rng.choice(["plain", "cardinality"])
    Case(rng, rng.choice(MEASURES), draw_problem(rng), kinds=kinds, work_limit=1).check(rng)


def refine_by_hand(table, row):
    """Refined probabilities of one text, label by label."""
    odds = [max(min(np.log(o) - np.log1p(-o), LARGEST), -LARGEST) if 0 < o < 1 else (2 * o - 1) * LARGEST for o in row]
    sums = [table[0, k] + sum(table[1 + j, k] * odds[j] for j in range(len(row))) for k in range(len(row))]
    return np.array([1 / (1 + np.exp(-max(min(z, LARGEST), -LARGEST))) for z in sums])


def mixture_totals(measure, predictor_of, row):
    """Totals of all label-sets, one by one, as `scores` has them; checked against the formula."""
    predictor, d = predictor_of(), len(row)
    every = reference.candidates(d, 0, d)
    group = predictor.calibration_.groups[0]
    groups = None if group == "" else [group] * len(every)
    texts = predictor.texts(np.tile(row, (len(every), 1)), groups)
    scores, whole = predictor.scores(texts, np.array(every)), texts.search.whole(np.array(every, dtype=bool))
    refinement = measure.refinement
    refined = row[None] if refinement is None else refine_by_hand(refinement.table, row)[None]
    absent, present = LogLoss(measure.clip).costs(refined)
    counts = dict(zip(map(tuple, measure.seen.members.astype(int).tolist()), measure.seen.counts.tolist(), strict=True))
    n, with_label = sum(counts.values()), [sum(c for y, c in counts.items() if y[k]) for k in range(d)]
    odds = [np.log((m + 0.5) / (n - m + 0.5)) for m in with_label]
    loss = {y: sum((present if y[k] else absent)[0, k] for k in range(d)) for y in every}
    terms = {
        y: measure.prior * np.log(c) - measure.temperature * loss[y] - measure.discount * np.dot(y, odds)
        for y, c in counts.items()
    }
    largest = max(terms.values())
    norm = sum(np.exp(term - largest) for term in terms.values())
    units, result = predictor.calibration_.units, {}
    for y, score, exact in zip(every, scores.tolist(), whole.tolist(), strict=True):
        near = measure.weight * np.exp(terms[y] - largest) / norm if y in terms else 0.0
        want = -np.log((1 - measure.weight) * np.exp(-loss[y]) + near)
        assert score == pytest.approx(want, rel=1e-9, abs=1e-9)
        result[y] = reference.Total(score * units, exact)
    return result


@pytest.mark.parametrize("kinds", ["plain", "cardinality", "groups", "constraints"])
@pytest.mark.parametrize("is_refined", [False, True])
@settings(max_examples=8)
@given(seed=st.integers(0, 10**9))
def test_mixtures(kinds, is_refined, seed):
    rng = random.Random(seed)
    problem = draw_problem(rng, 6)
    d, case = problem[0].shape[1], None
    training = np.array([[rng.random() < 0.4 for _ in range(d)] for _ in range(rng.choice([1, 3, 12]))])
    settings = [rng.choice([0.3, 0.9, 0.999]), *(rng.choice([0, 0.5, 1, 3]) for _ in range(3)), rng.choice([1e-6, 0.1])]
    measure = Mixture(*settings).fit(training)
    if is_refined:
        table = np.eye(1 + d, d, -1) + np.array([[rng.gauss(0, 0.5) for _ in range(d)] for _ in range(1 + d)])
        measure = replace(measure, refinement=Refinement(table))
    holder = []
    case = Case.__new__(Case)
    holder.append(case)
    case.__init__(
        rng, measure, problem, kinds=kinds,
        totals_of=lambda row: mixture_totals(measure, lambda: holder[0].predictor, row),
    )  # fmt: skip
    case.check(rng)
    if case.candidates:
        case.check_criteria(rng)


def test_a_mixture_of_weight_zero_is_the_log_loss():
    rng = random.Random(3)
    calibration, labels, test, least, most = draw_problem(rng)
    fitted = Mixture(0).fit(labels)
    one, other = (ConformalLabelSets(m, least, most).calibrate(calibration, labels) for m in (fitted, LogLoss()))
    assert one.predict_set(test, significance=0.3).top(50) == other.predict_set(test, significance=0.3).top(50)


@settings(max_examples=15)
@given(seed=st.integers(0, 10**9))
def test_a_refined_mixture_of_weight_zero_is_what_algorithm_1_lists(seed):
    rng = random.Random(seed)
    calibration, labels, test, least, most = draw_problem(rng, 6)
    d = calibration.shape[1]
    table = np.array([[rng.gauss(0, 0.7) for _ in range(d)] for _ in range(1 + d)])
    refinement = Refinement(table)
    measure = replace(Mixture(0).fit(labels), refinement=refinement)
    brute = ConformalLabelSets(LogLoss(), least, most, search="powerset")
    brute.calibrate(refinement.probabilities(calibration), labels)
    exact = ConformalLabelSets(measure, least, most).calibrate(calibration, labels)
    one, other = (
        exact.predict_set(test, significance=0.3),
        brute.predict_set(refinement.probabilities(test), significance=0.3),
    )
    assert one.sizes().tolist() == other.sizes().tolist()
    assert one.top(64) == other.top(64)
