"""Recalibration: what is chosen, that it rises, files; in the meta-estimator the guarantee stays."""

import json

import numpy as np
import pytest
from sklearn.datasets import make_multilabel_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB

from surelabel import ConformalMultilabelClassifier, Recalibration
from surelabel.exceptions import ArtifactError, InvalidInputError
from surelabel.recalibration import METHODS


def odd(truth):
    """A distortion that no logistic curve undoes."""
    return np.where(truth < 0.5, 0.05 + 0.1 * truth, 0.6 + 0.3 * truth)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    truth = rng.random((3000, 4))
    labels = rng.random(truth.shape) < truth
    sure = truth**3 / (truth**3 + (1 - truth) ** 3)
    given = np.column_stack([truth[:, 0], sure[:, 1], odd(truth[:, 2]), truth[:, 3]])
    labels[:, 3] = False
    labels[:19, 3] = True
    return given, labels, truth


@pytest.fixture(scope="module")
def recalibration(data):
    return Recalibration.fit(data[0][:1500], data[1][:1500])


def test_each_label_gets_what_it_needs(data, recalibration):
    assert recalibration.methods[1:] == ("platt", "isotonic", "none")
    assert recalibration.n_labels == 4
    given, _, truth = data
    corrected = recalibration.transform(given)
    before = np.abs(given - truth)[1500:].mean(axis=0)
    after = np.abs(corrected - truth)[1500:].mean(axis=0)
    assert after[0] < 0.03
    assert after[1] < 0.25 * before[1]
    assert after[2] < 0.25 * before[2]
    assert np.array_equal(corrected[:, 3], given[:, 3])


def test_log_loss_falls_on_other_texts(data, recalibration):
    given, labels, _ = data

    def loss(probabilities):
        clipped = np.clip(probabilities[1500:, 1:3], 1e-6, 1 - 1e-6)
        known = labels[1500:, 1:3]
        return -np.where(known, np.log(clipped), np.log1p(-clipped)).mean()

    assert loss(recalibration.transform(given)) < loss(given) - 0.02


def test_curves_rise_and_stay_within_probabilities(recalibration):
    grid = np.tile(np.linspace(0, 1, 1001)[:, None], (1, 4))
    corrected = recalibration.transform(grid)
    assert (np.diff(corrected, axis=0) >= 0).all()
    assert corrected.min() >= 0
    assert corrected.max() <= 1


def test_fitting_twice_gives_the_same_and_inputs_are_left_alone(data, recalibration):
    before = data[0].copy()
    again = Recalibration.fit(data[0][:1500], data[1][:1500])
    assert np.array_equal(again.transform(data[0]), recalibration.transform(data[0]))
    assert np.array_equal(data[0], before)


def test_probabilities_that_point_the_wrong_way_are_never_turned_round():
    rng = np.random.default_rng(1)
    truth = rng.random((600, 1))
    wrong = 1 - truth
    recalibration = Recalibration.fit(wrong, rng.random((600, 1)) < truth)
    assert (np.diff(recalibration.transform(np.linspace(0, 1, 50)[:, None]), axis=0) >= 0).all()


def test_files_bring_back_the_same(data, recalibration, tmp_path):
    path = tmp_path / "recalibration.npz"
    recalibration.save(path)
    again = Recalibration.load(path)
    assert again.methods == recalibration.methods
    assert np.array_equal(again.transform(data[0]), recalibration.transform(data[0]))
    assert repr(again).startswith("<Recalibration of 4 labels: ")
    from_arrays = Recalibration.from_arrays(recalibration.to_arrays())
    assert np.array_equal(from_arrays.transform(data[0]), recalibration.transform(data[0]))


@pytest.mark.parametrize(
    "damage",
    [
        {"methods": np.array([0, 9, 2, 0])},
        {"methods": np.array([0.0, 1.0, 2.0, 0.0])},
        {"lengths": np.zeros((4, 2), dtype=np.int64)},
        {"values": np.full(3, np.nan)},
        {"header": np.array(json.dumps({"format": "surelabel-recalibration", "version": 9}))},
        {"header": np.array("[]")},
        {"header": np.array("[" * 100_000)},
        {"unknown": np.zeros(3)},
        {"../unknown": np.zeros(3)},
    ],
)
def test_damaged_files_are_refused(recalibration, tmp_path, damage):
    header = np.array(json.dumps({"format": "surelabel-recalibration", "version": 1}))
    path = tmp_path / "damaged.npz"
    np.savez(path, **{"header": header, **recalibration.to_arrays(), **damage})
    with pytest.raises(ArtifactError, match="recalibration"):
        Recalibration.load(path)
    path.write_bytes(b"no archive")
    with pytest.raises(ArtifactError, match="damaged"):
        Recalibration.load(path)


def _arrays(methods, lengths, values):
    return {"methods": np.array(methods), "lengths": np.array(lengths), "values": np.array(values, dtype=np.float64)}


PLATT = _arrays([1], [[2, 0]], [2.0, 0.5])
ISOTONIC = _arrays([2], [[3, 3]], [0.1, 0.5, 0.9, 0.0, 0.5, 1.0])


