import pytest

from surelabel.corpora import Corpus, generate_synthetic, reduced, split
from surelabel.exceptions import DataWarning, InvalidInputError


def corpus():
    sets = [{"c"}, {"b"}, {"a", "b"}, {"a"}, {"c", "d"}, {"d"}, {"b"}, {"e"}]
    return Corpus.from_label_sets("tiny", list("stuvwxyz"), sets, parts={"train": range(5), "test": [5, 6, 7]})


def test_counts_over_the_whole_corpus_and_ties_go_to_the_first():
    # b occurs three times; a, c and d twice; c is the first of these.
    smaller = reduced(corpus(), 2)
    assert smaller.name == "tiny2"
    assert smaller.label_names == ("b", "c")
    assert smaller.ids == ("0", "1", "2", "4", "6")
    assert smaller.label_sets == tuple(map(frozenset, ["c", "b", "b", "c", "b"]))
    assert {name: rows.tolist() for name, rows in smaller.parts.items()} == {
        "train": [0, 1, 2, 3],
        "test": [4],
    }
    assert "reduced to the 2 most frequent of 5 labels" in smaller.provenance.notes


def test_drawn_parts_are_drawn_again_and_the_test_part_only_loses():
    whole = split(generate_synthetic(600), test=0.2, validation=50, calibration=99, seed=4)
    smaller = reduced(whole, 6)
    assert len(smaller.part("validation")) == 50
    assert len(smaller.part("calibration")) == 99
    assert set(smaller.part("test").ids) < set(whole.part("test").ids)
    assert smaller.split is not None
    assert smaller.split.seed == 4
    assert smaller.labels.any(axis=1).all()


def test_all_labels_change_nothing_but_the_name():
    with pytest.warns(DataWarning, match="'e'"):
        same = reduced(corpus(), 5)
    assert same.fingerprint() == corpus().fingerprint()


@pytest.mark.parametrize("n_labels", [0, -1, 2.0, "2", True, 6])
def test_bad_numbers(n_labels):
    with pytest.raises(InvalidInputError, match="'n_labels' parameter of reduced must be"):
        reduced(corpus(), n_labels)
