"""Work ahead: the same items, few at a time, and no thread left behind."""

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surelabel.predicting.files import ahead


def _threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("surelabel-ahead")]


@given(items=st.lists(st.integers() | st.none()), depth=st.integers(1, 4))
def test_items_come_in_their_order(items, depth):
    assert list(ahead(ahead(iter(items), depth), depth)) == items
    assert not _threads()


def test_few_items_wait():
    made = []

    def items():
        for n in range(50):
            made.append(n)
            yield n

    for n in ahead(items(), 2):
        time.sleep(0.002)
        assert len(made) <= n + 5


def test_steps_overlap():
    both = threading.Barrier(2, timeout=30)

    def items():
        yield 1
        both.wait()  # the taker has the first item by now, and must not wait for the second
        yield 2

    for n in ahead(items()):
        if n == 1:
            both.wait()


def test_errors_come_where_the_item_would():
    def items():
        yield 1
        raise OSError("gone")

    taken = ahead(ahead(items()))
    assert next(taken) == 1
    with pytest.raises(OSError, match="gone"):
        next(taken)
    assert not _threads()


def test_closing_stops_the_makers():
    closed = []

    def items():
        try:
            while True:
                yield 0
        finally:
            closed.append(True)

    taken = ahead(ahead(items()))
    next(taken)
    taken.close()
    assert closed == [True]
    assert not _threads()
