"""The file of a calibrated predictor: an `.npz` with a header, never a pickle.

The header holds the parameters, the measure as plain values and the label names; `totals` are the calibration totals.
A measure that is not one of ours is stored by name only, with its costs at a few probabilities (`probe`), against which
the one given to `load` is checked. A fitted measure keeps what it learnt in arrays of its own (`measure.*`); files with
such arrays, or with constraints, are of format version 2.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel._core.npz_file import Arrays, NpzFormat
from surelabel._core.validation import FloatArray, as_label_names, check_limits
from surelabel.calibration import Calibration
from surelabel.engines import SEARCHES
from surelabel.exceptions import ArtifactError
from surelabel.labels.constraints import LabelConstraints
from surelabel.measures import Measure, SeparableMeasure, check_measure, measure_from_spec, measure_to_spec, probe_costs
from surelabel.measures.hubs import Hubs
from surelabel.measures.listing import SeenLabelSets
from surelabel.measures.mahalanobis import Mahalanobis
from surelabel.measures.mixture import PARAMETERS, Mixture
from surelabel.measures.odds import RefinedOdds
from surelabel.measures.penalised import WEIGHTS, Penalised
from surelabel.taxonomies.categories import Categories
from surelabel.taxonomies.kinds import Taxonomy

_MEASURE_ARRAYS = {
    "matrix": (np.float64, 2),
    "label_sets": (np.uint8, 2),
    "counts": (np.int64, 1),
    "starts": (np.int64, 1),
    "indices": (np.int64, 1),
    "odds": (np.float64, 2),
    "hubs": (np.int64, 1),
    "effects": (np.float64, 2),
}
_FORMAT = NpzFormat(
    "surelabel-predictor",
    3,
    "a surelabel predictor",
    ("totals", "probe"),
    ("categories", *(f"measure.{name}" for name in _MEASURE_ARRAYS)),
)
_PARAMETERS = ("min_labels", "max_labels", "search", "work_limit", "n_jobs")


def _probe(measure: Measure, n_labels: int) -> FloatArray:
    """Return a measure's costs at a few probabilities, or totals of a few label-sets if it has no costs."""
    if isinstance(measure, SeparableMeasure):
        return probe_costs(measure)
    places = np.arange(4 * n_labels).reshape(4, n_labels)
    return measure.totals((places * 7 % 17) / 17.0, places % 3 == 0)[None, :]


def predictor_to_bytes(parameters: dict[str, Any], calibration: Calibration) -> bytes:
    """Return the file of a calibrated predictor: other files hold predictors too."""
    # What a fitted measure of ours has learnt.
    measure = calibration.measure
    arrays = measure.arrays() if isinstance(measure, (Mahalanobis, Mixture, Penalised)) else {}
    header: dict[str, Any] = {
        "version": 2 if arrays or calibration.constraints is not None else 1,
        "parameters": {name: _plain(parameters[name]) for name in _PARAMETERS},
        "measure": measure_to_spec(measure),
        "n_labels": calibration.n_labels,
        "label_names": calibration.label_names,
    }
    if calibration.constraints is not None:
        header["constraints"] = calibration.constraints.to_dict()
    arrays = {f"measure.{name}": array for name, array in arrays.items()}
    if calibration.categories is not None:
        divided = calibration.categories.totals
        header["version"] = 3
        header["taxonomy"] = calibration.categories.taxonomy.to_spec()
        header["categories"] = [[group, kind, len(part)] for (group, kind), part in divided.items()]
        arrays["categories"] = np.concatenate(list(divided.values()))
    probe = _probe(measure, calibration.n_labels)
    return _FORMAT.to_bytes(header, {"totals": calibration.totals, "probe": probe, **arrays})


def _plain(value: Any) -> Any:
    """Return numpy's integers as Python's, everything else as it is."""
    return int(value) if isinstance(value, np.integer) else value


def _typed(arrays: Arrays, name: str, n_dimensions: int, dtype: Any = np.float64) -> npt.NDArray[Any]:
    """Return an array of a type; others are refused."""
    array = arrays[name]
    if array.dtype != dtype or array.ndim != n_dimensions:
        raise ValueError(f"{name} holds {array.dtype} values in {array.ndim} dimensions")
    return array


