"""The file of a calibrated predictor: arrays and a JSON header, never a pickle.

The header has the parameters; `totals` the calibration totals, category after category; `seen` and `counts` the
label-sets of a mixture, `refinement` the table of its refinement. A measure of a user's own is stored by name, with its
costs at a few probabilities (`probe`), against which the one given to `load` is checked.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np

from surelabel._core.validation import FloatArray
from surelabel.calibration import Calibration
from surelabel.exceptions import ArtifactError
from surelabel.guarantees.groups import ByCardinality, ByGroup
from surelabel.labels.constraints import LabelConstraints
from surelabel.measures.base import SeparableMeasure
from surelabel.measures.mixture import PARAMETERS, Mixture
from surelabel.measures.seen import SeenLabelSets
from surelabel.measures.separable import LogLoss, LpNorm

KIND = "predictor"
_PLAIN = ("min_labels", "max_labels", "search", "work_limit", "n_jobs")
_MEASURES = {"LpNorm": LpNorm, "LogLoss": LogLoss}
_TAXONOMIES = {"ByGroup": ByGroup, "ByCardinality": ByCardinality}


class StoredPredictor(NamedTuple):
    """Contents of a file: constructor parameters, number of labels, totals by category, texts outside candidates."""

    parameters: dict[str, Any]
    n_labels: int
    totals: dict[tuple[str, int], FloatArray]
    n_outside: int


@contextmanager
def as_artifact_error(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn whatever damaged contents of a file raise into an ArtifactError."""
    try:
        yield
    except ArtifactError:
        raise
    except Exception as error:  # a header can hold anything
        raise ArtifactError(f"{os.fspath(path)} is damaged: {error}. Save it again.") from error


def measure_to_plain(measure: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a measure as plain values for JSON, and as arrays."""
    name = type(measure).__name__
    if isinstance(measure, Mixture):
        seen = measure.fitted
        described = {"class": "Mixture", **measure.parameters, "label_names": seen.label_names}
        refined = {} if measure.refinement is None else {"refinement": measure.refinement.table}
        return described, {"seen": np.packbits(seen.members, axis=1), "counts": seen.counts, **refined}
    known = type(measure) in _MEASURES.values()
    return {"class": name} | ({one.name: getattr(measure, one.name) for one in fields(measure)} if known else {}), {}


def measure_from_plain(described: dict[str, Any], arrays: dict[str, Any], n_labels: int, given: Any = None) -> Any:
    """Return the measure of `measure_to_plain`, or the one given in place of a user's own."""
    values = {name: value for name, value in described.items() if name != "class"}
    name = described["class"]
    if given is not None:
        return given
    if name in _MEASURES:
        return _MEASURES[name](**values)
    if name != "Mixture":
        raise ArtifactError(f"It was made with a measure of your own, {name!r}. Pass it as load(..., measure=...).")
    packed, counts, names = arrays["seen"], arrays["counts"], values.pop("label_names")
    if packed.dtype != np.uint8 or packed.shape != (len(counts), -(-n_labels // 8)):
        raise ValueError("its label-sets are not those of its labels")
    if counts.dtype != np.int64 or counts.ndim != 1 or not len(counts) or counts.min() < 1:
        raise ValueError("its label-sets have no numbers of texts")
    members = np.unpackbits(packed, axis=1, count=n_labels).astype(np.bool_)
    seen = SeenLabelSets(members, counts, None if names is None else tuple(map(str, names)))
    refinement = None
    if "refinement" in arrays:
        from surelabel.measures.refinement import Refinement  # noqa: PLC0415 (slow to import, and few mixtures need it)

        if arrays["refinement"].dtype != np.float64:
            raise ValueError("its refinement is not a table of float64 numbers")
        refinement = Refinement(arrays["refinement"])
    return Mixture(**{name: values[name] for name in PARAMETERS}, seen=seen, refinement=refinement)


def _probe(measure: Any, n_labels: int) -> Any:
    """Return a measure's costs at a few probabilities, in units."""
    probabilities = np.repeat(np.linspace(0, 1, 5)[:, None], n_labels, axis=1)
    if isinstance(measure, Mixture):  # sums of a refinement may differ in the last bit on other processors
        measure = replace(measure, refinement=None)
    return measure.in_units(probabilities, measure.units(n_labels)).by_column()


def to_arrays(calibration: Calibration, parameters: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a calibration and constructor parameters as a header of plain values, and arrays."""
    measure, arrays = measure_to_plain(calibration.measure)
    taxonomy, constraints = calibration.taxonomy, calibration.constraints
    header = {
        "kind": KIND,
        **{name: parameters[name] for name in _PLAIN},
        "measure": measure,
        "constraints": None if constraints is None else constraints.to_dict(),
        "taxonomy": None if taxonomy is None else {"class": type(taxonomy).__name__, "edges": list(taxonomy.edges)},
        "label_names": calibration.label_names,
        "n_labels": calibration.n_labels,
        "n_outside": calibration.n_outside,
        "categories": [[group, place, len(totals)] for (group, place), totals in calibration.totals.items()],
    }
    totals = np.concatenate([np.empty(0), *calibration.totals.values()])
    return header, {"totals": totals, "probe": _probe(calibration.measure, calibration.n_labels), **arrays}


def from_arrays(header: dict[str, Any], arrays: dict[str, Any], given: SeparableMeasure | None) -> StoredPredictor:
    """Return the contents of `to_arrays`, checked; whatever is damaged raises some error."""
    n_labels, names = header["n_labels"], header["label_names"]
    n_outside, taxonomy = header["n_outside"], header["taxonomy"]
    if not all(isinstance(value, int) and value >= 0 for value in (n_labels, n_outside)):
        raise ValueError("its header is not that of a predictor")
    measure = measure_from_plain(header["measure"], arrays, n_labels, given)
    if not np.array_equal(_probe(measure, n_labels), arrays["probe"]):
        raise ArtifactError(f"It was made with another measure than {measure!r}: their costs differ.")
    parameters = {name: header[name] for name in _PLAIN} | {"measure": measure, "label_names": names}
    rules = header["constraints"]
    parameters["constraints"] = None if rules is None else LabelConstraints.from_dict(rules)
    parameters["taxonomy"] = None
    if taxonomy is not None:
        edges = (taxonomy["edges"],) if taxonomy["edges"] else ()
        parameters["taxonomy"] = _TAXONOMIES[taxonomy["class"]](*edges)
    return StoredPredictor(parameters, n_labels, _totals(header["categories"], arrays["totals"]), n_outside)


def _totals(categories: list[Any], totals: FloatArray) -> dict[tuple[str, int], FloatArray]:
    """Return totals by category."""
    sizes = [size for _, _, size in categories]
    if totals.dtype != np.float64 or totals.ndim != 1 or not (totals >= 0).all() or min(sizes, default=1) < 1:
        raise ValueError("its totals are not numbers from 0 to infinity")
    if sum(sizes) != len(totals) or any(type(place) is not int for _, place, _ in categories):
        raise ValueError("its categories are not those of its totals")
    parts = np.split(totals, np.cumsum(sizes)[:-1]) if sizes else []
    keys = [(str(group), place) for group, place, _ in categories]
    return {key: np.sort(part) for key, part in zip(keys, parts, strict=True)}
