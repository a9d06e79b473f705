"""The folder of a bundle: written whole or not at all, and checked file by file before anything in it is read."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from surelabel._core.storage import atomic_folder
from surelabel._version import __version__
from surelabel.exceptions import ArtifactError, InvalidInputError

__all__ = [
    "CARD",
    "CLASSIFIER",
    "DESCRIPTION",
    "EVALUATION",
    "FORCED",
    "PREDICTOR",
    "RECALIBRATION",
    "REPORT",
    "SEEN",
    "check_folder",
    "check_target",
    "new_folder",
]

DESCRIPTION, CLASSIFIER, PREDICTOR = "bundle.json", "classifier", "predictor.npz"
EVALUATION, REPORT, CARD = "evaluation.json", "report.html", "README.md"
RECALIBRATION, FORCED, SEEN = "recalibration.npz", "forced.npz", "texts.npz"
FORMAT = "surelabel-bundle"
VERSION = 1

_NEEDED = (PREDICTOR, CARD, f"{CLASSIFIER}/classifier.json")
_OPTIONAL = (EVALUATION, FORCED, RECALIBRATION, REPORT, SEEN)
_CLASSIFIER_SUFFIXES = (".json", ".npz", ".safetensors")
# The description lists files and settings; one that is larger is not ours.
_MAX_DESCRIPTION = 64 * 2**20


def check_target(folder: Path) -> Path:
    """Return where a bundle is written, with links followed; raise unless that is nothing, empty, or a bundle."""
    target = folder.resolve()
    if not target.exists():
        return target
    if not target.is_dir():
        raise InvalidInputError(f"A bundle is a folder, and {folder} is a file. Choose another name.")
    if any(target.iterdir()) and not (target / DESCRIPTION).is_file():
        raise InvalidInputError(
            f"A bundle cannot be written to {folder}: there is something else than a bundle. Choose a new folder."
        )
    if Path.cwd().is_relative_to(target):
        raise InvalidInputError(
            f"The bundle {target} cannot be replaced while it is the current folder. Run the command from another "
            "folder, or write to another one (--out)."
        )
    return target


@contextlib.contextmanager
def new_folder(folder: Path, description: dict[str, Any]) -> Iterator[Path]:
    """Yield a folder to write a bundle's files into; it is described and takes the place of `folder` at the end."""
    with atomic_folder(check_target(folder)) as temporary:
        yield temporary
        files = {name: _fingerprint(temporary / name) for name in sorted(_files_in(temporary))}
        document = {
            "format": FORMAT,
            "version": VERSION,
            "written_by": f"surelabel {__version__}",
            **description,
            "files": files,
        }
        document["sha256"] = _own_checksum(document)
        text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
        (temporary / DESCRIPTION).write_text(text, encoding="utf-8")


def check_folder(folder: Path) -> dict[str, Any]:
    """Return a bundle's description after checking that its files are those that were written, and no others.

    Raises
    ------
    ArtifactError
        The folder is no bundle, of a newer format, or a file is missing, changed, unknown or leads out of the folder.
    """
    document = _read_description(folder)
    listed = document["files"]
    for name, expected in listed.items():
        _check_name(name, folder)
        if not isinstance(expected, dict) or set(expected) != {"bytes", "sha256"}:
            raise ArtifactError(f"The bundle {folder} is damaged: {DESCRIPTION} does not say what {name!r} is.")
    found = set(_files_in(folder)) - {DESCRIPTION}
    unknown, missing = sorted(found - set(listed)), sorted({*listed, *_NEEDED} - found)
    if unknown:
        raise ArtifactError(
            f"The bundle {folder} is refused: {unknown[0]!r} is no part of it. Remove it if it is yours."
        )
    if missing:
        raise ArtifactError(f"The bundle {folder} is damaged: {missing[0]} is missing. Get it again.")
    for name, expected in listed.items():
        _check_content(folder, name, expected)
    return document


def _read_description(folder: Path) -> dict[str, Any]:
    """Return bundle.json where it is one of ours."""
    file = folder / DESCRIPTION
    if not folder.is_dir():
        raise ArtifactError(f"There is no bundle at {folder}. Make one with surelabel train.")
    if file.is_symlink() or not file.is_file():
        raise ArtifactError(f"{folder} is not a bundle: it has no {DESCRIPTION}.")
    if file.stat().st_size > _MAX_DESCRIPTION:
        raise ArtifactError(f"{folder} is not a bundle: its {DESCRIPTION} is too large.")
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise ArtifactError(f"The bundle {folder} is damaged: {DESCRIPTION} is no JSON ({error}).") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ArtifactError(f"{folder} is not a bundle: its {DESCRIPTION} does not say that it is one.")
    if document.get("version") != VERSION:
        raise ArtifactError(
            f"The bundle {folder} has format version {document.get('version')!r}, written by "
            f"{document.get('written_by')!r}; this is surelabel {__version__}, which reads version {VERSION}. "
            "Install a newer surelabel."
        )
    if not isinstance(document.get("files"), dict):
        raise ArtifactError(f"The bundle {folder} is damaged: {DESCRIPTION} does not list its files.")
    if document.get("sha256") != _own_checksum(document):
        raise ArtifactError(f"The bundle {folder} is damaged: {DESCRIPTION} is not what was written. Get it again.")
    return document


def _own_checksum(document: dict[str, Any]) -> str:
    """Return the SHA-256 of a description, but for the checksum in it."""
    rest = {name: value for name, value in document.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _check_name(name: str, folder: Path) -> None:
    """Raise where a listed name leads out of the folder, or is not one that a bundle has."""
    parts = PurePosixPath(name).parts
    if "\\" in name or ":" in name or "\0" in name or ".." in parts or PurePosixPath(name).is_absolute():
        raise ArtifactError(f"The bundle {folder} is refused: it names a file outside itself, {name!r}.")
    known = name in (*_NEEDED, *_OPTIONAL) or (
        len(parts) == 2 and parts[0] == CLASSIFIER and PurePosixPath(name).suffix in _CLASSIFIER_SUFFIXES
    )
    if not known or PurePosixPath(*parts).as_posix() != name:
        raise ArtifactError(f"The bundle {folder} is refused: {name!r} is no file that a bundle has.")


def _files_in(folder: Path) -> Iterator[str]:
    """Yield the names of all files under a folder; links are refused, wherever they lead."""
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place) / name
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                raise ArtifactError(f"The bundle {folder} is refused: {path.relative_to(folder)} is no plain file.")
        yield from ((Path(place) / name).relative_to(folder).as_posix() for name in files)


def _check_content(folder: Path, name: str, expected: dict[str, Any]) -> None:
    """Raise where a file is not what was written; its size is looked at first, since that is quick."""
    changed = (folder / name).stat().st_size != expected["bytes"]
    if changed or _fingerprint(folder / name) != expected:
        raise ArtifactError(f"The bundle {folder} is damaged: {name} is not what was written. Get it again.")


def _fingerprint(path: Path) -> dict[str, Any]:
    """Return the size and SHA-256 of a file."""
    with path.open("rb") as file:
        return {"bytes": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}
