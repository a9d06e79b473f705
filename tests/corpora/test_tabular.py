import gzip
import json
import re

import numpy as np
import pytest

from surelabel.corpora import load, read_table
from surelabel.corpora.tabular import read_events
from surelabel.exceptions import CorpusError, DataWarning, InvalidInputError, MissingDependencyError

ROWS = [
    {"id": "n1", "title": "Oil", "text": "Oil rose, “sharply”", "labels": ["oil"]},
    {"id": "n2", "title": "Metals", "text": 'Gold "fell"\nand oil', "labels": ["gold", "oil"]},
    {"id": "n3", "title": "", "text": "Zlato žlutě", "labels": ["gold"]},
]

OPTIONS = {"text": "--text", "labels": "--labels", "id": "--id", "part": "--split-column"}


def write(folder, form, rows=ROWS, separator=";"):
    path = folder / f"news{form}"
    joined = [{**row, "labels": separator.join(row["labels"])} for row in rows]
    if form.startswith(".jsonl"):
        data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    elif form.startswith(".parquet"):
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
        return path
    elif form == ".xlsx":
        import pandas

        pandas.DataFrame(joined).to_excel(path, index=False)
        return path
    else:
        import pandas

        frame = pandas.DataFrame(joined)
        data = frame.to_csv(index=False, sep="," if ".csv" in form else "\t").encode()
    path.write_bytes(gzip.compress(data) if form.endswith(".gz") else data)
    return path


FORMS = [".jsonl", ".jsonl.gz", ".csv", ".csv.gz", ".tsv", ".parquet", ".xlsx"]


@pytest.mark.parametrize("form", FORMS)
def test_every_format_gives_the_same(tmp_path, form):
    corpus = read_table(write(tmp_path, form), separator=";")
    assert corpus.name == "news"
    assert corpus.ids == ("n1", "n2", "n3")
    assert corpus.texts == tuple(row["text"] for row in ROWS)
    assert corpus.label_sets == tuple(frozenset(row["labels"]) for row in ROWS)
    assert list(corpus.parts) == ["train"]
    assert re.fullmatch("[0-9a-f]{64}", corpus.provenance.checksum)


@pytest.mark.parametrize("form", FORMS)
def test_text_columns_are_joined(tmp_path, form):
    corpus = read_table(write(tmp_path, form), text=["title", "text"], separator=";")
    assert corpus.texts[0] == "Oil\nOil rose, “sharply”"
    assert corpus.texts[2] == "Zlato žlutě"


@pytest.mark.parametrize("form", [".jsonl", ".csv", ".tsv", ".parquet"])
def test_a_text_of_ten_megabytes(tmp_path, form):
    long = "word " * 2_097_152
    rows = [{"text": long, "labels": ["a"]}, {"text": "short", "labels": ["b"]}]
    corpus = read_table(write(tmp_path, form, rows))
    assert len(corpus.texts[0]) == 10 * 2**20
    assert corpus.texts[0] == long


@pytest.mark.parametrize("form", [".jsonl", ".csv", ".parquet"])
@pytest.mark.parametrize(("argument", "column"), [("text", "txt"), ("labels", "tags"), ("id", "key"), ("part", "p")])
def test_missing_columns(tmp_path, form, argument, column):
    with pytest.raises(CorpusError) as caught:
        read_table(write(tmp_path, form), **{argument: column})
    assert str(caught.value) == (
        f"The {argument!r} column of load must be one of ['id', 'title', 'text', 'labels'], the columns of "
        f"'news{form}'. Got {column!r} instead: say which one it is ({OPTIONS[argument]} on the command line)."
    )


@pytest.mark.parametrize(("name", "delimiter"), [("a.csv", ";"), ("a.csv", "\t"), ("a.tsv", ";")])
def test_columns_are_told_apart_as_spreadsheets_write_them(tmp_path, name, delimiter):
    path = tmp_path / name
    path.write_text(delimiter.join(["text", "labels"]) + f'\n"a{delimiter} b"{delimiter}x|y\nc{delimiter}x\n')
    corpus = read_table(path, separator="|")
    assert corpus.texts == (f"a{delimiter} b", "c")
    assert corpus.label_sets == (frozenset("xy"), frozenset("x"))


def test_a_separator_that_no_cell_has_is_told_of(tmp_path):
    path = tmp_path / "tickets.csv"
    path.write_text("text,labels\na,x;y\nb,y;z\nc,x\n")
    with pytest.warns(
        DataWarning, match=r"^No cell of .*'labels' of 'tickets.csv' has ',' .* 2 of 3 have ';', such as 'x;y'"
    ):
        corpus = read_table(path, separator=",")
    assert "x;y" in corpus.label_names
    read_table(path, separator=";")
    read_table(path, separator=None)
    path.write_text('text,labels\na,"x;y,z"\nb,y;z\nc,x\n')
    read_table(path, separator=",")


