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

from surelabel.classifier import ConformalMultilabelClassifier
from surelabel.conformal import ConformalLabelSets
from surelabel.exceptions import CalibrationWarning, InvalidInputError, NotCalibratedError
from surelabel.guarantees.groups import ByGroup
from surelabel.labels.constraints import LabelConstraints
from surelabel.measures import LogLoss, LpNorm, Mixture
from surelabel.recalibration import Recalibration

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
    calibrations = [fitted.predictor_.calibration_ for fitted in (model, none, three)]
    assert [(one.min_labels, one.max_labels) for one in calibrations] == [(1, 2), (1, 4), (1, 3)]
    assert model.predict(X[TEST]).sum(axis=1).max() == 2


def test_holding_out_a_part_calibrates_at_once_and_by_the_seed():
    one = _model(calibration_size=0.4, random_state=3).fit(X, Y)
    two = _model(calibration_size=0.4, random_state=3).fit(X, Y)
    other = _model(calibration_size=0.4, random_state=4).fit(X, Y)
    assert one.predictor_.calibration_.n_texts == 160
    assert one.predict_p(X, Y).tolist() == two.predict_p(X, Y).tolist() != other.predict_p(X, Y).tolist()
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
    assert model.predictor_.calibration_.max_labels == 4
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


def test_everything_pickles():
    model = _fitted()
    again = pickle.loads(pickle.dumps(model))
    assert again.predict_p(X[TEST], Y[TEST]).tolist() == model.predict_p(X[TEST], Y[TEST]).tolist()
    sets = pickle.loads(pickle.dumps(model.predict_set(X[TEST], significance=0.1)))
    assert sets.sizes().tolist() == again.predict_set(X[TEST], significance=0.1).sizes().tolist()


def test_it_works_inside_model_selection():
    model = _model(calibration_size=0.3, random_state=0)
    assert cross_val_score(model, X, Y, cv=2).shape == (2,)
    search = GridSearchCV(model, {"estimator__estimator__C": [0.1, 1.0]}, cv=2).fit(X, Y)
    assert search.predict(X[TEST]).shape == (80, 4)


def test_nothing_is_predicted_before_fit_and_calibration():
    model = _model()
    with pytest.raises(NotCalibratedError, match="before 'calibrate'"):
        model.calibrate(X, Y)
    with pytest.raises(NotCalibratedError, match="not fitted"):
        model.predict_proba(X)
    model.fit(X[TRAIN], Y[TRAIN])
    for call in (model.predict, model.predict_forced, lambda x: model.predict_set(x, significance=0.1)):
        with pytest.raises(NotCalibratedError, match="not calibrated"):
            call(X)
    with pytest.raises(NotFittedError, match="before 'predict_p'"):
        model.predict_p(X, Y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"estimator": None}, "'estimator' parameter .* 'predict_proba'. Got None"),
        ({"estimator": LinearRegression()}, r"'estimator' parameter .*Got LinearRegression\(\)"),
        ({"measure": "L2"}, "'measure' parameter"),
        ({"min_labels": 3, "max_labels": 2}, "'max_labels' parameter"),
        ({"max_labels": "most"}, "'max_labels' parameter"),
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
    with pytest.raises(InvalidInputError, match="'labels' parameter"):
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
    constraints = LabelConstraints(implications=[("corn", "gold")])
    model = _model(measure=Mixture(weight=0.3).fit(Y[TRAIN]), constraints=constraints)
    with warnings.catch_warnings(action="ignore", category=CalibrationWarning):
        model = clone(model).fit(X[TRAIN], pd.DataFrame(Y[TRAIN], columns=NAMES))
        model.calibrate(X[CALIBRATION], Y[CALIBRATION])
    label_sets = [label_set for one in model.predict_set(X[TEST], significance=0.2) for label_set in one]
    assert label_sets
    assert all("gold" in label_set for label_set in label_sets if "corn" in label_set)


