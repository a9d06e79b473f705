"""The service as processes of its own, and behind real HTTP: sizes, shutdown, limits, workers."""

import concurrent.futures
import contextlib
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading

import httpx
import pytest

import surelabel
from service.conftest import refused, running
from service.fakes import FakeBundle
from surelabel.exceptions import ArtifactError, InvalidInputError
from surelabel.service import ServiceSettings, serve

TOKEN = "a token of some length"
SERVE = """
import logging, sys
logging.basicConfig(level=logging.INFO)
from surelabel.service import ServiceSettings, serve
if __name__ == "__main__":
    serve(sys.argv[1], ServiceSettings(port=0, workers=int(sys.argv[2]), token=sys.argv[3], watch=True))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "small"
    surelabel.train(surelabel.corpora.load("synthetic", n_texts=200, n_labels=4), folder)
    return folder


class Process:
    """A service in a process of its own; what it logs is read in a thread."""

    def __init__(self, folder, tmp_path, workers=1, **options):
        script = tmp_path / "serve_it.py"
        script.write_text(SERVE)
        self.temporary = tmp_path / "temporary"
        self.temporary.mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            [sys.executable, script, str(folder), str(workers), TOKEN],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(self.temporary)},
            **options,
        )
        self.log = []
        self._address = concurrent.futures.Future()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        url = self._address.result()
        self.client = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=None)

    def _read(self):
        for line in self.process.stderr:
            self.log.append(line)
            if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                self._address.set_result(found[0])
        if not self._address.done():
            self._address.set_exception(AssertionError("".join(self.log)))

    def wait_until_ready(self):
        while True:
            assert self.process.poll() is None, self.log
            with contextlib.suppress(httpx.TransportError):
                if self.client.get("/readyz").status_code == 200:
                    return self

    def end(self, sign):
        """Send a signal, wait until the process and its workers have ended, and return what was logged."""
        self.process.send_signal(sign)
        self.process.wait()
        self._reader.join()  # at the end of the last process that has the pipe
        self.process.stderr.close()
        self.client.close()
        return "".join(self.log)


def test_it_answers_and_ends_in_order(folder, tmp_path):
    service = Process(folder, tmp_path).wait_until_ready()
    answer = service.client.post("/v1/predict", json={"text": "oil and trade", "significance": 0.2}).json()["answers"][
        0
    ]
    assert (
        answer == {"id": "1"} | surelabel.load_bundle(folder).answers(["oil and trade"], significance="0.2")[0].record()
    )
    assert service.client.get("/v1/model", headers={"Authorization": "Bearer guess"}).status_code == 401
    assert "surelabel_watch_alarm 0.0" in service.client.get("/metrics").text
    log = service.end(signal.SIGTERM)
    assert service.process.returncode in {0, -signal.SIGTERM}
    assert "Traceback" not in log
    assert TOKEN not in log
    assert list(service.temporary.iterdir()) == []


def test_several_workers_share_metrics_end_together_and_leave_nothing_behind(folder, tmp_path):
    service = Process(folder, tmp_path, workers=2).wait_until_ready()
    for _ in range(8):  # each on a connection of its own, so that either worker may get it
        headers = {"Connection": "close"}
        assert service.client.post("/v1/predict", json={"text": "oil"}, headers=headers).status_code == 200
    counted = re.search(r'endpoint="/v1/predict",status="200"} (\d+)', service.client.get("/metrics").text)
    assert counted[1] == "8"
    service.end(signal.SIGKILL)  # returns when the workers, which have its pipe too, are gone
    assert list(service.temporary.iterdir()) != []
    log = Process(folder, tmp_path, workers=2).wait_until_ready().end(signal.SIGHUP)
    assert "Traceback" not in log
    assert list(service.temporary.iterdir()) == []


def test_more_connections_than_files_leave_it_alive_without_traces(folder, tmp_path):
    def few_files():
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))

    service = Process(folder, tmp_path, preexec_fn=few_files).wait_until_ready()
    address = (service.client.base_url.host, service.client.base_url.port)
    with contextlib.ExitStack() as opened:
        for _ in range(150):
            opened.enter_context(socket.create_connection(address))
        # The last ones wait in the queue of the system, or are refused; nothing is answered late by a crash.
    service.wait_until_ready()
    log = service.end(signal.SIGHUP)
    assert "Traceback" not in log
    assert re.search(r"may open 100 files", log)
    assert log.count("No more connections") <= 1


def test_what_cannot_be_served(folder, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(InvalidInputError, match="port"):
        serve(folder, ServiceSettings(port=taken.getsockname()[1]))
    with pytest.raises(ArtifactError):
        serve(tmp_path / "nothing", ServiceSettings(port=0))
    with pytest.raises(InvalidInputError, match="review"):
        serve(folder, ServiceSettings(port=0, workers=2), store=tmp_path / "reviews.sqlite")


class SlowBundle(FakeBundle):
    """Takes until it is told to go on, once it is warm."""

    def __init__(self):
        super().__init__()
        self.has_begun, self.may_go_on = threading.Event(), threading.Event()

    def answers(self, texts, **asked):
        if "slow" in texts:
            self.has_begun.set()
            assert self.may_go_on.wait(600)
        return super().answers(texts, **asked)


def test_a_running_request_is_finished_before_it_ends():
    bundle = SlowBundle()
    with running(bundle) as service, concurrent.futures.ThreadPoolExecutor(1) as thread:
        asked = thread.submit(httpx.post, f"{service.url}/v1/predict", json={"text": "slow"}, timeout=None)
        assert bundle.has_begun.wait(600)
        assert httpx.get(f"{service.url}/healthz", timeout=None).status_code == 200  # the event loop is free
        service.server.should_exit = True
        bundle.may_go_on.set()
        assert asked.result().status_code == 200


def test_large_bodies_are_cut_off_while_they_come():
    head = b"POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    with running(FakeBundle()) as service:
        limit = ServiceSettings().max_body_bytes
        json = {"Content-Type": "application/json"}
        refused(httpx.post(f"{service.url}/v1/predict", content=b" " * (limit + 1), headers=json, timeout=None), 413)
        address = httpx.URL(service.url)
        with socket.create_connection((address.host, address.port)) as connection:
            connection.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
            n_sent = 0
            with contextlib.suppress(OSError):
                while n_sent < 200:
                    connection.sendall(b"100000\r\n" + b" " * 2**20 + b"\r\n")
                    n_sent += 1
        assert n_sent < 50
        claims = head + b"Content-Length: 99999999999\r\n\r\n"
        with socket.create_connection((address.host, address.port)) as connection:
            connection.sendall(claims)
            assert b" 413 " in connection.recv(4_096).splitlines()[0]


def test_a_long_table_comes_in_pieces():
    content = ("text\n" + "corn\n" * 1_000).encode()
    headers = {"Content-Type": "application/octet-stream"}
    with running(FakeBundle()) as service:
        url = f"{service.url}/v1/table?name=a.csv"
        with httpx.stream("POST", url, content=content, headers=headers, timeout=None) as response:
            pieces = list(response.iter_raw())
        assert len(pieces) > 5
        assert b"".join(pieces).count(b"\n") == 1_001
