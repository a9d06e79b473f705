"""Tables over HTTP: sent as a file, returned as `surelabel predict` writes it."""

import csv
import io
import json
import tempfile
from pathlib import Path

import openpyxl
import pyarrow.parquet
import pytest

from service.conftest import asking, refused
from service.fakes import FakeBundle
from surelabel.service import create_app

pytestmark = pytest.mark.anyio
HEADERS = {"Content-Type": "application/octet-stream"}
TABLE = b"id,body\n7,corn and wheat\n8,maybe oil\n=9,<b>bold</b>\n"


async def answered(client, content=TABLE, status=200, **query):
    query = {"name": "tickets.csv", "text": "body", **query}
    response = await client.post("/v1/table", params=query, content=content, headers=HEADERS)
    assert response.status_code == status, response.text
    return response


async def test_a_table_comes_back_with_answers(client):
    response = await answered(client)
    rows = list(csv.DictReader(io.StringIO(response.text)))
    assert [row["decision"] for row in rows] == ["file", "choose", "file"]
    assert [row["labels"] for row in rows] == ["corn,wheat", "oil", "<b>bold</b>"]
    assert [row["id"] for row in rows] == ["7", "8", "'=9"]  # no cell begins a formula
    assert response.headers["surelabel-texts"] == "3"


async def test_the_kinds_of_files_hold_the_same(client):
    lines = (await answered(client, format="jsonl", significance="0.1")).text.splitlines()
    expected = [json.loads(line)["labels"] for line in lines]
    parquet = (await answered(client, format="parquet", significance="0.1")).content
    assert pyarrow.parquet.read_table(io.BytesIO(parquet))["labels"].to_pylist() == expected
    book = (await answered(client, format="xlsx", significance="0.1")).content
    headings, *rows = openpyxl.load_workbook(io.BytesIO(book)).active.iter_rows(values_only=True)
    assert [row[headings.index("labels")] for row in rows] == [",".join(labels) for labels in expected]


async def test_a_long_table_takes_turns_with_other_requests():
    bundle = FakeBundle()
    async with asking(create_app(bundle)) as client:
        response = await answered(client, ("body\n" + "corn\n" * 300).encode())
    assert response.text.count("\n") == 301
    assert max(bundle.batches) == 32


async def test_a_table_needs_its_columns(client):
    for content, query, word in (
        (TABLE, {"text": "subject"}, "subject"),
        (TABLE, {"by": "channel"}, "channel"),
        (b"", {}, "empty"),
        (b"body\n", {}, "no texts"),
        (b"body\n\xff\xfe\n", {}, "Row 1"),
        (TABLE, {"name": "tickets.exe"}, "tickets.exe"),
        (b"no workbook", {"name": "a.xlsx"}, "a.xlsx"),
    ):
        response = await answered(client, content, 422, **query)
        assert word in refused(response, 422)


async def test_parameters_are_checked(client):
    refused(await answered(client, status=422, format="pdf"), 422, "format")
    refused(await answered(client, status=422, significance="2"), 422, "significance")
    refused(await answered(client, status=422, level="0.5"), 422, "level")


async def test_groups_come_from_a_column_or_are_the_same_for_all():
    async with asking(create_app(FakeBundle(groups=("chat", "mail")))) as client:
        content = b"body,from\ncorn,mail\noil,chat\n"
        assert (await answered(client, content, by="from")).text.count(",file,") == 2
        assert (await answered(client, content, group="mail")).text.count(",file,") == 2
        refused(await answered(client, content, 409), 409, "groups")
        refused(await answered(client, content, 404, group="fax"), 404, "groups[0]")
        refused(await answered(client, content.replace(b"chat", b"fax"), 404, by="from"), 404, "groups[0]")


async def test_nothing_stays_behind_and_no_name_leads_outside(client, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    await answered(client, name="../../outside.csv")
    await answered(client, status=422, text="subject")
    assert list(tmp_path.iterdir()) == []
    assert not Path(tmp_path, "..", "..", "outside.csv").resolve().exists()
