import asyncio
import dataclasses
import threading
import time

import pytest

from surelabel.service.batching import ClosedError, MicroBatcher, QueueFullError


@dataclasses.dataclass(frozen=True)
class Lengths:
    """Asks for the lengths of texts."""

    texts: tuple

    @property
    def n_texts(self):
        return len(self.texts)


class Recorder:
    """Answers with the length of each text, and remembers its batches."""

    def __init__(self, seconds=0.0):
        self.batches = []
        self.threads = set()
        self.seconds = seconds
        self.gate = threading.Event()
        self.gate.set()

    def __call__(self, questions):
        texts = [text for question in questions for text in question.texts]
        self.batches.append(texts)
        self.threads.add(threading.current_thread().name)
        assert self.gate.wait(10)
        time.sleep(self.seconds)
        if "bad" in texts:
            raise ValueError("a bad text")
        return [
            KeyError("odd") if "odd" in question.texts else [len(text) for text in question.texts]
            for question in questions
        ]


def ask(batcher, *texts, seconds=60.0, **options):
    async def admitted():
        with batcher.admitted(len(texts), seconds):
            return await batcher.ask(Lengths(texts), **options)

    return asyncio.create_task(admitted())


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
        return await ask(batcher, "abc")

    assert with_batcher(classify, use, max_wait=20.0) == [3]
    assert classify.batches == [["abc"]]
    assert classify.threads == {"surelabel-worker_0"}


def test_requests_that_come_while_it_works_share_a_batch_and_keep_their_rows():
    classify = Recorder()
    classify.gate.clear()
    seen = []

    async def use(batcher):
        requests = [ask(batcher, "x")]
        await until(lambda: classify.batches)
        requests += [ask(batcher, *["a" * n] * (n % 2 + 1)) for n in range(5)]
        await until(lambda: batcher.n_waiting == 7)
        classify.gate.set()
        return await asyncio.gather(*requests)

    rows = with_batcher(classify, use, on_batch=lambda *counts: seen.append(counts))
    assert rows == [[1], [0], [1, 1], [2], [3, 3], [4]]
    assert [len(batch) for batch in classify.batches] == [1, 4, 3]
    assert seen == [(1, 1), (3, 4), (2, 3)]


def test_after_a_shared_batch_the_next_waits_for_company_but_not_longer_than_said():
    classify = Recorder()
    classify.gate.clear()

    async def use(batcher):
        first = [ask(batcher, "x")]
        await until(lambda: classify.batches)
        first += [ask(batcher, "y") for _ in range(2)]
        await until(lambda: batcher.n_waiting == 2)
        classify.gate.set()
        await asyncio.gather(*first)
        one = ask(batcher, "p")
        await asyncio.sleep(0.01)
        two = ask(batcher, "q")
        await asyncio.gather(one, two)
        await ask(batcher, "alone, after a shared batch")

    with_batcher(classify, use, max_wait=0.3)
    assert classify.batches[1:] == [["y", "y"], ["p", "q"], ["alone, after a shared batch"]]


def test_a_bad_request_fails_alone():
    classify = Recorder()
    classify.gate.clear()

    async def use(batcher):
        requests = [ask(batcher, "x")]
        await until(lambda: classify.batches)
        requests += [ask(batcher, text) for text in ("fine", "bad", "good!")]
        await until(lambda: batcher.n_waiting == 3)
        classify.gate.set()
        return await asyncio.gather(*requests, return_exceptions=True)

    _, fine, bad, good = with_batcher(classify, use)
    assert (fine, good) == ([4], [5])
    assert isinstance(bad, ValueError)


def test_an_exception_in_place_of_an_answer_is_raised_to_who_asked():
    classify = Recorder()
    classify.gate.clear()

    async def use(batcher):
        requests = [ask(batcher, "x")]
        await until(lambda: classify.batches)
        requests += [ask(batcher, "odd"), ask(batcher, "even")]
        await until(lambda: batcher.n_waiting == 2)
        classify.gate.set()
        return await asyncio.gather(*requests, return_exceptions=True)

    _, odd, even = with_batcher(classify, use)
    assert isinstance(odd, KeyError)
    assert even == [4]
    assert len(classify.batches) == 2


