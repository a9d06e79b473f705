import itertools
import json
import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surelabel._core import progress
from surelabel.corpora import load, read_table
from surelabel.corpora.labels import as_label_set, as_list
from surelabel.exceptions import CorpusError, DataWarning, InvalidInputError


def table(path, content):
    path.write_text(content, encoding="utf-8")
    return path


def jsonl(path, *records):
    return table(path, "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))


def cells(tmp_path, *labels):
    """Write a table whose label cells are these, with a tab between columns."""
    return table(tmp_path / "a.tsv", "text\tlabels\n" + "".join(f"t{k}\t{cell}\n" for k, cell in enumerate(labels)))


def test_every_format_gives_the_same(any_form, rows):
    corpus = read_table(any_form)
    assert corpus.name == "news"
    assert corpus.ids == ("n1", "n2", "n3")
    assert corpus.texts == tuple(row["text"] for row in rows)
    assert corpus.label_sets == [frozenset(row["labels"]) for row in rows]
    assert corpus.part_sizes == {"train": 3}
    assert re.fullmatch("[0-9a-f]{64}", corpus.provenance.checksum)
    assert corpus.provenance.source == any_form.name


def test_text_columns_are_joined(any_form):
    corpus = read_table(any_form, text=["title", "text"])
    assert (corpus.texts[0], corpus.texts[2]) == ("Oil\nOil rose, “sharply”", "Zlato žlutě")


@pytest.mark.parametrize("mark", [",", ";", "|"])
def test_the_separator_that_was_taken_is_always_noted(tmp_path, mark):
    corpus = read_table(cells(tmp_path, f"x{mark}y", f"y {mark} z", "x"))
    assert corpus.label_names == ("x", "y", "z")
    assert repr(mark) in corpus.notes[0]
    assert "2 of 3 cells" in corpus.notes[0]


def test_other_forms_of_labels_are_noted_too(tmp_path):
    assert "no separator" in read_table(cells(tmp_path, "x", "y")).notes[0]
    assert "one label" in read_table(cells(tmp_path, "x", "y"), separator=None).notes[0]
    assert (
        "lists"
        in read_table(
            jsonl(tmp_path / "a.jsonl", {"text": "a", "labels": ["x"]}, {"text": "b", "labels": ["y"]})
        ).notes[0]
    )
    path = table(tmp_path / "i.csv", "text,x,y\na,1,0\nb,0,1\n")
    assert "2 columns" in read_table(path, labels=["x", "y"]).notes[0]


def test_a_label_with_a_comma_stays_whole_where_commas_are_rare(tmp_path):
    corpus = read_table(cells(tmp_path, *["x"] * 60, "Health, safety"))
    assert corpus.label_names == ("Health, safety", "x")


def test_two_usual_separators_cause_a_warning(tmp_path):
    with pytest.warns(DataWarning, match="','"):
        corpus = read_table(cells(tmp_path, "x;y, or z", "y, or z;w", "x;w"))
    assert corpus.label_names == ("w", "x", "y, or z")
    with pytest.warns(DataWarning, match="';'"):
        assert "x;y" in read_table(cells(tmp_path, "x;y", "y;z", "x"), separator=",").label_names


@pytest.mark.parametrize(
    "cell",
    [
        "['gold', 'oil']",
        '["gold","oil"]',
        "{gold,oil}",
        "['gold' 'oil']",
        "{'oil', 'gold'}",
        "('gold', 'oil')",
        "[gold, oil]",
        '{"gold",oil}',
    ],
)
def test_cells_that_are_lists(tmp_path, cell):
    corpus = read_table(cells(tmp_path, cell, "['gold']", "[]"))
    assert corpus.label_sets == [{"gold", "oil"}, {"gold"}, set()]
    assert corpus.is_labelled.all()


def test_list_items_keep_commas_quotes_and_apostrophes(tmp_path):
    corpus = read_table(cells(tmp_path, "['Health, safety', \"men's\"]", "['it\\'s']", "{men's,women's}"))
    assert corpus.label_names == ("Health, safety", "it's", "men's", "women's")


NAMES = st.lists(st.text("ab,;|'\"\\[]{} é", min_size=1, max_size=6), max_size=4)


@given(NAMES, st.sampled_from([repr, json.dumps, lambda names: json.dumps(names, ensure_ascii=False)]))
def test_printed_lists_come_back(names, printed):
    assert as_list(printed(names)) == names
    assert as_label_set(printed(names), ",") == {" ".join(name.split()) for name in names} - {""}


@given(st.text())
def test_no_cell_of_labels_breaks(cell):
    for separator in (",", None):
        label_set = as_label_set(cell, separator)
        assert all(name and name == name.strip() for name in label_set)


@pytest.mark.parametrize("form", [".jsonl", ".parquet"])
def test_null_is_not_tagged_and_an_empty_list_is_none(tmp_path, write_table, form):
    rows = [{"text": "a", "labels": ["x"]}, {"text": "b", "labels": None}, {"text": "c", "labels": []}]
    corpus = read_table(write_table(tmp_path / f"a{form}", rows))
    assert corpus.is_labelled.tolist() == [True, False, True]
    assert corpus.part_sizes == {"train": 2}
    assert "not tagged" in " ".join(corpus.notes)


def test_an_absent_label_is_not_tagged(tmp_path):
    path = jsonl(tmp_path / "a.jsonl", {"text": "a", "labels": ["x"]}, {"text": "b"}, {"text": "c", "labels": []})
    assert read_table(path).is_labelled.tolist() == [True, False, True]


@pytest.mark.parametrize("form", [".csv", ".jsonl"])
def test_files_without_labels_are_read_where_none_are_needed(tmp_path, write_table, form):
    path = write_table(tmp_path / f"a{form}", [{"id": 1, "text": "a"}, {"id": 2, "text": "b"}])
    corpus = read_table(path, require_labels=False)
    assert (corpus.texts, corpus.label_names, corpus.is_labelled.any()) == (("a", "b"), (), False)
    assert "no labels" in corpus.notes[0]
    with pytest.raises(CorpusError, match="'labels'"):
        read_table(path)


def test_texts_of_one_label_only(tmp_path):
    assert read_table(cells(tmp_path, "x", "x")).label_names == ("x",)
    assert read_table(cells(tmp_path, "", "")).label_names == ()


def test_names_are_joined_if_they_differ_invisibly(tmp_path):
    corpus = read_table(cells(tmp_path, "caf\u00e9", "cafe\u0301", "caf\u00e9\u200b", " oil  price ", "oil price"))
    assert corpus.label_names == ("caf\u00e9", "oil price")


@pytest.mark.parametrize(("one", "other"), [("Oil", "oil"), ("STRASSE", "stra\u00dfe")])
def test_names_that_look_alike_are_named(tmp_path, one, other):
    with pytest.warns(DataWarning, match="look alike"):
        assert set(read_table(cells(tmp_path, one, other, "x")).label_names) == {one, other, "x"}


@pytest.mark.parametrize("word", ["nan", "None", "N/A", "null"])
def test_names_that_look_like_missing_values_are_named(tmp_path, word):
    with pytest.warns(DataWarning, match="missing"):
        assert word in read_table(cells(tmp_path, word, "x")).label_names


@pytest.mark.parametrize("numbers", [["3", "4.5"], ["1", "2"]])
def test_labels_that_are_numbers_are_named(tmp_path, numbers):
    with pytest.warns(DataWarning, match="numbers"):
        assert read_table(cells(tmp_path, *numbers)).label_names == tuple(numbers)
    assert read_table(cells(tmp_path, "1,2", "2")).label_names == ("1", "2")


def test_whole_numbers_are_one_label_in_every_form(tmp_path):
    path = jsonl(tmp_path / "a.jsonl", *({"text": "a", "labels": labels} for labels in ([1], [1.0], ["1"], 1, 2)))
    assert read_table(path).label_names == ("1", "2")


def test_indicator_columns(tmp_path):
    path = table(tmp_path / "i.csv", "text,oil,gold\na,1,0\nb,,True\nc,1.0,1\n")
    corpus = read_table(path, labels=["oil", "gold"])
    assert corpus.label_names == ("oil", "gold")
    assert corpus.label_sets == [{"oil"}, {"gold"}, {"oil", "gold"}]
    table(path, "text,oil,gold\na,1,0\nb,2,1\n")
    with pytest.raises(CorpusError, match=r"Row 2.*'oil'.*'2'"):
        read_table(path, labels=["oil", "gold"])


@pytest.mark.parametrize("form", [".csv", ".jsonl", ".parquet"])
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
def test_ranges_and_patterns_name_many_columns(tmp_path, write_table, form, labels, names):
    rows = [{"id": k, "oil": k % 2, "text": f"text {k}", "gold": int(k > 1), "tin": 1} for k in range(4)]
    corpus = read_table(write_table(tmp_path / f"i{form}", rows), labels=labels)
    assert corpus.label_names == names
    assert corpus.label_sets[3] == {"oil", "gold", "tin"}


def test_ranges_and_patterns_without_columns(tmp_path):
    path = table(tmp_path / "i.csv", "text,oil,gold,tin\na,1,0,0\nb,0,1,1\n")
    for labels in ("tin..oil", "oil..zinc", "z*", ["oil", "z*"]):
        with pytest.raises(CorpusError, match="must have a column"):
            read_table(path, labels=labels)
    path = table(tmp_path / "i.csv", 'text,t*,tag\na,"x,y",1\nb,x,0\n')
    assert read_table(path, labels="t*").label_names == ("x", "y")


def test_part_columns_and_files_by_part(tmp_path):
    path = table(
        tmp_path / "p.csv", "text,labels,part\na,x,train\nb,y,Train\nc,y,dev\nd,x,test\ne,x,filing\nf,y,calibration\n"
    )
    corpus = read_table(path, part="part")
    assert {name: corpus.part(name).texts for name in corpus.part_sizes} == {
        "train": ("a", "b"),
        "validation": ("c",),
        "filing": ("e",),
        "calibration": ("f",),
        "test": ("d",),
    }
    for name, lines in (("train", "a,x\nb,y"), ("test", "c,x")):
        table(tmp_path / f"{name}.csv", f"text,labels\n{lines}\n")
    corpus = load({name: tmp_path / f"{name}.csv" for name in ("train", "test")}, parts="own", name="both")
    assert (corpus.ids, corpus.part_sizes) == (("train-1", "train-2", "test-1"), {"train": 2, "test": 1})
    table(path, "text,labels,part\na,x,tain\nb,y,test\n")
    with pytest.raises(CorpusError, match=r"Row 1.*'tain'"):
        read_table(path, part="part")
    with pytest.raises(InvalidInputError, match="learn"):
        load({"learn": path})


def test_columns_to_keep(tmp_path):
    path = table(tmp_path / "a.csv", "text,labels,source\na,x,mail\nb,y,chat\n")
    assert read_table(path, columns=["source"]).columns == {"source": ("mail", "chat")}
    table(path, "text,labels,source\na,x,mail\nb,y,\n")
    with pytest.raises(CorpusError, match=r"Row 2.*'source'"):
        read_table(path, columns=["source"])


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"text": "labels"}, "different"),
        ({"text": ["text", "labels"]}, "different"),
        ({"text": []}, "text column"),
        ({"labels": []}, "label column"),
        ({"separator": ""}, "separator"),
        ({"separator": 5}, "separator"),
        ({"encoding": "rot13"}, "encoding"),
        ({"on_error": "mark"}, "on_error"),
    ],
)
def test_options_that_make_no_sense(tmp_path, options, word):
    with pytest.raises(InvalidInputError, match=word):
        read_table(cells(tmp_path, "x", "y"), **options)


