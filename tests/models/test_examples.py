"""Three texts in words."""

import dataclasses

import pytest

from bundle_cases import corpus, small_bundle
from surelabel.answers import Answer
from surelabel.models import worked_examples
from surelabel.models.demonstration import demonstration_corpus
from surelabel.models.examples import in_words

ANSWER = Answer(("grain", "wheat"), 0.9, 0.6, "0.05", 6, (6, 6), 10**17, ("grain",), ("corn", "wheat"), ())


def test_examples_show_three_different_texts():
    texts = corpus().part("test").texts
    examples = worked_examples(small_bundle(), small_bundle().predict_proba(texts), texts)
    assert len({example.row for example in examples}) == len(examples) >= 2
    sure = examples[0]
    assert sure.answer.size == 1
    assert "Only one label-set" in sure.words
    for example in examples:
        assert example.answer == small_bundle().answers([texts[example.row]], significance="0.05", top=3)[0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {},
            "6 label-sets of 1.0 × 10^17 are plausible at significance 0.05; certain: grain; open: ",
        ),
        ({"certain": ()}, "nothing is certain"),
        ({"size": None, "size_bounds": (6, 10**9)}, "6 to 1.0 × 10^9 label-sets"),
        ({"size": 0, "size_bounds": (0, 0), "credibility": 0.01}, "a person should read it"),
        ({"size": 1, "size_bounds": (1, 1), "open": ()}, "This is not yet a certificate to file it without a person."),
        ({"size": 1, "size_bounds": (1, 1), "credibility": 0.06}, "But its credibility is low"),
        ({"open": tuple(f"l{k}" for k in range(30))}, "l9 and 20 more"),
        ({"certain": (), "size": 1, "size_bounds": (1, 1)}, "no label"),
    ],
)
def test_words(change, words):
    assert words in in_words(dataclasses.replace(ANSWER, **change))


def test_the_demonstration_needs_no_web(tmp_path, monkeypatch):
    monkeypatch.delenv("SURELABEL_DATA", raising=False)
    monkeypatch.setenv("SURELABEL_CACHE", str(tmp_path))
    found, reason = demonstration_corpus(download=False)
    assert found.name == "synthetic"
    assert "not on this machine" in reason


def test_the_demonstration_does_not_wait_for_ever(monkeypatch):
    import threading

    waiting = threading.Event()
    load = __import__("surelabel.corpora", fromlist=["load"]).load

    def slow(name, **options):
        if name == "reuters":
            waiting.wait(20)
        return load("synthetic", n_texts=100)

    monkeypatch.setattr("surelabel.models.demonstration.corpora.load", slow)
    found, reason = demonstration_corpus(seconds=0.05)
    waiting.set()
    assert found.name == "synthetic"
    assert "within 0 seconds" in reason


def test_labels_that_are_not_named_are_counted():
    many = dataclasses.replace(ANSWER, n_more_open=12_345)
    assert "open: corn, wheat and 12,345 more." in in_words(many)
    assert "open: any of 12,345 labels." in in_words(dataclasses.replace(many, open=()))
