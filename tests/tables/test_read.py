import gzip
import io
import json
import lzma
import os
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surelabel.exceptions import CorpusError, DataWarning, InvalidInputError, MissingDependencyError
from surelabel.tables import read
from surelabel.tables.read import delimiter_of, format_of, read_rows


def cells_of(path, **options):
    return [row.cells for row in read_rows(path, **options)]


def test_every_format_gives_the_same(any_form, rows):
    found = list(read_rows(any_form, needed=("id", "text")))
    assert [row.number for row in found] == [1, 2, 3]
    assert [row.problem for row in found] == [None] * 3
    for key in ("id", "title", "text"):
        assert [row.cells[key] for row in found] == [row[key] for row in rows]
    assert found[0].place.startswith("Row 1 ")
    assert any_form.name in found[0].place


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.csv.gz", "csv"), ("a.NDJSON", "jsonl"), ("a.b.xlsx", "xlsx"), ("a.jpg", None), ("csv", None)],
)  # fmt: skip
def test_formats_by_suffix(name, kind):
    assert format_of(name) == kind


@pytest.mark.parametrize(
    ("line", "usual", "delimiter"),
    [
        ("id,body,tags", ",", ","),
        ("id;body;tags", ",", ";"),
        ("id\tbody", ",", "\t"),
        ('id;"subject, body, more";tags', ",", ";"),
        ('"a;b",c', ",", ","),
        ('"say ""a,b,c,d"" ";x', ",", ";"),
        ("body", ",", ","),
        ("body", "\t", "\t"),
        ("a,b;c", ",", ","),
    ],
)
def test_the_delimiter_is_found_outside_quotes(line, usual, delimiter):
    assert delimiter_of(line, usual) == delimiter


def test_a_table_with_a_quoted_comma_in_its_headings(tmp_path):
    (tmp_path / "a.csv").write_text('id;"subject, body";tags\n1;"x; y";z\n')
    assert cells_of(tmp_path / "a.csv") == [{"id": "1", "subject, body": "x; y", "tags": "z"}]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_line_ends(tmp_path, newline):
    (tmp_path / "a.csv").write_bytes(newline.join(["id,text", "1,a", '2,"b', 'c"', "", "3,d"]).encode())
    rows = list(read_rows(tmp_path / "a.csv"))
    assert [row.cells["text"] for row in rows] == ["a", f"b{newline}c", "d"]
    assert rows[2].place == "Row 3 (line 6) of 'a.csv'"


def test_short_rows_and_empty_cells(tmp_path):
    (tmp_path / "a.csv").write_text("id,text,x\n1,a\n2,b,c,\n")
    assert cells_of(tmp_path / "a.csv") == [{"id": "1", "text": "a", "x": ""}, {"id": "2", "text": "b", "x": "c"}]


def test_two_columns_of_one_name(tmp_path):
    (tmp_path / "a.csv").write_text("id,text,,,text\n1,a,b,c,d\n")
    assert cells_of(tmp_path / "a.csv")[0]["text"] == "a"
    with pytest.raises(CorpusError, match="several columns 'text'"):
        cells_of(tmp_path / "a.csv", needed=("text",))


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".txt"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1250", "utf-16", "utf-16-le"])
def test_encodings(tmp_path, suffix, encoding):
    path = tmp_path / f"a{suffix}"
    text = {".jsonl": '{"text": "žluť"}\n{"text": "b"}\n', ".txt": "žluť\nb\n"}.get(suffix, "text\nžluť\nb\n")
    path.write_bytes(text.encode(encoding))
    reading = "utf-8" if encoding == "utf-8-sig" else encoding
    assert [cells["text"] for cells in cells_of(path, encoding=reading)] == ["žluť", "b"]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".txt"])