@pytest.mark.parametrize(
    ("record", "word"),
    [
        ('{"text": 3, "labels": ["a"]}', "text"),
        ('{"labels": ["a"]}', "'text'"),
        ('{"text": "a", "labels": {"a": 1}}', "labels"),
        ('{"text": "a", "labels": [["a"]]}', "names"),
        ('{"text": "a", "labels": true}', "labels"),
        ('{"text": "a", "labels": [null]}', "names"),
        ('{"text": "a", "text": "b"}', "twice"),
        ('{"text": "a"', "JSON"),
    ],
)
def test_bad_rows_stop_or_are_skipped_and_named(tmp_path, record, word):
    good = ['{"text": "a", "labels": ["x"]}', record, "", '{"text": "c", "labels": ["y"]}']
    path = table(tmp_path / "news.jsonl", "\n".join(good) + "\n")
    with pytest.raises(CorpusError, match=rf"Row 2 of 'news.jsonl' .*{word}"):
        read_table(path)
    with pytest.warns(DataWarning, match=r"1 rows of 'news.jsonl' .*Row 2"):
        corpus = read_table(path, on_error="skip")
    assert (corpus.texts, corpus.ids) == (("a", "c"), ("1", "3"))


def test_ids(tmp_path):
    path = table(tmp_path / "a.csv", "id,text,labels\n7,a,x\n8,b,y\n7,c,x\n")
    with pytest.raises(CorpusError, match="'7' twice"):
        read_table(path)
    path = table(tmp_path / "a.csv", "id,key,text,labels\n7,u,a,x\n,v,b,y\n007,w,c,x\n")
    assert read_table(path).ids == ("7", "2", "007")
    assert read_table(path, id="key").ids == ("u", "v", "w")


