"""Sparse probabilities: the dense answers, to the last bit, whatever is listed and whatever is tied."""

import dataclasses
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import cases
from surelabel import ConformalLabelSets, LabelConstraints, LpNorm, Mahalanobis, SparseProbabilities
from surelabel.calibration import totals_of
from surelabel.exceptions import InvalidInputError, SearchLimitError
from surelabel.labels.sparse import stacked
from surelabel.metrics import error_rates, of_criterion, s_criterion, size_curve


@dataclasses.dataclass(frozen=True)
class MissingIsWorse:
    """A user's own measure, the same for every label; at 1/3 absent and present cost the same."""

    aggregate: str = "sum"

    def costs(self, probabilities: Any) -> Any:
        return 2.0 * probabilities, 1.0 - probabilities

    def score(self, totals: Any) -> Any:
        return totals


MEASURES = [*cases.MEASURES, MissingIsWorse("sum"), MissingIsWorse("max")]
SHARED = (0.0, 0.1, 0.25, 1e-6, 5e-324, 0.3, 1 / 3)


@dataclasses.dataclass(frozen=True)
class SparseProblem:
    """A dense problem, and the same as sparse matrices."""

    dense: cases.Problem
    calibration: SparseProbabilities
    test: SparseProbabilities

    def predictor(self, measure: Any) -> ConformalLabelSets:
        with cases.calibration_warnings_ignored():
            return ConformalLabelSets(measure, self.dense.min_labels, self.dense.max_labels).calibrate(
                self.calibration, scipy.sparse.csr_array(self.dense.calibration_labels)
            )

    def predict_set(self, predictor: ConformalLabelSets, **parameters: Any) -> Any:
        with cases.calibration_warnings_ignored():
            return predictor.predict_set(self.test, significance=self.dense.level, **parameters)


def _sparse(draw: Any, dense: Any, shared: float) -> SparseProbabilities:
    """List every label whose probability is not the shared one, and some that have it all the same."""
    listed = (dense != shared) | np.array(
        draw(
            st.lists(
                st.lists(st.booleans(), min_size=dense.shape[1], max_size=dense.shape[1]),
                min_size=len(dense),
                max_size=len(dense),
            )
        )
    )
    rows, columns = np.nonzero(listed)
    return SparseProbabilities(scipy.sparse.csr_array((dense[rows, columns], (rows, columns)), dense.shape), shared)


@st.composite
def sparse_problems(draw: Any, max_labels: int = 7) -> SparseProblem:
    """Problems in which several labels have the shared probability, some of them listed."""
    problem = draw(cases.problems(max_labels=max_labels))
    shared = draw(st.sampled_from(SHARED))
    shape = (len(problem.calibration) + len(problem.test), problem.n_labels)
    keep = np.array(draw(st.lists(st.integers(0, 2), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1])))
    together = np.where(keep.reshape(shape) == 0, np.vstack([problem.calibration, problem.test]), shared)
    n = len(problem.calibration)
    dense = dataclasses.replace(problem, calibration=together[:n], test=together[n:])
    return SparseProblem(dense, _sparse(draw, dense.calibration, shared), _sparse(draw, dense.test, shared))


@pytest.mark.parametrize("measure", MEASURES, ids=repr)
@settings(max_examples=cases.examples(25))
@given(problem=sparse_problems())
def test_prediction_sets_are_the_dense_ones(measure, problem):
    dense, predictor = problem.dense.predictor(measure), problem.predictor(measure)
    assert predictor.calibration_.totals.tolist() == dense.calibration_.totals.tolist()
    expected_sets, sets = problem.dense.predict_set(dense), problem.predict_set(predictor)
    assert sets.sizes().tolist() == expected_sets.sizes().tolist()
    for one, expected in zip(sets, expected_sets, strict=True):
        assert one.size == expected.size
        assert bool(one) == bool(expected)
        assert one.top(10**6) == expected.top(10**6)
        assert one.top(2) == expected.top(2)
        assert sets.top(3)[one._row] == expected.top(3)
        assert [s for s in one] == [s for s in expected]  # noqa: C416 (list() would ask for the length first)
        assert one.to_array().toarray().tolist() == expected.to_array().tolist()
        assert one.certain == expected.certain
        assert one.possible == expected.possible
        assert one.excluded == expected.excluded
        assert one.inclusion().tolist() == expected.inclusion().tolist()
        assert one.describe() == expected.describe()
    for found, wanted in zip(sets.certain_and_possible(), expected_sets.certain_and_possible(), strict=True):
        assert found.toarray().tolist() == wanted.tolist()
    labels = problem.dense.test_labels
    assert sets.contains(scipy.sparse.csr_array(labels)).tolist() == expected_sets.contains(labels).tolist()
    for one, row in zip(sets, labels, strict=True):
        assert (cases.as_set(row) in one) == (cases.as_set(row) in list(one.label_sets))


