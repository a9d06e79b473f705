"""Answers to data sets in one process: the same as for a file, resumable, and clear about what is wrong."""

import errno
import fcntl
import json
import shutil
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from bundle_cases import corpus, small_bundle
from dataset_cases import rows_of, write_texts
from surelabel import load_bundle, predict_dataset
from surelabel._core.storage import atomic_file
from surelabel.exceptions import ArtifactError, CorpusError, DatasetError, InvalidInputError
from surelabel.predicting import AnswerSettings, TextSource, predict_file
from surelabel.predicting.files import PartialFile
from surelabel.tables import stores

TEXTS = [" ".join(text.split()) for text in corpus().part("test").texts[:60]]


SMALL = AnswerSettings(partition_bytes=1500)


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
    small = AnswerSettings(partition_bytes=2000, batch_size=4)
    found = predict_dataset(model, path, tmp_path / "out", small, advance=lambda *place: seen.append(place))
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
    predict_dataset(model, texts, tmp_path / "out", AnswerSettings(describe=True))
    answers = small_bundle().answers(TEXTS, significance="0.05", describe=True)
    assert [row["description"] for row in rows_of(tmp_path / "out")] == [answer.description for answer in answers]


def test_from_a_bundle_in_memory(texts, model, tmp_path):
    settings = AnswerSettings(confidence_level="0.9", top=1, with_text=True)
    found = predict_dataset(small_bundle(), texts, tmp_path / "out", settings)
    rows = rows_of(tmp_path / "out")
    assert found.n_rows == 60
    assert [row["text"] for row in rows] == TEXTS
    assert {row["significance"] for row in rows} == {"0.1"}
    assert rows[20]["id"] == "t1-0"
    assert [(row["file"], row["row"]) for row in rows[18:22]] == [
        ("0.jsonl", 19),
        ("0.jsonl", 20),
        ("1.parquet", 1),
        ("1.parquet", 2),
    ]
    predict_dataset(model, texts, tmp_path / "out2", AnswerSettings("0.1", top=1, with_text=True))
    assert rows_of(tmp_path / "out2") == rows


def test_resuming_does_what_is_missing_and_what_has_changed(texts, model, tmp_path):
    out = tmp_path / "out"
    predict_dataset(model, texts, out, SMALL)
    expected, names = rows_of(out), files_in(out)
    (out / "part-000001.parquet").unlink()
    (out / "_surelabel" / "part-000002.json").unlink()
    (out / "part-000003.parquet").write_bytes(b"cut")
    (out / ".part-000004.parquet.xyz.part").write_bytes(b"left by a kill")
    found = predict_dataset(model, texts, out, SMALL, resume=True)
    assert found.n_found == found.n_partitions - 3
    assert (rows_of(out), files_in(out)) == (expected, names)
    assert predict_dataset(model, texts, out, SMALL, resume=True).n_found == found.n_partitions
    # Texts that were taken away in the first file move all that follow: only what still fits is kept.
    lines = (texts / "0.jsonl").read_text().splitlines()[:3]
    (texts / "0.jsonl").write_text("\n".join(lines) + "\n")
    changed = predict_dataset(model, texts, out, SMALL, resume=True)
    predict_dataset(model, texts, tmp_path / "anew", SMALL)
    assert changed.n_found == 0  # files have other numbers now
    assert rows_of(out) == rows_of(tmp_path / "anew")
    assert files_in(out) == files_in(tmp_path / "anew")


