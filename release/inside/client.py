"""A user's typed program, checked by `mypy --strict` against the installed package: results have types of their own.

Any are only the members of a label-set (names if names are known, otherwise indices), and arrays of label-sets (CSR
arrays if probabilities are sparse).
"""

from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import surelabel
from surelabel import (
    Bundle,
    ConformalLabelSets,
    ForcedPredictions,
    LogLoss,
    PredictionSet,
    PredictionSets,
    corpora,
    load_bundle,
    metrics,
)
from surelabel.exceptions import SurelabelError
from surelabel.predicting import AnswerSettings, Summary
from surelabel.text import TextClassifier


def calibrate(probabilities: npt.NDArray[np.float64], labels: npt.NDArray[np.bool_]) -> ConformalLabelSets:
    """Return a calibrated predictor, read back from its file."""
    predictor = ConformalLabelSets(measure=LogLoss(clip=1e-6), min_labels=1, max_labels=None)
    assert_type(predictor.calibrate(probabilities, labels), ConformalLabelSets)
    predictor.save("predictor.npz")
    return ConformalLabelSets.load("predictor.npz")


def read(predictor: ConformalLabelSets, probabilities: npt.NDArray[np.float64]) -> int:
    """Go through prediction sets."""
    sets = predictor.predict_set(probabilities, significance=0.05)
    assert_type(sets, PredictionSets)
    assert_type(sets[0], PredictionSet)
    assert_type(sets[1:], PredictionSets)
    assert_type(len(sets), int)
    assert_type(sets[0].size, int)
    assert_type(sets[0].size_bounds, tuple[int, int])
    assert_type(sets[0].to_array(limit=10), Any)
    for label_set, p_value in sets[0].top(3):
        assert_type(label_set, frozenset[Any])
        assert_type(p_value, float)
    forced = predictor.predict(probabilities)
    assert_type(forced, ForcedPredictions)
    assert_type(forced.confidence, npt.NDArray[np.float64])
    return sets[0].size


def ask(folder: str, texts: list[str]) -> list[str]:
    """Ask a saved model."""
    bundle = load_bundle(folder)
    assert_type(bundle, Bundle)
    assert_type(bundle.classifier, TextClassifier)
    assert_type(bundle.label_names, tuple[str, ...])
    assert_type(bundle.predict_set(texts, significance=0.1), PredictionSets)
    assert_type(surelabel.predict_dataset(bundle, "new", "answers", AnswerSettings(0.1)), Summary)
    try:
        answers = bundle.answers(texts, significance=0.1)
    except SurelabelError as error:
        return [str(error)]
    return [str(answer.confidence) for answer in answers]


def names_are_known() -> None:
    """Lazy names have types too, and a name that does not exist is an error: `--strict` wants no idle ignores."""
    assert_type(surelabel.__version__, str)
    assert_type(corpora.load("synthetic"), corpora.Corpus)
    assert_type(surelabel.text.make("linear"), TextClassifier)
    metrics.no_such_metric  # type: ignore[attr-defined]
    surelabel.no_such_name  # type: ignore[attr-defined]
    surelabel.text.no_such_name  # type: ignore[attr-defined]
    ConformalLabelSets(no_such_parameter=1)  # type: ignore[call-arg]
