"""The seam between text classifiers and conformal prediction: probabilities of the parts of a corpus, in one `.npz`.

A classifier is run once; every measure, calibration and figure starts from this file. It holds numbers and strings only
and is read without pickle.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from surelabel._core.npz_file import NpzFormat
from surelabel._core.validation import as_label_names, as_labels, as_probabilities
from surelabel.exceptions import ArtifactError
from surelabel.labels.sparse import SparseProbabilities, as_sparse_labels, is_sparse, stacked

_FORMAT = NpzFormat("surelabel-probabilities", 1, "a file of probabilities", optional=None)


@dataclasses.dataclass(frozen=True, eq=False)
class PartProbabilities:
    """Probabilities (n, d) float64, labels (n, d) bool and text ids of one part of a corpus.

    Of very many labels both are sparse: `SparseProbabilities`, and a bool CSR array. `groups` are those of the texts
    if a bundle is calibrated by groups; files do not hold them.
    """

    probabilities: Any
    labels: Any
    ids: tuple[str, ...]
    groups: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.probabilities)


@dataclasses.dataclass(frozen=True, eq=False)
class Probabilities:
    """A classifier's probabilities on the parts of a corpus.

    `parts` are "calibration" and "test", and "validation" if there is one; `max_labels` is the largest number of labels
    of a proper training text, the paper's l; `settings` say what they were made with, in plain values.
    """

    parts: dict[str, PartProbabilities]
    label_names: tuple[str, ...]
    max_labels: int
    settings: dict[str, Any]

    def redivided(self, seed: int) -> tuple[PartProbabilities, PartProbabilities]:
        """Return calibration and test texts shuffled together and divided anew, of the same numbers.

        This makes them exchangeable, whatever their dates. The classifier saw neither part, so it need not be trained
        again.
        """
        parts = [self.parts["calibration"], self.parts["test"]]
        pool = stacked([part.probabilities for part in parts])
        truths = [part.labels for part in parts]
        labels = vstack(truths, format="csr") if is_sparse(truths[0]) else np.vstack(truths)
        ids = [identity for part in parts for identity in part.ids]
        order = np.random.default_rng(seed).permutation(len(pool))
        halves = order[: len(parts[0])], order[len(parts[0]) :]
        first, second = (PartProbabilities(pool[rows], labels[rows], tuple(ids[i] for i in rows)) for rows in halves)
        return first, second

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of it to one file, whole or not at all."""
        header: dict[str, Any] = {
            "label_names": self.label_names,
            "max_labels": self.max_labels,
            "settings": self.settings,
        }
        header["parts"] = list(self.parts)
        arrays: dict[str, Any] = {}
        for name, part in self.parts.items():
            arrays |= {f"{name}.{what}": array for what, array in _arrays_of(part).items()}
        _FORMAT.write(path, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Probabilities:
        """Read a file made by `save`; anything else is refused."""
        header, arrays = _FORMAT.read(path)
        try:
            names = as_label_names(header["label_names"], len(header["label_names"]), who="load") or ()
            parts = {name: _read_part(arrays, name, len(names)) for name in header["parts"]}
            return cls(parts, names, int(header["max_labels"]), header["settings"])
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ArtifactError(f"{path} is not a file of probabilities, or it is damaged: {error}.") from error


def _arrays_of(part: PartProbabilities) -> dict[str, Any]:
    """Return one part as arrays by name; sparse ones as what they list: nothing of the size of all labels."""
    given = part.probabilities
    ids = {"ids": np.array(part.ids)}
    if not isinstance(given, SparseProbabilities):
        return {"probabilities": given, "labels": np.packbits(part.labels, axis=1), **ids}
    listed = {"starts": given.starts, "listed": given.labels, "values": given.values}
    labels = as_sparse_labels(part.labels, who="save", shape=given.shape)
    truth = {"label_starts": labels.indptr, "label_indices": labels.indices}
    return {**listed, "unlisted": np.array(given.unlisted), **truth, **ids}


def _read_sparse_part(arrays: Any, name: str, n_labels: int) -> PartProbabilities:
    """Read and check one part with sparse probabilities."""
    starts, listed, values, unlisted, ends, indices = (
        arrays[f"{name}.{what}"] for what in ("starts", "listed", "values", "unlisted", "label_starts", "label_indices")
    )
    shape = (len(starts) - 1, n_labels)
    probable = csr_array((values, listed, starts), shape=shape)
    truth = csr_array((np.ones(len(indices), dtype=np.bool_), indices, ends), shape=shape)
    for matrix in (probable, truth):
        matrix.check_format(full_check=True)
    labels = as_sparse_labels(truth, who="load", shape=shape)
    return PartProbabilities(
        SparseProbabilities(probable, float(unlisted)), labels, tuple(arrays[f"{name}.ids"].tolist())
    )


def _read_part(arrays: Any, name: str, n_labels: int) -> PartProbabilities:
    """Read and check one part."""
    if f"{name}.starts" in arrays:
        return _read_sparse_part(arrays, name, n_labels)
    probabilities = as_probabilities(arrays[f"{name}.probabilities"], who="load", n_labels=n_labels)
    packed = np.unpackbits(arrays[f"{name}.labels"], axis=1, count=n_labels)
    labels = as_labels(packed, who="load", n_labels=n_labels, n_texts=len(probabilities))
    return PartProbabilities(probabilities, labels, tuple(arrays[f"{name}.ids"].tolist()))
