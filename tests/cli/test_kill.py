"""Kill -9 in the middle: old files are whole, and the same command again ends with the same result."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from bundle_cases import corpus
from surelabel import load_bundle

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals that cannot be caught")


def _start(*arguments):
    command = [sys.executable, "-m", "surelabel", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)


@pytest.fixture
def finish(run):
    """Return a function that runs a command to its end, in this process, which has its imports behind it."""

    def call(*arguments):
        found = run(*arguments)
        assert found.code == 0, found.err

    return call


def _kill_when(condition, *arguments):
    """Run a command and kill it as soon as a condition holds; return whether it was still running."""
    process = _start(*arguments)
    deadline = time.monotonic() + 120
    while process.poll() is None and not condition() and time.monotonic() < deadline:
        time.sleep(0.002)
    was_running = process.poll() is None
    if was_running:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    return was_running


def _same(one, other):
    """Assert that two models say the same."""
    texts = corpus().part("test").texts[:20]
    one, other = load_bundle(one), load_bundle(other)
    assert one.predict_proba(texts).tobytes() == other.predict_proba(texts).tobytes()
    assert np.array_equal(one.predictor.calibration_.totals, other.predictor.calibration_.totals)
    assert one.predictor.get_params() == other.predictor.get_params()
    figures = [[(point.error, point.sizes) for point in each.evaluation["L2"].curve] for each in (one, other)]
    assert figures[0] == figures[1]


def _files(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


OWN = ("--text", "body", "--labels", "tags", "--separator", ";")


def test_train(finish, own_file, trained, tmp_path):
    load_bundle(trained).save(tmp_path / "model")
    old = _files(tmp_path / "model")
    command = ("train", own_file, *OWN, "--out", tmp_path / "model", "--setting", "min_texts=2")
    work = tmp_path / ".model.training"
    for mark in (work / "run.json", work / "classifier"):
        assert _kill_when(mark.exists, *command)
        assert _files(tmp_path / "model") == old
        load_bundle(tmp_path / "model")
    finish(*command)
    finish("train", own_file, *OWN, "--out", tmp_path / "whole", "--setting", "min_texts=2")
    _same(tmp_path / "model", tmp_path / "whole")
    assert not work.exists()


def test_calibrate(finish, own_file, trained, tmp_path):
    load_bundle(trained).save(tmp_path / "model")
    command = ("calibrate", tmp_path / "model", own_file, *OWN, "--measure", "L2")
    _kill_when(lambda: any(tmp_path.glob(".model.*")), *command)
    assert load_bundle(tmp_path / "model").info.measure in {"LogLoss", "L2"}
    finish(*command)
    load_bundle(trained).save(tmp_path / "whole")
    finish("calibrate", tmp_path / "whole", own_file, *OWN, "--measure", "L2")
    _same(tmp_path / "model", tmp_path / "whole")


@pytest.mark.parametrize("name", ["answers.jsonl", "answers.parquet"])
def test_predict(finish, model, tmp_path, name):
    texts = tmp_path / "texts.txt"
    texts.write_text("".join(" ".join(text.split()) + "\n" for text in corpus().texts) * 3)
    target = tmp_path / name
    target.write_text("old")
    command = ("predict", model, texts, "--out", target, "--batch-size", 20)
    journal = tmp_path / f"{name}.part.json"
    part = tmp_path / f"{name}.part"
    assert _kill_when(lambda: part.exists() and part.stat().st_size > 10_000, *command)
    assert target.read_text() == "old"
    assert journal.exists()
    finish(*command, "--resume")
    finish("predict", model, texts, "--out", tmp_path / f"whole-{name}")
    if name.endswith("jsonl"):
        assert target.read_bytes() == (tmp_path / f"whole-{name}").read_bytes()
    else:
        from pyarrow import parquet

        assert parquet.read_table(target).equals(parquet.read_table(tmp_path / f"whole-{name}"))
    assert not list(tmp_path.glob("*.part*"))


def test_ctrl_c_leaves_no_half_written_file(model, tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("".join(" ".join(text.split()) + "\n" for text in corpus().texts) * 20)
    target = tmp_path / "answers.csv"
    process = _start("predict", model, texts, "--out", target, "--batch-size", 20)
    part = tmp_path / "answers.csv.part"
    deadline = time.monotonic() + 120
    while not (part.exists() and part.stat().st_size > 10_000) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors.decode()
    assert "Traceback" not in errors.decode()
    assert "--resume" in errors.decode()
    assert not target.exists()


def test_ctrl_c_ends_a_busy_training_and_says_how_to_resume(own_file, tmp_path):
    """A library that does not come back to Python, where Ctrl-C would be noticed, does not keep the process."""
    code = (
        "import hashlib, sys\n"
        "from surelabel.cli import main\n"
        "def busy(*_, **__):\n"
        "    print('busy', file=sys.stderr, flush=True)\n"
        "    hashlib.pbkdf2_hmac('sha256', b'', b'', 10**9)\n"  # minutes in C, deaf to signals
        "from surelabel.models import steps\n"
        "steps.fitted_classifier = busy\n"
        "main(sys.argv[1:])\n"
    )
    command = ["train", own_file, *OWN, "--out", tmp_path / "model"]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, command)], stderr=subprocess.PIPE, start_new_session=True, text=True
    )
    while "busy" not in (line := process.stderr.readline()):
        assert line, "the command ended"
    start = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert time.monotonic() - start < 10  # two seconds, and what a busy machine adds
    assert "run the same command again to resume" in errors
    assert not (tmp_path / "model").exists()
