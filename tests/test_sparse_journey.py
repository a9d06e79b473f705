"""Listed probabilities all the way: what a user is told and shown is what all probabilities would give."""

import dataclasses
import json
import warnings

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings

import cases
import test_sparse
from bundle_cases import corpus
from surelabel import ConformalLabelSets, LogLoss, LpNorm, Mahalanobis, SparseProbabilities
from surelabel.answers import answer_probabilities
from surelabel.evaluation.evaluate import Evaluation, evaluate
from surelabel.exceptions import ArtifactError, InvalidInputError
from surelabel.labels.sparse import stacked
from surelabel.measures.penalised import Penalised
from surelabel.metrics import classification_metrics, same_label_sets
from surelabel.models import TrainingSettings, train_bundle
from surelabel.probabilities_file import PartProbabilities, Probabilities


def _figures(evaluation: Evaluation) -> dict:
    """Return an evaluation without what takes the paper's ball, which sparse texts do not have, and without times."""
    ball = {"mean_radius": None, "median_radius": None, "ball_label_sets": None, "prohibitive": None}
    demand = evaluation.demand and dataclasses.replace(evaluation.demand, exact_seconds=0.0, **ball)
    return dataclasses.replace(evaluation, demand=demand).to_dict()


@pytest.mark.parametrize("measure", [LpNorm(2), LpNorm(np.inf), LogLoss(), test_sparse.MissingIsWorse()], ids=repr)
@settings(max_examples=cases.examples(40))
@given(problem=test_sparse.sparse_problems())
def test_answers_are_the_dense_ones(measure, problem):
    dense, predictor = problem.dense.predictor(measure), problem.predictor(measure)
    for top in (0, 3):
        options = {"significance": problem.dense.level, "top": top, "describe": True}
        with cases.calibration_warnings_ignored():
            expected = answer_probabilities(dense, problem.dense.test, **options)
            assert answer_probabilities(predictor, problem.test, **options) == expected


@pytest.mark.parametrize("measure", [LpNorm(2), LogLoss()], ids=repr)
@settings(max_examples=cases.examples(20))
@given(problem=test_sparse.sparse_problems())
def test_evaluations_are_the_dense_ones(measure, problem):
    dense, predictor = problem.dense.predictor(measure), problem.predictor(measure)
    levels = ["0.1", "0.3", "0.8"]
    known = problem.dense.test_labels
    with cases.calibration_warnings_ignored():
        expected = evaluate(dense, problem.dense.test, known, levels=levels)
        found = evaluate(predictor, problem.test, scipy.sparse.csr_array(known), levels=levels)
    expected, found = _figures(expected), _figures(found)
    for name in ("s", "of"):  # sums of floats in another order
        assert list(found.pop(name).values()) == pytest.approx(list(expected.pop(name).values()), rel=1e-12)
    assert found == expected


def test_metrics_of_sparse_label_sets_are_the_dense_ones():
    rng = np.random.default_rng(0)
    for share in (0.0, 0.05, 0.5):
        true, given_labels = rng.random((2, 60, 9)) < share
        sparse = scipy.sparse.csr_array(true), scipy.sparse.csr_array(given_labels)
        assert classification_metrics(*sparse) == classification_metrics(true, given_labels)
        assert same_label_sets(*sparse).tolist() == (true == given_labels).all(axis=1).tolist()
    with pytest.raises(InvalidInputError, match="shape"):
        classification_metrics(scipy.sparse.csr_array(true), scipy.sparse.csr_array(given_labels[:, :5]))


def _many(n_texts: int, n_labels: int, n_listed: int, seed: int) -> tuple[SparseProbabilities, scipy.sparse.csr_array]:
    """Return texts that list a few of very many labels; every tenth has a label that it does not list."""
    rng = np.random.default_rng(seed)
    columns = np.array([np.sort(rng.choice(n_labels - 1, n_listed, replace=False)) for _ in range(n_texts)])
    values = np.sort(rng.beta(0.1, 1.0, (n_texts, n_listed)), axis=1)
    starts = np.arange(n_texts + 1) * n_listed
    true = rng.random(values.shape) < values
    true[:, -1] = True
    labels = scipy.sparse.lil_array((n_texts, n_labels), dtype=bool)
    for row in range(n_texts):
        labels[row, columns[row, true[row]]] = True
        labels[row, n_labels - 1] = row % 10 == 0
    matrix = scipy.sparse.csr_array((values.ravel(), columns.ravel(), starts), shape=(n_texts, n_labels))
    return SparseProbabilities(matrix), labels.tocsr()


