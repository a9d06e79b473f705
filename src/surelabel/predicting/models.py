"""Models in a process: loaded once, named by the checksum of what answers depend on."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from surelabel.conformal import ConformalLabelSets
from surelabel.exceptions import ArtifactError, DatasetError, InvalidInputError
from surelabel.models import Bundle, BundleInfo, load_bundle
from surelabel.models.folder import CARD, EVALUATION, FORCED, PREDICTOR, REPORT, check_folder
from surelabel.tables.texts import InputColumns

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


def predictor_of(folder: Path) -> ConformalLabelSets:
    """Return the predictor of a bundle, without loading its classifier."""
    return ConformalLabelSets.load(folder / PREDICTOR)


def with_groups_of(folder: Path, columns: InputColumns) -> InputColumns:
    """Return columns with the one that says the group of each text, if a bundle is calibrated by groups.

    Rows whose group the bundle does not know are then reported when they are read.
    """
    try:
        categories = predictor_of(folder).calibration_.categories
    except (ArtifactError, OSError):
        return columns  # loading the bundle says what is wrong with it
    if categories is None or not categories.taxonomy.by_group:
        if columns.group is not None:
            raise InvalidInputError(f"The model is not calibrated by groups. Got the column {columns.group!r}.")
        return columns
    column = columns.group or BundleInfo.from_dict(check_folder(folder).get("info")).group_column
    if column is None:
        raise InvalidInputError(
            "The model is calibrated by groups, but does not know the column that says them. Name it with --by."
        )
    return dataclasses.replace(columns, group=column, groups=None if categories.has_others else categories.groups)


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
