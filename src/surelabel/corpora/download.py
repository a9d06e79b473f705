"""Where the data of corpora lie: a path, the data folder, the user's cache folder; and how they are fetched."""

from __future__ import annotations

import hashlib
import http.client
import logging
import lzma
import os
import re
import tarfile
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from surelabel._core import progress
from surelabel._core.extras import require
from surelabel._core.files import atomic_file, is_unsafe_path
from surelabel._core.formatting import count
from surelabel.corpora.corpus import Provenance
from surelabel.exceptions import CorpusError, DownloadError, InvalidInputError

CACHE_VARIABLE = "SURELABEL_CACHE"
DATA_VARIABLE = "SURELABEL_DATA"

CONNECT_SECONDS, TOTAL_SECONDS = 5.0, 300.0
_BLOCK, _MAX_BYTES = 1 << 16, 256 << 20
_MAX_MEMBER, _MAX_TOTAL = 64 << 20, 512 << 20

_log = logging.getLogger(__name__)


def cache_folder() -> Path:
    """Return the folder of downloads: SURELABEL_CACHE, or the platform's cache folder; it need not exist."""
    named = os.environ.get(CACHE_VARIABLE)
    if named:
        return Path(named).expanduser()
    platformdirs = require("platformdirs", "corpora", "The folder of downloaded corpora")
    return Path(platformdirs.user_cache_dir("surelabel", appauthor=False)) / "corpora"


def as_path(path: object) -> Path:
    """Return an existing path; raise if there is none."""
    if not isinstance(path, str | os.PathLike):
        raise InvalidInputError(f"A path must be a str or a path. Got {type(path).__name__}.")
    expanded = Path(path).expanduser()
    if not expanded.exists():
        raise CorpusError(f"There is no {os.fspath(path)}.")
    return expanded


def locate(names: Sequence[str]) -> tuple[Path | None, list[str]]:
    """Return the first of these files in the data or cache folder, or None; and where none was found."""
    data = os.environ.get(DATA_VARIABLE)
    tried = [] if data else [f"the data folder: {DATA_VARIABLE} is not set"]
    for folder in (*([Path(data).expanduser()] if data else []), cache_folder()):
        for name in names:
            if (folder / name).exists():
                return folder / name, tried
        tried.append(f"{folder}: no {' or '.join(names)}")
    return None, tried


class Download(NamedTuple):
    """A file on the web: where it is, its name here, and its SHA-256."""

    url: str
    name: str
    checksum: str


def fetch(downloads: Sequence[Download], folder: Path) -> Path:
    """Fetch the first file that can be had with the right checksum; raise DownloadError with what was tried."""
    failed: list[str] = []
    for download in downloads:
        _log.info("fetching %s", download.url)
        try:
            _fetch(download, folder / download.name)
        except DownloadError as error:
            failed.append(f"{download.url}: {error}")
        else:
            return folder / download.name
    raise DownloadError("\n".join(failed))


def _fetch(download: Download, target: Path) -> None:
    """Fetch one file; it takes its place only when it is complete and has the right checksum."""
    if not download.url.startswith(("https://", "http://")):
        raise DownloadError(f"an address must begin with http:// or https://. Got {download.url!r}")
    request = urllib.request.Request(download.url, headers={"User-Agent": "surelabel"})  # noqa: S310  # checked above
    deadline = time.monotonic() + TOTAL_SECONDS
    digest, received = hashlib.sha256(), 0
    try:
        with urllib.request.urlopen(request, timeout=CONNECT_SECONDS) as answer, atomic_file(target, "wb") as file:  # noqa: S310
            expected = int(answer.headers.get("Content-Length") or 0) or None
            with progress.step(f"fetching {target.name}", expected) as advance:
                while block := answer.read(_BLOCK):
                    received += len(block)
                    if received > _MAX_BYTES or time.monotonic() > deadline:
                        raise DownloadError(f"more than {_MAX_BYTES >> 20} MB or {TOTAL_SECONDS:.0f} seconds")
                    file.write(block)
                    digest.update(block)
                    advance(len(block))
            if digest.hexdigest() != download.checksum:
                of = f" of {count(expected)}" if expected else ""
                raise DownloadError(f"the checksum is wrong after {count(received)}{of} bytes")
    except urllib.error.HTTPError as error:
        error.close()
        raise DownloadError(f"HTTP status {error.code}") from error
    except urllib.error.URLError as error:
        raise DownloadError(str(error.reason)) from error
    except (OSError, http.client.HTTPException) as error:
        raise DownloadError(str(error) or type(error).__name__) from error


