"""Words: lower-case, no punctuation, numbers to one token; a vocabulary of the most frequent."""

from __future__ import annotations

import time

import pytest

from surelabel.exceptions import ArtifactError
from surelabel.text.tokenisation import (
    encode,
    frequent_words,
    known_words,
    read_tokenizer,
    read_words,
    shares_of_words,
    train_word_tokenizer,
    words,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The WHEAT, harvest!", ["the", "wheat", "harvest"]),
        ("1987 3.5 1,000 3/4 12:30", ["0"] * 5),
        ("mid-1987", ["mid", "0"]),
        ("don't don\u2019t", ["don't", "don\u2019t"]),
        (
            "P\u0159\u00edli\u0161 \u017dlu\u0165ou\u010dk\u00fd k\u016f\u0148",
            ["p\u0159\u00edli\u0161", "\u017elu\u0165ou\u010dk\u00fd", "k\u016f\u0148"],
        ),
        ("", []),
        ("... --- !!!", []),
        ("snake_case x", ["snake", "case", "x"]),
    ],
)
def test_words(text, expected):
    assert words([text]) == [expected]


def test_vocabulary_keeps_the_most_frequent_and_breaks_ties_by_alphabet():
    tokenizer = train_word_tokenizer(["b b b a a d c", "d c 5 6 7 8"], 4, 100)
    assert tokenizer.get_vocab() == {"[PAD]": 0, "[OOV]": 1, "0": 2, "b": 3, "a": 4, "c": 5}
    assert encode(tokenizer, ["a z 99 b", ""])[0].tolist() == [4, 1, 2, 3]
    assert encode(tokenizer, [""])[0].tolist() == []


def test_maximum_length():
    tokenizer = train_word_tokenizer(["a b c"], 10, 2)
    assert len(encode(tokenizer, ["a b c a b c"])[0]) == 2


def test_long_texts_are_read_as_far_as_needed_and_no_further():
    tokenizer = train_word_tokenizer(["wheat corn"], 10, 20)
    start = time.perf_counter()
    ids = encode(tokenizer, ["wheat corn " * 1_000_000])[0]
    assert time.perf_counter() - start < 1
    assert ids.tolist() == encode(tokenizer, ["wheat corn " * 10])[0].tolist()
    after_dashes = encode(tokenizer, ["-" * 5_000 + " wheat " + " " * 5_000 + "corn"])[0]
    assert after_dashes.tolist() == encode(tokenizer, ["wheat corn"])[0].tolist()


def test_tokenizer_file_that_is_none(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ArtifactError, match="not a tokenizer"):
        read_tokenizer(tmp_path / "tokenizer.json")


def test_known_words_of_a_word_vocabulary_by_hand():
    tokenizer = train_word_tokenizer(["wheat and corn 3"], 4, 5)
    assert known_words(tokenizer, ["Wheat corn", "wheat qwer", "1,000 asdf", "", "..."]) == [1.0, 0.5, 0.5, 0.0, 0.0]
    # Only as many words as the classifier reads count.
    assert known_words(tokenizer, ["wheat " * 5 + "qwer " * 50]) == [1.0]


def test_known_words_of_training_texts(tmp_path):
    vocabulary = frequent_words(["Wheat and corn", "corn"])
    assert vocabulary == {"wheat", "and", "corn"}
    assert shares_of_words(["CORN qwer", "", "wheat and"], vocabulary) == [0.5, 0.0, 1.0]
    assert read_words(tmp_path / "none.json") is None
    (tmp_path / "words.json").write_text('["corn", 3]')
    with pytest.raises(ValueError, match="not a list of words"):
        read_words(tmp_path / "words.json")
