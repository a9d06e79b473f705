"""Files of corpora: where they lie (a path that the user names, the data folder, the cache folder), and their text."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from surelabel._core.storage import cache_root
from surelabel.corpora.corpus import Provenance
from surelabel.exceptions import CorpusError, InvalidInputError

CACHE_VARIABLE = "SURELABEL_CACHE"
DATA_VARIABLE = "SURELABEL_DATA"


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
    root = cache_root("The folder of downloaded corpora")
    return root if os.environ.get(CACHE_VARIABLE) else root / "corpora"


def as_path(path: object) -> Path:
    """Return an existing path, or say that there is none."""
    if not isinstance(path, str | os.PathLike):
        raise InvalidInputError(f"A path of load must be a str or a path. Got {type(path).__name__} instead.")
    expanded = Path(path).expanduser()
    if not expanded.exists():
        raise CorpusError(f"The path of load must exist. Got {str(expanded)!r} instead.")
    return expanded


def find(names: Sequence[str], path: str | Path | None = None) -> tuple[Path | None, list[str]]:
    """Return the `path` that the user named, or a file of one of these names, or None; and where none was found."""
    if path is not None:
        return as_path(path), []
    data = os.environ.get(DATA_VARIABLE)
    tried = [] if data else [f"the data folder: {DATA_VARIABLE} is not set"]
    for folder in (*([Path(data).expanduser()] if data else []), cache_folder()):
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
            hashlib.file_digest(file, lambda: digest)
    return digest.hexdigest()


def provenance_of(files: Sequence[Path], rule: str, licence: str = "not stated") -> Provenance:
    """Say that a corpus was read from files."""
    return Provenance(", ".join(file.name for file in files), rule, licence, sha256(*files))


def read_lines(path: Path) -> list[str]:
    """Return a file's lines."""
    return read_text(path).removesuffix("\n").split("\n")


def read_text(path: Path, encoding: str = "utf-8") -> str:
    """Return a file's text with line ends as line feeds."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CorpusError(f"{path.name!r} cannot be read: {error.strerror or error}.") from error
    return decode(data, path.name, encoding).replace("\r\n", "\n")


def parse_json(text: str, name: str) -> Any:
    """Return what the text of a file says in JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"{name!r} must be JSON. Got an error instead: {error}.") from error


def decode(data: bytes, name: str, encoding: str = "utf-8") -> str:
    """Return bytes as text, without a byte order mark."""
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise CorpusError(
            f"{name!r} must be text in {encoding}. Got byte 0x{data[error.start]:02x} in line {line} instead; name the "
            "right encoding, e.g. encoding='latin-1' or 'cp1250'."
        ) from error
    return text.removeprefix("\N{BYTE ORDER MARK}")
