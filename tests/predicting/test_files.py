"""Answers to streams: the same in batches, in any format, and after an interruption."""

import csv
import functools
import json
import threading
import time
import warnings
from pathlib import Path

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from bundle_cases import corpus, small_bundle
from surelabel import ConformalLabelSets, corpora
from surelabel.exceptions import CalibrationWarning, CorpusError, DataWarning, InvalidInputError
from surelabel.models import Bundle
from surelabel.predicting import (
    Answerer,
    AnswerSettings,
    TextBatch,
    TextSource,
    answer_writer,
    predict_file,
)
from surelabel.tables.writing import output_format

TEXTS = [" ".join(text.split()) for text in corpus().part("test").texts[:30]]


def _fields(answer, probabilities, max_open=20):
    """What a record says, written down once more: open labels by falling probability."""
    chance = dict(zip(small_bundle().label_names, probabilities.tolist(), strict=True))
    still_open = sorted(answer.open, key=lambda name: -chance[name])
    named = {*answer.labels, *answer.certain, *answer.consider, *still_open[:max_open]}
    values = answer.to_dict()
    decided = ("decision", "reason", "assign", "consider", "unfamiliar")
    kept = (
        *decided,
        "labels",
        "confidence",
        "credibility",
        "significance",
        "size",
        "size_bounds",
        "n_candidates",
        "certain",
    )
    return {
        **{name: values[name] for name in kept},
        "open": still_open[:max_open],
        "n_more_open": len(still_open[max_open:]),
        "probabilities": {name: pytest.approx(chance[name], rel=1e-3) for name in named},
        "top": values["top"],
    }


# Functions, not constants: a constant would train the bundle in every process that collects this file.
@functools.cache
def _answers():
    return small_bundle().answers(TEXTS, significance="0.05")


@functools.cache
def _probabilities():
    return small_bundle().predict_proba(TEXTS)


@functools.cache
def _expected():
    return [_fields(*pair) for pair in zip(_answers(), _probabilities(), strict=True)]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return small_bundle().save(tmp_path_factory.mktemp("models") / "small")


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
    rows = range(len(TEXTS))
    parts = [rows[start : start + batch_size] for start in range(0, len(TEXTS), batch_size)]
    batches = [TextBatch([row + 1 for row in part], [TEXTS[row] for row in part]) for part in parts]
    answerer = Answerer(small_bundle(), AnswerSettings())
    records = [record for batch in batches for record in answerer.answer(batch)]
    assert [record["row"] for record in records] == list(range(1, len(TEXTS) + 1))
    assert [{key: value for key, value in record.items() if key != "row"} for record in records] == _expected()


def test_records_have_ids_and_texts_where_asked_for():
    batch = TextBatch([5, 6], TEXTS[:2], ["x", "y"])
    records = Answerer(small_bundle(), AnswerSettings("0.1", 1, with_text=True)).answer(batch)
    assert [(record["row"], record["id"], record["text"]) for record in records] == [
        (5, "x", TEXTS[0]),
        (6, "y", TEXTS[1]),
    ]
    assert records[0]["significance"] == "0.1"
    assert len(records[0]["top"]) <= 1