@pytest.mark.parametrize("measure", MEASURES, ids=repr)
@settings(max_examples=cases.examples(25))
@given(problem=sparse_problems())
def test_forced_predictions_and_p_values_are_the_dense_ones(measure, problem):
    dense, predictor = problem.dense.predictor(measure), problem.predictor(measure)
    expected, forced = dense.predict(problem.dense.test), predictor.predict(problem.test)
    assert forced.labels.toarray().tolist() == expected.labels.tolist()
    assert forced.label_sets == expected.label_sets
    assert len(forced) == len(expected)
    assert forced.confidence.tolist() == expected.confidence.tolist()
    assert forced.credibility.tolist() == expected.credibility.tolist()
    labels = problem.dense.test_labels
    wanted = dense.predict_p(problem.dense.test, labels).tolist()
    named = [cases.as_set(row) for row in labels]
    for form in (labels, scipy.sparse.coo_array(labels), named):
        assert predictor.predict_p(problem.test, form).tolist() == wanted
    seeds = [np.random.default_rng(5) for _ in range(4)]
    smoothed = predictor.predict_p(problem.test, labels, smoothing=seeds[0]).tolist()
    assert smoothed == dense.predict_p(problem.dense.test, labels, smoothing=seeds[1]).tolist()
    sets = problem.predict_set(predictor, smoothing=seeds[2])
    assert [one.top(9) for one in sets] == [one.top(9) for one in problem.dense.predict_set(dense, smoothing=seeds[3])]


@pytest.mark.parametrize("measure", MEASURES, ids=repr)
@settings(max_examples=cases.examples(25))
@given(problem=sparse_problems())
def test_criteria_and_curves_are_the_dense_ones(measure, problem):
    dense, predictor = problem.dense.predictor(measure), problem.predictor(measure)
    labels = problem.dense.test_labels
    for expected, found in (
        (s_criterion(dense, problem.dense.test), s_criterion(predictor, problem.test)),
        (of_criterion(dense, problem.dense.test, labels), of_criterion(predictor, problem.test, labels)),
    ):
        assert found.floor == expected.floor
        assert found.excess_lower.tolist() == expected.excess_lower.tolist()
        assert found.excess_upper.tolist() == expected.excess_upper.tolist()
    levels = [Fraction(k, 20) for k in range(1, 20, 3)]
    wanted = error_rates(dense, problem.dense.test, labels, levels).tolist()
    assert error_rates(predictor, problem.test, labels, levels).tolist() == wanted
    assert size_curve(predictor, problem.test, levels) == size_curve(dense, problem.dense.test, levels)


MANY = 1_000_000


def _one_text(listed: dict[int, float], n_labels: int = MANY, unlisted: float = 0.0) -> SparseProbabilities:
    labels = sorted(listed)
    values = [listed[k] for k in labels]
    return SparseProbabilities(scipy.sparse.csr_array((values, labels, [0, len(labels)]), (1, n_labels)), unlisted)


def _calibrated(totals: list[float], **parameters: Any) -> ConformalLabelSets:
    """A predictor with L1 totals as given: an absent label of that probability, and whole ones for the rest."""
    data, columns, ends = [], [], [0]
    for total in totals:
        data += [1.0] * int(total) + [total % 1.0]
        columns += range(int(total) + 1)
        ends.append(len(data))
    probabilities = scipy.sparse.csr_array((data, columns, ends), (len(totals), MANY))
    with cases.calibration_warnings_ignored():
        predictor = ConformalLabelSets(LpNorm(1), **parameters)
        return predictor.calibrate(probabilities, scipy.sparse.csr_array(probabilities.shape, dtype=bool))


