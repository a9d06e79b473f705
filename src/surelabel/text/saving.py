"""The folder of a saved classifier: JSON, safetensors or arrays, and a checksum of each file.

`classifier.json` says what the folder is; nothing in it is ever run. A folder is written beside its place
and moved there whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from surelabel._core.storage import atomic_folder
from surelabel._version import __version__
from surelabel.exceptions import ArtifactError, InvalidInputError

__all__ = ["DESCRIPTION", "FORMAT_VERSION", "read_folder", "write_folder"]

DESCRIPTION = "classifier.json"
FORMAT = "surelabel text classifier"
FORMAT_VERSION = 1


def _checksum(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def write_folder(folder: str | os.PathLike[str], description: dict[str, Any]) -> Iterator[Path]:
    """Yield a folder to write a classifier's files into; it is described and moved to `folder` at the end.

    A folder that holds something else than a saved classifier is not replaced.
    """
    target = Path(folder)
    if target.exists() and not (target / DESCRIPTION).is_file() and not _is_empty_folder(target):
        raise InvalidInputError(
            f"A classifier cannot be saved to {target}: there is something else than a saved classifier. "
            f"Choose a new folder."
        )
    with atomic_folder(target) as temporary:
        yield temporary
        files = sorted(path for path in temporary.rglob("*") if path.is_file())
        checksums = {path.relative_to(temporary).as_posix(): _checksum(path) for path in files}
        document = {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            "written_by": f"surelabel {__version__}",
            **description,
            "files": checksums,
        }
        text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        (temporary / DESCRIPTION).write_text(text, encoding="utf-8")


def _is_empty_folder(path: Path) -> bool:
    """Whether `path` is a folder with nothing in it."""
    return path.is_dir() and not any(path.iterdir())


def read_folder(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the description of a saved classifier after checking that its files are whole.

    Raises
    ------
    ArtifactError
        The folder is not a saved classifier, was written by a newer version, or a file is missing or changed.
    """
    path = Path(folder)
    document = _read_description(path)
    for name, expected in document["files"].items():
        file = path / name
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise ArtifactError(f"{path / DESCRIPTION} names a file outside its folder: {name!r}.")
        if not file.is_file():
            raise ArtifactError(f"The saved classifier {path} is damaged: {name} is missing.")
        if _checksum(file) != expected:
            raise ArtifactError(f"The saved classifier {path} is damaged: {name} is not what was written.")
    return document


def _read_description(path: Path) -> dict[str, Any]:
    """Return classifier.json as a dictionary of the right shape and version."""
    file = path / DESCRIPTION
    if not file.is_file():
        raise ArtifactError(f"{path} is not a saved classifier: it has no {DESCRIPTION}.")
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ArtifactError(f"The saved classifier {path} is damaged: {DESCRIPTION} is no JSON ({error}).") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ArtifactError(f"{path} is not a saved classifier: {DESCRIPTION} does not say that it is one.")
    version = document.get("version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise ArtifactError(
            f"The saved classifier {path} has format version {version!r}; this version of surelabel "
            f"reads up to {FORMAT_VERSION}. Install a newer surelabel."
        )
    shapes = {"kind": str, "settings": dict, "n_labels": int, "files": dict}
    for name, expected in shapes.items():
        if not isinstance(document.get(name), expected):
            raise ArtifactError(f"The saved classifier {path} is damaged: {DESCRIPTION} has no proper '{name}'.")
    return document
