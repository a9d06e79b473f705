"""Texts from files, in batches."""

import csv
import gzip
import io
import json
import re
import sys

import openpyxl
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from bundle_cases import corpus
from surelabel.exceptions import CorpusError, InvalidInputError
from surelabel.predicting import InputColumns, TextList, TextSource

TEXTS = ["wheat rose", 'gold, "fell"', "", "blé\u2028x 🌾 \x85", "oil"]
IDS = ["a", "b", "c", "d", "e"]


def read_batches(path, columns=None, batch_size=256):
    return TextSource(path, columns).batches(batch_size)


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_columns_are_told_apart_as_spreadsheets_write_them(tmp_path, delimiter):
    path = tmp_path / "new.csv"
    path.write_text(delimiter.join(["id", "body"]) + f'\n1{delimiter}"a, b"\n')
    (batch,) = read_batches(path, InputColumns(("body",)))
    assert (batch.texts, batch.ids) == (["a, b"], ["1"])


def _write(path, texts=TEXTS, ids=IDS):
    kind = [suffix for suffix in path.suffixes if suffix != ".gz"][-1]
    if kind == ".parquet":
        parquet.write_table(pyarrow.table({"id": ids, "body": texts}), path, row_group_size=2)
        return path
    if kind == ".xlsx":
        book = openpyxl.Workbook()
        for row in [("id", "body"), *zip(ids, texts, strict=True)]:
            book.active.append(row)
        book.save(path)
        return path
    if kind == ".txt":
        content = "".join(f"{text}\n" for text in texts)
    elif kind == ".jsonl":
        content = "".join(json.dumps({"id": i, "body": t}) + "\n" for i, t in zip(ids, texts, strict=True))
    else:
        buffer = io.StringIO()
        writer = csv.writer(buffer, delimiter="," if kind == ".csv" else "\t")
        writer.writerows([("id", "body"), *zip(ids, texts, strict=True)])
        content = buffer.getvalue()
    data = content.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def _columns(path):
    return InputColumns(("body",)) if ".txt" not in path.name else InputColumns()


@pytest.mark.parametrize("name", ["t.txt", "t.jsonl", "t.csv", "t.tsv", "t.parquet", "t.xlsx", "t.txt.gz", "t.csv.gz"])
@pytest.mark.parametrize("batch_size", [1, 2, 5, 100])
def test_every_format_gives_the_same_texts(tmp_path, name, batch_size):
    path = _write(tmp_path / name)
    source = TextSource(path, _columns(path))
    for skip in (0, 1, 3, 5):
        batches = list(source.batches(batch_size, skip=skip))
        assert [text for batch in batches for text in batch.texts] == TEXTS[skip:]
        assert all(len(batch) <= batch_size for batch in batches)
        assert [row for batch in batches for row in batch.rows] == list(range(skip + 1, len(TEXTS) + 1))
        if ".txt" in name:
            assert all(batch.ids is None for batch in batches)
        else:
            assert [each for batch in batches for each in batch.ids] == IDS[skip:]
    assert batches == []
    if not name.endswith("xlsx"):
        assert list(source.batches(2))[-1].position == source.total
    with pytest.raises(InvalidInputError, match="first 9 rows of the input are not those that were answered"):
        list(source.batches(batch_size, skip=9))


@given(texts=st.lists(st.text(st.characters(blacklist_characters="\n\r", codec="utf-8"))), size=st.integers(1, 4))
def test_lines_are_split_at_line_feeds_only(tmp_path_factory, texts, size):
    path = tmp_path_factory.getbasetemp() / "lines.txt"
    path.write_bytes("".join(f"{text}\n" for text in texts).encode())
    found = [text for batch in read_batches(path, batch_size=size) for text in batch.texts]
    assert found == [texts[0].removeprefix("\ufeff"), *texts[1:]] if texts else found == []


