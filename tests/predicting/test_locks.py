"""Two runs into one folder of a remote store: one of them writes, and what is finished stays."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import fsspec
import pytest

import dataset_cases
from bundle_cases import corpus, small_bundle
from dataset_cases import register_stores, rows_of, write_texts
from surelabel import predict_dataset
from surelabel.exceptions import DatasetError, InvalidInputError
from surelabel.predicting import locks
from surelabel.tables.stores import Store

LOCK = "_surelabel/lock.json"
TEXTS = [" ".join(text.split()) for text in corpus().part("test").texts[:60]]
# Answers to a data set; after its first partition it says so, and goes on when it is told to.
RUN = """
import sys
from dataset_cases import register_stores
from surelabel import predict_dataset
register_stores()

def advance(done, total):
    if 0 < done < total:
        print(done, flush=True)
        sys.stdin.readline()

predict_dataset(*sys.argv[1:4], advance=advance)
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    register_stores()
    monkeypatch.setattr(locks, "_SETTLE_SECONDS", 0.2)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return small_bundle().save(tmp_path_factory.mktemp("models") / "small")


@pytest.fixture
def running(model, tmp_path):
    """Start a run in another process; it waits after its first partition."""
    started = []
    write_texts(tmp_path / "texts", TEXTS)

    def start(kind):
        command = [sys.executable, "-c", RUN, str(model), str(tmp_path / "texts"), f"{kind}://{tmp_path}/out"]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(Path(dataset_cases.__file__).parent), *sys.path]),
        }
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        started.append(subprocess.Popen(command, text=True, env=environment, **pipes))
        assert started[-1].stdout.readline() == "20\n"
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
            process.communicate()


def _age(path):
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, "time": time.time() - 1000.0}))


@pytest.mark.parametrize("kind", ["remote", "careless"])
def test_a_second_run_is_refused_while_the_first_one_writes(kind, running, model, tmp_path):
    first = running(kind)
    with pytest.raises(InvalidInputError, match="Another run is writing"):
        predict_dataset(model, tmp_path / "texts", f"{kind}://{tmp_path}/out", resume=True)
    _, errors = first.communicate("\n\n\n", timeout=60)
    assert first.returncode == 0, errors
    assert len(rows_of(tmp_path / "out")) == 60
    assert not (tmp_path / "out" / LOCK).exists()


def test_the_lock_of_a_killed_run_is_taken_over_when_it_is_old(running, model, tmp_path):
    first = running("remote")
    first.send_signal(signal.SIGKILL)
    first.communicate()
    url = f"remote://{tmp_path}/out"
    with pytest.raises(InvalidInputError, match="died less than 120 seconds ago"):
        predict_dataset(model, tmp_path / "texts", url, resume=True)
    _age(tmp_path / "out" / LOCK)
    found = predict_dataset(model, tmp_path / "texts", url, resume=True)
    assert (found.n_found, found.n_rows) == (1, 60)
    assert not list((tmp_path / "out" / "_surelabel").glob("lock*"))


def test_a_run_that_has_lost_its_lock_stops_and_leaves_what_is_finished(running, model, tmp_path):
    first = running("careless")
    (tmp_path / "out" / LOCK).write_text(json.dumps({"time": time.time(), "token": "another's"}))
    _, errors = first.communicate("\n\n\n", timeout=60)
    assert first.returncode != 0
    assert "was taken by another run. 1 of 3 partitions are finished; --resume continues from there." in errors
    assert json.loads((tmp_path / "out" / LOCK).read_text())["token"] == "another's"
    assert len(rows_of(tmp_path / "out")) == 20
    _age(tmp_path / "out" / LOCK)
    found = predict_dataset(model, tmp_path / "texts", f"careless://{tmp_path}/out", resume=True)
    assert (found.n_found, found.n_rows) == (1, 60)


@pytest.mark.parametrize("left", [None, "stale", "stale and taken over by one that died"])
@pytest.mark.parametrize("kind", ["remote", "careless"])
def test_of_many_at_once_one_gets_the_lock(kind, left, tmp_path):
    """A lock on a local disk is made in one step, so that one of them gets it, every time."""
    for attempt in range(3):
        folder = tmp_path / str(attempt)
        (folder / "_surelabel").mkdir(parents=True)
        old = {"time": time.time() - 1000.0, "token": "dead"}
        if left:
            (folder / LOCK).write_text(json.dumps(old))
        if left and left != "stale":
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(Store, "remove", lambda *_: None)
                patched.setattr(time, "time", lambda: 1.0)
                locks._take(Store(f"remote://{folder}"), LOCK.replace(".json", f".{_mark('dead')}.json"), "dead too")
        found = []
        barrier = threading.Barrier(6)

        def take(folder=folder, found=found, barrier=barrier):
            store = Store(f"{kind}://{folder}")
            barrier.wait()
            try:
                with locks.remote_lock(store, LOCK):
                    found.append("got")
                    time.sleep(0.4)
            except InvalidInputError:
                found.append("busy")

        threads = [threading.Thread(target=take) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 6
        assert found.count("got") <= 1
        if left is None and kind == "remote":
            assert found.count("got") == 1
        # Whoever comes after them gets it.
        for file in (folder / "_surelabel").iterdir():
            _age(file)
        with locks.remote_lock(Store(f"{kind}://{folder}"), LOCK):
            pass
        assert not (folder / LOCK).exists()


def _mark(token):
    return hashlib.sha256(repr(token).encode()).hexdigest()[:16]


def test_a_store_in_memory():
    store = Store("memory://locked")
    with locks.remote_lock(store, LOCK) as token:
        assert locks.is_held(store, LOCK, token)
        with pytest.raises(InvalidInputError, match="Another run is writing"), locks.remote_lock(store, LOCK):
            pass
        assert locks.is_held(store, LOCK, token)
    assert store.read_json(LOCK) is None
    store.write_json(LOCK, {"time": "yesterday", "token": ["../../x"]})
    with locks.remote_lock(store, LOCK):
        pass
    fsspec.filesystem("memory").pipe("/locked/_surelabel/lock.json", b"{")
    with pytest.raises(InvalidInputError, match=r"remove _surelabel/lock\.json there"), locks.remote_lock(store, LOCK):
        pass
    fsspec.filesystem("memory").rm("/locked", recursive=True)


def test_a_lock_is_renewed_until_it_is_lost(monkeypatch):
    monkeypatch.setattr(locks, "_LOCK_SECONDS", 0.2)
    store = Store("memory://renewed")
    with locks.remote_lock(store, LOCK) as token:
        time.sleep(0.4)
        assert locks._is_fresh(store.read_json(LOCK))
        store.write_json(LOCK, {"time": 1.0, "token": "another's"})
        time.sleep(0.2)
        assert not locks.is_held(store, LOCK, token)
    assert store.read_json(LOCK) == {"time": 1.0, "token": "another's"}
    fsspec.filesystem("memory").rm("/renewed", recursive=True)


def test_a_run_whose_lock_is_lost_writes_no_manifest(tmp_path, model, monkeypatch):
    write_texts(tmp_path / "texts", TEXTS)
    seen = []

    def advance(done, total):
        seen.append(done)
        if done == total:
            (tmp_path / "out" / LOCK).write_text(json.dumps({"time": time.time(), "token": "another's"}))

    with pytest.raises(DatasetError, match=r"taken by another run\. 3 of 3 partitions are finished"):
        predict_dataset(model, tmp_path / "texts", f"careless://{tmp_path}/out", advance=advance)
    assert seen[-1] == 60
    assert not (tmp_path / "out" / "_manifest.json").exists()
