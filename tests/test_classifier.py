"""The meta-estimator: any probabilistic multi-label classifier, fitted or frozen; names, tables, sparse labels."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.pipeline import make_pipeline

from surelabel import ConformalLabelSets, ConformalMultilabelClassifier, LabelConstraints, LogLoss, LpNorm, Mahalanobis
from surelabel.exceptions import CalibrationWarning, InvalidInputError, NotCalibratedError

X, Y = make_multilabel_classification(400, n_features=8, n_classes=4, n_labels=2, allow_unlabeled=False, random_state=0)
NAMES = ("corn", "gold", "oil", "tea")
TRAIN, CALIBRATION, TEST = slice(0, 200), slice(200, 320), slice(320, 400)


def _model(**parameters):
    return ConformalMultilabelClassifier(OneVsRestClassifier(LogisticRegression()), **parameters)


def _fitted(**parameters):
    return _model(**parameters).fit(X[TRAIN], Y[TRAIN]).calibrate(X[CALIBRATION], Y[CALIBRATION])


def test_it_gives_what_the_predictor_gives_for_the_estimators_probabilities():
    model = _fitted()
    inner = OneVsRestClassifier(LogisticRegression()).fit(X[TRAIN], Y[TRAIN])
    assert np.array_equal(model.predict_proba(X[TEST]), inner.predict_proba(X[TEST]))
    predictor = ConformalLabelSets(max_labels=int(Y[TRAIN].sum(axis=1).max()))
    predictor.calibrate(inner.predict_proba(X[CALIBRATION]), Y[CALIBRATION])
    probabilities = inner.predict_proba(X[TEST])
    assert np.array_equal(model.predict(X[TEST]), predictor.predict(probabilities).labels)
    assert model.predict(X[TEST]).dtype == np.int64
    assert model.predict_p(X[TEST], Y[TEST]).tolist() == predictor.predict_p(probabilities, Y[TEST]).tolist()
    sets = model.predict_set(X[TEST], confidence_level=0.9)
    assert sets.sizes().tolist() == predictor.predict_set(probabilities, significance=0.1).sizes().tolist()
    forced = model.predict_forced(X[TEST])
    assert forced.confidence.tolist() == predictor.predict(probabilities).confidence.tolist()
    exact = (model.predict(X[TEST]) == Y[TEST]).all(axis=1)
    assert model.score(X[TEST], Y[TEST]) == exact.mean()
    weights = np.arange(len(exact)) + 1.0
    assert model.score(X[TEST], Y[TEST], weights) == pytest.approx(np.average(exact, weights=weights))


def test_the_largest_training_cardinality_limits_the_candidates():
    few = Y[TRAIN].sum(axis=1) <= 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        model = _model().fit(X[TRAIN][few], Y[TRAIN][few]).calibrate(X[CALIBRATION], Y[CALIBRATION])
        none = _model(max_labels=None).fit(X[TRAIN][few], Y[TRAIN][few]).calibrate(X[CALIBRATION], Y[CALIBRATION])
        three = _model(max_labels=3).fit(X[TRAIN][few], Y[TRAIN][few]).calibrate(X[CALIBRATION], Y[CALIBRATION])
    # Calibration labels have up to four labels, which must not matter.
    assert Y[CALIBRATION].sum(axis=1).max() == 4
    assert [m.predictor_.calibration_.limits for m in (model, none, three)] == [(1, 2), (1, 4), (1, 3)]
    assert model.predict(X[TEST]).sum(axis=1).max() == 2


def test_holding_out_a_part_calibrates_at_once_and_by_the_seed():
    one = _model(calibration_size=0.4, random_state=3).fit(X, Y)
    two = _model(calibration_size=0.4, random_state=3).fit(X, Y)
    other = _model(calibration_size=0.4, random_state=4).fit(X, Y)
    assert one.predictor_.calibration_.n_texts == 160
    assert one.predictor_.calibration_.totals.tolist() == two.predictor_.calibration_.totals.tolist()
    assert one.predictor_.calibration_.totals.tolist() != other.predictor_.calibration_.totals.tolist()
    assert _model(calibration_size=30, random_state=0).fit(X, Y).predictor_.calibration_.n_texts == 30


@pytest.mark.parametrize(
    "estimator",
    [
        OneVsRestClassifier(LogisticRegression()),
        MultiOutputClassifier(LogisticRegression()),
        ClassifierChain(LogisticRegression()),
        RandomForestClassifier(20, random_state=0),
        make_pipeline(OneVsRestClassifier(LogisticRegression())),
    ],
    ids=lambda e: type(e).__name__,
)
def test_every_kind_of_multi_label_classifier_can_be_wrapped(estimator):
    model = ConformalMultilabelClassifier(estimator, LogLoss()).fit(X[TRAIN], Y[TRAIN])
    model.calibrate(X[CALIBRATION], Y[CALIBRATION])
    probabilities = model.predict_proba(X[TEST])
    assert probabilities.shape == (80, 4)
    raw = clone(estimator).fit(X[TRAIN], Y[TRAIN]).predict_proba(X[TEST])
    expected = np.column_stack([part[:, 1] for part in raw]) if isinstance(raw, list) else raw
    assert np.array_equal(probabilities, expected)
    assert model.predict_set(X[TEST], significance=0.2).contains(Y[TEST]).mean() > 0.6


@pytest.mark.parametrize("value", [0, 1])
def test_a_label_with_one_class_only_has_probability_zero_or_one(value):
    constant = Y.copy()
    constant[:, 2] = value
    forest = RandomForestClassifier(10, random_state=0)
    model = ConformalMultilabelClassifier(forest).fit(X[TRAIN], constant[TRAIN])
    assert isinstance(model.estimator_.predict_proba(X[TEST]), list)
    assert set(model.predict_proba(X[TEST])[:, 2]) == {float(value)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        model.calibrate(X[CALIBRATION], constant[CALIBRATION])
    assert (model.predict(X[TEST])[:, 2] == value).all()


@pytest.mark.parametrize("wrapper", [OneVsRestClassifier, MultiOutputClassifier])
def test_one_label_only(wrapper):
    model = ConformalMultilabelClassifier(wrapper(LogisticRegression()), min_labels=0).fit(X[TRAIN], Y[TRAIN, :1])
    model.calibrate(X[CALIBRATION], Y[CALIBRATION, :1])
    assert model.predict_proba(X[TEST]).shape == (80, 1)
    inner = LogisticRegression().fit(X[TRAIN], Y[TRAIN, 0])
    assert model.predict_proba(X[TEST])[:, 0] == pytest.approx(inner.predict_proba(X[TEST])[:, 1])
    assert model.predict(X[TEST]).shape == (80, 1)
    frozen = ConformalMultilabelClassifier(FrozenEstimator(model.estimator_), min_labels=0)
    frozen.calibrate(X[CALIBRATION], Y[CALIBRATION, :1])
    assert frozen.predict_p(X[TEST], Y[TEST, :1]).tolist() == model.predict_p(X[TEST], Y[TEST, :1]).tolist()


def test_a_frozen_estimator_needs_no_fit_and_is_used_as_it_is():
    inner = OneVsRestClassifier(LogisticRegression()).fit(X[TRAIN], Y[TRAIN])
    model = ConformalMultilabelClassifier(FrozenEstimator(inner)).calibrate(X[CALIBRATION], Y[CALIBRATION])
    assert np.array_equal(model.predict_proba(X[TEST]), inner.predict_proba(X[TEST]))
    # Training labels are not at hand: no limit on the number of labels.
    assert model.predictor_.calibration_.limits == (1, 4)
    refitted = ConformalMultilabelClassifier(FrozenEstimator(inner)).fit(X[TEST], Y[TEST])
    assert np.array_equal(refitted.predict_proba(X[TEST]), inner.predict_proba(X[TEST]))
    assert model.n_features_in_ == 8


def test_data_frames_bring_names_in_and_out():
    frame = pd.DataFrame(X, columns=[f"x{k}" for k in range(8)])
    labels = pd.DataFrame(Y, columns=NAMES)
    model = _model().fit(frame[TRAIN], labels[TRAIN]).calibrate(frame[CALIBRATION], labels[CALIBRATION])
    assert model.label_names_ == NAMES
    assert model.feature_names_in_.tolist() == list(frame.columns)
    forced = model.predict_forced(frame[TEST])
    assert all(label_set <= set(NAMES) for label_set in forced.label_sets)
    assert np.array_equal(forced.labels, _fitted().predict(X[TEST]))
    one = model.predict_set(frame[TEST], significance=0.2)[0]
    label_set, p_value = one.top(1)[0]
    assert label_set <= set(NAMES)
    assert label_set in one
    assert model.predict_p(frame[TEST][:1], [label_set]).tolist() == [p_value]
    assert one.certain <= one.possible <= set(NAMES)
    assert model.score(frame[TEST], labels[TEST]) == _fitted().score(X[TEST], Y[TEST])


def test_names_may_come_with_the_calibration_labels():
    inner = OneVsRestClassifier(LogisticRegression()).fit(X[TRAIN], Y[TRAIN])
    model = ConformalMultilabelClassifier(FrozenEstimator(inner))
    model.calibrate(X[CALIBRATION], pd.DataFrame(Y[CALIBRATION], columns=NAMES))
    assert model.predict_forced(X[TEST][:1]).label_sets[0] <= set(NAMES)
    sequences = [[NAMES[k] for k in np.flatnonzero(row)] for row in Y[TEST]]
    assert model.predict_p(X[TEST], sequences).tolist() == model.predict_p(X[TEST], Y[TEST]).tolist()
    assert model.score(X[TEST], sequences) == model.score(X[TEST], Y[TEST])


@pytest.mark.parametrize(
    "form", [scipy.sparse.csr_matrix, scipy.sparse.csc_array, scipy.sparse.lil_matrix, np.asfortranarray]
)
def test_labels_may_be_sparse_and_features_too(form):
    model = _model().fit(scipy.sparse.csr_matrix(X[TRAIN]), form(Y[TRAIN]))
    model.calibrate(scipy.sparse.csr_matrix(X[CALIBRATION]), form(Y[CALIBRATION]))
    expected = _fitted()
    assert np.array_equal(model.predict(X[TEST]), expected.predict(X[TEST]))
    held_out = _model(calibration_size=0.3, random_state=0).fit(scipy.sparse.csr_matrix(X), form(Y))
    assert held_out.predictor_.calibration_.n_texts == 120


def test_texts_in_a_list_or_a_series_can_be_held_out():
    texts = [f"{'corn' if row[0] else ''} {'gold' if row[1] else ''} word{i % 7}" for i, row in enumerate(Y)]
    inner = make_pipeline(TfidfVectorizer(), OneVsRestClassifier(LogisticRegression()))
    model = ConformalMultilabelClassifier(inner, calibration_size=0.3, random_state=0).fit(texts, Y)
    other = ConformalMultilabelClassifier(inner, calibration_size=0.3, random_state=0).fit(pd.Series(texts), Y)
    assert model.predict_p(texts, Y).tolist() == other.predict_p(texts, Y).tolist()


def test_clones_and_parameters():
    model = _model(measure=LpNorm(4), min_labels=0, calibration_size=0.3)
    copy = clone(model)
    assert copy.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert copy.measure == LpNorm(4)
    assert copy.set_params(measure=LogLoss(), estimator__estimator__C=3.0).estimator.estimator.C == 3.0
    fitted = _fitted()
    with pytest.raises(NotFittedError):
        clone(fitted).predict(X)
    predictor = ConformalLabelSets(LpNorm(4), 0, 3, "powerset", ["a", "b"], 99, 2)
    again = clone(predictor)
    assert again.get_params() == predictor.get_params()
    assert again.set_params(measure=LpNorm(1), min_labels=1) is again
    assert (again.measure, again.min_labels, again.max_labels) == (LpNorm(1), 1, 3)
    assert repr(again) == "ConformalLabelSets(LpNorm(p=1), max_labels=3, search='powerset')"


def test_everything_pickles():
    model = _fitted()
    sets = model.predict_set(X[TEST], significance=0.1)
    again = pickle.loads(pickle.dumps(model))
    assert again.predict_p(X[TEST], Y[TEST]).tolist() == model.predict_p(X[TEST], Y[TEST]).tolist()
    assert not again.predictor_.calibration_.totals.flags.writeable
    predictor = pickle.loads(pickle.dumps(model.predictor_))
    probabilities = model.predict_proba(X[TEST])
    assert predictor.predict(probabilities).confidence.tolist() == model.predict_forced(X[TEST]).confidence.tolist()
    with pytest.raises(AttributeError, match="does not change"):
        predictor.measure = LpNorm(8)
    other = pickle.loads(pickle.dumps(sets))
    assert other.sizes().tolist() == sets.sizes().tolist()
    one = pickle.loads(pickle.dumps(sets[3]))
    assert one.top(5) == sets[3].top(5)
    forced = pickle.loads(pickle.dumps(model.predict_forced(X[TEST])))
    assert len(forced) == 80


def test_it_works_inside_model_selection():
    model = _model(calibration_size=0.3, random_state=0)
    assert cross_val_score(model, X, Y, cv=2).shape == (2,)
    search = GridSearchCV(model, {"estimator__estimator__C": [0.1, 1.0]}, cv=2).fit(X, Y)
    assert search.predict(X[TEST]).shape == (80, 4)


def test_nothing_is_predicted_before_fit_and_calibration():
    model = _model()
    with pytest.raises(NotCalibratedError, match=r"not fitted yet\. Call 'fit' before 'calibrate'"):
        model.calibrate(X, Y)
    with pytest.raises(NotCalibratedError, match="not fitted yet"):
        model.predict_proba(X)
    model.fit(X[TRAIN], Y[TRAIN])
    for call in (model.predict, model.predict_forced, lambda x: model.predict_set(x, significance=0.1)):
        with pytest.raises(NotCalibratedError, match="not calibrated yet"):
            call(X)
    with pytest.raises(NotFittedError, match="before 'predict_p'"):
        model.predict_p(X, Y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"estimator": None}, "'estimator' parameter .* 'predict_proba'. Got None"),
        ({"estimator": LinearRegression()}, r"'estimator' parameter .*Got LinearRegression\(\)"),
        ({"measure": "L2"}, "'measure' parameter of fit"),
        ({"min_labels": 3, "max_labels": 2}, "'max_labels' parameter of fit"),
        ({"max_labels": "most"}, "'max_labels' parameter of fit"),
        ({"search": "fast"}, "'search' parameter"),
        ({"n_jobs": 0}, "'n_jobs' parameter"),
    ],
    ids=str,
)
def test_bad_parameters_are_refused_before_anything_is_fitted(change, message):
    model = _model().set_params(**change)
    with pytest.raises(InvalidInputError, match=f"(?s){message}"):
        model.fit(X, Y)
    assert not hasattr(model, "estimator_")


def test_bad_labels_are_named():
    wrong = Y.astype(float)
    wrong[7, 2] = 3
    with pytest.raises(InvalidInputError, match=r"'Y' parameter of fit .* 3\.0 in row 7, column 2"):
        _model().fit(X, wrong)
    with pytest.raises(InvalidInputError, match=r"'Y' parameter of fit .* as there are texts, 400\. Got 399"):
        _model(calibration_size=0.3).fit(X, Y[:-1])
    with pytest.raises(InvalidInputError, match="requires y to be passed"):
        _model().fit(X, None)
    with pytest.raises(InvalidInputError, match="'y' parameter of score"):
        _fitted().score(X[TEST], Y[TEST][:-1])


def test_a_failed_calibration_leaves_the_old_one():
    model = _fitted()
    before = model.predict_p(X[TEST], Y[TEST]).tolist()
    with pytest.raises(InvalidInputError, match="'labels' parameter of calibrate"):
        model.calibrate(X[CALIBRATION], Y[TEST])
    wrong = Y.copy()
    wrong[0, 0] = 9
    with pytest.raises(InvalidInputError):
        model.fit(X, wrong)
    assert model.predict_p(X[TEST], Y[TEST]).tolist() == before


def test_a_failed_first_calibration_of_a_frozen_estimator_leaves_nothing():
    inner = OneVsRestClassifier(LogisticRegression()).fit(X[TRAIN], Y[TRAIN])
    model = ConformalMultilabelClassifier(FrozenEstimator(inner))
    with pytest.raises(InvalidInputError):
        model.calibrate(X[CALIBRATION], pd.DataFrame(Y[CALIBRATION, :3], columns=NAMES[:3]))
    with pytest.raises(InvalidInputError):
        model.calibrate(X[CALIBRATION], pd.DataFrame(2 * Y[CALIBRATION], columns=NAMES))
    assert not hasattr(model, "estimator_")
    model.calibrate(X[CALIBRATION], Y[CALIBRATION])
    assert model.label_names_ is None


def test_fitting_again_drops_the_calibration():
    model = _fitted().fit(X[TRAIN], Y[TRAIN])
    with pytest.raises(NotCalibratedError):
        model.predict(X[TEST])
    fewer = _fitted(min_labels=0).fit(X[TRAIN], Y[TRAIN, :3]).calibrate(X[CALIBRATION], Y[CALIBRATION, :3])
    assert fewer.n_labels_ == 3


def test_constraints_and_fitted_measures_are_passed_on():
    probabilities = OneVsRestClassifier(LogisticRegression()).fit(X[TRAIN], Y[TRAIN]).predict_proba(X[TRAIN])
    constraints = LabelConstraints(implications=[("corn", "gold")])
    model = _model(measure=Mahalanobis().fit(probabilities, Y[TRAIN]), constraints=constraints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        model = (
            clone(model).fit(X[TRAIN], pd.DataFrame(Y[TRAIN], columns=NAMES)).calibrate(X[CALIBRATION], Y[CALIBRATION])
        )
    label_sets = [label_set for one in model.predict_set(X[TEST], significance=0.2) for label_set in one]
    assert label_sets
    assert all("gold" in label_set for label_set in label_sets if "corn" in label_set)
