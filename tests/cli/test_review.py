"""`surelabel review` and `surelabel reviews`."""

import csv
import json

import pytest

from surelabel import load_bundle
from surelabel.review import Incoming, IncomingSettings, ReviewStore, take_in


@pytest.fixture(scope="module")
def bundle(model):
    return load_bundle(model)


@pytest.fixture
def store(tmp_path, bundle):
    """A review of six texts, one of them for the blind check, two decided."""
    path = tmp_path / "june.sqlite"
    texts = ["Crude, a barrel.", "Football and a goal.", "Elections.", "Medicine.", "A vote on oil.", "Trade."]
    rows = [Incoming(str(number), text, {"id": str(number), "text": text}) for number, text in enumerate(texts)]
    with ReviewStore(path) as opened:
        take_in(opened, bundle, rows[:5], "m", IncomingSettings(check_share=0))
        take_in(opened, bundle, rows[5:], "m", IncomingSettings(check_share=1))
        decided = 0
        for queue in ("choose", "read", "filed"):
            for text in opened.lease("ann", queue):
                if decided < 2:
                    opened.decide(f"key {text.number}", text.number, "ann", "edit", ["oil"], seconds=4.0)
                    decided += 1
        opened.release("ann")
    return path


def test_review_plans_and_runs_the_service(run, model, monkeypatch, tmp_path):
    calls = []
    monkeypatch.setattr(
        "surelabel.service.run", lambda *arguments, **options: calls.append((arguments, options)), raising=False
    )
    options = ("--text", "body", "--check", "0.2", "-s", "0.1", "--lease", "2", "--port", "0")
    assert run("review", model, tmp_path / "june.csv", *options).code == 0
    ((folder, host, port, token), more) = calls[0]
    assert (folder, host, port, token) == (model, "127.0.0.1", 0, None)
    plan = more["review"]
    assert plan.store == f"{tmp_path / 'june.csv'}.reviews.sqlite"
    assert (plan.texts, plan.lease_seconds) == (tmp_path / "june.csv", 120)
    assert (plan.incoming.significance, plan.incoming.check_share) == ("0.1", 0.2)
    assert plan.incoming.columns.text == ("body",)
    assert run("serve", model, "--reviews", "other.sqlite").code == 0
    assert calls[1][1]["review"].store == "other.sqlite"
    wrong = run("review", model)
    assert wrong.code == 2
    assert "give TEXTS, or the --store" in wrong.err


def test_summary(run, store):
    found = run("reviews", "summary", store)
    assert found.code == 0
    assert "Time per text: 4.0 s" in found.out
    figures = json.loads(run("reviews", "summary", store, "--json").out)
    assert figures["n_decided"] == 2
    assert figures["queues"]["check"]["waiting"] == 1


def test_export(run, store, tmp_path):
    assert run("reviews", "export", store, tmp_path / "out.csv").code == 0
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 6
    assert sum(row["decided_by"] == "ann" and row["final_labels"] == "oil" for row in rows) == 2
    assert run("reviews", "export", tmp_path / "none.sqlite", tmp_path / "out.csv").code == 2


def test_other_tools(run, store, model, tmp_path):
    tasks = tmp_path / "tasks.json"
    assert run("reviews", "export", store, tasks, "--for", "label-studio").code == 0
    made = json.loads(tasks.read_text(encoding="utf-8"))
    waiting = [task for task in made if task["data"]["surelabel_queue"] == "check"]
    region = {"type": "choices", "value": {"choices": ["trade"]}}
    waiting[0]["annotations"] = [{"id": 1, "completed_by": 7, "result": [region]}]
    tasks.write_text(json.dumps(waiting), encoding="utf-8")
    assert json.loads(run("reviews", "import", store, tasks, "--json").out)["n_saved"] == 1
    assert "1 were there before" in run("reviews", "import", store, tasks).out
    records = tmp_path / "records.jsonl"
    assert run("reviews", "export", store, records, "--for", "argilla").code == 2  # without a model
    assert run("reviews", "export", store, records, "--for", "argilla", "--model", model).code == 0
    for line in records.read_text(encoding="utf-8").splitlines():
        assert json.loads(line)["fields"]["text"]
    tasks.write_text("{", encoding="utf-8")
    assert run("reviews", "import", store, tasks).code == 3


def test_train_with_reviews(run, store, tmp_path):
    options = ("--no-compare", "--out", tmp_path / "next", "--with-reviews")
    found = run("train", "synthetic", *options, store)
    assert found.code == 0, found.err
    assert "2 reviewed texts are among the training texts." in found.out
    assert "2 reviewed texts" in load_bundle(tmp_path / "next").info.provenance["source"]
    assert run("train", "synthetic", *options, tmp_path / "none.sqlite").code == 2