@pytest.mark.parametrize("content", ["", "text,labels\n"])
def test_empty_files(tmp_path, content):
    with pytest.raises(CorpusError, match=r"a\.csv"):
        read_table(table(tmp_path / "a.csv", content))


def test_empty_texts_are_noted(tmp_path):
    path = jsonl(
        tmp_path / "a.jsonl",
        {"text": None, "labels": ["x"]},
        {"text": "", "labels": ["y"]},
        {"text": "c", "labels": []},
    )
    corpus = read_table(path)
    assert corpus.texts == ("", "", "c")
    assert "2 of 3 texts are empty" in " ".join(corpus.notes)


def test_scores_of_a_column_or_of_a_file(tmp_path):
    path = jsonl(
        tmp_path / "a.jsonl",
        {"id": 1, "text": "a", "labels": ["x"], "scores": {"x": 0.9}},
        {"id": 2, "text": "b", "labels": ["y"], "scores": None},
    )
    listed, absent = read_table(path, scores="scores").scores
    assert ([pair[:2] for pair in listed], absent) == ([("x", 0.9)], None)
    beside = table(tmp_path / "s.csv", "id,label,score\n2,y,0.5\n9,x,0.1\n")
    corpus = read_table(path, scores=str(beside))
    assert (corpus.scores[0], corpus.scores[1][0][:2]) == (None, ("y", 0.5))
    assert "1 of 2 texts" in " ".join(corpus.notes)
    with pytest.raises(CorpusError, match="ids"):
        read_table(path, scores=str(table(beside, "id,label,score\n9,x,0.1\n")))
    with pytest.raises(CorpusError, match="'marks'"):
        read_table(path, scores="marks")


