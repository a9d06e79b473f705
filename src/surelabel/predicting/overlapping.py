"""Steps that overlap: each works a little ahead of the next, in a thread of its own."""

from __future__ import annotations

import collections
from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

_Item = TypeVar("_Item")
_END: Any = object()


def ahead(items: Iterable[_Item], depth: int = 2) -> Generator[_Item]:
    """Yield items in their order, made ahead by a thread; at most `depth` of them wait to be taken.

    An error of the maker is raised when its item would have come. Closing the generator stops the maker, and closes
    `items` if that is a generator.

    Examples
    --------
    >>> list(ahead(n * n for n in range(4)))
    [0, 1, 4, 9]
    """
    iterator = iter(items)
    pool = ThreadPoolExecutor(1, thread_name_prefix="surelabel-ahead")
    waiting = collections.deque(pool.submit(next, iterator, _END) for _ in range(depth))
    try:
        while (item := waiting.popleft().result()) is not _END:
            waiting.append(pool.submit(next, iterator, _END))
            yield item
    finally:
        pool.shutdown(cancel_futures=True)
        if isinstance(items, Generator):
            items.close()