def test_the_formats_hold_the_same(source, tmp_path):
    for name in ("a.jsonl", "a.csv", "a.parquet", "a.xlsx"):
        made = predict_file(small_bundle(), source, tmp_path / name, AnswerSettings(batch_size=7))
        assert (made.n_rows, made.n_partitions, made.skipped) == (len(TEXTS), 1, None)
    expected = [{"row": row + 1, **fields} for row, fields in enumerate(_expected())]
    assert _records(tmp_path / "a.jsonl") == expected
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    table = parquet.read_table(tmp_path / "a.parquet").to_pylist()
    headings, *sheet = openpyxl.load_workbook(tmp_path / "a.xlsx").active.values
    assert list(headings) == list(rows[0])
    assert [[str(cell or "") for cell in line[:3]] for line in sheet] == [list(row.values())[:3] for row in rows]
    assert len(rows) == len(table) == len(expected)
    for row, line, record in zip(rows, table, expected, strict=True):
        assert row["labels"].split(",") == line["labels"] == record["labels"]
        assert float(row["confidence"]) == line["confidence"] == record["confidence"]
        assert int(row["size"]) == int(line["size"]) == record["size"]
        assert row["decision"] == line["decision"] == record["decision"]
        assert row["reason"] == line["reason"] == record["reason"]
        assert row["unfamiliar"] == str(line["unfamiliar"]) == str(record["unfamiliar"])
        for name in ("assign", "consider"):
            assert [tag for tag in row[name].split(",") if tag] == line[name] == record[name]
        assert [name for name in row["open"].split(",") if name] == line["open"] == record["open"]
        chances = dict(cell.split("=") for cell in row["probabilities"].split(","))
        assert {name: float(chance) for name, chance in chances.items()} == record["probabilities"]
        assert {each["label"]: each["probability"] for each in line["probabilities"]} == record["probabilities"]
        assert line["top"] == record["top"]
        assert row["top_1"].split(",") == record["top"][0]["labels"]
        assert float(row["top_1_p_value"]) == record["top"][0]["p_value"]
        assert (row["top_5"] == "") == (len(record["top"]) < 5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "a.jsonl", "a.parquet", "a.xlsx", "texts.txt"]


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
def test_descriptions_go_into_files_where_asked_for(source, tmp_path, name):
    predict_file(small_bundle(), source, tmp_path / name, AnswerSettings("0.1", describe=True))
    answers = small_bundle().answers(TEXTS, significance="0.1", describe=True)
    records = parquet.read_table(tmp_path / name).to_pylist() if name.endswith("parquet") else _records(tmp_path / name)
    assert [record["description"] for record in records] == [answer.description for answer in answers]


def test_sizes_past_every_integer_type(tmp_path):
    (record,) = Answerer(small_bundle(), AnswerSettings()).answer(TextBatch([1], TEXTS[:1]))
    record = {**record, "size": None, "size_bounds": [10**40, 10**400], "n_candidates": 10**60}
    with (tmp_path / "a.parquet").open("wb") as stream:
        writer = answer_writer(stream, "parquet", AnswerSettings(), list(record))
        writer.write([record])
        writer.write([])
        writer.close()
    row = parquet.read_table(tmp_path / "a.parquet").to_pylist()[0]
    assert (row["size"], row["size_lower"], row["n_candidates"]) == (None, 1e40, str(10**60))
    assert row["size_upper"] == float("inf")