@pytest.fixture
def nothing_dense(monkeypatch):
    """Let every attempt to make a dense array of a sparse one fail."""

    def refuse(*arguments, **options):
        raise AssertionError("a dense array of all texts and all labels was asked for")

    monkeypatch.setattr(SparseProbabilities, "toarray", refuse)
    for kind in ("csr_array", "csc_array", "coo_array", "csr_matrix"):
        monkeypatch.setattr(getattr(scipy.sparse, kind), "toarray", refuse)
        monkeypatch.setattr(getattr(scipy.sparse, kind), "todense", refuse)


@pytest.mark.usefixtures("nothing_dense")
def test_possible_labels_that_are_too_many_are_counted_not_named():
    n_labels = 50_000
    predictor = ConformalLabelSets(LogLoss(), max_labels=4).calibrate(*_many(80, n_labels, 6, seed=1))
    test = _many(5, n_labels, 6, seed=2)[0]
    for answer in answer_probabilities(predictor, test, significance="0.05", top=2, describe=True):
        assert answer.size > n_labels
        assert answer.n_more_open == n_labels - 6
        assert len(answer.open) <= 6
        assert answer.description is None
        assert len(answer.top) == 2
    for answer in answer_probabilities(predictor, test, significance="0.5"):
        assert answer.n_more_open == 0


@pytest.mark.usefixtures("nothing_dense")
def test_an_evaluation_of_very_many_labels_makes_nothing_dense():
    n_labels = 100_000
    predictor = ConformalLabelSets(LogLoss(), max_labels=4).calibrate(*_many(200, n_labels, 6, seed=1))
    found = evaluate(predictor, *_many(100, n_labels, 6, seed=2), levels=["0.05", "0.2", "0.5"])
    assert (found.n_texts, found.n_labels) == (100, n_labels)
    assert found.at("0.05").sizes.mean > n_labels
    assert found.demand.ball_label_sets is None
    assert found.of.mean[0] <= found.s.mean[1]
    assert Evaluation.from_dict(json.loads(json.dumps(found.to_dict()))).to_dict() == found.to_dict()


def test_probabilities_that_are_likely_cannot_be_left_out():
    test = SparseProbabilities(scipy.sparse.csr_array([[0.9, 0.0], [0.4, 0.0]]), unlisted=0.5)
    with pytest.raises(InvalidInputError, match=r"below 0\.5"):
        test.at_least(0.5)
    assert test.at_least(0.6).toarray().tolist() == [[True, False], [False, False]]


def test_batches_are_put_together():
    whole, _ = _many(7, 40, 3, seed=0)
    joined = stacked([whole[:2], whole[2:3], whole[3:3], whole[3:]])
    assert joined.toarray().tolist() == whole.toarray().tolist()
    assert stacked([np.zeros((1, 2)), np.ones((2, 2))]).tolist() == [[0, 0], [1, 1], [1, 1]]
    some = np.array([5, 0])
    assert whole[some].toarray().tolist() == whole.toarray()[some].tolist()
    assert whole.sum_by_label() == pytest.approx(whole.toarray().sum(axis=0))
    other = SparseProbabilities(whole.matrix, unlisted=0.25)
    assert other.sum() == pytest.approx(other.toarray().sum())


def test_sparse_parts_are_kept_in_a_file(tmp_path):
    probabilities, labels = _many(30, 5_000, 4, seed=3)
    part = PartProbabilities(probabilities, labels, tuple(map(str, range(30))))
    names = tuple(f"subject {k}" for k in range(5_000))
    kept = Probabilities({"calibration": part, "test": part}, names, 4, {"kind": "linear"})
    path = tmp_path / "probabilities.npz"
    kept.save(path)
    assert path.stat().st_size < 100_000
    found = Probabilities.load(path)
    again = found.parts["test"]
    assert again.ids == part.ids
    assert (again.probabilities.matrix != probabilities.matrix).nnz == 0
    assert (again.labels != labels).nnz == 0
    one, other = found.redivided(seed=1)
    assert len(one) == len(other) == 30
    order = np.random.default_rng(1).permutation(60)
    assert one.ids == tuple(str(i % 30) for i in order[:30])
    assert one.probabilities.toarray().tolist() == probabilities.toarray()[order[:30] % 30].tolist()
    assert one.labels.toarray().tolist() == labels.toarray()[order[:30] % 30].tolist()
    with np.load(path) as arrays:
        damaged = dict(arrays)
    damaged["test.listed"] = damaged["test.listed"] + 5_000
    np.savez_compressed(path, **damaged)
    with pytest.raises(ArtifactError):
        Probabilities.load(path)


