import hashlib
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from iterstrat.ml_stratifiers import IterativeStratification
from scipy import sparse

from surelabel.corpora import Corpus, Split, generate_synthetic, load, split
from surelabel.corpora.splits import _adjusted, _stratified
from surelabel.exceptions import CorpusError, DataWarning, InvalidInputError


def corpus_of(label_sets, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        return Corpus.from_label_sets("c", [f"text {i}" for i in range(len(label_sets))], label_sets, **settings)


def test_two_labels_are_halved():
    corpus = split(corpus_of([{"a"}] * 8 + [{"b"}] * 4), calibration=6)
    counts = corpus.part("calibration").labels.sum(axis=0)
    assert counts.tolist() == [4, 2]
    assert corpus.part("train").labels.sum(axis=0).tolist() == [4, 2]
    assert corpus.split == Split({"calibration": 6}, 0, True)


def test_a_lone_label_stays_in_training():
    for seed in range(20):
        corpus = split(corpus_of([{"a"}] * 9 + [{"rare"}]), calibration=8, seed=seed)
        assert "9" in corpus.part("train").ids


def test_sizes_are_exact_and_parts_disjoint():
    corpus = split(generate_synthetic(500), test=0.2, validation=33, calibration=99, seed=3)
    assert {name: len(rows) for name, rows in corpus.parts.items()} == {
        "train": 268,
        "validation": 33,
        "calibration": 99,
        "test": 100,
    }
    assert sorted(np.concatenate(list(corpus.parts.values()))) == list(range(500))


def test_own_parts_are_kept():
    own = generate_synthetic(100).with_parts({"train": range(60), "test": range(60, 100)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        corpus = split(own, calibration=19)
    assert corpus.parts["test"].tolist() == list(range(60, 100))
    assert set(corpus.parts["calibration"]) < set(range(60))


def test_the_same_seed_gives_the_same_split_on_every_machine():
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    corpus = load("synthetic", n_texts=400, n_labels=30, seed=5)
    ids = "|".join(",".join(corpus.part(name).ids) for name in corpus.parts)
    assert (
        hashlib.sha256(ids.encode()).hexdigest() == "ba90d3bf80c4cc3f9c23788352664679167b29e4ca8ce94a5884a54f4959e70e"
    )
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


def test_seeds_differ():
    whole = generate_synthetic(200)
    first, second = (split(whole, calibration=50, seed=seed).part("calibration").ids for seed in (0, 1))
    assert first != second


@pytest.mark.parametrize("stratified", [True, False])
def test_stratified_is_nearer_to_the_shares(stratified):
    whole = generate_synthetic(1000)
    distances = []
    for seed in range(5):
        corpus = split(whole, calibration=200, seed=seed, stratified=stratified)
        shares = corpus.part("calibration").labels.sum(axis=0) - 0.2 * whole.labels.sum(axis=0)
        distances.append(np.abs(shares).sum())
    assert (float(np.mean(distances)) < 15) is stratified


def test_uniform_draw_has_exact_size():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        corpus = split(generate_synthetic(50), calibration=19, stratified=False)
    assert len(corpus.part("calibration")) == 19


@settings(max_examples=60, deadline=None)
@given(
    label_sets=st.lists(st.sets(st.sampled_from("abcde"), max_size=3), min_size=4, max_size=30).filter(
        lambda sets: len({label for labels in sets for label in labels}) > 1
    ),
    share=st.floats(0.05, 0.9),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_draw_is_exact_and_loses_nothing(label_sets, share, seed):
    size = min(max(1, int(share * len(label_sets))), len(label_sets) - 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        corpus = split(corpus_of(label_sets), calibration=size, seed=seed)
    assert len(corpus.part("calibration")) == size
    assert sorted([*corpus.parts["train"], *corpus.parts["calibration"]]) == list(range(len(label_sets)))


@settings(max_examples=60, deadline=None)
@given(n_texts=st.integers(2, 50), n_labels=st.integers(1, 8), frequent=st.floats(0, 1), seed=st.integers(0, 10**6))
def test_stratification_draws_what_the_library_draws(n_texts, n_labels, frequent, seed):
    rng = np.random.default_rng(seed)
    labels = rng.random((n_texts, n_labels)) < frequent
    size = int(rng.choice([n_texts // 2, rng.integers(1, n_texts)]))
    ours, theirs = np.random.RandomState(seed), np.random.RandomState(seed)
    folds = IterativeStratification(labels=labels, r=np.array([n_texts - size, size]) / n_texts, random_state=theirs)
    assert np.array_equal(_stratified(sparse.csr_array(labels), size, ours), folds == 1)
    assert ours.randint(2**31 - 1) == theirs.randint(2**31 - 1)  # as many lots were drawn


def test_adjustment_moves_the_text_that_helps_most():
    # Three a and one b are drawn where 2 + 1 are wanted: an a goes back, the first one.
    strata = sparse.csr_array([[1, 0], [1, 0], [1, 0], [0, 1], [1, 0], [0, 1], [0, 1], [0, 1]], dtype=bool)
    drawn = np.array([1, 1, 1, 1, 0, 0, 0, 0], dtype=bool)
    assert np.flatnonzero(_adjusted(drawn, strata, 3)).tolist() == [1, 2, 3]
    # From a and nothing else to two texts: a b comes.
    drawn = np.array([1, 0, 0, 0, 0, 0, 0, 0], dtype=bool)
    assert np.flatnonzero(_adjusted(drawn, strata, 2)).tolist() == [0, 3]


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (
            {"calibration": 50},
            "must leave at least one text for training. Got calibration 50, 50 in all, from 50",
        ),
        ({"test": 0.5, "validation": 0.6}, "Got test 25, validation 30, 55 in all, from 50 texts"),
        ({"calibration": 10**9}, "1,000,000,000 in all"),
    ],
)
def test_larger_than_the_corpus(sizes, message):
    with pytest.raises(CorpusError, match=message):
        split(generate_synthetic(50), **sizes)


@pytest.mark.parametrize("size", [-1, 1.0, -0.1, "10", True, float("nan"), None])
def test_what_is_no_size(size):
    whole = generate_synthetic(50)
    if size is None:
        assert split(whole, calibration=None) is whole
        return
    with pytest.raises(InvalidInputError, match="'calibration' parameter of split must be"):
        split(whole, calibration=size)


@pytest.mark.parametrize("seed", [-1, 2**32, 1.5, "0", True, None])
def test_what_is_no_seed(seed):
    with pytest.raises(InvalidInputError, match="'seed' parameter of split must be"):
        split(generate_synthetic(50), calibration=9, seed=seed)


def test_parts_must_not_be_there_already():
    corpus = split(generate_synthetic(50), calibration=9)
    with pytest.raises(CorpusError, match=r"'calibration' part .* must not be there"):
        split(corpus, calibration=9)
    without = corpus.with_parts({"test": range(50)})
    with pytest.raises(CorpusError, match="drawn from the 'train' part"):
        split(without, calibration=9)


def test_a_label_that_training_never_saw_is_said():
    corpus = corpus_of([{"a"}, {"b"}, {"new"}], parts={"train": [0, 1], "test": [2]})
    with pytest.warns(DataWarning, match="1 labels of the 'test' part .* do not occur .*: 'new'"):
        split(corpus)


def test_very_many_labels_are_balanced_by_the_frequent_ones():
    sets = [{f"rare-{i}", "a" if i % 2 else "b"} for i in range(1500)]
    with pytest.warns(DataWarning, match="300 labels of the 'calibration' part"):
        corpus = split(corpus_of(sets), calibration=300)
    counts = corpus.part("calibration").label_matrix.sum(axis=0)
    frequent = [corpus.label_names.index(name) for name in "ab"]
    assert [int(counts[label]) for label in frequent] == [150, 150]