@given(
    stops=st.lists(st.integers(1, 3), max_size=4), batch_size=st.integers(1, 9), name=st.sampled_from(["jsonl", "csv"])
)
@settings(max_examples=12)
def test_a_resumed_file_equals_an_uninterrupted_one(tmp_path_factory, model, stops, batch_size, name):
    folder = tmp_path_factory.mktemp("resumed")
    (folder / "texts.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    source = TextSource(folder / "texts.txt")
    predict_file(model, source, folder / f"whole.{name}", AnswerSettings(batch_size=4))
    target = folder / f"answers.{name}"
    for stop in stops:
        try:
            settings_of_run = AnswerSettings(batch_size=batch_size)
            predict_file(model, source, target, settings_of_run, resume=True, advance=_stop_after(stop))
        except _Stop:
            assert not target.exists()
    assert predict_file(model, source, target, AnswerSettings(batch_size=5), resume=True).n_rows == len(TEXTS)
    assert target.read_bytes() == (folder / f"whole.{name}").read_bytes()
    assert not list(folder.glob("*.part*"))


def test_bytes_that_the_journal_does_not_count_are_cut_off(source, tmp_path):
    predict_file(small_bundle(), source, tmp_path / "whole.jsonl")
    target = tmp_path / "a.jsonl"
    with pytest.raises(_Stop):
        predict_file(small_bundle(), source, target, AnswerSettings(batch_size=4), advance=_stop_after(2))
    with (tmp_path / "a.jsonl.part").open("ab") as part:
        part.write(b'{"row": 9, "half')
    predict_file(small_bundle(), source, target, resume=True)
    assert target.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


def test_without_resume_a_run_starts_anew(source, tmp_path):
    target = tmp_path / "a.jsonl"
    with pytest.raises(_Stop):
        predict_file(small_bundle(), source, target, AnswerSettings(batch_size=4), advance=_stop_after(2))
    predict_file(small_bundle(), source, target, AnswerSettings(batch_size=30))
    assert len(_records(target)) == len(TEXTS)


def test_an_old_file_stays_until_the_new_one_is_whole(source, tmp_path):
    target = tmp_path / "a.csv"
    target.write_text("old")
    with pytest.raises(_Stop):
        predict_file(small_bundle(), source, target, AnswerSettings(batch_size=4), advance=_stop_after(2))
    assert target.read_text() == "old"


def test_what_cannot_be_gone_on_with(source, tmp_path):
    target = tmp_path / "a.jsonl"
    with pytest.raises(_Stop):
        predict_file(small_bundle(), source, target, AnswerSettings(batch_size=4), advance=_stop_after(2))
    with pytest.raises(InvalidInputError, match="begun with another settings"):
        predict_file(small_bundle(), source, target, AnswerSettings("0.1"), resume=True)
    path = source.partition.url
    texts = Path(path).read_text()
    Path(path).write_text("X" + texts[1:])
    with pytest.raises(InvalidInputError, match="first 8 rows of the input are not those"):
        predict_file(small_bundle(), source, target, resume=True)
    Path(path).write_text(texts)
    assert (tmp_path / "a.jsonl.part").exists()
    other = small_bundle()
    predictor = ConformalLabelSets(**{**other.predictor.get_params(), "max_labels": 2})
    part = corpus().part("calibration")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        predictor = predictor.calibrate(other.predict_proba(part.texts), part.labels)
    other = Bundle(other.classifier, predictor, other.info)
    with pytest.raises(InvalidInputError, match="begun with another model"):
        predict_file(other, source, target, resume=True)
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
    (tmp_path / "t.txt").write_text("oil\n")

    def second(batch):
        with pytest.raises(InvalidInputError, match="Another run is writing"):
            predict_file(small_bundle(), TextSource(tmp_path / "t.txt"), tmp_path / "a.jsonl")

    predict_file(small_bundle(), TextSource(tmp_path / "t.txt"), tmp_path / "a.jsonl", advance=second)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "t.txt"]


def test_of_many_writers_at_once_none_leaves_half_a_file(source, model, tmp_path):
    """Writers come and go, each as soon as it can; whatever is seen of the file is whole."""
    target = tmp_path / "a.jsonl"
    refusals, seen = [], []

    def write():
        n_written = 0
        while n_written < 2:
            try:
                predict_file(model, source, target, AnswerSettings(batch_size=10, top=1))
                n_written += 1
            except InvalidInputError as error:
                refusals.append("Another run is writing" in str(error))
                time.sleep(0.02)
            if target.exists():
                seen.append(len(target.read_text().splitlines()))

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(refusals)
    assert set(seen) == {len(TEXTS)}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "texts.txt"]


