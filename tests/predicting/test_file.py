"""Answers in a file: the same in every format, complete or absent."""

import csv
import dataclasses
import gzip
import json
import subprocess
import sys
import textwrap

import pyarrow.parquet
import pytest

from surelabel import corpora
from surelabel.corpora.vocabulary import Concept, Vocabulary
from surelabel.exceptions import CorpusError, InvalidInputError
from surelabel.models import load_bundle
from surelabel.predicting import PredictSettings, answer_file, predict_dataset
from surelabel.tables.columns import Columns


def read_jsonl(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def read_table(path):
    """Rows of any table as dictionaries of strings, for comparison."""
    kind = path.suffix[1:]
    if kind in {"csv", "tsv"}:
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file, delimiter="\t" if kind == "tsv" else ","))
    import openpyxl

    headings, *rows = openpyxl.load_workbook(path).active.iter_rows(values_only=True)
    return [dict(zip(headings, ["" if cell is None else str(cell) for cell in row], strict=True)) for row in rows]


def test_records_have_the_fields_of_an_answer_in_their_order(bundle, source, texts, tmp_path):
    counts = answer_file(bundle, source, tmp_path / "out.jsonl")
    records = read_jsonl(tmp_path / "out.jsonl")
    assert (counts.n_rows, counts.n_skipped, counts.skipped) == (40, 0, None)
    assert list(records[0])[:6] == ["row", "id", "decision", "reason", "labels", "consider"]
    assert [record["row"] for record in records] == list(range(1, 41))
    assert [record["id"] for record in records] == [f"t{number}" for number in range(40)]
    expected = [answer.record() for answer in bundle.answers(texts)]
    assert [
        {name: record[name] for name in answer} for record, answer in zip(records, expected, strict=True)
    ] == expected


def test_a_level_adds_the_prediction_set(bundle, source, texts, tmp_path):
    answer_file(bundle, source, tmp_path / "out.jsonl", PredictSettings(significance="0.2", top=2, with_text=True))
    record = read_jsonl(tmp_path / "out.jsonl")[3]
    [expected] = bundle.answers([texts[3]], significance="0.2", top=2)
    assert record["text"] == texts[3]
    assert {"significance", "size", "size_bounds", "certain", "open", "top"} <= set(record)
    assert {name: record[name] for name in expected.record()} == json.loads(json.dumps(expected.record()))
    answer_file(bundle, source, tmp_path / "same.jsonl", PredictSettings(confidence_level="0.8", top=2, with_text=True))
    assert (tmp_path / "same.jsonl").read_bytes() == (tmp_path / "out.jsonl").read_bytes()


@pytest.mark.parametrize("form", ["texts.tsv", "texts.tsv.gz", "tsv", "key", ""])
def test_annifs_forms_are_read_as_in_training(bundle, texts, tmp_path, form):
    source = tmp_path / (form if "." in form else "corpus")
    plain = [" ".join(text.split()) for text in texts[:3]]
    if "." in form:
        opened = gzip.open if form.endswith("gz") else open
        with opened(source, "wt", encoding="utf-8") as file:
            file.writelines(f"{text}\t<http://x/a> <http://x/b>\n" for text in plain)
    else:
        source.mkdir()
        for number, text in enumerate(plain):
            (source / f"t{number}.txt").write_text(text, encoding="utf-8")
            if form:
                (source / f"t{number}.{form}").write_text("<http://x/a>\ta\n", encoding="utf-8")
    answer_file(bundle, source, tmp_path / "out.jsonl", PredictSettings(with_text=True))
    records = read_jsonl(tmp_path / "out.jsonl")
    corpus = corpora.read_table(source, require_labels=False)
    assert [record["text"] for record in records] == list(corpus.texts) == plain
    assert [record["id"] for record in records] == list(corpus.ids)
    if form in {"tsv", "key"}:  # not taken for a folder of files with a text per line
        with pytest.raises(InvalidInputError, match="one file"):
            predict_dataset(bundle, source, tmp_path / "out")


@pytest.mark.parametrize("kind", ["csv", "xlsx", "parquet"])
def test_tables_have_the_uris_of_a_vocabulary(bundle, source, tmp_path, kind):
    concepts = tuple(Concept(f"http://x/{name}", name) for name in bundle.label_names)
    named = dataclasses.replace(bundle, vocabulary=Vocabulary(concepts))
    for suffix in ("jsonl", kind):
        answer_file(named, source, tmp_path / f"out.{suffix}")
    uris = [record["uris"] for record in read_jsonl(tmp_path / "out.jsonl")]
    assert any(uris)
    if kind == "parquet":
        assert pyarrow.parquet.read_table(tmp_path / "out.parquet").column("uris").to_pylist() == uris
    else:
        assert [row["uris"] for row in read_table(tmp_path / f"out.{kind}")] == [",".join(row) for row in uris]


