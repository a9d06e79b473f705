"""The mixture measure: its formula, its listed label-sets, dense and sparse alike, and what it promises."""

import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

import cases
import interaction_cases
from surelabel import ConformalLabelSets, LabelConstraints, LogLoss, Mixture, SparseProbabilities
from surelabel.evaluation.criteria import of_criterion, s_criterion
from surelabel.exceptions import InvalidInputError
from surelabel.measures.hubs import Hubs
from surelabel.measures.listing import SeenLabelSets
from surelabel.measures.odds import RefinedLogLoss, RefinedOdds


def _formula(measure, seen, row, labels):
    """The score as its definition says, slowly; `seen` are training label-sets as tuples."""
    d = len(row)
    counts = {}
    for label_set in seen:
        counts[label_set] = counts.get(label_set, 0.0) + 1.0
    sizes = [sum(label_set) for label_set in seen]
    for label_set in seen if measure.neighbours else ():
        for k in range(d):
            other = tuple(1 - y if i == k else y for i, y in enumerate(label_set))
            if min(sizes) <= sum(other) <= max(sizes):
                counts[other] = counts.get(other, 0.0) + measure.neighbours / d
    clipped = [min(max(o, measure.clip), 1 - measure.clip) for o in row]
    log_odds = [math.log(o / (1 - o)) for o in clipped]
    if measure.odds is not None:
        offsets, *by_label = measure.odds.table.tolist()
        if len(by_label) == 1:
            log_odds = [a + b * x for a, b, x in zip(offsets, by_label[0], log_odds, strict=True)]
        else:
            log_odds = [offsets[k] + math.fsum(by_label[j][k] * log_odds[j] for j in range(d)) for k in range(d)]
        largest = math.log((1 - measure.clip) / measure.clip)
        log_odds = [min(max(x, -largest), largest) for x in log_odds]

    def given_hubs(label_set):
        if measure.hubs is None:
            return log_odds
        largest, (offsets, *effects) = math.log((1 - measure.clip) / measure.clip), measure.hubs.table.tolist()
        moved = [x + a for x, a in zip(log_odds, offsets, strict=True)]
        for hub, effect in zip(measure.hubs.labels.tolist(), effects, strict=True):
            surprise = label_set[hub] - 1 / (1 + math.exp(-log_odds[hub]))
            moved = [x + surprise * e for x, e in zip(moved, effect, strict=True)]
        return [min(max(x, -largest), largest) for x in moved]

    def log_product(label_set):
        signed = (-x if y else x for x, y in zip(given_hubs(label_set), label_set, strict=True))
        return -math.fsum(max(x, 0.0) + math.log1p(math.exp(-abs(x))) for x in signed)

    having = [sum(label_set[k] for label_set in seen) for k in range(d)]
    frequency = [math.log((n + 0.5) / (len(seen) - n + 0.5)) for n in having]

    def weight_of(label_set):
        off = math.fsum(x for x, y in zip(frequency, label_set, strict=True) if y)
        return (
            measure.prior * math.log(counts[label_set]) - measure.discount * off - measure.cardinality * sum(label_set)
        )

    logits = {s: weight_of(s) + measure.temperature * log_product(s) for s in counts}
    largest = max(logits.values())
    normaliser = largest + math.log(math.fsum(math.exp(value - largest) for value in logits.values()))
    parts = [math.log1p(-measure.weight) + log_product(labels)]
    if labels in logits and measure.weight > 0:
        parts.append(math.log(measure.weight) + logits[labels] - normaliser)
    top = max(parts)
    return max(0.0, -top - math.log(math.fsum(math.exp(part - top) for part in parts)))


def test_a_score_by_hand():
    # Seen: {0} three times, {1} once. product({0}) = .4, product({1}) = .1, so q({0}) = 3 * .4 / (3 * .4 + .1).
    measure = Mixture(0.5, prior=1.0, temperature=1.0).fit([[1, 0], [1, 0], [0, 1], [1, 0]])
    totals = measure.totals(np.array([[0.8, 0.5]] * 3), np.array([[1, 0], [0, 1], [1, 1]], dtype=bool))
    q = 1.2 / 1.3
    expected = [-math.log(0.5 * 0.4 + 0.5 * q), -math.log(0.5 * 0.1 + 0.5 * (1 - q)), -math.log(0.5 * 0.4)]
    assert totals == pytest.approx(expected, rel=1e-14)


