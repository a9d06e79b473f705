"""What the requests of a service add to, whichever process answers them: the watch and the outcomes."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Iterator
from multiprocessing.managers import BaseManager
from typing import TYPE_CHECKING, Any

from surelabel.service.outcomes import ServiceOutcomes
from surelabel.service.settings import ServiceSettings
from surelabel.service.watching import ServiceWatch

if TYPE_CHECKING:
    from surelabel.models import Bundle


class _Hub(BaseManager):
    """Where processes meet: a socket that only they have the key to."""


class _Visitor(BaseManager):
    """A process that comes to the hub."""


_Visitor.register("watch")
_Visitor.register("outcomes")


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
        hub: Any = _Visitor(address)
        hub.connect()
        return cls(hub.watch() if has_watch else None, hub.outcomes())
