"""Tables out: what a cell may hold, and what a format cannot."""

import io
import json

import openpyxl
import pytest

from surelabel.exceptions import DataWarning, InvalidInputError
from surelabel.tables import writing
from surelabel.tables.reading import Partition, TableReader
from surelabel.tables.writing import open_writer, output_format, to_json


def test_json_holds_no_control_characters_and_reads_back():
    record = {"id": "a\x9b31m\x7f\u2028é\x1b"}
    line = to_json(record)
    assert line == r'{"id":"a\u009b31m\u007f\u2028é\u001b"}'
    assert json.loads(line) == record


def test_a_sheet_cuts_long_cells_and_keeps_large_numbers(tmp_path):
    path = tmp_path / "a.xlsx"
    with path.open("wb") as stream:
        writer = open_writer(stream, "xlsx", headings=("text", "size"))
        with pytest.warns(DataWarning, match="longer ones are cut"):
            writer.write([{"text": "x" * 40_000, "size": 2**60}, {"text": "a\x00b", "size": 3}])
        writer.close()
    _, first, second = openpyxl.load_workbook(path).active.values
    assert (len(first[0]), first[1]) == (32_767, str(2**60))
    assert second == ("a\N{REPLACEMENT CHARACTER}b", 3)


def test_a_sheet_has_a_last_row(monkeypatch):
    monkeypatch.setattr(writing, "_MOST_SHEET_ROWS", 2)
    writer = open_writer(io.BytesIO(), "xlsx", headings=("a",))
    writer.write([{"a": 1}])
    with pytest.raises(InvalidInputError, match=r"at most 2 rows.* write \.csv"):
        writer.write([{"a": 2}])
    writer.close()


@pytest.mark.parametrize("kind", ["csv", "jsonl", "xlsx", "parquet"])
def test_what_is_written_is_read(tmp_path, kind):
    path = tmp_path / f"a.{kind}"
    records = [{"id": "1", "text": 'a "b",\nc'}, {"id": "2", "text": "žluť"}]
    mode = {"mode": "w", "encoding": "utf-8", "newline": ""} if kind in {"csv", "jsonl"} else {"mode": "wb"}
    with path.open(**mode) as stream:
        writer = open_writer(stream, kind, headings=("id", "text"), schema={"id": str, "text": str})
        writer.write(records)
        writer.close()
    assert [row.cells for row in TableReader(Partition(str(path), kind)).rows()] == records


def test_formats():
    assert output_format("a.NDJSON") == "jsonl"
    assert output_format("answers", strict=False) is None
    with pytest.raises(InvalidInputError, match=r"must end in one of \.jsonl"):
        output_format("a.doc")
    with pytest.raises(InvalidInputError, match="must be one of jsonl, csv, parquet, xlsx"):
        open_writer(io.StringIO(), "xml")
