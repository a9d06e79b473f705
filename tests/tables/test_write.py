import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surelabel.exceptions import DataWarning, InvalidInputError
from surelabel.tables.read import read_rows
from surelabel.tables.write import OUTPUT_FORMATS, neutral, open_writer, to_json

SCHEMA = {"id": str, "n": int, "share": float, "is_new": bool}
RECORDS = [{"id": "a", "n": 1, "share": 0.5, "is_new": True}, {"id": "žluť", "n": 2}]


@pytest.mark.parametrize("kind", OUTPUT_FORMATS)
def test_what_is_written_is_read(tmp_path, kind):
    path = tmp_path / f"a.{kind}"
    with path.open("wb") as stream:
        writer = open_writer(stream, kind, SCHEMA)
        writer.write(RECORDS[:1])
        writer.write(iter(RECORDS[1:]))
        writer.close()
        assert not stream.closed
    rows = [row.cells for row in read_rows(path)]
    assert [row["id"] for row in rows] == ["a", "žluť"]
    assert [int(row["n"]) for row in rows] == [1, 2]
    assert rows[1].get("share") in {None, ""}


def test_nested_types_of_parquet(tmp_path):
    schema = {"tags": [str], "top": [{"labels": [str], "p": float}]}
    record = {"tags": ["a", "\ud800"], "top": [{"labels": ["x"], "p": 0.5}]}
    with (tmp_path / "a.parquet").open("wb") as stream:
        writer = open_writer(stream, "parquet", schema)
        writer.write([record])
        writer.close()
    cells = next(read_rows(tmp_path / "a.parquet")).cells
    assert cells == {"tags": ["a", "?"], "top": [{"labels": ["x"], "p": 0.5}]}
    with pytest.raises(InvalidInputError, match="types"):
        open_writer(io.BytesIO(), "parquet", ["id"])


def test_an_unknown_format():
    with pytest.raises(InvalidInputError, match="format"):
        open_writer(io.BytesIO(), "xls")


FORMULAS = ["=1+1", "+1", "-1", "@SUM", "\t=1", "\r=1", "\n=1", " =1", "\r\n@x", "\uff1d1", "\u200b=1", "a\r=1"[1:]]


@pytest.mark.parametrize("cell", FORMULAS)
@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_no_cell_begins_a_formula(cell, kind):
    stream = io.BytesIO()
    writer = open_writer(stream, kind, [cell])
    writer.write([{cell: cell}])
    writer.close()
    if kind == "csv":
        rows = list(csv.reader(io.StringIO(stream.getvalue().decode(), newline="")))
    else:
        import openpyxl

        sheet = openpyxl.load_workbook(stream).active
        assert {row[0].data_type for row in sheet.rows} == {"s"}
        rows = [[row[0].value] for row in sheet.rows]
    assert [row[0][0] for row in rows] == ["'", "'"]


def test_a_carriage_return_within_a_cell_begins_no_row():
    stream = io.BytesIO()
    open_writer(stream, "csv", ["a"]).write([{"a": "x\r=1+1"}])  # which leaves the stream open
    assert b"\r" not in stream.getvalue()


@given(st.text())
def test_neutral_cells_are_harmless(cell):
    shown = neutral(cell)
    assert not shown.startswith(("=", "+", "-", "@", "\t", "\r"))
    shown.encode()
    assert not set(shown) & set("\0\x1b\x9b\u202e\u2066")


def test_numbers_stay_numbers_unless_a_spreadsheet_would_round_them():
    assert [neutral(cell) for cell in (-1, -0.5, None, True, 2**60)] == [-1, -0.5, None, True, str(2**60)]


def test_json_lines_cannot_control_a_terminal():
    line = to_json({"a": "x\x1b\x9b\u202e\u2028\ud800y", "b": "žluť"})
    assert not set(line) & set("\x1b\x9b\u202e\u2028\ud800")
    assert json.loads(line) == {"a": "x\x1b\x9b\u202e\u2028?y", "b": "žluť"}
    with pytest.raises(ValueError, match="JSON"):
        to_json({"p": float("nan")})


def test_streams_of_text_stay_open():
    stream = io.StringIO()
    for kind in ("jsonl", "csv"):
        writer = open_writer(stream, kind, ["a"])
        writer.write([{"a": 1}])
        writer.close()
    assert stream.getvalue() == '{"a":1}\na\n1\n'


def test_a_long_cell_of_a_workbook_is_cut_with_a_warning():
    import openpyxl

    stream = io.BytesIO()
    writer = open_writer(stream, "xlsx", ["a"])
    with pytest.warns(DataWarning, match="cut"):
        writer.write([{"a": "x" * 40_000}])
    writer.close()
    assert len(openpyxl.load_workbook(stream).active["A2"].value) == 32_767
