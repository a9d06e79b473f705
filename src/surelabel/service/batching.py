"""Micro-batching: texts of requests that come at the same time go to the classifier together."""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import dataclasses
import logging
from collections.abc import Callable

import numpy as np

from surelabel._validation import FloatArray

__all__ = ["ClosedError", "MicroBatcher", "QueueFullError"]

_log = logging.getLogger(__name__)


class QueueFullError(Exception):
    """Too many texts wait already."""


class ClosedError(Exception):
    """The batcher takes nothing more."""


@dataclasses.dataclass(eq=False)
class _Waiting:
    """Texts that wait for the classifier."""

    texts: list[str]
    arrived: float
    outcome: asyncio.Future[FloatArray]


class MicroBatcher:
    """Gathers texts for one worker thread that computes probabilities.

    While the thread is at work, what arrives waits, and goes together when it is done. Where the last batch was shared,
    the next one also waits up to `max_wait` seconds for company; a client who is alone never waits. A request of more
    than `max_batch_texts` goes in parts, one after the other, so that others get in between. Where a batch fails, its
    requests are computed one by one: only the bad one fails.

    Parameters
    ----------
    classify : callable
        From a list of texts to probabilities (n, d); called in the worker thread.
    max_batch_texts : int
    max_wait : float
    max_queue_texts : int
        As in `ServiceSettings`.
    on_batch : callable, optional
        Told the number of requests and of texts of every batch.
    """

    def __init__(
        self,
        classify: Callable[[list[str]], FloatArray],
        *,
        max_batch_texts: int,
        max_wait: float,
        max_queue_texts: int,
        on_batch: Callable[[int, int], None] | None = None,
    ) -> None:
        self._classify = classify
        self._max_batch = max_batch_texts
        self._max_wait = max_wait
        self._max_queue = max_queue_texts
        self._on_batch = on_batch
        self._waiting: collections.deque[_Waiting] = collections.deque()
        self._arrived = asyncio.Event()
        self._closing = False
        self._shared = False
        self._thread = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="surelabel-classifier")
        self._loop_task: asyncio.Task[None] | None = None

    @property
    def n_waiting(self) -> int:
        """Texts that wait."""
        return sum(len(each.texts) for each in self._waiting)

    def start(self) -> None:
        """Begin to work; call it within a running event loop."""
        self._loop_task = asyncio.create_task(self._work())

    async def close(self) -> None:
        """Take nothing more, finish what waits and what runs."""
        self._closing = True
        self._arrived.set()
        if self._loop_task is not None:
            await self._loop_task
        self._thread.shutdown()

    async def predict_proba(self, texts: list[str]) -> FloatArray:
        """Return the probabilities (n, d) of a request's texts.

        Raises
        ------
        QueueFullError
            Where too many texts wait already; a request that has been let in is not turned away later.
        ClosedError
            Where the batcher was closed.
        """
        if self._closing:
            raise ClosedError
        if self._waiting and self.n_waiting + min(len(texts), self._max_batch) > self._max_queue:
            raise QueueFullError
        parts = [
            await self._wait_for(texts[start : start + self._max_batch])
            for start in range(0, len(texts), self._max_batch)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    async def _wait_for(self, texts: list[str]) -> FloatArray:
        """Queue texts that fit in one batch and wait for their probabilities."""
        loop = asyncio.get_running_loop()
        if self._loop_task is None or self._loop_task.done():
            raise ClosedError
        waiting = _Waiting(texts, loop.time(), loop.create_future())
        self._waiting.append(waiting)
        self._arrived.set()
        return await waiting.outcome

    async def _work(self) -> None:
        """Compute batch after batch until the batcher is closed and nothing waits."""
        while batch := await self._collect():
            await self._compute(batch)

    async def _collect(self) -> list[_Waiting]:
        """Wait for a batch; empty where the batcher is closed and nothing waits."""
        while True:
            while not self._waiting:
                if self._closing:
                    return []
                self._arrived.clear()
                await self._arrived.wait()
            if self._shared and not self._closing:
                await self._wait_for_company(self._waiting[0].arrived + self._max_wait)
            if batch := self._take():
                self._shared = len(batch) > 1
                return batch

    async def _wait_for_company(self, deadline: float) -> None:
        """Wait until a batch is full or a time has come."""
        try:
            async with asyncio.timeout_at(deadline):
                while self.n_waiting < self._max_batch and not self._closing:
                    self._arrived.clear()
                    await self._arrived.wait()
        except TimeoutError:
            return

    def _take(self) -> list[_Waiting]:
        """Take the requests that fit in one batch, in order; those that were given up meanwhile are dropped."""
        batch: list[_Waiting] = []
        n_texts = 0
        while self._waiting and (not batch or n_texts + len(self._waiting[0].texts) <= self._max_batch):
            each = self._waiting.popleft()
            if not each.outcome.done():
                batch.append(each)
                n_texts += len(each.texts)
        return batch

    async def _compute(self, batch: list[_Waiting]) -> None:
        """Compute a batch and give every request its rows."""
        texts = [text for each in batch for text in each.texts]
        if self._on_batch is not None:
            self._on_batch(len(batch), len(texts))
        try:
            probabilities = await self._in_thread(texts)
        except Exception as error:
            if len(batch) == 1:
                _settle(batch[0].outcome, error)
                return
            _log.warning("A batch of %d requests failed (%s): computing them one by one.", len(batch), error)
            for each in batch:
                await self._compute([each])
            return
        start = 0
        for each in batch:
            _settle(each.outcome, probabilities[start : start + len(each.texts)])
            start += len(each.texts)

    async def _in_thread(self, texts: list[str]) -> FloatArray:
        """Call the classifier in the worker thread."""
        probabilities = await asyncio.get_running_loop().run_in_executor(self._thread, self._classify, texts)
        if len(probabilities) != len(texts):
            raise RuntimeError(f"The classifier gave {len(probabilities)} rows for {len(texts)} texts.")
        return probabilities


def _settle(outcome: asyncio.Future[FloatArray], result: FloatArray | Exception) -> None:
    """Give a waiting request its outcome, unless it was given up meanwhile."""
    if outcome.done():
        return
    if isinstance(result, Exception):
        outcome.set_exception(result)
    else:
        outcome.set_result(result)