def test_a_broken_row_stops_or_is_skipped(texts, model, tmp_path):
    path = texts / "2.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:5], "{broken", *lines[6:]]) + "\n")
    parquet.write_table(pyarrow.table({"body": ["x", "y"]}), texts / "3.parquet")
    with pytest.raises(CorpusError, match=r"Row 6 of '2.jsonl' must be JSON.* 2 of 4 partitions are finished"):
        predict_dataset(model, texts, tmp_path / "out")
    assert len(rows_of(tmp_path / "out")) == 40
    assert not (tmp_path / "out" / "_manifest.json").exists()
    with pytest.raises(InvalidInputError, match="another settings"):
        predict_dataset(model, texts, tmp_path / "out", AnswerSettings(on_error="skip"), resume=True)
    found = predict_dataset(model, texts, tmp_path / "skipped", AnswerSettings(on_error="skip"))
    assert (found.n_rows, found.n_skipped) == (59, 2)
    rows = rows_of(tmp_path / "skipped")
    assert [row["row"] for row in rows if row["file"] == "2.jsonl"] == [1, 2, 3, 4, 5, *range(7, 21)]
    listed = [json.loads(line) for line in (tmp_path / "skipped" / "_skipped.jsonl").read_text().splitlines()]
    assert [(Path(each["file"]).name, each["row"]) for each in listed] == [("2.jsonl", 6), ("3.parquet", 1)]
    assert "column 'text'" in listed[1]["error"]
    marked = predict_dataset(model, texts, tmp_path / "marked", AnswerSettings(on_error="mark"))
    assert (marked.n_rows, marked.n_skipped, marked.n_marked) == (59, 0, 2)
    errors = {(row["file"], row["row"]): row["error"] for row in rows_of(tmp_path / "marked") if row["error"]}
    assert errors == {(Path(each["file"]).name, each["row"]): each["error"] for each in listed}
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
    for settings, what in (
        (AnswerSettings(top=2), "settings"),
        (AnswerSettings(0.2), "settings"),
        (AnswerSettings(format="csv"), "format"),
    ):
        with pytest.raises(InvalidInputError, match=f"begun with another {what}"):
            predict_dataset(model, texts, out, settings, resume=True)
    with (out / "_surelabel" / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(InvalidInputError, match="Another run is writing"):
            predict_dataset(model, texts, out, resume=True)
    (out / "_surelabel" / "run.json").unlink()
    with pytest.raises(InvalidInputError, match="is gone"):
        predict_dataset(model, texts, out, resume=True)
    (tmp_path / "plain").write_text("x")
    with pytest.raises(InvalidInputError, match="is a file"):
        predict_dataset(model, texts, tmp_path / "plain")
    with pytest.raises(InvalidInputError, match="go into a folder"):
        predict_dataset(model, texts, tmp_path / "answers.csv")


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_settings_mean_the_same_as_for_a_file(texts, model, tmp_path, kind):
    (texts / "1.parquet").unlink()
    (texts / "2.jsonl").unlink()
    settings = AnswerSettings(format=kind, separator=";", batch_size=3, max_open=1, p_value_of=["trade"])
    predict_dataset(model, texts, tmp_path / "out", settings)
    predict_file(model, TextSource(texts / "0.jsonl"), tmp_path / f"plain.{kind}", settings)
    assert files_in(tmp_path / "out") == [
        "_manifest.json",
        "_surelabel/part-000000.json",
        "_surelabel/run.json",
        f"part-000000.{kind}",
    ]
    assert (tmp_path / "out" / f"part-000000.{kind}").read_bytes() == (tmp_path / f"plain.{kind}").read_bytes()


def test_tables_are_partitions_too(model, tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("id,text\n1,Wheat rose\n2,\n")
    (tmp_path / "in" / "b.txt").write_text("Oil fell\nGold rose\n")
    made = predict_dataset(model, tmp_path / "in", tmp_path / "out")
    assert [(row["file"], row["row"], row["id"]) for row in rows_of(tmp_path / "out")] == [
        ("a.csv", 1, "1"),
        ("a.csv", 2, "2"),
        ("b.txt", 1, None),
        ("b.txt", 2, None),
    ]
    assert made.notes == ("Empty or missing texts of 'a.csv': 1, in row 2.",)


def test_a_partition_that_was_interrupted_is_resumed(texts, model, tmp_path, monkeypatch):
    written = []
    write = PartialFile.write

    def stop(self, batch, records):
        if len(written) == 7:
            raise KeyboardInterrupt
        write(self, batch, records)
        written.append(batch.rows)

    settings = AnswerSettings(batch_size=4)
    with monkeypatch.context() as patched:
        patched.setattr(PartialFile, "write", stop)
        with pytest.raises(KeyboardInterrupt):
            predict_dataset(model, texts, tmp_path / "out", settings)
    assert (tmp_path / "out" / "_surelabel" / "part-000001.part").is_file()
    with monkeypatch.context() as patched:
        patched.setattr(PartialFile, "write", lambda *given: (written.append(given[1].rows), write(*given)))
        found = predict_dataset(model, texts, tmp_path / "out", settings, resume=True)
    assert found.n_found == 1
    assert written[7] == [9, 10, 11, 12]  # of the second file, two batches were there
    predict_dataset(model, texts, tmp_path / "anew", settings)
    assert rows_of(tmp_path / "out") == rows_of(tmp_path / "anew")
    assert files_in(tmp_path / "out") == files_in(tmp_path / "anew")


def test_a_full_disk_leaves_what_is_finished(texts, model, tmp_path, monkeypatch):
    def full(path, **options):
        if path.name == "part-000001.parquet":
            raise OSError(errno.ENOSPC, "No space left on device")
        return atomic_file(path, **options)

    with monkeypatch.context() as patched:
        patched.setattr(stores, "atomic_file", full)
        with pytest.raises(DatasetError, match=r"No space left on device.* 1 of 3 partitions are finished"):
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
    assert sorted(names) == files_in(tmp_path / "out")
    rows = [
        row
        for name in names
        if name.endswith(".parquet")
        for row in parquet.read_table(store.open(f"/answers/{name}")).to_pylist()
    ]
    assert rows == rows_of(tmp_path / "out")
    assert predict_dataset(model, "memory://in", "memory://answers", resume=True).n_found == 3
    store.pipe("/answers/_surelabel/lock.json", json.dumps({"time": 1e12}).encode())
    with pytest.raises(InvalidInputError, match="Another run is writing"):
        predict_dataset(model, "memory://in", "memory://answers", resume=True)
    store.rm("/answers", recursive=True)


def test_bad_arguments(texts, model, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(InvalidInputError, match="'workers' must be"):
        predict_dataset(model, texts, out, workers=0)
    with pytest.raises(InvalidInputError, match="significance"):
        AnswerSettings(significance=3)
    with pytest.raises(InvalidInputError, match="Parquet, JSONL or CSV"):
        predict_dataset(model, texts, out, AnswerSettings(format="xlsx"))
    separated = AnswerSettings(format="csv", separator=small_bundle().label_names[0][:2])
    with pytest.raises(InvalidInputError, match="has the separator"):
        predict_dataset(model, texts, out, separated)
    with pytest.raises(ArtifactError):
        predict_dataset(tmp_path / "none", texts, out)
    with pytest.raises(CorpusError, match="does not exist"):
        predict_dataset(model, tmp_path / "none", out)
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(CorpusError, match="at least one text"):
        predict_dataset(model, tmp_path / "empty.jsonl", out)
    shutil.rmtree(out, ignore_errors=True)
