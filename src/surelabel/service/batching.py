"""Micro-batching: questions that come at the same time are computed together."""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

_log = logging.getLogger(__name__)


class QueueFullError(Exception):
    """Too many texts wait already; the argument is how many seconds they will take."""


class ClosedError(Exception):
    """The batcher takes nothing more."""


class _Waiting(NamedTuple):
    """A question that waits for its answer."""

    question: Any
    arrived: float
    outcome: asyncio.Future[Any]


_Queue: TypeAlias = "collections.deque[_Waiting]"


class MicroBatcher:
    """Gathers questions about texts, of which each has a number `n_texts`, for one worker thread.

    While the thread is at work, what arrives waits, and goes together when it is done. If the last batch was shared,
    the next one also waits up to `max_wait` seconds for company; a lone question never waits. Parts of long requests
    take turns with short ones: up to half the texts of a batch are kept for short ones that wait. If a batch fails, its
    questions are computed one by one: only the bad one fails.

    `compute` runs in the thread: from a list of questions to one answer each; an exception in place of an answer is
    raised to who asked. `on_batch` gets the numbers of questions and texts of each batch, `on_waiting` the number of
    texts that wait whenever it changes.
    """

    def __init__(
        self,
        compute: Callable[[list[Any]], Sequence[Any]],
        *,
        max_batch_texts: int,
        max_wait: float,
        max_queue_texts: int,
        on_batch: Callable[[int, int], None] = lambda *_: None,
        on_waiting: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._compute_answers = compute
        self._max_batch = max_batch_texts
        self._max_wait = max_wait
        self._max_queue = max_queue_texts
        self._on_batch = on_batch
        self._on_waiting = on_waiting
        self.n_waiting = 0
        self._short: _Queue = collections.deque()
        self._long: _Queue = collections.deque()
        self._admitted = self._running = 0
        self._n_batches = 0
        self._seconds_per_text = 0.0
        self._arrived = asyncio.Event()
        self._closing = False
        self._shared = False
        self._thread = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="surelabel-worker")
        self._loop_task: asyncio.Task[None] | None = None

    @property
    def seconds_of_backlog(self) -> float:
        """How long the admitted texts will take, as far as recent batches tell."""
        return self._admitted * self._seconds_per_text

    @contextlib.contextmanager
    def admitted(self, n_texts: int, seconds: float) -> Iterator[None]:
        """Reserve room for the texts of a request, all of its parts.

        Raises QueueFullError if too many texts are admitted already, or if the request would not be answered within so
        many seconds; ClosedError if the batcher was closed.
        """
        if self._loop_task is None or self._loop_task.done() or self._closing:
            raise ClosedError
        waiting = self._admitted - self._running
        expected = (self._admitted + n_texts) * self._seconds_per_text
        if waiting and (waiting + n_texts > self._max_queue or expected > seconds):
            raise QueueFullError(self.seconds_of_backlog)
        self._admitted += n_texts
        try:
            yield
        finally:
            self._admitted -= n_texts
            self._arrived.set()

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

    async def ask(self, question: Any, *, is_long: bool = False) -> Any:
        """Return the answer to a question of an admitted request, a part of a long one or all of it.

        Raises ClosedError if the batcher has ended.
        """
        if self._loop_task is None or self._loop_task.done():
            raise ClosedError
        loop = asyncio.get_running_loop()
        waiting = _Waiting(question, loop.time(), loop.create_future())
        (self._long if is_long else self._short).append(waiting)
        self._note_waiting(self.n_waiting + question.n_texts)
        self._arrived.set()
        return await waiting.outcome

    async def _work(self) -> None:
        """Compute batch after batch until the batcher is closed and nothing waits."""
        while batch := await self._collect():
            await self._compute(batch)

    async def _collect(self) -> list[_Waiting]:
        """Wait for a batch; empty where the batcher is closed and nothing waits."""
        while True:
            while not (self._short or self._long):
                if self._closing and not self._admitted:
                    return []
                self._arrived.clear()
                await self._arrived.wait()
            if self._shared and not self._closing:
                first = min(queue[0].arrived for queue in (self._short, self._long) if queue)
                await self._wait_for_company(first + self._max_wait)
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
        """Take the questions that fit in one batch; questions that were given up meanwhile are dropped."""
        n_short = sum(waiting.question.n_texts for waiting in self._short)
        batch = _fill([], self._long, self._max_batch - min(n_short, self._max_batch // 2))
        batch = _fill(batch, self._short, self._max_batch)
        batch = _fill(batch, self._long, self._max_batch)
        self._note_waiting(sum(waiting.question.n_texts for waiting in (*self._short, *self._long)))
        return batch

    def _note_waiting(self, n_texts: int) -> None:
        """Note how many texts wait."""
        self.n_waiting = n_texts
        self._on_waiting(n_texts)

    async def _compute(self, batch: list[_Waiting]) -> None:
        """Compute a batch and give everyone their answer."""
        questions = [each.question for each in batch]
        self._running = n_texts = sum(question.n_texts for question in questions)
        self._on_batch(len(batch), n_texts)
        loop = asyncio.get_running_loop()
        start = loop.time()
        try:
            answers = await loop.run_in_executor(self._thread, self._compute_answers, questions)
        except Exception as error:
            if len(batch) == 1:
                _settle(batch[0].outcome, error)
                return
            _log.warning("A batch of %d requests failed (%s): computing them one by one.", len(batch), error)
            for each in batch:
                await self._compute([each])
            return
        finally:
            self._running = 0
        self._learn((loop.time() - start) / n_texts)
        for each, answer in zip(batch, answers, strict=True):
            _settle(each.outcome, answer)

    def _learn(self, seconds_per_text: float) -> None:
        """Let a batch's time count in the running mean; the first batch, which loads and compiles, does not."""
        if self._n_batches:
            weight = max(0.05, 1 / self._n_batches)
            self._seconds_per_text += weight * (seconds_per_text - self._seconds_per_text)
        self._n_batches += 1


def _fill(batch: list[_Waiting], queue: _Queue, most: int) -> list[_Waiting]:
    """Move questions from a queue to a batch that may have `most` texts; a first question is always taken."""
    n_texts = sum(each.question.n_texts for each in batch)
    while queue and (not batch or n_texts + queue[0].question.n_texts <= most):
        waiting = queue.popleft()
        if not waiting.outcome.done():
            batch.append(waiting)
            n_texts += waiting.question.n_texts
    return batch


def _settle(outcome: asyncio.Future[Any], answer: Any) -> None:
    """Give who waits the answer, unless they have given up meanwhile."""
    if outcome.done():
        return
    if isinstance(answer, Exception):
        outcome.set_exception(answer)
    else:
        outcome.set_result(answer)
