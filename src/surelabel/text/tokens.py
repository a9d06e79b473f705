"""Texts as token ids: the CNNs' words, encoding cut at a limit, batches of similar length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

from surelabel._core.validation import IntArray
from surelabel.exceptions import ArtifactError

Ids: TypeAlias = Sequence[npt.NDArray[np.int32]]

PADDING, OOV, NUMBER = "[PAD]", "[OOV]", "0"
"""Reserved tokens with ids 0 and 1, and the token that every number becomes."""

_CHARACTERS_A_TOKEN = 32


def _word_tokenizer(model: Any) -> Tokenizer:
    """Return a tokenizer into words over a vocabulary: lower case, no punctuation (section 3.1 of the paper)."""
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
    """Return a tokenizer with two reserved tokens and the most frequent words of the texts, ties by alphabet."""
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
    """Return the token ids of each text, cut at the tokenizer's truncation."""
    return [np.asarray(encoding.ids, dtype=np.int32) for encoding in encodings(tokenizer, texts)]


def encodings(tokenizer: Tokenizer, texts: Sequence[str]) -> list[Any]:
    """Return the tokens of each text with their places, cut at the tokenizer's truncation."""
    # Of a long text only as much is read as the limit needs: megabytes cost no more than a page. If that did not fill
    # the limit (long runs of spaces or signs), the rest is needed.
    limit = int((tokenizer.truncation or {})["max_length"])
    n_read = limit * _CHARACTERS_A_TOKEN
    encoded = tokenizer.encode_batch([text[:n_read] for text in texts])
    return [
        tokenizer.encode(text) if len(text) > n_read and len(one.ids) < limit else one
        for text, one in zip(texts, encoded, strict=True)
    ]


def read_tokenizer(path: Path) -> Tokenizer:
    """Return the tokenizer of a tokenizer.json."""
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise ArtifactError(f"{path} is not a tokenizer that can be read: {error}") from error
    if not tokenizer.truncation:
        raise ArtifactError(f"The tokenizer {path} must have a limit on tokens.")
    return tokenizer


def pad(ids: Ids) -> dict[str, torch.Tensor]:
    """Return input_ids (B, longest), padded by zeros, and lengths (B,); an empty text is one token."""
    lengths = _lengths(ids)
    padded = np.zeros((len(ids), int(lengths.max())), dtype=np.int64)
    for row, one in zip(padded, ids, strict=True):
        row[: len(one)] = one
    return {"input_ids": torch.from_numpy(padded), "lengths": torch.from_numpy(lengths)}


def padded_batches(
    ids: Ids, max_tokens: int, *, device: Any = "cpu"
) -> Iterator[tuple[IntArray, dict[str, torch.Tensor]]]:
    """Yield rows and their `pad`, the longest first, at most `max_tokens` at a time."""
    lengths = _lengths(ids)
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        rows = order[start : start + max(1, max_tokens // int(lengths[order[start]]))]
        yield rows, {name: tensor.to(device) for name, tensor in pad([ids[row] for row in rows]).items()}
        start += len(rows)


def mask_of(input_ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Return which tokens (B, L) belong to texts of `lengths` tokens."""
    return torch.arange(input_ids.shape[1], device=input_ids.device) < lengths.unsqueeze(1)


def _lengths(ids: Ids) -> IntArray:
    return np.maximum(1, np.array([len(one) for one in ids], dtype=np.int64))