def read_members(path: Path, pattern: re.Pattern[str]) -> dict[str, bytes]:
    """Return the files whose names match, by name in order, from a folder or an archive (tar in any packing, or zip).

    Archives are read in memory, within limits: nothing is written to the paths that an archive names.
    """
    if path.is_dir():
        files = [file for file in sorted(path.rglob("*")) if file.is_file()]
        named = {file.relative_to(path).as_posix(): file for file in files}
        return {name: file.read_bytes() for name, file in named.items() if pattern.search(name)}
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                names = [entry.filename for entry in _accepted(archive.infolist(), path)]
                return {name: archive.read(name) for name in sorted(names) if pattern.search(name)}
        return _tar_members(path, pattern)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        raise CorpusError(f"{path.name!r} must be a complete archive. Got an error: {error}. Get it again.") from error


def _tar_members(path: Path, pattern: re.Pattern[str]) -> dict[str, bytes]:
    """Read a tar archive to its very end, where its checksum is."""
    members: dict[str, bytes] = {}
    with tarfile.open(path, "r:*") as archive:
        for member in _accepted(archive, path):
            if member.isfile() and pattern.search(member.name):
                file = archive.extractfile(member)
                members[member.name] = b"" if file is None else file.read()
        rest = 0
        while archive.fileobj is not None and (block := archive.fileobj.read(1 << 20)):
            rest += len(block)
            if rest > _MAX_MEMBER:
                raise CorpusError(f"Archive {path.name!r} must end after its last file. Got more.")
    return dict(sorted(members.items()))


def _accepted(members: Iterable[Any], path: Path) -> Iterator[Any]:
    """Yield the members of an archive as long as their names stay inside it and their sizes within the limits."""
    total = 0
    for member in members:
        is_zip = isinstance(member, zipfile.ZipInfo)
        name, size = (member.filename, member.file_size) if is_zip else (member.name, member.size)
        if name not in {".", "./"} and is_unsafe_path(name):
            raise CorpusError(f"Archive {path.name!r} names a file outside itself, {name!r}. Do not trust it.")
        total += size
        if size > _MAX_MEMBER or total > _MAX_TOTAL:
            limits = f"{_MAX_MEMBER >> 20} MB a file and {_MAX_TOTAL >> 20} MB in all"
            raise CorpusError(f"Archive {path.name!r} must hold at most {limits}. Got more.")
        yield member


def decode(data: bytes, name: str, encoding: str = "utf-8") -> str:
    """Return bytes as text without a byte order mark, line ends as line feeds."""
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = f"byte 0x{data[error.start]:02x} in line {line:,}"
        raise CorpusError(f"{name!r} must be text in {encoding}. Got {byte}; give the right encoding.") from error
    return text.removeprefix("\N{BYTE ORDER MARK}").replace("\r\n", "\n")


def read_text(path: Path, encoding: str = "utf-8") -> str:
    """Return a file's text."""
    try:
        return decode(path.read_bytes(), path.name, encoding)
    except OSError as error:
        raise CorpusError(f"{path.name!r} cannot be read: {error.strerror or error}.") from error


def provenance_of(files: Sequence[Path], rule: str, licence: str) -> Provenance:
    """Return the provenance of a corpus that was read from files."""
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            hashlib.file_digest(file, lambda: digest)
    return Provenance(", ".join(file.name for file in files), rule, licence, digest.hexdigest())
