"""From labelled texts to a model: read, fit, calibrate, evaluate, save."""

from __future__ import annotations

import os
from typing import Any

from surelabel.models.bundle import Bundle


def train(
    corpus: Any,
    out: str | os.PathLike[str] | None = None,
    *,
    text: Any = "text",
    labels: Any = "labels",
    progress: Any = None,
    **settings: Any,
) -> Bundle:
    """Train a classifier, calibrate it, measure it on test texts and save it: what `surelabel train` does.

    `settings` are those of `TrainingSettings`; all others are passed to `corpora.load`.
    """
    raise NotImplementedError