def test_a_million_labels_by_hand():
    # L1: listed 0.75 and 0.5; every other label costs 1 present. Threshold 1.75.
    predictor = _calibrated([0.25, 0.75, 1.25, 1.75], min_labels=0)
    assert predictor.calibration_.totals.tolist() == [0.25, 0.75, 1.25, 1.75]
    text = _one_text({7: 0.75, 900_000: 0.5})
    with cases.calibration_warnings_ignored():
        one = predictor.predict_set(text, significance=0.2)[0]
    # Totals: {7} and both 0.75, none and {900000} 1.25; one other label fits only with the first two.
    assert one.size == 4 + 2 * (MANY - 2)
    best = one.top(6)
    assert best[:2] == [(frozenset({7}), 0.8), (frozenset({7, 900_000}), 0.8)]
    assert best[2:4] == [(frozenset(), 0.6), (frozenset({900_000}), 0.6)]
    # Of label-sets with equal totals the first 0/1 row comes first: the last label is the first to be there.
    assert best[4:] == [(frozenset({7, MANY - 1}), 0.4), (frozenset({7, MANY - 2}), 0.4)]
    assert frozenset({7, 12}) in one
    assert frozenset({12}) not in one
    assert frozenset({7, 12, 13}) not in one
    assert (one.certain, len(one.possible), len(one.excluded)) == (frozenset(), MANY, 0)
    labels, shares, unlisted = one.listed_inclusion_bounds()
    assert labels.tolist() == [7, 900_000]
    assert shares.tolist() == [[(2 + 2 * (MANY - 2)) / one.size] * 2, [MANY / one.size] * 2]
    assert unlisted == (2 / one.size, 2 / one.size)
    assert one.inclusion()[[7, 900_000, 5]].tolist() == [*shares[:, 0].tolist(), unlisted[0]]
    narrow = predictor.predict_set(text, significance=0.5)[0]
    assert narrow.size == 4
    assert (narrow.certain, narrow.possible) == (frozenset(), frozenset({7, 900_000}))
    assert len(narrow.excluded) == MANY - 2
    assert 8 in narrow.excluded
    assert 7 not in narrow.excluded
    assert MANY not in narrow.excluded
    assert "wheat" not in narrow.excluded
    assert repr(narrow.excluded) == "<999,998 labels: 0, 1, 2, 3, 4, ...>"


def test_forced_prediction_takes_the_last_unlisted_labels_where_limits_ask_for_more():
    predictor = _calibrated([0.25, 0.75, 1.25, 2.5], min_labels=3)
    forced = predictor.predict(_one_text({7: 0.75, MANY - 1: 0.5}))
    assert forced.label_sets == [frozenset({7, MANY - 2, MANY - 1})]
    # {7, 999999} and any other label cost 0.25 + 0.5 + 1; the second best is another of them.
    assert (forced.credibility[0], forced.confidence[0]) == (0.4, 0.6)


def test_every_label_set_of_a_million_labels_is_a_member_at_a_significance_that_is_too_small():
    predictor = _calibrated([0.25, 0.75], min_labels=1)
    with cases.calibration_warnings_ignored():
        one = predictor.predict_set(_one_text({7: 0.75}), significance=0.01)[0]
    assert one.size == 2**MANY - 1
    assert one.top(2) == [(frozenset({7}), 1.0), (frozenset({7, MANY - 1}), 1 / 3)]


@settings(max_examples=cases.examples(25))
@given(
    n_labels=st.integers(1, 3000),
    unlisted=st.sampled_from((*SHARED, 1e-3, 0.007)),
    seed=st.integers(0, 2**32 - 1),
    measure=st.sampled_from(MEASURES),
)
def test_totals_of_many_labels_are_the_dense_ones(n_labels, unlisted, seed, measure):
    rng = np.random.default_rng(seed)
    listed = rng.random((3, n_labels)) < 0.01
    dense = np.where(listed, rng.random((3, n_labels)), unlisted)
    rows, columns = np.nonzero(listed)
    sparse = SparseProbabilities(scipy.sparse.csr_array((dense[rows, columns], (rows, columns)), dense.shape), unlisted)
    labels = rng.random((3, n_labels)) < rng.choice([0.001, 0.5])
    found = totals_of(measure, sparse, scipy.sparse.csr_array(labels))
    assert found.tolist() == totals_of(measure, dense, labels).tolist()


