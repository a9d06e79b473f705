"""The CNNs' words, and encoding that reads no more of a text than it needs."""

import numpy as np
import pytest

from surelabel.exceptions import ArtifactError


def test_words_are_lower_case_without_punctuation_and_numbers_are_one_token():
    from surelabel.text.tokens import words

    assert words(["Gold rose 3.5%, said O'Neil (on 12/10)!", "", "Cafe\u0301 \u0160koda"]) == [
        ["gold", "rose", "0", "said", "o'neil", "on", "0"],
        [],
        ["caf\u00e9", "\u0161koda"],
    ]


def test_the_vocabulary_has_the_most_frequent_words():
    from surelabel.text.tokens import encode, train_word_tokenizer

    tokenizer = train_word_tokenizer(["gold gold oil", "oil gold wheat"], 2, max_words=3)
    assert [ids.tolist() for ids in encode(tokenizer, ["gold oil wheat gold", "?"])] == [[2, 3, 1], []]


@pytest.mark.parametrize("text", ["word " * 5_000, "x" * 50_000, " " * 10_000 + "end", "a,b;" * 9_000])
def test_long_texts_are_cut_as_if_they_were_read(text):
    from surelabel.text.tokens import encode, train_word_tokenizer

    tokenizer = train_word_tokenizer(["word end a b x"], 10, max_words=4)
    expected = tokenizer.encode(text).ids
    assert encode(tokenizer, [text])[0].tolist() == expected


def test_batches_are_of_similar_length():
    from surelabel.text.tokens import padded_batches

    ids = [np.arange(n, dtype=np.int32) for n in (3, 0, 9, 4, 2)]
    batches = [(rows.tolist(), batch["input_ids"].shape) for rows, batch in padded_batches(ids, max_tokens=10)]
    assert batches == [([2], (1, 9)), ([3, 0], (2, 4)), ([4, 1], (2, 2))]


def test_a_file_that_is_no_tokenizer(tmp_path):
    from surelabel.text.tokens import read_tokenizer

    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ArtifactError, match="tokenizer"):
        read_tokenizer(tmp_path / "tokenizer.json")
