import json
import math

import pytest

from surelabel.exceptions import CorpusError, InvalidInputError
from surelabel.tables.columns import Columns, text_rows
from surelabel.tables.read import read_rows
from surelabel.tables.scores import as_scores, read_scores


def read(path, columns=None, **options):
    columns = columns or Columns()
    return list(text_rows(read_rows(path, needed=columns.needed, **options), columns))


def jsonl(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_every_format_gives_the_same_texts(any_form):
    rows = read(any_form, Columns(("title", "text")))
    assert [row.text for row in rows] == ["Oil\nOil rose, “sharply”", 'Metals\nGold "fell"\nand oil', "Zlato žlutě"]
    assert [row.id for row in rows] == ["n1", "n2", "n3"]
    assert rows[0].cells["title"] == "Oil"


def test_texts_of_a_plain_file_are_numbered(tmp_path):
    (tmp_path / "a.txt").write_text("one\n\nthree\n")
    assert [(row.id, row.text) for row in read(tmp_path / "a.txt")] == [("1", "one"), ("2", ""), ("3", "three")]
    with pytest.raises(CorpusError, match="one text per line"):
        read(tmp_path / "a.txt", Columns(group="source"))


def test_groups_are_read_as_text(tmp_path):
    path = jsonl(
        tmp_path / "a.jsonl", *({"text": "a", "source": source} for source in (1, 1.0, "1", " mail ", None, ""))
    )
    rows = read(path, Columns(group="source"))
    assert [row.group for row in rows] == ["1", "1", "1", "mail", None, None]
    assert "'source'" in rows[4].problem


def test_problems_are_sentences_with_the_row(tmp_path):
    path = jsonl(tmp_path / "a.jsonl", {"text": "ok"}, {"text": 3}, {"body": "x"}, {"text": None}, {"text": "\ud800"})
    rows = read(path)
    assert rows[1].problem == "Row 2 of 'a.jsonl' must hold text. Got int 3."
    assert "'text'" in rows[2].problem
    assert [row.text for row in rows] == ["ok", "", "", "", "?"]
    assert rows[3].problem is None


def test_no_text_column():
    with pytest.raises(InvalidInputError, match="text column"):
        Columns(())


def plain(scores):
    """Return the label and score of each suggestion."""
    return None if scores is None else [one[:2] for one in scores]


@pytest.mark.parametrize(
    ("cell", "pairs"),
    [
        (None, None),
        ("", None),
        ({}, []),
        ([], []),
        ({"oil": 0.93, "gold": 0}, [("oil", 0.93), ("gold", 0.0)]),
        ({"oil": 0.5, "gold": None}, [("oil", 0.5)]),
        ([{"label": "oil", "score": 1}, {"label": "gold", "score": "0.5"}], [("oil", 1.0), ("gold", 0.5)]),
        ([{"uri": "u:oil"}], [("u:oil", None)]),
        ({"results": [{"uri": "u:1", "label": "oil", "score": 0.2}]}, [("u:1", 0.2)]),
        (["oil", "gold"], [("oil", None), ("gold", None)]),
        ('{"oil": -2.5}', [("oil", -2.5)]),
        ('["oil"]', [("oil", None)]),
        ([["oil", 0.5], ["gold", None]], [("oil", 0.5), ("gold", None)]),
        ({"scores": 0.5}, [("scores", 0.5)]),
    ],
)
def test_forms_of_scores(cell, pairs):
    assert plain(as_scores(cell)) == pairs


@pytest.mark.parametrize(
    "cell",
    [
        '{"oil": 1, "oil": 2}',
        '{"oil": NaN}',
        '{"oil": 1',
        "oil",
        3,
        {"oil": "much"},
        {"oil": True},
        {"oil": math.inf},
        {"oil": [1]},
        [{"score": 1}],
        [{"label": "oil", "score": 1}, {"label": "oil", "score": 0}],
        ["oil", "oil"],
        [3],
        '{"oil": 1e999}',
    ],
)
def test_scores_that_are_none(cell):
    with pytest.raises(ValueError, match="must"):
        as_scores(cell)


def test_scores_in_a_column(tmp_path):
    path = jsonl(
        tmp_path / "a.jsonl",
        {"id": 1, "text": "a", "scores": {"oil": 0.9}},
        {"id": 2, "text": "b", "scores": None},
        {"id": 3, "text": "c"},
        {"id": 4, "text": "d", "scores": {"oil": "x"}},
    )
    rows = read(path, Columns(scores="scores"))
    assert [plain(row.scores) for row in rows] == [[("oil", 0.9)], None, None, None]
    assert "Row 4" in rows[3].problem


EXPECTED = {"1": [("oil", 0.9), ("gold", 0.1)], "2": [("gold", 0.0)]}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("long.csv", "id,label,score\n1,oil,0.9\n2,gold,0\n1,gold,0.1\n"),
        ("annif.tsv", "document_id\turi\tlabel\tscore\n1\toil\tOil\t0.9\n1\tgold\tGold\t0.1\n2\tgold\tGold\t0\n"),
        ("wide.csv", "id,oil,gold\n1,0.9,0.1\n2,,0\n"),
        ("object.jsonl", '{"id": 1, "scores": {"oil": 0.9, "gold": 0.1}}\n{"id": 2, "scores": {"gold": 0}}\n'),
        (
            "results.jsonl",
            """{"document_id": "1", "results": [{"label": "oil", "score": 0.9}, {"label": "gold", "score": 0.1}]}
            {"document_id": "2", "results": [{"label": "gold", "score": 0}]}""",
        ),
    ],
)
def test_scores_beside_the_texts(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    assert {key: plain(scores) for key, scores in read_scores(tmp_path / name).items()} == EXPECTED
    texts = jsonl(tmp_path / "texts.jsonl", {"id": 1, "text": "a"}, {"id": 2, "text": "b"}, {"id": 3, "text": "c"})
    rows = read(texts, Columns(scores=str(tmp_path / name)))
    assert [plain(row.scores) for row in rows] == [EXPECTED["1"], EXPECTED["2"], None]


def test_files_of_annif_index_beside_a_folder_of_texts(tmp_path):
    (tmp_path / "1.annif").write_text("<u:1>\toil\t0.9000\n<u:2>\tgold\t665.5\t0.1000\n")
    (tmp_path / "2.annif").write_text("")
    (tmp_path / "3.annif").write_text("<u:1>\toil\t0.2000\n")
    found = read_scores(tmp_path)
    assert found["1"] == [("u:1", 0.9, "oil"), ("u:2", 0.1, "gold")]
    assert plain(found["3"]) == [("u:1", 0.2)]
    texts = jsonl(tmp_path / "texts.jsonl", {"id": 1, "text": "a"}, {"id": 2, "text": "b"})
    assert [len(row.scores or ()) for row in read(texts, Columns(scores=str(tmp_path)))] == [2, 0]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "id,label,score\n1,oil,much\n",
        "id,label,score\n1,,0.5\n",
        "id,label,score\n1,oil,0.5\n1,oil,0.4\n",
        "id,oil\n1,0.5\n1,0.4\n",
        "name,oil\n1,0.5\n",
        "id,oil\n1,nan\n",
    ],
)
def test_bad_files_of_scores_name_the_row(tmp_path, content):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(CorpusError, match=r"a\.csv"):
        read_scores(tmp_path / "a.csv")
