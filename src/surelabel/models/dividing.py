"""Which division a bundle is calibrated by: a column of the table, the number of labels, the rarity of labels."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from surelabel._core.levels import MAIN_LEVEL
from surelabel._core.validation import as_level
from surelabel.conformal import ConformalLabelSets
from surelabel.exceptions import InvalidInputError
from surelabel.taxonomies.kinds import ByCardinality, ByGroup, ByRarity, Taxonomy

CARDINALITIES = (1, 2, 3)
RARITIES = (10, 100)


@dataclasses.dataclass(frozen=True)
class Division:
    """How texts and label-sets are divided for calibration; several ways are multiplied.

    `by` is a column of the table that says the group of each text. `cardinality` are numbers of labels at which kinds
    of label-sets begin, as in `ByCardinality`; `rarity` are numbers of training texts of the rarest label, as in
    `ByRarity`. Categories with fewer than `min_texts` calibration texts are joined.

    Examples
    --------
    >>> Division(by="source", cardinality=(1, 2)).taxonomy(None)
    ByGroup() * ByCardinality((1, 2))
    """

    by: str | None = None
    cardinality: Sequence[int] = ()
    rarity: Sequence[int] = ()
    min_texts: int = 0

    def __post_init__(self) -> None:
        for name in ("cardinality", "rarity"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not (self.by or self.cardinality or self.rarity):
            raise InvalidInputError(
                "A division must be by a column, by number of labels or by rarity. Got none of them; 'min_texts' "
                "(--min-texts) alone divides nothing."
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that a table must have."""
        return () if self.by is None else (self.by,)

    def taxonomy(self, training_counts: Any) -> Taxonomy:
        """Return the taxonomy, given how many training texts each label has, (d,); None if that is not known."""
        parts: list[Taxonomy] = []
        if self.by is not None:
            parts.append(ByGroup(min_texts=self.min_texts))
        if self.cardinality:
            parts.append(ByCardinality(self.cardinality, min_texts=self.min_texts))
        if self.rarity:
            if training_counts is None:
                raise InvalidInputError(
                    "A division by rarity must know how many training texts each label has. Give the corpus that the "
                    "model was trained on."
                )
            counts = np.asarray(training_counts, dtype=np.int64).reshape(-1)
            parts.append(ByRarity(counts, self.rarity, min_texts=self.min_texts))
        product = parts[0]
        for part in parts[1:]:
            product = product * part
        return product


def division_notes(predictor: ConformalLabelSets) -> tuple[str, ...]:
    """Say which categories have too few calibration texts to rule anything out at the main level."""
    calibration = predictor.calibration_
    if calibration.categories is None:
        return ()
    level = as_level(MAIN_LEVEL, None, who="division_notes")
    said = calibration.categories.words_of_small(level, calibration.limits)
    return () if said is None else (said,)
