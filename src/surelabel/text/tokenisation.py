"""Words for the CNNs: lower-case, punctuation dropped, numbers to one token (section 3.1 of the paper)."""

from __future__ import annotations

import collections
import itertools
import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

from surelabel.exceptions import ArtifactError

PADDING, OOV, NUMBER = "[PAD]", "[OOV]", "0"
"""Reserved tokens: ids 0 and 1, and the token that every number becomes."""

_CHARACTERS_A_TOKEN = 32
# How many words of training texts are kept, and how many characters of a text are compared with them.
_WORDS_KEPT, _CHARACTERS_READ = 100_000, 20_000


def _word_tokenizer(model: Any) -> Tokenizer:
    """Return a tokenizer that splits into words over a vocabulary model."""
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.NFC(),
            normalizers.Lowercase(),
            normalizers.Replace(Regex(r"\p{N}+(?:[.,:/]\p{N}+)*"), f" {NUMBER} "),
        ]
    )
    word = r"[\p{L}\p{M}]+(?:['\u2019][\p{L}\p{M}]+)*"
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(rf"{word}|{NUMBER}"), behavior="removed", invert=True)
    return tokenizer


def train_word_tokenizer(texts: Sequence[str], vocabulary_size: int, max_words: int) -> Tokenizer:
    """Return a tokenizer with two reserved tokens and the most frequent words of training texts; ties by alphabet."""
    tokenizer = _word_tokenizer(models.WordLevel(vocab={PADDING: 0, OOV: 1}, unk_token=OOV))
    trainer = trainers.WordLevelTrainer(
        vocab_size=vocabulary_size + 2, special_tokens=[PADDING, OOV], show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.enable_truncation(max_words)
    return tokenizer


def words(texts: Sequence[str]) -> list[list[str]]:
    """Return the words of each text, before any vocabulary."""
    splitter = _word_tokenizer(models.WordLevel(vocab={OOV: 0}, unk_token=OOV))
    normalizer, pre_tokenizer = splitter.normalizer, splitter.pre_tokenizer
    return [[word for word, _ in pre_tokenizer.pre_tokenize_str(normalizer.normalize_str(text))] for text in texts]


def encode(tokenizer: Tokenizer, texts: Sequence[str]) -> list[npt.NDArray[np.int32]]:
    """Return the token ids of each text, cut at the tokenizer's own truncation."""
    # Of a long text only as much is read as the limit needs: megabytes cost no more than a page.
    limit = _limit(tokenizer)
    beginnings = [_beginning(text, limit) for text in texts]
    ids = [encoding.ids for encoding in tokenizer.encode_batch_fast(beginnings)]
    for index, text in enumerate(texts):
        # If the beginning did not fill the limit (long runs of spaces or signs), the rest is needed.
        if len(beginnings[index]) < len(text) and len(ids[index]) < limit:
            ids[index] = tokenizer.encode(text).ids
    return [np.asarray(one, dtype=np.int32) for one in ids]


def encode_with_places(tokenizer: Tokenizer, text: str) -> Any:
    """Return the encoding of a text with the places of its tokens, cut as `encode` cuts it."""
    limit = _limit(tokenizer)
    beginning = _beginning(text, limit)
    encoding = tokenizer.encode(beginning)
    is_filled = len(beginning) == len(text) or len(encoding.ids) >= limit
    return encoding if is_filled else tokenizer.encode(text)


def known_words(tokenizer: Tokenizer, texts: Sequence[str]) -> list[float]:
    """Return the share of each text's words that a tokenizer knows: a word counts 1 / (number of its pieces)."""
    reach = _limit(tokenizer) * _CHARACTERS_A_TOKEN
    unknown = tokenizer.token_to_id(getattr(tokenizer.model, "unk_token", None) or OOV)
    return [
        _share_known(encoding.word_ids, encoding.ids, unknown)
        for encoding in tokenizer.encode_batch([text[:reach] for text in texts], add_special_tokens=False)
    ]


def _share_known(words: Sequence[int | None], ids: Sequence[int], unknown: int | None) -> float:
    """Return the mean over words of 1 / pieces, 0 for a word with an unknown piece."""
    n_pieces: dict[int, int] = {}
    without: set[int] = set()
    for word, piece in zip(words, ids, strict=True):
        if word is not None:
            n_pieces[word] = n_pieces.get(word, 0) + 1
            if piece == unknown:
                without.add(word)
    return sum(1 / count for word, count in n_pieces.items() if word not in without) / max(len(n_pieces), 1)


def frequent_words(texts: Sequence[str]) -> frozenset[str]:
    """Return the words of training texts, of very many the most frequent."""
    counts = collections.Counter(itertools.chain.from_iterable(words(texts)))
    return frozenset(word for word, _ in counts.most_common(_WORDS_KEPT))


def shares_of_words(texts: Sequence[str], vocabulary: Collection[str]) -> list[float]:
    """Return the share of each text's words that are in a vocabulary; of a long text its beginning is read."""
    by_text = words([text[:_CHARACTERS_READ] for text in texts])
    return [sum(word in vocabulary for word in own) / max(len(own), 1) for own in by_text]


def read_words(path: Path) -> frozenset[str] | None:
    """Return the words of a file, None if there is no file; ValueError if it holds something else."""
    if not path.is_file():
        return None
    held = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(held, list) or not all(isinstance(word, str) for word in held):
        raise ValueError(f"{path.name} is not a list of words")
    return frozenset(held)


def _limit(tokenizer: Tokenizer) -> int:
    """Return how many tokens of a text are read."""
    return int((tokenizer.truncation or {})["max_length"])


def _beginning(text: str, limit: int) -> str:
    """Return the beginning of a text that most likely has `limit` tokens, cut where a word ends."""
    beginning = text[: limit * _CHARACTERS_A_TOKEN]
    if len(beginning) == len(text):
        return text
    space = max(beginning.rfind(" "), beginning.rfind("\n"))
    return beginning[:space] if space > 0 else text


def read_tokenizer(path: Path) -> Tokenizer:
    """Return the tokenizer of a tokenizer.json."""
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise ArtifactError(f"{path} is not a tokenizer that can be read: {error}") from error
