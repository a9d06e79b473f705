"""The linear classifier: what it learns, labels it cannot learn, bit-equal after saving."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.special

from surelabel.exceptions import ArtifactError, DataWarning, InvalidInputError
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
    with pytest.warns(DataWarning, match="Of 5 labels, 1 have no and 1 have only positive"):
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


def test_arrays_that_do_not_fit(topical, tmp_path, load_changed):
    (texts, labels), _ = topical
    make("linear").fit(texts, labels).save(tmp_path / "saved")
    make("linear").fit(texts[:9], labels[:9]).save(tmp_path / "other")
    (tmp_path / "other" / "vocabulary.json").replace(tmp_path / "saved" / "vocabulary.json")
    with pytest.raises(ArtifactError, match="do not fit together"):
        load_changed(tmp_path / "saved")


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


def test_loss_and_regularisation_are_chosen_on_the_validation_texts(topical):
    (texts, labels), (new_texts, new_labels) = topical
    classifier = make("linear").fit(texts, labels, validation=(new_texts, new_labels))
    tried = classifier.history_
    assert [one["inverse_regularisation"] for one in tried][:2] == [1.0, 0.3]
    assert tried[-1]["is_logistic"] == 1.0
    lowest = min(tried, key=lambda one: one["log_loss"])
    loss = "logistic" if lowest["is_logistic"] else "svm"
    alone = make("linear", loss=loss, inverse_regularisation=lowest["inverse_regularisation"])
    alone.fit(texts, labels, validation=(new_texts, new_labels))
    assert len(alone.history_) == 1
    assert np.array_equal(alone.predict_proba(new_texts), classifier.predict_proba(new_texts))


def test_without_validation_texts_the_weights_are_of_all_training_texts(topical):
    (texts, labels), _ = topical
    whole = make("linear", loss="svm", inverse_regularisation=1.0).fit(texts, labels)
    given = make("linear", loss="svm", inverse_regularisation=1.0).fit(texts, labels, validation=(texts, labels))
    assert np.array_equal(whole._scores.weights, given._scores.weights)
    assert not np.array_equal(whole._curve.coefficients, given._curve.coefficients)


def test_stems_and_characters_are_saved(topical, tmp_path):
    (texts, labels), (new_texts, _) = topical
    classifier = make("linear", language="english", character_weight=0.5, loss="svm", inverse_regularisation=1.0)
    classifier.fit(texts, labels)
    assert "compani" in classifier._terms.vocabulary
    assert "harve" in classifier._terms.characters
    classifier.save(tmp_path / "saved")
    assert np.array_equal(load(tmp_path / "saved").predict_proba(new_texts), classifier.predict_proba(new_texts))
    with pytest.raises(InvalidInputError, match=r"'language' setting must be one of .*czech.* Got 'klingon'"):
        make("linear", language="klingon").fit(texts, labels)


def test_czech_forms_of_a_word_have_one_stem():
    classifier = make("linear", language="czech", min_texts=1)
    classifier.fit(["knihovna pro hry", "knihovny", "editor"] * 3, [[1], [1], [0]] * 3)
    assert classifier.predict_proba(["knihovnou"])[0, 0] > classifier.predict_proba(["editor"])[0, 0]
    assert "knihovna" not in classifier._terms.vocabulary


def test_older_classifiers_have_no_curve(topical, tmp_path, load_changed):
    (texts, labels), (new_texts, _) = topical
    make("linear").fit(texts, labels).save(tmp_path / "saved")
    with np.load(tmp_path / "saved" / "linear.npz") as arrays:
        old = {name: arrays[name] for name in ("idf", "weights", "intercepts")}
    np.savez(tmp_path / "saved" / "linear.npz", **old)
    classifier = load_changed(tmp_path / "saved")
    features = classifier._terms.transform(new_texts)
    logits = np.asarray(features @ old["weights"], dtype=np.float64) + old["intercepts"]
    assert classifier._predict(new_texts, None) == pytest.approx(scipy.special.expit(logits))


def test_known_words_by_hand():
    classifier = make("linear", min_texts=1).fit(["wheat and corn", "gold"], [[1, 0], [0, 1]])
    shares = classifier.known_words(["Wheat AND corn", "wheat qwer", "asdf qwer", "", "!?", "\U0001f600"])
    assert shares[:3].tolist() == [1.0, 0.5, 0.0]
    assert np.isnan(shares[3:]).all()
    assert classifier.knows_words
