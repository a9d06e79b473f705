"""A run that is killed goes on and ends as if it had not been."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import numpy as np
import pytest

from surelabel.exceptions import TrainingError
from surelabel.text import make

CNN = {"embedding_size": 8, "n_kernels": 8, "n_hidden": 16, "batch_size": 8, "epochs": 5, "seed": 3}
BERT = {"batch_size": 8, "epochs": 2, "seed": 3, "precision": "float32", "head_learning_rate": 1e-2}

SCRIPT = """
import json, os, signal, sys
import numpy as np
from surelabel.text import make, training

kind, settings, folder, seconds, kill_at, data = sys.argv[1:]
training.CHECKPOINT_SECONDS = float(seconds)
original = training._Callback.on_step_end
steps = 0

def on_step_end(self, args, state, control, **others):
    global steps
    steps += 1
    if steps == int(kill_at):
        os.kill(os.getpid(), signal.SIGKILL)
    return original(self, args, state, control, **others)

training._Callback.on_step_end = on_step_end
data = np.load(data)
texts, new_texts = data["texts"].tolist(), data["new_texts"].tolist()
validation = new_texts, data["new_labels"]
make(kind, **json.loads(settings)).fit(texts, data["labels"], validation=validation, checkpoint_folder=folder)
"""


@pytest.fixture(scope="module")
def data(topical, tmp_path_factory):
    (texts, labels), (new_texts, new_labels) = topical
    path = tmp_path_factory.mktemp("data") / "data.npz"
    np.savez(path, texts=texts, labels=labels, new_texts=new_texts, new_labels=new_labels)
    return path


def _run(kind, settings, seconds, kill_at, data, folder):
    """Train in a process of its own that kills itself after some steps; return how it ended."""
    arguments = [kind, json.dumps(settings), folder / "run", seconds, kill_at, data]
    command = [sys.executable, "-c", SCRIPT, *map(str, arguments)]
    return subprocess.run(command, timeout=300, check=False).returncode


@pytest.mark.parametrize(
    ("kind", "seconds", "kills"),
    [("randinit", 600, [40]), ("randinit", 0, [20, 17]), ("bert", 0, [25])],
    ids=["from the last epoch", "from within an epoch, twice", "bert"],
)
def test_killed_and_resumed_is_as_uninterrupted(
    kind, seconds, kills, data, topical, tiny_encoder, tmp_path, monkeypatch
):
    settings = CNN if kind == "randinit" else {**BERT, "model": str(tiny_encoder)}
    training, validation = topical
    expected = make(kind, **settings).fit(*training, validation=validation).predict_proba(validation[0])
    for kill_at in kills:
        assert _run(kind, settings, seconds, kill_at, data, tmp_path) == -signal.SIGKILL
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