@pytest.mark.parametrize("kind", ["csv", "tsv", "xlsx"])
@pytest.mark.parametrize("significance", [None, "0.2"])
def test_tables_hold_what_jsonl_holds(bundle, source, tmp_path, kind, significance):
    settings = PredictSettings(significance=significance, separator="|", top=3)
    for suffix in ("jsonl", kind):
        answer_file(bundle, source, tmp_path / f"out.{suffix}", settings)
    records, rows = read_jsonl(tmp_path / "out.jsonl"), read_table(tmp_path / f"out.{kind}")
    assert len(rows) == len(records)
    for record, row in zip(records, rows, strict=True):
        assert row["id"] == record["id"]
        assert row["labels"] == "|".join(record["labels"])
        assert row["consider"] == "|".join(record["consider"])
        assert float(row["confidence"]) == pytest.approx(record["confidence"], rel=1e-12)
        if significance is None:
            assert "size" not in row
            continue
        assert [row["size_lower"], row["size_upper"]] == [str(bound) for bound in record["size_bounds"]]
        for k in range(3):
            best = record["top"][k] if k < len(record["top"]) else {"labels": [], "p_value": None}
            assert row[f"top_{k + 1}"] == "|".join(best["labels"])
            shown = row[f"top_{k + 1}_p_value"]
            assert (float(shown) if shown else 0) == pytest.approx(best["p_value"] or 0, rel=1e-12)


@pytest.mark.parametrize("significance", [None, "0.2"])
def test_parquet_holds_what_jsonl_holds(bundle, source, tmp_path, significance):
    from pyarrow import parquet

    settings = PredictSettings(significance=significance)
    for suffix in ("jsonl", "parquet"):
        answer_file(bundle, source, tmp_path / f"out.{suffix}", settings)
    records, rows = read_jsonl(tmp_path / "out.jsonl"), parquet.read_table(tmp_path / "out.parquet").to_pylist()
    for record, row in zip(records, rows, strict=True):
        if significance is not None:
            bounds = record.pop("size_bounds")
            assert [row.pop("size_lower"), row.pop("size_upper")] == [str(bound) for bound in bounds]
            record["size"] = None if record["size"] is None else str(record["size"])
        assert row == record


def test_a_batch_is_no_different_from_one_text(bundle, source, tmp_path):
    seen = []
    answer_file(bundle, source, tmp_path / "one.jsonl", PredictSettings(batch_size=1), seen.append)
    answer_file(bundle, source, tmp_path / "all.jsonl", PredictSettings(batch_size=1_000))
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "all.jsonl").read_bytes()
    assert seen == [1] * 40


@pytest.fixture
def damaged(tmp_path):
    path = tmp_path / "damaged.jsonl"
    path.write_text('{"id": "a", "text": "oil"}\n{"id": "b", "text": 5}\nno json\n{"id": "d", "text": "gas"}\n')
    return path


def test_an_unusable_row_stops_and_leaves_the_old_file(bundle, damaged, tmp_path):
    out = tmp_path / "out.csv"
    out.write_text("old")
    with pytest.raises(CorpusError, match="on-error"):
        answer_file(bundle, damaged, out)
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["damaged.jsonl", "out.csv"]


def test_skipped_rows_are_listed_and_rows_count_in_the_file(bundle, damaged, tmp_path):
    out = tmp_path / "out.jsonl"
    counts = answer_file(bundle, damaged, out, PredictSettings(on_error="skip", batch_size=1))
    assert [(record["row"], record["id"]) for record in read_jsonl(out)] == [(1, "a"), (4, "d")]
    skipped = read_jsonl(tmp_path / "out.jsonl.skipped.jsonl")
    assert [row["row"] for row in skipped] == [2, 3]
    assert all(row["error"] for row in skipped)
    assert (counts.n_rows, counts.n_skipped) == (2, 2)
    assert counts.skipped.endswith("out.jsonl.skipped.jsonl")
    damaged.write_text('{"id": "a", "text": "oil"}\n')
    assert answer_file(bundle, damaged, out, PredictSettings(on_error="skip")).skipped is None
    assert not (tmp_path / "out.jsonl.skipped.jsonl").exists()


