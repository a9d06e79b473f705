"""Against the real Label Studio from PyPI, in an environment of its own, on the loopback address."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from label_studio_cases import interface
from service_running import make_bundle, serving
from surelabel.predicting.label_studio import LabelConfig
from surelabel.review import IncomingSettings, ReviewStore, from_label_studio, label_studio_tasks, take_in
from surelabel.review.incoming import Incoming

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::surelabel.exceptions.CalibrationWarning"),
]
TOKEN = "0123456789abcdef0123456789abcdef01234567"
USER = "reviewer@example.org"


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The program label-studio; SURELABEL_LABEL_STUDIO names one that is installed, else it is installed here."""
    named = os.environ.get("SURELABEL_LABEL_STUDIO")
    if named:
        return Path(named)
    folder = tmp_path_factory.mktemp("label-studio") / "venv"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    done = subprocess.run(
        [folder / "bin" / "pip", "install", "--quiet", "label-studio"], check=False, capture_output=True, text=True
    )
    if done.returncode != 0:
        pytest.skip(f"label-studio cannot be installed from PyPI: {done.stderr[-300:]}")
    return folder / "bin" / "label-studio"


@pytest.fixture(scope="module")
def studio(program, tmp_path_factory):
    """A running Label Studio; yields a client with its token."""
    data = tmp_path_factory.mktemp("studio")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
        "COLLECT_ANALYTICS": "false",
        "LATEST_VERSION_CHECK": "false",
        "SENTRY_DSN": "",
        # The backend of the test is on this machine; by default Label Studio calls no private addresses.
        "ML_BLOCK_LOCAL_IP": "false",
        "USE_DEFAULT_BANNED_SUBNETS": "false",
        "LABEL_STUDIO_ML_BLOCK_LOCAL_IP": "false",
        "HOME": str(data),
    }
    command = [program, "start", "--no-browser", "--data-dir", data, "--host", f"http://127.0.0.1:{port}"]
    command += ["--internal-host", "127.0.0.1", "--port", str(port)]
    command += ["--username", USER, "--password", "a long password", "--user-token", TOKEN]
    with (data / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=data)
    client = httpx.Client(
        base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Token {TOKEN}"}, timeout=60, trust_env=False
    )
    try:
        deadline = time.monotonic() + 300
        while True:
            with contextlib.suppress(httpx.HTTPError):
                if client.get("/health").status_code == 200:
                    break
            assert process.poll() is None, (data / "log").read_text()[-3_000:]
            assert time.monotonic() < deadline, (data / "log").read_text()[-3_000:]
            time.sleep(1)
        yield client
    finally:
        client.close()
        process.terminate()
        process.wait(30)
        shutil.rmtree(data, ignore_errors=True)


def told(answer, *statuses):
    assert answer.status_code in statuses, f"{answer.request.url}: {answer.status_code}: {answer.text[:800]}"
    return answer.json()


def test_tasks_in_and_annotations_back(studio, tmp_path):
    bundle = make_bundle()
    rows = [Incoming(str(n), text, {}) for n, text in enumerate(["corn wheat", "trade", "grain corn", "wheat trade"])]
    with ReviewStore(tmp_path / "reviews.sqlite") as store:
        take_in(store, bundle, rows, "m", IncomingSettings(significance="0.2", check_share=0))
        tasks = label_studio_tasks(store, queues=("choose", "read"))
        assert len(tasks) == 4
        config = interface(LabelConfig(), bundle.label_names)
        project = told(studio.post("/api/projects", json={"title": "review", "label_config": config}), 201)["id"]
        told(studio.post(f"/api/projects/{project}/import", json=tasks), 201)
        listed = told(studio.get("/api/tasks", params={"project": project, "fields": "all"}), 200)["tasks"]
        assert len(listed) == 4
        by_text = {task["data"]["text"]: task for task in listed}
        for task in tasks:
            shown = by_text[task["data"]["text"]]["predictions"]
            scores = sorted(prediction["score"] for prediction in shown)
            assert scores == pytest.approx(sorted(prediction["score"] for prediction in task["predictions"]))

        for text, task in by_text.items():
            value = {"choices": text.split()}
            region = {"from_name": "labels", "to_name": "text", "type": "choices", "value": value}
            annotation = {"result": [region], "lead_time": 2.5}
            told(studio.post(f"/api/tasks/{task['id']}/annotations/", json=annotation), 201)
        exported = told(studio.get(f"/api/projects/{project}/export", params={"exportType": "JSON"}), 200)
        assert from_label_studio(store, exported).n_saved == 4
        assert from_label_studio(store, exported).n_known == 4
        decided = {decision.text_id: set(decision.chosen) for decision in store.decisions()}
        assert decided == {row.id: set(row.text.split()) for row in rows}


def test_our_service_is_a_backend(studio):
    bundle = make_bundle()
    config = interface(LabelConfig(), bundle.label_names)
    project = told(studio.post("/api/projects", json={"title": "backend", "label_config": config}), 201)["id"]
    told(studio.post(f"/api/projects/{project}/import", json=[{"data": {"text": "corn wheat maybe"}}]), 201)
    with serving(bundle) as running:
        backend = {"project": project, "url": f"{running.url}/label-studio", "title": "surelabel"}
        told(studio.post("/api/ml", json=backend), 201)
        connected = told(studio.get("/api/ml", params={"project": project}), 200)
        assert connected[0]["state"] == "CO"  # connected: it was asked for its health and set up
        asked = {"id": "retrieve_tasks_predictions", "project": project}
        body = {"selectedItems": {"all": True, "excluded": []}}
        told(studio.post("/api/dm/actions", params=asked, json=body), 200)
    [task] = told(studio.get("/api/tasks", params={"project": project, "fields": "all"}), 200)["tasks"]
    assert len(task["predictions"]) > 1  # one per plausible label-set
    assert all(prediction["model_version"].startswith("surelabel") for prediction in task["predictions"])