def test_a_byte_that_is_no_text_is_the_problem_of_its_row(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    lines = {".csv": ["text", "žluť", "b"], ".jsonl": ['{"text": "žluť"}', '{"text": "b"}'], ".txt": ["žluť", "b"]}
    path.write_bytes("\n".join(lines[suffix]).encode("cp1250"))
    first, second = read_rows(path)
    assert "0x9e" in first.problem
    assert "cp1250" in first.problem
    assert second.problem is None


def test_a_bad_byte_in_the_headings(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"t\xe9xt\na\n")
    with pytest.raises(CorpusError, match="headings"):
        cells_of(tmp_path / "a.csv")


@pytest.mark.parametrize("encoding", ["klingon", "rot13", "base64", "", None, 5])
def test_what_is_no_encoding(tmp_path, encoding):
    (tmp_path / "a.csv").write_text("text\na\n")
    with pytest.raises(InvalidInputError, match="encoding"):
        cells_of(tmp_path / "a.csv", encoding=encoding)


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ('{"a": 1, "a": 2}', "twice"),
        ('{"a": {"oil": 1, "oil": 1}}', "twice"),
        ('{"a": NaN}', "NaN"),
        ('{"a": -Infinity}', "Infinity"),
        ('{"a": "b', "cut off"),
        ("[1]", "object"),
        ("3", "object"),
        ("[" * 100_000, "JSON"),
        ('{"a": ' + "9" * 5_000 + "}", "JSON"),
    ],
)
def test_strict_json(tmp_path, line, word):
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 0}\n\n' + line)
    first, second = read_rows(path)
    assert (first.problem, second.number, second.cells) == (None, 2, {})
    assert word in second.problem
    assert "line 3" in second.place


def test_line_separators_inside_json_strings(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"a": "x\u2028y\x85zw"}\n', encoding="utf-8")
    assert cells_of(tmp_path / "a.jsonl") == [{"a": "x\u2028y\x85zw"}]


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("a.csv", b"PK\x03\x04 xl/workbook.xml", "xlsx"),
        ("a.csv", b"PK\x03\x04 word", "zip"),
        ("a.csv", b"\xd0\xcf\x11\xe0", "xls"),
        ("a.csv", b"\xff\xfet\x00", "utf-16"),
        ("a.jsonl", b"PAR1", "parquet"),
        ("a.txt", b"%PDF-1.4", "PDF"),
        ("a.csv", b"\x1f\x8b\x08", "gz"),
        ("a.parquet", b"PAR1 no", "Parquet"),
        ("a.xlsx", b"", "workbook"),
        ("a.csv.gz", gzip.compress(b"text\n" * 9_000, mtime=0)[:-20], "compressed"),
        ("a.csv.xz", lzma.compress(b"text\n" * 9_000)[:-20], "compressed"),
        ("a.jsonl.gz", b"text", "compressed"),
        ("a.parquet.gz", gzip.compress(b"x", mtime=0), "Parquet"),
    ],
)
def test_files_that_are_not_what_their_names_say(tmp_path, name, content, word):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CorpusError, match=word):
        cells_of(tmp_path / name)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ["empty", "'text'"]),
        ("id,body\n1,a\n", ["'text'", "'body'"]),
        ("Oil rose again on the news of today,oil\nGold fell,gold\n", ["looks like data"]),
        ("7,oil\n", ["looks like data"]),
    ],
)
def test_columns_that_are_needed(tmp_path, content, words):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(CorpusError) as caught:
        cells_of(tmp_path / "a.csv", needed=("text",))
    assert all(word in str(caught.value) for word in words)


def test_bad_rows_of_a_table(tmp_path):
    (tmp_path / "a.csv").write_text('text,x\na,b\nc,d,e\nf,g\n"open,h\n')
    problems = [row.problem for row in read_rows(tmp_path / "a.csv")]
    assert [problem is None for problem in problems] == [True, False, True, False]
    assert "2 cells" in problems[1]


def test_no_such_file_and_no_such_format(tmp_path):
    with pytest.raises(CorpusError, match=r"nothing.csv"):
        cells_of(tmp_path / "nothing.csv")
    with pytest.raises(InvalidInputError, match="format"):
        cells_of(tmp_path / "photo.jpg")


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_a_compressed_bomb_ends_at_the_limit(tmp_path, monkeypatch, pack):
    monkeypatch.setattr(read, "UNPACKED_BYTES", 2**20)
    path = tmp_path / f"a.jsonl.{'gz' if pack is gzip.compress else 'xz'}"
    path.write_bytes(pack(b" " * (30 * 2**20)))
    with pytest.raises(CorpusError, match="limit"):
        cells_of(path)
    path.write_bytes(pack(b'{"text": "a"}\n' * 10_000))
    assert len(cells_of(path)) == 10_000


