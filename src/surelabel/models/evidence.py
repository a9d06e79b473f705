"""Held-out texts as a predictor sees them: probabilities, label-sets, shares of known words and groups."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surelabel._core.files import read_arrays, write_arrays
from surelabel._core.validation import FloatArray
from surelabel.exceptions import ArtifactError
from surelabel.guarantees.decisions import Evidence
from surelabel.labels.shortlists import Shortlists

_KIND = "held-out texts"


@dataclasses.dataclass(frozen=True, eq=False)
class HeldOutTexts:
    """What promises are calibrated on, without the texts themselves.

    Attributes
    ----------
    probabilities : (n, d) float64 or Shortlists
    label_sets : list of frozenset of str
        The true labels, unknown ones included.
    known_words : (n,) float64
        Share of each text's words that occur in the training texts, nan for a text without words.
    groups : list of str or None
    """

    probabilities: Any
    label_sets: list[frozenset[str]]
    known_words: FloatArray | None
    groups: list[str] | None = None

    def __len__(self) -> int:
        return len(self.label_sets)

    @property
    def evidence(self) -> Evidence:
        """The texts as a policy takes them."""
        return Evidence(self.probabilities, self.label_sets, self.known_words)

    def rows(self, rows: Any) -> HeldOutTexts:
        """Return some of the texts."""
        chosen = np.asarray(rows)
        chosen = np.flatnonzero(chosen) if chosen.dtype == bool else chosen
        return HeldOutTexts(
            self.probabilities[chosen],
            [self.label_sets[row] for row in chosen.tolist()],
            None if self.known_words is None else self.known_words[chosen],
            None if self.groups is None else [self.groups[row] for row in chosen.tolist()],
        )

    def joined(self, more: HeldOutTexts) -> HeldOutTexts:
        """Return these texts and more."""
        words = [part for part in (self.known_words, more.known_words) if part is not None]
        return HeldOutTexts(
            _stacked(self.probabilities, more.probabilities),
            self.label_sets + more.label_sets,
            np.concatenate(words) if len(words) == 2 else None,
            None if self.groups is None or more.groups is None else self.groups + more.groups,
        )

    def save(self, path: Path, label_names: Sequence[str]) -> None:
        """Write the texts' figures."""
        names = [*label_names, *sorted({name for row in self.label_sets for name in row} - set(label_names))]
        place = {name: k for k, name in enumerate(names)}
        labels = [sorted(place[name] for name in row) for row in self.label_sets]
        arrays: dict[str, Any] = {
            "labels": np.array([k for row in labels for k in row], dtype=np.int64),
            "ends": np.cumsum([len(row) for row in labels], dtype=np.int64),
        }
        if isinstance(self.probabilities, Shortlists):
            arrays.update(listed=self.probabilities.labels, probabilities=self.probabilities.probabilities)
        else:
            arrays["probabilities"] = self.probabilities
        if self.known_words is not None:
            arrays["known_words"] = self.known_words
        write_arrays(path, {"kind": _KIND, "n_labels": len(label_names), "names": names, "groups": self.groups}, arrays)

    @classmethod
    def load(cls, path: Path, label_names: Sequence[str]) -> HeldOutTexts:
        """Read what `save` wrote; anything else is an ArtifactError."""
        header, arrays = read_arrays(path, _KIND)
        try:
            names, groups = header["names"], header["groups"]
            ends, labels = arrays["ends"], arrays["labels"]
            probabilities: Any = arrays["probabilities"]
            if names[: header["n_labels"]] != list(label_names) or not all(isinstance(name, str) for name in names):
                raise ValueError("its labels are not those of the model")
            if ends.ndim != 1 or labels.ndim != 1 or labels.dtype != np.int64 or ends.dtype != np.int64:
                raise ValueError("its label-sets are not lists of labels")
            if np.any(np.diff(ends, prepend=0) < 0) or (len(ends) and ends[-1] != len(labels)):
                raise ValueError("its label-sets do not end where they should")
            if len(labels) and not (labels.min() >= 0 and labels.max() < len(names)):
                raise ValueError("a label has no name")
            if len(probabilities) != len(ends) or not (groups is None or len(groups) == len(ends)):
                raise ValueError("its parts have different numbers of texts")
            if probabilities.dtype != np.float64 or not ((probabilities >= 0.0) & (probabilities <= 1.0)).all():
                raise ValueError("a probability is not in [0, 1]")
            if "listed" in arrays:
                probabilities = as_shortlists(arrays["listed"], probabilities, len(label_names))
            elif probabilities.shape[1:] != (len(label_names),):
                raise ValueError("there must be one probability per label")
            known = arrays.get("known_words")
            if known is not None and known.shape != (len(ends),):
                raise ValueError("there must be one share of known words per text")
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ArtifactError(f"{path} is damaged: {error}.") from error
        starts = [0, *ends.tolist()]
        label_sets = [
            frozenset(names[k] for k in labels[start:end].tolist()) for start, end in itertools.pairwise(starts)
        ]
        return cls(probabilities, label_sets, known, None if groups is None else list(map(str, groups)))


def as_shortlists(labels: Any, probabilities: Any, n_labels: int) -> Shortlists:
    """Return shortlists from the arrays of others, where free places hold n_labels."""
    return Shortlists(np.where(labels == n_labels, -1, labels), probabilities, n_labels)


def _stacked(one: Any, other: Any) -> Any:
    """Return the probabilities of some texts and of others."""
    if not isinstance(one, Shortlists):
        return np.concatenate([one, other])
    k = max(one.labels.shape[1], other.labels.shape[1])
    labels, values = (
        np.concatenate(
            [
                np.pad(part, ((0, 0), (0, k - part.shape[1])), constant_values=filler)
                for part in (getattr(one, name), getattr(other, name))
            ]
        )
        for name, filler in (("labels", one.n_labels), ("probabilities", 0.0))
    )
    return as_shortlists(labels, values, one.n_labels)
