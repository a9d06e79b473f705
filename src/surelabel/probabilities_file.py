"""The seam between text classifiers and conformal prediction: probabilities of the parts of a corpus, in one file.

A classifier is run once; every measure, calibration and figure starts from this file. It holds numbers and strings only
and is read without pickle.
"""

from __future__ import annotations

import itertools
import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from surelabel._core import files
from surelabel._core.validation import as_names, as_probabilities, check_count, label_places
from surelabel.labels.shortlists import Shortlists
from surelabel.predictor_file import as_artifact_error

_KIND = "probabilities"


@dataclass(frozen=True, eq=False)
class PartProbabilities:
    """One part of a corpus.

    Attributes
    ----------
    probabilities : (n, d) float64 or Shortlists
    labels : (n, d) csr_array of bool
    ids : tuple of str
    unknown : dict of int to tuple of str
        By text: true labels that the classifier does not know.
    """

    probabilities: Any
    labels: Any
    ids: tuple[str, ...]
    unknown: dict[int, tuple[str, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def from_label_sets(
        cls, probabilities: Any, label_sets: Any, label_names: Any, ids: Any = None
    ) -> PartProbabilities:
        """Return a part from label-sets of names, known and unknown ones."""
        rows, columns, outside = label_places(
            label_sets, len(probabilities), len(label_names), tuple(label_names), "part"
        )
        known = frozenset(label_names)
        unknown = {row: tuple(sorted(set(label_sets[row]) - known)) for row in np.flatnonzero(outside).tolist()}
        ids = range(len(label_sets)) if ids is None else ids
        shape = (len(label_sets), len(label_names))
        return cls(probabilities, _as_csr(rows, columns, shape), tuple(map(str, ids)), unknown)

    def label_sets(self, label_names: tuple[str, ...]) -> list[frozenset[str]]:
        """Return the true label-sets, unknown labels among them."""
        starts, columns = self.labels.indptr.tolist(), self.labels.indices.tolist()
        return [
            frozenset([*(label_names[k] for k in columns[start:end]), *self.unknown.get(row, ())])
            for row, (start, end) in enumerate(itertools.pairwise(starts))
        ]

    def rows(self, rows: Any) -> PartProbabilities:
        """Return some of the texts, by an array of their numbers."""
        numbers = np.asarray(rows)
        unknown = {new: self.unknown[old] for new, old in enumerate(numbers.tolist()) if old in self.unknown}
        ids = tuple(self.ids[row] for row in numbers.tolist())
        return PartProbabilities(self.probabilities[numbers], self.labels[numbers], ids, unknown)


@dataclass(frozen=True, eq=False)
class Probabilities:
    """A classifier's probabilities on parts of a corpus that it was not trained on.

    Attributes
    ----------
    parts : dict of str to PartProbabilities
        "filing", "calibration", "test" and others.
    label_names : tuple of str
    max_labels : int
        The largest number of labels of a training text, the paper's l.
    settings : dict
        What they were made with, as plain values.
    """

    parts: dict[str, PartProbabilities]
    label_names: tuple[str, ...]
    max_labels: int
    settings: dict[str, Any] = field(default_factory=dict)

    def resplit(self, seed: int, names: tuple[str, ...] = ("calibration", "test")) -> list[PartProbabilities]:
        """Pool some parts and split them again at random, keeping the sizes.

        This makes their texts exchangeable, whatever their dates. The classifier saw none of them, so it need not be
        trained again.
        """
        pool = _joined([self.parts[name] for name in names])
        order = np.random.default_rng(seed).permutation(len(pool))
        ends = np.cumsum([len(self.parts[name]) for name in names])
        return [pool.rows(order[end - len(self.parts[name]) : end]) for name, end in zip(names, ends, strict=True)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one file."""
        header: dict[str, Any] = {
            "kind": _KIND,
            "label_names": self.label_names,
            "max_labels": self.max_labels,
            "settings": self.settings,
            "parts": {
                name: [[row, *labels] for row, labels in part.unknown.items()] for name, part in self.parts.items()
            },
        }
        arrays: dict[str, Any] = {}
        for name, part in self.parts.items():
            given = part.probabilities
            if isinstance(given, Shortlists):
                listed = np.where(given.is_listed, given.labels, -1)
                arrays |= {f"{name}.listed": listed, f"{name}.probabilities": given.probabilities}
            else:
                arrays[f"{name}.probabilities"] = given
            labels = csr_array(part.labels)
            arrays |= {f"{name}.starts": labels.indptr, f"{name}.labels": labels.indices}
            arrays[f"{name}.ids"] = np.array(part.ids, dtype=np.str_)
        files.write_arrays(path, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Probabilities:
        """Read a file made by `save`; no code from the file is run."""
        header, arrays = files.read_arrays(path, _KIND)
        with as_artifact_error(path):
            names = as_names(header["label_names"], len(header["label_names"]), "load") or ()
            check_count("max_labels", header["max_labels"], "load", 0, 2**31)
            settings = dict(header["settings"])
            parts = {name: _read_part(arrays, name, len(names), unknown) for name, unknown in header["parts"].items()}
        return cls(parts, names, header["max_labels"], settings)


def _read_part(arrays: dict[str, Any], name: str, n_labels: int, unknown: Any) -> PartProbabilities:
    """Read and check one part."""
    values, ids = arrays[f"{name}.probabilities"], tuple(arrays[f"{name}.ids"].tolist())
    if f"{name}.listed" in arrays:
        probabilities: Any = Shortlists(arrays[f"{name}.listed"], values, n_labels)
    else:
        probabilities = as_probabilities(values, None, "load", n_labels)
    starts, columns = arrays[f"{name}.starts"], arrays[f"{name}.labels"]
    if len(ids) != len(probabilities) or starts.shape != (len(ids) + 1,):
        raise ValueError(f"its part {name!r} has texts without labels")
    labels = csr_array((np.ones(len(columns), dtype=np.bool_), columns, starts), shape=(len(ids), n_labels))
    labels.check_format(full_check=True)
    outside = {}
    for row, *some in unknown:
        check_count("row", row, "load", 0, len(ids) - 1)
        outside[row] = tuple(map(str, some))
    return PartProbabilities(probabilities, labels, ids, outside)


def _joined(parts: list[PartProbabilities]) -> PartProbabilities:
    """Return several parts as one."""
    unknown, start = {}, 0
    for part in parts:
        unknown.update({start + row: labels for row, labels in part.unknown.items()})
        start += len(part)
    probabilities = stacked([part.probabilities for part in parts])
    ids = tuple(identity for part in parts for identity in part.ids)
    return PartProbabilities(probabilities, vstack([part.labels for part in parts], format="csr"), ids, unknown)


def stacked(probabilities: list[Any]) -> Any:
    """Return probabilities of several parts below each other."""
    if not isinstance(probabilities[0], Shortlists):
        return np.concatenate(probabilities)
    width = max(part.labels.shape[1] for part in probabilities)
    labels, values = [], []
    for part in probabilities:
        missing = ((0, 0), (0, width - part.labels.shape[1]))
        labels.append(np.pad(np.where(part.is_listed, part.labels, -1), missing, constant_values=-1))
        values.append(np.pad(part.probabilities, missing))
    return Shortlists(np.concatenate(labels), np.concatenate(values), probabilities[0].n_labels)


def _as_csr(rows: Any, columns: Any, shape: tuple[int, int]) -> Any:
    """Return places of labels as a CSR array of bool."""
    return csr_array((np.ones(len(rows), dtype=np.bool_), (rows, columns)), shape=shape)
