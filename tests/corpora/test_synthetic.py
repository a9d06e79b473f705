import numpy as np
import pytest

from surelabel.corpora import generate_synthetic
from surelabel.exceptions import InvalidInputError


def test_is_the_same_on_every_machine():
    assert (
        generate_synthetic(200, 40, seed=3).fingerprint()
        == "128e8a6190cb93e715c84eb3b6476ab4a0ec973ebe1b57280adabced700e11dd"
    )


def test_seeds_differ():
    assert generate_synthetic(20, seed=0).texts != generate_synthetic(20, seed=1).texts


def test_has_a_long_tail():
    counts = generate_synthetic(3000).labels.sum(axis=0)
    assert counts[0] > 8 * counts[-1] > 0


def test_labels_of_a_family_occur_together():
    labels = generate_synthetic(5000).labels.astype(int)
    together = labels.T @ labels
    # Labels 0, 6, 12 and 18 are one family; 7 is as frequent as 6, and of another.
    assert together[0, 6] > 2 * together[0, 7]


def test_texts_carry_their_labels():
    corpus = generate_synthetic(300)
    oil = corpus.label_names.index("oil")
    has_word = np.array(["crude" in text or "barrel" in text.lower() for text in corpus.texts])
    with_label = corpus.labels[:, oil]
    assert has_word[with_label].mean() > 5 * has_word[~with_label].mean()


def test_many_labels_have_words_of_their_own():
    corpus = generate_synthetic(50, 1000)
    assert len(set(corpus.label_names)) == 1000


@pytest.mark.parametrize("bad", [{"n_texts": 0}, {"n_labels": 1}, {"seed": -1}, {"n_texts": 2.5}, {"seed": True}])
def test_bad_settings(bad):
    with pytest.raises(InvalidInputError, match=f"'{next(iter(bad))}' parameter of the synthetic corpus must be"):
        generate_synthetic(**bad)
