"""scikit-learn's own checks of estimators, on the meta-estimator; those that cannot hold are listed with the reason."""

import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from surelabel.classifier import ConformalMultilabelClassifier

_MULTICLASS = "the check's target has more than two classes; labels are 0/1 columns, and others are refused by name"
_ONE_DIMENSION = "the check's target is one-dimensional; labels are (n, d), and others are refused with that advice"
_MESSAGE = "refused as it should be, in the package's own words, which name row and column"

EXPECTED_FAILURES = {
    "check_classifier_data_not_an_array": _MULTICLASS,
    "check_estimators_dtypes": _MULTICLASS,
    "check_estimator_sparse_array": _MULTICLASS,
    "check_estimator_sparse_matrix": _MULTICLASS,
    "check_fit2d_1feature": _MULTICLASS,
    "check_classifier_not_supporting_multiclass": _MESSAGE,
    "check_classifiers_regression_target": _MESSAGE,
    "check_classifiers_classes": _ONE_DIMENSION,
    "check_classifiers_one_label": _ONE_DIMENSION,
    "check_classifiers_one_label_sample_weights": _ONE_DIMENSION,
    "check_complex_data": _ONE_DIMENSION,
    "check_classifiers_train": "predictions are (n, d) for one label too; the check wants (n,)",
    "check_parameters_default_constructible": "the default measure is a value of its own, frozen, as kernels of "
    "Gaussian processes are; the check allows plain types only",
}


@pytest.mark.filterwarnings("ignore::surelabel.exceptions.CalibrationWarning")
@parametrize_with_checks(
    [
        ConformalMultilabelClassifier(
            OneVsRestClassifier(LogisticRegression()), min_labels=0, calibration_size=0.3, random_state=0
        )
    ],
    expected_failed_checks=lambda _: EXPECTED_FAILURES,
    xfail_strict=True,
)
def test_the_meta_estimator_keeps_scikit_learns_conventions(estimator, check):
    check(estimator)
