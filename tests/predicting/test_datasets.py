"""Answers to data sets in one process: the same as for a file, resumable, and clear about what is wrong."""

import errno
import fcntl
import json
import shutil

import pyarrow
import pytest
from pyarrow import parquet

from bundle_cases import corpus, small_bundle
from dataset_cases import rows_of, write_texts
from surelabel import load_bundle, predict_dataset
from surelabel._core.storage import atomic_file
from surelabel.exceptions import ArtifactError, CorpusError, DatasetError, InvalidInputError
from surelabel.predicting import TextSource, predict_file, storage

TEXTS = [" ".join(text.split()) for text in corpus().part("test").texts[:60]]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return small_bundle().save(tmp_path_factory.mktemp("models") / "small")


@pytest.fixture
def texts(tmp_path):
    return write_texts(tmp_path / "texts", TEXTS)


def files_in(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_a_data_set_has_the_answers_of_a_file(model, tmp_path):
    path = tmp_path / "all.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    predict_file(load_bundle(model), TextSource(path), tmp_path / "plain.parquet")
    seen = []
    found = predict_dataset(
        model, path, tmp_path / "out", partition_bytes=2000, batch_size=4, advance=lambda *place: seen.append(place)
    )
    assert rows_of(tmp_path / "out") == parquet.read_table(tmp_path / "plain.parquet").to_pylist()
    assert (found.n_rows, found.n_skipped, found.n_found, found.skipped) == (60, 0, 0, None)
    assert found.n_partitions > 3
    assert seen[0] == (0, 60)
    assert seen[-1] == (60, 60)
    manifest = json.loads((tmp_path / "out" / "_manifest.json").read_text())
    assert manifest["n_rows"] == sum(part["n_rows"] for part in manifest["partitions"]) == 60
    assert [part["file"] for part in manifest["partitions"]] == sorted(
        path.name for path in (tmp_path / "out").glob("*.parquet")
    )


def test_descriptions_where_asked_for(texts, model, tmp_path):
    predict_dataset(model, texts, tmp_path / "out", describe=True)
    answers = small_bundle().answers(TEXTS, significance="0.05", describe=True)
    assert [row["description"] for row in rows_of(tmp_path / "out")] == [answer.description for answer in answers]


def test_from_a_bundle_in_memory(texts, model, tmp_path):
    found = small_bundle().predict_dataset(texts, tmp_path / "out", confidence_level="0.9", top=1, with_text=True)
    rows = rows_of(tmp_path / "out")
    assert found.n_rows == 60
    assert [row["text"] for row in rows] == TEXTS
    assert {row["significance"] for row in rows} == {"0.1"}
    assert rows[20]["id"] == "t1-0"
    predict_dataset(model, texts, tmp_path / "out2", significance="0.1", top=1, with_text=True)
    assert rows_of(tmp_path / "out2") == rows


def test_resuming_does_what_is_missing_and_what_has_changed(texts, model, tmp_path):
    out = tmp_path / "out"
    predict_dataset(model, texts, out, partition_bytes=1500)
    expected, names = rows_of(out), files_in(out)
    (out / "part-000001.parquet").unlink()
    (out / "_surelabel" / "part-000002.json").unlink()
    (out / "part-000003.parquet").write_bytes(b"cut")
    (out / ".part-000004.parquet.xyz.part").write_bytes(b"left by a kill")
    found = predict_dataset(model, texts, out, partition_bytes=1500, resume=True)
    assert found.n_found == found.n_partitions - 3
    assert (rows_of(out), files_in(out)) == (expected, names)
    assert predict_dataset(model, texts, out, partition_bytes=1500, resume=True).n_found == found.n_partitions
    # Texts that were taken away in the first file move all that follow: only what still fits is kept.
    lines = (texts / "0.jsonl").read_text().splitlines()[:3]
    (texts / "0.jsonl").write_text("\n".join(lines) + "\n")
    changed = predict_dataset(model, texts, out, partition_bytes=1500, resume=True)
    predict_dataset(model, texts, tmp_path / "anew", partition_bytes=1500)
    assert changed.n_found == 0
    assert rows_of(out) == rows_of(tmp_path / "anew")
    assert files_in(out) == files_in(tmp_path / "anew")


def test_a_broken_row_stops_or_is_skipped(texts, model, tmp_path):
    path = texts / "2.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:5], "{broken", *lines[6:]]) + "\n")
    parquet.write_table(pyarrow.table({"body": ["x", "y"]}), texts / "3.parquet")
    with pytest.raises(CorpusError, match=r"Row 6 of '2.jsonl' must be JSON.* Finished are 2 of 4 partitions"):
        predict_dataset(model, texts, tmp_path / "out")
    assert len(rows_of(tmp_path / "out")) == 40
    assert not (tmp_path / "out" / "_manifest.json").exists()
    with pytest.raises(InvalidInputError, match="another on_error"):
        predict_dataset(model, texts, tmp_path / "out", resume=True, on_error="skip")
    found = predict_dataset(model, texts, tmp_path / "skipped", on_error="skip")
    assert (found.n_rows, found.n_skipped) == (59, 3)
    assert [row["row"] for row in rows_of(tmp_path / "skipped")] == [*range(1, 46), *range(47, 61)]
    listed = [json.loads(line) for line in (tmp_path / "skipped" / "_skipped.jsonl").read_text().splitlines()]
    assert [(each["first_row"], each["last_row"]) for each in listed] == [(46, 46), (61, 62)]
    assert "column 'text'" in listed[1]["reason"]
    path.write_text("\n".join(lines) + "\n")
    (texts / "3.parquet").unlink()
    mended = predict_dataset(model, texts, tmp_path / "out", resume=True)
    assert (mended.n_found, mended.n_rows) == (2, 60)


def test_output_folders_that_are_refused(texts, model, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("x")
    with pytest.raises(InvalidInputError, match=r"no run made, such as 'mine.txt'"):
        predict_dataset(model, texts, out)
    assert files_in(out) == ["mine.txt"]
    (out / "mine.txt").unlink()
    predict_dataset(model, texts, out)
    with pytest.raises(InvalidInputError, match="has an earlier run"):
        predict_dataset(model, texts, out)
    for options, what in (({"top": 2}, "settings"), ({"significance": 0.2}, "settings")):
        with pytest.raises(InvalidInputError, match=f"begun with another {what}"):
            predict_dataset(model, texts, out, resume=True, **options)
    with (out / "_surelabel" / "lock").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(InvalidInputError, match="Another run writes"):
            predict_dataset(model, texts, out, resume=True)
    (out / "_surelabel" / "run.json").unlink()
    with pytest.raises(InvalidInputError, match="is gone"):
        predict_dataset(model, texts, out, resume=True)
    with pytest.raises(InvalidInputError, match="is a file"):
        predict_dataset(model, texts, texts / "0.jsonl")


def test_a_full_disk_leaves_what_is_finished(texts, model, tmp_path, monkeypatch):
    def full(path, **options):
        if path.name == "part-000001.parquet":
            raise OSError(errno.ENOSPC, "No space left on device")
        return atomic_file(path, **options)

    with monkeypatch.context() as patched:
        patched.setattr(storage, "atomic_file", full)
        with pytest.raises(DatasetError, match=r"No space left on device.* Finished are 1 of 3 partitions"):
            predict_dataset(model, texts, tmp_path / "out")
    assert len(rows_of(tmp_path / "out")) == 20
    found = predict_dataset(model, texts, tmp_path / "out", resume=True)
    assert (found.n_found, found.n_rows) == (1, 60)


def test_a_remote_store(texts, model, tmp_path):
    import fsspec

    store = fsspec.filesystem("memory")
    store.put(str(texts), "/in", recursive=True)
    predict_dataset(model, "memory://in", "memory://answers")
    predict_dataset(model, texts, tmp_path / "out")
    names = [path.removeprefix("/answers/") for path in store.find("/answers")]
    assert sorted([*names, "_surelabel/lock"]) == files_in(tmp_path / "out")
    rows = [
        row
        for name in names
        if name.endswith(".parquet")
        for row in parquet.read_table(store.open(f"/answers/{name}")).to_pylist()
    ]
    assert rows == rows_of(tmp_path / "out")
    assert predict_dataset(model, "memory://in", "memory://answers", resume=True).n_found == 3
    store.pipe("/answers/_surelabel/lock.json", json.dumps({"time": 1e12}).encode())
    with pytest.raises(InvalidInputError, match="Another run writes"):
        predict_dataset(model, "memory://in", "memory://answers", resume=True)
    store.rm("/answers", recursive=True)


def test_bad_arguments(texts, model, tmp_path):
    out = tmp_path / "out"
    for options, message in (
        ({"on_error": "ignore"}, "'on_error' must be"),
        ({"batch_size": 0}, "'batch_size' must be"),
        ({"workers": 0}, "'workers' must be"),
        ({"workers": 2, "scheduler": "tcp://x:1"}, "Only one of"),
        ({"significance": 3}, "significance"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            predict_dataset(model, texts, out, **options)
    with pytest.raises(ArtifactError):
        predict_dataset(tmp_path / "none", texts, out)
    with pytest.raises(CorpusError, match="no such place"):
        predict_dataset(model, tmp_path / "none", out)
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(CorpusError, match="one text at least"):
        predict_dataset(model, tmp_path / "empty.jsonl", out)
    shutil.rmtree(out, ignore_errors=True)
