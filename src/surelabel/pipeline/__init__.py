"""From a corpus to a bundle: train, calibrate, evaluate, write the report.

`train_to_folder` does all of it and goes on where it was stopped; `calibrate_bundle` calibrates a bundle anew without
training, `add_to_calibration` with more texts beside the old ones; `evaluate_bundle` measures one on other texts,
`watch_bundle` watches whether they are like those of calibration. Calibration texts are never trained on and decide
nothing; test texts are only measured on.
"""

from surelabel.pipeline.evaluating import (
    add_to_calibration,
    calibrate_bundle,
    evaluate_bundle,
    held_out_part,
    is_same_source,
)
from surelabel.pipeline.examples import WorkedExample, worked_examples
from surelabel.pipeline.fitting import Automatic, any_measure_named
from surelabel.pipeline.training import TrainingSettings, train_bundle, train_to_folder
from surelabel.pipeline.watching import watch_bundle

__all__ = [
    "Automatic",
    "TrainingSettings",
    "WorkedExample",
    "add_to_calibration",
    "any_measure_named",
    "calibrate_bundle",
    "evaluate_bundle",
    "held_out_part",
    "is_same_source",
    "train_bundle",
    "train_to_folder",
    "watch_bundle",
    "worked_examples",
]
