"""Data sets on real Dask clusters: equal to one process, whatever dies in between."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from distributed import Client, LocalCluster

import surelabel._version
from bundle_cases import corpus, small_bundle
from dataset_cases import rows_of, write_texts
from surelabel import predict_dataset
from surelabel.exceptions import CorpusError, DatasetError
from surelabel.predicting import AnswerSettings
from surelabel.predicting import cluster as clusters

SMALL = AnswerSettings(partition_bytes=40_000, batch_size=64)
TEXTS = [" ".join(text.split()) for text in corpus().texts]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return small_bundle().save(tmp_path_factory.mktemp("models") / "small")


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster, set_as_default=False) as found,
    ):
        yield found


def _files(out):
    return {path.name: path.read_bytes() for path in out.glob("*.parquet")}


def _check_numbers(out, n_rows):
    """Every row of every file is there once, in order."""
    rows = rows_of(out)
    assert len(rows) == n_rows
    for file in {row["file"] for row in rows}:
        numbers = [row["row"] for row in rows if row["file"] == file]
        assert numbers == list(range(1, len(numbers) + 1))


def test_a_cluster_gives_what_one_process_gives_though_a_worker_dies(client, model, tmp_path):
    texts = write_texts(tmp_path / "texts", TEXTS * 4, n_files=4)
    predict_dataset(model, texts, tmp_path / "here", SMALL)
    killed = []

    def kill_one(done, total):
        if 0 < done < total and not killed:
            pid = next(iter(client.run(os.getpid).values()))
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    found = predict_dataset(model, texts, tmp_path / "there", SMALL, workers=client, advance=kill_one)
    assert killed
    assert (found.n_rows, found.n_found) == (len(TEXTS) * 4, 0)
    _check_numbers(tmp_path / "there", found.n_rows)
    assert _files(tmp_path / "there") == _files(tmp_path / "here")


def test_a_broken_row_is_told_from_afar(client, model, tmp_path):
    client.wait_for_workers(2, timeout=60)
    texts = write_texts(tmp_path / "texts", TEXTS[:40], n_files=2)
    (texts / "9.jsonl").write_text('{"text": "fine"}\n{"text": 3}\n')
    with pytest.raises(CorpusError, match=r"Row 2 of '9.jsonl' must hold text.* of 3 partitions are finished"):
        predict_dataset(model, texts, tmp_path / "out", workers=client)
    found = predict_dataset(model, texts, tmp_path / "skip", AnswerSettings(on_error="skip"), workers=client)
    assert (found.n_rows, found.n_skipped) == (41, 1)


def test_workers_with_another_version(client, model, tmp_path):
    client.wait_for_workers(2, timeout=60)
    texts = write_texts(tmp_path / "texts", TEXTS[:4], n_files=1)
    one = next(iter(client.scheduler_info()["workers"]))
    client.run(setattr, surelabel._version, "__version__", "0.0.1", workers=[one])
    try:
        with pytest.raises(DatasetError, match=r"it has surelabel 0\.0\.1\. Install"):
            predict_dataset(model, texts, tmp_path / "out", workers=client)
    finally:
        client.run(setattr, surelabel._version, "__version__", surelabel.__version__)


def test_a_scheduler_that_is_not_there(model, tmp_path, monkeypatch):
    monkeypatch.setattr(clusters, "_CONNECT_SECONDS", 1)
    texts = write_texts(tmp_path / "texts", TEXTS[:4], n_files=1)
    with pytest.raises(DatasetError, match=r"There is no Dask scheduler at 'tcp://127.0.0.1:1'"):
        predict_dataset(model, texts, tmp_path / "out", workers="tcp://127.0.0.1:1")
    with pytest.raises(DatasetError, match="There is no Dask scheduler at 'klingon://x'"):
        predict_dataset(model, texts, tmp_path / "out", workers="klingon://x")


def _start(*arguments, **options):
    return subprocess.Popen(
        [sys.executable, "-m", *map(str, arguments)], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, **options
    )


class _Cluster:
    """A scheduler and two workers in processes of their own."""

    def __init__(self, folder):
        place = folder / f"scheduler-{time.monotonic_ns()}.json"
        common = ["--scheduler-file", place]
        self.scheduler = _start("distributed.cli.dask_scheduler", *common, "--host", "127.0.0.1", "--no-dashboard")
        deadline = time.monotonic() + 60
        while not place.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.2)
        self.address = json.loads(place.read_text())["address"]
        options = ["--nthreads", 1, "--no-dashboard", "--local-directory", folder]
        self.workers = [_start("distributed.cli.dask_worker", self.address, *options) for _ in range(2)]

    def end(self):
        for process in (*self.workers, self.scheduler):
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        for process in (*self.workers, self.scheduler):
            try:
                process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()


@pytest.mark.slow
def test_a_scheduler_is_killed_and_another_goes_on(model, tmp_path):
    texts = write_texts(tmp_path / "texts", TEXTS * 20, n_files=4)
    predict_dataset(model, texts, tmp_path / "here", SMALL)
    out = tmp_path / "there"
    first = _Cluster(tmp_path)
    killer = threading.Thread(target=lambda: _kill_after(first, out, 5))
    try:
        killer.start()
        with pytest.raises(DatasetError, match="scheduler went away"):
            predict_dataset(model, texts, out, SMALL, workers=first.address)
    finally:
        killer.join()
        first.end()
    n_done = len(list((out / "_surelabel").glob("part-*.json")))
    assert n_done >= 5
    assert not (out / "_manifest.json").exists()
    second = _Cluster(tmp_path)
    try:
        found = predict_dataset(model, texts, out, SMALL, workers=second.address, resume=True)
    finally:
        second.end()
    assert n_done <= found.n_found < found.n_partitions
    _check_numbers(out, len(TEXTS) * 20)
    assert _files(out) == _files(tmp_path / "here")


def _kill_after(cluster, out, n_partitions):
    """Kill a worker, then the scheduler, when some partitions are done."""
    deadline = time.monotonic() + 120
    while len(list((out / "_surelabel").glob("part-*.json"))) < n_partitions and time.monotonic() < deadline:
        time.sleep(0.01)
    cluster.workers[0].kill()
    cluster.scheduler.kill()
