"""Descriptions of prediction sets: every statement is true of every member, counts are exact, forms are safe."""

import itertools
import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cases
from surelabel import ConformalLabelSets, LabelConstraints, LogLoss, LpNorm, Mahalanobis, Penalised
from surelabel._core.wording import share_words
from surelabel.sets import prediction_set
from surelabel.sets.descriptions import Members, build_description
from surelabel.sets.descriptions.build import _count_fitting


def fits(description, label_set):
    """Whether a label-set agrees with every statement, read from the description's values alone."""
    if not set(description.certain) <= label_set or set(description.excluded) & label_set:
        return False
    if any(not g.at_least <= len(label_set & set(g.labels)) <= g.at_most for g in description.groups):
        return False
    if description.n_labels_bounds is not None:
        low, high = description.n_labels_bounds
        if not low <= len(label_set) <= high:
            return False
    changes = len(label_set ^ set(description.best_guess))
    return description.most_changes is None or changes <= description.most_changes


def all_label_sets(n_labels):
    return [cases.as_set(row) for row in itertools.product((0, 1), repeat=n_labels)]


@pytest.mark.parametrize("listed", [True, False], ids=["from members", "from costs"])
@given(problem=cases.problems(), measure=st.sampled_from(cases.MEASURES + cases.WEIGHTED))
@settings(max_examples=cases.examples(60))
def test_every_statement_is_true_of_every_member_and_counts_are_exact(listed, problem, measure):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prediction_set, "_MAX_DESCRIBED_BY_LIST", 10**6 if listed else 0)
        for one in problem.predict_set(problem.predictor(measure)):
            description = one.describe()
            members = set(one)
            fitting = {y for y in all_label_sets(problem.n_labels) if fits(description, y)} if members else set()
            assert members <= fitting
            assert description.n_fitting == len(fitting)
            assert description.size_bounds == (len(members), len(members))
            assert description.complete == (members == fitting)
            assert set(description.certain) == one.certain
            assert set(description.excluded) == one.excluded
            grouped = [label for group in description.groups for label in group.labels]
            assert len(grouped) == len(set(grouped))
            if members:
                assert set(grouped) == one.possible - one.certain
                assert frozenset(description.best_guess) == next(iter(one))
            shares = one.inclusion()
            for share in description.shares:
                assert share.lower == share.upper == shares[share.label]
            if listed:
                for group in description.groups:
                    counts = {len(y & set(group.labels)) for y in members}
                    assert (group.at_least, group.at_most) == (min(counts), max(counts))


def interacting(seed):
    """Predictors whose labels interact, calibrated on the same few texts, and new texts."""
    rng = np.random.default_rng(seed)
    probabilities = rng.beta(0.5, 0.5, (44, 5))
    labels = rng.random(probabilities.shape) < probabilities
    together = Penalised(LpNorm(2), hamming=0.2, cardinality=0.1, pairs=0.3, prior=0.1).fit(labels[:20])
    rules = LabelConstraints(implications=[(0, 1)], exclusions=[(2, 3)])
    for measure, constraints in (
        (Mahalanobis().fit(probabilities[:20], labels[:20]), None),
        (together, None),
        (LogLoss(), rules),
    ):
        with cases.calibration_warnings_ignored():
            predictor = ConformalLabelSets(measure, 0, constraints=constraints)
            yield predictor.calibrate(probabilities[20:40], labels[20:40]), probabilities[40:]


@pytest.mark.parametrize("listed", [True, False], ids=["from members", "from costs"])
@pytest.mark.parametrize("seed", range(4))
def test_statements_are_true_where_labels_interact(listed, seed, monkeypatch):
    monkeypatch.setattr(prediction_set, "_MAX_DESCRIBED_BY_LIST", 10**6 if listed else 0)
    for predictor, probabilities in interacting(seed):
        for one in predictor.predict_set(probabilities, significance="0.2"):
            description, members = one.describe(), set(one)
            fitting = {y for y in all_label_sets(5) if fits(description, y)} if members else set()
            assert members <= fitting
            assert description.n_fitting == len(fitting)
            assert description.complete == (members == fitting)


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 4), max_size=3), st.integers(0, 6), st.integers(0, 6))
@settings(max_examples=cases.examples(100))
def test_fitting_label_sets_are_counted_as_by_listing(shapes, a, b):
    groups = [(i, o, min(x, y), max(x, y)) for i, o, x, y in shapes]
    sizes, changes = (min(a, b), max(a, b)), a
    choices = [
        [(i - removed + added, removed + added) for removed in range(i + 1) for added in range(o + 1)
         for _ in range(_comb(i, removed) * _comb(o, added)) if low <= i - removed + added <= high]
        for i, o, low, high in groups
    ]  # fmt: skip
    totals = [tuple(map(sum, zip((0, 0), *choice, strict=True))) for choice in itertools.product(*choices)]
    assert _count_fitting(groups, None, None) == len(totals)
    assert _count_fitting(groups, sizes, None) == sum(sizes[0] <= n <= sizes[1] for n, _ in totals)
    assert _count_fitting(groups, None, changes) == sum(c <= changes for _, c in totals)
    assert _count_fitting(groups, sizes, changes) == sum(sizes[0] <= n <= sizes[1] and c <= changes for n, c in totals)


def _comb(n, k):
    return len(list(itertools.combinations(range(n), k)))