def test_a_file_without_texts_is_an_error(bundle, tmp_path):
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "bad.jsonl").write_text("no json\n")
    for name in ("empty.txt", "bad.jsonl"):
        with pytest.raises(CorpusError):
            answer_file(bundle, tmp_path / name, tmp_path / "out.jsonl", PredictSettings(on_error="skip"))
    assert not (tmp_path / "out.jsonl").exists()


def test_nothing_is_written_over_the_input_or_into_a_model(bundle, bundle_folder, source):
    before = source.read_bytes()
    for out in (
        source,
        source.parent / "." / source.name,
        bundle_folder / "out.csv",
        bundle_folder / "classifier/x.csv",
    ):
        with pytest.raises(InvalidInputError):
            answer_file(bundle, source, out)
    assert source.read_bytes() == before
    assert not (bundle_folder / "out.csv").exists()


def test_an_input_that_changes_while_it_is_read_is_an_error(bundle, source, tmp_path):
    def change(_):
        with source.open("a") as file:
            file.write("late,text\n")

    with pytest.raises(CorpusError, match="changed"):
        answer_file(bundle, source, tmp_path / "out.jsonl", PredictSettings(batch_size=40), change)
    assert not (tmp_path / "out.jsonl").exists()


def test_formulas_and_carriage_returns_are_text(bundle, tmp_path):
    path = tmp_path / "texts.jsonl"
    texts = ["=1+1", "+a", "-a", "@a", "\ta", "\ra", "oil"]
    path.write_text("".join(json.dumps({"id": text, "text": text}) + "\n" for text in texts))
    answer_file(bundle, path, tmp_path / "out.csv", PredictSettings(with_text=True))
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not any(cell.startswith(("=", "+", "@", "\t", "\r", "-")) for cell in cells)


def test_several_text_columns_are_joined(bundle, tmp_path):
    (tmp_path / "in.jsonl").write_text('{"subject": "crude oil", "body": "a barrel"}\n')
    settings = PredictSettings(columns=Columns(text=("subject", "body")), with_text=True)
    answer_file(bundle, tmp_path / "in.jsonl", tmp_path / "out.jsonl", settings)
    [record] = read_jsonl(tmp_path / "out.jsonl")
    assert record["text"] == "crude oil\na barrel"
    assert record["id"] == "1"


def test_urls_are_read_and_written(bundle, source, tmp_path):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/file-test/in.csv", source.read_bytes())
    answer_file(bundle, "memory://file-test/in.csv", "memory://file-test/deep/out.jsonl")
    answer_file(bundle, source, tmp_path / "out.jsonl")
    assert memory.cat_file("/file-test/deep/out.jsonl") == (tmp_path / "out.jsonl").read_bytes()
    assert [name for name in memory.find("/file-test/deep") if "part" in name] == []


@pytest.mark.parametrize(
    "settings",
    [
        {"significance": "0.1", "confidence_level": "0.9"},
        {"significance": 5},
        {"significance": "1e-999999"},
        {"assurance": "0.9"},
        {"on_error": "mark"},
        {"format": "docx"},
        {"top": -1},
        {"batch_size": 0},
    ],
)
def test_wrong_settings_are_refused(settings):
    with pytest.raises(InvalidInputError):
        PredictSettings(**settings)


def test_what_cannot_be_written_is_refused(bundle, source, tmp_path):
    with pytest.raises(InvalidInputError, match="end in"):
        answer_file(bundle, source, tmp_path / "out.docx")
    with pytest.raises(InvalidInputError, match="separator"):
        answer_file(bundle, source, tmp_path / "out.csv", PredictSettings(separator="o"))
    with pytest.raises(InvalidInputError, match="separator"):
        answer_file(bundle, source, tmp_path / "out.csv", PredictSettings(separator=""))
    with pytest.raises(InvalidInputError, match="group"):
        answer_file(bundle, source, tmp_path / "out.csv", PredictSettings(group="news"))


def test_a_killed_run_leaves_the_old_file(bundle_folder, source, tmp_path):
    """A process that waits in the middle of a file is killed."""
    out = tmp_path / "out.csv"
    out.write_text("old")
    code = textwrap.dedent(f"""
        import time
        from surelabel.models import load_bundle
        from surelabel.predicting import PredictSettings, answer_file
        def wait(n):
            print(n, flush=True)
            time.sleep(1_000)
        bundle, settings = load_bundle({str(bundle_folder)!r}), PredictSettings(batch_size=8)
        answer_file(bundle, {str(source)!r}, {str(out)!r}, settings, wait)
    """)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "8\n"
        process.kill()
    assert out.read_text() == "old"
    answer_file(load_bundle(bundle_folder), source, out)
    assert len(read_table(out)) == 40
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "texts.csv"]