def test_a_discount_by_hand():
    # Seen: {0} twice, {0, 1} once. With half a text on both sides, label 0 has odds 3.5 / 0.5, label 1 odds 1.5 / 2.5.
    measure = Mixture(0.5, prior=1.0, temperature=1.0, discount=1.0).fit([[1, 0], [1, 0], [1, 1]])
    totals = measure.totals(np.array([[0.5, 0.5]] * 2), np.array([[1, 0], [1, 1]], dtype=bool))
    terms = np.array([2 / 7, 1 / (7 * 0.6)])
    assert totals == pytest.approx(-np.log(0.5 * 0.25 + 0.5 * terms / terms.sum()), rel=1e-14)


def test_fewer_labels_by_hand():
    measure = Mixture(0.5, prior=0.0, temperature=1.0, cardinality=math.log(3)).fit([[1, 0], [1, 0], [1, 1]])
    totals = measure.totals(np.array([[0.5, 0.5]] * 2), np.array([[1, 0], [1, 1]], dtype=bool))
    assert totals == pytest.approx([-math.log(0.5 * 0.25 + 0.5 * 0.75), -math.log(0.5 * 0.25 + 0.5 * 0.25)], rel=1e-14)


def test_refined_log_odds_by_hand():
    # Odds 3 and 1: squared, and halved; then label 0's odds times label 1's new ones.
    probabilities, labels = np.array([[0.75, 0.5]] * 2), np.array([[1, 0], [0, 1]], dtype=bool)
    each = Mixture(0.0, odds=RefinedOdds(np.array([[0.0, -math.log(2)], [2.0, 1.0]]))).fit([[1, 0]])
    assert each.totals(probabilities, labels) == pytest.approx([-math.log(0.9 * 2 / 3), -math.log(0.1 / 3)], rel=1e-14)
    table = np.array([[0.0, 0.0], [1.0, 1.0], [5.0, 0.0]])
    across = Mixture(0.0, odds=RefinedOdds(table)).fit([[1, 0]])
    assert across.totals(probabilities, labels) == pytest.approx([-math.log(0.75 / 4)] * 2, rel=1e-14)


def test_hubs_by_hand():
    # Label 0 is at even odds, so its surprise is a half: odds 1 of label 1 become 9 if it is present, 1 / 9 if absent.
    hubs = Hubs(np.array([0]), np.array([[0.0, 0.0], [0.0, 2 * math.log(9)]]))
    probabilities, labels = np.full((4, 2), 0.5), np.array([[1, 1], [1, 0], [0, 1], [0, 0]], dtype=bool)
    plain = Mixture(0.0, hubs=hubs).fit([[1, 0]])
    products = np.array([0.45, 0.05, 0.05, 0.45])
    assert plain.totals(probabilities, labels) == pytest.approx(-np.log(products), rel=1e-14)
    # Seen: {0, 1} and {1}, in both states of the hub; q is proportional to their products.
    mixed = Mixture(0.5, prior=1.0, temperature=1.0, hubs=hubs).fit([[1, 1], [0, 1]])
    expected = 0.5 * products + 0.5 * np.array([0.9, 0.0, 0.1, 0.0])
    assert mixed.totals(probabilities, labels) == pytest.approx(-np.log(expected), rel=1e-14)
    predictor = ConformalLabelSets(mixed, 0).calibrate(probabilities[:3], labels[:3])
    assert predictor.predict_set(probabilities[:1], significance=0.5)[0].top(4) == [
        (frozenset({0, 1}), 1.0), (frozenset(), 0.75), (frozenset({1}), 0.75)
    ]  # fmt: skip


