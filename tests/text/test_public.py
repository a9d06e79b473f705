"""The public names, and what importing them loads."""

from __future__ import annotations

import subprocess
import sys

import pytest

import surelabel.text


def test_names():
    assert surelabel.text.__all__ == [
        "BertClassifier",
        "BertSettings",
        "BlendClassifier",
        "BlendSettings",
        "CnnSettings",
        "Explanation",
        "HybridClassifier",
        "HybridSettings",
        "LinearClassifier",
        "LinearSettings",
        "RandinitClassifier",
        "TextClassifier",
        "Thresholds",
        "Word2vecClassifier",
        "Word2vecSettings",
        "WordWeight",
        "load",
        "make",
        "probabilities_of",
    ]
    assert all(hasattr(surelabel.text, name) for name in surelabel.text.__all__)
    assert dir(surelabel.text) == surelabel.text.__all__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        surelabel.text.nothing  # noqa: B018


def test_linear_works_without_torch():
    code = """
import sys
import surelabel.text
assert not {"torch", "transformers", "sklearn"} & set(sys.modules)
classifier = surelabel.text.make("linear", min_texts=1)
classifier.fit(["wheat up", "gold down", "wheat", "gold"], [[1, 0], [0, 1], [1, 0], [0, 1]])
classifier.predict_proba(["gold"])
assert not {"torch", "transformers", "tokenizers", "gensim"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
