"""Multi-label text classification that knows when it is sure.

Shapes: probabilities are `(n_texts, n_labels)` float64 in [0, 1]; labels `(n_texts, n_labels)` bool; scores, p-values,
confidence and credibility `(n_texts,)` float64. A *label-set* is a frozenset of label names, or of indices where labels
have no names. A *prediction set* is a set of label-sets.

Importing the package loads nothing heavy: every name is loaded when it is first used.

>>> import surelabel
>>> surelabel.__version__
'...'
"""

import importlib
from typing import TYPE_CHECKING, Any

from surelabel import exceptions
from surelabel._version import __version__

if TYPE_CHECKING:
    from surelabel import corpora, metrics, plots, report, review, service, text
    from surelabel.classifier import ConformalMultilabelClassifier
    from surelabel.conformal import ConformalLabelSets
    from surelabel.guarantees.automation import Automation
    from surelabel.guarantees.groups import ByCardinality, ByGroup
    from surelabel.guarantees.online import OnlineConformal
    from surelabel.guarantees.tag_bounds import TagBounds
    from surelabel.guarantees.watch import ExchangeabilityWatch
    from surelabel.labels.constraints import LabelConstraints
    from surelabel.labels.shortlists import Shortlists
    from surelabel.measures import LogLoss, LpNorm, Mixture, SeparableMeasure
    from surelabel.measures.choose import choose_mixture
    from surelabel.models.bundle import Bundle, load_bundle
    from surelabel.models.train import train
    from surelabel.predicting import predict_dataset
    from surelabel.recalibration import Recalibration
    from surelabel.sets.prediction_set import PredictionSet
    from surelabel.sets.prediction_sets import ForcedPredictions, PredictionSets

__all__ = [
    "Automation",
    "Bundle",
    "ByCardinality",
    "ByGroup",
    "ConformalLabelSets",
    "ConformalMultilabelClassifier",
    "ExchangeabilityWatch",
    "ForcedPredictions",
    "LabelConstraints",
    "LogLoss",
    "LpNorm",
    "Mixture",
    "OnlineConformal",
    "PredictionSet",
    "PredictionSets",
    "Recalibration",
    "SeparableMeasure",
    "Shortlists",
    "TagBounds",
    "__version__",
    "choose_mixture",
    "corpora",
    "exceptions",
    "load_bundle",
    "metrics",
    "plots",
    "predict_dataset",
    "report",
    "review",
    "service",
    "text",
    "train",
]

_MODULES: tuple[str, ...] = ("corpora", "experiments", "measures", "metrics", "models", "plots", "predicting", "report")
_MODULES += ("review", "service", "text")
_NAMES = {
    "Automation": "guarantees.automation",
    "Bundle": "models",
    "ByCardinality": "guarantees.groups",
    "ByGroup": "guarantees.groups",
    "ConformalLabelSets": "conformal",
    "ConformalMultilabelClassifier": "classifier",
    "ExchangeabilityWatch": "guarantees.watch",
    "ForcedPredictions": "sets.prediction_sets",
    "LabelConstraints": "labels.constraints",
    "LogLoss": "measures",
    "LpNorm": "measures",
    "Mixture": "measures",
    "OnlineConformal": "guarantees.online",
    "PredictionSet": "sets.prediction_set",
    "PredictionSets": "sets.prediction_sets",
    "Recalibration": "recalibration",
    "SeparableMeasure": "measures",
    "Shortlists": "labels.shortlists",
    "TagBounds": "guarantees.tag_bounds",
    "choose_mixture": "measures.choose",
    "load_bundle": "models",
    "predict_dataset": "predicting",
    "train": "models",
}


if not TYPE_CHECKING:  # a type checker would accept any name

    def __getattr__(name: str) -> Any:
        if name in _NAMES:
            return getattr(importlib.import_module(f"surelabel.{_NAMES[name]}"), name)
        if name in _MODULES:
            return importlib.import_module(f"surelabel.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
