"""`run`: the service as a process of its own, from a bundle on the disk."""

import os
import re
import signal
import socket
import subprocess
import sys
import time

import httpx
import pytest

from surelabel import ConformalLabelSets, LpNorm, text
from surelabel.exceptions import ArtifactError, InvalidInputError
from surelabel.models import Bundle, BundleInfo
from surelabel.service import run

NAMES = ("corn", "trade", "wheat")
SERVE = """
import logging, sys
logging.basicConfig(level=logging.INFO)
from surelabel.service import run
run(sys.argv[1], port=0)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    label_sets = [[name] for name in NAMES] + [[NAMES[0], NAMES[2]]]
    texts = [" ".join(labels) + f" number {number}" for number in range(15) for labels in label_sets]
    labels = [[name in labels for name in NAMES] for _ in range(15) for labels in label_sets]
    classifier = text.make("linear").fit(texts, labels, label_names=NAMES)
    predictor = ConformalLabelSets(LpNorm(2), label_names=NAMES).calibrate(classifier.predict_proba(texts), labels)
    info = BundleInfo("small", "linear", "2025-01-01T00:00:00Z", {}, {}, "made up", "0", {}, {}, 0, "L2")
    return Bundle(classifier, predictor, info).save(tmp_path_factory.mktemp("bundle") / "small")


def test_a_process_serves_and_ends_in_order(folder):
    environment = {**os.environ, "SURELABEL_TOKEN": "a token of some length"}
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(folder)], stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        address = re.search(r"http://127\.0\.0\.1:\d+/", process.stderr.readline()).group()
        headers = {"Authorization": "Bearer a token of some length"}
        deadline = time.monotonic() + 60
        with httpx.Client(base_url=address, headers=headers, timeout=30) as client:
            while client.get("/readyz").status_code != 200:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            answer = client.post("/v1/predict", json={"text": "wheat and corn", "significance": 0.2}).json()
            assert answer["answers"][0]["labels"] == ["corn", "wheat"]
            assert client.get("/v1/model", headers={"Authorization": "Bearer guess"}).status_code == 401
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=30)
        assert process.returncode in {0, -signal.SIGTERM}
        assert "Traceback" not in rest
        assert "token of some length" not in rest
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def test_a_port_that_is_taken(folder):
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(InvalidInputError, match="Choose another port"):
        run(folder, port=taken.getsockname()[1])


def test_no_bundle(tmp_path):
    with pytest.raises(ArtifactError, match="no bundle"):
        run(tmp_path / "nothing", port=0)


def test_no_token_for_others(folder):
    with pytest.raises(InvalidInputError, match="needs a token"):
        run(folder, host="0.0.0.0", port=0)