def test_sizes_past_the_work_limit_are_between_bounds():
    rng = np.random.default_rng(3)
    values = rng.uniform(0.2, 0.8, 30)
    text = _one_text(dict(zip(range(0, 60, 2), values.tolist(), strict=True)), n_labels=400, unlisted=0.05)
    labels = scipy.sparse.csr_array(([True], [[0], [0]]), shape=(1, 400))
    with cases.calibration_warnings_ignored():
        predictor = ConformalLabelSets(LpNorm(2), max_labels=8, work_limit=1000).calibrate(text, labels)
        one = predictor.predict_set(text, significance=0.5)[0]
    lower, upper = one.size_bounds
    assert 0 < lower < upper
    with pytest.raises(SearchLimitError):
        one.size  # noqa: B018
    exact_lower, exact_upper = one.refine(work_limit=2_000_000)
    assert lower <= exact_lower <= exact_upper <= upper


def test_unlisted_labels_that_cost_nothing_are_bounded_not_counted_one_by_one():
    free = ConformalLabelSets(MissingIsWorse(), min_labels=0)
    text = _one_text({3: 0.5}, n_labels=20_000, unlisted=1 / 3)
    with cases.calibration_warnings_ignored():
        one = free.calibrate(text, scipy.sparse.csr_array((1, 20_000), dtype=bool)).predict_set(text, significance=0.5)[
            0
        ]
    lower, upper = one.size_bounds
    assert 0 < lower < upper <= 2**20_000
    with pytest.raises(SearchLimitError, match=r"and 4\.0 × 10\^6020"):
        one.size  # noqa: B018


@pytest.mark.parametrize(
    ("matrix", "unlisted", "message"),
    [
        (np.eye(2), 0.0, "must be a scipy sparse matrix. Got ndarray"),
        (scipy.sparse.eye_array(2), 1.5, "'unlisted' parameter .* in \\[0, 1\\]. Got 1.5"),
        (scipy.sparse.eye_array(2), True, "'unlisted' parameter .* Got True"),
        (scipy.sparse.csr_array([[0.5, 2.0]]), 0.0, "Got 2.0 in row 0, column 1"),
        (scipy.sparse.csr_array([[0.5], [np.nan]]), 0.0, "Got nan in row 1, column 0"),
        (scipy.sparse.csr_array((0, 3)), 0.0, "Got shape \\(0, 3\\)"),
        (scipy.sparse.csr_array([[1j]]), 0.0, "Got values of type complex"),
    ],
)
def test_what_is_not_sparse_probabilities_is_refused(matrix, unlisted, message):
    with pytest.raises(InvalidInputError, match=message):
        SparseProbabilities(matrix, unlisted)


def test_sparse_probabilities_are_immutable_and_sliced():
    probabilities = SparseProbabilities(scipy.sparse.random_array((9, 5), density=0.4, rng=1), 0.01)
    assert repr(probabilities) == "<SparseProbabilities: 9 texts, 5 labels, 18 listed, unlisted=0.01>"
    for part in (slice(2, 5), slice(5, 2), slice(None, None, 2), slice(None, None, -1), slice(-3, None)):
        if len(range(9)[part]):
            assert probabilities[part].toarray().tolist() == probabilities.toarray()[part].tolist()
    assert len(probabilities[5:2]) == 0
    with pytest.raises(AttributeError, match="do not change"):
        probabilities.unlisted = 0.5
    with pytest.raises(ValueError, match="read-only"):
        probabilities.values[0] = 0.5
    with pytest.raises(InvalidInputError, match="sliced by texts"):
        probabilities[3]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (scipy.sparse.csr_array([[1, 0]]), "shape \\(2, 3\\), one row per text. Got shape \\(1, 2\\)"),
        (scipy.sparse.csr_array([[2, 0, 0], [0, 1, 0]]), "of 0 and 1. Got 2"),
        ([{"grain"}, {"corn"}], "names of known labels. Got 'corn' in row 1"),
        (["grain", {"wheat"}], "one collection of label names per text. Got 'grain' in row 0"),
    ],
)
def test_labels_that_do_not_fit_are_refused(labels, message):
    predictor = ConformalLabelSets(label_names=["grain", "oil", "wheat"])
    probabilities = scipy.sparse.csr_array([[0.5, 0.0, 0.1], [0.0, 0.2, 0.9]])
    with pytest.raises(InvalidInputError, match=message):
        predictor.calibrate(probabilities, labels)


