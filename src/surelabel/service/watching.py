"""The watch over served texts: whether they are like the calibration texts, and stay so."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from surelabel.guarantees.watch import ExchangeabilityWatch, WatchState

if TYPE_CHECKING:
    from surelabel._core.validation import FloatArray
    from surelabel.conformal import ConformalLabelSets
    from surelabel.labels.sparse import SparseProbabilities

ALPHA = 0.01
"""Bound of the probability of a false alarm, however long the service runs."""

_log = logging.getLogger(__name__)


class ServiceWatch:
    """An `ExchangeabilityWatch` of forced predictions that several threads may use.

    Updates wait for each other; reading the state waits for nothing.

    Parameters
    ----------
    predictor : ConformalLabelSets
    forced_totals : (n,) float64, optional
        Of the calibration texts, see `Bundle`; without them served texts are only compared with each other.
    """

    def __init__(self, predictor: ConformalLabelSets, forced_totals: FloatArray | None = None) -> None:
        self._lock = threading.Lock()
        scores = () if forced_totals is None else forced_totals
        self._watch = ExchangeabilityWatch(scores, alpha=ALPHA, predictor=predictor, watched="predictions")
        self._state = self._watch.state

    def state(self) -> WatchState:
        """Return what was known after the last texts."""
        return self._state

    def update(self, probabilities: FloatArray | SparseProbabilities) -> None:
        """Take texts that were answered, in the order in which they came; the first alarm is logged."""
        with self._lock:
            before, self._state = self._state, self._watch.update_unlabelled(probabilities)
            if self._state.alarm and not before.alarm:
                _log.warning(
                    "Alarm at text %d: texts are not like those of calibration or before; the guarantee may not hold.",
                    self._state.alarm_at,
                )
