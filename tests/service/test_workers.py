"""Several processes that serve one bundle: one address, one set of metrics, one watch, one memory of outcomes."""

import contextlib
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time

import httpx
import pytest
from uvicorn.config import STARTUP_FAILURE

from bundle_cases import corpus, small_bundle
from surelabel.exceptions import InvalidInputError
from surelabel.guarantees.outcomes import OutcomeError, Outcomes
from surelabel.service import ReviewPlan, ServiceSettings, run
from surelabel.service.sharing import Shared

SERVE = """
import logging, sys
from surelabel.service import run
if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    run(sys.argv[1], port=0, workers=2, watch=True, timeout=5, state=sys.argv[1] + ".state")
"""


@contextlib.contextmanager
def _started(folder):
    """Start a program that serves the small bundle with two processes; yield it and its log."""
    small_bundle().save(folder / "model")
    (folder / "serve.py").write_text(SERVE)
    command = [sys.executable, folder / "serve.py", folder / "model"]
    log = folder / "log"
    with log.open("w") as stream:
        process = subprocess.Popen(command, stderr=stream)
    try:
        yield process, log
    finally:
        process.kill()
        process.wait()


def _wait_for(condition):
    deadline = time.monotonic() + 90
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return value


def _ask(client, path, **body):
    """Ask over a new connection, which any process may take; return status and content."""
    with contextlib.suppress(httpx.TransportError):
        headers = {"Connection": "close"}
        answer = client.post(path, json=body, headers=headers) if body else client.get(path, headers=headers)
        return answer.status_code, answer.text
    return 0, ""


def _metrics(client):
    lines = (line for line in _ask(client, "/metrics")[1].splitlines() if line[0] != "#")
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def _children(pid):
    command = ["ps", "-o", "pid=,args=", "-ww", "--ppid", str(pid)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    return {int(line.split()[0]) for line in listed.stdout.splitlines() if "spawn_main" in line}


def test_processes_share_what_they_know_are_replaced_and_end_together(tmp_path):
    with _started(tmp_path) as (process, log):
        url = _wait_for(lambda: re.search(r"http://127[.]0[.]0[.]1:[0-9]+", log.read_text())).group()
        assert "with 2 processes" in log.read_text()
        with httpx.Client(base_url=url, timeout=30) as client:
            _wait_for(lambda: _ask(client, "/readyz")[0] == 200)  # by one of them
            _wait_for(lambda: _metrics(client)["surelabel_ready"] == 1)  # by all
            first = _wait_for(lambda: len(pids := _children(process.pid)) == 2 and pids)
            texts = corpus().part("test").texts[:40]
            for number, text in enumerate(texts):
                assert _ask(client, "/v1/predict", text=text, id=str(number))[0] == 200
            # Whichever process is asked, it speaks for all of them.
            for number in range(4):
                status, _ = _ask(client, "/v1/outcomes", outcomes=[{"id": str(number), "labels": []}])
                values = _metrics(client)
                assert (status, values["surelabel_outcomes_settled"]) == (200, number + 1)
                assert values["surelabel_texts_total"] == values["surelabel_watch_texts"] == 40
                assert values['surelabel_requests_total{endpoint="/v1/predict",status="200"}'] == 40
                assert values["surelabel_requests_now"] == 1
                assert 0 < values["surelabel_conformal_time_share"] < 1
            # The slower process may have joined after the first was ready.
            _wait_for(lambda: _metrics(client)["surelabel_ready"] == 1)
            assert _ask(client, "/v1/outcomes", outcomes=[{"id": "0", "labels": []}])[0] == 409
            killed = min(first)
            os.kill(killed, signal.SIGKILL)
            second = _wait_for(lambda: len(pids := _children(process.pid) - {killed}) == 2 and pids)
            _wait_for(lambda: _ask(client, "/v1/predict", text=texts[0])[0] == 200)
            # What the dead one counted stays.
            assert _metrics(client)["surelabel_texts_total"] == 41
        process.send_signal(signal.SIGTERM)
        assert process.wait(90) == 0
        for pid in second:
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)
        assert "Traceback" not in log.read_text()
    # The outcomes are kept for the next service.
    kept = Outcomes.load(tmp_path / "model.state")
    assert (kept.n_settled_, kept.n_pending_) == (4, 36)


def test_a_program_that_every_process_would_run_again_ends(tmp_path, monkeypatch, caplog):
    # What multiprocessing sets while a new process imports the program that started it.
    monkeypatch.setattr(multiprocessing.current_process(), "_inheriting", True, raising=False)
    with pytest.raises(SystemExit) as ended:
        run(tmp_path, port=0, workers=2)
    assert ended.value.code == STARTUP_FAILURE
    assert "must begin with: if __name__ == '__main__':" in caplog.text


def test_what_is_shared_is_as_if_it_were_of_one_process(tmp_path):
    bundle = small_bundle()
    settings = ServiceSettings(watch=True, workers=2, state=tmp_path / "state")
    probabilities = bundle.predict_proba(corpus().part("test").texts[:30])
    own, kept = Shared.of(bundle, settings), Shared.of(bundle, settings)
    own.watch.update(probabilities)
    with kept.offered() as address:
        first, second = (Shared.connect(address, has_watch=True) for _ in range(2))
        first.watch.update(probabilities[:10])
        second.watch.update(probabilities[10:])
        states = [one.watch.state() for one in (first, second, own)]
        assert [state.n_seen for state in states] == [30] * 3
        assert len({state.log10_martingale for state in states}) == 1
        first.outcomes.remember(probabilities[:1], ["a"], significance="0.1")
        with pytest.raises(OutcomeError, match="a") as caught:
            second.outcomes.check_new(["a"])
        assert caught.value.identity == "a"
        second.outcomes.settle(["a"], [[]])
        assert first.outcomes.counts() == kept.outcomes.counts()
        assert first.outcomes.counts()["n_settled"] == 1
        assert Shared.connect(address, has_watch=False).watch is None
    assert Shared.of(bundle, settings).outcomes.counts()["n_settled"] == 1


@pytest.mark.parametrize("workers", [0, -1, 1.5, True, "2"])
def test_numbers_of_processes_that_are_none(workers):
    with pytest.raises(InvalidInputError, match="'workers' setting"):
        ServiceSettings(workers=workers)


def test_what_one_process_must_keep_is_refused_with_several(tmp_path):
    with pytest.raises(InvalidInputError, match=r"A level that adapts .* is kept by one process"):
        ServiceSettings(workers=2, adapt="aci")
    with pytest.raises(InvalidInputError, match="A review is served by one process"):
        run(tmp_path, port=0, workers=2, review=ReviewPlan(tmp_path / "reviews.sqlite"))
