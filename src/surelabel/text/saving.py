"""The folder of a saved classifier: `classifier.json` describes JSON, safetensors or arrays; nothing of it is run."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from surelabel._core.folders import FolderFormat
from surelabel.exceptions import ArtifactError

CLASSIFIER = FolderFormat(
    what="saved classifier",
    description="classifier.json",
    format="surelabel text classifier",
    version=2,
    oldest=1,
    advice="Save one with its `save` method.",
    without_checksum=1,
)
_SHAPES = {"kind": str, "settings": dict, "n_labels": int}


def write_folder(
    folder: str | os.PathLike[str], description: dict[str, Any]
) -> contextlib.AbstractContextManager[Path]:
    """Yield a folder to write a classifier's files into; it is described and moved to `folder` at the end."""
    return CLASSIFIER.write(Path(folder), description)


@contextlib.contextmanager
def opened_folder(folder: str | os.PathLike[str]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield a private copy of a saved classifier, every byte of it checked, and its description.

    Raises
    ------
    ArtifactError
        The folder is not a saved classifier, was written by a newer version, or a file is missing or changed.
    """
    with CLASSIFIER.opened(Path(folder)) as (copy, document):
        for name, expected in _SHAPES.items():
            if not isinstance(document.get(name), expected):
                raise ArtifactError(
                    f"The saved classifier {folder} is damaged: {CLASSIFIER.description} has no proper '{name}'."
                )
        yield copy, document
