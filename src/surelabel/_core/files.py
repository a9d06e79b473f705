"""Files that are either complete or absent: atomic writes, manifests with checksums, arrays without pickle."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import math
import os
import re
import shutil
import stat
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from surelabel._version import __version__
from surelabel.exceptions import ArtifactError, InvalidInputError

Arrays: TypeAlias = dict[str, npt.NDArray[Any]]

MANIFEST = "manifest.json"
_MAX_MANIFEST = 64 * 2**20
# Files that operating systems leave in folders; a name that begins with a dot is litter too.
_LITTER = {"Thumbs.db", "desktop.ini", "__MACOSX"}
# Arrays above this size are stored uncompressed, so a larger one never claims more than its file holds.
_COMPRESSED_BYTES = 64 * 2**20
# Of Linux' renameat2: paths are relative to the current folder; exchange two of them.
_HERE, _EXCHANGE = -100, 2


def is_unsafe_path(name: str) -> bool:
    """Whether a name in a manifest or archive could lead out of its folder, on any system."""
    parts = name.split("/")
    return name.strip("./") == "" or parts[0] == "" or ".." in parts or any(mark in name for mark in "\\:\0")


def check_overwrite(folder: str | os.PathLike[str], what: str = "model") -> Path:
    """Return where a folder is written, links followed; raise unless it is absent, empty or has a manifest."""
    target = Path(folder).resolve()
    if target.exists() and not target.is_dir():
        raise InvalidInputError(f"A {what} is a folder, and {folder} is a file. Choose another name.")
    if target.exists() and any(target.iterdir()) and not _is_ours(target):
        raise InvalidInputError(f"{folder} holds something other than a {what}. Choose a new folder.")
    if Path.cwd().is_relative_to(target):
        raise InvalidInputError(f"{target} is the current folder and cannot be replaced. Change to another folder.")
    check_outside(target)
    return target


def check_outside(path: str | os.PathLike[str]) -> None:
    """Raise if a path is inside a folder of ours: one more file there would make it unreadable."""
    folder = next((parent for parent in Path(path).resolve().parents if _is_ours(parent)), None)
    if folder is not None:
        raise InvalidInputError(f"{path} would be inside the model {folder}. Choose another place.")


def _is_ours(folder: Path) -> bool:
    """Whether a folder has a manifest of ours; a program for browsers also calls a file so."""
    try:
        with (folder / MANIFEST).open("rb") as file:
            return b'"written_by": "surelabel' in file.read(200)
    except OSError:
        return False


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str], mode: str = "w") -> Iterator[IO[Any]]:
    """Yield an open file ("w" for UTF-8 text, "wb") that replaces `path` if the block ends without an error."""
    options: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    target = Path(path).resolve()
    check_outside(target)
    if target.is_dir():
        raise InvalidInputError(f"{path} is a folder; a file cannot be written there. Choose another name.")
    if target.exists() and not target.is_file():  # such as /dev/null
        with target.open(mode, **options) as file:
            yield file
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(target)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=_prefix(target), suffix=".part")
    temporary = Path(name)
    try:
        with os.fdopen(handle, mode, **options) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(stat.S_IMODE(target.stat().st_mode) if target.exists() else 0o666 & ~_umask())
        temporary.replace(target)
        _sync(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary folder that replaces `path`, and all in it, if the block ends without an error."""
    target = Path(path).resolve()
    check_outside(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    _remove_leftovers(target)
    temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=_prefix(target), suffix=".part"))
    try:
        yield temporary
        for entry in temporary.rglob("*"):
            _sync(entry)
        temporary.chmod(0o777 & ~_umask())
        if not target.exists():
            temporary.replace(target)
        elif not _exchange(temporary, target):
            aside = temporary.with_suffix(".old")
            target.replace(aside)
            temporary.replace(target)
            shutil.rmtree(aside, ignore_errors=True)
        _sync(target.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two paths in one step; False where the system cannot (the old folder is then moved aside first)."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    return bool(rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0)


def _prefix(target: Path) -> str:
    return f".{target.name}.{os.getpid()}."


def _remove_leftovers(target: Path) -> None:
    """Remove temporary files of this target whose process was killed."""
    ours = re.compile(rf"\.{re.escape(target.name)}\.(\d+)\.\w+\.part")
    for entry in target.parent.iterdir():
        match = ours.fullmatch(entry.name)
        if match and not _is_running(int(match[1])):
            with contextlib.suppress(OSError):
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def _is_running(pid: int) -> bool:
    try:
        if os.name == "posix":
            os.kill(pid, 0)
    except (OSError, OverflowError) as error:
        return not isinstance(error, ProcessLookupError)
    return True


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync(path: Path) -> None:
    """Write a file or folder to the disk before it is renamed."""
    with contextlib.suppress(PermissionError):  # folders cannot be opened on Windows
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_manifest(folder: Path) -> None:
    """Write manifest.json: size and SHA-256 of every file in a folder and its subfolders."""
    files = {name: _described(folder / name) for name in sorted(_names(folder)) if name != MANIFEST}
    document: dict[str, Any] = {"written_by": f"surelabel {__version__}", "files": files}
    document["sha256"] = _own_checksum(document)
    (folder / MANIFEST).write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _described(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "sha256": sha256(path)}


def check_manifest(folder: Path) -> list[str]:
    """Return the names of the files in a folder, each verified in place; raise ArtifactError otherwise."""
    files = _manifest(folder)
    present = set(_names(folder)) - {MANIFEST}
    for name in sorted(present - set(files)):
        if not any(part.startswith(".") or part in _LITTER for part in PurePosixPath(name).parts):
            raise ArtifactError(f"{folder} is refused: {name!r} does not belong to it. Remove it if it is yours.")
    for name, expected in files.items():
        if is_unsafe_path(name):
            raise ArtifactError(f"{folder} is refused: it lists a file outside itself, {name!r}.")
        try:
            is_same = name in present and _described(folder / name) == expected
        except OSError as error:
            raise ArtifactError(f"{folder} is damaged: {name} cannot be read ({error.strerror}).") from error
        if not is_same:
            raise ArtifactError(f"{folder} is damaged: {name} is missing, or not as it was written. Get it again.")
    return sorted(files)


def _manifest(folder: Path) -> dict[str, Any]:
    """Return the files that a manifest lists."""
    path = folder / MANIFEST
    if not folder.is_dir():
        raise ArtifactError(f"There is no folder {folder}.")
    if path.is_symlink() or not path.is_file():
        raise ArtifactError(f"{folder} was not written by surelabel: it has no {MANIFEST}.")
    try:
        if path.stat().st_size > _MAX_MANIFEST:
            raise ValueError("it is too large")
        document = json.loads(path.read_text(encoding="utf-8"))
        files: dict[str, Any] = dict(document["files"])
        is_whole = document["sha256"] == _own_checksum(document)
    except (OSError, ValueError, TypeError, LookupError, RecursionError) as error:
        raise ArtifactError(f"{folder} is damaged: {MANIFEST} cannot be read ({error!r}).") from error
    if not is_whole:
        raise ArtifactError(f"{folder} is damaged: {MANIFEST} is not as it was written. Get it again.")
    return files


def _own_checksum(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a manifest without its own checksum."""
    rest = {name: value for name, value in document.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _names(folder: Path) -> Iterator[str]:
    """Yield the names of all files below a folder; links and devices are refused."""
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place, name)
            mode = path.lstat().st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                raise ArtifactError(f"{folder} is refused: {path.relative_to(folder)} is not a plain file.")
            if name in files:
                yield path.relative_to(folder).as_posix()


def write_arrays(path: str | os.PathLike[str], header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write an .npz file with a JSON header; `header["kind"]` names what the file holds."""
    if not isinstance(header.get("kind"), str):
        raise InvalidInputError(f"The header of {path} must have a string 'kind'. Got {header.get('kind')!r}.")
    described = np.array(json.dumps({"surelabel": __version__, **header, "arrays": sorted(arrays)}))
    with atomic_file(path, "wb") as stream, zipfile.ZipFile(stream, "w") as archive:
        for name, values in {"header": described, **arrays}.items():
            array = np.asanyarray(values)
            entry = zipfile.ZipInfo(f"{name}.npy")  # a fixed date: equal contents are equal bytes
            entry.compress_type = zipfile.ZIP_DEFLATED if array.nbytes <= _COMPRESSED_BYTES else zipfile.ZIP_STORED
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def read_arrays(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], Arrays]:
    """Read a file of `write_arrays`; sizes are checked before memory is taken, and nothing is unpickled."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            arrays = {entry.filename.removesuffix(".npy"): _read_array(archive, entry) for entry in entries}
        header = json.loads(str(arrays.pop("header")))
        if header.pop("arrays") != sorted(arrays) or len(arrays) + 1 != len(entries):
            raise ValueError("it does not hold the arrays that its header lists")
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        raise ArtifactError(f"{path} cannot be read: {error.strerror}.") from error
    except Exception as error:  # decompressors and parsers of damaged bytes raise anything
        raise ArtifactError(f"{path} is not a file of surelabel, or it is damaged: {error}") from error
    if header.get("kind") != kind:
        raise ArtifactError(f"{path} must be a file of kind {kind!r}. Got {header.get('kind')!r:.60}.")
    return header, arrays


def _read_array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> npt.NDArray[Any]:
    """Read one array if it is of plain values and as large as its header and its file say."""
    if entry.file_size > max(_COMPRESSED_BYTES + 2**16, entry.compress_size):
        raise ArtifactError(f"{entry.filename} claims {entry.file_size:,} bytes; {entry.compress_size:,} are stored.")
    with archive.open(entry) as stream:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(stream)
        claimed = stream.tell() + math.prod(shape) * dtype.itemsize
        if dtype.hasobject or claimed != entry.file_size:
            raise ArtifactError(f"{entry.filename} claims {claimed:,} bytes of {dtype}, but has {entry.file_size:,}.")
    with archive.open(entry) as stream:
        array: npt.NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
        stream.read(1)  # at the end the checksum is compared
    return array
