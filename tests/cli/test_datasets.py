"""`surelabel predict` on data sets."""

import json

import pytest

from bundle_cases import corpus
from dataset_cases import rows_of, write_texts
from surelabel.predicting import cluster

TEXTS = [" ".join(text.split()) for text in corpus().part("test").texts[:40]]


@pytest.fixture
def texts(tmp_path):
    return write_texts(tmp_path / "texts", TEXTS)


def test_a_folder_in_this_process_and_on_workers(run, model, texts, tmp_path):
    found = run("predict", model, texts, "--out", tmp_path / "one", "--top", 2)
    assert (found.code, found.out) == (0, f"40 answers are in {tmp_path / 'one'}, in 3 files.\n")
    found = run("predict", model, f"{texts}/*", "--out", tmp_path / "two", "--top", 2, "--workers", 1)
    assert found.code == 0, found.err
    assert rows_of(tmp_path / "two") == rows_of(tmp_path / "one")
    assert "Traceback" not in found.err
    again = run("predict", model, texts, "--out", tmp_path / "one", "--top", 2, "--resume")
    assert "(3 of them were there before)" in again.out


def test_rows_that_cannot_be_read(run, model, texts, tmp_path):
    (texts / "9.jsonl").write_text('{"text": "fine"}\n{\n')
    found = run("predict", model, texts, "--out", tmp_path / "out")
    assert found.code == 3
    assert "Row 2 of '9.jsonl' must be JSON" in found.err
    assert "3 of 4 partitions are finished; --resume continues from there" in found.err
    found = run("predict", model, texts, "--out", tmp_path / "skip", "--on-error", "skip")
    assert found.code == 0
    assert "41 answers" in found.out
    assert "1 rows have none; " in found.out
    listed = json.loads((tmp_path / "skip" / "_skipped.jsonl").read_text())
    assert (listed["row"], listed["file"]) == (2, "9.jsonl")


def test_wrong_use(run, model, texts, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "_CONNECT_SECONDS", 1)
    assert run("predict", model, texts).code == 2
    assert run("predict", model, texts, "--out", tmp_path / "o", "--workers", 0).code == 2
    found = run("predict", model, texts, "--out", tmp_path / "o", "--workers", 1, "--scheduler", "tcp://127.0.0.1:1")
    assert (found.code, "Only one of" in found.err) == (2, True)
    found = run("predict", model, texts, "--out", tmp_path / "o", "--scheduler", "tcp://127.0.0.1:1")
    assert (found.code, "no Dask scheduler" in found.err) == (1, True)


def test_options_are_used_for_data_sets_too(run, model, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.dat").write_text("text\nWheat rose\nx,y\n")
    out = tmp_path / "out"
    options = ("--input-format", "csv", "--format", "csv", "--separator", ";", "--on-error", "mark", "--batch-size", 1)
    found = run("predict", model, tmp_path / "in", "--out", out, *options, "--json")
    assert found.code == 0, found.err
    summary = json.loads(found.out)
    assert (summary["n_rows"], summary["n_marked"], summary["n_partitions"]) == (1, 1, 1)
    headings, first, second = (out / "part-000000.csv").read_text().splitlines()
    assert "error" in headings.split(",")
    assert first.startswith("1,")
    assert "must have 1 cells. Got 2" in second
    assert json.loads((out / "_surelabel" / "run.json").read_text())["settings"]["separator"] == ";"