def test_a_hub_is_learnt_from_labels_that_go_with_it():
    rng = np.random.default_rng(0)
    labels = rng.random((2000, 4)) < 0.5
    labels[:, 1] = labels[:, 0] ^ (rng.random(2000) < 0.1)
    given = np.full(labels.shape, 0.5)
    measure = Mixture(0.0).fit(labels[:1000]).with_hubs(given[1000:], labels[1000:], [0])
    # P(label 1 | label 0) is .9 or .1: log-odds of +-log(9), at a surprise of +-1/2.
    assert measure.hubs.table[1] == pytest.approx([0.0, 4 * math.log(3), 0.0, 0.0], abs=0.6)
    losses = [one.totals(given, labels).mean() for one in (measure, Mixture(0.0).fit(labels[:1000]))]
    assert losses[0] < losses[1] - 0.3


def test_log_odds_are_refined_towards_what_texts_say():
    rng = np.random.default_rng(0)
    truth = rng.normal(-1.0, 2.0, (4000, 3))
    labels = rng.random(truth.shape) < 1 / (1 + np.exp(-truth))
    given = 1 / (1 + np.exp(-(truth * [2.0, 0.5, 1.0] + [1.0, 0.0, 0.0])))
    slopes = Mixture(0.9).fit(labels).refine(given, labels).odds.table
    assert slopes[1] == pytest.approx([0.5, 2.0, 1.0], rel=0.15)
    assert slopes[0] == pytest.approx([-0.5, 0.0, 0.0], abs=0.2)
    # Label 2 is what label 0 is, and its own probability says nothing.
    labels[:, 2], given[:, 2] = labels[:, 0], 0.5
    own, across = (
        RefinedLogLoss(1e-6, RefinedOdds.of(given, labels, across=way)).costs(given) for way in (False, True)
    )
    losses = [np.where(labels, present, absent)[:, 2].mean() for absent, present in (own, across)]
    assert losses[1] < 0.8 * losses[0]


@pytest.mark.parametrize("n_labels", [1, 7, 60, 151])
def test_costs_of_refined_log_odds_do_not_depend_on_the_other_texts(n_labels):
    rng = np.random.default_rng(1)
    probabilities = rng.random((50, n_labels))
    measure = RefinedLogLoss(1e-6, RefinedOdds(rng.normal(size=(1 + n_labels, n_labels))))
    together = measure.costs(probabilities)
    alone = [measure.costs(row[None]) for row in probabilities]
    assert all(np.array_equal(np.vstack([one[i] for one in alone]), together[i]) for i in (0, 1))


def test_neighbours_share_the_texts_of_label_sets_one_label_away():
    # {0} and {0, 1} are seen, so label-sets of one or two labels count: {0, 2}, {1} and, from {0, 1}, {0} again.
    measure = Mixture(0.5, prior=1.0, neighbours=0.3).fit([[1, 0, 0], [1, 1, 0]])
    listing = measure.listing
    listed = {
        tuple(listing.labels[listing.starts[i] : listing.starts[i + 1]].tolist()): float(listing.factors[i])
        for i in np.flatnonzero(listing.factors)
    }
    assert listed == pytest.approx({(0,): 1.1, (0, 1): 1.1, (1,): 0.1, (0, 2): 0.1})


@settings(max_examples=cases.examples(60))
@given(data=st.data())
def test_totals_are_those_of_the_formula(data):
    d = data.draw(st.integers(1, 5))
    seen = data.draw(interaction_cases.label_rows(d))
    drawn = data.draw(interaction_cases.mixtures(d))
    measure = drawn.fit(seen)
    row = data.draw(cases.probabilities_of(1, d))[0]
    rows = np.array(list(itertools.product([0, 1], repeat=d)), dtype=bool)
    training = [tuple(int(y) for y in label_set) for label_set in seen]
    expected = [_formula(measure, training, row.tolist(), tuple(int(y) for y in labels)) for labels in rows]
    totals = measure.totals_of_label_sets(row, rows)
    assert totals.tolist() == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert totals.tolist() == measure.totals(np.repeat(row[None], len(rows), axis=0), rows).tolist()


