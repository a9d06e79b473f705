"""A scikit-learn meta-estimator: any probabilistic multi-label classifier, made conformal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import check_is_fitted

from surelabel._core.validation import (
    FloatArray,
    aligned_rows,
    as_labels,
    as_names,
    as_probabilities,
    column_names,
    invalid,
)
from surelabel.conformal import ConformalLabelSets
from surelabel.exceptions import InvalidInputError, NotCalibratedError
from surelabel.labels.constraints import LabelConstraints
from surelabel.measures import LpNorm
from surelabel.recalibration import Recalibration
from surelabel.sets.prediction_sets import ForcedPredictions, PredictionSets

_DEFAULT_MEASURE = LpNorm(2)
_FITTED = (
    "estimator_", "n_labels_", "label_names_", "classes_", "max_labels_", "recalibration_",
    "n_features_in_", "feature_names_in_",
)  # fmt: skip


class ConformalMultilabelClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Wrap a classifier with `predict_proba`, calibrate it, and predict label-sets with a guarantee.

    Parameters
    ----------
    estimator : scikit-learn classifier
        Any whose `predict_proba` gives (n, d) probabilities or a list of (n, 2) arrays: OneVsRestClassifier,
        MultiOutputClassifier, ClassifierChain, forests, networks. A fitted one in `FrozenEstimator` is used as it is.
    measure, min_labels, search, n_jobs, constraints, taxonomy
        As of `ConformalLabelSets`.
    max_labels : int, "train" or None
        "train", the default, takes the largest number of labels of a training text, as the paper does (no limit for a
        frozen estimator, whose training labels are not known).
    calibration_size : int, float or None
        If given, `fit` holds out this number or share of its texts, at random, and calibrates with them. If None, call
        `calibrate` with other texts.
    recalibrate : int, float, Recalibration or None
        Correct the estimator's probabilities, label by label, before they are used. A number or share: `fit` holds out
        so many of its texts for that, apart from training and calibration. A fitted `Recalibration` is used as it is.
    random_state : int, RandomState or None
        For drawing these texts.

    Attributes
    ----------
    estimator_, recalibration_
        The fitted estimator, and its recalibration or None.
    predictor_ : ConformalLabelSets
    label_names_ : tuple of str or None
    n_labels_ : int

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.multiclass import OneVsRestClassifier
    >>> X, Y = make_multilabel_classification(400, n_classes=5, allow_unlabeled=False, random_state=0)
    >>> model = ConformalMultilabelClassifier(OneVsRestClassifier(LogisticRegression()))
    >>> model = model.fit(X[:200], Y[:200]).calibrate(X[200:300], Y[200:300])
    >>> sets = model.predict_set(X[300:], significance=0.1)
    >>> float((~sets.contains(Y[300:])).mean()) <= 0.2
    True
    """

    def __init__(
        self,
        estimator: Any = None,
        measure: Any = _DEFAULT_MEASURE,
        *,
        min_labels: int = 1,
        max_labels: int | str | None = "train",
        search: str = "exact",
        calibration_size: float | None = None,
        recalibrate: float | Recalibration | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        constraints: LabelConstraints | None = None,
        taxonomy: Any = None,
    ) -> None:
        self.estimator = estimator
        self.measure = measure
        self.min_labels = min_labels
        self.max_labels = max_labels
        self.search = search
        self.calibration_size = calibration_size
        self.recalibrate = recalibrate
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.constraints = constraints
        self.taxonomy = taxonomy

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        tags.target_tags.single_output = False
        tags.target_tags.multi_output = True
        if self.estimator is not None and hasattr(self.estimator, "__sklearn_tags__"):
            inner = self.estimator.__sklearn_tags__()
            tags.input_tags.sparse = inner.input_tags.sparse
            tags.input_tags.allow_nan = inner.input_tags.allow_nan
            tags.input_tags.string = inner.input_tags.string
        return tags

    def _check_parameters(self) -> None:
        """Check the parameters before anything is fitted."""
        if self.estimator is None or not hasattr(self.estimator, "predict_proba"):
            expected = "a classifier with 'predict_proba'"
            raise invalid("estimator", type(self).__name__, expected, repr(self.estimator))
        self._new_predictor(None if self.max_labels == "train" else self.max_labels, None)

    def _new_predictor(self, max_labels: Any, label_names: Sequence[str] | None) -> ConformalLabelSets:
        """Return a predictor with the parameters of this estimator."""
        return ConformalLabelSets(
            self.measure,
            self.min_labels,
            max_labels,
            self.search,
            label_names=label_names,
            constraints=self.constraints,
            taxonomy=self.taxonomy,
            n_jobs=self.n_jobs,
        )

    def fit(self, X: Any, Y: Any, **fit_params: Any) -> ConformalMultilabelClassifier:
        """Fit the estimator, and calibrate with a held-out part if `calibration_size` is given.

        Parameters
        ----------
        X : (n, ...) array-like, sequence of texts, data frame or sparse matrix
        Y : (n, d) 0/1 array-like, data frame (its columns are the label names) or sparse matrix
        **fit_params
            Passed to the estimator's `fit`.
        """
        self._check_parameters()
        if Y is None:
            raise InvalidInputError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        Y, names = aligned_rows(Y, X, "Y", "fit"), column_names(Y)
        shape = np.shape(Y)
        if len(shape) != 2:
            raise invalid("Y", "fit", "a (n_texts, n_labels) array of 0 and 1", f"an array of shape {shape}")
        labels, _ = as_labels(Y, _n_rows(X), shape[1], names, "fit", "Y")
        share = None if isinstance(self.recalibrate, Recalibration) else self.recalibrate
        train, calibration, correction = self._divide(len(labels), self.calibration_size, share)
        largest = max(int(labels[train].sum(axis=1).max()), self.min_labels)
        estimator = clone(self.estimator).fit(_rows_of(X, train), labels[train].astype(np.int64), **fit_params)
        fitted = self._fitted_attributes(estimator, shape[1], names, largest)
        if correction is not None:
            raw = self._probabilities(estimator, _rows_of(X, correction), shape[1])
            fitted["recalibration_"] = Recalibration.fit(raw, labels[correction])
        if calibration is not None:
            fitted["predictor_"] = self._calibrated(fitted, _rows_of(X, calibration), labels[calibration])
        return self._set_fitted(fitted)

    def _divide(self, n_texts: int, *sizes: Any) -> list[Any]:
        """Return rows to train with, and rows held out for each size, None if it is None; none twice."""
        train, held_out = np.arange(n_texts), []
        for given in sizes:
            size, part = given, None
            if size is not None:
                # A share is one of all texts, whatever was held out before.
                if not isinstance(size, (int, np.integer)) and len(train) < n_texts:
                    size = size * n_texts / len(train)
                train, part = train_test_split(train, test_size=size, random_state=self.random_state)
            held_out.append(part)
        return [train, *held_out]

    def _fitted_attributes(self, estimator: Any, n_labels: int, names: Any, largest: int | None) -> dict[str, Any]:
        """Return the attributes that follow from a fitted estimator."""
        fitted = {
            "estimator_": estimator,
            "n_labels_": n_labels,
            "label_names_": as_names(names, n_labels, "fit"),
            "classes_": [np.array([0, 1])] * n_labels,
            "max_labels_": largest if self.max_labels == "train" else self.max_labels,
            "recalibration_": self.recalibrate if isinstance(self.recalibrate, Recalibration) else None,
        }
        names_in = ("n_features_in_", "feature_names_in_")
        return fitted | {name: getattr(estimator, name) for name in names_in if hasattr(estimator, name)}

    def _set_fitted(self, fitted: dict[str, Any]) -> ConformalMultilabelClassifier:
        """Replace fitted attributes, all at once: a call that fails before leaves the older ones."""
        for name in (*_FITTED, "predictor_"):
            self.__dict__.pop(name, None)
        self.__dict__.update(fitted)
        return self

    def calibrate(self, X: Any, Y: Any, groups: Any = None) -> ConformalMultilabelClassifier:
        """Calibrate with texts that the estimator was not fitted on; a frozen estimator needs no `fit` before.

        Parameters
        ----------
        X : (n, ...) array-like, as for the estimator
        Y : (n, d) 0/1 array-like, data frame or sparse matrix, or one collection of label names per text
        groups : (n,) array-like, optional
            The group of each text, with `taxonomy=ByGroup()`.
        """
        self._check_parameters()
        Y = aligned_rows(Y, X, "Y", "calibrate")
        if hasattr(self, "estimator_"):
            fitted = {name: getattr(self, name) for name in _FITTED if hasattr(self, name)}
        else:
            fitted = self._frozen_attributes(X, Y)
        return self._set_fitted({**fitted, "predictor_": self._calibrated(fitted, X, Y, groups)})

    def _frozen_attributes(self, X: Any, Y: Any) -> dict[str, Any]:
        """Return the attributes of an estimator that was fitted elsewhere."""
        who = type(self).__name__
        try:
            check_is_fitted(self.estimator)
        except NotFittedError as error:
            raise NotCalibratedError(
                f"The estimator of this {who} is not fitted. Call 'fit' before 'calibrate', or pass a fitted one in "
                "sklearn.frozen.FrozenEstimator."
            ) from error
        if self.recalibrate is not None and not isinstance(self.recalibrate, Recalibration):
            expected = "a fitted Recalibration where the estimator was fitted elsewhere: no texts can be held out"
            raise invalid("recalibrate", who, expected, repr(self.recalibrate))
        columns = np.shape(Y)[1] if getattr(Y, "ndim", 0) == 2 else None
        n_labels = self._probabilities(self.estimator, X, columns).shape[1]
        return self._fitted_attributes(self.estimator, n_labels, column_names(Y), None)

    def _calibrated(self, fitted: dict[str, Any], X: Any, Y: Any, groups: Any = None) -> ConformalLabelSets:
        """Return a predictor calibrated with a fitted estimator's probabilities."""
        raw = self._probabilities(fitted["estimator_"], X, fitted["n_labels_"])
        probabilities = _corrected(raw, fitted["recalibration_"])
        names = fitted["label_names_"] if fitted["label_names_"] is not None else column_names(Y)
        return self._new_predictor(fitted["max_labels_"], names).calibrate(probabilities, Y, groups)

    @staticmethod
    def _probabilities(estimator: Any, X: Any, n_labels: int | None) -> FloatArray:
        """Return an estimator's probabilities (n, d)."""
        # A label that it saw with one value only has probability 0 or 1; of one label, some give both classes.
        raw = estimator.predict_proba(X)
        if isinstance(raw, list):
            raw = [
                part if part.shape[1] == 2 else np.column_stack([1 - seen, seen])
                for part, classes in zip(raw, estimator.classes_, strict=True)
                for seen in [np.full(len(part), float(classes[0] == 1))]
            ]
        elif n_labels == 1 and np.ndim(raw) == 2 and np.shape(raw)[1] == 2:
            raw = np.asarray(raw)[:, 1:]
        return as_probabilities(raw, None, "predict_proba", n_labels)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the estimator's probabilities, (n, d), corrected if `recalibrate` was given."""
        if not hasattr(self, "estimator_"):
            raise NotCalibratedError(f"This {type(self).__name__} is not fitted. Call 'fit' before 'predict_proba'.")
        return _corrected(self._probabilities(self.estimator_, X, self.n_labels_), self.recalibration_)

    def _predictor(self, who: str) -> ConformalLabelSets:
        """Return the calibrated predictor; NotCalibratedError before `calibrate`."""
        if not hasattr(self, "predictor_"):
            raise NotCalibratedError(
                f"This {type(self).__name__} is not calibrated. Call 'calibrate' before '{who}', or 'fit' with "
                "'calibration_size' set."
            )
        predictor: ConformalLabelSets = self.predictor_
        return predictor

    def predict(self, X: Any, *, groups: Any = None) -> Any:
        """Return the most plausible label-set of each text as 0/1 rows, (n, d) int64."""
        return self.predict_forced(X, groups=groups).labels.astype(np.int64)

    def predict_forced(self, X: Any, *, groups: Any = None) -> ForcedPredictions:
        """Return the most plausible label-sets with confidence and credibility."""
        return self._predictor("predict").predict(self.predict_proba(X), groups=groups)

    def predict_p(self, X: Any, Y: Any, *, groups: Any = None) -> FloatArray:
        """Return the p-value of one given label-set per text, (n,)."""
        Y = aligned_rows(Y, X, "Y", "predict_p")
        return self._predictor("predict_p").predict_p(self.predict_proba(X), Y, groups=groups)

    def predict_set(self, X: Any, **options: Any) -> PredictionSets:
        """Return the set of plausible label-sets of each text.

        Options are those of `ConformalLabelSets.predict_set`: significance or confidence_level, groups, assurance.
        """
        return self._predictor("predict_set").predict_set(self.predict_proba(X), **options)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of texts whose label-set, 0/1 or names, is predicted exactly."""
        predicted, names = self.predict(X), self.predictor_.calibration_.label_names
        truth = aligned_rows(y, X, "y", "score")
        labels, has_unknown = as_labels(truth, len(predicted), self.n_labels_, names, "score", "y")
        return float(np.average((predicted == labels).all(axis=1) & ~has_unknown, weights=sample_weight))


def _corrected(probabilities: FloatArray, recalibration: Recalibration | None) -> FloatArray:
    """Return probabilities, corrected if there is a recalibration."""
    return probabilities if recalibration is None else recalibration.transform(probabilities)


def _n_rows(values: Any) -> int:
    """Return the number of rows of an array, data frame, sparse matrix or list."""
    return int(values.shape[0] if hasattr(values, "shape") else len(values))


def _rows_of(values: Any, rows: Any) -> Any:
    """Return some rows of an array, data frame, sparse matrix or list, by their numbers."""
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    return values[rows] if hasattr(values, "shape") else [values[row] for row in rows]
