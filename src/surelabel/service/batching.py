"""Micro-batching: questions that come at the same time are computed together."""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import dataclasses
import logging
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

__all__ = ["ClosedError", "MicroBatcher", "Question", "QueueFullError"]

_log = logging.getLogger(__name__)


class QueueFullError(Exception):
    """Too many texts wait already."""


class ClosedError(Exception):
    """The batcher takes nothing more."""


class Question(Protocol):
    """What can be asked: something about texts."""

    @property
    def n_texts(self) -> int:
        """How many texts it is about."""
        ...


_Question = TypeVar("_Question", bound=Question)
_Answer = TypeVar("_Answer")


@dataclasses.dataclass(eq=False)
class _Waiting(Generic[_Question, _Answer]):
    """A question that waits for its answer."""

    question: _Question
    arrived: float
    outcome: asyncio.Future[_Answer]


class MicroBatcher(Generic[_Question, _Answer]):
    """Gathers questions for one worker thread.

    While the thread is at work, what arrives waits, and goes together when it is done. Where the last batch was shared,
    the next one also waits up to `max_wait` seconds for company; who is alone never waits. Where a batch fails, its
    questions are computed one by one: only the bad one fails.

    Parameters
    ----------
    compute : callable
        From a list of questions to one answer each; an exception in place of an answer is raised to who asked.
        Called in the worker thread.
    max_batch_texts, max_wait, max_queue_texts
        As in `ServiceSettings`.
    on_batch : callable, optional
        Told the number of questions and of texts of every batch.
    """

    def __init__(
        self,
        compute: Callable[[list[_Question]], Sequence[_Answer | Exception]],
        *,
        max_batch_texts: int,
        max_wait: float,
        max_queue_texts: int,
        on_batch: Callable[[int, int], None] | None = None,
    ) -> None:
        self._compute_answers = compute
        self._max_batch = max_batch_texts
        self._max_wait = max_wait
        self._max_queue = max_queue_texts
        self._on_batch = on_batch
        self._waiting: collections.deque[_Waiting[_Question, _Answer]] = collections.deque()
        self._arrived = asyncio.Event()
        self._closing = False
        self._shared = False
        self._thread = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="surelabel-worker")
        self._loop_task: asyncio.Task[None] | None = None

    @property
    def n_waiting(self) -> int:
        """Texts that wait."""
        return sum(each.question.n_texts for each in self._waiting)

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

    async def ask(self, question: _Question, *, admitted: bool = False) -> _Answer:
        """Return the answer to a question.

        Parameters
        ----------
        question : Question
        admitted : bool
            It is a further part of what has been let in already, which is not turned away later.

        Raises
        ------
        QueueFullError
            Where too many texts wait already.
        ClosedError
            Where the batcher was closed.
        """
        if self._loop_task is None or self._loop_task.done() or (self._closing and not admitted):
            raise ClosedError
        if not admitted and self._waiting and self.n_waiting + question.n_texts > self._max_queue:
            raise QueueFullError
        loop = asyncio.get_running_loop()
        waiting: _Waiting[_Question, _Answer] = _Waiting(question, loop.time(), loop.create_future())
        self._waiting.append(waiting)
        self._arrived.set()
        return await waiting.outcome

    async def _work(self) -> None:
        """Compute batch after batch until the batcher is closed and nothing waits."""
        while batch := await self._collect():
            await self._compute(batch)

    async def _collect(self) -> list[_Waiting[_Question, _Answer]]:
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

    def _take(self) -> list[_Waiting[_Question, _Answer]]:
        """Take the questions that fit in one batch, in order; those that were given up meanwhile are dropped."""
        batch: list[_Waiting[_Question, _Answer]] = []
        n_texts = 0
        while self._waiting and (not batch or n_texts + self._waiting[0].question.n_texts <= self._max_batch):
            each = self._waiting.popleft()
            if not each.outcome.done():
                batch.append(each)
                n_texts += each.question.n_texts
        return batch

    async def _compute(self, batch: list[_Waiting[_Question, _Answer]]) -> None:
        """Compute a batch and give everyone their answer."""
        questions = [each.question for each in batch]
        if self._on_batch is not None:
            self._on_batch(len(batch), sum(question.n_texts for question in questions))
        try:
            loop = asyncio.get_running_loop()
            answers = await loop.run_in_executor(self._thread, self._compute_answers, questions)
        except Exception as error:
            if len(batch) == 1:
                _settle(batch[0].outcome, error)
                return
            _log.warning("A batch of %d requests failed (%s): computing them one by one.", len(batch), error)
            for each in batch:
                await self._compute([each])
            return
        for each, answer in zip(batch, answers, strict=True):
            _settle(each.outcome, answer)


def _settle(outcome: asyncio.Future[_Answer], answer: _Answer | Exception) -> None:
    """Give who waits the answer, unless they have given up meanwhile."""
    if outcome.done():
        return
    if isinstance(answer, Exception):
        outcome.set_exception(answer)
    else:
        outcome.set_result(answer)
