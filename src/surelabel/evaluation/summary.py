"""An evaluation in sentences: the command line, the model card, the report and the page print the same ones."""

from __future__ import annotations

from typing import Any


def training_lines(bundle: Any) -> list[str]:
    """Return what `train` prints about a model, without where it lies."""
    raise NotImplementedError


def evaluation_lines(evaluation: Any, levels: Any) -> list[str]:
    """Return an evaluation in sentences, each with the texts that it is about."""
    raise NotImplementedError