def test_a_file_that_is_no_table(tmp_path):
    for name in ("a.docx", "a.txt"):
        (tmp_path / name).write_text("x")
        with pytest.raises(CorpusError, match="ends in"):
            load(tmp_path / name)
    with pytest.raises(CorpusError, match="no file"):
        load("tickets-that-are-not-there.csv")


def test_a_file_that_changes_while_it_is_read_is_an_error(tmp_path):
    path = cells(tmp_path, "x", "y")

    times = itertools.count()

    def change(*_):
        os.utime(path, ns=(next(times),) * 2)

    with progress.reporting_to(change), pytest.raises(CorpusError, match="changed"):
        read_table(path)


def test_a_file_wins_over_a_corpus_of_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "synthetic").write_text("x")
    with pytest.raises(CorpusError, match="ends in"):
        load("synthetic")


def test_options_of_load(tmp_path):
    path = cells(tmp_path, *["x", "y"] * 20)
    assert load(path).part_sizes == {"train": 28, "filing": 4, "calibration": 4, "test": 4}
    assert load(path, calibration=10, test=0).part_sizes == {"train": 26, "filing": 4, "calibration": 10}
    for options in ({"parts": "halves"}, {"parts": "own", "test": 5}, {"colour": 1}, {"path": path}):
        with pytest.raises(InvalidInputError):
            load(path, **options)
    with pytest.raises(InvalidInputError):
        load(5)
