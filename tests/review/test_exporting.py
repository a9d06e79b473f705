"""Exports: the columns of the file, with what was decided."""

import csv
import io
import json

import openpyxl
import pytest

from surelabel.exceptions import InvalidInputError
from surelabel.review import NewText, Offer, ReviewStore, export
from surelabel.review.exporting import exported_bytes

OFFER = Offer("choose", "", ("oil",))


@pytest.fixture
def store(tmp_path):
    with ReviewStore(tmp_path / "reviews.sqlite") as store:
        columns = [{"id": str(n), "title": f"=t{n}", "body": f"b{n}", "queue": "mine"} for n in range(1, 5)]
        verdicts = ("choose", "choose", "file", "read")
        offers = [Offer(verdict, "", ("oil",)) for verdict in verdicts]
        store.add(
            NewText(row["id"], row["body"], offer, "m", columns=row) for row, offer in zip(columns, offers, strict=True)
        )
        first, second = store.lease("ann", "choose")
        store.decide("1", first.number, "ann", "accept")
        store.decide("2", second.number, "ann", "edit", ["oil", "gas"])
        yield store


EXPECTED = [
    ["id", "title", "body", "queue_before", "final_labels", "decided_by", "queue", "changed"],
    ["1", "'=t1", "b1", "mine", "oil", "ann", "choose", "false"],
    ["2", "'=t2", "b2", "mine", "gas;oil", "ann", "choose", "true"],
    ["3", "'=t3", "b3", "mine", "oil", "model", "filed", "false"],
    ["4", "'=t4", "b4", "mine", "", "", "read", ""],
]


def test_csv(store, tmp_path):
    assert export(store, tmp_path / "out.csv", separator=";") == 4
    written = (tmp_path / "out.csv").read_text(encoding="utf-8")
    assert list(csv.reader(io.StringIO(written))) == EXPECTED
    assert exported_bytes(store, "csv", separator=";").decode() == written


def test_jsonl_keeps_lists_and_nothing(store, tmp_path):
    export(store, tmp_path / "out.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert rows[1]["final_labels"] == ["gas", "oil"]
    assert rows[1]["changed"] is True
    assert rows[3]["final_labels"] is None
    assert rows[0]["title"] == "=t1"


def test_xlsx(store, tmp_path):
    export(store, tmp_path / "out.xlsx", separator=";")
    sheet = openpyxl.load_workbook(tmp_path / "out.xlsx").worksheets[0]
    rows = [["" if cell is None else cell for cell in row] for row in sheet.values]
    assert rows == [[cell.removeprefix("'") for cell in row] for row in EXPECTED]


def test_what_cannot_be_written(store, tmp_path):
    with pytest.raises(InvalidInputError, match=r"must end in \.csv, \.jsonl or \.xlsx"):
        export(store, tmp_path / "out.parquet")
    with pytest.raises(InvalidInputError, match="has the separator 'i' in it"):
        export(store, tmp_path / "out.csv", separator="i")
    assert not (tmp_path / "out.csv").exists()