@pytest.mark.parametrize("mark", [",", ";", "|"])
def test_the_separator_that_most_cells_have_is_taken_and_told(tmp_path, mark, caplog):
    path = tmp_path / "tickets.tsv"
    path.write_text(f"text\tlabels\na\tx{mark}y\nb\ty {mark} z\nc\tx\n")
    with caplog.at_level("INFO", logger="surelabel"):
        assert read_table(path).label_names == ("x", "y", "z")
    told = f"labels in column 'labels' are separated by {mark!r}, in 2 of 3 cells"
    assert caplog.messages == ([] if mark == "," else [told])
    assert [event.labels for event in read_events(path)] == [{"x", "y"}, {"y", "z"}, {"x"}]


def test_two_usual_separators_are_told_of(tmp_path):
    path = tmp_path / "tickets.tsv"
    path.write_text("text\tlabels\na\tx;y, or z\nb\ty, or z;w\nc\tx;w\n")
    with pytest.warns(DataWarning, match="^3 cells of .* have ';' .* 2 of 3 have ',', such as 'x;y, or z'"):
        corpus = read_table(path)
    assert corpus.label_names == ("w", "x", "y, or z")


def test_a_seldom_mark_is_a_part_of_a_name(tmp_path):
    path = tmp_path / "tickets.tsv"
    path.write_text("text\tlabels\n" + "".join(f"text {k}\tx\n" for k in range(60)) + "b\ty|z\n")
    assert read_table(path).label_names == ("x", "y|z")


def test_indicator_columns(tmp_path):
    path = tmp_path / "i.csv"
    path.write_text("text,oil,gold\na,1,0\nb,0,1\nc,1,1\n")
    corpus = read_table(path, labels=["oil", "gold"])
    assert corpus.label_names == ("oil", "gold")
    np.testing.assert_array_equal(corpus.labels, [[1, 0], [0, 1], [1, 1]])
    path.write_text("text,oil,gold\na,1,0\nb,2,1\n")
    with pytest.raises(CorpusError, match=r"Row 2 \(line 3\) of 'i.csv' must have 0 or 1 in .* 'oil'.*Got '2'"):
        read_table(path, labels=["oil", "gold"])


