"""Steps that overlap: each works a little ahead of the next, in a thread of its own."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterable
from typing import Any, TypeVar

__all__ = ["ahead"]

_Item = TypeVar("_Item")
_WAIT_SECONDS = 0.1


def ahead(items: Iterable[_Item], depth: int = 2) -> Generator[_Item]:
    """Yield items in their order, made ahead by a thread; at most `depth` of them wait to be taken.

    An error of the maker is raised where the item would have come. Closing the generator stops the maker, and closes
    `items` where that is a generator.

    Examples
    --------
    >>> list(ahead(n * n for n in range(4)))
    [0, 1, 4, 9]
    """
    made: queue.Queue[Any] = queue.Queue(depth)
    is_stopped = threading.Event()
    maker = threading.Thread(target=_make, args=(items, made, is_stopped), name="surelabel-ahead", daemon=True)
    maker.start()
    try:
        while True:
            item, error, is_end = made.get()
            if error is not None:
                raise error
            if is_end:
                return
            yield item
    finally:
        is_stopped.set()
        maker.join()


def _make(items: Iterable[Any], made: queue.Queue[Any], is_stopped: threading.Event) -> None:
    """Put items, and last an error or the end, until told to stop."""
    last: tuple[Any, BaseException | None, bool] = (None, None, True)
    try:
        for item in items:
            if not _put((item, None, False), made, is_stopped):
                break
    except BaseException as error:
        last = (None, error, True)
    finally:
        if isinstance(items, Generator):
            items.close()
    _put(last, made, is_stopped)


def _put(entry: Any, made: queue.Queue[Any], is_stopped: threading.Event) -> bool:
    """Put an entry as soon as there is room; False where nobody waits for it any more."""
    while not is_stopped.is_set():
        try:
            made.put(entry, timeout=_WAIT_SECONDS)
        except queue.Full:
            continue
        return True
    return False
