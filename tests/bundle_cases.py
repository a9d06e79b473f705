"""A small bundle that several tests share: the synthetic corpus, the linear classifier, in a second."""

import functools
import warnings

import numpy as np

from surelabel import Bundle, ConformalLabelSets, LogLoss, corpora, text
from surelabel.evaluation.evaluate import evaluate
from surelabel.models import BundleInfo
from surelabel.models.deciding import DecisionSettings, uncertified


@functools.cache
def corpus():
    return corpora.load("synthetic", n_texts=600, n_labels=8, seed=0)


@functools.cache
def small_bundle():
    """Return a calibrated and evaluated bundle; it is not to be changed."""
    found = corpus()
    train, calibration, test = (found.part(name) for name in ("train", "calibration", "test"))
    classifier = text.make("linear").fit(train.texts, train.label_matrix, label_names=found.label_names)
    predictor = ConformalLabelSets(LogLoss(), 1, 3, label_names=found.label_names)
    predictor.calibrate(classifier.predict_proba(calibration.texts), calibration.labels)
    figures = evaluate(predictor, classifier.predict_proba(test.texts), test.labels, levels=["0.05", "0.10"])
    info = BundleInfo(
        name="small | <model>",
        kind="linear",
        created="2026-01-01T00:00:00+00:00",
        versions={"numpy": np.__version__},
        settings={"min_texts": 3},
        corpus=found.name,
        fingerprint=found.fingerprint(),
        provenance={"source": found.provenance.source},
        part_sizes={name: len(rows) for name, rows in found.parts.items()},
        seed=0,
        measure="LogLoss",
        calibrated_on={"corpus": found.name, "part": "calibration"},
        notes=("made for tests",),
        examples=test.texts[:2],
    )
    decisions = uncertified(DecisionSettings(max_wrong="0.2"), predictor, found.label_names).calibrate(
        classifier.predict_proba(calibration.texts), calibration.labels, classifier.known_words(calibration.texts)
    )
    return Bundle(classifier, predictor, info, {"LogLoss": figures}, decisions=decisions)


def quiet_answers(bundle, texts, **options):
    """Answer without the warnings that are not what is tested."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bundle.answers(texts, **options)
