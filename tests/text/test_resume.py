"""A run that is killed goes on and ends as if it had not been."""

from __future__ import annotations

import multiprocessing
import signal

import numpy as np
import pytest

from surelabel.exceptions import TrainingError
from surelabel.text import make

CNN = {"embedding_size": 8, "n_kernels": 8, "n_hidden": 16, "batch_size": 8, "epochs": 5, "seed": 3}
BERT = {"batch_size": 8, "epochs": 2, "seed": 3, "precision": "float32", "head_learning_rate": 1e-2}

# Trains, and kills its process after some steps.
SCRIPT = """
import os, signal
from surelabel.text import make, training

training.CHECKPOINT_SECONDS = seconds
original = training._Callback.on_step_end
steps = 0

def on_step_end(self, args, state, control, **others):
    global steps
    steps += 1
    if steps == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
    return original(self, args, state, control, **others)

training._Callback.on_step_end = on_step_end
make(kind, **settings).fit(*texts, validation=validation, checkpoint_folder=folder)
"""


@pytest.fixture(scope="module")
def processes():
    """Processes that are forked from one with the imports behind it: these take longer than the training."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["surelabel.text.bert", "surelabel.text.cnn"])
    return context


def _run(processes, **names):
    """Train in a process of its own; return how it ended."""
    process = processes.Process(target=exec, args=(SCRIPT, names), daemon=True)
    process.start()
    process.join(300)
    return process.exitcode


@pytest.mark.parametrize(
    ("kind", "seconds", "kills"),
    [("randinit", 600, [40]), ("randinit", 0, [20, 17]), ("bert", 0, [25])],
    ids=["from the last epoch", "from within an epoch, twice", "bert"],
)
def test_killed_and_resumed_is_as_uninterrupted(
    kind, seconds, kills, processes, topical, tiny_encoder, tmp_path, monkeypatch
):
    settings = CNN if kind == "randinit" else {**BERT, "model": str(tiny_encoder)}
    training, validation = topical
    expected = make(kind, **settings).fit(*training, validation=validation).predict_proba(validation[0])
    names = {"kind": kind, "settings": settings, "texts": training, "validation": validation}
    for kill_at in kills:
        ended = _run(processes, **names, seconds=seconds, kill_at=kill_at, folder=tmp_path / "run")
        assert ended == -signal.SIGKILL
    assert list((tmp_path / "run").glob("checkpoint-*/complete"))
    # What a kill in the middle of writing a checkpoint leaves behind.
    (tmp_path / "run" / "checkpoint-9999").mkdir()
    (tmp_path / "run" / "checkpoint-9999" / "model.safetensors").write_bytes(b"half")
    monkeypatch.setattr("surelabel.text.training.CHECKPOINT_SECONDS", seconds)
    resumed = make(kind, **settings).fit(*training, validation=validation, checkpoint_folder=tmp_path / "run")
    assert np.array_equal(resumed.predict_proba(validation[0]), expected)


def test_a_finished_run_is_not_run_again(topical, tmp_path):
    training, validation = topical
    first = make("randinit", **CNN).fit(*training, validation=validation, checkpoint_folder=tmp_path)
    before = sorted(path.name for path in tmp_path.iterdir())
    second = make("randinit", **CNN).fit(*training, validation=validation, checkpoint_folder=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert np.array_equal(first.predict_proba(validation[0]), second.predict_proba(validation[0]))
    assert second.history_ == first.history_


def test_checkpoints_of_another_run_are_refused(topical, tmp_path):
    training, validation = topical
    short = {**CNN, "epochs": 1}
    make("randinit", **short).fit(*training, validation=validation, checkpoint_folder=tmp_path)
    other = make("randinit", **{**short, "seed": 4})
    with pytest.raises(TrainingError, match="belong to a run with other settings"):
        other.fit(*training, validation=validation, checkpoint_folder=tmp_path)
    other.fit(*training, validation=validation, checkpoint_folder=tmp_path, resume=False)
    fresh = make("randinit", **{**short, "seed": 4}).fit(*training, validation=validation)
    assert np.array_equal(other.predict_proba(validation[0]), fresh.predict_proba(validation[0]))
