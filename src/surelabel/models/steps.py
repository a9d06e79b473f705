"""The steps that bundles and the paper's experiments share, one function each."""

from __future__ import annotations

import contextlib
import functools
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
from surelabel.labels.sparse import is_sparse
from surelabel.measures import Measure
from surelabel.models.bundle import Bundle
from surelabel.probabilities_file import PartProbabilities
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
    corpus: Corpus, training: Part, kind: str, options: Mapping[str, Any], checkpoint_folder: Path | None = None
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
        classify, listed, group_column = model.predict_proba, model.info.listed, group_column or model.info.group_column
    else:
        classify = functools.partial(text.probabilities_of, model, listed=listed)
    with _without_warnings_of_empty_texts():
        probabilities = _in_chunks(classify, part, listed)
    labels = part.label_matrix if is_sparse(probabilities) else part.labels
    groups = None if group_column is None else part.column(group_column)
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


def calibrated(measure: Measure, part: PartProbabilities, **candidates: Any) -> ConformalLabelSets:
    """Calibrate; texts whose label-set is not a candidate are counted in the evaluation, without a warning."""
    with warnings.catch_warnings(action="ignore", category=CalibrationWarning):
        predictor = ConformalLabelSets(measure, **candidates)
        return predictor.calibrate(part.probabilities, part.labels, groups=part.groups)
