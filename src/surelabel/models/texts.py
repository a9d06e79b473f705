"""Which texts a model has seen: a short hash per text, so that no text counts as new that is not."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from surelabel._core.npz_file import read_arrays
from surelabel._core.validation import BoolArray
from surelabel.corpora import PARTS, Corpus
from surelabel.corpora.overlap import text_hash
from surelabel.exceptions import ArtifactError

Hashes: TypeAlias = npt.NDArray[np.uint64]

# Of empty texts: they are not one text that was seen, but none.
_EMPTY = np.uint64(0)


def hashes_of(texts: Iterable[str]) -> Hashes:
    """Return a hash of each text, (n,), that does not depend on case and white space; 0 of empty texts."""
    values = [int.from_bytes(text_hash(text)[:8], "little") if text.strip() else 0 for text in texts]
    return np.array(values, dtype=np.uint64)


def repeated_texts(corpus: Corpus, parts: Sequence[str]) -> dict[str, int]:
    """Return how many texts of some parts also appear in an earlier part: train, validation, calibration, test."""
    hashes = {name: hashes_of(corpus.part(name).texts) for name in PARTS if name in corpus.parts}
    names = list(hashes)
    counts = {}
    for name in parts:
        if name in hashes:
            earlier = np.concatenate([[_EMPTY], *(hashes[other] for other in names[: names.index(name)])])
            counts[name] = int(_is_among(hashes[name], earlier).sum())
    return counts


def _is_among(hashes: Hashes, known: Hashes) -> BoolArray:
    """Tell which hashes, (n,), are among known ones."""
    return np.asarray(np.isin(hashes, known) & (hashes != _EMPTY))


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
        return _is_among(hashes_of(texts), self.training)

    def in_calibration(self, texts: Iterable[str]) -> BoolArray:
        """Tell for each text, (n,), whether the model was calibrated with it."""
        return _is_among(hashes_of(texts), self.calibration)

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
        try:
            if set(values) != {"training", "calibration"}:
                raise ValueError(f"it holds {', '.join(values)}")
            for name, hashes in values.items():
                if hashes.dtype != np.uint64 or hashes.ndim != 1:
                    raise ValueError(f"its {name} hashes are {hashes.dtype} in {hashes.ndim} dimensions")
        except ValueError as error:
            raise ArtifactError(f"{path} is damaged: {error}.") from error
        return cls(**values)