@settings(max_examples=cases.examples(60))
@given(data=st.data())
def test_no_listed_label_set_is_stranger_than_if_it_were_not_listed(data):
    d = data.draw(st.integers(1, 6))
    measure = data.draw(interaction_cases.mixtures(d))
    row = data.draw(cases.probabilities_of(1, d))[0]
    rows = np.array(list(itertools.product([0, 1], repeat=d)), dtype=bool)
    plain = measure.product_losses(np.repeat(row[None], len(rows), axis=0), rows)
    assert np.all(measure.totals_of_label_sets(row, rows) <= plain + measure.settings.shift)


@settings(max_examples=cases.examples(100))
@given(
    threshold=st.one_of(st.floats(0.0, 1e6), st.floats(0.0, 40.0), st.sampled_from([math.inf, -math.inf])),
    weight=st.one_of(st.floats(0.0, 0.999999), st.sampled_from([0.0, 1e-300, 1 - 2.0**-53])),
)
def test_a_shifted_threshold_is_the_largest_that_fits(threshold, weight):
    measure = Mixture(weight).fit([[1, 0]])
    shift = measure.settings.shift
    for at in (threshold, shift, math.nextafter(shift, math.inf), shift + threshold):
        shifted = float(measure.shifted(np.array([at]))[0])
        if math.isinf(at) and at > 0:
            assert shifted == math.inf
        elif shifted < 0:
            assert 0.0 + shift > at
        else:
            assert shifted + shift <= at < math.nextafter(shifted, math.inf) + shift