def test_named_labels_and_label_views_of_sparse_texts():
    names = [f"subject {k}" for k in range(50)]
    probabilities = scipy.sparse.csr_array(([0.9, 0.2, 0.8], [3, 4, 3], [0, 2, 3]), shape=(2, 50))
    predictor = ConformalLabelSets(label_names=names).calibrate(probabilities, [{"subject 3"}, {"subject 3"}])
    one = predictor.predict_set(probabilities, significance=0.5)[0]
    assert one.top(1) == [(frozenset({"subject 3"}), 2 / 3)]
    assert one.excluded == frozenset(names) - {"subject 3"} - one.possible
    assert hash(one.excluded) == hash(frozenset(one.excluded))
    assert one.excluded & {"subject 3", "subject 9"} == {"subject 9"}
    assert "subject 9" in one.excluded
    assert predictor.predict(probabilities).label_sets == [frozenset({"subject 3"})] * 2


def test_measures_that_tell_labels_apart_and_other_searches_ask_for_dense_probabilities():
    text = scipy.sparse.csr_array([[0.5, 0.0, 0.1]])
    with pytest.raises(InvalidInputError, match="must treat all labels the same"):
        ConformalLabelSets(cases.Weighted()).calibrate(text, [{0}])
    rng = np.random.default_rng(0)
    fitted = Mahalanobis().fit(rng.random((9, 3)), rng.random((9, 3)) < 0.5)
    with pytest.raises(InvalidInputError, match="must treat all labels the same"):
        ConformalLabelSets(fitted).calibrate(text, [{0}])
    with pytest.raises(InvalidInputError, match="no sparse probabilities where label-sets must obey constraints"):
        ConformalLabelSets(constraints=LabelConstraints(implications=[(0, 1)])).calibrate(text, [{0}])
    predictor = ConformalLabelSets(search="powerset").calibrate(text, [{0}])
    with pytest.raises(InvalidInputError, match="must be 'exact' for sparse"):
        predictor.predict_set(text, significance=0.6)
    with pytest.raises(InvalidInputError, match="must be so small"):
        ConformalLabelSets().calibrate(SparseProbabilities(text, 0.75), [{0}])
    with pytest.raises(InvalidInputError, match=r"with 3 labels .* Got 2"):
        predictor.predict(scipy.sparse.csr_array([[0.5, 0.1]]))


def test_a_dense_predictor_answers_sparse_texts_and_a_saved_one_too(tmp_path):
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((40, 12)) < 0.3, rng.random((40, 12)), 0.0)
    labels = rng.random((40, 12)) < dense
    with cases.calibration_warnings_ignored():
        predictor = ConformalLabelSets().calibrate(dense, labels)
    predictor.save(tmp_path / "p.surelabel")
    loaded = ConformalLabelSets.load(tmp_path / "p.surelabel")
    sparse = scipy.sparse.csr_matrix(dense)
    assert loaded.predict_p(sparse, labels).tolist() == predictor.predict_p(dense, labels).tolist()


def test_batches_are_stacked():
    both = SparseProbabilities(scipy.sparse.csr_array([[0.9, 0.0], [0.0, 0.7]]))
    together = stacked([both[1:], both[:1]])
    assert repr(together) == "<SparseProbabilities: 2 texts, 2 labels, 2 listed, unlisted=0>"
    assert together.toarray().tolist() == [[0.0, 0.7], [0.9, 0.0]]
