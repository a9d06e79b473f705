"""Probabilities to measure with: of a linear classifier on Reuters, or on the synthetic corpus in its place."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from surelabel import corpora, text
from surelabel.exceptions import CorpusError


@dataclasses.dataclass(frozen=True)
class Measured:
    """Calibration and test probabilities with their labels, and where they come from."""

    source: str
    calibration: Any
    calibration_labels: Any
    test: Any
    test_labels: Any
    max_labels: int
    validation: Any = None
    validation_labels: Any = None
    train_labels: Any = None

    def reduced(self, n_labels: int) -> Measured:
        """Keep the most frequent labels only, all texts."""
        kept = np.sort(np.argsort(-self.calibration_labels.sum(axis=0), kind="stable")[:n_labels])
        return Measured(
            f"{self.source}, {n_labels} most frequent labels",
            self.calibration[:, kept],
            self.calibration_labels[:, kept],
            self.test[:, kept],
            self.test_labels[:, kept],
            min(self.max_labels, n_labels),
            self.validation[:, kept],
            self.validation_labels[:, kept],
            self.train_labels[:, kept],
        )


def corpus_to_measure(path: str | None) -> corpora.Corpus:
    """Return Reuters, or the synthetic corpus if Reuters is not available."""
    try:
        return corpora.load("reuters", path=path)
    except CorpusError as error:
        print(f"Reuters is not available, the synthetic corpus takes its place: {str(error).splitlines()[0]}")
        return corpora.load("synthetic", n_texts=11_000, n_labels=90, test=3019, validation=1000, calibration=999)


def measured(path: str | None, corpus: corpora.Corpus | None = None) -> Measured:
    """Train the linear classifier and return its probabilities on a corpus, Reuters by default (seed 0)."""
    corpus = corpus_to_measure(path) if corpus is None else corpus
    train, validation = corpus.part("train"), corpus.part("validation")
    classifier = text.make("linear").fit(train.texts, train.labels, validation=(validation.texts, validation.labels))
    calibration, test = corpus.part("calibration"), corpus.part("test")
    return Measured(
        f"{corpus.name}, linear classifier, seed 0",
        classifier.predict_proba(calibration.texts),
        calibration.labels,
        classifier.predict_proba(test.texts),
        test.labels,
        int(train.labels.sum(axis=1).max()),
        classifier.predict_proba(validation.texts),
        validation.labels,
        train.labels,
    )