def test_line_ends_and_byte_order_marks(tmp_path):
    path = tmp_path / "t.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo")
    assert next(read_batches(path)).texts == ["one", "two"]
    path.write_bytes(b"bl\xe9\n")
    assert next(read_batches(path, InputColumns(encoding="latin-1"))).texts == ["blé"]


def test_several_columns_are_joined(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": "x", "b": "y"}\n\n{"a": null, "b": "z", "id": 7}\n{"a": "\\ud800", "b": ""}\n')
    batch = next(read_batches(path, InputColumns(("a", "b"))))
    assert batch.texts == ["x\ny", "z", "?"]
    assert batch.ids == [None, "7", None]


def test_short_rows_and_empty_lines_of_tables(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('id,text\n1,"two\nlines"\n\n2\n')
    assert next(read_batches(path)).texts == ["two\nlines", ""]


def test_standard_input(monkeypatch, tmp_path):
    path = _write(tmp_path / "t.jsonl")
    with path.open("rb") as file:
        monkeypatch.setattr(sys, "stdin", file)
        source = TextSource("-", InputColumns(("body",)), "jsonl")
        assert source.total is None
        assert next(source.batches()).texts == TEXTS
        assert not file.closed


def test_a_part_of_a_corpus():
    source = TextList.of_part(corpus(), corpus().part("test"))
    batches = list(source.batches(50, skip=10))
    assert [len(batch) for batch in batches] == [50, 50, 10]
    assert batches[0].texts[0] == corpus().part("test").texts[10]
    assert source.total == batches[-1].position == 120


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", "line of headings"),
        ("t.csv", b"a,b\n1,2\n", "must have a column 'text'. It has 'a', 'b'"),
        ("t.csv", b"text\n1,2\n", "Row 1 (line 2) of 't.csv' must have 1 cells"),
        ("t.csv", b'text\na\n"b\nc\n', "Row 2 (line 3) of 't.csv' must be a row of a table"),
        ("t.csv", b"Wheat rose again on the news from Chicago.,x\n", "looks like data"),
        ("t.csv", b"text,text\na,b\n", "several of that name"),
        ("t.csv", b"PK\x03\x04 docProps/app.xml", "It is an Excel workbook (.xlsx)"),
        ("t.jsonl", b"PK\x03\x04 photo.jpg", "It is a zip archive"),
        ("t.txt", b"%PDF-1.7", "It is a PDF document"),
        ("t.xlsx", b"text\na\n", "must be an Excel workbook"),
        ("t.tsv", b"id\tx\n", "must have a column 'text'"),
        ("t.jsonl", b"{}\n", "must have a column 'text'"),
        ("t.jsonl", b"\n[1]\n", "Row 1 (line 2) of 't.jsonl' must be a JSON object"),
        ("t.jsonl", b"{\n", "Row 1 of 't.jsonl' must be JSON"),
        ("t.jsonl", b'{"text": 3}\n', "must hold text. Got int 3"),
        ("t.txt", b"good\nb\xffd\n", "Got byte 0xff"),
        ("t.txt.gz", b"no gzip", "whole gzip file"),
        ("t.txt.gz", gzip.compress(b"x" * 10_000, mtime=0)[:30], "whole gzip file"),
        ("t.parquet", b"PAR1", "must be a Parquet file"),
    ],
)
def test_bad_files(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CorpusError, match=re.escape(message)):
        list(read_batches(tmp_path / name))


def test_bad_arguments(tmp_path):
    _write(tmp_path / "t.csv")
    with pytest.raises(CorpusError, match="does not exist"):
        read_batches(tmp_path / "no.txt")
    (tmp_path / "dir.txt").mkdir()
    with pytest.raises(CorpusError, match="is a folder"):
        read_batches(tmp_path / "dir.txt")
    with pytest.raises(InvalidInputError, match=r"must end in one of \.txt"):
        read_batches(tmp_path / "t.docx")
    with pytest.raises(InvalidInputError, match="text encoding"):
        InputColumns(encoding="klingon")
    with pytest.raises(InvalidInputError, match="at least one column"):
        InputColumns(())
    with pytest.raises(InvalidInputError, match="must be 1 or more"):
        list(TextSource(tmp_path / "t.csv").batches(0))
    with pytest.raises(InvalidInputError, match=r"standard input must be one of txt, jsonl, csv, tsv\."):
        TextSource("-", kind="parquet")
    with pytest.raises(CorpusError, match="must have a column 'key'"):
        list(read_batches(tmp_path / "t.csv", InputColumns(("body",), id="key")))