def _texts(n_texts=150, d=9, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.random((n_texts, d)) < 0.25
    labels[~labels.any(axis=1), 0] = True
    probabilities = np.clip(0.6 * labels + 0.4 * rng.random((n_texts, d)), 0.0, 1.0).round(2)
    return np.where(probabilities < 0.15, 0.02, probabilities), labels


def _sparse(probabilities):
    dense = np.where(probabilities == 0.02, 0.0, probabilities)
    return SparseProbabilities(csr_array(dense), unlisted=0.02)


@pytest.mark.filterwarnings("ignore::surelabel.exceptions.CalibrationWarning")
@pytest.mark.parametrize("neighbours", [0.0, 0.5])
@pytest.mark.parametrize("significance", [0.02, 0.1, 0.4, 0.001])
def test_sparse_texts_get_the_answers_of_dense_ones(neighbours, significance):
    probabilities, labels = _texts()
    measure = Mixture(0.8, 0.5, 0.7, neighbours).fit(labels[:40])
    assert measure == Mixture(0.8, 0.5, 0.7, neighbours).fit(csr_array(labels[:40]))
    dense = ConformalLabelSets(measure, 1, 4).calibrate(probabilities[40:120], labels[40:120])
    sparse = ConformalLabelSets(measure, 1, 4).calibrate(_sparse(probabilities[40:120]), csr_array(labels[40:120]))
    assert dense.calibration_.totals.tolist() == sparse.calibration_.totals.tolist()
    test, truth = probabilities[120:], labels[120:]
    one, other = dense.predict(test), sparse.predict(_sparse(test))
    assert one.label_sets == other.label_sets
    assert one.confidence.tolist() == other.confidence.tolist()
    sets = dense.predict_set(test, significance=significance)
    same = sparse.predict_set(_sparse(test), significance=significance)
    assert sets.sizes().tolist() == same.sizes().tolist()
    assert sets.contains(truth).tolist() == same.contains(csr_array(truth)).tolist()
    assert np.array_equal(sets.certain_and_open()[0], same.certain_and_open()[0].toarray())
    assert np.array_equal(sets.certain_and_open()[1], same.certain_and_open()[1].toarray())
    for a, b in zip(sets, same, strict=True):
        assert a.top(40) == b.top(40)
        assert (a.certain, a.open, a.excluded) == (b.certain, b.open, b.excluded)
        assert a.inclusion().tolist() == b.inclusion().tolist()
        assert str(a.describe()) == str(b.describe())
    assert s_criterion(dense, test).mean == pytest.approx(s_criterion(sparse, _sparse(test)).mean)
    assert of_criterion(dense, test, truth).mean == pytest.approx(of_criterion(sparse, _sparse(test), truth).mean)


def test_a_hundred_thousand_labels():
    rng = np.random.default_rng(1)
    n_texts, d = 120, 100_000
    rows = np.repeat(np.arange(n_texts), 8)
    columns = np.concatenate([rng.choice(200, 8, replace=False) for _ in range(n_texts)])
    probabilities = SparseProbabilities(
        csr_array((rng.random(len(rows)) * 0.6, (rows, columns)), shape=(n_texts, d)), 1e-7
    )
    labels = csr_array((np.ones(len(rows[::4]), dtype=bool), (rows[::4], columns[::4])), shape=(n_texts, d))
    measure = Mixture(0.9, 0.5, 0.8).fit(labels[:60])
    predictor = ConformalLabelSets(measure, 1, 3).calibrate(probabilities[30:90], labels[30:90])
    sets = predictor.predict_set(probabilities[90:], significance=0.3)
    assert sets.sizes().min() >= 1
    for one in sets:
        assert [label_set in one for label_set, _ in one.top(5)] == [True] * min(5, one.size)
        assert sum(p for _, p in one.top(3)) > 0
    with pytest.raises(InvalidInputError, match="'neighbours' parameter of Mixture must be 0"):
        measure.reweighted(neighbours=0.1)


@pytest.mark.filterwarnings("ignore::surelabel.exceptions.CalibrationWarning")
def test_constraints_and_limits_leave_listed_label_sets_out():
    probabilities, labels = _texts(d=5)
    measure = Mixture(0.9, neighbours=0.5).fit(labels[:40])
    constraints = LabelConstraints(exclusions=[(0, 1)])
    predictor = ConformalLabelSets(measure, 2, 3, constraints=constraints).calibrate(probabilities, labels)
    sets = predictor.predict_set(probabilities[:10], significance=0.001)
    assert all(2 <= len(s) <= 3 and not {0, 1} <= s for one in sets for s, _ in one.top(99))
    assert {one.size for one in sets} == {predictor.calibration_.n_candidates}


def test_without_weight_it_is_log_loss():
    probabilities, labels = _texts()
    ours, plain = (
        ConformalLabelSets(measure).calibrate(probabilities[:100], labels[:100])
        for measure in (Mixture(0.0).fit(labels[:50]), LogLoss())
    )
    assert ours.calibration_.totals.tolist() == plain.calibration_.totals.tolist()
    one, other = (predictor.predict_set(probabilities[100:], significance=0.05) for predictor in (ours, plain))
    assert [s.top(20) for s in one] == [s.top(20) for s in other]


@pytest.mark.filterwarnings("ignore::surelabel.exceptions.CalibrationWarning")
def test_bounds_past_the_work_limit_hold_the_sizes():
    rng = np.random.default_rng(3)
    labels = rng.random((300, 40)) < 0.06
    probabilities = np.clip(
        np.abs(labels * rng.uniform(0.2, 1.0, labels.shape) + 0.06 * rng.normal(size=labels.shape)), 0, 1
    )
    measure = Mixture(0.9, neighbours=0.2).fit(labels[:100])
    interaction_cases.check_bounds(measure, (0, 6), probabilities[100:230], labels[100:200], significance=0.02)


def test_calibrations_merge_if_the_measure_is_the_same():
    probabilities, labels = _texts()
    measure = Mixture().fit(labels[:40])
    parts = [
        ConformalLabelSets(same).calibrate(probabilities[rows], labels[rows])
        for same, rows in ((measure, slice(40, 90)), (Mixture().fit(labels[:40]), slice(90, 150)))
    ]
    whole = ConformalLabelSets(measure).calibrate(probabilities[40:], labels[40:])
    merged = ConformalLabelSets.merge(parts)
    assert merged.calibration_.totals.tolist() == whole.calibration_.totals.tolist()
    other = ConformalLabelSets(Mixture().fit(labels[:41])).calibrate(probabilities[40:], labels[40:])
    with pytest.raises(InvalidInputError, match="same measure"):
        ConformalLabelSets.merge([parts[0], other])


def test_a_fitted_copy_does_not_change():
    measure = Mixture(0.5)
    fitted = measure.fit([[1, 0], [1, 1]])
    assert measure.seen is None
    assert fitted != measure
    assert fitted == pickle.loads(pickle.dumps(fitted))
    assert hash(fitted) == hash(Mixture(0.5).fit([[1, 1], [1, 0]]))
    assert repr(fitted.reweighted(neighbours=0.1)) == "Mixture(weight=0.5, prior=0.5, temperature=1, neighbours=0.1)"
    with pytest.raises(ValueError, match="read-only"):
        fitted.seen.counts[0] = 5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ConformalLabelSets(Mixture()), "not fitted yet"),
        (lambda: Mixture(1.0), r"'weight' parameter of Mixture must be a number in \[0, 1\)"),
        (lambda: Mixture(True), "'weight' parameter"),
        (lambda: Mixture(prior=-1.0), "'prior' parameter of Mixture must be a number 0 or more"),
        (lambda: Mixture(temperature=math.nan), "'temperature' parameter"),
        (lambda: Mixture(neighbours=math.inf), "'neighbours' parameter"),
        (lambda: Mixture(clip=0.7), "'clip' parameter"),
        (lambda: Mixture(discount=-0.1), "'discount' parameter"),
        (lambda: Mixture(cardinality=-0.1), "'cardinality' parameter"),
        (lambda: RefinedOdds(np.ones((3, 3))), "2 rows or one more than labels"),
        (lambda: RefinedOdds(np.array([[np.nan], [1.0]])), "finite numbers"),
        (lambda: Mixture(odds=RefinedOdds(np.ones((2, 3)))).fit([[1, 0]]), "must be of 2 labels"),
        (lambda: Mixture(hubs=Hubs([0], np.zeros((2, 3)))).fit([[1, 0]]), "'hubs' parameter .* must be of 2 labels"),
        (lambda: Hubs(np.array([0]), np.ones((2, 3))), "no hub changes itself"),
        (lambda: Hubs(np.array([0, 0]), np.zeros((3, 3))), "1 to 4 different labels"),
        (lambda: Mixture().fit([[1, 0]]).with_hubs([[0.5, 0.5]], [[1, 0]], [2]), "hubs"),
        (lambda: Mixture().fit([[1, 0]]).refine([[0.5, 0.5]], [[1, 0, 1]]), "Mixture.refine"),
        (lambda: SeenLabelSets(np.array([0, 2]), np.array([1, 0]), np.array([1]), 2), "ascending label 'indices'"),
        (lambda: SeenLabelSets(np.array([0, 1]), np.array([2]), np.array([1]), 2), "ascending label 'indices'"),
        (lambda: SeenLabelSets(np.array([0, 1, 2]), np.array([1, 1]), np.array([1, 1]), 2), "each label-set once"),
        (lambda: SeenLabelSets(np.array([0, 1]), np.array([1]), np.array([0]), 2), "'counts' of 1 or more"),
    ],
)
def test_wrong_parameters_are_refused(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()


@pytest.mark.slow
def test_the_error_rate_is_what_was_asked_for():
    probabilities, labels = _texts(3000, seed=5)
    measure = Mixture(0.9, neighbours=0.2).fit(labels[:500])
    rng = np.random.default_rng(0)
    errors = []
    with cases.calibration_warnings_ignored():
        for _ in range(200):
            rows = 500 + rng.permutation(2500)[:400]
            predictor = ConformalLabelSets(measure).calibrate(probabilities[rows[:199]], labels[rows[:199]])
            sets = predictor.predict_set(probabilities[rows[199:]], significance=0.1)
            errors.append(1.0 - sets.contains(labels[rows[199:]]).mean())
    # The theorem: at most 0.1 on average; the mean of 200 splits has a standard error of 0.002.
    assert 0.085 < np.mean(errors) < 0.107


def test_hubs_are_absent_or_present():
    hubs = Hubs(np.array([1]), np.array([[0.0, 0.0, 0.0], [2.0, 0.0, -1.0]]))
    assert (hubs.states, hubs.n_labels) == ([(0,), (1,)], 3)
    assert RefinedOdds(np.array([[0.0, 0.5], [1.0, 2.0]])).n_labels == 2