def described(rows, names=None):
    """Describe a listed set; its first row is the best."""
    rows = np.array(rows, dtype=bool)
    reachable = np.column_stack([(~rows).any(axis=0), rows.any(axis=0)])

    def shares(labels):
        return [(float(rows[:, k].mean()),) * 2 for k in labels]

    return build_description(Members(rows), reachable, rows[0], (len(rows),) * 2, shares=shares, names=names)


def singles(n, *before):
    return [[*before, *(i == j for j in range(n))] for i in range(n)]


def test_texts_by_hand():
    assert str(described([[1, 0, 1]])) == "certain: 0, 2; no other label; 1 label-set"
    assert str(described([[1, 0, 1]], ("a", "b", "c"))) == "certain: a, c; no other label; 1 label-set"
    assert str(described([[0, 0]])) == "no label; 1 label-set"
    assert str(described(singles(20))) == "exactly one of 20 labels; 20 label-sets"
    assert str(described([[1, *[0] * 20], *singles(20, 1)])) == "certain: 0; at most one of 20 others; 21 label-sets"
    with_corn = [[1, c, *row] for c in (0, 1) for row in [[0] * 20, *singles(20)]]
    assert str(described(with_corn)) == "certain: 0; open: 1 (50 %); at most one of 20 others; 42 label-sets"
    one_flip = [[1, 1, *[0] * 20], [1, 0, *[0] * 20], [0, 1, *[0] * 20], *singles(20, 1, 1)]
    assert str(described(one_flip)) == (
        "at least one of: 0 (96 %), 1 (96 %); at most one of 20 others; "
        "at most one change to the most plausible (0, 1); 23 label-sets"
    )
    three_of_four = [[1, 1], [1, 0], [0, 1]]
    assert str(described(three_of_four)) == "at least one of: 0 (67 %), 1 (67 %); 3 label-sets"


def test_what_is_not_complete_says_so():
    rows = [[1, 1, 1, 1], [0, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0]]
    description = described(rows)
    assert not description.complete
    assert description.n_fitting > 5
    assert str(description).endswith(f"5 label-sets of {description.n_fitting} that fit this")


def test_an_empty_set():
    predictor = ConformalLabelSets(LpNorm(2), label_names=["a", "b"]).calibrate([[0.9, 0.1]] * 9, [["a"]] * 9)
    description = predictor.predict_set([[0.5, 0.5]], significance=0.5)[0].describe()
    assert str(description) == "no label-set is plausible"
    assert description.complete
    assert description.to_dict()["size_bounds"] == [0, 0]
    ET.fromstring(description.to_svg())


@pytest.fixture(scope="module")
def huge():
    rng = np.random.default_rng(0)
    probabilities = rng.beta(0.3, 0.7, (201, 60))
    labels = rng.random((201, 60)) < probabilities
    predictor = ConformalLabelSets(LpNorm(2), 0).calibrate(probabilities[:200], labels[:200])
    return predictor.predict_set(probabilities[200:], significance=0.05)[0]


def test_a_set_known_by_bounds_is_described_by_bounds(huge):
    assert huge.size_bounds[0] < huge.size_bounds[1]
    description = huge.describe()
    lower, upper = description.size_bounds
    assert huge.size_bounds[0] == lower < upper <= huge.size_bounds[1]
    assert upper <= description.n_fitting
    assert not description.complete
    for label_set, _ in huge.top(200):
        assert fits(description, label_set)
    low, high = huge.inclusion_bounds()
    for share in description.shares:
        assert (share.lower, share.upper) == (low[share.label], high[share.label])


def test_every_candidate_is_described_by_numbers_of_labels():
    predictor = ConformalLabelSets(LogLoss(), 0, 7).calibrate(np.full((3, 50), 0.3), np.zeros((3, 50)))
    with cases.calibration_warnings_ignored():
        description = predictor.predict_set(np.full((1, 50), 0.3), significance=0.1)[0].describe()
    assert description.complete
    assert str(description).startswith("at most seven of 50 labels; ")


def test_values_are_plain_and_the_picture_is_safe():
    names = ("<script>alert(1)</script>", "oil\x00", "a" * 80, "d", "e", "f")
    rows = [[1, a, b, 0, 0, c] for a in (1, 0) for b in (1, 0) for c in (1, 0) if a or b]
    description = described(rows, names)
    values = json.loads(json.dumps(description.to_dict()))
    assert values["certain"] == [names[0]]
    assert values["text"] == str(description)
    assert values["complete"] is True
    svg = description.to_svg(name="set-1")
    root = ET.fromstring(svg)
    assert root.get("role") == "img"
    assert "<script" not in svg
    ids = {element.get("id") for element in root.iter() if element.get("id")}
    assert ids == {"set-1-title", "set-1-desc"} == set(root.get("aria-labelledby").split())
    # One ink for all, so that it is as readable in grey; and it is the page's.
    colours = {element.get(key) for element in root.iter() for key in ("fill", "stroke")} - {None, "none"}
    assert colours == {"currentColor"}
    assert "prefers-color-scheme:dark" in svg


def test_shares_in_words_never_round_to_all_or_nothing():
    assert share_words(0.0, 0.0) == "0 %"
    assert share_words(0.9999, 0.9999) == "over 99 %"
    assert share_words(0.0001, 0.9999) == "under 1 to over 99 %"
