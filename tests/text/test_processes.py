"""Two processes that train together: they work, agree, and learn what one process learns."""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import sys

import numpy as np
import pytest

from surelabel.text.batching import BucketedBatches, training_batches

SCRIPT = """
import json, os, sys
import numpy as np
from surelabel.text import make

data, found, kind, settings, folder = sys.argv[1:]
data = np.load(data)
texts, new_texts = data["texts"].tolist(), data["new_texts"].tolist()
classifier = make(kind, **json.loads(settings))
options = {"checkpoint_folder": folder} if folder else {}
classifier.fit(texts, data["labels"], validation=(new_texts, data["new_labels"]), **options)
rank = os.environ.get("RANK", "0")
f1 = max(epoch["validation_micro_f1"] for epoch in classifier.history_)
np.savez(f"{found}-{rank}.npz", probabilities=classifier.predict_proba(new_texts), f1=f1)
"""


@pytest.mark.parametrize(("n_texts", "batch_size", "n_processes"), [(20, 8, 2), (21, 4, 3), (5, 1, 2)])
def test_processes_share_the_batches_of_one(n_texts, batch_size, n_processes):
    lengths = np.arange(1, n_texts + 1)
    shares = [list(BucketedBatches(lengths, batch_size, 0, k, n_processes)) for k in range(n_processes)]
    for batch, *parts in zip(training_batches(lengths, batch_size, 0, 0), *shares, strict=True):
        assert all(parts)
        assert set().union(*parts) == set(batch.tolist())
        if len(batch) >= n_processes:
            assert sorted(itertools.chain.from_iterable(parts)) == sorted(batch.tolist())


def _free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def _train(tmp_path, topical, kind, settings, *, n_processes, folder=""):
    (texts, labels), (new_texts, new_labels) = topical
    np.savez(tmp_path / "data.npz", texts=texts, labels=labels, new_texts=new_texts, new_labels=new_labels)
    (tmp_path / "train.py").write_text(SCRIPT)
    found = tmp_path / f"found-{n_processes}-{bool(folder)}"
    start = [sys.executable]
    if n_processes > 1:
        start += [
            "-m",
            "torch.distributed.run",
            "--nproc-per-node",
            str(n_processes),
            "--master-port",
            str(_free_port()),
        ]
    command = [*start, tmp_path / "train.py", tmp_path / "data.npz", found, kind, settings, folder]
    made = subprocess.run(
        [str(each) for each in command], timeout=400, check=False, capture_output=True, env=os.environ
    )
    assert made.returncode == 0, made.stderr.decode()[-2000:]
    return [np.load(f"{found}-{rank}.npz") for rank in range(n_processes)]


@pytest.mark.slow
def test_two_processes_learn_what_one_learns(tmp_path, topical):
    settings = '{"embedding_size": 8, "n_kernels": 8, "n_hidden": 16, "batch_size": 8, "epochs": 8, "seed": 3}'
    (alone,) = _train(tmp_path, topical, "randinit", settings, n_processes=1)
    first, second = _train(tmp_path, topical, "randinit", settings, n_processes=2)
    assert np.array_equal(first["probabilities"], second["probabilities"])
    assert abs(float(first["f1"]) - float(alone["f1"])) < 0.06
    assert np.abs(first["probabilities"] - alone["probabilities"]).mean() < 0.1
    kept, _ = _train(tmp_path, topical, "randinit", settings, n_processes=2, folder=str(tmp_path / "run"))
    again, _ = _train(tmp_path, topical, "randinit", settings, n_processes=2, folder=str(tmp_path / "run"))
    assert np.array_equal(kept["probabilities"], first["probabilities"])
    assert np.array_equal(again["probabilities"], first["probabilities"])


@pytest.mark.slow
def test_two_processes_fine_tune_an_encoder(tmp_path, topical, tiny_encoder):
    settings = (
        f'{{"model": "{tiny_encoder}", "batch_size": 8, "epochs": 4, "seed": 3, "precision": "float32", '
        '"head_learning_rate": 0.01}'
    )
    (alone,) = _train(tmp_path, topical, "bert", settings, n_processes=1)
    first, second = _train(tmp_path, topical, "bert", settings, n_processes=2)
    assert np.array_equal(first["probabilities"], second["probabilities"])
    assert abs(float(first["f1"]) - float(alone["f1"])) < 0.06
