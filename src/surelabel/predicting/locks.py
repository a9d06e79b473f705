"""A lock in a remote store: a file that only one run can make, with the time in it, written anew now and then.

If the store can make a file only if there is none, two runs cannot both get the lock. An old lock is of a run that
died. To take it over, a run needs a second lock, a file beside it, so that two runs that find it at the same time
cannot both have it. If the store cannot do that, whoever writes last has the lock, and the other run sees it: at once,
or at its next partition.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
import uuid
from collections.abc import Iterator
from typing import Any

from surelabel.exceptions import InvalidInputError
from surelabel.tables.stores import Store

_LOCK_SECONDS = 120.0
# If locks cannot be made exclusively: others that began at the same time have written theirs by then.
_SETTLE_SECONDS = 2.0


def is_held(store: Store, name: str, token: str) -> bool:
    """Whether a lock still has this token; one that cannot be read at the moment counts as held."""
    lock = store.read_json(name)
    return lock is None or lock.get("token") == token


@contextlib.contextmanager
def remote_lock(store: Store, name: str) -> Iterator[str]:
    """Hold a lock while the block lasts; yield the token in it. Raise if another run holds it, or died just now."""
    token = uuid.uuid4().hex
    _take(store, name, token)
    is_over = threading.Event()

    def renew() -> None:
        while not is_over.wait(_LOCK_SECONDS / 4):
            with contextlib.suppress(OSError):  # a store that is away for a moment: the next time will do
                if not is_held(store, name, token):
                    return
                store.write_json(name, _document(token))

    thread = threading.Thread(target=renew, name="surelabel-lock", daemon=True)
    thread.start()
    try:
        yield token
    finally:
        is_over.set()
        thread.join()
        if is_held(store, name, token):
            store.remove(name)


def _document(token: str) -> dict[str, Any]:
    return {"time": time.time(), "token": token}


def _is_fresh(lock: dict[str, Any]) -> bool:
    """Whether a lock is of a run that may still be alive."""
    written = lock.get("time")
    return isinstance(written, int | float) and time.time() - written < _LOCK_SECONDS


def _busy(store: Store, name: str) -> InvalidInputError:
    return InvalidInputError(
        f"Another run is writing {store.url}, or died less than {_LOCK_SECONDS:.0f} seconds ago. "
        f"Wait for it, or stop it. If you know that there is none, remove {name} there."
    )


def _take(store: Store, name: str, token: str) -> None:
    """Get a lock, or raise."""
    if _is_made(store, name, token):
        return
    lock = store.read_json(name)
    if lock is None or _is_fresh(lock):
        raise _busy(store, name)
    stale = lock.get("token")
    beside = f"{name.removesuffix('.json')}.{hashlib.sha256(repr(stale).encode()).hexdigest()[:16]}.json"
    _take(store, beside, token)
    try:
        # Only the holder of the lock beside it may remove this one, so it cannot be a newer one now.
        lock = store.read_json(name)
        if lock is not None and lock.get("token") == stale and not _is_fresh(lock):
            store.remove(name)
        if not _is_made(store, name, token):
            raise _busy(store, name)
    finally:
        store.remove(beside)


def _is_made(store: Store, name: str, token: str) -> bool:
    """Make a lock if there is none; if a store cannot do that in one step, whoever writes last has it."""
    is_made = store.create_json(name, _document(token))
    if is_made is None:
        store.write_json(name, _document(token))
        time.sleep(_SETTLE_SECONDS)
        is_made = is_held(store, name, token)
    return is_made
