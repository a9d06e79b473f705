"""Partitions: every row in exactly one, whatever the size; bad rows passed over one by one."""

import gzip
import json

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from surelabel.exceptions import CorpusError, InvalidInputError
from surelabel.predicting import InputColumns, TextSource, plan_partitions
from surelabel.predicting.partitions import PartitionSource

COLUMNS = InputColumns()


def _rows(partitions, batch_size=3, skipped=None):
    found = []
    for partition in partitions:
        for batch in PartitionSource(partition, COLUMNS).batches(batch_size, skipped):
            ids = batch.ids or [None] * len(batch)
            found += [(batch.first_row + k, text, ids[k]) for k, text in enumerate(batch.texts)]
    return found


def _plain_rows(path):
    found = []
    for batch in TextSource(path).batches(1000):
        ids = batch.ids or [None] * len(batch)
        found += [(batch.first_row + k, text, ids[k]) for k, text in enumerate(batch.texts)]
    return found


_LINES = st.lists(
    st.one_of(
        st.sampled_from(["", "  ", "\u00a0", "\r"]),
        st.text(max_size=8).map(lambda text: json.dumps({"text": text}, ensure_ascii=False)),
        st.tuples(st.text(max_size=5), st.integers(0, 9)).map(
            lambda pair: json.dumps({"text": pair[0], "id": pair[1]})
        ),
    ),
    max_size=12,
)


@given(lines=_LINES, size=st.integers(1, 60), ends=st.booleans(), bom=st.booleans())
@settings(max_examples=60)
def test_ranges_of_bytes_hold_each_line_once(tmp_path_factory, lines, size, ends, bom):
    path = tmp_path_factory.getbasetemp() / "ranges.jsonl"
    content = "\n".join(line.encode("utf-8", "replace").decode() for line in lines) + ("\n" if ends else "")
    path.write_bytes((b"\xef\xbb\xbf" if bom else b"") + content.encode())
    partitions = plan_partitions(path, partition_bytes=size)
    assert _rows(partitions) == _plain_rows(path)
    assert sum(partition.n_rows for partition in partitions) == len(_plain_rows(path))


@given(n_rows=st.integers(1, 30), group=st.integers(1, 9), size=st.integers(1, 400))
@settings(max_examples=20)
def test_row_groups_hold_each_row_once(tmp_path_factory, n_rows, group, size):
    path = tmp_path_factory.getbasetemp() / "groups.parquet"
    texts = [f"text {k}" for k in range(n_rows)]
    parquet.write_table(pyarrow.table({"text": texts, "id": list(range(n_rows))}), path, row_group_size=group)
    partitions = plan_partitions(path, partition_bytes=size)
    assert _rows(partitions) == _plain_rows(path)
    if size == 1:
        assert len(partitions) == -(-n_rows // group)


def _write_folder(folder):
    (folder / "deep").mkdir(parents=True)
    (folder / "b.jsonl").write_text('{"text": "b1"}\n{"text": "b2"}\n')
    (folder / "a.jsonl.gz").write_bytes(gzip.compress(b'{"text": "a1"}\n\n{"text": "a2"}\n'))
    parquet.write_table(pyarrow.table({"text": ["c1"]}), folder / "deep" / "c.parquet")
    (folder / "_hidden.jsonl").write_text("{")
    (folder / ".hidden.jsonl").write_text("{")
    return folder


def test_files_of_a_folder_in_the_order_of_their_names(tmp_path):
    folder = _write_folder(tmp_path / "data")
    rows = _rows(plan_partitions(folder))
    assert [(number, text) for number, text, _ in rows] == list(enumerate(["a1", "a2", "b1", "b2", "c1"]))
    assert [text for _, text, _ in _rows(plan_partitions(f"{folder}/*.jsonl"))] == ["b1", "b2"]


def test_remote_stores(tmp_path):
    import fsspec

    store = fsspec.filesystem("memory")
    store.pipe("/texts/a.jsonl", b'{"text": "x"}\n{"text": "y"}\n')
    partitions = plan_partitions("memory://texts", partition_bytes=14)
    assert [text for _, text, _ in _rows(partitions)] == ["x", "y"]
    assert partitions[0].url == "memory:///texts/a.jsonl"


def test_bad_rows_are_passed_over_and_keep_their_numbers(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"text": "a"}\n{\n{"text": "b"}\n{"text": "\xff"}\n{"no": 1}\n{"text": 3}\n{"text": "c"}\n[]\n')
    partitions = plan_partitions(path, partition_bytes=20)
    assert len(partitions) > 2
    skipped = []
    assert [(row, text) for row, text, _ in _rows(partitions, 2, skipped)] == [(0, "a"), (2, "b"), (6, "c")]
    assert [each.first_row for each in skipped] == [each.last_row for each in skipped] == [2, 4, 5, 6, 8]
    reasons = ["must be JSON", "Got byte 0xff", "column 'text'", "Got int 3", "a JSON object"]
    for each, reason in zip(skipped, reasons, strict=True):
        assert each.reason.startswith(f"Row {each.first_row} of 't.jsonl'")
        assert reason in each.reason
    with pytest.raises(CorpusError, match=r"Row 2 of 't.jsonl' must be JSON"):
        _rows(partitions)


def test_files_that_cannot_be_read_at_all(tmp_path):
    parquet.write_table(pyarrow.table({"body": ["x", "y"]}), tmp_path / "a.parquet")
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(b'{"text": "x"}\n' * 999)[:40])
    (tmp_path / "c.parquet").write_bytes(b"PAR1")
    (tmp_path / "d.jsonl").write_text('{"text": "last"}\n')
    with pytest.raises(CorpusError, match=r"'c.parquet' must be a Parquet file"):
        plan_partitions(tmp_path)
    partitions = plan_partitions(tmp_path, on_error="skip")
    skipped = []
    assert [(row, text) for row, text, _ in _rows(partitions, 2, skipped)] == [(2, "last")]
    assert [(each.first_row, each.last_row) for each in skipped] == [(1, 2), (3, 2), (3, 2)]
    for each, reason in zip(skipped, ["a column 'text'", "whole gzip file", "a Parquet file"], strict=True):
        assert reason in each.reason


def test_a_changed_file_has_another_fingerprint(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"text": "a"}\n')
    before = plan_partitions(path)
    assert plan_partitions(path) == before
    path.write_text('{"text": "b"}\n')
    assert plan_partitions(path)[0].fingerprint != before[0].fingerprint


def test_bad_arguments(tmp_path):
    (tmp_path / "t.csv").write_text("text\nx\n")
    for source, message in (
        (tmp_path / "no", "no such place"),
        (tmp_path, "nothing of the kind"),
        (tmp_path / "t.csv", "another format"),
        (f"{tmp_path}/*.jsonl", "no such place"),
    ):
        with pytest.raises(CorpusError, match=message):
            plan_partitions(source)
    with pytest.raises(InvalidInputError, match="line feed is one byte"):
        plan_partitions(tmp_path, InputColumns(encoding="utf-16"))
    with pytest.raises(InvalidInputError, match="partition_bytes"):
        plan_partitions(tmp_path, partition_bytes=0)
