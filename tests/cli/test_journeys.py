"""Three journeys from a file to decisions: an own file, groups, and many files."""

import csv
import dataclasses
import importlib
import json

import pytest

from surelabel import load_bundle
from surelabel.corpora.vocabulary import Concept, Vocabulary
from surelabel.review import NewText, ReviewStore
from tickets import FAST, OWN, tickets, write_csv


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_train_prints_six_lines(trained):
    lines = trained.printed.out.splitlines()
    assert len(lines) == 6
    assert "1,200 texts" in lines[0]
    assert str(trained.folder) in lines[-2]
    assert "report.html" in lines[-2]
    assert lines[-1].startswith("Next:")
    assert "Traceback" not in trained.printed.err


def test_own_file(ok, run, model, new_file, tmp_path):
    # Decisions for new tickets, in a table.
    out = tmp_path / "decided.csv"
    assert "150" in ok("predict", model, new_file, "--text", "body", "--out", out)
    rows = rows_of(out)
    assert [row["id"] for row in rows] == [row["id"] for row in tickets(150, seed=6)]
    assert {row["decision"] for row in rows} <= {"file", "choose", "read"}
    assert all(row["reason"] for row in rows)
    # What they are worth, as people and as programs read it.
    printed = ok("evaluate", model, new_file, *OWN)
    assert "150" in printed
    report = tmp_path / "june.html"
    measured = json.loads(ok("evaluate", model, new_file, *OWN, "--json", "--report", report))
    [ranks] = [line for line in printed.splitlines() if "Annif" in line]
    assert all(f"{name} {measured['ranks'][name]:.3f}" in ranks for name in ("Precision@5", "NDCG@10", "F1@5"))
    decisions = measured["decisions"]
    assert sum(decisions[kind]["share"] for kind in ("file", "choose", "read")) == pytest.approx(1)
    assert {"wrong"} <= set(decisions["file"])
    assert {"missed", "n_tags"} <= set(decisions["choose"])
    assert 0 <= measured["errors"]["0.05"] <= 1
    assert "<!DOCTYPE html>" in report.read_text(encoding="utf-8")
    filed = sum(row["decision"] == "file" for row in rows)
    assert filed == round(150 * decisions["file"]["share"])
    # Another promise, without training.
    ok("calibrate", model, "--max-missed", "0.2", "--out", tmp_path / "shorter")
    assert load_bundle(tmp_path / "shorter").info.levels["max_missed"] == "0.2"
    # And with more texts.
    before = load_bundle(model).calibration
    ok("calibrate", model, new_file, *OWN, "--add", "--out", tmp_path / "grown")
    assert len(load_bundle(tmp_path / "grown").calibration) == len(before) + 150


def test_the_file_of_training_is_measured_by_its_test_texts(ok, model, own_file, figures):
    measured = json.loads(ok("evaluate", model, own_file, *OWN, "--json"))
    assert measured["n_texts"] == figures()["part_sizes"]["test"]


def test_groups(ok, run, own_file, new_file, tmp_path):
    folder = tmp_path / "model"
    ok("train", own_file, *OWN, *FAST, "--by", "channel", "--out", folder)
    answers = tmp_path / "answers.jsonl"
    ok("predict", folder, new_file, "--text", "body", "-s", "0.1", "--out", answers)
    found = [json.loads(line) for line in answers.read_text().splitlines()]
    assert len(found) == 150
    assert all(answer["significance"] == "0.1" for answer in found)
    one = json.loads(ok("predict", folder, "printer paper jam", "--group", "chat", "--format", "jsonl"))
    assert one["labels"] == ["printer"]
    assert run("predict", folder, "printer paper jam").code == 2
    assert json.loads(ok("evaluate", folder, new_file, *OWN, "--json"))["n_texts"] == 150


def test_a_model_with_a_vocabulary(ok, run, model, tmp_path):
    bundle = load_bundle(model)
    concepts = tuple(Concept(f"http://x/{place}", name) for place, name in enumerate(bundle.label_names))
    named = dataclasses.replace(bundle, vocabulary=Vocabulary(concepts)).save(tmp_path / "named")
    # A folder as Annif has it: each file is a text.
    source = tmp_path / "corpus"
    source.mkdir()
    for row in tickets(3, seed=6):
        (source / f"{row['id']}.txt").write_text(f"{row['body']}\n\nSecond paragraph.\n")
        (source / f"{row['id']}.key").write_text("printer\n")
    out = tmp_path / "decided.csv"
    assert "3" in ok("predict", named, source, "--out", out)
    rows = rows_of(out)
    assert [row["id"] for row in rows] == sorted(row["id"] for row in tickets(3, seed=6))
    uri_of = dict(zip(bundle.label_names, load_bundle(named).uris, strict=True))
    assert [row["uris"] for row in rows] == [",".join(uri_of[label] for label in labels_of(row)) for row in rows]
    # Decisions of people have the URIs, too.
    store, decisions = tmp_path / "reviews.sqlite", tmp_path / "decisions.jsonl"
    label = bundle.label_names[1]
    with ReviewStore(store) as opened:
        opened.add([NewText("1", "a text", {"decision": "read", "labels": []})])
        [text] = opened.lease("ann", "read")
        opened.decide("key", text.number, "ann", [label])
    ok("reviews", "export", store, decisions, "--model", named)
    assert json.loads(decisions.read_text())["uris"] == [uri_of[label]]
    assert run("reviews", "export", store, tmp_path / "no.jsonl", "--model", model).code == 2


