import asyncio
import threading
import time

import numpy as np
import pytest

from surelabel.service.batching import ClosedError, MicroBatcher, QueueFullError


class Recorder:
    """A classifier that gives each text its length, and remembers its batches."""

    def __init__(self, seconds=0.0):
        self.batches = []
        self.threads = set()
        self.seconds = seconds
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, texts):
        self.batches.append(list(texts))
        self.threads.add(threading.current_thread().name)
        assert self.gate.wait(10)
        time.sleep(self.seconds)
        if "bad" in texts:
            raise ValueError("a bad text")
        if "short" in texts:
            return np.zeros((0, 1))
        return np.array([[float(len(text))] for text in texts])


def with_batcher(classify, use, **options):
    """Run `use(batcher)` in a loop of its own."""
    options = {"max_batch_texts": 4, "max_wait": 0.02, "max_queue_texts": 100, **options}

    async def run():
        batcher = MicroBatcher(classify, **options)
        batcher.start()
        try:
            return await use(batcher)
        finally:
            await batcher.close()

    return asyncio.run(asyncio.wait_for(run(), 30))


async def until(condition):
    while not condition():
        await asyncio.sleep(0.001)


def test_one_request_goes_alone_and_at_once():
    classify = Recorder()

    async def use(batcher):
        return await batcher.predict_proba(["abc"])

    assert with_batcher(classify, use, max_wait=20.0).tolist() == [[3.0]]
    assert classify.batches == [["abc"]]
    assert classify.threads == {"surelabel-classifier_0"}


def test_requests_that_come_while_it_works_share_a_batch_and_keep_their_rows():
    classify = Recorder()
    classify.gate.clear()
    seen = []

    async def use(batcher):
        requests = [asyncio.create_task(batcher.predict_proba(["x"]))]
        await until(lambda: classify.batches)
        requests += [asyncio.create_task(batcher.predict_proba(["a" * n] * (n % 2 + 1))) for n in range(5)]
        await until(lambda: batcher.n_waiting == 7)
        classify.gate.set()
        return await asyncio.gather(*requests)

    rows = with_batcher(classify, use, on_batch=lambda *counts: seen.append(counts))
    assert [row.ravel().tolist() for row in rows] == [[1.0], [0.0], [1.0, 1.0], [2.0], [3.0, 3.0], [4.0]]
    assert [len(batch) for batch in classify.batches] == [1, 4, 3]
    assert seen == [(1, 1), (3, 4), (2, 3)]


def test_after_a_shared_batch_the_next_waits_for_company_but_not_longer_than_said():
    classify = Recorder()
    classify.gate.clear()

    async def use(batcher):
        first = [asyncio.create_task(batcher.predict_proba(["x"]))]
        await until(lambda: classify.batches)
        first += [asyncio.create_task(batcher.predict_proba(["y"])) for _ in range(2)]
        await until(lambda: batcher.n_waiting == 2)
        classify.gate.set()
        await asyncio.gather(*first)
        one = asyncio.create_task(batcher.predict_proba(["p"]))
        await asyncio.sleep(0.01)
        two = asyncio.create_task(batcher.predict_proba(["q"]))
        await asyncio.gather(one, two)
        await batcher.predict_proba(["alone, after a shared batch"])

    with_batcher(classify, use, max_wait=0.3)
    assert classify.batches[1:] == [["y", "y"], ["p", "q"], ["alone, after a shared batch"]]


def test_a_bad_request_fails_alone():
    classify = Recorder()
    classify.gate.clear()

    async def use(batcher):
        requests = [asyncio.create_task(batcher.predict_proba(["x"]))]
        await until(lambda: classify.batches)
        requests += [asyncio.create_task(batcher.predict_proba([text])) for text in ("fine", "bad", "good!")]
        await until(lambda: batcher.n_waiting == 3)
        classify.gate.set()
        return await asyncio.gather(*requests, return_exceptions=True)

    _, fine, bad, good = with_batcher(classify, use)
    assert (fine.item(), good.item()) == (4.0, 5.0)
    assert isinstance(bad, ValueError)


def test_a_classifier_that_loses_rows_is_an_error():
    async def use(batcher):
        await batcher.predict_proba(["short"])

    with pytest.raises(RuntimeError, match="0 rows for 1 texts"):
        with_batcher(Recorder(), use)


def test_a_long_request_goes_in_parts_and_lets_others_in_between():
    classify = Recorder()
    classify.gate.clear()

    async def use(batcher):
        long = asyncio.create_task(batcher.predict_proba([str(n) for n in range(10)]))
        await until(lambda: classify.batches)
        other = asyncio.create_task(batcher.predict_proba(["other"]))
        await until(lambda: batcher.n_waiting == 1)
        classify.gate.set()
        await other
        before = len(classify.batches)
        return before, await long

    before, rows = with_batcher(classify, use, max_wait=0.0)
    assert before < len(classify.batches)
    assert rows.ravel().tolist() == [1.0] * 10


def test_a_full_queue_turns_requests_away_but_not_those_it_let_in():
    classify = Recorder()
    classify.gate.clear()

    async def use(batcher):
        running = asyncio.create_task(batcher.predict_proba(["x"]))
        await until(lambda: classify.batches)
        waiting = asyncio.create_task(batcher.predict_proba(["y"] * 3))
        await until(lambda: batcher.n_waiting == 3)
        with pytest.raises(QueueFullError):
            await batcher.predict_proba(["z"])
        classify.gate.set()
        return await asyncio.gather(running, waiting)

    assert len(with_batcher(classify, use, max_queue_texts=3)[1]) == 3


def test_requests_given_up_are_not_computed():
    classify = Recorder()
    classify.gate.clear()

    async def use(batcher):
        running = asyncio.create_task(batcher.predict_proba(["x"]))
        await until(lambda: classify.batches)
        given_up = asyncio.create_task(batcher.predict_proba(["never"]))
        await until(lambda: batcher.n_waiting == 1)
        given_up.cancel()
        classify.gate.set()
        await running

    with_batcher(classify, use)
    assert classify.batches == [["x"]]


def test_closing_finishes_what_waits_and_takes_nothing_more():
    classify = Recorder(seconds=0.01)

    async def use(batcher):
        requests = [asyncio.create_task(batcher.predict_proba([str(n)])) for n in range(9)]
        await asyncio.sleep(0)
        await batcher.close()
        with pytest.raises(ClosedError):
            await batcher.predict_proba(["late"])
        return await asyncio.gather(*requests)

    assert len(with_batcher(classify, use)) == 9


def test_the_event_loop_goes_on_while_the_classifier_works():
    classify = Recorder(seconds=0.2)

    async def use(batcher):
        ticks = 0
        request = asyncio.create_task(batcher.predict_proba(["x"]))
        while not request.done():
            await asyncio.sleep(0.005)
            ticks += 1
        return ticks

    assert with_batcher(classify, use) >= 5
