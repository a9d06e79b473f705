"""A trained and calibrated model: from texts to answers."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from surelabel.answers import Answer


@dataclasses.dataclass(frozen=True)
class BundleInfo:
    """Where a bundle comes from and how it was made: plain values."""

    name: str
    classifier: str
    created: str
    versions: Mapping[str, str]
    settings: Mapping[str, Any]
    corpus: str
    provenance: Mapping[str, Any]
    part_sizes: Mapping[str, int]
    n_train: int
    seed: int
    measure: str
    levels: Mapping[str, str]
    max_tags: int = 9
    best_guess: str = "exact"
    group_column: str | None = None
    label_texts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()
    verdict: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class Bundle:
    """A text classifier, what is calibrated on its probabilities, and what is known of both."""

    classifier: Any
    predictor: Any
    policy: Any
    info: BundleInfo
    known_words: Any = None
    recalibration: Any = None
    thresholds: Any = None
    evaluation: Any = None  # BundleEvaluation
    seen: Any = None
    report: bytes | None = None

    @property
    def label_names(self) -> tuple[str, ...]:
        """Names of the labels, in the order of the columns of probabilities."""
        raise NotImplementedError

    def predict_proba(self, texts: Iterable[str], scores: Any = None) -> Any:
        """Return the probability of each label for each text: (n, d) float64, or Shortlists."""
        raise NotImplementedError

    def answers(
        self,
        texts: Iterable[str],
        *,
        significance: Any = None,
        confidence_level: Any = None,
        groups: Any = None,
        assurance: Any = None,
        top: int = 5,
        scores: Any = None,
    ) -> list[Answer]:
        """Return what a user reads about each text."""
        raise NotImplementedError

    def predict(self, texts: Iterable[str], *, groups: Any = None, scores: Any = None) -> Any:
        """Return the most plausible label-set of each text, with confidence and credibility."""
        raise NotImplementedError

    def predict_set(
        self,
        texts: Iterable[str],
        *,
        significance: Any = None,
        confidence_level: Any = None,
        groups: Any = None,
        assurance: Any = None,
        scores: Any = None,
    ) -> Any:
        """Return the prediction set of each text."""
        raise NotImplementedError

    def predict_p(self, texts: Iterable[str], labels: Any, *, groups: Any = None, scores: Any = None) -> Any:
        """Return the p-value of one given label-set per text, (n,)."""
        raise NotImplementedError

    def explain(self, text: str, label: str | int) -> Any:
        """Explain which words of a text speak for a label."""
        raise NotImplementedError

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the bundle into a folder, atomically; an older bundle there is replaced."""
        raise NotImplementedError


def load_bundle(path: str | os.PathLike[str]) -> Bundle:
    """Load a bundle from its folder: every file is verified in place, nothing is written, no code is run."""
    raise NotImplementedError
