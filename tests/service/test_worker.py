"""Micro-batching: what is waiting is computed together, and only a bad question fails."""

import asyncio
import threading

import pytest

from service.fakes import FakeBundle
from surelabel.service.answering import BATCH_TEXTS, Question, Worker
from surelabel.service.metrics import ServiceMetrics
from surelabel.service.schemas import ServiceError

pytestmark = pytest.mark.anyio


class SlowBundle(FakeBundle):
    """Waits before its first batch until it is told to go on."""

    def __init__(self):
        super().__init__()
        self.has_begun, self.may_go_on = threading.Event(), threading.Event()

    def answers(self, texts, **asked):
        self.has_begun.set()
        assert self.may_go_on.wait(600)
        return super().answers(texts, **asked)


async def together(questions, bundle=None):
    """Ask questions while a first one is being answered; return the outcomes."""
    bundle = bundle or SlowBundle()
    worker = Worker(bundle, ServiceMetrics())
    worker.start()
    first = asyncio.create_task(worker.ask(Question(["first"])))
    await asyncio.to_thread(bundle.has_begun.wait)
    others = [asyncio.create_task(worker.ask(question)) for question in questions]
    await asyncio.sleep(0)
    bundle.may_go_on.set()
    outcomes = await asyncio.gather(first, *others, return_exceptions=True)
    await worker.close()
    return bundle, outcomes[1:]


async def test_what_waits_is_answered_together():
    bundle, outcomes = await together([Question(["corn"]), Question(["oil", "wheat"]), Question(["unknown"])])
    assert bundle.batches == [1, 4]
    assert [[answer.labels for answer in outcome] for outcome in outcomes[:2]] == [[("corn",)], [("oil",), ("wheat",)]]


async def test_questions_at_other_levels_are_computed_apart():
    questions = [Question(["corn"], significance=level) for level in ("0.1", None, "0.1", 0.2)]
    bundle, outcomes = await together(questions)
    assert sorted(bundle.batches[1:]) == [1, 1, 2]
    assert [outcome[0].significance for outcome in outcomes] == ["0.1", None, "0.1", "0.2"]


async def test_only_the_bad_question_fails():
    bundle, outcomes = await together([Question(["corn"]), Question(["break"]), Question(["oil"])])
    assert [answer.labels for outcome in (outcomes[0], outcomes[2]) for answer in outcome] == [("corn",), ("oil",)]
    assert "breaks" in str(outcomes[1])
    assert bundle.batches == [1, 3, 1, 1, 1]


async def test_long_questions_take_turns_with_short_ones():
    long = Question([f"corn {number}" for number in range(3 * BATCH_TEXTS)])
    bundle, outcomes = await together([long, Question(["oil"])])
    assert [len(outcome) for outcome in outcomes] == [3 * BATCH_TEXTS, 1]
    assert max(bundle.batches) <= BATCH_TEXTS
    assert bundle.batches[2] <= BATCH_TEXTS


async def test_a_full_queue_asks_to_come_back(monkeypatch):
    monkeypatch.setattr("surelabel.service.answering._QUEUED", 2)
    _, outcomes = await together([Question(["corn"])] * 5)
    refusals = [outcome for outcome in outcomes if isinstance(outcome, ServiceError)]
    assert len(refusals) == 3
    assert {refusal.status_code for refusal in refusals} == {503}
    assert {refusal.headers["Retry-After"] for refusal in refusals} == {"1"}


async def test_who_gives_up_does_not_disturb_the_others():
    bundle = SlowBundle()
    worker = Worker(bundle, ServiceMetrics())
    worker.start()
    gives_up = asyncio.create_task(worker.ask(Question(["corn"])))
    await asyncio.to_thread(bundle.has_begun.wait)
    stays = asyncio.create_task(worker.ask(Question(["oil"])))
    gives_up.cancel()
    bundle.may_go_on.set()
    assert [answer.labels for answer in await stays] == [("oil",)]
    await worker.close()


async def test_what_is_left_at_the_end_is_refused():
    bundle = SlowBundle()
    worker = Worker(bundle, ServiceMetrics())
    worker.start()
    asked = [asyncio.create_task(worker.ask(Question([text]))) for text in ("corn", "oil")]
    await asyncio.to_thread(bundle.has_begun.wait)
    closing = asyncio.create_task(worker.close())
    await asyncio.sleep(0)
    bundle.may_go_on.set()
    await closing
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert {outcome.status_code for outcome in outcomes} == {503}
