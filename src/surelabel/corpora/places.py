"""Where corpora lie: a path that the user names, the data folder, the cache folder."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from surelabel._core.extras import import_extra
from surelabel.exceptions import CorpusError, InvalidInputError

CACHE_VARIABLE = "SURELABEL_CACHE"
DATA_VARIABLE = "SURELABEL_DATA"

_BLOCK = 1 << 20


def cache_folder() -> Path:
    """Return the folder for downloaded corpora: ``SURELABEL_CACHE``, or the platform's cache folder; it need not exist.

    Examples
    --------
    >>> import os
    >>> from unittest import mock
    >>> from surelabel import corpora
    >>> with mock.patch.dict(os.environ, SURELABEL_CACHE="corpora-of-mine"):
    ...     print(corpora.cache_folder())
    corpora-of-mine
    """
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named).expanduser()
    platformdirs = import_extra("platformdirs", "corpora", "The folder of downloaded corpora")
    return Path(platformdirs.user_cache_dir("surelabel", appauthor=False)) / "corpora"


def as_path(path: object) -> Path:
    """Return an existing path, or say that there is none."""
    if not isinstance(path, str | os.PathLike):
        raise InvalidInputError(f"A path of load must be a str or a path. Got {type(path).__name__} instead.")
    found = Path(path).expanduser()
    if not found.exists():
        raise CorpusError(f"The path of load must exist. Got {str(found)!r} instead.")
    return found


def find(names: Sequence[str], path: str | Path | None = None) -> tuple[Path | None, list[str]]:
    """Look for a file or folder of one of these names, or take the `path` that the user named.

    Returns what was found, or None, and where else it was looked for, with the reason why it is not there.
    """
    if path is not None:
        return as_path(path), []
    tried = []
    folders: list[Path] = []
    data = os.environ.get(DATA_VARIABLE)
    if data:
        folders.append(Path(data).expanduser())
    else:
        tried.append(f"the data folder: {DATA_VARIABLE} is not set")
    folders.append(cache_folder())
    for folder in folders:
        for name in names:
            if (folder / name).exists():
                return folder / name, tried
        tried.append(f"{folder}: no {' or '.join(names)} in it")
    return None, tried


def sha256(*paths: Path) -> str:
    """Return the SHA-256 of files, one after the other."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
    return digest.hexdigest()
