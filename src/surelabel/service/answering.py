"""Questions to answers: whatever is waiting is computed together, in one worker thread."""

from __future__ import annotations

import asyncio
import concurrent.futures
import itertools
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from surelabel.guarantees.watch import ExchangeabilityWatch
from surelabel.models.calibrate import calibrate_bundle
from surelabel.service.schemas import busy, do_not_fit, unknown

if TYPE_CHECKING:
    from surelabel.answers import Answer
    from surelabel.models import Bundle
    from surelabel.service.metrics import ServiceMetrics

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
BATCH_TEXTS = 32
_QUEUED = 512


class Question(NamedTuple):
    """Texts, and what is asked about them."""

    texts: Sequence[str]
    groups: Sequence[str] | None = None
    significance: str | float | None = None
    confidence_level: str | float | None = None
    assurance: str | float | None = None
    top: int = 5
    dial: str | None = None  # how often an answer may be wrong, if not as often as the model promises

    @property
    def asked(self) -> tuple[Any, ...]:
        """What questions must have in common to be computed together."""
        return (self.groups is None, *map(str, self[2:]))


class _Waiting(NamedTuple):
    question: Question
    future: asyncio.Future[list[Answer]]

    def settle(self, outcome: list[Answer] | Exception) -> None:
        """Hand over an outcome, unless nobody is waiting for it any more."""
        if self.future.done():
            return
        if isinstance(outcome, Exception):
            self.future.set_exception(outcome)
        else:
            self.future.set_result(outcome)


class Worker:
    """Answers what is waiting, together; asking never blocks the event loop.

    If a batch fails, its questions are computed one by one, and only the bad one fails.
    """

    def __init__(self, bundle: Bundle, metrics: ServiceMetrics, *, watches: bool = False) -> None:
        self.bundle = bundle
        self.metrics = metrics
        self._watch = ExchangeabilityWatch(_scores(bundle, bundle.calibration.probabilities)) if watches else None
        self._dialled: dict[str, Bundle] = {}
        self._queue: asyncio.Queue[_Waiting] = asyncio.Queue(_QUEUED)
        self._thread = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="surelabel-worker")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to work; call it within a running event loop."""
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Stop, once the running batch is done; what is still waiting is refused."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await asyncio.to_thread(self._thread.shutdown)
        while not self._queue.empty():
            self._queue.get_nowait().settle(busy("The service is stopping.", 10))

    async def ask(self, question: Question) -> list[Answer]:
        """Return one answer per text; long questions take turns with others. If the queue is full it is refused."""
        if self._queue.full():
            raise busy("Too many texts are waiting already.")
        answers: list[Answer] = []
        for start in range(0, len(question.texts), BATCH_TEXTS):
            rows = slice(start, start + BATCH_TEXTS)
            groups = None if question.groups is None else question.groups[rows]
            part = question._replace(texts=question.texts[rows], groups=groups)
            waiting = _Waiting(part, asyncio.get_running_loop().create_future())
            await self._queue.put(waiting)
            answers += await waiting.future
        self.metrics.saw_answers(answers)
        return answers

    async def run(self, work: Callable[[], _T]) -> _T:
        """Run other work of the model in the same thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def _run(self) -> None:
        """Compute batch after batch."""
        while True:
            batch = [await self._queue.get()]
            n_texts = len(batch[0].question.texts)
            while n_texts < BATCH_TEXTS and not self._queue.empty():
                batch.append(self._queue.get_nowait())
                n_texts += len(batch[-1].question.texts)
            batch.sort(key=lambda waiting: waiting.question.asked)
            for _, alike in itertools.groupby(batch, key=lambda waiting: waiting.question.asked):
                await self._compute(list(alike))

    async def _compute(self, alike: list[_Waiting]) -> None:
        """Compute questions of one kind and settle their futures."""
        start = time.perf_counter()
        try:
            answers = await self.run(lambda: self._answer([waiting.question for waiting in alike]))
        except asyncio.CancelledError:
            for waiting in alike:
                waiting.settle(busy("The service is stopping.", 10))
            raise
        except Exception as error:
            if len(alike) == 1:
                alike[0].settle(error)
                return
            _log.warning("A batch of %d requests failed and is computed one by one: %s", len(alike), error)
            for waiting in alike:
                await self._compute([waiting])
            return
        self.metrics.batch_texts.observe(len(answers))
        self.metrics.batch_seconds.observe(time.perf_counter() - start)
        remaining = iter(answers)
        for waiting in alike:
            waiting.settle(list(itertools.islice(remaining, len(waiting.question.texts))))

    def _answer(self, questions: list[Question]) -> list[Answer]:
        """Answer questions that differ only in their texts and groups."""
        texts = [text for question in questions for text in question.texts]
        _, groups, significance, confidence_level, assurance, top, dial = questions[0]
        probabilities = self.bundle.predict_proba(texts)
        if self._watch is not None:
            self._follow(self._watch, probabilities)
        return self._at(dial).answers(
            texts,
            groups=None if groups is None else [group for question in questions for group in question.groups or ()],
            significance=significance,
            confidence_level=confidence_level,
            assurance=assurance,
            top=top,
            probabilities=probabilities,
        )

    def _at(self, dial: str | None) -> Bundle:
        """Return the model with all its promises at another position of the dial, calibrated when it is first used."""
        levels = self.bundle.info.levels
        if dial is None or self.bundle.filing is None or Fraction(dial) == Fraction(levels["max_wrong"]):
            return self.bundle
        if dial not in self._dialled:
            missed = Fraction(levels["max_missed"]) * Fraction(dial) / Fraction(levels["max_wrong"])
            max_missed = f"{min(float(missed), 0.5):.6g}"
            changed = calibrate_bundle(self.bundle, max_wrong=dial, max_missed=max_missed, significance=dial)
            self._dialled[dial] = changed
        return self._dialled[dial]

    def _follow(self, watch: ExchangeabilityWatch, probabilities: Any) -> None:
        """Let the watch see texts, and log its alarm once."""
        before = watch.state.alarm
        state = watch.update(_scores(self.bundle, probabilities))
        self.metrics.watch_capital.set(state.log10_martingale)
        self.metrics.watch_alarm.set(state.alarm)
        if state.alarm and not before:
            _log.warning("Texts have drifted: the watch raised its alarm. Calibrate with recent texts.")


def _scores(bundle: Bundle, probabilities: Any) -> Any:
    """Return the scores of best guesses."""
    return bundle.policy.automation.scores(probabilities)


def check_groups(bundle: Bundle, groups: Sequence[str] | None) -> None:
    """Refuse groups that are missing, unexpected or unknown."""
    if groups is not None and bundle.groups is None:
        raise do_not_fit("groups", "The model is not calibrated by groups.", "Leave the groups out.")
    if groups is None and bundle.groups is not None:
        message = f"Each text needs its {bundle.info.group_column}."
        raise do_not_fit("groups", message, "GET /v1/model lists the groups.")
    for number, group in enumerate(groups or ()):
        if group not in (bundle.groups or ()):
            raise unknown(f"groups[{number}]", "group", group)


def check_labels(bundle: Bundle, labels: Iterable[str], field: str = "labels[{}]") -> None:
    """Refuse labels that the model does not have."""
    known = frozenset(bundle.label_names)
    for number, label in enumerate(labels):
        if label not in known:
            raise unknown(field.format(number), "label", label)
