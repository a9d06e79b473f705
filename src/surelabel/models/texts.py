"""Which texts a model has seen: a short hash per text, so that no text counts as new that is not."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from surelabel._core.npz_file import read_arrays
from surelabel._core.validation import BoolArray
from surelabel.corpora import PARTS, Corpus
from surelabel.corpora.overlap import EMPTY, Hashes, hashes_of, is_among
from surelabel.exceptions import ArtifactError


def repeated_texts(corpus: Corpus, parts: Sequence[str]) -> dict[str, int]:
    """Return how many texts of some parts also appear in an earlier part: train, validation, calibration, test."""
    hashes = {name: hashes_of(corpus.part(name).texts) for name in PARTS if name in corpus.parts}
    names = list(hashes)
    counts = {}
    for name in parts:
        if name in hashes:
            earlier = np.concatenate([[EMPTY], *(hashes[other] for other in names[: names.index(name)])])
            counts[name] = int(is_among(hashes[name], earlier).sum())
    return counts


@dataclasses.dataclass(frozen=True, eq=False)
class SeenTexts:
    """Hashes of the texts that a model was trained with (or chosen on), and of those that it was calibrated with.

    Sorted, and eight bytes per text: they tell whether a given text was seen, not what was seen.
    """

    training: Hashes
    calibration: Hashes

    @classmethod
    def of(cls, training: Iterable[str], calibration: Iterable[str]) -> SeenTexts:
        """Return what is remembered of some texts."""
        return cls(np.unique(hashes_of(training)), np.unique(hashes_of(calibration)))

    def in_training(self, texts: Iterable[str]) -> BoolArray:
        """Tell for each text, (n,), whether the model was trained with it."""
        return is_among(hashes_of(texts), self.training)

    def in_calibration(self, texts: Iterable[str]) -> BoolArray:
        """Tell for each text, (n,), whether the model was calibrated with it."""
        return is_among(hashes_of(texts), self.calibration)

    def calibrated_with(self, texts: Iterable[str], *, add: bool) -> SeenTexts:
        """Return what is remembered after a calibration with some texts, instead of the old ones or beside them."""
        new = np.unique(hashes_of(texts))
        return SeenTexts(self.training, np.union1d(self.calibration, new) if add else new)

    def save(self, path: Path) -> None:
        """Write the hashes."""
        np.savez(path, training=self.training, calibration=self.calibration)

    @classmethod
    def load(cls, path: Path) -> SeenTexts:
        """Read what `save` wrote; anything else is refused."""
        values = read_arrays(path)
        if set(values) != {"training", "calibration"}:
            raise ArtifactError(f"{path} is damaged: it holds {', '.join(values)}.")
        for name, hashes in values.items():
            if hashes.dtype != np.uint64 or hashes.ndim != 1:
                what = f"{hashes.dtype} in {hashes.ndim} dimensions"
                raise ArtifactError(f"{path} is damaged: its {name} hashes are {what}.")
        return cls(**values)