def test_bad_rows_are_named_and_the_others_are_read(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b'id,text\n1,good\n2,b\xffd\n3,"a"b\n4,"two\nlines"\n5,x,y\n')
    with pytest.raises(CorpusError, match=r"Row 2 \(line 3\) of 't.csv' must be text in utf-8. Got byte 0xff"):
        list(read_batches(path))
    (batch,) = TextSource(path).batches(10, on_error="skip")
    assert (batch.rows, batch.texts, batch.ids) == ([1, 4], ["good", "two\nlines"], ["1", "4"])
    assert [row for row, _ in batch.problems] == [2, 3, 5]
    assert "Row 5 (line 7) of 't.csv' must have 2 cells. Got 3" in batch.problems[2][1]


def test_a_file_that_breaks_off_gives_the_rows_before(tmp_path):
    path = tmp_path / "t.txt.gz"
    path.write_bytes(gzip.compress(b"".join(b"%d text\n" % k for k in range(50_000)), mtime=0)[:-2000])
    batches = list(TextSource(path).batches(1000, on_error="mark"))
    rows = [row for batch in batches for row in batch.rows]
    assert rows == list(range(1, len(rows) + 1))
    ((number, reason),) = [problem for batch in batches for problem in batch.problems]
    assert number == len(rows) + 1 > 10_000
    assert "whole gzip file" in reason
    assert "rest of the file is left out" in reason


def test_empty_texts_and_ids_that_occur_twice_are_named(tmp_path):
    path = tmp_path / "t.jsonl"
    rows = [{"text": "a", "id": 1}, {"text": None, "id": 2}, {"text": " ", "id": 1}, {"text": "b", "id": None}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = TextSource(path)
    list(source.batches(2))
    empty, twice = source.findings.messages(source.name)
    assert empty == "Empty or missing texts of 't.jsonl': 2, in row 2, 3."
    assert twice == "Ids of 't.jsonl' that occur again: 1, such as '1' (row 3)."
    many = TextList("many", [""] * 9, ["x"] * 9)
    list(many.batches())
    assert [message.rpartition("and")[2] for message in many.findings.messages("m")] == [
        " 4 more.",
        " 3 more.",
    ]


def test_resuming_needs_the_same_rows(tmp_path):
    path = _write(tmp_path / "t.csv")
    source = TextSource(path, _columns(path))
    first = next(source.batches(3))
    assert [row for batch in source.batches(2, first.n_read, first.digest) for row in batch.rows] == [4, 5]
    changed = _write(tmp_path / "u.csv", ["Wheat rose", *TEXTS[1:]])
    with pytest.raises(InvalidInputError, match="first 3 rows of the input"):
        list(TextSource(changed, _columns(path)).batches(2, first.n_read, first.digest))


def test_lines_that_end_in_carriage_returns(tmp_path):
    path = tmp_path / "mac.csv"
    path.write_bytes(b'id,text\r1,a\r2,"b\rc"\r\n3,d\r')
    assert next(read_batches(path)).texts == ["a", "b\rc", "d"]


def test_text_in_utf_16(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("text\nblé\n".encode("utf-16"))
    with pytest.raises(CorpusError, match="It is text in UTF-16; say --encoding utf-16"):
        list(read_batches(path))
    assert next(read_batches(path, InputColumns(encoding="utf-16"))).texts == ["blé"]
