"""Answers to many files: named as their inputs, resumed by skipping finished ones, the same on a cluster."""

import json
import os
import signal

import pytest

from surelabel.exceptions import CorpusError, DatasetError, InvalidInputError
from surelabel.predicting import PredictSettings, answer_file, predict_dataset

DAYS = ("monday.csv", "tuesday.jsonl", "deep/wednesday.txt")


@pytest.fixture
def folder(texts, tmp_path):
    """Three files of texts, and things that are none."""
    root = tmp_path / "texts"
    (root / "deep").mkdir(parents=True)
    (root / "monday.csv").write_text("id,text\n" + "".join(f'm{k},"{text}"\n' for k, text in enumerate(texts[:10])))
    (root / "tuesday.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts[10:20]))
    (root / "deep" / "wednesday.txt").write_text("\n".join(texts[20:30]) + "\n")
    (root / ".DS_Store").write_text("x")
    (root / "notes.md").write_text("no texts")
    (root / "monday.csv.skipped.jsonl").write_text('{"row": 1}\n')
    return root


def contents(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def test_each_file_has_its_answers_under_its_name(bundle, folder, tmp_path):
    done = []
    summary = predict_dataset(bundle, folder, tmp_path / "out", advance=done.append)
    assert (summary.n_files, summary.n_found, summary.n_rows, summary.n_skipped) == (3, 0, 30, 0)
    assert sum(done) == 30
    assert set(contents(tmp_path / "out")) == {
        "monday.csv",
        "tuesday.jsonl",
        "deep/wednesday.jsonl",
        "surelabel.json",
    }
    answer_file(bundle, folder / "monday.csv", tmp_path / "alone.csv")
    assert (tmp_path / "out" / "monday.csv").read_bytes() == (tmp_path / "alone.csv").read_bytes()


def test_a_pattern_names_files_and_the_format_changes_their_suffix(bundle, folder, tmp_path):
    settings = PredictSettings(format="parquet")
    summary = predict_dataset(bundle, folder / "*.*s*", tmp_path / "out", settings)
    assert summary.n_files == 2
    assert set(contents(tmp_path / "out")) == {"monday.parquet", "tuesday.parquet", "surelabel.json"}


def test_resume_skips_finished_files(bundle_folder, folder, tmp_path):
    out = tmp_path / "out"
    predict_dataset(bundle_folder, folder, out)
    whole = contents(out)
    (out / "tuesday.jsonl").unlink()
    (out / "monday.csv").write_text("finished")
    summary = predict_dataset(bundle_folder, folder, out, resume=True)
    assert (summary.n_files, summary.n_found, summary.n_rows) == (3, 2, 10)
    assert contents(out) == {**whole, "monday.csv": b"finished"}
    predict_dataset(bundle_folder, folder, out)
    assert contents(out) == whole


def test_resume_refuses_another_model_or_other_settings(bundle, bundle_folder, folder, tmp_path):
    import dataclasses

    out = tmp_path / "out"
    predict_dataset(bundle_folder, folder, out, PredictSettings(significance="0.1"))
    before = contents(out)
    with pytest.raises(InvalidInputError, match="significance"):
        predict_dataset(bundle_folder, folder, out, PredictSettings(significance="0.2"), resume=True)
    renamed = dataclasses.replace(bundle, info=dataclasses.replace(bundle.info, name="another"))
    with pytest.raises(InvalidInputError, match="model"):
        predict_dataset(renamed, folder, out, PredictSettings(significance="0.1"), resume=True)
    assert contents(out) == before
    same = PredictSettings(confidence_level="0.9", batch_size=3)
    assert predict_dataset(bundle_folder, folder, out, same, resume=True).n_found == 3


def test_an_error_keeps_what_is_finished(bundle, folder, tmp_path):
    (folder / "sunday.jsonl").write_text("no json\n")
    with pytest.raises(CorpusError):
        predict_dataset(bundle, folder, tmp_path / "out")
    assert "monday.csv" in contents(tmp_path / "out")
    (folder / "sunday.jsonl").write_text('{"text": "oil"}\nno json\n')
    summary = predict_dataset(bundle, folder, tmp_path / "new", PredictSettings(on_error="skip"))
    assert (summary.n_rows, summary.n_skipped) == (31, 1)
    assert [name.rpartition("/")[2] for name in summary.skipped] == ["sunday.jsonl.skipped.jsonl"]


def test_what_would_be_destroyed_is_refused(bundle, bundle_folder, folder, tmp_path):
    with pytest.raises(InvalidInputError):
        predict_dataset(bundle, folder, folder)
    with pytest.raises(InvalidInputError):
        predict_dataset(bundle, folder, bundle_folder)
    with pytest.raises(InvalidInputError, match="something other"):
        predict_dataset(bundle, folder / "monday.csv", tmp_path)
    (folder / "monday.jsonl").write_text('{"text": "oil"}\n')
    with pytest.raises(InvalidInputError, match="Two files"):
        predict_dataset(bundle, folder, tmp_path / "out", PredictSettings(format="csv"))
    with pytest.raises(CorpusError):
        predict_dataset(bundle, tmp_path / "absent*", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_answers_go_into_a_folder(bundle, folder, tmp_path):
    with pytest.raises(InvalidInputError, match="folder"):
        predict_dataset(bundle, folder, tmp_path / "many.jsonl")
    assert predict_dataset(bundle, folder / "monday.csv", tmp_path / "one").n_rows == 10
    assert set(contents(tmp_path / "one")) == {"monday.csv", "surelabel.json"}


def test_urls_are_read_and_written(bundle, folder, tmp_path):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.put(str(folder), "/dataset-test/in/", recursive=True)
    summary = predict_dataset(bundle, "memory://dataset-test/in", "memory://dataset-test/out")
    assert summary.n_rows == 30
    predict_dataset(bundle, folder, tmp_path / "out")
    local = contents(tmp_path / "out")
    found = {
        name.removeprefix("/dataset-test/out/"): memory.cat_file(name) for name in memory.find("/dataset-test/out")
    }
    assert found == local
    assert predict_dataset(bundle, "memory://dataset-test/in", "memory://dataset-test/out", resume=True).n_found == 3


@pytest.mark.parametrize("workers", [0, True, 1.5, object()])
def test_workers_are_a_number_an_address_or_a_client(bundle, folder, tmp_path, workers):
    pytest.importorskip("distributed")
    with pytest.raises(InvalidInputError, match="workers"):
        predict_dataset(bundle, folder, tmp_path / "out", workers=workers)


def test_a_scheduler_that_is_absent_is_a_clear_error(bundle, folder, tmp_path, monkeypatch):
    cluster = pytest.importorskip("surelabel.predicting.cluster")
    monkeypatch.setattr(cluster, "_CONNECT_SECONDS", 0.2)
    with pytest.raises(DatasetError, match="scheduler"):
        predict_dataset(bundle, folder, tmp_path / "out", workers="tcp://127.0.0.1:1")


def test_a_cluster_gives_the_same_answers_though_its_only_worker_is_killed(bundle_folder, folder, tmp_path):
    distributed = pytest.importorskip("distributed")
    predict_dataset(bundle_folder, folder, tmp_path / "here")
    done = []
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):

        def advance(n):
            if not done:
                [pid] = client.run(os.getpid).values()
                os.kill(pid, signal.SIGKILL)
            done.append(n)

        summary = predict_dataset(bundle_folder, folder, tmp_path / "there", workers=client, advance=advance)
    assert (summary.n_rows, sum(done)) == (30, 30)
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