def _categories(header: dict[str, Any], stored: Arrays, totals: FloatArray, n_labels: int) -> Categories | None:
    """Return the totals by category, if the file has a taxonomy."""
    if header.get("taxonomy") is None:
        return None
    taxonomy = Taxonomy.from_spec(header["taxonomy"])
    taxonomy.check_labels(n_labels, who="load")
    divided: dict[tuple[str, int], FloatArray] = {}
    together, start = _typed(stored, "categories", 1), 0
    for group, kind, size in header["categories"]:
        if type(kind) is not int or not 0 <= kind < taxonomy.n_kinds or type(size) is not int or size < 1:
            raise ValueError("its categories are not those of its taxonomy")
        divided[str(group), kind] = np.sort(together[start : start + size])
        start += size
    if start != len(together) or not np.array_equal(np.sort(together), np.sort(totals)):
        raise ValueError("its categories do not hold its calibration texts")
    return Categories(taxonomy, divided)


def _stored_measure(spec: dict[str, Any], arrays: Arrays) -> Measure | None:
    """Make a measure from its description and arrays; None if a user's own is in it."""
    if spec.get("kind") == "mahalanobis":
        return Mahalanobis(arrays["matrix"])
    if spec.get("kind") == "mixture":
        seen = SeenLabelSets(arrays["starts"], arrays["indices"], arrays["counts"], spec["n_labels"])
        odds = RefinedOdds(arrays["odds"]) if "odds" in arrays else None
        hubs = Hubs(arrays["hubs"], arrays["effects"]) if "hubs" in arrays else None
        return Mixture(**{name: spec[name] for name in PARAMETERS if name in spec}, seen=seen, odds=odds, hubs=hubs)
    if spec.get("kind") != "penalised":
        return measure_from_spec(spec)
    base = _stored_measure(spec["measure"], arrays)
    if base is None:
        return None
    weights = {name: spec[name] for name in WEIGHTS}
    return Penalised(base, **weights, label_sets=arrays["label_sets"], counts=arrays["counts"])


def _measure(header: dict[str, Any], given: Measure | None, arrays: Arrays, probe: FloatArray, path: Path) -> Measure:
    """Return the file's measure, or the one given for it, if it is the same."""
    stored = _stored_measure(header["measure"], arrays)
    if stored is None and given is None:
        raise ArtifactError(
            f"{path} was made with a measure of your own, {header['measure'].get('name')!r}. "
            "Pass it as load(..., measure=...)."
        )
    measure = given if given is not None else stored
    assert measure is not None
    check_measure(measure, who="load")
    n_labels = header["n_labels"]
    fits = type(n_labels) is int and n_labels >= 1 and getattr(measure, "n_labels", n_labels) == n_labels
    if not fits or not np.array_equal(_probe(measure, n_labels), probe):
        raise ArtifactError(f"{path} was made with another measure than {measure!r}: their costs differ.")
    return measure


def predictor_from_bytes(data: bytes, file: Path, given: Measure | None) -> tuple[dict[str, Any], Calibration]:
    """Return constructor parameters and the calibration of a file's bytes; `file` is where they were, for messages."""
    try:
        header, stored = _FORMAT.from_bytes(data, file)
        totals, probe = _typed(stored, "totals", 1), _typed(stored, "probe", 2)
        learnt = {
            name: _typed(stored, f"measure.{name}", n_dimensions, dtype)
            for name, (dtype, n_dimensions) in _MEASURE_ARRAYS.items()
            if f"measure.{name}" in stored
        }
        measure = _measure(header, given, learnt, probe, file)
        parameters = {name: header["parameters"][name] for name in _PARAMETERS}
        n_labels = header["n_labels"]
        if type(n_labels) is not int or n_labels < 1 or len(header["parameters"]) != len(_PARAMETERS):
            raise ValueError("its header is not that of a predictor")
        names = as_label_names(header["label_names"], n_labels, who="load")
        check_limits(parameters["min_labels"], parameters["max_labels"], who="load", n_labels=n_labels)
        constraints = None
        if header.get("constraints") is not None:
            constraints = LabelConstraints.from_dict(header["constraints"]).resolved(names, n_labels)
        if parameters["search"] not in SEARCHES or len(totals) == 0 or not np.all((totals >= 0) & (totals < np.inf)):
            raise ValueError("its values are not those of a predictor")
        categories = _categories(header, stored, totals, n_labels)
    except ArtifactError:
        raise
    except Exception as error:  # a header can hold anything
        raise ArtifactError(f"{file} is damaged: {error}. Save the predictor again.") from error
    most = n_labels if parameters["max_labels"] is None else min(parameters["max_labels"], n_labels)
    limits = parameters["min_labels"], most
    calibration = Calibration(measure, totals, n_labels, *limits, names, constraints, categories)
    taxonomy = None if categories is None else categories.taxonomy
    described = {"measure": measure, "label_names": names, "constraints": constraints, "taxonomy": taxonomy}
    return {**parameters, **described}, calibration