def test_groups_are_passed_on():
    groups = np.where(np.arange(400) % 2, "odd", "even")
    model = _model(taxonomy=ByGroup()).fit(X[TRAIN], Y[TRAIN])
    model.calibrate(X[CALIBRATION], Y[CALIBRATION], groups=groups[CALIBRATION])
    sets = model.predict_set(X[TEST], significance=0.1, groups=groups[TEST])
    inner = ConformalLabelSets(max_labels=4, taxonomy=ByGroup())
    inner.calibrate(model.predict_proba(X[CALIBRATION]), Y[CALIBRATION], groups=groups[CALIBRATION])
    expected = inner.predict_set(model.predict_proba(X[TEST]), significance=0.1, groups=groups[TEST])
    assert sets.sizes().tolist() == expected.sizes().tolist()
    assert model.predict(X[TEST], groups=groups[TEST]).shape == (80, 4)


def test_columns_of_labels_are_matched_by_name():
    labels = pd.DataFrame(Y, columns=NAMES)
    model = _model().fit(X[TRAIN], labels[TRAIN]).calibrate(X[CALIBRATION], labels[CALIBRATION])
    shuffled = labels[["tea", "corn", "oil", "gold"]]
    again = _model().fit(X[TRAIN], labels[TRAIN]).calibrate(X[CALIBRATION], shuffled[CALIBRATION])
    assert again.predict_p(X[TEST], shuffled[TEST]).tolist() == model.predict_p(X[TEST], labels[TEST]).tolist()
    assert again.score(X[TEST], shuffled[TEST]) == model.score(X[TEST], labels[TEST])
    for wrong in (labels[["corn", "gold", "oil"]], labels.rename(columns={"tea": "coffee"})):
        with pytest.raises(InvalidInputError):
            model.calibrate(X[CALIBRATION], wrong[CALIBRATION])


def test_rows_of_labels_are_matched_by_index():
    frame, labels = pd.DataFrame(X), pd.DataFrame(Y, columns=NAMES)
    frame.columns = [f"x{k}" for k in range(8)]
    model = _model().fit(frame[TRAIN], labels[TRAIN]).calibrate(frame[CALIBRATION], labels[CALIBRATION])
    mixed = labels[TRAIN].sample(frac=1, random_state=0), labels[CALIBRATION].sample(frac=1, random_state=1)
    again = _model().fit(frame[TRAIN], mixed[0]).calibrate(frame[CALIBRATION], mixed[1])
    expected = model.predict_p(frame[TEST], labels[TEST])
    assert again.predict_p(frame[TEST], labels[TEST].sample(frac=1, random_state=2)).tolist() == expected.tolist()
    with pytest.raises(InvalidInputError, match="index"):
        model.predict_p(frame[TEST], labels[CALIBRATION][:80])


def test_unknown_labels_count_as_errors():
    labels = pd.DataFrame(Y, columns=NAMES)
    model = _model().fit(X[TRAIN], labels[TRAIN]).calibrate(X[CALIBRATION], labels[CALIBRATION])
    sequences = [{NAMES[k] for k in np.flatnonzero(row)} | {"new"} for row in Y[TEST]]
    assert model.score(X[TEST], sequences) == 0.0
    assert not model.predict_p(X[TEST], sequences).any()


def test_recalibration_is_fitted_on_texts_of_its_own():
    model = _model(recalibrate=100, calibration_size=100, random_state=0).fit(X, Y)
    assert isinstance(model.recalibration_, Recalibration)
    assert model.predictor_.calibration_.n_texts == 100
    raw = model.estimator_.predict_proba(X[TEST])
    assert np.array_equal(model.predict_proba(X[TEST]), model.recalibration_.transform(raw))
    given = Recalibration.fit(raw, Y[TEST], min_texts=5)
    assert _fitted(recalibrate=given).recalibration_ is given
    frozen = FrozenEstimator(model.estimator_)
    with pytest.raises(InvalidInputError, match="recalibrate"):
        ConformalMultilabelClassifier(frozen, recalibrate=0.2).calibrate(X, Y)
