"""The hybrid classifier with a tiny encoder: vectors beside terms, kept by text, saved with the encoder."""

from __future__ import annotations

import numpy as np
import pytest

from surelabel.exceptions import ArtifactError
from surelabel.text import load, make
from surelabel.text.embedding import TransformersEmbedder

SETTINGS = {"loss": "svm", "inverse_regularisation": 1.0, "max_tokens": 16}


def test_learns_and_saves_the_encoder(topical, tiny_encoder, tmp_path, monkeypatch):
    monkeypatch.setenv("SURELABEL_CACHE", str(tmp_path / "cache"))
    (texts, labels), (new_texts, new_labels) = topical
    classifier = make("hybrid", model=str(tiny_encoder), **SETTINGS).fit(texts, labels)
    probabilities = classifier.predict_proba(new_texts)
    assert ((probabilities >= 0.5) == new_labels).mean() > 0.75
    assert classifier._scores.weights.shape[0] == classifier._terms.n_features + 16
    assert np.abs(classifier._scores.weights[-16:]).max() > 0
    classifier.save(tmp_path / "saved")
    monkeypatch.setenv("SURELABEL_CACHE", str(tmp_path / "other"))
    assert load(tmp_path / "saved").predict_proba(new_texts) == pytest.approx(probabilities, abs=1e-5)
    (tmp_path / "saved" / "centre.npz").unlink()
    with pytest.raises(ArtifactError, match=r"centre\.npz is missing"):
        load(tmp_path / "saved")


def test_vectors_have_length_one_and_padding_does_not_matter(tiny_encoder):
    embedder = TransformersEmbedder.of_model(str(tiny_encoder), 16, None)
    texts = ["wheat corn harvest", "gold", "", "oil barrel crude pipeline opec petrol"]
    vectors = embedder(texts)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-5)
    assert np.vstack([embedder([text]) for text in texts]) == pytest.approx(vectors, abs=1e-5)
    assert embedder([]).shape == (0, 16)


def test_a_text_is_computed_once(tiny_encoder, tmp_path, monkeypatch):
    computed = []
    original = TransformersEmbedder._computed
    monkeypatch.setattr(
        TransformersEmbedder,
        "_computed",
        lambda self, texts, advance: computed.append(texts) or original(self, texts, advance),
    )
    embedder = TransformersEmbedder.of_model(str(tiny_encoder), 16, tmp_path)
    first = embedder(["gold mine", "wheat", "gold mine"])
    again = TransformersEmbedder.of_model(str(tiny_encoder), 16, tmp_path)(["wheat", "gold mine", "oil"])
    assert computed == [["gold mine", "wheat"], ["oil"]]
    assert np.array_equal(again[:2], first[[1, 0]])
    TransformersEmbedder.of_model(str(tiny_encoder), 4, tmp_path)(["wheat"])
    assert computed[-1] == ["wheat"], "another number of tokens is another encoder"


def test_what_was_computed_before_an_interruption_is_kept(tiny_encoder, tmp_path, monkeypatch):
    texts = ["gold", "wheat", "oil", "corn", "mine"]
    monkeypatch.setattr("surelabel.text.embedding._KEPT_AT_A_TIME", 2)
    expected = TransformersEmbedder.of_model(str(tiny_encoder), 16, None)(texts)
    original = TransformersEmbedder._computed
    computed = []

    def stopped(self, some, advance):
        if "oil" in some and not computed.count(some):
            computed.append(some)
            raise KeyboardInterrupt
        computed.append(some)
        return original(self, some, advance)

    monkeypatch.setattr(TransformersEmbedder, "_computed", stopped)
    embedder = TransformersEmbedder.of_model(str(tiny_encoder), 16, tmp_path)
    with pytest.raises(KeyboardInterrupt):
        embedder(texts)
    assert embedder(texts) == pytest.approx(expected, abs=1e-6)
    assert computed == [["gold", "wheat"], ["oil", "corn"], ["oil", "corn"], ["mine"]]


def test_damaged_vectors_are_computed_anew(tiny_encoder, tmp_path):
    embedder = TransformersEmbedder.of_model(str(tiny_encoder), 16, tmp_path)
    first = embedder(["gold"])
    (file,) = tmp_path.rglob("*.npz")
    file.write_bytes(b"damaged")
    assert np.array_equal(embedder(["gold"]), first)
