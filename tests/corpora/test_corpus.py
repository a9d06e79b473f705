import copy
import dataclasses
import pickle
import re

import numpy as np
import pytest
from scipy import sparse

from surelabel.corpora import Corpus, Provenance, generate_synthetic, split
from surelabel.exceptions import CorpusError, DataWarning, InvalidInputError, SurelabelError

TEXTS = ["oil up", "gold and oil", "tin", "gold"]
SETS = [{"oil"}, {"gold", "oil"}, {"tin"}, {"gold"}]


def small(**changes):
    settings = {"parts": {"train": [2, 0], "calibration": [3], "test": [1]}, **changes}
    return Corpus.from_label_sets("small", TEXTS, SETS, **settings)


def test_labels_are_sorted_names_and_their_matrix():
    corpus = small()
    assert corpus.label_names == ("gold", "oil", "tin")
    expected = np.array([[0, 1, 0], [1, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=bool)
    assert corpus.labels.dtype == np.bool_
    np.testing.assert_array_equal(corpus.labels, expected)
    assert corpus.label_sets == tuple(map(frozenset, SETS))
    assert sparse.issparse(corpus.label_matrix)
    assert corpus.ids == ("0", "1", "2", "3")


def test_part_keeps_the_order_of_the_corpus():
    part = small().part("train")
    assert part.texts == ("oil up", "tin")
    assert part.ids == ("0", "2")
    assert len(part) == 2
    assert part.label_sets == (frozenset({"oil"}), frozenset({"tin"}))
    np.testing.assert_array_equal(part.labels, [[False, True, False], [False, False, True]])


def test_parts_merge():
    merged = small().part("calibration", "train")
    assert merged.ids == ("0", "2", "3")
    assert merged.name == "calibration+train"
    assert small().part("train", "train").ids == ("0", "2")


def test_parts_that_are_not_there():
    with pytest.raises(CorpusError, match=r"must be among \['train', 'calibration', 'test'\]. Got 'validation'"):
        small().part("validation")
    with pytest.raises(InvalidInputError, match="at least one name"):
        small().part()


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"train": [0, 4]}, "text indices from 0 to 3. Got 4"),
        ({"train": [-1, 2]}, "text indices from 0 to 3. Got -1"),
        ({"train": [0, 1], "test": [1]}, "must not share texts. Got text 1 twice"),
        ({"train": [0, 0]}, "Got text 0 twice"),
        ({"practice": [0]}, "Got 'practice' instead"),
    ],
)
def test_bad_parts(parts, message):
    with pytest.raises(CorpusError, match=re.escape(message)):
        small(parts=parts)


def test_is_immutable():
    corpus = small()
    with pytest.raises(dataclasses.FrozenInstanceError):
        corpus.name = "other"
    with pytest.raises(ValueError, match="read-only"):
        corpus.parts["train"][0] = 1
    with pytest.raises(TypeError):
        corpus.parts["validation"] = np.array([1])


def test_copies_and_travels():
    corpus = split(generate_synthetic(50), calibration=9)
    for other in (copy.deepcopy(corpus), pickle.loads(pickle.dumps(corpus))):
        assert other.fingerprint() == corpus.fingerprint()
        assert other.split == corpus.split
        assert not other.parts["train"].flags.writeable


def test_with_parts_changes_nothing_else():
    corpus = small()
    other = corpus.with_parts({"train": [0, 1, 2, 3]})
    assert len(other.part("train")) == 4
    assert len(corpus.part("train")) == 2
    assert other.texts == corpus.texts


def test_fingerprint_sees_every_piece_but_the_name():
    reference = small().fingerprint()
    assert reference == small(provenance=Provenance("elsewhere", "other")).fingerprint()
    assert reference != small(parts={"train": [0, 1, 2, 3]}).fingerprint()
    assert reference != small(ids=["a", "b", "c", "d"]).fingerprint()
    assert reference != small(label_names=["oil", "gold", "tin"]).fingerprint()
    changed = dataclasses.replace(small(), texts=("oil up", "gold and oil", "tin", "gold."))
    assert reference != changed.fingerprint()
    assert small().fingerprint(texts=False) == changed.fingerprint(texts=False)


def test_fingerprint_is_the_same_everywhere():
    assert small().fingerprint() == "8d6e15f5197d1a3bd9b6c671a9b840951a07aad4841fb8dc2c54f69ae10f67ea"


def test_stored_false_and_duplicates_do_not_count():
    matrix = sparse.csr_array((np.array([True, False, True]), ([0, 0, 1], [0, 1, 1])), shape=(2, 2))
    corpus = Corpus("m", ("a", "b"), ("0", "1"), matrix, ("x", "y"), {"train": np.array([0, 1])})
    assert corpus.label_matrix.nnz == 2
    assert corpus.label_sets == (frozenset({"x"}), frozenset({"y"}))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], []), "must have at least one text"),
        ((["a"], [{"x"}, {"y"}]), "must be as many as its texts, 1. Got 2"),
        ((["a", "b"], [set(), set()]), "must have at least one label"),
        ((["a", "b"], [{"x"}, {"x"}]), "Got 'x' on every text"),
    ],
)
def test_bad_corpora(arguments, message):
    with pytest.raises(CorpusError, match=re.escape(message)) as caught:
        Corpus.from_label_sets("bad", *arguments)
    assert isinstance(caught.value, SurelabelError)


def test_bad_ids_and_names():
    with pytest.raises(CorpusError, match=r"ids .* must be unique. Got 'a' twice"):
        small(ids=["a", "b", "a", "c"])
    with pytest.raises(CorpusError, match=r"must be as many as its texts, 4. Got 1"):
        small(ids=["a"])
    with pytest.raises(CorpusError, match="Got 'tin' in text 2"):
        small(label_names=["oil", "gold"])
    with pytest.raises(CorpusError, match=r"label names .* must be unique"):
        small(label_names=["oil", "gold", "tin", "tin"])


def test_empty_texts_are_kept_and_said():
    with pytest.warns(DataWarning, match=r"1 of the 2 texts of corpus 'e' are empty \(id '1'\)"):
        corpus = Corpus.from_label_sets("e", ["a", " \n"], [{"x"}, {"y"}])
    assert len(corpus) == 2


def test_texts_without_labels_are_kept_and_said():
    with pytest.warns(DataWarning, match="1 of the 3 texts of corpus 'e' have no label"):
        corpus = Corpus.from_label_sets("e", ["a", "b", "c"], [{"x"}, set(), {"y"}])
    assert corpus.label_sets[1] == frozenset()


def test_one_label_on_some_texts_is_said():
    with pytest.warns(DataWarning) as caught:
        Corpus.from_label_sets("e", ["a", "b"], [{"x"}, set()])
    assert any("one label only, 'x'" in str(warning.message) for warning in caught)


def test_a_hundred_thousand_labels_stay_sparse():
    n_labels = 100_000
    names = [f"label-{number}" for number in range(n_labels)]
    corpus = Corpus.from_label_sets("wide", ["a", "b"], [{names[0]}, {names[-1]}], label_names=names)
    assert corpus.label_matrix.nnz == 2
    assert corpus.part("train").label_sets[1] == frozenset({"label-99999"})
