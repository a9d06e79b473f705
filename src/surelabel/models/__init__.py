"""Models that are trained, calibrated, measured and kept: from labelled texts to answers.

`train` makes a `Bundle`, `load_bundle` reads one, `evaluate_bundle` measures it on texts with labels, and
`calibrate_bundle` calibrates it again without training.
"""

from surelabel.models.bundle import Bundle, BundleInfo, load_bundle
from surelabel.models.calibrate import calibrate_bundle
from surelabel.models.evaluate import BundleEvaluation, evaluate_bundle, new_texts
from surelabel.models.settings import TrainingSettings
from surelabel.models.train import train, versions
from surelabel.models.verdict import verdict

__all__ = [
    "Bundle",
    "BundleEvaluation",
    "BundleInfo",
    "TrainingSettings",
    "calibrate_bundle",
    "evaluate_bundle",
    "load_bundle",
    "new_texts",
    "train",
    "verdict",
    "versions",
]
