"""Multi-label text classification that knows when it is sure.

Shapes, once: probabilities are `(n_texts, n_labels)` float64 in [0, 1]; labels `(n_texts, n_labels)` bool; scores,
totals, p-values, confidence and credibility `(n_texts,)` float64. A *label-set* is a frozenset of label names, of
indices where names are not known. A *prediction set* is a set of label-sets.

Importing the package loads nothing heavy: every name is loaded, with what it needs, when it is first used.

>>> import surelabel
>>> surelabel.__version__
'...'
"""

import importlib
from typing import TYPE_CHECKING, Any

from surelabel import exceptions
from surelabel._version import __version__

if TYPE_CHECKING:
    from surelabel import corpora, metrics, plots, report, review, rivals, service, text
    from surelabel.choosing import choose_mixture, choose_weights
    from surelabel.classifier import ConformalMultilabelClassifier
    from surelabel.conformal import ConformalLabelSets
    from surelabel.evaluation.compare import compare
    from surelabel.guarantees.automation import Automation
    from surelabel.guarantees.online import OnlineConformal
    from surelabel.guarantees.tag_bounds import TagBounds
    from surelabel.guarantees.watch import ExchangeabilityWatch
    from surelabel.labels.constraints import LabelConstraints
    from surelabel.labels.sparse import SparseProbabilities
    from surelabel.measures import LogLoss, LpNorm, SeparableMeasure
    from surelabel.measures.mahalanobis import Mahalanobis
    from surelabel.measures.mixture import Mixture
    from surelabel.measures.penalised import Penalised
    from surelabel.models import Bundle, load_bundle, train
    from surelabel.predicting import predict_dataset
    from surelabel.recalibration import Recalibration
    from surelabel.sets.forced import ForcedPredictions
    from surelabel.sets.prediction_set import PredictionSet
    from surelabel.sets.prediction_sets import PredictionSets
    from surelabel.taxonomies.kinds import ByCardinality, ByGroup, ByRarity

__all__ = [
    "Automation",
    "Bundle",
    "ByCardinality",
    "ByGroup",
    "ByRarity",
    "ConformalLabelSets",
    "ConformalMultilabelClassifier",
    "ExchangeabilityWatch",
    "ForcedPredictions",
    "LabelConstraints",
    "LogLoss",
    "LpNorm",
    "Mahalanobis",
    "Mixture",
    "OnlineConformal",
    "Penalised",
    "PredictionSet",
    "PredictionSets",
    "Recalibration",
    "SeparableMeasure",
    "SparseProbabilities",
    "TagBounds",
    "__version__",
    "choose_mixture",
    "choose_weights",
    "compare",
    "corpora",
    "exceptions",
    "load_bundle",
    "metrics",
    "plots",
    "predict_dataset",
    "report",
    "review",
    "rivals",
    "service",
    "text",
    "train",
]

_LAZY_MODULES = ("corpora", "metrics", "plots", "report", "review", "rivals", "service", "text")
_LAZY_INTERNALS = ("calibration", "experiments", "measures", "models", "predicting")
_LAZY_NAMES = {
    "Automation": "surelabel.guarantees.automation",
    "Bundle": "surelabel.models",
    "ByCardinality": "surelabel.taxonomies.kinds",
    "ByGroup": "surelabel.taxonomies.kinds",
    "ByRarity": "surelabel.taxonomies.kinds",
    "ConformalLabelSets": "surelabel.conformal",
    "ConformalMultilabelClassifier": "surelabel.classifier",
    "ExchangeabilityWatch": "surelabel.guarantees.watch",
    "ForcedPredictions": "surelabel.sets.forced",
    "LabelConstraints": "surelabel.labels.constraints",
    "LogLoss": "surelabel.measures",
    "LpNorm": "surelabel.measures",
    "Mahalanobis": "surelabel.measures.mahalanobis",
    "Mixture": "surelabel.measures.mixture",
    "OnlineConformal": "surelabel.guarantees.online",
    "Penalised": "surelabel.measures.penalised",
    "PredictionSet": "surelabel.sets.prediction_set",
    "PredictionSets": "surelabel.sets.prediction_sets",
    "Recalibration": "surelabel.recalibration",
    "SeparableMeasure": "surelabel.measures",
    "SparseProbabilities": "surelabel.labels.sparse",
    "TagBounds": "surelabel.guarantees.tag_bounds",
    "choose_mixture": "surelabel.choosing",
    "choose_weights": "surelabel.choosing",
    "compare": "surelabel.evaluation.compare",
    "load_bundle": "surelabel.models",
    "predict_dataset": "surelabel.predicting",
    "train": "surelabel.models",
}


if not TYPE_CHECKING:  # else a type checker would take any name

    def __getattr__(name: str) -> Any:
        if name in _LAZY_NAMES:
            return getattr(importlib.import_module(_LAZY_NAMES[name]), name)
        if name in _LAZY_MODULES or name in _LAZY_INTERNALS:
            return importlib.import_module(f"surelabel.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