@pytest.mark.parametrize(
    "arrays",
    [
        {**PLATT, "values": np.array([-2.0, 0.5])},  # falls
        {**PLATT, "values": np.array([0.0, 0.5])},
        {**PLATT, "values": np.array([np.nan, 0.5])},
        {**PLATT, "values": np.array([2.0, np.inf])},
        {**PLATT, "values": np.array([[2.0, 0.5]])},
        {**PLATT, "values": np.array([2, 1])},
        {**PLATT, "methods": np.array([], dtype=int), "lengths": np.empty((0, 2), dtype=int), "values": np.empty(0)},
        {**PLATT, "methods": np.array([[1]])},
        {**PLATT, "methods": np.array([-1])},
        {**PLATT, "lengths": np.array([[3, -1]])},
        {**PLATT, "lengths": np.array([2, 0])},
        # Sums to 2 where whole numbers wrap round at 2^64.
        _arrays([0, 0, 0], [[2**62, 2**62], [2**62, 2**62], [2, 0]], [2.0, 0.5]),
        {**ISOTONIC, "values": np.array([0.1, 0.9, 0.5, 0.0, 0.5, 1.0])},  # places not in order
        {**ISOTONIC, "values": np.array([0.1, 0.1, 0.9, 0.0, 0.5, 1.0])},
        {**ISOTONIC, "values": np.array([0.1, 0.5, 0.9, 0.5, 0.0, 1.0])},  # falls
        {**ISOTONIC, "values": np.array([0.1, 0.5, 0.9, -0.1, 0.5, 1.0])},  # no probabilities
        {**ISOTONIC, "values": np.array([0.1, 0.5, 0.9, 0.0, 0.5, 1.1])},
        {**ISOTONIC, "lengths": np.array([[2, 4]])},
        {key: value for key, value in ISOTONIC.items() if key != "lengths"},
    ],
)
def test_arrays_that_no_fit_makes_are_refused(arrays):
    with pytest.raises(ArtifactError, match="not the arrays of a recalibration"):
        Recalibration.from_arrays(arrays)


def test_arrays_that_a_fit_makes_are_taken():
    assert Recalibration.from_arrays(PLATT).methods == ("platt",)
    assert Recalibration.from_arrays(ISOTONIC).transform([[0.1], [1.0]]).ravel().tolist() == [0.0, 1.0]


def test_a_file_with_objects_is_refused(tmp_path):
    path = tmp_path / "objects.npz"
    np.savez(path, header=np.array({"format": "surelabel-recalibration"}, dtype=object))
    with pytest.raises(ArtifactError):
        Recalibration.load(path)


def test_bad_input_is_said(recalibration):
    with pytest.raises(InvalidInputError, match="min_texts"):
        Recalibration.fit([[0.5]], [[1]], min_texts=3)
    with pytest.raises(InvalidInputError, match="n_folds"):
        Recalibration.fit([[0.5]], [[1]], n_folds=1)
    with pytest.raises(InvalidInputError, match="4 labels"):
        recalibration.transform([[0.5]])
    assert METHODS == ("none", "platt", "isotonic")


@pytest.fixture(scope="module")
def texts():
    return make_multilabel_classification(2400, n_features=12, n_classes=5, allow_unlabeled=False, random_state=0)


def test_the_meta_estimator_holds_out_texts_for_it(texts):
    X, Y = texts
    seen = []

    class Watching(GaussianNB):
        def fit(self, X, y):
            seen.append(len(X))
            return super().fit(X, y)

    model = ConformalMultilabelClassifier(
        OneVsRestClassifier(Watching()), calibration_size=0.25, recalibrate=0.25, random_state=0
    )
    model.fit(X[:2000], Y[:2000])
    assert set(seen) == {1000}
    assert model.predictor_.calibration_.n_texts == 500
    assert set(model.recalibration_.methods) != {"none"}
    raw = model.estimator_.predict_proba(X[2000:])
    assert np.array_equal(model.predict_proba(X[2000:]), model.recalibration_.transform(raw))
    error = 1 - model.predict_set(X[2000:], significance=0.1).contains(Y[2000:]).mean()
    assert error < 0.16
    plain = ConformalMultilabelClassifier(OneVsRestClassifier(GaussianNB()), calibration_size=0.25, random_state=0)
    plain.fit(X[:2000], Y[:2000])
    assert plain.recalibration_ is None


def test_the_meta_estimator_takes_a_fitted_one(texts):
    X, Y = texts
    estimator = OneVsRestClassifier(LogisticRegression()).fit(X[:800], Y[:800])
    recalibration = Recalibration.fit(estimator.predict_proba(X[800:1400]), Y[800:1400])
    frozen = FrozenEstimator(estimator)
    model = ConformalMultilabelClassifier(frozen, recalibrate=recalibration).calibrate(X[1400:2000], Y[1400:2000])
    expected = recalibration.transform(estimator.predict_proba(X[2000:]))
    assert np.array_equal(model.predict_proba(X[2000:]), expected)
    with pytest.raises(InvalidInputError, match="fitted Recalibration"):
        ConformalMultilabelClassifier(frozen, recalibrate=0.2).calibrate(X[1400:2000], Y[1400:2000])