def test_no_texts_leave_no_file(tmp_path):
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(CorpusError, match="at least one text"):
        predict_file(small_bundle(), TextSource(tmp_path / "empty.txt"), tmp_path / "a.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["empty.txt"]


def test_bad_outputs(source, tmp_path):
    with pytest.raises(InvalidInputError, match=r"must end in one of \.jsonl"):
        output_format(tmp_path / "a.docx")
    (tmp_path / "dir.csv").mkdir()
    with pytest.raises(InvalidInputError, match="is a folder"):
        predict_file(small_bundle(), source, tmp_path / "dir.csv")
    with pytest.raises(InvalidInputError, match="'format' must be one of jsonl, csv, parquet, xlsx"):
        AnswerSettings(format="xml")
    with pytest.raises(InvalidInputError, match=r"must be csv\. Got 'jsonl'"):
        predict_file(small_bundle(), source, tmp_path / "a.csv", AnswerSettings(format="jsonl"))
    for settings_of_run in ({"on_error": "ignore"}, {"batch_size": 0}, {"input_format": "doc"}, {"max_open": -1}):
        with pytest.raises(InvalidInputError, match=f"The '{next(iter(settings_of_run))}' must be"):
            AnswerSettings(**settings_of_run)


def test_memory_does_not_grow_with_the_input(tmp_path):
    import tracemalloc

    path = tmp_path / "long.txt"
    path.write_text(f"{TEXTS[0]}\n" * 30_000)
    list(TextSource(path).batches(100))[:1]
    tracemalloc.start()
    for _ in TextSource(path).batches(100):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < path.stat().st_size / 4


def test_a_separator_that_is_in_a_label_is_refused_before_anything_is_written(tmp_path, source):
    bundle = small_bundle()
    mark = bundle.label_names[3][-1]
    with pytest.raises(InvalidInputError, match=rf"has the separator {mark!r} in it.* --separator"):
        predict_file(bundle, source, tmp_path / "a.csv", AnswerSettings(separator=mark))
    with pytest.raises(InvalidInputError, match="must not be empty"):
        predict_file(bundle, source, tmp_path / "a.csv", AnswerSettings(separator=""))
    assert [path.name for path in tmp_path.iterdir()] == ["texts.txt"]
    predict_file(bundle, source, tmp_path / "a.jsonl", AnswerSettings(separator=mark))  # has lists


def test_labels_in_csv_are_read_back_as_they_were(tmp_path, source):
    predict_file(small_bundle(), source, tmp_path / "a.csv", AnswerSettings(with_text=True, separator=" + "))
    read = corpora.load(tmp_path / "a.csv", text="text", labels="labels", separator=" + ")
    assert [set(labels) for labels in read.label_sets] == [set(answer.labels) for answer in _answers()]


BAD = "id,text\n1,{}\n2,{}\n3,x,y\n2,{}\n5,\n"


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet", "xlsx"])
def test_a_bad_row_stops_is_skipped_or_marked(tmp_path, suffix):
    path, target = tmp_path / "t.csv", tmp_path / f"a.{suffix}"
    path.write_text(BAD.format("Wheat rose", "Oil fell", "Gold rose"))
    message = r"Row 3 \(line 4\) of 't.csv' must have 2 cells. Got 3"
    with pytest.raises(CorpusError, match=message):
        predict_file(small_bundle(), TextSource(path), target)
    assert not target.exists()
    beside = tmp_path / f"a.{suffix}.skipped.jsonl"
    for on_error, n_skipped in (("skip", 1), ("mark", 0)):
        with pytest.warns(DataWarning) as caught:
            made = predict_file(small_bundle(), TextSource(path), target, AnswerSettings(on_error=on_error))
        assert [str(each.message) for each in caught] == [
            "Empty or missing texts of 't.csv': 1, in row 5.",
            "Ids of 't.csv' that occur again: 1, such as '2' (row 4).",
        ]
        assert (made.n_rows, made.n_skipped, made.n_marked) == (4, n_skipped, 1 - n_skipped)
        rows = [dict(row) for row in corpora_rows(target)]
        assert [int(row["row"]) for row in rows] == ([1, 2, 4, 5] if n_skipped else [1, 2, 3, 4, 5])
        if n_skipped:
            (listed,) = _records(beside)
            assert listed["row"] == 3
            assert listed["error"].startswith("Row 3 (line 4) of 't.csv' must have 2 cells")
        else:
            assert not beside.exists()
            assert [bool(row.get("error")) for row in rows] == [False, False, True, False, False]
            assert not rows[2].get("labels")


def corpora_rows(path):
    """The rows of a file of answers, by the reader of tables."""
    from surelabel.tables.reading import Partition, TableReader

    return [row.cells for row in TableReader(Partition(str(path), path.suffix[1:])).rows()]


def test_a_file_of_bad_rows_alone(tmp_path):
    (tmp_path / "t.jsonl").write_text("{\n[]\n")
    with pytest.raises(CorpusError, match=r"No row of 't.jsonl' can be read. Row 1 of 't.jsonl' must be JSON"):
        predict_file(
            small_bundle(), TextSource(tmp_path / "t.jsonl"), tmp_path / "a.csv", AnswerSettings(on_error="mark")
        )
    assert not (tmp_path / "a.csv").exists()


def test_skipped_rows_survive_an_interruption(tmp_path):
    path, target = tmp_path / "t.jsonl", tmp_path / "a.csv"
    lines = [json.dumps({"text": text}) for text in TEXTS]
    path.write_text("\n".join(["{", *lines, "["]))
    options = AnswerSettings(on_error="skip", batch_size=4)
    with pytest.raises(_Stop):
        predict_file(small_bundle(), TextSource(path), target, options, advance=_stop_after(3))
    made = predict_file(small_bundle(), TextSource(path), target, options, resume=True)
    assert (made.n_rows, made.n_skipped) == (30, 2)
    assert [entry["row"] for entry in _records(tmp_path / "a.csv.skipped.jsonl")] == [1, 32]


def test_open_labels_are_capped_and_counted(source, tmp_path):
    level = AnswerSettings("0.02", max_open=2, batch_size=30)
    predict_file(small_bundle(), source, tmp_path / "a.jsonl", level)
    answers = small_bundle().answers(TEXTS, significance="0.02")
    records = _records(tmp_path / "a.jsonl")
    expected = [_fields(*pair, max_open=2) for pair in zip(answers, _probabilities(), strict=True)]
    assert [{name: value for name, value in record.items() if name != "row"} for record in records] == expected
    assert any(record["n_more_open"] for record in records)


def test_the_p_value_of_a_label_set(source, tmp_path):
    names = list(small_bundle().label_names[:2])
    predict_file(small_bundle(), source, tmp_path / "a.csv", AnswerSettings(p_value_of=names, separator=";"))
    rows = corpora_rows(tmp_path / "a.csv")
    assert {row["p_value_of"] for row in rows} == {";".join(names)}
    assert [float(row["p_value"]) for row in rows] == small_bundle().predict_p(TEXTS, [names] * len(TEXTS)).tolist()
    with pytest.raises(InvalidInputError, match=r"labels of the model .*Got 'klingon'"):
        predict_file(small_bundle(), source, tmp_path / "a.csv", AnswerSettings(p_value_of=["klingon"]))


def test_cells_that_begin_like_formulas_are_neutral_unless_asked(tmp_path):
    ids = ["=1+1", "+1", "-1", "@x", "\tx", "fine"]
    path = tmp_path / "t.jsonl"
    path.write_text("".join(json.dumps({"id": name, "text": f"{name} wheat"}) + "\n" for name in ids))
    for raw_cells, mark in ((False, "'"), (True, "")):
        options = AnswerSettings(with_text=True, raw_cells=raw_cells)
        predict_file(small_bundle(), TextSource(path), tmp_path / "a.csv", options)
        rows = corpora_rows(tmp_path / "a.csv")
        assert [row["id"] for row in rows] == [*(f"{mark}{name}" for name in ids[:-1]), "fine"]
        assert rows[0]["text"] == f"{mark}=1+1 wheat"
    predict_file(small_bundle(), TextSource(path), tmp_path / "a.xlsx", AnswerSettings())
    cells = [row[1] for row in openpyxl.load_workbook(tmp_path / "a.xlsx").active.rows]
    assert [cell.value for cell in cells[1:4]] == ids[:3]
    assert {cell.data_type for cell in cells} == {"s"}
