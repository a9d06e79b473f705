"""Who started the work hears how far it is; nobody else pays for it."""

import threading

import pytest

from surelabel._core.progress import reporting_to, step


@pytest.fixture
def heard():
    calls = []
    with reporting_to(lambda *call: calls.append(call)):
        yield calls


def test_steps_inside_steps(heard):
    with step("train", 2) as advance:
        with step("read"):
            pass
        advance()
        with step("count", 300) as counted:
            counted(256)
            counted(44)
        advance()
    assert heard == [
        ("train", 0, 2), ("read", 0, None), ("train", 0, 2), ("train", 1, 2),
        ("count", 0, 300), ("count", 256, 300), ("count", 300, 300), ("train", 1, 2), ("train", 2, 2),
    ]  # fmt: skip


def test_threads_report_to_the_step_they_were_given(heard):
    with step("count", 400) as advance:
        threads = [threading.Thread(target=lambda: [advance() for _ in range(100)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [done for _, done, _ in heard] == list(range(401))


def test_an_error_ends_a_step(heard):
    with pytest.raises(ZeroDivisionError), step("train", 1), step("inside"):
        raise ZeroDivisionError
    with step("next"):
        pass
    assert heard[-1] == ("next", 0, None)


def test_nobody_listens():
    with step("count", 3) as advance:
        advance(3)
    with reporting_to(None), step("count", 3) as advance:
        advance()
