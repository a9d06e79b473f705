"""Models: from a corpus to a trained and calibrated bundle in one folder, and back.

::

    bundle.json        what it is, and size and SHA-256 of every other file
    classifier/        the text classifier: JSON, arrays, safetensors
    predictor.npz      the calibrated predictor, with the label names
    automation.npz     what certifies that a text can be filed; tags.npz and familiarity.npz beside it
    recalibration.npz  the correction of the classifier's probabilities (if there is one)
    evaluation.json    figures on the test texts, per measure (if it was evaluated)
    report.html        the report about them (if one was made)
    README.md          the model card

Calibration texts are never used for training or for choosing anything; test texts are only measured on.
"""

from surelabel.models.bundle import Bundle, load_bundle
from surelabel.models.calibrating import add_to_calibration, calibrate_bundle
from surelabel.models.deciding import DecisionSettings, settings_of
from surelabel.models.demonstration import demonstration_corpus, followed
from surelabel.models.evaluating import evaluate_bundle, measure_bundle
from surelabel.models.examples import worked_examples
from surelabel.models.fitting import Automatic, any_measure_named
from surelabel.models.folder import changing, check_target
from surelabel.models.held_out import held_out_part, is_same_source
from surelabel.models.info import BundleInfo
from surelabel.models.settings import Division, TrainingSettings
from surelabel.models.training import train, train_bundle, train_to_folder
from surelabel.models.watching import adapt_bundle, events_of, watch_bundle, watch_unlabelled

__all__ = [
    "Automatic",
    "Bundle",
    "BundleInfo",
    "DecisionSettings",
    "Division",
    "TrainingSettings",
    "adapt_bundle",
    "add_to_calibration",
    "any_measure_named",
    "calibrate_bundle",
    "changing",
    "check_target",
    "demonstration_corpus",
    "evaluate_bundle",
    "events_of",
    "followed",
    "held_out_part",
    "is_same_source",
    "load_bundle",
    "measure_bundle",
    "settings_of",
    "train",
    "train_bundle",
    "train_to_folder",
    "watch_bundle",
    "watch_unlabelled",
    "worked_examples",
]
