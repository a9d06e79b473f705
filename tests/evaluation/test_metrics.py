"""Metrics: values by hand, then scikit-learn's and Annif's definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn import metrics as sk

from surelabel.evaluation import metrics
from surelabel.evaluation.label_table import label_table, rank_figures
from surelabel.exceptions import InvalidInputError
from surelabel.labels.shortlists import Shortlists

MATRICES = hnp.array_shapes(min_dims=2, max_dims=2, max_side=6).flatmap(
    lambda shape: st.tuples(hnp.arrays(np.bool_, shape), hnp.arrays(np.bool_, shape))
)


def test_classification_metrics_by_hand():
    found = metrics.classification_metrics([[1, 0, 0], [1, 1, 0]], [[1, 0, 0], [0, 1, 1]])
    assert found.accuracy == 0.5
    assert found.f1_micro == pytest.approx(2 * 2 / (3 + 3))
    # Labels: 2*1/(2+1), 2*1/(1+1), 2*0/(0+1).
    assert found.f1_macro == pytest.approx((2 / 3 + 1 + 0) / 3)
    assert found.hamming_loss == pytest.approx(2 / 6)


def test_unknown_labels_count_in_every_metric():
    true, guessed = [{"oil", "tin"}, {"gold"}], [{"oil"}, {"gold"}]
    found = metrics.classification_metrics(true, guessed, label_names=["oil", "gold"])
    assert found.accuracy == 0.5
    assert found.f1_micro == pytest.approx(2 * 2 / (3 + 2))
    assert found.f1_macro == pytest.approx((1 + 1 + 0) / 3)
    assert found.hamming_loss == pytest.approx(1 / 6)


@settings(max_examples=30, deadline=None)
@given(MATRICES)
def test_classification_metrics_equal_scikit_learn(pair):
    labels, predicted = pair
    found = metrics.classification_metrics(labels, predicted)
    true, guessed = labels.astype(int), predicted.astype(int)
    assert found.accuracy == pytest.approx((labels == predicted).all(axis=1).mean())
    assert found.hamming_loss == pytest.approx((labels != predicted).mean())
    if true.shape[1] > 1:
        assert found.f1_micro == pytest.approx(sk.f1_score(true, guessed, average="micro", zero_division=0))
        assert found.f1_macro == pytest.approx(sk.f1_score(true, guessed, average="macro", zero_division=0))


@settings(max_examples=30, deadline=None)
@given(MATRICES)
def test_rows_and_collections_give_the_same(pair):
    names = [f"label {k}" for k in range(pair[0].shape[1])]
    sets = [[frozenset(names[k] for k in np.flatnonzero(row)) for row in rows] for rows in pair]
    assert metrics.classification_metrics(*sets, label_names=names) == metrics.classification_metrics(*pair)


def test_other_shapes_and_no_texts_are_refused():
    with pytest.raises(InvalidInputError, match="2 labels"):
        metrics.classification_metrics([[1, 0]], [[1, 0, 0]])
    with pytest.raises(InvalidInputError, match="other values"):
        metrics.classification_metrics([[0.5, 0]], [[1, 0]])
    with pytest.raises(InvalidInputError, match="sizes"):
        metrics.size_statistics([])


def test_size_statistics_by_hand():
    found = metrics.size_statistics([0, 1, 1, 4, 14])
    assert (found.mean, found.mean_lower, found.median, found.largest) == (4.0, 4.0, 1.0, 14.0)
    assert (found.empty, found.single) == (0.2, 0.4)
    assert found.quantiles[0.75] == 4.0
    assert metrics.size_statistics([10**30, 10**30]).mean == pytest.approx(1e30)
    assert metrics.size_statistics([10**400]).largest > 1e308
    assert metrics.size_statistics([4, 8], [2, 8]).mean_lower == 5.0


def test_levels_that_a_calibration_is_large_enough_for():
    assert metrics.large_enough(["0.01", "0.05", "0.1"], 19) == ["0.1"]
    assert metrics.large_enough(["0.01", "0.05", "0.1"], 20) == ["0.05", "0.1"]


def test_p_values_on_a_level_are_missed():
    # 1/20 is at the level, not above it, although 0.05 is no double.
    assert metrics.missed_at(np.array([0.0, 1 / 20, 2 / 20, 1.0]), "0.05").tolist() == [True, True, False, False]


def test_label_table_by_hand():
    table = label_table(
        [{"oil"}, {"oil", "gold"}, {"tin"}], [{"oil", "gold"}, {"gold"}, set()], ["oil", "gold", "zinc"]
    )
    by_name = {row.name: row for row in table}
    assert [row.name for row in table] == ["oil", "gold", "zinc", "tin"]
    assert (by_name["oil"].support, by_name["oil"].precision, by_name["oil"].recall) == (2, 1.0, 0.5)
    assert by_name["gold"].f1 == pytest.approx(2 * 0.5 / 1.5)
    assert by_name["zinc"].precision is by_name["zinc"].recall is by_name["zinc"].f1 is None
    assert (by_name["tin"].support, by_name["tin"].precision, by_name["tin"].recall) == (1, None, 0.0)


def test_rank_figures_by_hand():
    probabilities = [[0.9, 0.5, 0.1, 0.0], [0.2, 0.6, 0.0, 0.7]]
    found = rank_figures(probabilities, [{"a", "c"}, {"b"}], ["a", "b", "c", "d"])
    assert found["Precision@1"] == 0.5
    assert found["Precision@3"] == pytest.approx((2 / 3 + 1 / 3) / 2)
    assert found["F1@5"] == pytest.approx((2 * 2 / (2 + 3) + 2 * 1 / (1 + 3)) / 2)
    gain = (1 + 1 / np.log2(4)) / (1 + 1 / np.log2(3))
    assert found["NDCG@10"] == pytest.approx((gain + 1 / np.log2(3)) / 2)


def test_rank_figures_without_labels_or_with_unknown_ones():
    found = rank_figures([[0.9, 0.5], [0.9, 0.0]], [set(), {"a", "unknown"}], ["a", "b"])
    assert found["NDCG@5"] == pytest.approx((1 + 1 / (1 + 1 / np.log2(3))) / 2)
    assert found["Precision@1"] == 0.5
    assert found["F1@5"] == pytest.approx((0 + 2 / 3) / 2)


def _annif(true, scores):
    """Compute figures as `annif eval` does: scikit-learn over samples, and its own nDCG."""
    top = np.zeros_like(scores)
    for row, values in enumerate(scores):
        best = np.argsort(-values, kind="stable")[:5]
        top[row, best] = values[best]

    def dcg(gains, order, limit):
        gains = np.asarray(gains)[order][:limit]
        return (gains / np.log2(np.arange(2, len(gains) + 2))).sum()

    ndcg = []
    for row, values in zip(true, scores, strict=True):
        order = [k for k in np.argsort(-values, kind="stable") if values[k] > 0]
        ideal = dcg(row, np.argsort(-row, kind="stable"), 10)
        ndcg.append(dcg(row, order, 10) / ideal if ideal else 1.0)
    return sk.f1_score(true, top > 0, average="samples", zero_division=0), np.mean(ndcg)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_rank_figures_equal_annif(seed):
    rng = np.random.default_rng(seed)
    scores = rng.permuted(np.linspace(0, 1, 60).reshape(4, 15).clip(0.2) - 0.2, axis=1)
    true = (rng.random((4, 15)) < 0.2).astype(int)
    names = [str(k) for k in range(15)]
    f1, ndcg = _annif(true, scores)
    label_sets = [{names[k] for k in np.flatnonzero(row)} for row in true]
    found = rank_figures(scores, label_sets, names)
    assert found["F1@5"] == pytest.approx(f1)
    assert found["NDCG@10"] == pytest.approx(ndcg)
    listed = rank_figures(Shortlists.from_dense(scores, 12), label_sets, names)
    assert listed == pytest.approx(found)