@pytest.mark.parametrize("form", [".csv", ".jsonl"])
@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ("oil..tin", ("oil", "gold", "tin")),
        (["oil..gold", "t*n"], ("oil", "gold", "tin")),
        ("?[oi]*", ("oil", "gold", "tin")),
        ("*", ("oil", "gold", "tin")),
        (["gold", "oil..tin"], ("gold", "oil", "tin")),
    ],
)
def test_many_indicator_columns_are_named_by_ranges_and_patterns(tmp_path, form, labels, names):
    rows = [{"id": k, "oil": k % 2, "text": f"text {k}", "gold": int(k > 1), "tin": 1} for k in range(4)]
    path = tmp_path / f"i{form}"
    if form == ".csv":
        path.write_text("\n".join([",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]))
    else:
        path.write_text("\n".join(map(json.dumps, rows)))
    corpus = read_table(path, labels=labels)
    assert corpus.label_names == names
    assert corpus.labels[3].all()
    assert next(read_events(path, labels=labels)).labels == {"tin"} & set(names)


@pytest.mark.parametrize("labels", ["tin..oil", "oil..zinc", "z*", ["oil", "z*"]])
def test_a_range_or_pattern_without_columns_is_named(tmp_path, labels):
    path = tmp_path / "i.csv"
    path.write_text("text,oil,gold,tin\na,1,0,0\nb,0,1,1\n")
    with pytest.raises(CorpusError, match=r"must be one of .*'oil', 'gold', 'tin'"):
        read_table(path, labels=labels)


def test_a_column_whose_name_looks_like_a_pattern_is_itself(tmp_path):
    path = tmp_path / "i.csv"
    path.write_text('text,t*,tag\na,"x,y",1\nb,x,0\n')
    assert read_table(path, labels="t*").label_names == ("x", "y")


def test_indicator_columns_of_parquet(tmp_path):
    import pyarrow
    import pyarrow.parquet

    path = tmp_path / "i.parquet"
    table = {"text": ["a", "b"], "x": [True, False], "y": [0.0, 1.0], "z": [1, None]}
    pyarrow.parquet.write_table(pyarrow.table(table), path)
    corpus = read_table(path, labels=["x", "y", "z"])
    assert corpus.label_sets == (frozenset("xz"), frozenset("y"))


def test_part_column_and_files_by_part(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("text,labels,part\na,x,train\nb,y,Train\nc,y,dev\nd,x,test\n")
    corpus = read_table(path, part="part")
    assert {name: rows.tolist() for name, rows in corpus.parts.items()} == {
        "train": [0, 1],
        "validation": [2],
        "test": [3],
    }
    for name, line in (("train", "a,x\nb,y"), ("test", "c,x")):
        (tmp_path / f"{name}.csv").write_text(f"text,labels\n{line}\n")
    files = {name: tmp_path / f"{name}.csv" for name in ("train", "test")}
    corpus = load(files, validation=0, calibration=0, name="both")
    assert repr(corpus) == "Corpus 'both': 3 texts, 2 labels (train 2, test 1)"
    assert corpus.ids == ("train-1", "train-2", "test-1")
    path.write_text("text,labels,part\na,x,tain\nb,y,test\n")
    with pytest.raises(CorpusError, match=r"Row 1 \(line 2\) of 'p.csv' must have a part of .* Got 'tain'"):
        read_table(path, part="part")
    with pytest.raises(InvalidInputError, match="must be named by part"):
        load({"learn": path})


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("n.csv", "text,labels\na,3\nb,4.5\n"),
        ("n.jsonl", '{"text": "a", "labels": 3}\n{"text": "b", "labels": "x"}\n'),
    ],
)
def test_numeric_label_columns(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(CorpusError, match=f"'labels' of '{name}' must hold label names.*numeric_labels=True"):
        read_table(path)
    assert "3" in read_table(path, numeric_labels=True).label_names


def test_separated_label_numbers_are_names(tmp_path):
    path = tmp_path / "n.csv"
    path.write_text('text,labels\na,"1,2"\nb,2\n')
    assert read_table(path).label_names == ("1", "2")


def test_labels_that_look_missing_are_labels(tmp_path):
    path = tmp_path / "n.csv"
    path.write_text("id,text,labels\n007,nan,NA|None\n008,b, x |\n")
    corpus = read_table(path, separator="|")
    assert corpus.label_names == ("NA", "None", "x")
    assert corpus.ids == ("007", "008")
    assert corpus.texts[0] == "nan"


def test_no_separator(tmp_path):
    path = tmp_path / "n.csv"
    path.write_text('text,labels\na,"x, y"\nb,z\n')
    assert read_table(path, separator=None).label_names == ("x, y", "z")


@pytest.mark.parametrize("form", [".csv", ".tsv", ".jsonl"])
def test_encodings(tmp_path, form):
    path = tmp_path / f"e{form}"
    text = path.with_suffix(form)
    content = '{"text": "žluť", "labels": ["a"]}\n{"text": "b", "labels": ["c"]}\n'
    if form != ".jsonl":
        delimiter = "," if form == ".csv" else "\t"
        content = f"text{delimiter}labels\nžluť{delimiter}a\nb{delimiter}c\n"
    text.write_bytes(content.encode("cp1250"))
    with pytest.raises(CorpusError, match=r"Row 1.* must be text in utf-8. Got byte 0x9e.*encoding='latin-1'"):
        read_table(path)
    assert read_table(path, encoding="cp1250").texts[0] == "žluť"
    with pytest.raises(InvalidInputError, match=r"'encoding' must name .* Got 'klingon'"):
        read_table(path, encoding="klingon")
    text.write_bytes(b"\xef\xbb\xbf" + content.encode())
    assert read_table(path).texts[0] == "žluť"


@pytest.mark.parametrize("name", ["e.csv", "e.jsonl", "e.tsv"])
def test_empty_files(tmp_path, name):
    (tmp_path / name).write_text("")
    with pytest.raises(CorpusError, match=r"must have at least one text. Got an empty file"):
        read_table(tmp_path / name)


def test_a_header_alone(tmp_path):
    (tmp_path / "h.csv").write_text("text,labels\n")
    with pytest.raises(CorpusError, match="must have at least one text"):
        read_table(tmp_path / "h.csv")


def test_empty_texts_are_said(tmp_path):
    path = tmp_path / "e.jsonl"
    path.write_text('{"text": null, "labels": ["a"]}\n\n{"labels": ["b"]}\n{"text": "c", "labels": ["a"]}\n')
    with pytest.warns(DataWarning, match="2 of the 3 texts"):
        assert read_table(path).texts == ("", "", "c")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("b.jsonl", b'{"text": "a"', "Row 1 of 'b.jsonl' must be JSON"),
        ("b.jsonl", b"[1]\n", "Row 1 of 'b.jsonl' must be a JSON object. Got list"),
        (
            "b.jsonl",
            b'{"text": 3, "labels": ["a"]}',
            "Row 1 of 'b.jsonl' must hold text. Got int 3",
        ),
        (
            "b.jsonl",
            b'{"text": "a", "labels": {"a": 1}}',
            "Row 1 of 'b.jsonl' must have a list or separated names",
        ),
        ("b.jsonl", b'{"text": "a", "labels": [["a"]]}', "Row 1 of 'b.jsonl' must have names as labels"),
        ("b.csv", b'text,labels\n"a,b\n', "Row 1 (line 2) of 'b.csv' must be a row of a table"),
        ("b.csv", b"text,labels\na,b\nc,d,e,f\n", "Row 2 (line 3) of 'b.csv' must have 2 cells. Got 4"),
        ("b.parquet", b"PAR1 no", "'b.parquet' must be a Parquet file"),
        ("b.csv.gz", gzip.compress(b"text,labels\n" * 100, mtime=0)[:-20], "'b.csv.gz' must be a whole gzip file"),
        ("b.jsonl.gz", b"text", "'b.jsonl.gz' must be a whole gzip file"),
        ("b.xlsx", b"", "'b.xlsx' must be an Excel workbook"),
        ("b.docx", b"", "must end in one of"),
        ("b.csv", b"PK\x03\x04 xl/workbook.xml", "It is an Excel workbook (.xlsx)"),
        ("b.csv", b"\xff\xfet\x00", "It is text in UTF-16; say --encoding utf-16"),
        ("b.csv", b"Oil rose again on the news of today,oil\n", "looks like data: has the file no headings?"),
    ],
)
def test_damaged_files(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CorpusError, match=re.escape(message)):
        load(tmp_path / name)


def test_line_separators_inside_json_strings(tmp_path):
    path = tmp_path / "u.jsonl"
    rows = [{"text": "a\u2028b\x85c", "labels": ["x"]}, {"text": "d", "labels": ["y"]}]
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    assert read_table(path).texts[0] == "a\u2028b\x85c"


def test_a_missing_dependency_names_the_extra(tmp_path, monkeypatch):
    import sys

    path = write(tmp_path, ".xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(MissingDependencyError, match=r"needs openpyxl.*surelabel\[corpora\]"):
        read_table(path)


def test_bad_rows_are_left_out_and_named(tmp_path):
    path = tmp_path / "news.jsonl"
    rows = ['{"text": "a", "labels": ["x"]}', "{", '{"text": 3, "labels": []}', '{"text": "b", "labels": [["y"]]}']
    path.write_text("\n".join([*rows, "", '{"text": "c", "labels": ["y"]}']) + "\n")
    with pytest.raises(CorpusError, match=r"Row 2 of 'news.jsonl' must be JSON"):
        read_table(path)
    with pytest.warns(DataWarning, match=r"3 rows of 'news.jsonl' are left out. Row 2 .*JSON.* Row 4 .* names"):
        corpus = read_table(path, on_error="skip")
    assert (corpus.texts, corpus.ids) == (("a", "c"), ("1", "5"))
    with pytest.raises(InvalidInputError, match="'on_error' of load"):
        read_table(path, on_error="mark")


def test_ids_that_occur_twice_are_named_with_their_rows(tmp_path):
    path = tmp_path / "news.csv"
    path.write_text("id,text,labels\n7,a,x\n8,b,y\n7,c,x\n")
    message = r"Got '7' twice: Row 1 \(line 2\) of 'news.csv' and Row 3 \(line 4\)"
    with pytest.raises(CorpusError, match=message):
        read_table(path)


def test_cells_of_a_workbook_are_strings(tmp_path):
    import datetime

    import openpyxl

    book = openpyxl.Workbook()
    book.active.append(["id", "text", "oil", "gold", "when"])
    book.active.append([7, "Oil rose", True, 0, datetime.date(2026, 1, 2)])
    book.active.append([])
    book.active.append([8.0, 2024, False, 1, None])
    book.create_sheet("notes").append(["more"])
    book.save(tmp_path / "t.xlsx")
    with pytest.warns(DataWarning, match="'t.xlsx' has 2 sheets; only the first, 'Sheet', is read"):
        corpus = read_table(tmp_path / "t.xlsx", labels=["oil", "gold"])
    assert (corpus.ids, corpus.texts) == (("7", "8"), ("Oil rose", "2024"))
    assert corpus.label_sets == (frozenset({"oil"}), frozenset({"gold"}))


def test_a_stream_of_texts_and_labels(tmp_path):
    path = tmp_path / "stream.csv"
    path.write_text("id,text,labels\na,Oil rose,oil\nb,Gold fell,\nb,,gold\n", encoding="utf-8")
    assert [(event.id, event.text, event.labels) for event in read_events(path)] == [
        ("a", "Oil rose", {"oil"}),
        ("b", "Gold fell", None),
        ("b", None, {"gold"}),
    ]
