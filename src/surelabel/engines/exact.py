"""The exact search: what a predictor uses by default, by the engine for its kind of measure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from surelabel.calibration import Calibration
from surelabel.engines.cut import Cut, Engine, SearchReport, Words
from surelabel.engines.dense import SeparableEngine
from surelabel.engines.interacting import InteractingEngine
from surelabel.engines.sizes import Bounds, SizeBounds

__all__ = ["ExactSearch", "engine_of"]

_SEPARABLE = SeparableEngine()
_INTERACTING = InteractingEngine()


def engine_of(calibration: Calibration) -> Engine:
    """Return the engine for a calibrated measure: of costs that add up, or of a tree where labels interact."""
    return _SEPARABLE if calibration.is_separable else _INTERACTING


class ExactSearch:
    """Visits members and little else; past the work limit it answers with certified bounds."""

    def bounds(self, cut: Cut, rows: range) -> SizeBounds:
        """Count, or bound."""
        return engine_of(cut.calibration).bounds(cut, rows)

    def members(self, cut: Cut, row: int, limit: int) -> Words:
        """List and sort where all members fit; take the best where they do not."""
        return engine_of(cut.calibration).members(cut, row, limit)

    def iterate(self, cut: Cut, row: int) -> Iterator[tuple[float, Words]]:
        """Yield members, best first."""
        return engine_of(cut.calibration).iterate(cut, row)

    def with_label(self, cut: Cut, row: int, labels: Sequence[int]) -> list[Bounds]:
        """Count the members that have each of some labels."""
        return engine_of(cut.calibration).with_label(cut, row, labels)

    def report(self, cut: Cut) -> SearchReport:
        """Return the numbers of members (upper bounds): the exact search considers few other label-sets."""
        considered = self.bounds(cut, range(len(cut.probabilities))).upper.tolist()
        return SearchReport(None, considered, np.zeros(len(considered), dtype=np.bool_))
