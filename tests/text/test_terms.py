"""TF-IDF against its formula, and the known words of a bundle."""

import numpy as np
import pytest

from surelabel.exceptions import ArtifactError, InvalidInputError
from surelabel.text import KnownWords
from surelabel.text.terms import Terms

SETTINGS = {"pair_weight": 0.5, "min_texts": 1, "max_features": 1_000, "language": None, "lemmas": None}


def test_weights_by_hand():
    terms = Terms(**SETTINGS)
    features = terms.fit(["gold gold oil", "oil"]).toarray()
    assert terms.vocabulary == ["gold", "gold gold", "gold oil", "oil"]
    rare = np.log(3 / 2) + 1
    words = np.array([(1 + np.log(2)) * rare, 1.0])
    pairs = np.array([rare, rare])
    expected = [*(words / np.linalg.norm(words)), *(0.5 * pairs / np.linalg.norm(pairs))]
    np.testing.assert_allclose(features[0, [0, 3, 1, 2]], expected, rtol=1e-6)
    np.testing.assert_allclose(features[1], [0, 0, 0, 1])


def test_new_texts_are_weighed_as_training_texts():
    texts = ["Gold, oil and gold.", "", "Oil's price 12", "nothing known"]
    terms = Terms(**SETTINGS)
    np.testing.assert_array_equal(terms.fit(texts).toarray(), terms.transform(texts).toarray())
    assert terms.transform(["unseen words"]).nnz == 0


def test_rare_terms_are_left_out():
    terms = Terms(**{**SETTINGS, "min_texts": 2, "max_features": 1})
    terms.fit(["gold oil", "gold oil", "gold"])
    assert terms.vocabulary == ["gold"]


def test_stems_and_lemmas_exclude_each_other():
    with pytest.raises(InvalidInputError, match="not both"):
        Terms(**{**SETTINGS, "language": "czech", "lemmas": "cs"})


def test_known_words():
    known = KnownWords.from_texts(["Wheat and corn", "ŠKODA 12"])
    np.testing.assert_allclose(known.share(["corn, gold", "škoda", "?!", "gold"]), [0.5, 1.0, np.nan, 0.0])
    assert known.share([]).shape == (0,)
    assert np.isnan(KnownWords.from_texts([]).share([""])).all()


def test_known_words_are_saved_as_hashes(tmp_path):
    path = tmp_path / "known.npz"
    KnownWords.from_texts(["secretword here"]).save(path)
    assert b"secretword" not in path.read_bytes()
    np.testing.assert_array_equal(KnownWords.load(path).share(["secretword other"]), [0.5])


def test_other_files_are_no_known_words(tmp_path):
    from surelabel._core.files import write_arrays

    for number, hashes in enumerate([np.array([3, 1], dtype=np.uint64), np.array([1.5]), np.zeros((2, 2), np.uint64)]):
        path = tmp_path / f"{number}.npz"
        write_arrays(path, {"kind": "known words"}, {"hashes": hashes})
        with pytest.raises(ArtifactError, match="hashes"):
            KnownWords.load(path)
