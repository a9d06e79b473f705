"""Which texts a model has seen: a short hash per text, so that no text counts as new that is not."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from surelabel._core.files import read_arrays, write_arrays
from surelabel._core.validation import BoolArray
from surelabel.corpora import Corpus, text_hash
from surelabel.exceptions import ArtifactError

Hashes = npt.NDArray[np.uint64]
_KIND = "seen texts"
ROLES = ("training", "filing", "calibration", "test")


def hashes_of(texts: Iterable[str]) -> Hashes:
    """Return the hash of each text, (n,)."""
    return np.fromiter((text_hash(text) for text in texts), dtype=np.uint64)


@dataclasses.dataclass(frozen=True, eq=False)
class SeenTexts:
    """Sorted hashes of the texts of each part: eight bytes per text, which tell nothing about an unknown text.

    A text that occurs several times in a part has as many hashes there.
    """

    training: Hashes
    filing: Hashes
    calibration: Hashes
    test: Hashes

    @classmethod
    def of(cls, **texts: Iterable[str]) -> SeenTexts:
        """Return the hashes of the texts of each part; a part that is left out has none."""
        return cls(**{role: np.sort(hashes_of(texts.get(role, ()))) for role in ROLES})

    def calibrated_with(self, filing: Hashes, calibration: Hashes) -> SeenTexts:
        """Return the hashes after another calibration: what was a test text and calibrates now is none any more."""
        used = np.setdiff1d(np.concatenate([filing, calibration]), np.concatenate([self.filing, self.calibration]))
        test = self.test[~np.isin(self.test, used)]
        return SeenTexts(self.training, np.sort(filing), np.sort(calibration), test)

    def is_in(self, role: str, texts: Iterable[str]) -> BoolArray:
        """Return which texts occur in a part, (n,)."""
        return np.isin(hashes_of(texts), getattr(self, role))

    def used(self, texts: Iterable[str]) -> BoolArray:
        """Return which texts the model was trained or calibrated with, (n,)."""
        return np.isin(hashes_of(texts), np.concatenate([self.training, self.filing, self.calibration]))

    def rows_of(self, role: str, texts: Iterable[str]) -> BoolArray:
        """Return which rows can be those of a part, (n,).

        A text that occurs in other parts as well, such as "Thank you!", is taken at most as often as the part has it:
        so a file that a model was trained on gives its test part back.
        """
        left = Counter(getattr(self, role).tolist())
        others = np.concatenate([getattr(self, other) for other in ROLES if other != role])
        hashes = hashes_of(texts)
        taken = np.isin(hashes, getattr(self, role))
        for row in np.flatnonzero(taken & np.isin(hashes, others)).tolist():
            key = int(hashes[row])
            taken[row] = left[key] > 0
            left[key] -= 1
        return taken

    def without_seen(self, corpus: Corpus) -> tuple[Corpus, dict[str, int]]:
        """Return the texts that are new or test texts, and how many were left out."""
        training = self.is_in("training", corpus.texts)
        calibration = self.is_in("filing", corpus.texts) | self.is_in("calibration", corpus.texts)
        kept = self.rows_of("test", corpus.texts) | ~(training | calibration)
        return corpus.rows(kept), {
            "training": int((training & ~kept).sum()),
            "calibration": int((calibration & ~training & ~kept).sum()),
        }

    def save(self, path: Path) -> None:
        """Write the hashes."""
        write_arrays(path, {"kind": _KIND}, {role: getattr(self, role) for role in ROLES})

    @classmethod
    def load(cls, path: Path) -> SeenTexts:
        """Read what `save` wrote; anything else is an ArtifactError."""
        _, arrays = read_arrays(path, _KIND)
        if set(arrays) != set(ROLES):
            raise ArtifactError(f"{path} must have the hashes of {', '.join(ROLES)}. Got {', '.join(arrays)}.")
        for role, hashes in arrays.items():
            if hashes.dtype != np.uint64 or hashes.ndim != 1 or np.any(hashes[1:] < hashes[:-1]):
                raise ArtifactError(f"{path} is damaged: the hashes of {role} texts are not sorted numbers.")
        return cls(**arrays)


def n_repeated(parts: Iterable[Iterable[str]]) -> int:
    """Return how many texts of several parts also occur in an earlier part."""
    earlier: Hashes = np.zeros(0, dtype=np.uint64)
    n = 0
    for texts in parts:
        hashes = hashes_of(texts)
        n += int(np.isin(hashes, earlier).sum())
        earlier = np.concatenate([earlier, hashes])
    return n
