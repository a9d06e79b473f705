import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surelabel.corpora import PARTS, Corpus, text_hash
from surelabel.exceptions import CorpusError, InvalidInputError

TEXTS = ["oil up", "gold and oil", "", "what", "gold"]
LABELS = [{"oil"}, {"gold", "oil"}, set(), None, ["gold"]]


@pytest.fixture
def corpus():
    return Corpus.from_label_sets("five", TEXTS, LABELS, columns={"source": list("abcde")})


def test_labels_in_both_forms(corpus):
    assert corpus.label_names == ("gold", "oil")
    assert corpus.labels.toarray().astype(int).tolist() == [[0, 1], [1, 1], [0, 0], [0, 0], [1, 0]]
    assert corpus.label_sets == [{"oil"}, {"gold", "oil"}, set(), set(), {"gold"}]
    assert corpus.is_labelled.tolist() == [True, True, True, False, True]
    assert corpus.ids == ("0", "1", "2", "3", "4")
    assert repr(corpus) == "Corpus 'five': 5 texts, 2 labels (train 4)"


def test_unusual_texts_are_noted(corpus):
    assert len(corpus.notes) == 3
    assert all(word in " ".join(corpus.notes) for word in ("empty", "not tagged", "no label", "id '3'"))


def test_rows_and_parts_keep_everything_together(corpus):
    divided = corpus.with_parts({"train": [4, 0], "test": [1], "filing": [2]})
    assert divided.part_sizes == {"train": 2, "filing": 1, "test": 1}
    part = divided.part("train", "test")
    assert (part.texts, part.ids, part.columns["source"]) == (
        ("oil up", "gold and oil", "gold"),
        ("0", "1", "4"),
        ("a", "b", "e"),
    )
    assert part.label_sets == [{"oil"}, {"gold", "oil"}, {"gold"}]
    assert part.part("test").texts == ("gold and oil",)
    assert divided.rows(np.array([False, True, True, False, False])).part_sizes == {"filing": 1, "test": 1}
    assert divided.rows([1, 1][:1]).label_names == corpus.label_names
    assert len(divided.rows([])) == 0


def test_what_is_no_part(corpus):
    with pytest.raises(InvalidInputError, match="part"):
        corpus.part("dev")
    with pytest.raises(InvalidInputError, match="part"):
        corpus.part()
    with pytest.raises(CorpusError, match="'test'"):
        corpus.part("test")
    for parts in ({"train": [0, 0]}, {"train": [0], "test": [0]}, {"train": [5]}, {"train": [-1]}, {"dev": [0]}):
        with pytest.raises(CorpusError):
            corpus.with_parts(parts)


def test_what_is_no_corpus():
    for texts, labels, options in (
        (["a"], [], {}),
        ([], [], {}),
        (["a", "b"], [{"x"}, {"y"}], {"ids": ["1", "1"]}),
        (["a"], [{"x"}], {"label_names": ["y"]}),
        (["a"], [{"x"}], {"columns": {"c": []}}),
        (["a"], [{"x"}], {"label_names": ["x", "x"]}),
        (["a"], [{"x"}], {"scores": []}),
    ):
        with pytest.raises(CorpusError):
            Corpus.from_label_sets("bad", texts, labels, **options)


def test_a_column_that_is_not_there(corpus):
    assert corpus.column("source")[0] == "a"
    with pytest.raises(CorpusError, match="'date'"):
        corpus.column("date")


def test_copies_are_equal(corpus):
    for other in (copy.deepcopy(corpus), pickle.loads(pickle.dumps(corpus))):
        assert other.fingerprint() == corpus.fingerprint()
    assert corpus.rows([0, 1, 2, 3]).fingerprint() != corpus.fingerprint()
    assert corpus.with_parts({"test": [0]}).fingerprint() != corpus.fingerprint()


def test_a_hash_of_a_text_ignores_case_and_white_space():
    assert text_hash(" Oil\n rose") == text_hash("oil rose") != text_hash("oil fell")
    assert text_hash(" ") == 0
    assert 0 < text_hash("x") < 2**64
    np.array([text_hash("x")], dtype=np.uint64)


@given(st.lists(st.none() | st.frozensets(st.sampled_from("abcdef")), min_size=1, max_size=8))
def test_label_sets_come_back(label_sets):
    corpus = Corpus.from_label_sets("any", ["t"] * len(label_sets), label_sets, label_names="abcdef")
    assert corpus.label_sets == [label_set or frozenset() for label_set in label_sets]
    assert corpus.is_labelled.tolist() == [label_set is not None for label_set in label_sets]
    assert set(corpus.part_sizes) <= set(PARTS)