@pytest.fixture(scope="module")
def both_bundles(tmp_path_factory):
    """Return a bundle of all probabilities, and one that lists them all, with reports."""
    folder = tmp_path_factory.mktemp("bundles")
    made = []
    for listed in ("all", 8):
        # Few words, so that some labels stay open.
        settings_ = TrainingSettings(
            options={"max_features": 40}, compared={"L2": LpNorm(2)}, listed=listed, name="same"
        )
        made.append(train_bundle(corpus(), settings_, folder / str(listed)))
    return made


def test_a_bundle_that_lists_all_labels_is_the_dense_one(both_bundles):
    dense, sparse = both_bundles
    assert (dense.info.listed, sparse.info.listed) == (None, 8)
    texts = corpus().part("test").texts
    assert isinstance(sparse.predict_proba(texts), SparseProbabilities)
    assert sparse.predict_proba(texts).toarray().tolist() == dense.predict_proba(texts).tolist()
    assert sparse.predictor.calibration_.totals.tolist() == dense.predictor.calibration_.totals.tolist()
    for name, evaluation in dense.evaluation.items():
        assert _figures(sparse.evaluation[name]) == _figures(evaluation)
    for level in ("0.02", "0.05", "0.3"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            options = {"significance": level, "top": 4, "describe": True}
            assert sparse.answers(texts, **options) == dense.answers(texts, **options)
    known = corpus().part("test").label_sets
    assert sparse.predict_p(texts, known).tolist() == dense.predict_p(texts, known).tolist()
    assert sparse.predict(texts).label_sets == dense.predict(texts).label_sets
    assert sparse.answers([], significance="0.1") == dense.answers([], significance="0.1") == []
    assert sparse.info.examples == dense.info.examples


def test_files_of_a_bundle_that_lists_all_labels_are_those_of_the_dense_one(both_bundles, tmp_path):
    from surelabel.models import load_bundle
    from surelabel.predicting import AnswerSettings, TextList, predict_file

    dense, sparse = both_bundles
    source = TextList.of_part(corpus(), corpus().part("test"))
    loaded = load_bundle(sparse.save(tmp_path / "model"))
    assert loaded.info == sparse.info
    for suffix in ("jsonl", "csv", "parquet"):
        files = []
        for name, bundle in (("dense", dense), ("sparse", loaded)):
            target = tmp_path / f"{name}.{suffix}"
            predict_file(bundle, source, target, AnswerSettings(batch_size=7))
            files.append(target.read_bytes())
        assert files[0] == files[1]


def test_the_report_is_that_of_the_dense_one(both_bundles):
    dense, sparse = (bundle.report.decode() for bundle in both_bundles)
    # "details" has times, settings, and the load of the paper's ball.
    for name in ("guarantee", "missed", "labels"):
        told = [report.partition(f'<h2 id="{name}"')[2].partition("<h2")[0] for report in (dense, sparse)]
        assert len(told[0]) > 500
        assert told[0] == told[1]


def test_what_needs_all_probabilities_is_refused_before_training():
    from surelabel import LabelConstraints

    rules = LabelConstraints(exclusions=[("trade", "oil")])
    for given_settings in (
        {"measure": Mahalanobis()},
        {"measure": Penalised(LogLoss())},
        {"recalibrate": True},
        {"constraints": rules},
    ):
        with pytest.raises(InvalidInputError, match="--listed all"):
            train_bundle(corpus(), TrainingSettings(listed=3, **given_settings))
    for wrong in (0, -1, True, "some", 2.5):
        with pytest.raises(InvalidInputError, match="'listed' setting"):
            train_bundle(corpus(), TrainingSettings(listed=wrong))