def test_a_workbook_bomb_ends_at_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(read, "UNPACKED_BYTES", 2**20)
    with zipfile.ZipFile(tmp_path / "a.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b" " * (30 * 2**20))
    with pytest.raises(CorpusError, match="limit"):
        cells_of(tmp_path / "a.xlsx")


def test_a_parquet_bomb_ends_at_the_limit(tmp_path, monkeypatch, write_table):
    monkeypatch.setattr(read, "UNPACKED_BYTES", 2**20)
    monkeypatch.setattr(read, "UNPACKED_RATIO", 2)
    with pytest.raises(CorpusError, match="limit"):
        cells_of(write_table(tmp_path / "a.parquet", [{"text": f"{k}" * 2**20} for k in range(10)]))


@pytest.mark.parametrize("change", ["longer", "same size", "replaced", "gone"])
def test_a_file_that_changes_while_it_is_read_is_an_error(tmp_path, change):
    path = tmp_path / "a.csv"
    path.write_text("text\na\nb\n")
    rows = read_rows(path)
    assert next(rows).cells == {"text": "a"}
    if change == "gone":
        path.unlink()
    elif change == "replaced":
        (tmp_path / "b").write_text("text\nc\n")
        (tmp_path / "b").replace(path)
    else:
        path.write_text("text\na\nc\n" if change == "same size" else "text\na\nb\nc\n")
        os.utime(path, ns=(1, 1))
    with pytest.raises(CorpusError, match="changed"):
        list(rows)


def test_standard_input(monkeypatch):
    stream = io.BufferedReader(io.BytesIO(b"text\na\nb\n"))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stream))
    rows = list(read_rows("-", kind="csv"))
    assert [row.cells["text"] for row in rows] == ["a", "b"]
    assert "standard input" in rows[0].place
    assert not stream.closed
    for kind in (None, "parquet", "xlsx"):
        with pytest.raises(InvalidInputError, match="format"):
            list(read_rows("-", kind=kind))


def test_a_url(tmp_path):
    (tmp_path / "a.csv").write_text("text\na\n")
    assert cells_of(f"file://{tmp_path}/a.csv") == [{"text": "a"}]


def test_cells_of_a_workbook_are_strings(tmp_path):
    import datetime

    import openpyxl

    book = openpyxl.Workbook()
    for cells in ([], ["id", "x", "when"], [7, True, datetime.date(2026, 1, 2)], [], [8.0, 1.5, None]):
        book.active.append(cells)
    book.create_sheet("notes").append(["more"])
    book.save(tmp_path / "a.xlsx")
    with pytest.warns(DataWarning, match="2 sheets"):
        assert cells_of(tmp_path / "a.xlsx") == [
            {"id": "7", "x": "True", "when": "2026-01-02"},
            {"id": "8", "x": "1.5", "when": ""},
        ]


def test_a_missing_package_names_the_extra(tmp_path, write_table, monkeypatch):
    path = write_table(tmp_path / "a.xlsx", [{"text": "a"}])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingDependencyError, match=r"surelabel\[corpora\]"):
        cells_of(path)


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.text(st.characters(exclude_categories=["Cs"])), min_size=1)))
def test_any_text_comes_back_from_jsonl(tmp_path_factory, records):
    path: Path = tmp_path_factory.mktemp("json") / "a.jsonl"
    path.write_text(
        "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8", newline=""
    )
    assert cells_of(path) == records


def test_a_text_of_two_megabytes(tmp_path, write_table):
    long = "word " * 400_000
    for name in ("a.jsonl", "a.csv", "a.tsv"):
        assert cells_of(write_table(tmp_path / name, [{"text": long}]))[0]["text"] == long
