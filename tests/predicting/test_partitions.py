"""Partitions: every row in exactly one, whatever the size; bad rows passed over one by one."""

import gzip
import json

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from surelabel.exceptions import CorpusError, InvalidInputError
from surelabel.predicting import AnswerSettings, InputColumns, TextSource, plan_partitions


def _rows(sources, batch_size=3, problems=None):
    rows = []
    for source in sources:
        for batch in TextSource(source).batches(batch_size, on_error="stop" if problems is None else "skip"):
            rows += zip(batch.rows, batch.texts, batch.ids or [None] * len(batch), strict=True)
            if problems is not None:
                problems += batch.problems
    return rows


def _of_size(size):
    return AnswerSettings(partition_bytes=size)


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
    partitions = plan_partitions(path, _of_size(size))
    assert _rows(partitions) == _rows([path])
    assert sum(partition.n_rows for partition in partitions) == len(_rows([path]))


@given(n_rows=st.integers(1, 30), group=st.integers(1, 9), size=st.integers(1, 400))
@settings(max_examples=20)
def test_row_groups_hold_each_row_once(tmp_path_factory, n_rows, group, size):
    path = tmp_path_factory.getbasetemp() / "groups.parquet"
    texts = [f"text {k}" for k in range(n_rows)]
    parquet.write_table(pyarrow.table({"text": texts, "id": list(range(n_rows))}), path, row_group_size=group)
    partitions = plan_partitions(path, _of_size(size))
    assert _rows(partitions) == _rows([path])
    if size == 1:
        assert len(partitions) == -(-n_rows // group)


def _write_folder(folder):
    (folder / "deep").mkdir(parents=True)
    (folder / "b.jsonl").write_text('{"text": "b1"}\n{"text": "b2"}\n')
    (folder / "a.jsonl.gz").write_bytes(gzip.compress(b'{"text": "a1"}\n\n{"text": "a2"}\n'))
    parquet.write_table(pyarrow.table({"text": ["c1"]}), folder / "deep" / "c.parquet")
    (folder / "deep" / "d.csv").write_text("text\nd1\n")
    (folder / "photo.jpg").write_text("no table")
    (folder / "_hidden.jsonl").write_text("{")
    (folder / ".hidden.jsonl").write_text("{")
    return folder


def test_files_of_a_folder_in_the_order_of_their_names(tmp_path):
    folder = _write_folder(tmp_path / "data")
    rows = _rows(plan_partitions(folder))
    assert [(row, text) for row, text, _ in rows] == [(1, "a1"), (2, "a2"), (1, "b1"), (2, "b2"), (1, "c1"), (1, "d1")]
    assert [text for _, text, _ in _rows(plan_partitions(f"{folder}/*.jsonl"))] == ["b1", "b2"]


def test_remote_stores(tmp_path):
    import fsspec

    store = fsspec.filesystem("memory")
    store.pipe("/texts/a.jsonl", b'{"text": "x"}\n{"text": "y"}\n')
    partitions = plan_partitions("memory://texts", _of_size(14))
    assert [text for _, text, _ in _rows(partitions)] == ["x", "y"]
    assert partitions[0].url == "memory:///texts/a.jsonl"


def test_bad_rows_are_passed_over_and_keep_their_numbers(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_bytes(b'{"text": "a"}\n{\n{"text": "b"}\n{"text": "\xff"}\n{"no": 1}\n{"text": 3}\n{"text": "c"}\n[]\n')
    partitions = plan_partitions(path, _of_size(20))
    assert len(partitions) > 2
    problems = []
    assert [(row, text) for row, text, _ in _rows(partitions, 2, problems)] == [(1, "a"), (3, "b"), (7, "c")]
    assert [row for row, _ in problems] == [2, 4, 5, 6, 8]
    reasons = ["must be JSON", "Got byte 0xff", "column 'text'", "Got int 3", "a JSON object"]
    for (row, problem), reason in zip(problems, reasons, strict=True):
        assert problem.startswith(f"Row {row} of 't.jsonl'")
        assert reason in problem
    with pytest.raises(CorpusError, match=r"Row 2 of 't.jsonl' must be JSON"):
        _rows(partitions)


def test_files_that_cannot_be_read_at_all(tmp_path):
    parquet.write_table(pyarrow.table({"body": ["x", "y"]}), tmp_path / "a.parquet")
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(b'{"text": "x"}\n' * 999)[:40])
    (tmp_path / "c.parquet").write_bytes(b"PAR1")
    (tmp_path / "d.jsonl").write_text('{"text": "last"}\n')
    with pytest.raises(CorpusError, match=r"'c.parquet' must be a Parquet file"):
        plan_partitions(tmp_path)
    partitions = plan_partitions(tmp_path, AnswerSettings(on_error="skip"))
    problems = []
    assert _rows(partitions, 2, problems)[-1] == (1, "last", None)
    for (_, problem), reason in zip(problems, ["a column 'text'", "whole gzip file", "a Parquet file"], strict=True):
        assert reason in problem


def test_any_changed_byte_of_a_file_shows(tmp_path):
    path = tmp_path / "t.jsonl"
    lines = [json.dumps({"text": f"text {k} " + "x" * 200}) for k in range(2000)]
    path.write_text("\n".join(lines))
    before = plan_partitions(path, _of_size(100_000))
    assert plan_partitions(path, _of_size(100_000)) == before
    assert len(before) == 5
    path.write_text("\n".join([*lines[:1000], lines[1000].replace("x", "y", 1), *lines[1001:]]))
    after = plan_partitions(path, _of_size(100_000))
    assert [one.digest == other.digest for one, other in zip(before, after, strict=True)] == [1, 1, 0, 1, 1]


def test_a_format_that_the_names_do_not_say(tmp_path):
    (tmp_path / "a.dat").write_text("text\nx\n")
    assert _rows(plan_partitions(tmp_path, AnswerSettings(input_format="csv"))) == [(1, "x", None)]


def test_bad_arguments(tmp_path):
    (tmp_path / "t.doc").write_text("text\nx\n")
    for source, message in (
        (tmp_path / "no", "does not exist"),
        (tmp_path, "no file of these formats"),
        (tmp_path / "t.doc", "no file of these formats"),
        (f"{tmp_path}/*.jsonl", "does not exist"),
    ):
        with pytest.raises(CorpusError, match=message):
            plan_partitions(source)
    with pytest.raises(InvalidInputError, match="partition_bytes"):
        plan_partitions(tmp_path, _of_size(0))


def test_encodings_whose_lines_cannot_be_told_apart_are_not_divided(tmp_path):
    (tmp_path / "t.txt").write_bytes("a\nb\n".encode("utf-16"))
    settings = AnswerSettings(columns=InputColumns(encoding="utf-16"), partition_bytes=2)
    (partition,) = plan_partitions(tmp_path, settings)
    assert (partition.n_rows, partition.is_whole) == (2, True)
