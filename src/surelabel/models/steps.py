"""The steps that bundles and the paper's experiments share, one function each."""

from __future__ import annotations

import contextlib
import importlib.metadata
import platform
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from surelabel import corpora, text
from surelabel.conformal import ConformalLabelSets
from surelabel.corpora import Corpus, Part
from surelabel.exceptions import CalibrationWarning, DataWarning
from surelabel.labels.constraints import LabelConstraints
from surelabel.labels.sparse import is_sparse
from surelabel.measures import Measure
from surelabel.models.bundle import Bundle
from surelabel.probabilities_file import PartProbabilities
from surelabel.text import TextClassifier

__all__ = ["calibrated", "fitted_classifier", "n_repeated_texts", "part_probabilities", "versions"]

_PACKAGES = ("surelabel", "numpy", "scipy", "scikit-learn", "numba", "torch", "transformers", "tokenizers", "gensim")


def versions() -> dict[str, str]:
    """Return the versions that figures may depend on."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


@contextlib.contextmanager
def _empty_texts_told() -> Iterator[None]:
    """Let classifiers be silent about empty texts: the corpus has told of them once, when it was read."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* are empty; they are kept", category=DataWarning)
        yield


def fitted_classifier(
    corpus: Corpus,
    training: Part,
    kind: str,
    options: Mapping[str, Any],
    checkpoint_folder: Path | None = None,
) -> TextClassifier:
    """Train a classifier on some texts of a corpus, from its last checkpoint where there is one.

    The validation part, where there is one, says when to stop.
    """
    classifier = text.make(kind, **options)
    validation = corpus.part("validation") if "validation" in corpus.parts else None
    with _empty_texts_told():
        return classifier.fit(
            training.texts,
            training.label_matrix,
            validation=None if validation is None else (validation.texts, validation.label_matrix),
            label_names=corpus.label_names,
            checkpoint_folder=None if kind == "linear" else checkpoint_folder,
        )


def part_probabilities(model: TextClassifier | Bundle, part: Part, listed: int | None = None) -> PartProbabilities:
    """Return the probabilities of a classifier, or of a bundle, for a part, with its labels: sparse where they are.

    A bundle knows how many labels it lists; for a classifier `listed` says it, None to keep all.
    """
    texts = part.texts
    with _empty_texts_told():
        if isinstance(model, Bundle):
            probabilities = model.predict_proba(texts)
        else:
            probabilities = text.probabilities_of(model, texts, listed)
    labels = part.label_matrix if is_sparse(probabilities) else part.labels
    return PartProbabilities(probabilities, labels, tuple(map(str, part.ids)))


def n_repeated_texts(corpus: Corpus, part: str) -> int:
    """Return how many texts of a part stand in an earlier part too: train, validation, calibration, test."""
    earlier = [name for name in corpora.PARTS[: corpora.PARTS.index(part)] if name in corpus.parts]
    if part not in corpus.parts or not earlier:
        return 0
    return int(corpora.seen_before(corpus.part(part).texts, corpus.part(*earlier).texts).sum())


def calibrated(
    measure: Measure,
    probabilities: Any,
    labels: Any,
    max_labels: int | None,
    label_names: Sequence[str] | None = None,
    *,
    min_labels: int = 1,
    constraints: LabelConstraints | None = None,
) -> ConformalLabelSets:
    """Calibrate; texts whose label-set is no candidate are counted in the evaluation, not warned about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        predictor = ConformalLabelSets(
            measure, min_labels, max_labels, label_names=label_names, constraints=constraints
        )
        return predictor.calibrate(probabilities, labels)
