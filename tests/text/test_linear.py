"""The linear classifier: what it learns, labels it cannot learn, bit-equal after saving."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from surelabel.exceptions import ArtifactError, DataWarning
from surelabel.text import load, make


def test_learns(topical):
    (texts, labels), (new_texts, new_labels) = topical
    probabilities = make("linear").fit(texts, labels).predict_proba(new_texts)
    assert probabilities.dtype == np.float64
    assert probabilities.shape == new_labels.shape
    # Half of a text's topic is one pool of words, half filler: not every topic shows.
    assert ((probabilities >= 0.5) == new_labels).mean() > 0.75


def test_labels_that_cannot_be_learnt_get_a_constant(topical):
    (texts, labels), (new_texts, _) = topical
    wide = np.column_stack([labels, np.zeros(len(labels)), np.ones(len(labels))])
    with pytest.warns(DataWarning, match="Of 5 labels 1 have no and 1 only positive"):
        classifier = make("linear").fit(texts, wide)
    probabilities = classifier.predict_proba(new_texts)
    assert np.allclose(probabilities[:, 3], 1 / 122)
    assert np.allclose(probabilities[:, 4], 121 / 122)


def test_one_label_only(topical):
    (texts, labels), (new_texts, _) = topical
    assert make("linear").fit(texts, labels[:, :1]).predict_proba(new_texts).shape == (40, 1)


def test_texts_without_words(topical):
    (texts, labels), _ = topical
    with pytest.warns(DataWarning, match="empty"):
        nothing = make("linear").fit(["", " "], [[1], [0]])
    assert nothing.predict_proba(["wheat"]).tolist() == [[0.5]]
    classifier = make("linear").fit(texts, labels)
    with pytest.warns(DataWarning, match="1 of 1 texts"):
        assert np.isfinite(classifier.predict_proba([""])).all()
    assert classifier.predict_proba([]).shape == (0, 3)


def test_saved_is_equal_to_the_last_bit_in_any_batch(topical, tmp_path):
    (texts, labels), (new_texts, _) = topical
    classifier = make("linear").fit(texts, labels, label_names=["grain", "metal", "oil"])
    classifier.save(tmp_path / "saved")
    again = load(tmp_path / "saved")
    probabilities = classifier.predict_proba(new_texts)
    assert again.label_names_ == ("grain", "metal", "oil")
    assert np.array_equal(again.predict_proba(new_texts), probabilities)
    alone = np.vstack([again.predict_proba([text]) for text in new_texts])
    assert np.array_equal(alone, probabilities)


def test_same_seed_same_weights(topical):
    (texts, labels), (new_texts, _) = topical
    one, other = (make("linear").fit(texts, labels).predict_proba(new_texts) for _ in range(2))
    assert np.array_equal(one, other)


def test_refitting_forgets_the_first_fit(topical):
    (texts, labels), _ = topical
    classifier = make("linear").fit(texts, labels)
    classifier.predict_proba(texts[:1])
    classifier.fit(["alpha beta", "gamma delta"] * 3, [[1], [0]] * 3)
    assert classifier.predict_proba(["alpha"])[0, 0] > 0.5 > classifier.predict_proba(["delta"])[0, 0]


def test_arrays_that_do_not_fit(topical, tmp_path):
    (texts, labels), _ = topical
    make("linear").fit(texts, labels).save(tmp_path / "saved")
    make("linear").fit(texts[:9], labels[:9]).save(tmp_path / "other")
    classifier = make("linear")
    classifier.n_labels_ = 3
    (tmp_path / "other" / "vocabulary.json").replace(tmp_path / "saved" / "vocabulary.json")
    with pytest.raises(ArtifactError, match="do not fit together"):
        classifier._read(tmp_path / "saved")


def test_fits_at_the_same_time_are_repeatable():
    rng = np.random.default_rng(0)
    words = [f"word{i}" for i in range(60)]
    texts = [" ".join(rng.choice(words, 12)) for _ in range(120)]
    labels = rng.random((120, 6)) < 0.3

    def fit(_):
        return make("linear", min_texts=1).fit(texts, labels).predict_proba(texts)

    first = fit(0)
    with ThreadPoolExecutor(4) as threads:
        for again in threads.map(fit, range(4)):
            assert np.array_equal(first, again)
