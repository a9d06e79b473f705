"""Errors and warnings: one tree, Python's and scikit-learn's kinds too, and they cross process borders."""

import pickle

import pytest
from sklearn.exceptions import NotFittedError

from surelabel import exceptions

ALL = [getattr(exceptions, name) for name in exceptions.__all__]


def test_every_error_has_one_root_and_every_warning_another():
    for kind in ALL:
        root = exceptions.SurelabelWarning if issubclass(kind, Warning) else exceptions.SurelabelError
        assert issubclass(kind, root)
    assert not issubclass(exceptions.SurelabelError, Warning)


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("InvalidInputError", ValueError),
        ("NotCalibratedError", NotFittedError),
        ("NotCalibratedError", exceptions.SurelabelError),
        ("SearchLimitError", RuntimeError),
        ("ProhibitiveSearchError", exceptions.SearchLimitError),
        ("ArtifactError", ValueError),
        ("MissingDependencyError", ImportError),
        ("CorpusError", ValueError),
        ("DownloadError", exceptions.CorpusError),
        ("TrainingError", RuntimeError),
        ("DatasetError", RuntimeError),
        ("SurelabelWarning", UserWarning),
        ("CalibrationWarning", exceptions.SurelabelWarning),
        ("TruncationWarning", exceptions.SurelabelWarning),
        ("DataWarning", exceptions.SurelabelWarning),
    ],
)
def test_kinds_are_what_the_tree_says(name, base):
    assert issubclass(getattr(exceptions, name), base)


@pytest.mark.parametrize("kind", ALL, ids=exceptions.__all__)
def test_every_exception_pickles(kind):
    again = pickle.loads(pickle.dumps(kind("what went wrong")))
    assert type(again) is kind
    assert again.args == ("what went wrong",)
    assert str(again) == "what went wrong"


@pytest.mark.parametrize("kind", [exceptions.SearchLimitError, exceptions.ProhibitiveSearchError])
def test_bounds_survive_pickling(kind):
    again = pickle.loads(pickle.dumps(kind("too large", (3, 2**70))))
    assert again.bounds == (3, 2**70)
    assert kind("too large").bounds is None


def test_not_calibrated_error_is_one_class():
    assert exceptions.NotCalibratedError is exceptions.NotCalibratedError
    assert exceptions.NotCalibratedError.__module__ == "surelabel.exceptions"
    with pytest.raises(AttributeError, match="has no attribute 'NoSuchError'"):
        exceptions.NoSuchError  # noqa: B018
