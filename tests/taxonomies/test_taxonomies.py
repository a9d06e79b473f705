"""Taxonomies: kinds, categories, and the union over kinds against brute force, ties included."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from cases import Weighted, as_set, calibration_warnings_ignored, examples, probabilities_of
from surelabel import (
    ByCardinality,
    ByGroup,
    ByRarity,
    ConformalLabelSets,
    LabelConstraints,
    LogLoss,
    LpNorm,
    Mahalanobis,
    Mixture,
    Penalised,
    SparseProbabilities,
)
from surelabel.calibration import totals_of
from surelabel.evaluation.criteria import of_criterion, s_criterion
from surelabel.exceptions import ArtifactError, CalibrationWarning, InvalidInputError
from surelabel.taxonomies.categories import _joined
from surelabel.taxonomies.kinds import Taxonomy


def _kind(taxonomy, row):
    """The kind of a label-set, by reading the definition."""
    size = sum(bool(y) for y in row)
    kind = sum(edge <= size for edge in taxonomy.cardinality)
    if not taxonomy.rarity:
        return kind
    rarest = min((int(taxonomy.counts[k]) for k, y in enumerate(row) if y), default=math.inf)
    return kind * (len(taxonomy.rarity) + 1) + sum(edge <= rarest for edge in taxonomy.rarity)


def _obeys(predictor, row):
    rules = predictor.constraints
    return rules is None or reference.is_valid(row, rules.implications, rules.exclusions, rules.at_most)


def _p_values(predictor, probabilities, labels, groups, text, group):
    """p-value and total of every candidate of one text, by counting calibration texts of its category."""
    taxonomy, d = predictor.taxonomy, len(text)
    totals = totals_of(predictor.measure, probabilities, labels)
    hi = d if predictor.max_labels is None else min(predictor.max_labels, d)
    rows = [row for row in reference.candidates(d, predictor.min_labels, hi) if _obeys(predictor, row)]
    scores = totals_of(predictor.measure, np.tile(text, (len(rows), 1)), np.array(rows, dtype=bool).reshape(-1, d))
    known = [(_kind(taxonomy, row), of) for row, of in zip(labels, groups, strict=True)]
    values = {}
    for row, score in zip(rows, scores, strict=True):
        category = (_kind(taxonomy, row), group)
        same = [total for total, of in zip(totals, known, strict=True) if of == category]
        values[row] = reference.p_value(score, same), score
    return values


def _check_set(found, values, level, d):
    """Compare one prediction set with brute force."""
    ranked = sorted((-p, score, row) for row, (p, score) in values.items() if p > level)
    members = [row for _, _, row in ranked]
    assert found.size == len(members)
    assert found.top(10**4) == [(as_set(row), float(-p)) for p, _, row in ranked]
    assert [tuple(row) for row in found.to_array().astype(int).tolist()] == members
    assert found.certain == reference.certain(members, d)
    assert found.possible == reference.possible(members, d)
    assert found.excluded == reference.excluded(members, d)
    assert found.inclusion().tolist() == reference.inclusion(members, d)
    for row in list(values)[:20]:
        assert (as_set(row) in found) == (row in members)
    assert str(found.describe())


def _compare(measure, taxonomy, data, level, limits, constraints=None, groups=None):
    """Compare sets, p-values and forced predictions of some texts with brute force."""
    probabilities, labels, test = data
    groups = [""] * len(labels) if not taxonomy.by_group else groups
    group = groups[0]
    of_test = [group] * len(test) if taxonomy.by_group else None
    with calibration_warnings_ignored():
        predictor = ConformalLabelSets(measure, *limits, constraints=constraints, taxonomy=taxonomy)
        predictor.calibrate(probabilities, labels, groups if taxonomy.by_group else None)
        sets = predictor.predict_set(test, significance=level, groups=of_test)
    sizes, forced = sets.sizes(), predictor.predict(test, groups=of_test)
    for i, text in enumerate(test):
        values = _p_values(predictor, probabilities, labels, groups, text, group)
        _check_set(sets[i], values, level, len(text))
        assert sizes[i] == sum(p > level for p, _ in values.values())
        rows = np.array(list(values), dtype=bool)
        of_rows = [group] * len(rows) if taxonomy.by_group else None
        found = predictor.predict_p(np.tile(text, (len(rows), 1)), rows, groups=of_rows)
        assert found.tolist() == [float(p) for p, _ in values.values()]
        best = sorted((-p, score, row) for row, (p, score) in values.items())
        assert forced.label_sets[i] == as_set(best[0][2])
        assert forced.credibility[i] == float(-best[0][0])
        assert forced.confidence[i] == 1.0 - (float(-best[1][0]) if len(best) > 1 else 0.0)


TAXONOMIES = {
    "group": lambda d: ByGroup(),
    "cardinality": lambda d: ByCardinality((1, 2, 3)),
    "rarity": lambda d: ByRarity(np.arange(d) * 7 % 5 * 10, (10, 30)),
    "group x cardinality": lambda d: ByGroup() * ByCardinality((2,)),
    "cardinality x rarity": lambda d: ByCardinality((1, 2)) * ByRarity(np.arange(d) * 7 % 5 * 10, (20,)),
}
MEASURES = [LpNorm(2), LpNorm(math.inf), LogLoss(), Weighted("sum"), "mahalanobis", "penalised", "mixture"]


@pytest.mark.parametrize("taxonomy", TAXONOMIES.values(), ids=TAXONOMIES.keys())
@pytest.mark.parametrize("measure", MEASURES, ids=repr)
@given(data=st.data())
@settings(max_examples=examples(8))
def test_the_union_over_kinds_is_that_of_brute_force(measure, taxonomy, data):
    d, n = data.draw(st.integers(2, 5)), data.draw(st.integers(2, 12))
    rows = data.draw(probabilities_of(n + 2, d))
    labels = np.array(data.draw(st.lists(st.lists(st.booleans(), min_size=d, max_size=d), min_size=n, max_size=n)))
    rng = np.random.default_rng(0)
    if measure == "mahalanobis":
        measure = Mahalanobis().fit(rng.random((40, d)), rng.random((40, d)) < 0.4)
    elif measure == "penalised":
        measure = Penalised(LpNorm(2), hamming=0.5, cardinality=0.3, pairs=0.2).fit(rng.random((30, d)) < 0.4)
    elif measure == "mixture":
        measure = Mixture(0.5).fit(rng.random((30, d)) < 0.4)
    lo = data.draw(st.integers(0, 2))
    limits = (lo, data.draw(st.one_of(st.none(), st.integers(lo, d))))
    groups = data.draw(st.lists(st.sampled_from(["a", "b"]), min_size=n, max_size=n))
    level = Fraction(data.draw(st.integers(1, 2 * n)), 2 * n + 1)
    _compare(measure, taxonomy(d), (rows[:n], labels, rows[n:]), level, limits, groups=groups)


def test_nine_labels_and_constraints():
    rng = np.random.default_rng(2)
    probabilities, labels = rng.random((80, 9)).round(1), rng.random((80, 9)) < 0.3
    rules = LabelConstraints(implications=[(0, 1)], exclusions=[(2, 3, 4)], at_most=[(2, (5, 6, 7))])
    data = (probabilities[:78], labels[:78], probabilities[78:])
    for taxonomy in (ByCardinality((1, 2, 3)), ByRarity(rng.integers(0, 200, 9), (20, 100))):
        _compare(LpNorm(2), taxonomy, data, Fraction("0.2"), (1, 5), rules)
        _compare(LogLoss(), taxonomy, data, Fraction("0.2"), (1, 5))


def test_the_papers_searches_give_the_same_sets():
    rng = np.random.default_rng(3)
    probabilities, labels = rng.random((60, 6)), rng.random((60, 6)) < 0.3
    sets = []
    for search in ("exact", "hamming-ball", "powerset"):
        with calibration_warnings_ignored():
            predictor = ConformalLabelSets(LpNorm(2), 1, search=search, taxonomy=ByCardinality((1, 2)))
            predictor.calibrate(probabilities[:50], labels[:50])
            found = predictor.predict_set(probabilities[50:], significance=0.2)
        sets.append([(one.size, one.top(100)) for one in found])
    assert sets[0] == sets[1] == sets[2]


def test_sparse_texts_are_divided_as_dense_ones():
    rng = np.random.default_rng(4)
    probabilities, labels = rng.random((60, 6)), rng.random((60, 6)) < 0.3
    probabilities[probabilities < 0.4] = 0.05
    sparse = SparseProbabilities(scipy.sparse.csr_array(np.where(probabilities > 0.05, probabilities, 0)), 0.05)
    taxonomy, groups = ByGroup() * ByCardinality((1, 2)), ["a", "b"] * 30
    with calibration_warnings_ignored():
        dense = ConformalLabelSets(LpNorm(2), taxonomy=taxonomy).calibrate(probabilities[:50], labels[:50], groups[:50])
        other = ConformalLabelSets(LpNorm(2), taxonomy=taxonomy).calibrate(sparse[:50], labels[:50], groups[:50])
        one = dense.predict_set(probabilities[50:], significance=0.3, groups=groups[50:])
        two = other.predict_set(sparse[50:], significance=0.3, groups=groups[50:])
    assert two.sizes().tolist() == one.sizes().tolist()
    assert [found.top(50) for found in two] == [found.top(50) for found in one]
    assert [found.certain for found in two] == [found.certain for found in one]
    assert [set(found.open) for found in two] == [found.open for found in one]
    best = dense.predict(probabilities[50:], groups=groups[50:]).label_sets
    assert other.predict(sparse[50:], groups=groups[50:]).label_sets == best


@pytest.mark.parametrize("measure", [LpNorm(2), LpNorm(math.inf), LogLoss(), "mixture"], ids=repr)
@given(data=st.data())
@settings(max_examples=examples(5))
def test_sparse_texts_by_rarity_are_as_dense_ones(measure, data, tmp_path_factory):
    """Few values, so that totals tie; labels that a text does not list are of several classes of rarity."""
    d, n = data.draw(st.integers(2, 6)), data.draw(st.integers(2, 12))
    values = st.lists(st.sampled_from([None, None, 0.0, 0.25, 0.5, 0.75, 1.0]), min_size=d, max_size=d)
    rows = data.draw(st.lists(values, min_size=n + 2, max_size=n + 2))
    unlisted = data.draw(st.sampled_from([0.0, 0.25]))
    dense = np.array([[unlisted if value is None else value for value in row] for row in rows])
    places = [(i, k) for i, row in enumerate(rows) for k, value in enumerate(row) if value is not None]
    listed = scipy.sparse.coo_array(
        ([dense[place] for place in places], ([i for i, _ in places], [k for _, k in places])), shape=dense.shape
    )
    sparse = SparseProbabilities(listed.tocsr(), unlisted)
    labels = np.array(data.draw(st.lists(st.lists(st.booleans(), min_size=d, max_size=d), min_size=n, max_size=n)))
    counts = data.draw(st.lists(st.integers(0, 3), min_size=d, max_size=d))
    taxonomy = ByRarity(counts, (1, 2))
    if data.draw(st.booleans()):
        taxonomy = taxonomy * ByCardinality((1, 2))
    if measure == "mixture":
        measure = Mixture(0.5).fit(np.random.default_rng(0).random((30, d)) < 0.4)
    lo = data.draw(st.integers(0, 2))
    limits = (lo, data.draw(st.one_of(st.none(), st.integers(lo, d))))
    level = Fraction(data.draw(st.integers(1, 2 * n)), 2 * n + 1)
    with calibration_warnings_ignored():
        one, two = (
            ConformalLabelSets(measure, *limits, taxonomy=taxonomy).calibrate(texts[:n], labels)
            for texts in (dense, sparse)
        )
        file = tmp_path_factory.mktemp("predictor") / "file"
        two.save(file)
        two = ConformalLabelSets.load(file)
        expected, sets = (
            predictor.predict_set(texts[n:], significance=level) for predictor, texts in ((one, dense), (two, sparse))
        )
        assert sets.sizes().tolist() == expected.sizes().tolist()
        best, other = one.predict(dense[n:]), two.predict(sparse[n:])
        assert other.label_sets == best.label_sets
        assert other.credibility.tolist() == best.credibility.tolist()
        assert other.confidence.tolist() == best.confidence.tolist()
        for row, (found, right) in enumerate(zip(sets, expected, strict=True)):
            assert found.top(100) == right.top(100)
            assert found.to_array().toarray().tolist() == right.to_array().tolist()
            for what in ("certain", "open", "possible", "excluded"):
                assert set(getattr(found, what)) == getattr(right, what)
            assert found.inclusion().tolist() == right.inclusion().tolist()
            assert str(found.describe()) == str(right.describe())
            every = np.array(reference.candidates(d, 0, d), dtype=bool)
            many = (np.full(len(every), n + row),)
            p_values = one.predict_p(dense[many], every)
            assert two.predict_p(sparse[many[0]], every).tolist() == p_values.tolist()
            assert [label_set in found for label_set in map(as_set, every)] == [
                label_set in right for label_set in map(as_set, every)
            ]
        (certain, still_open, n_more), (known, free, _) = sets.certain_and_open(), expected.certain_and_open()
        assert certain.toarray().tolist() == known.tolist()
        assert still_open.toarray().tolist() == free.tolist()
        assert n_more.tolist() == [0, 0]
        few = sets.certain_and_open(1)
        assert (few[1].toarray().sum(axis=1) + few[2]).tolist() == free.sum(axis=1).tolist()


@pytest.mark.parametrize("taxonomy", TAXONOMIES.values(), ids=TAXONOMIES.keys())
@pytest.mark.parametrize("measure", [LpNorm(2), LpNorm(math.inf), LogLoss(), "mahalanobis", "mixture"], ids=repr)
@given(data=st.data())
@settings(max_examples=examples(6))
def test_s_and_of_are_those_of_brute_force(measure, taxonomy, data):
    d, n = data.draw(st.integers(2, 6)), data.draw(st.integers(1, 12))
    rows = data.draw(probabilities_of(n + 2, d))
    labels = np.array(data.draw(st.lists(st.lists(st.booleans(), min_size=d, max_size=d), min_size=n, max_size=n)))
    truth = np.array(data.draw(st.lists(st.lists(st.booleans(), min_size=d, max_size=d), min_size=2, max_size=2)))
    rng = np.random.default_rng(0)
    if measure == "mahalanobis":
        measure = Mahalanobis().fit(rng.random((40, d)), rng.random((40, d)) < 0.4)
    elif measure == "mixture":
        measure = Mixture(0.5).fit(rng.random((30, d)) < 0.4)
    made = taxonomy(d)
    groups = data.draw(st.lists(st.sampled_from(["a", "b"]), min_size=n, max_size=n))
    of_test = [groups[0], groups[-1]]
    with calibration_warnings_ignored():
        predictor = ConformalLabelSets(measure, 1, data.draw(st.one_of(st.none(), st.integers(1, d))), taxonomy=made)
        predictor.calibrate(rows[:n], labels, groups if made.by_group else None)
    given_groups = of_test if made.by_group else None
    s = s_criterion(predictor, rows[n:], groups=given_groups)
    of = of_criterion(predictor, rows[n:], truth, groups=given_groups)
    sums, others = [], []
    for text, true, group in zip(rows[n:], truth, of_test, strict=True):
        known = groups if made.by_group else [""] * n
        values = _p_values(predictor, rows[:n], labels, known, text, group if made.by_group else "")
        sums.append(sum(float(p) for p, _ in values.values()))
        others.append(sum(float(p) for row, (p, _) in values.items() if row != tuple(true.astype(int).tolist())))
    assert s.mean == pytest.approx((np.mean(sums),) * 2)
    assert of.mean == pytest.approx((np.mean(others),) * 2)
    if not made.by_group:
        assert (s.floor + s.excess_lower).tolist() == pytest.approx(sums)


def test_categories_by_hand():
    # One label: totals under L1 are 1 - o with it, o without. Category "1 label": .1 .2 .3; "0 labels": .4.
    probabilities, labels = [[0.9], [0.75], [0.7], [0.4]], [[1], [1], [1], [0]]
    predictor = ConformalLabelSets(LpNorm(1), 0, taxonomy=ByCardinality((1,))).calibrate(probabilities, labels)
    assert predictor.predict_p([[0.75], [0.8]], [[1], [0]]).tolist() == [3 / 4, 1 / 2]
    with pytest.warns(CalibrationWarning, match=r"all their candidates stay plausible: 0 labels \(1 texts\)"):
        assert predictor.predict_set([[0.75]], significance=0.3).sizes().tolist() == [2]
    assert repr(predictor) == "ConformalLabelSets(LpNorm(p=1), min_labels=0, taxonomy=ByCardinality((1,)))"


def test_small_categories_are_joined():
    rng = np.random.default_rng(5)
    probabilities, test = rng.random((100, 4)), rng.random((20, 4))
    labels = np.zeros((100, 4), dtype=bool)
    labels[:, 0] = True
    labels[:30, 1] = True
    labels[:4, 2] = True
    joined = ConformalLabelSets(taxonomy=ByCardinality((1, 2, 3), min_texts=10)).calibrate(probabilities, labels)
    by_hand = ConformalLabelSets(taxonomy=ByCardinality((1, 2))).calibrate(probabilities, labels)
    sizes = [predictor.predict_set(test, significance=0.1).sizes().tolist() for predictor in (joined, by_hand)]
    assert sizes[0] == sizes[1]
    groups = ["big"] * 90 + ["small"] * 6 + ["tiny"] * 4
    by_group = ConformalLabelSets(taxonomy=ByGroup(min_texts=8)).calibrate(probabilities, labels, groups)
    apart = ConformalLabelSets(taxonomy=ByGroup()).calibrate(probabilities, labels, ["big"] * 90 + ["other"] * 10)
    found = by_group.predict_p(test[:4], [[1, 0, 0, 0]] * 4, groups=["big", "small", "tiny", "never seen"])
    expected = apart.predict_p(test[:4], [[1, 0, 0, 0]] * 4, groups=["big", "other", "other", "other"])
    assert found.tolist() == expected.tolist()


def test_merging_adding_and_files(tmp_path):
    rng = np.random.default_rng(6)
    probabilities, labels = rng.random((90, 5)), rng.random((90, 5)) < 0.4
    groups, test, of_test = rng.choice(["a", "b"], 90), rng.random((15, 5)), rng.choice(["a", "b"], 15)
    taxonomy = ByGroup() * ByCardinality((1, 2)) * ByRarity(rng.integers(0, 100, 5), (50,))

    def made(part):
        predictor = ConformalLabelSets(LogLoss(), taxonomy=taxonomy)
        return predictor.calibrate(probabilities[part], labels[part], groups[part])

    with calibration_warnings_ignored():
        whole, parts = made(slice(None)), [made(slice(0, 40)), made(slice(40, 90))]
        whole.save(tmp_path / "predictor")
        others = [
            ConformalLabelSets.merge(parts),
            parts[0].add(probabilities[40:], labels[40:], groups[40:]),
            ConformalLabelSets.load(tmp_path / "predictor"),
        ]
        assert others[2].taxonomy == taxonomy
        expected = [one.top(40) for one in whole.predict_set(test, significance=0.3, groups=of_test)]
        for other in others:
            assert [one.top(40) for one in other.predict_set(test, significance=0.3, groups=of_test)] == expected
        plain = ConformalLabelSets(LogLoss()).calibrate(probabilities, labels)
        with pytest.raises(InvalidInputError, match="same taxonomy"):
            ConformalLabelSets.merge([whole, plain])


def test_bad_input():
    predictor = ConformalLabelSets(taxonomy=ByGroup())
    rows, labels = [[0.9, 0.1]] * 4, [[1, 0]] * 4
    with pytest.raises(InvalidInputError, match=r"must hold the group of each text\. Got None"):
        predictor.calibrate(rows, labels)
    with pytest.raises(InvalidInputError, match=r"each of 4 texts\. Got 2"):
        predictor.calibrate(rows, labels, ["a", "b"])
    for missing in (None, float("nan"), ""):
        with pytest.raises(InvalidInputError, match="for text 2 instead; give such texts a group of their own"):
            predictor.calibrate(rows, labels, ["a", "b", missing, "a"])
    predictor.calibrate(rows, labels, ["a", "b", "b", "a"])
    with pytest.raises(InvalidInputError, match=r"must hold groups with calibration texts: a, b\. Got 'c' for text 0"):
        predictor.predict(rows[:1], groups=["c"])
    with pytest.raises(InvalidInputError, match="'groups' parameter of predict is for predictors with a taxonomy"):
        ConformalLabelSets().calibrate(rows, labels).predict(rows, groups=["a"] * 4)
    with pytest.raises(InvalidInputError, match="'taxonomy' parameter of ConformalLabelSets must be"):
        ConformalLabelSets(taxonomy="group")
    with pytest.raises(InvalidInputError, match="twice"):
        ByGroup() * ByGroup()
    for edges in ((), (0, 1), (2, 2), (1.5,), "12"):
        with pytest.raises(InvalidInputError, match="'edges' parameter of ByCardinality"):
            ByCardinality(edges)
    with pytest.raises(InvalidInputError, match=r"must know the training texts of 2 labels\. Got 3"):
        ConformalLabelSets(taxonomy=ByRarity([1, 2, 3], (2,))).calibrate(rows, labels)
    with pytest.raises(InvalidInputError, match="must be 'exact' with a taxonomy by rarity"):
        ConformalLabelSets(search="powerset", taxonomy=ByRarity([1, 2], (2,)))
    with pytest.raises(InvalidInputError, match="min_texts"):
        ByGroup(min_texts=-1)
    with pytest.raises(ArtifactError, match="not the values of a taxonomy"):
        Taxonomy.from_spec({"by_group": True})


def _texts(rng, n_texts, n_labels=4):
    logits = rng.normal(-1.0, 1.5, (n_texts, n_labels))
    labels = rng.random((n_texts, n_labels)) < 1 / (1 + np.exp(-logits))
    labels[~labels.any(axis=1), 0] = True
    return 1 / (1 + np.exp(-logits - rng.normal(0, 0.5, logits.shape))), labels


@pytest.mark.parametrize("taxonomy", [ByGroup(), ByCardinality((1, 2, 3)), ByRarity([400, 20, 5, 90], (50,))], ids=repr)
def test_errors_are_bounded_in_every_category(taxonomy):
    rng = np.random.default_rng(7)
    errors, n_texts = {}, {}
    for _ in range(800):
        probabilities, labels = _texts(rng, 251)
        groups = ["long" if row.sum() > 1 else "short" for row in probabilities] if taxonomy.by_group else None
        before, now = (None, None) if groups is None else (groups[:-1], groups[-1:])
        predictor = ConformalLabelSets(LpNorm(2), n_jobs=1, taxonomy=taxonomy)
        predictor.calibrate(probabilities[:-1], labels[:-1], before)
        missed = predictor.predict_p(probabilities[-1:], labels[-1:], groups=now)[0] <= 0.2
        category = groups[-1] if groups else int(taxonomy.kinds_of(labels[-1:])[0])
        n_texts[category] = n_texts.get(category, 0) + 1
        errors[category] = errors.get(category, 0) + missed
    assert len(n_texts) >= 2
    for category, n in n_texts.items():
        assert errors[category] <= scipy.stats.binom.isf(1e-6, n, 0.2)
        # A category of m texts is cut at k / (m + 1), which is more than 0.2 - 1 / (m + 1).
        assert n < 100 or errors[category] >= scipy.stats.binom.ppf(1e-6, n, 0.15)


def test_without_a_taxonomy_some_kinds_are_missed_too_often():
    rng = np.random.default_rng(8)
    missed = {1: [], 3: []}
    for _ in range(400):
        probabilities, labels = _texts(rng, 201)
        predictor = ConformalLabelSets(LpNorm(2), n_jobs=1).calibrate(probabilities[:-1], labels[:-1])
        size = int(labels[-1].sum())
        if size in missed:
            missed[size].append(predictor.predict_p(probabilities[-1:], labels[-1:])[0] <= 0.2)
    assert np.mean(missed[3]) > 0.25
    assert np.mean(missed[1]) < 0.2


def test_kinds_are_named_and_joined():
    names = [ByCardinality((1, 2, 3)).kind_name(kind) for kind in range(4)]
    assert names == ["0 labels", "1 label", "2 labels", "3 or more labels"]
    assert _joined([2, 30, 3, 4, 50, 1], 10) == [1, 1, 4, 4, 4, 4]
