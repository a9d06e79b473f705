"""From raw text to label probabilities: linear classifiers, the paper's three, and blends of them.

========== ==================================================================================
kind       what it is
========== ==================================================================================
`linear`   TF-IDF of words and pairs, one linear score per label; seconds, no torch
`hybrid`   the same on TF-IDF and the vectors of a frozen encoder; minutes
`randinit` the paper's CNN, word vectors learnt with the rest (section 3.1)
`word2vec` the same, started from pre-trained word vectors
`bert`     any transformers encoder with a sigmoid layer (section 3.2)
`blend`    several of these, trained on the same texts and combined on validation texts
========== ==================================================================================

Every kind has `fit(texts, labels, validation=...)`, `predict_proba(texts)`, `save(folder)`; `make` and
`load` give one. Importing this package loads neither torch nor scikit-learn; the kinds do when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from surelabel._core.extras import import_extra
from surelabel.text.base import KINDS, TextClassifier, load, make, probabilities_of
from surelabel.text.decisions import Thresholds
from surelabel.text.explaining import Explanation, WordWeight
from surelabel.text.settings import (
    BertSettings,
    BlendSettings,
    CnnSettings,
    HybridSettings,
    LinearSettings,
    Word2vecSettings,
)

if TYPE_CHECKING:
    from surelabel.text.bert import BertClassifier
    from surelabel.text.blend import BlendClassifier
    from surelabel.text.cnn import RandinitClassifier, Word2vecClassifier
    from surelabel.text.hybrid import HybridClassifier
    from surelabel.text.linear import LinearClassifier

__all__ = [
    "BertClassifier",
    "BertSettings",
    "BlendClassifier",
    "BlendSettings",
    "CnnSettings",
    "Explanation",
    "HybridClassifier",
    "HybridSettings",
    "LinearClassifier",
    "LinearSettings",
    "RandinitClassifier",
    "TextClassifier",
    "Thresholds",
    "Word2vecClassifier",
    "Word2vecSettings",
    "WordWeight",
    "load",
    "make",
    "probabilities_of",
]


if not TYPE_CHECKING:  # else a type checker would take any name

    def __getattr__(name: str) -> Any:
        for module, classifier in KINDS.values():
            if name == classifier:
                return getattr(import_extra(module, "text", name), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
