"""What an experiment is: a corpus, a classifier, whether calibration texts are held out, and a seed."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping
from typing import Any

from surelabel.exceptions import InvalidInputError

CORPORA = (
    "reuters", "reuters20", "arxiv", "arxiv20", "debian-czech", "debian-czech20", "goemotions", "aapd", "aapd20",
    "ctdc", "ctdc20", "synthetic",
)  # fmt: skip
# Corpora whose test part is in the order of time: the ids of Reuters-21578 are chronological.
IN_TIME_ORDER = ("reuters", "reuters20")
CLASSIFIERS = ("linear", "randinit", "word2vec", "bert")
# What the classifiers are run with by default: an encoder that a package registry carries, read as far as nearly all
# texts go. Word vectors are trained on the training texts, which did better on Reuters' validation part
# than GloVe's 50 components (micro-F1 .898 against .893).
_DEFAULT_OPTIONS: Mapping[str, Mapping[str, Any]] = {"bert": {"model": "minilm", "max_tokens": 192, "epochs": 5}}


@dataclasses.dataclass(frozen=True)
class Settings:
    """One run: a name of `surelabel.corpora` (with 20 behind it for the reduced one), a classifier and its options.

    `conformal` holds the calibration texts out and calibrates with them; without it they are trained with too, as in
    the paper's tables "without ICP". `seed` is that of the split and of training.

    Examples
    --------
    >>> Settings("reuters20", "linear").name
    'reuters20-linear-conformal-seed0'
    """

    corpus: str
    classifier: str
    conformal: bool = True
    seed: int = 0
    options: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        for parameter, value, known in (("corpus", self.corpus, CORPORA), ("classifier", self.classifier, CLASSIFIERS)):
            if value not in known:
                raise InvalidInputError(
                    f"The '{parameter}' of an experiment must be one of {', '.join(known)}. Got {value!r} instead."
                )

    @property
    def name(self) -> str:
        """Name of the run's files."""
        kind = "conformal" if self.conformal else "plain"
        return f"{self.corpus}-{self.classifier}-{kind}-seed{self.seed}"

    def classifier_options(self) -> dict[str, Any]:
        """Return the classifier's settings: the defaults of experiments, then this run's own."""
        return {**_DEFAULT_OPTIONS.get(self.classifier, {}), **dict(self.options), "seed": self.seed}


def planned(corpora: Iterable[str], classifiers: Iterable[str], seeds: Iterable[int]) -> list[Settings]:
    """Return all runs of some corpora, classifiers and seeds: conformal ones and plain ones."""
    return [Settings(*run) for run in itertools.product(corpora, classifiers, (True, False), seeds)]
