"""What a predictor says of some texts, worked out once for all who ask."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from surelabel._core.levels import MAIN_LEVEL, STANDARD_LEVELS
from surelabel._core.validation import BoolArray, FloatArray, IntArray, as_level
from surelabel.conformal import ConformalLabelSets, ForcedPredictions
from surelabel.engines.interacting import InteractingEngine
from surelabel.evaluation.metrics import counts_at_levels
from surelabel.sets.prediction_sets import PredictionSets
from surelabel.taxonomies.engine import KindsEngine

# Cells of the tables that bound sizes past counting; a full evaluation takes the usual number.
_CELLS = 1024
# Texts whose sets are counted at several levels if that takes milliseconds per text.
_MOST_SIZED = 500
# With more labels than this most sets are bounded by tables, which takes milliseconds per text.
_MANY_LABELS = 200


def large_enough(levels: Sequence[str], n_calibration: int) -> list[str]:
    """Return the levels at which a calibration excludes something."""
    return [level for level in levels if float(level) * (n_calibration + 1) > 1]


def from_main_level(n_calibration: int) -> list[str]:
    """Return the standard levels from the main one on at which a calibration excludes something; at least the last."""
    usual = [level for level in STANDARD_LEVELS if float(level) >= float(MAIN_LEVEL)]
    return large_enough(usual, n_calibration) or usual[-1:]


class Predicted:
    """Best guesses and prediction sets of some texts: evaluation, verdict, examples and report share one.

    `texts` are probabilities, or an engine, as in `ConformalLabelSets.bind`.
    """

    def __init__(self, predictor: ConformalLabelSets, texts: Any, groups: Any = None, who: str = "bind") -> None:
        self.predictor = predictor
        self.groups = None if groups is None else [str(group) for group in groups]
        self.engine = predictor.bind(texts, groups=groups, who=who)
        self._bounds: dict[Fraction, FloatArray] = {}

    @classmethod
    def of(cls, predictor: ConformalLabelSets, texts: Any, groups: Any = None, who: str = "bind") -> Predicted:
        """Return what is given if it is one already."""
        return texts if isinstance(texts, cls) else cls(predictor, texts, groups, who)

    def __len__(self) -> int:
        return len(self.engine)

    @functools.cached_property
    def forced(self) -> ForcedPredictions:
        """The best guesses."""
        return self.predictor.predict(self.engine)

    def sets(self, level: Any) -> PredictionSets:
        """Return the prediction sets at a level."""
        return self.predictor.predict_set(self.engine, significance=level)

    def missed(self, level: Any, labels: Any) -> BoolArray:
        """Tell for each text, (n,), whether its label-set is outside the prediction set."""
        return ~np.asarray(self.sets(level).contains(labels))

    def count(self, levels: Sequence[Any], n_cells: int = _CELLS) -> list[FloatArray]:
        """Bound the sizes of prediction sets at some levels, (n, 2) each: those that are new in one pass."""
        asked = [as_level(level, None, who="count") for level in levels]
        new = [level for level in asked if level not in self._bounds]
        if new:
            bounds = counts_at_levels(self.engine, new, n_cells)
            self._bounds.update(zip(new, bounds.swapaxes(0, 1), strict=True))
        return [self._bounds[level] for level in asked]

    def sizes(self, level: Any) -> list[tuple[int, int]]:
        """Return bounds of the size of each set: the size if it is small, else within a factor of two.

        Standard levels are counted together, as an evaluation does: who asks first makes no difference.
        """
        usual = large_enough(STANDARD_LEVELS, self.predictor.calibration_.n_texts)
        if as_level(level, None, who="sizes") not in self._bounds and level in usual and self.sized()[1] is self:
            self.count(usual)
        finite = np.minimum(self.count([level])[0], np.finfo(np.float64).max)
        return [(int(least), int(most)) for least, most in finite.tolist()]

    @property
    def is_slow(self) -> bool:
        """Whether counting the sets of a text takes milliseconds: labels interact, kinds count apart, or are many."""
        return isinstance(self.engine, (InteractingEngine, KindsEngine)) or self.engine.n_labels > _MANY_LABELS

    def sized(self) -> tuple[IntArray, Predicted]:
        """Return the texts whose sets are counted at several levels, see `spread`: a sample if that takes long."""
        return self.spread(_MOST_SIZED if self.is_slow else len(self))

    def spread(self, most: int) -> tuple[IntArray, Predicted]:
        """Return up to so many rows, spread evenly, and what is said of their texts."""
        if len(self) <= most:
            return np.arange(len(self)), self
        rows = np.linspace(0, len(self) - 1, most).round().astype(np.int64)
        some = self.engine.of_rows(rows) if isinstance(self.engine, KindsEngine) else self.engine.probabilities[rows]
        made = Predicted(self.predictor, some)
        made.groups = None if self.groups is None else [self.groups[row] for row in rows]
        made._bounds = {level: bounds[rows] for level, bounds in self._bounds.items()}
        return rows, made
