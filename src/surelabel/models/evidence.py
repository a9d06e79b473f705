"""Held-out texts as a predictor sees them: probabilities, label-sets, shares of known words and groups."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surelabel._core.validation import FloatArray
from surelabel.exceptions import ArtifactError
from surelabel.guarantees.decisions import Evidence
from surelabel.probabilities_file import PartProbabilities, Probabilities, stacked


@dataclasses.dataclass(frozen=True, eq=False)
class HeldOutTexts:
    """What promises are calibrated on, without the texts themselves.

    Attributes
    ----------
    probabilities : (n, d) float64 or Shortlists
    label_sets : list of frozenset of str
        The true labels, unknown ones included.
    known_words : (n,) float64 or None
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
        chosen = np.arange(len(self))[rows]
        return HeldOutTexts(
            self.probabilities[chosen],
            [self.label_sets[row] for row in chosen],
            None if self.known_words is None else self.known_words[chosen],
            None if self.groups is None else [self.groups[row] for row in chosen],
        )

    def joined(self, more: HeldOutTexts) -> HeldOutTexts:
        """Return these texts and more."""
        words = [part for part in (self.known_words, more.known_words) if part is not None]
        return HeldOutTexts(
            stacked([self.probabilities, more.probabilities]),
            self.label_sets + more.label_sets,
            np.concatenate(words) if len(words) == 2 else None,
            None if self.groups is None or more.groups is None else self.groups + more.groups,
        )


def save_held_out(path: Path, parts: Mapping[str, HeldOutTexts], label_names: Sequence[str]) -> None:
    """Write the figures of the texts of several parts to one file."""
    names = tuple(label_names)
    probabilities = {
        name: PartProbabilities.from_label_sets(part.probabilities, part.label_sets, names)
        for name, part in parts.items()
    }
    facts = {
        name: {"known_words": None if part.known_words is None else part.known_words.tolist(), "groups": part.groups}
        for name, part in parts.items()
    }
    Probabilities(probabilities, names, len(names), facts).save(path)


def load_held_out(path: Path, label_names: Sequence[str]) -> dict[str, HeldOutTexts]:
    """Read what `save_held_out` wrote; anything else is an ArtifactError."""
    found = Probabilities.load(path)
    try:
        if found.label_names != tuple(label_names):
            raise ValueError("its labels are not those of the model")
        return {name: _with_facts(part, found.label_names, found.settings[name]) for name, part in found.parts.items()}
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ArtifactError(f"{path} is damaged: {error}.") from error


def _with_facts(part: PartProbabilities, names: tuple[str, ...], facts: Mapping[str, Any]) -> HeldOutTexts:
    """Return a part with known words and groups, checked."""
    words, groups = facts["known_words"], facts["groups"]
    known = None if words is None else np.asarray(words, dtype=np.float64)
    if not (known is None or known.shape == (len(part),)) or not (groups is None or len(groups) == len(part)):
        raise ValueError("it has not one share of known words and one group per text")
    if known is not None and np.any((known < 0.0) | (known > 1.0)):  # NaN: a text without words
        raise ValueError("a share of known words is not in [0, 1]")
    return HeldOutTexts(
        part.probabilities, part.label_sets(names), known, None if groups is None else list(map(str, groups))
    )
