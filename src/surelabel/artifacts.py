"""The seam between text classifiers and conformal prediction: probabilities of the parts of a corpus, in one `.npz`.

A classifier is run once; every measure, calibration and figure starts from this file. It holds numbers and strings only
and is read without pickle.
"""

from __future__ import annotations

import dataclasses
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from surelabel._declared import check_npz
from surelabel._storage import atomic_file
from surelabel._validation import BoolArray, FloatArray, as_label_names, as_labels, as_probabilities
from surelabel.exceptions import ArtifactError

__all__ = ["PartProbabilities", "Probabilities"]

_FORMAT = "surelabel-probabilities"
_VERSION = 1


@dataclasses.dataclass(frozen=True, eq=False)
class PartProbabilities:
    """Probabilities (n, d) float64, labels (n, d) bool and text ids of one part of a corpus."""

    probabilities: FloatArray
    labels: BoolArray
    ids: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.probabilities)


@dataclasses.dataclass(frozen=True, eq=False)
class Probabilities:
    """A classifier's probabilities on the parts of a corpus.

    Attributes
    ----------
    parts : dict of str to PartProbabilities
        "calibration" and "test", "validation" where there is one.
    label_names : tuple of str
    max_labels : int
        Largest number of labels of a proper training text, the paper's l.
    settings : dict
        What they were made with: plain values.
    """

    parts: dict[str, PartProbabilities]
    label_names: tuple[str, ...]
    max_labels: int
    settings: dict[str, Any]

    def redivided(self, seed: int) -> tuple[PartProbabilities, PartProbabilities]:
        """Return calibration and test texts shuffled together and divided anew, of the same numbers.

        Divided so they are exchangeable, whatever their dates; the classifier saw neither part, so it need not be
        trained again.
        """
        parts = [self.parts["calibration"], self.parts["test"]]
        pool = np.vstack([part.probabilities for part in parts])
        labels = np.vstack([part.labels for part in parts])
        ids = [identity for part in parts for identity in part.ids]
        order = np.random.default_rng(seed).permutation(len(pool))
        held, rest = order[: len(parts[0])], order[len(parts[0]) :]
        return (
            PartProbabilities(pool[held], labels[held], tuple(ids[i] for i in held)),
            PartProbabilities(pool[rest], labels[rest], tuple(ids[i] for i in rest)),
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of it to one file, whole or not at all."""
        header = {
            "format": _FORMAT,
            "version": _VERSION,
            "label_names": self.label_names,
            "max_labels": self.max_labels,
            "settings": self.settings,
            "parts": list(self.parts),
        }
        arrays: dict[str, Any] = {"header": np.array(json.dumps(header))}
        for name, part in self.parts.items():
            arrays[f"{name}.probabilities"] = part.probabilities
            arrays[f"{name}.labels"] = np.packbits(part.labels, axis=1)
            arrays[f"{name}.ids"] = np.array(part.ids)
        with atomic_file(path) as temporary, temporary.open("wb") as stream:
            np.savez_compressed(stream, **arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Probabilities:
        """Read a file made by `save`; anything else is refused."""
        file = Path(path)
        try:
            check_npz(file)
            with file.open("rb") as stream, np.load(stream, allow_pickle=False) as arrays:
                header = json.loads(str(arrays["header"]))
                if header.get("format") != _FORMAT or header.get("version") != _VERSION:
                    raise ArtifactError(
                        f"{file} is of format {header.get('format')!r}, version {header.get('version')!r}; expected "
                        f"{_FORMAT!r}, version {_VERSION}."
                    )
                names = as_label_names(header["label_names"], len(header["label_names"]), who="load") or ()
                parts = {name: _read_part(arrays, name, len(names)) for name in header["parts"]}
                return cls(parts, names, int(header["max_labels"]), header["settings"])
        except (OSError, ArtifactError) as error:
            if isinstance(error, (FileNotFoundError, PermissionError, ArtifactError)):
                raise
            raise ArtifactError(f"{file} is damaged: {error}.") from error
        except (zipfile.BadZipFile, EOFError, KeyError, TypeError, AttributeError, ValueError) as error:
            raise ArtifactError(f"{file} is not a file of probabilities, or it is damaged: {error}.") from error


def _read_part(arrays: Any, name: str, n_labels: int) -> PartProbabilities:
    """Read and check one part."""
    probabilities = as_probabilities(arrays[f"{name}.probabilities"], who="load", n_labels=n_labels)
    packed = np.unpackbits(arrays[f"{name}.labels"], axis=1, count=n_labels)
    labels = as_labels(packed, who="load", n_labels=n_labels, n_texts=len(probabilities))
    return PartProbabilities(probabilities, labels, tuple(arrays[f"{name}.ids"].tolist()))
