"""From raw text to label probabilities.

========== ======================================================================================
kind       classifier
========== ======================================================================================
`linear`   TF-IDF of words and pairs, one linear score per label: seconds, no torch
`hybrid`   the same on TF-IDF and the vectors of a frozen encoder: minutes
`randinit` the paper's CNN, word vectors learnt with the rest (section 3.1)
`word2vec` the same, started from trained word vectors
`bert`     any transformers encoder with a sigmoid layer (section 3.2)
`blend`    several of these, combined on validation texts
`omikuji`  label trees for thousands of labels: shortlists
`scores`   scores of any tagger that come with the texts
`annif`    an Annif server
`http`     any tagger behind an HTTP endpoint
========== ======================================================================================

Arrays: texts are rows, labels are columns; probabilities are (n_texts, n_labels) float64 or `Shortlists`.
Names are loaded when they are first used, so importing this package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surelabel.text.base import HeldOut, TextClassifier, load, make
    from surelabel.text.explain import Explanation, WordWeight
    from surelabel.text.terms import KnownWords
    from surelabel.text.thresholds import Thresholds

KINDS = {
    "annif": "surelabel.text.tagger_http:AnnifTagger",
    "bert": "surelabel.text.bert:BertClassifier",
    "blend": "surelabel.text.blend:BlendClassifier",
    "http": "surelabel.text.tagger_http:HttpTagger",
    "hybrid": "surelabel.text.hybrid:HybridClassifier",
    "linear": "surelabel.text.linear:LinearClassifier",
    "omikuji": "surelabel.text.omikuji:OmikujiClassifier",
    "randinit": "surelabel.text.cnn:RandinitClassifier",
    "scores": "surelabel.text.taggers:ScoresTagger",
    "word2vec": "surelabel.text.cnn:Word2vecClassifier",
}
"""Module and class of each kind."""

MANY_LABELS = 1_000
"""Above this number of labels, `omikuji` is the default kind and probabilities are shortlists."""

__all__ = [
    "KINDS",
    "MANY_LABELS",
    "Explanation",
    "HeldOut",
    "KnownWords",
    "TextClassifier",
    "Thresholds",
    "WordWeight",
    "default_kind",
    "load",
    "make",
]

_MODULES = {
    "Explanation": "explain",
    "HeldOut": "base",
    "KnownWords": "terms",
    "TextClassifier": "base",
    "Thresholds": "thresholds",
    "WordWeight": "explain",
    "load": "base",
    "make": "base",
}


def default_kind(n_labels: int) -> str:
    """Return the kind to train when none is named."""
    return "linear" if n_labels <= MANY_LABELS else "omikuji"


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
