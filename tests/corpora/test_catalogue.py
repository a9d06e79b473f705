import json
import subprocess
import sys

import pytest

from corpora.sgml_samples import SGML, pack
from surelabel import corpora
from surelabel.exceptions import CorpusError, DataWarning, InvalidInputError


def jsonl(path, n_texts=60):
    labels = [["a"], ["b"], ["a", "b"]]
    rows = [{"id": f"t{i}", "title": f"T{i}", "text": f"text {i}", "labels": labels[i % 3]} for i in range(n_texts)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_names_have_descriptions():
    names = corpora.available()
    assert {
        "reuters",
        "reuters20",
        "aapd",
        "ctdc",
        "goemotions",
        "arxiv",
        "debian-czech",
        "synthetic",
    } <= set(names)
    assert all(text and "\n" not in text for text in names.values())


def test_own_data_is_split(tmp_path):
    corpus = corpora.load(jsonl(tmp_path / "mine.jsonl"))
    assert repr(corpus) == "Corpus 'mine': 60 texts, 2 labels (train 33, validation 6, calibration 9, test 12)"
    corpus = corpora.load(str(tmp_path / "mine.jsonl"), test=0, validation=0, calibration=19, seed=2)
    assert repr(corpus) == "Corpus 'mine': 60 texts, 2 labels (train 41, calibration 19)"


def test_named_corpora_are_found(tmp_path, monkeypatch, empty_places):
    with pytest.raises(CorpusError, match=r"(?s)'debian-czech' could not be found.*SURELABEL_DATA is not set"):
        corpora.load("debian-czech")
    monkeypatch.setenv("SURELABEL_DATA", str(tmp_path))
    jsonl(tmp_path / "debian-czech.jsonl")
    corpus = corpora.load("debian-czech", calibration=19)
    assert corpus.name == "debian-czech"
    assert len(corpus.part("test")) == 12
    empty_places.mkdir()
    jsonl(empty_places / "arxiv2025.jsonl")
    corpus = corpora.load("arxiv", calibration=5, validation=5, test=5)
    assert corpus.texts[0] == "T0\ntext 0"
    corpus = corpora.load("arxiv", path=tmp_path / "debian-czech.jsonl", calibration=5, validation=5, test=5)
    assert corpus.name == "arxiv"


def test_a_split_larger_than_the_corpus(tmp_path):
    with pytest.raises(CorpusError, match="must leave at least one text for training"):
        corpora.load("arxiv", path=jsonl(tmp_path / "a.jsonl"))


def test_reuters_by_path_and_its_reduction(tmp_path, monkeypatch):
    path = pack(tmp_path / "r.tar.gz", SGML)
    with pytest.warns(DataWarning):
        corpus = corpora.load("reuters", path=path, validation=0, calibration=0)
    assert repr(corpus) == "Corpus 'reuters': 5 texts, 3 labels (train 3, test 2)"
    with pytest.warns(DataWarning), pytest.raises(InvalidInputError, match="from 1 to 3"):
        corpora.load("reuters20", path=path, validation=0, calibration=0)


def test_synthetic_options():
    corpus = corpora.load("synthetic", n_texts=100, n_labels=5, seed=3, stratified=False, calibration=19)
    assert len(corpus.label_names) == 5
    assert corpus.split == corpora.Split({"test": 0.2, "validation": 0.1, "calibration": 19}, 3, False)


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("synthetic", {"fold": 1}, r"for synthetic must be among \['n_texts', 'n_labels'\]. Got 'fold'"),
        ("ctdc", {"folds": 1}, "must be among .*'fold', 'encoding'.* Got 'folds'"),
        (7, {}, "Got int instead"),
        ("mine.csv", {"path": "x"}, "'path' parameter of load goes with a name"),
    ],
)
def test_bad_arguments(source, options, message):
    with pytest.raises(InvalidInputError, match=message):
        corpora.load(source, **options)


def test_unknown_options_of_files(tmp_path):
    with pytest.raises(InvalidInputError, match=r"for a file must be among \['text', 'labels'.* Got 'texts'"):
        corpora.load(jsonl(tmp_path / "m.jsonl"), texts="text")


def test_unknown_names():
    with pytest.raises(CorpusError, match=r"must be a name of .*'reuters'.* or an existing file .* Got 'reuter'"):
        corpora.load("reuter")


def test_the_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("SURELABEL_CACHE", str(tmp_path))
    assert corpora.cache_folder() == tmp_path
    monkeypatch.delenv("SURELABEL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert "surelabel" in corpora.cache_folder().parts


def test_public_names():
    assert corpora.__all__ == [
        "PAPER_STATISTICS",
        "PARTS",
        "Corpus",
        "Part",
        "Provenance",
        "Split",
        "Statistics",
        "available",
        "cache_folder",
        "find_reuters",
        "generate_synthetic",
        "is_at_hand",
        "load",
        "read_aapd",
        "read_ctdc",
        "read_goemotions",
        "read_reuters",
        "read_table",
        "reduced",
        "seen_before",
        "split",
        "statistics",
        "statistics_markdown",
        "statistics_table",
    ]
    for name in corpora.__all__:
        assert getattr(corpora, name).__doc__


def test_importing_is_cheap():
    heavy = "{'pandas', 'pyarrow', 'rich', 'sklearn', 'platformdirs', 'torch'}"
    code = f"import surelabel.corpora, sys; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_is_at_hand(tmp_path, monkeypatch):
    monkeypatch.setenv("SURELABEL_DATA", str(tmp_path))
    monkeypatch.setenv("SURELABEL_CACHE", str(tmp_path / "cache"))
    assert corpora.is_at_hand("synthetic")
    assert not corpora.is_at_hand("reuters20")
    assert not corpora.is_at_hand("arxiv")
    (tmp_path / "reuters21578").mkdir()
    (tmp_path / "arxiv2025.jsonl").write_text("")
    assert corpora.is_at_hand("reuters20")
    assert corpora.is_at_hand("arxiv")
    with pytest.raises(InvalidInputError, match="must be one of"):
        corpora.is_at_hand("roiters")
