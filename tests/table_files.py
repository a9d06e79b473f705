"""Files of every format with the same rows."""

import csv
import gzip
import io
import json
import lzma

import pytest

ROWS = [
    {"id": "n1", "title": "Oil", "text": "Oil rose, “sharply”", "labels": ["oil"]},
    {"id": "n2", "title": "Metals", "text": 'Gold "fell"\nand oil', "labels": ["gold", "oil"]},
    {"id": "n3", "title": "", "text": "Zlato žlutě", "labels": ["gold"]},
]
FORMS = [".jsonl", ".ndjson", ".jsonl.gz", ".csv", ".csv.gz", ".csv.xz", ".tsv", ".parquet", ".xlsx"]


def write_table(path, rows):
    """Write rows in the format of a path's suffix; lists become cells with semicolons where cells are strings."""
    name = path.name
    if name.endswith(".parquet"):
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
        return path
    joined = [{key: ";".join(cell) if isinstance(cell, list) else cell for key, cell in row.items()} for row in rows]
    if name.endswith(".xlsx"):
        import openpyxl

        book = openpyxl.Workbook()
        for cells in [list(joined[0]), *(list(row.values()) for row in joined)]:
            book.active.append(cells)
        book.save(path)
        return path
    if "json" in name:
        data = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    else:
        stream = io.StringIO()
        writer = csv.DictWriter(stream, list(joined[0]), delimiter="\t" if ".tsv" in name else ",", lineterminator="\n")
        writer.writeheader()
        writer.writerows(joined)
        data = stream.getvalue()
    pack = gzip.compress if name.endswith(".gz") else lzma.compress if name.endswith(".xz") else bytes
    path.write_bytes(pack(data.encode()))
    return path


@pytest.fixture(params=FORMS)
def any_form(request, tmp_path):
    return write_table(tmp_path / f"news{request.param}", ROWS)


@pytest.fixture(name="rows")
def the_rows():
    return ROWS


@pytest.fixture(name="write_table")
def the_writer():
    return write_table
