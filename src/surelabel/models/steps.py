"""The steps that bundles and the paper's experiments share, one function each."""

from __future__ import annotations

import contextlib
import importlib.metadata
import platform
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surelabel import text
from surelabel._core import progress
from surelabel.conformal import ConformalLabelSets
from surelabel.corpora import Corpus, Part
from surelabel.exceptions import CalibrationWarning, DataWarning
from surelabel.labels.constraints import LabelConstraints
from surelabel.labels.sparse import is_sparse
from surelabel.measures import Measure
from surelabel.models.bundle import Bundle
from surelabel.models.texts import repeated_texts
from surelabel.probabilities_file import PartProbabilities
from surelabel.taxonomies.kinds import Taxonomy
from surelabel.text import TextClassifier

_PACKAGES = ("surelabel", "numpy", "scipy", "scikit-learn", "numba", "torch", "transformers", "tokenizers", "gensim")
# Texts that are classified between two reports of progress.
_CHUNK = 512


def versions() -> dict[str, str]:
    """Return the versions that figures may depend on."""
    installed = {"python": platform.python_version()}
    for name in _PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            installed[name] = importlib.metadata.version(name)
    return installed


@contextlib.contextmanager
def _without_warnings_of_empty_texts() -> Iterator[None]:
    """Keep classifiers from warning about empty texts: the corpus did so once, when it was read."""
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
    """Train a classifier on some texts of a corpus, from its last checkpoint if there is one.

    The validation part, if there is one, says when to stop.
    """
    classifier = text.make(kind, **options)
    validation = corpus.part("validation") if "validation" in corpus.parts else None
    with _without_warnings_of_empty_texts(), progress.step(f"fitting the {kind} classifier to {len(training):,} texts"):
        return classifier.fit(
            training.texts,
            training.label_matrix,
            validation=None if validation is None else (validation.texts, validation.label_matrix),
            label_names=corpus.label_names,
            checkpoint_folder=None if kind == "linear" else checkpoint_folder,
        )


def part_probabilities(
    model: TextClassifier | Bundle, part: Part, listed: int | None = None, group_column: str | None = None
) -> PartProbabilities:
    """Return the probabilities of a classifier, or of a bundle, for a part, with its labels: sparse if they are.

    A bundle knows how many labels it lists, and by which column it is calibrated; for a classifier `listed` says it,
    None to keep all, and `group_column`.
    """
    if isinstance(model, Bundle):
        group_column = group_column or model.info.group_column
    groups = None if group_column is None else part.column(group_column)

    def classify(texts: Sequence[str]) -> Any:
        return model.predict_proba(texts) if isinstance(model, Bundle) else text.probabilities_of(model, texts, listed)

    with _without_warnings_of_empty_texts():
        probabilities = _in_chunks(classify, part, model.info.listed if isinstance(model, Bundle) else listed)
    labels = part.label_matrix if is_sparse(probabilities) else part.labels
    return PartProbabilities(probabilities, labels, tuple(map(str, part.ids)), groups)


def _in_chunks(classify: Callable[[Sequence[str]], Any], part: Part, listed: int | None) -> Any:
    """Classify texts chunk by chunk, and say how far it is; sparse probabilities all at once."""
    n_texts = len(part)
    with progress.step(f"classifying {n_texts:,} {part.name} texts", n_texts) as advance:
        if listed is not None or n_texts <= _CHUNK:
            return classify(part.texts)
        chunks = []
        for start in range(0, n_texts, _CHUNK):
            chunks.append(classify(part.texts[start : start + _CHUNK]))
            advance(len(chunks[-1]))
        return np.concatenate(chunks)


def n_repeated_texts(corpus: Corpus, part: str) -> int:
    """Return how many texts of a part also appear in an earlier part: train, validation, calibration, test."""
    return repeated_texts(corpus, [part]).get(part, 0)


def calibrated(
    measure: Measure,
    probabilities: Any,
    labels: Any,
    max_labels: int | None,
    label_names: Sequence[str] | None = None,
    *,
    min_labels: int = 1,
    constraints: LabelConstraints | None = None,
    taxonomy: Taxonomy | None = None,
    groups: Sequence[str] | None = None,
) -> ConformalLabelSets:
    """Calibrate; texts whose label-set is not a candidate are counted in the evaluation, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        predictor = ConformalLabelSets(
            measure, min_labels, max_labels, label_names=label_names, constraints=constraints, taxonomy=taxonomy
        )
        return predictor.calibrate(probabilities, labels, groups=groups)
