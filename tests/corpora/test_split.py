import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surelabel.corpora import Corpus, draw_parts, generate_synthetic, load, reduce_labels, stratified_parts
from surelabel.exceptions import CorpusError, InvalidInputError


def made(n_texts, label_sets=None):
    return Corpus.from_label_sets(
        "made", [f"t{k}" for k in range(n_texts)], label_sets or [{f"l{k % 7}"} for k in range(n_texts)]
    )


@pytest.mark.parametrize(
    ("n_texts", "sizes"),
    [
        (100, {"train": 70, "filing": 10, "calibration": 10, "test": 10}),
        (15_000, {"train": 11_500, "filing": 1_000, "calibration": 1_000, "test": 1_500}),
        (50_000, {"train": 46_000, "filing": 1_000, "calibration": 1_000, "test": 2_000}),
        (5, {"train": 2, "filing": 1, "calibration": 1, "test": 1}),
    ],
)
def test_each_part_is_a_tenth_with_a_cap(n_texts, sizes):
    assert draw_parts(made(n_texts)).part_sizes == sizes


@given(st.integers(4, 300), st.integers(0, 2**32 - 1))
def test_parts_are_a_division_that_the_seed_decides(n_texts, seed):
    corpus = draw_parts(made(n_texts), seed)
    assert sum(corpus.part_sizes.values()) == n_texts
    np.testing.assert_array_equal(corpus.part_of, draw_parts(made(n_texts), seed).part_of)


def test_parts_are_simple_random_samples():
    # Each text is in the calibration part equally often, also the only one of its label: parts are not stratified.
    label_sets = [{"common"}] * 19 + [{"rare"}]
    counts = np.zeros(20)
    corpus = made(20, label_sets)
    for seed in range(1_000):
        counts += draw_parts(corpus, seed).part_of == 3
    expected, deviation = 1_000 * 0.1, np.sqrt(1_000 * 0.1 * 0.9)
    assert np.abs(counts - expected).max() < 4 * deviation


def test_own_parts_and_untagged_texts_are_kept():
    corpus = made(100, [None if k < 20 else {"a" if k % 2 else "b"} for k in range(100)])
    corpus = corpus.with_parts({"train": range(20, 90), "test": range(90, 100)})
    divided = draw_parts(corpus, seed=3)
    assert divided.part("test").ids == corpus.part("test").ids
    assert divided.part_sizes == {"train": 54, "filing": 8, "calibration": 8, "test": 10}
    assert np.all(divided.part_of[:20] == -1)
    with pytest.raises(InvalidInputError, match="'test'"):
        draw_parts(corpus, test=5)
    no_training = corpus.with_parts({"test": range(20, 100)})
    assert draw_parts(no_training).part_sizes == {"test": 80}
    assert "No part" in draw_parts(no_training).notes[-1]


def test_sizes_that_are_asked_for():
    assert draw_parts(made(100), filing=0, calibration=25, test=0.3).part_sizes == {
        "train": 45,
        "calibration": 25,
        "test": 30,
    }
    assert draw_parts(made(100), 0, 0, 0, 0).part_sizes == {"train": 100}
    for size in (-1, 1.5, True, "5", float("nan")):
        with pytest.raises(InvalidInputError, match="size"):
            draw_parts(made(100), test=size)
    with pytest.raises(CorpusError, match="training"):
        draw_parts(made(100), test=80)
    with pytest.raises(CorpusError, match="training"):
        draw_parts(made(3))


def test_stratified_parts_have_their_sizes_and_keep_labels_in_training():
    corpus = generate_synthetic(600, n_labels=24, seed=1)
    divided = stratified_parts(corpus, {"test": 0.2, "validation": 60, "calibration": 99}, seed=2)
    assert divided.part_sizes == {"train": 321, "validation": 60, "calibration": 99, "test": 120}
    assert divided.part("train").labels.toarray().any(axis=0).all()
    shares = [divided.part(name).labels.toarray().mean(axis=0)[:5] for name in ("train", "test")]
    assert np.abs(shares[0] - shares[1]).max() < 0.03
    with pytest.raises(InvalidInputError, match="already"):
        stratified_parts(divided, {"test": 5})


def test_stratified_parts_are_those_of_the_published_figures():
    corpus = load("synthetic", parts="paper")
    assert corpus.part_sizes == {"train": 1_100, "validation": 200, "calibration": 300, "test": 400}
    assert corpus.part("calibration").ids[:4] == ("synthetic-16", "synthetic-22", "synthetic-31", "synthetic-39")


def test_reduced_corpora_have_the_most_frequent_labels():
    corpus = made(6, [{"a"}, {"a", "b"}, {"b"}, {"c"}, {"d"}, {"c", "d"}]).with_parts(
        {"train": [0, 1, 3], "test": [2, 4, 5]}
    )
    smaller = reduce_labels(corpus, 3)  # c and d occur equally often, c first
    assert smaller.label_names == ("a", "b", "c")
    assert smaller.ids == ("0", "1", "2", "3", "5")
    assert smaller.label_sets[-1] == {"c"}
    assert smaller.part_sizes == {"train": 3, "test": 2}
    assert smaller.name == "made3"
    with pytest.raises(InvalidInputError, match="n_labels"):
        reduce_labels(corpus, 9)


def test_the_synthetic_corpus_is_the_same_everywhere():
    corpus = generate_synthetic(200, seed=7)
    assert (
        corpus.fingerprint() == generate_synthetic(200, seed=7).fingerprint() != generate_synthetic(200).fingerprint()
    )
    counts = corpus.labels.toarray().sum(axis=0)
    assert counts[0] > counts[10]
    assert 1 < counts.sum() / 200 < 2
    assert generate_synthetic(50, n_labels=40).label_names[30] == "subject-31"
    with pytest.raises(InvalidInputError, match="n_labels"):
        generate_synthetic(n_labels=1)