def test_a_full_queue_turns_requests_away_but_not_parts_of_those_it_admitted():
    classify = Recorder()
    classify.gate.clear()

    async def use(batcher):
        running = ask(batcher, "x")
        await until(lambda: classify.batches)
        waiting = ask(batcher, *["y"] * 3)
        await until(lambda: batcher.n_waiting == 3)
        with pytest.raises(QueueFullError):
            await ask(batcher, "z")
        further = asyncio.create_task(batcher.ask(Lengths(("part of what was let in",))))
        classify.gate.set()
        return await asyncio.gather(running, waiting, further)

    assert with_batcher(classify, use, max_queue_texts=3)[1:] == [[1, 1, 1], [23]]


def test_requests_given_up_are_not_computed():
    classify = Recorder()
    classify.gate.clear()

    async def use(batcher):
        running = ask(batcher, "x")
        await until(lambda: classify.batches)
        given_up = ask(batcher, "never")
        await until(lambda: batcher.n_waiting == 1)
        given_up.cancel()
        classify.gate.set()
        await running

    with_batcher(classify, use)
    assert classify.batches == [["x"]]


def test_closing_finishes_what_waits_and_takes_nothing_more():
    classify = Recorder(seconds=0.01)

    async def use(batcher):
        requests = [ask(batcher, str(n)) for n in range(9)]
        await asyncio.sleep(0)
        await batcher.close()
        with pytest.raises(ClosedError):
            await ask(batcher, "late")
        return await asyncio.gather(*requests)

    assert len(with_batcher(classify, use)) == 9


def test_the_event_loop_goes_on_while_the_classifier_works():
    classify = Recorder(seconds=0.2)

    async def use(batcher):
        ticks = 0
        request = ask(batcher, "x")
        while not request.done():
            await asyncio.sleep(0.005)
            ticks += 1
        return ticks

    assert with_batcher(classify, use) >= 5


def test_a_request_that_would_not_be_answered_in_time_is_refused_at_once():
    classify = Recorder(seconds=0.05)

    async def use(batcher):
        for _ in range(3):
            await ask(batcher, "x")
        classify.gate.clear()
        running = ask(batcher, "x")
        await until(lambda: len(classify.batches) == 4)
        waiting = ask(batcher, *["y"] * 4)
        await until(lambda: batcher.n_waiting == 4)
        with pytest.raises(QueueFullError) as refused:
            await ask(batcher, "z", seconds=0.1)
        in_time = ask(batcher, "z", seconds=10.0)
        classify.gate.set()
        return await asyncio.gather(running, waiting, in_time), refused.value.args[0]

    answers, backlog = with_batcher(classify, use)
    assert answers == [[1], [1, 1, 1, 1], [1]]
    assert 0.2 <= backlog <= 5.0


def test_long_requests_take_turns_with_short_ones():
    classify = Recorder()

    async def use(batcher):
        classify.gate.clear()
        running = ask(batcher, "x")
        await until(lambda: classify.batches)
        long = [ask(batcher, "l1", "l2", is_long=True) for _ in range(3)]
        await until(lambda: batcher.n_waiting == 6)
        short = [ask(batcher, "s") for _ in range(4)]
        await until(lambda: batcher.n_waiting == 10)
        classify.gate.set()
        await asyncio.gather(running, *long, *short)

    with_batcher(classify, use)
    assert classify.batches[1:] == [["l1", "l2", "s", "s"], ["l1", "l2", "s", "s"], ["l1", "l2"]]


def test_closing_waits_for_an_admitted_request_that_ends_without_a_further_part():
    async def use(batcher):
        with batcher.admitted(3, 60.0):
            closing = asyncio.create_task(batcher.close())
            await asyncio.sleep(0.01)
            assert not closing.done()
            with pytest.raises(ClosedError), batcher.admitted(1, 60.0):
                pass
        await closing

    with_batcher(Recorder(), use)
