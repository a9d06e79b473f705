"""The file of a calibrated predictor: a zip archive of `header.json` and one array a `.npy`, never a pickle.

`header.json` holds the format's name and version, the parameters, the measure as plain values and the label
names; `totals.npy` the calibration totals. A measure that is not one of ours is stored by name only, with its
costs at a few probabilities (`probe.npy`), against which the one given to `load` is checked.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from surelabel._declared import check_arrays
from surelabel._storage import atomic_file
from surelabel._validation import FloatArray, as_label_names, check_limits
from surelabel._version import __version__
from surelabel.calibration import Calibration
from surelabel.exceptions import ArtifactError
from surelabel.measures import (
    SeparableMeasure,
    check_measure,
    costs_of,
    measure_from_spec,
    measure_to_spec,
)
from surelabel.searches import SEARCHES

__all__ = ["read_predictor", "write_predictor"]

_FORMAT = "surelabel-predictor"
_VERSION = 1
# The header is small; one that claims more is not ours.
_MAX_HEADER = 64 * 2**20
_PROBE = np.linspace(0.0, 1.0, 17)[None, :]
_ENTRIES = {"header.json", "totals.npy", "probe.npy"}
_PARAMETERS = ("min_labels", "max_labels", "search", "work_limit", "n_jobs")


def _npy(array: FloatArray) -> bytes:
    """Return an array in numpy's format."""
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def _probe(measure: SeparableMeasure) -> FloatArray:
    """Return a measure's costs at a few probabilities."""
    return np.vstack(costs_of(measure, _PROBE.copy()))


def write_predictor(path: str | os.PathLike[str], parameters: dict[str, Any], calibration: Calibration) -> None:
    """Write a calibrated predictor whole or not at all."""
    header = {
        "format": _FORMAT,
        "version": _VERSION,
        "surelabel": __version__,
        "parameters": {name: _plain(parameters[name]) for name in _PARAMETERS},
        "measure": measure_to_spec(calibration.measure),
        "n_labels": calibration.n_labels,
        "label_names": calibration.label_names,
    }
    with atomic_file(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(header, indent=1))
        archive.writestr("totals.npy", _npy(calibration.totals))
        archive.writestr("probe.npy", _npy(_probe(calibration.measure)))


def _plain(value: Any) -> Any:
    """Return numpy's integers as Python's, everything else as it is."""
    return int(value) if isinstance(value, np.integer) else value


def _array(archive: zipfile.ZipFile, name: str, n_dimensions: int) -> FloatArray:
    """Read one float64 array; anything else is refused."""
    with archive.open(name) as stream:
        array = np.lib.format.read_array(stream, allow_pickle=False)
    if array.dtype != np.float64 or array.ndim != n_dimensions:
        raise ValueError(f"{name} holds {array.dtype} values in {array.ndim} dimensions")
    return array


def _header(archive: zipfile.ZipFile, path: Path) -> dict[str, Any]:
    """Read the header and refuse what is not ours or newer than we are."""
    names = archive.namelist()
    if sorted(names) != sorted(_ENTRIES):
        raise ArtifactError(f"{path} is not a surelabel predictor: it holds {sorted(names)[:5]}.")
    if archive.getinfo("header.json").file_size > _MAX_HEADER:
        raise ArtifactError(f"{path} is not a surelabel predictor: its header claims to be too large.")
    header = json.loads(archive.read("header.json"))
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise ArtifactError(f"{path} is not a surelabel predictor.")
    if header.get("version") != _VERSION:
        raise ArtifactError(
            f"{path} is a predictor of format version {header.get('version')!r}, written by surelabel "
            f"{header.get('surelabel')!r}; this is surelabel {__version__}, which reads version {_VERSION}. "
            "Update surelabel to load it."
        )
    return header


def _measure(header: dict[str, Any], given: SeparableMeasure | None, probe: FloatArray, path: Path) -> SeparableMeasure:
    """Return the file's measure, or the one given for it, if it is the same."""
    stored = measure_from_spec(header["measure"])
    if stored is None and given is None:
        raise ArtifactError(
            f"{path} was made with a measure of your own, {header['measure'].get('name')!r}. "
            "Pass it as load(..., measure=...)."
        )
    measure = given if given is not None else stored
    assert measure is not None
    check_measure(measure, who="load")
    if not np.array_equal(_probe(measure), probe):
        raise ArtifactError(f"{path} was made with another measure than {measure!r}: their costs differ.")
    return measure


def read_predictor(path: str | os.PathLike[str], given: SeparableMeasure | None) -> tuple[dict[str, Any], Calibration]:
    """Read a calibrated predictor; return constructor parameters and the calibration."""
    file = Path(path)
    data = io.BytesIO(file.read_bytes())
    try:
        with zipfile.ZipFile(data) as archive:
            header = _header(archive, file)
            check_arrays(archive, file)
            totals = _array(archive, "totals.npy", 1)
            probe = _array(archive, "probe.npy", 2)
        measure = _measure(header, given, probe, file)
        parameters = {name: header["parameters"][name] for name in _PARAMETERS}
        n_labels = header["n_labels"]
        if type(n_labels) is not int or n_labels < 1 or len(header["parameters"]) != len(_PARAMETERS):
            raise ValueError("its header is not that of a predictor")
        names = as_label_names(header["label_names"], n_labels, who="load")
        check_limits(parameters["min_labels"], parameters["max_labels"], who="load", n_labels=n_labels)
        if parameters["search"] not in SEARCHES or len(totals) == 0 or not np.all((totals >= 0) & (totals < np.inf)):
            raise ValueError("its values are not those of a predictor")
    except ArtifactError:
        raise
    except (zipfile.BadZipFile, EOFError) as error:
        raise ArtifactError(f"{file} is not a surelabel predictor, or it is damaged or truncated: {error}.") from error
    except Exception as error:  # decompressors and parsers of damaged bytes raise what they like
        raise ArtifactError(f"{file} is damaged: {error}. Save the predictor again.") from error
    most = n_labels if parameters["max_labels"] is None else min(parameters["max_labels"], n_labels)
    calibration = Calibration(measure, totals, n_labels, parameters["min_labels"], most, names)
    return {**parameters, "measure": measure, "label_names": names}, calibration
