"""Models in a process: loaded once, named by the checksum of what answers depend on."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from surelabel.conformal import ConformalLabelSets
from surelabel.exceptions import DatasetError
from surelabel.models import Bundle, load_bundle
from surelabel.models.folder import CARD, EVALUATION, FORCED, PREDICTOR, REPORT, check_folder

# What is known of a model beside its answers.
_NOT_USED = {CARD, EVALUATION, FORCED, REPORT}
_lock = threading.Lock()
_folders: dict[str, Path] = {}
_loaded: dict[str, Bundle] = {}


@contextlib.contextmanager
def bundle_folder(bundle: Bundle | str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the folder of a bundle; one that is only in memory is written to a temporary folder."""
    if not isinstance(bundle, Bundle):
        yield Path(bundle)
        return
    with tempfile.TemporaryDirectory(prefix="surelabel-") as name:
        yield bundle.save(Path(name) / "model")


def model_checksum(folder: Path) -> str:
    """Return a checksum of all that answers depend on, after checking every file of a bundle."""
    files = check_folder(folder)["files"]
    used = {name: files[name]["sha256"] for name in files if name not in _NOT_USED}
    return hashlib.sha256(json.dumps(used, sort_keys=True).encode()).hexdigest()


def label_names_of(folder: Path) -> tuple[str, ...]:
    """Return the label names of a bundle, without loading its classifier."""
    return ConformalLabelSets.load(folder / PREDICTOR).calibration_.label_names or ()


def place_model(checksum: str, folder: Path) -> None:
    """Say where the files of a model are; it is loaded when it is first needed."""
    with _lock:
        _folders[checksum] = folder


def model_of(checksum: str) -> Bundle:
    """Return a model that was placed, loaded once in this process."""
    with _lock:
        if checksum not in _loaded:
            if checksum not in _folders:
                raise DatasetError("A worker does not have the model. Run again with --resume.")
            _loaded[checksum] = load_bundle(_folders[checksum])
        return _loaded[checksum]


def forget_model(checksum: str) -> None:
    """Free what a model takes in this process."""
    with _lock:
        _folders.pop(checksum, None)
        _loaded.pop(checksum, None)
