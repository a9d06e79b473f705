"""Answers to streams: the same in batches, in any format, and after an interruption."""

import csv
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from bundle_cases import corpus, small_bundle
from surelabel import corpora
from surelabel.exceptions import CorpusError, InvalidInputError
from surelabel.predicting import (
    AnswerSettings,
    ResumableOutput,
    TextBatch,
    TextSource,
    open_writer,
    output_format,
    predict_batches,
    predict_file,
    read_batches,
)

TEXTS = [" ".join(text.split()) for text in corpus().part("test").texts[:30]]
ANSWERS = [answer.to_dict() for answer in small_bundle().answers(TEXTS, significance="0.05")]
for _answer in ANSWERS:
    del _answer["description"]


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("".join(f"{text}\n" for text in TEXTS))
    return TextSource(path)


class _Stop(Exception):
    pass


def _stop_after(n_batches):
    """Return a function to call with each batch, which fails at the n-th."""
    seen = []

    def advance(batch):
        seen.append(batch)
        if len(seen) == n_batches:
            raise _Stop

    return advance


def _records(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@given(batch_size=st.integers(1, 40))
@settings(max_examples=10)
def test_streamed_answers_equal_those_of_one_call(batch_size):
    batches = [TextBatch(start, TEXTS[start : start + batch_size], None) for start in range(0, len(TEXTS), batch_size)]
    records = [record for part in predict_batches(small_bundle(), batches) for record in part]
    assert [record["row"] for record in records] == list(range(1, len(TEXTS) + 1))
    assert [{key: value for key, value in record.items() if key != "row"} for record in records] == ANSWERS


def test_records_have_ids_and_texts_where_asked_for():
    batch = TextBatch(4, TEXTS[:2], ["x", "y"])
    records = next(predict_batches(small_bundle(), [batch], AnswerSettings("0.1", 1, with_text=True)))
    assert [(record["row"], record["id"], record["text"]) for record in records] == [
        (5, "x", TEXTS[0]),
        (6, "y", TEXTS[1]),
    ]
    assert records[0]["significance"] == "0.1"
    assert len(records[0]["top"]) <= 1


def test_the_formats_hold_the_same(source, tmp_path):
    for name in ("a.jsonl", "a.csv", "a.parquet"):
        assert predict_file(small_bundle(), source, tmp_path / name, batch_size=7) == len(TEXTS)
    expected = [{"row": row + 1, **answer} for row, answer in enumerate(ANSWERS)]
    assert _records(tmp_path / "a.jsonl") == expected
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    table = parquet.read_table(tmp_path / "a.parquet").to_pylist()
    assert len(rows) == len(table) == len(expected)
    for row, line, record in zip(rows, table, expected, strict=True):
        assert row["labels"].split(",") == line["labels"] == record["labels"]
        assert float(row["confidence"]) == line["confidence"] == record["confidence"]
        assert int(row["size"]) == int(line["size"]) == record["size"]
        assert [each for each in row["possible"].split(",") if each] == line["possible"] == record["possible"]
        assert line["top"] == record["top"]
        assert row["top_1"].split(",") == record["top"][0]["labels"]
        assert float(row["top_1_p_value"]) == record["top"][0]["p_value"]
        assert (row["top_5"] == "") == (len(record["top"]) < 5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "a.jsonl", "a.parquet", "texts.txt"]


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_descriptions_go_into_files_where_asked_for(source, tmp_path, name):
    predict_file(small_bundle(), source, tmp_path / name, AnswerSettings("0.1", describe=True))
    answers = small_bundle().answers(TEXTS, significance="0.1", describe=True)
    records = parquet.read_table(tmp_path / name).to_pylist() if name.endswith("parquet") else _records(tmp_path / name)
    assert [record["description"] for record in records] == [answer.description for answer in answers]


def test_sizes_past_every_integer_type(tmp_path):
    record = {**ANSWERS[0], "row": 1, "size": None, "size_bounds": [10**40, 10**41], "n_candidates": 10**60}
    with (tmp_path / "a.parquet").open("wb") as stream:
        writer = open_writer(stream, "parquet", top=5)
        writer.write([record])
        writer.write([])
        writer.close()
    row = parquet.read_table(tmp_path / "a.parquet").to_pylist()[0]
    assert (row["size"], row["size_lower"], row["n_candidates"]) == (None, 1e40, str(10**60))


@given(
    stops=st.lists(st.integers(1, 3), max_size=4), batch_size=st.integers(1, 9), name=st.sampled_from(["jsonl", "csv"])
)
@settings(max_examples=12)
def test_a_resumed_file_equals_an_uninterrupted_one(tmp_path_factory, stops, batch_size, name):
    folder = tmp_path_factory.mktemp("resumed")
    (folder / "texts.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    source = TextSource(folder / "texts.txt")
    predict_file(small_bundle(), source, folder / f"whole.{name}", batch_size=4)
    target = folder / f"answers.{name}"
    for stop in stops:
        try:
            predict_file(small_bundle(), source, target, resume=True, batch_size=batch_size, advance=_stop_after(stop))
        except _Stop:
            assert not target.exists()
    assert predict_file(small_bundle(), source, target, resume=True, batch_size=5) == len(TEXTS)
    assert target.read_bytes() == (folder / f"whole.{name}").read_bytes()
    assert not list(folder.glob("*.part*"))


def test_bytes_that_the_journal_does_not_count_are_cut_off(source, tmp_path):
    predict_file(small_bundle(), source, tmp_path / "whole.jsonl")
    target = tmp_path / "a.jsonl"
    with pytest.raises(_Stop):
        predict_file(small_bundle(), source, target, batch_size=4, advance=_stop_after(2))
    with (tmp_path / "a.jsonl.part").open("ab") as part:
        part.write(b'{"row": 9, "half')
    predict_file(small_bundle(), source, target, resume=True)
    assert target.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_without_resume_a_run_starts_anew(source, tmp_path):
    target = tmp_path / "a.jsonl"
    with pytest.raises(_Stop):
        predict_file(small_bundle(), source, target, batch_size=4, advance=_stop_after(2))
    predict_file(small_bundle(), source, target, batch_size=30)
    assert len(_records(target)) == len(TEXTS)


def test_an_old_file_stays_until_the_new_one_is_whole(source, tmp_path):
    target = tmp_path / "a.csv"
    target.write_text("old")
    with pytest.raises(_Stop):
        predict_file(small_bundle(), source, target, batch_size=4, advance=_stop_after(2))
    assert target.read_text() == "old"


def test_what_cannot_be_gone_on_with(source, tmp_path):
    target = tmp_path / "a.jsonl"
    with pytest.raises(_Stop):
        predict_file(small_bundle(), source, target, batch_size=4, advance=_stop_after(2))
    with pytest.raises(InvalidInputError, match="begun with another settings"):
        predict_file(small_bundle(), source, target, AnswerSettings("0.1"), resume=True)
    other = tmp_path / "other.txt"
    other.write_text("oil\n")
    with pytest.raises(InvalidInputError, match="begun with another input"):
        predict_file(small_bundle(), TextSource(other), target, resume=True)
    part = tmp_path / "a.jsonl.part"
    whole = part.read_bytes()
    part.write_bytes(whole[:10])
    with pytest.raises(InvalidInputError, match="shorter than it was"):
        predict_file(small_bundle(), source, target, resume=True)
    part.write_bytes(whole)
    (tmp_path / "a.jsonl.part.json").write_text("{")
    with pytest.raises(InvalidInputError, match="is damaged"):
        predict_file(small_bundle(), source, target, resume=True)


def test_two_runs_do_not_write_the_same_file(tmp_path):
    pytest.importorskip("fcntl")
    with ResumableOutput(tmp_path / "a.jsonl", {}), pytest.raises(InvalidInputError, match="Another run"):
        ResumableOutput(tmp_path / "a.jsonl", {}).__enter__()


def test_no_texts_leave_no_file(tmp_path):
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(CorpusError, match="one text at least"):
        predict_file(small_bundle(), TextSource(tmp_path / "empty.txt"), tmp_path / "a.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["empty.txt"]


def test_bad_outputs(source, tmp_path):
    with pytest.raises(InvalidInputError, match=r"must end in one of \.jsonl"):
        output_format(tmp_path / "a.xlsx")
    (tmp_path / "dir.csv").mkdir()
    with pytest.raises(InvalidInputError, match="is a folder"):
        predict_file(small_bundle(), source, tmp_path / "dir.csv")
    with pytest.raises(InvalidInputError, match="must be one of jsonl, csv, parquet"):
        open_writer(None, "xml", top=1)


def test_memory_does_not_grow_with_the_input(tmp_path):
    import tracemalloc

    path = tmp_path / "long.txt"
    path.write_text(f"{TEXTS[0]}\n" * 30_000)
    list(read_batches(path, batch_size=100))[:1]
    tracemalloc.start()
    for _ in read_batches(path, batch_size=100):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < path.stat().st_size / 4


def test_a_separator_that_is_in_a_label_is_refused_before_anything_is_written(tmp_path, source):
    bundle = small_bundle()
    mark = bundle.label_names[3][-1]
    with pytest.raises(InvalidInputError, match=rf"has the separator {mark!r} in it.* --separator"):
        predict_file(bundle, source, tmp_path / "a.csv", separator=mark)
    with pytest.raises(InvalidInputError, match="must not be empty"):
        predict_file(bundle, source, tmp_path / "a.csv", separator="")
    assert [path.name for path in tmp_path.iterdir()] == ["texts.txt"]
    predict_file(bundle, source, tmp_path / "a.jsonl", separator=mark)  # has lists


def test_labels_in_csv_are_read_back_as_they_were(tmp_path, source):
    predict_file(small_bundle(), source, tmp_path / "a.csv", AnswerSettings(with_text=True), separator=" + ")
    read = corpora.load(tmp_path / "a.csv", text="text", labels="labels", separator=" + ")
    assert [set(labels) for labels in read.label_sets] == [set(answer["labels"]) for answer in ANSWERS]
