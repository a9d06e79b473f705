"""What the requests of a service add to, whichever process answers them: the watch and the outcomes."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import threading
import time
from collections.abc import Iterator, Sequence
from multiprocessing.managers import BaseManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surelabel.exceptions import InvalidInputError
from surelabel.guarantees.online import OnlineConformal
from surelabel.guarantees.outcomes import Outcomes
from surelabel.guarantees.watch import ExchangeabilityWatch, WatchState
from surelabel.service.settings import ServiceSettings

if TYPE_CHECKING:
    from surelabel._core.validation import BoolArray, FloatArray
    from surelabel.conformal import ConformalLabelSets
    from surelabel.labels.sparse import SparseProbabilities
    from surelabel.models import Bundle

_log = logging.getLogger(__name__)
ALPHA = 0.01
"""Bound of the probability of a false alarm, however long the service runs."""
# Seconds between two savings of outcomes, but for the last one.
_SAVED_EVERY = 1.0


class ServiceWatch:
    """An `ExchangeabilityWatch` of forced predictions that several threads may use.

    Updates wait for each other. Without `forced_totals`, see `Bundle`, served texts are only compared with each other.
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


class ServiceOutcomes:
    """`Outcomes` that several threads may use, kept in a file if the settings name one."""

    def __init__(self, predictor: ConformalLabelSets, settings: ServiceSettings) -> None:
        self._lock = threading.RLock()
        self._state = None if settings.state is None else Path(settings.state)
        self._outcomes = self._begun(predictor, settings)
        self._saved_at = time.monotonic()
        self._is_changed = False
        self._had_alarm = self._outcomes.watch.state.alarm

    def _begun(self, predictor: ConformalLabelSets, settings: ServiceSettings) -> Outcomes:
        """Return the outcomes in the file, or new ones."""
        online = None
        if settings.adapt is not None:
            online = OnlineConformal(
                predictor, settings.adapt_significance, settings.adapt, max_pending=settings.max_pending
            )
        if self._state is None or not self._state.is_file():
            return Outcomes(predictor, online, max_pending=settings.max_pending)
        kept = Outcomes.load(self._state)
        kept.check_predictor(predictor, self._state)
        methods = [None if one is None else (one.method, one.significance) for one in (kept.online, online)]
        if methods[0] != methods[1]:
            raise InvalidInputError(
                f"The state in {self._state} is of another way to adapt, {methods[0] or 'none'}. Serve with the same, "
                "or with a new state file."
            )
        return kept

    def restart(self, predictor: ConformalLabelSets) -> None:
        """Forget all texts, and begin with another predictor."""
        with self._lock:
            self._outcomes = Outcomes(predictor, max_pending=self._outcomes.max_pending)

    def counts(self) -> dict[str, Any]:
        """Return what the service says about them now; the level is that of the next text, None if it is fixed."""
        with self._lock:
            outcomes = self._outcomes
            online = outcomes.online
            return {
                "n_settled": outcomes.n_settled_,
                "n_missed": outcomes.n_missed_,
                "n_waiting": outcomes.n_pending_,
                "level": None if online is None else online.level_,
                "alarm": outcomes.watch.state.alarm,
            }

    def check_new(self, ids: Sequence[str]) -> None:
        """Raise unless ids are new."""
        with self._lock:
            self._outcomes.check_new(ids)

    @contextlib.contextmanager
    def answering(self) -> Iterator[tuple[ConformalLabelSets, float]]:
        """Yield the predictor and the level of texts whose level adapts; both stay until they are remembered."""
        with self._lock:
            online = self._outcomes.online
            assert online is not None
            yield online.current(), online.level_

    def remember(self, probabilities: Any, ids: Sequence[str], **asked: Any) -> None:
        """Remember texts that were answered; see `Outcomes.remember`."""
        with self._lock:
            self._outcomes.remember(probabilities, ids, **asked)
            self._changed()

    def settle(self, ids: Sequence[str], labels: Any) -> BoolArray:
        """Take true label-sets; see `Outcomes.settle`. The first alarm is logged."""
        with self._lock:
            missed = self._outcomes.settle(ids, labels)
            self._changed()
            state = self._outcomes.watch.state
            if state.alarm and not self._had_alarm:
                self._had_alarm = True
                _log.warning(
                    "Alarm at outcome %d: texts are not like those of calibration; the guarantee may not hold.",
                    state.alarm_at,
                )
            return missed

    def _changed(self) -> None:
        """Save from time to time."""
        self._is_changed = True
        if time.monotonic() - self._saved_at >= _SAVED_EVERY:
            self.save()

    def save(self) -> None:
        """Write the file, whole or not at all, if anything has changed; a failure is logged."""
        with self._lock:
            if self._state is None or not self._is_changed:
                return
            self._saved_at = time.monotonic()
            try:
                self._outcomes.save(self._state)
                self._is_changed = False
            except OSError:
                _log.exception("The state of outcomes could not be written to %s.", self._state)


class _Hub(BaseManager):
    """Where processes meet: a socket that only they have the key to."""


_Hub.register("watch")
_Hub.register("outcomes")


@dataclasses.dataclass(frozen=True, eq=False)
class Shared:
    """Watch and outcomes: of this process, or of the one that started it and several others."""

    watch: ServiceWatch | None
    outcomes: ServiceOutcomes

    @classmethod
    def of(cls, bundle: Bundle, settings: ServiceSettings) -> Shared:
        """Begin to watch and to remember."""
        watch = ServiceWatch(bundle.predictor, bundle.forced_totals) if settings.watch else None
        return cls(watch, ServiceOutcomes(bundle.predictor, settings))

    @contextlib.contextmanager
    def offered(self) -> Iterator[str]:
        """Let processes that this one starts use them too; yield the address for `connect`."""
        calls = ("check_new", "remember", "settle", "counts")
        _Hub.register("watch", callable=lambda: self.watch, exposed=("state", "update"))
        _Hub.register("outcomes", callable=lambda: self.outcomes, exposed=calls)
        server: Any = _Hub().get_server()
        threading.Thread(target=server.serve_forever, name="surelabel-hub", daemon=True).start()
        try:
            yield server.address
        finally:
            self.outcomes.save()

    @classmethod
    def connect(cls, address: str, *, has_watch: bool) -> Shared:
        """Return those of the process that started this one; calls cross over to it."""
        hub: Any = _Hub(address)
        hub.connect()
        return cls(hub.watch() if has_watch else None, hub.outcomes())