def labels_of(row):
    return [label for label in row["labels"].split(",") if label]


def test_many_files(ok, model, tmp_path):
    source = tmp_path / "archive"
    source.mkdir()
    for seed in (1, 2, 3):
        write_csv(source / f"month-{seed}.csv", tickets(40, seed=seed))
    out = tmp_path / "decided"
    command = ("predict", model, f"{source}/*.csv", "--text", "body", "--out", out, "--format", "jsonl")
    assert "120" in ok(*command)
    made = sorted(out.rglob("*.jsonl"))
    answers = [json.loads(line) for path in made for line in path.read_text().splitlines()]
    assert len(answers) == 120
    # Resumed: what is there stays as it is.
    made[1].unlink()
    before = {path: path.stat().st_mtime_ns for path in (made[0], made[2])}
    ok(*command, "--resume")
    assert sorted(out.rglob("*.jsonl")) == made
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_one_text_is_one_card(ok, model):
    card = ok("predict", model, "the printer has a paper jam and no toner")
    lines = card.splitlines()
    assert lines[0].split()[0] in {"File", "Choose", "Read"}
    assert "printer" in lines[0] or lines[0].startswith("Read")
    assert 2 <= len(lines) <= 4
    # A text of one word is given as such, and standard input works too.
    assert ok("predict", model, "--text", "printer").split()[0] in {"File", "Choose", "Read"}


def test_records_in_a_pipe(ok, model, new_file):
    lines = ok("predict", model, new_file, "--text", "body", "-s", "0.2").splitlines()
    record = json.loads(lines[0])
    fields = ["row", "id", "decision", "reason", "labels", "consider", "assign", "confidence", "credibility"]
    assert list(record)[:9] == fields
    assert {"size", "certain", "open", "top"} <= set(record)
    table = ok("predict", model, new_file, "--text", "body", "--format", "csv")
    assert table.splitlines()[0].startswith("row,id,decision")
    assert len(table.splitlines()) == 151


def test_standard_input(ok, model, monkeypatch, tmp_path):
    import subprocess
    import sys

    command = [sys.executable, "-m", "surelabel", "predict", model, "-", "--input-format", "jsonl"]
    line = json.dumps({"id": "a", "text": "invoice payment refund tax"})
    found = subprocess.run(command, input=line + "\n", capture_output=True, text=True, check=True)
    assert json.loads(found.stdout)["labels"] == ["invoice"]


def test_watch(ok, run, model, new_file, tmp_path):
    seen = json.loads(
        ok("watch", model, new_file, *OWN, "--json", "--alpha", "0.02", "--state", tmp_path / "watch.json")
    )
    assert (seen["n_seen"], seen["alarm"]) == (150, False)
    # Texts that are tagged with something else raise the alarm, and the state goes on.
    strange = tickets(150, seed=8)
    for row in strange:
        row["tags"] = "invoice" if row["tags"] != "invoice" else "printer"
    path = write_csv(tmp_path / "strange.csv", strange)
    plot = tmp_path / "watch.svg"
    found = run("watch", model, path, *OWN, "--state", tmp_path / "watch.json", "--plot", plot)
    assert found.code == 7
    assert "of 300" in found.out
    assert plot.read_text().startswith("<svg")
    assert run("watch", model, new_file, "--text", "body", "--unlabelled").code == 0


def test_data(ok, own_file):
    assert "synthetic" in ok("data", "list")
    listed = json.loads(ok("data", "list", "--json"))
    assert {"name", "is_local", "description"} == set(listed[0])
    assert "2,000 texts" in ok("data", "get", "synthetic")
    counted = json.loads(ok("data", "stats", own_file, *OWN, "--json"))
    assert (counted["texts"], counted["labels"], counted["most labels of a text"]) == (1200, 5, 2)
    assert "printer" in ok("data", "stats", own_file, *OWN)


def test_demo_is_one_screen_and_ends_with_the_page(ok, tmp_path, monkeypatch):
    monkeypatch.setenv("SURELABEL_DATA", str(tmp_path / "none"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)
    printed = ok("demo", "--no-download", "--out", "news")
    lines = printed.rstrip().splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 110
    assert "made up" in lines[0]
    assert lines[-1].endswith("serve news")
    for word in ("File", "Choose", "Read"):
        assert any(line.startswith(word) for line in lines)
    load_bundle("news")


def test_reproduce(ok, tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.import_module("surelabel.experiments.run"), "N_RESPLITS", 2)
    folders = ("--runs", tmp_path / "runs", "--results", tmp_path / "results")
    ok(
        "reproduce",
        "--corpus",
        "synthetic",
        "--measure",
        "LogLoss",
        "--seeds",
        "1",
        "--setting",
        "C=3",
        "--setting",
        "loss=svm",
        *folders,
        "--data",
        tmp_path,
    )
    names = {path.name for path in (tmp_path / "results" / "runs").iterdir()}
    assert names == {"synthetic-linear-plain-seed0.json", "synthetic-linear-conformal-seed0.json"}
    assert (tmp_path / "results" / "tables" / "sets.md").is_file()
