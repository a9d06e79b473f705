"""Bundles: a trained and calibrated model in one folder, loaded without running any code from it.

::

    bundle.json       what it is, and size and SHA-256 of every other file
    classifier/       the text classifier: JSON, arrays, safetensors
    predictor.npz     the calibrated predictor, with the label names
    recalibration.npz the correction of the classifier's probabilities (where there is one)
    evaluation.json   figures on the test texts, one measure after the other (where it was evaluated)
    report.html       the report about them (where one was made)
    README.md         the model card

`load_bundle` checks all of it and refuses what it does not know.
"""

from surelabel.bundles.bundle import Bundle, load_bundle
from surelabel.bundles.folder import check_target
from surelabel.bundles.info import BundleInfo

__all__ = ["Bundle", "BundleInfo", "check_target", "load_bundle"]
