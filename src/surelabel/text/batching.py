"""Batches of texts of similar length, padded to the longest of the batch."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import Dataset, Sampler

from surelabel._core.validation import IntArray

_BATCHES_A_BUCKET = 50

Ids: TypeAlias = Sequence[npt.NDArray[np.int32]]


def lengths_of(ids: Ids) -> IntArray:
    """Return the number of tokens of each text; an empty text counts as one token of padding."""
    return np.maximum(1, np.array([len(one) for one in ids], dtype=np.int64))


@dataclasses.dataclass(frozen=True)
class Examples(Dataset[dict[str, Any]]):
    """Encoded texts with their labels, as a torch dataset."""

    ids: list[npt.NDArray[np.int32]]
    labels: Any  # bool (n_texts, n_labels); a CSR array if they are very many
    states: Any = None  # KeptStates, if lower layers are frozen

    @property
    def lengths(self) -> IntArray:
        """Tokens of each text."""
        return lengths_of(self.ids)

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: int) -> dict[str, Any]:
        dense = isinstance(self.labels, np.ndarray)
        labels = self.labels[index] if dense else self.labels[[index]].toarray()[0]
        example = {"ids": self.ids[index], "labels": labels}
        return example if self.states is None else {**example, "states": self.states[index]}

    def in_order_of_length(self) -> Examples:
        """Return the same examples, the longest first."""
        order = np.argsort(-self.lengths, kind="stable")
        states = None if self.states is None else self.states.in_order(order)
        return Examples([self.ids[i] for i in order], self.labels[order], states)

    def digest(self) -> str:
        """Return a checksum of ids and labels."""
        digest = hashlib.sha256(self.lengths.tobytes())
        for one in self.ids:
            digest.update(one.tobytes())
        if isinstance(self.labels, np.ndarray):
            digest.update(np.packbits(self.labels).tobytes())
        else:
            digest.update(self.labels.indptr.tobytes() + self.labels.indices.tobytes())
        digest.update(str(self.labels.shape).encode())
        return digest.hexdigest()


def pad(ids: Ids, padding: int) -> dict[str, torch.Tensor]:
    """Return input_ids (B, longest) and lengths (B,)."""
    lengths = lengths_of(ids)
    padded = np.full((len(ids), int(lengths.max())), padding, dtype=np.int64)
    for row, one in zip(padded, ids, strict=True):
        row[: len(one)] = one
    return {"input_ids": torch.from_numpy(padded), "lengths": torch.from_numpy(lengths)}


def training_batches(lengths: IntArray, batch_size: int, seed: int, epoch: int) -> list[IntArray]:
    """Return the batches of an epoch, in an order that depends on seed and epoch alone."""
    # Texts are shuffled, sorted by length within buckets of 50 batches, and cut into batches, which are shuffled again:
    # a batch has texts of similar length, and an epoch is nearly as random as without that.
    random = np.random.default_rng([seed, epoch])
    order = random.permutation(len(lengths))
    batches = []
    for start in range(0, len(order), batch_size * _BATCHES_A_BUCKET):
        bucket = order[start : start + batch_size * _BATCHES_A_BUCKET]
        bucket = bucket[np.argsort(-lengths[bucket], kind="stable")]
        batches += [bucket[first : first + batch_size] for first in range(0, len(bucket), batch_size)]
    return [batches[place] for place in random.permutation(len(batches))]


def prediction_batches(lengths: IntArray, max_tokens: int, batch_size: int | None = None) -> Iterator[IntArray]:
    """Yield batches in order of length that hold at most `max_tokens` with padding, or `batch_size` texts."""
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        size = batch_size or max(1, max_tokens // int(lengths[order[start]]))
        yield order[start : start + size]
        start += size


def padded_batches(
    ids: Ids, padding: int, max_tokens: int, batch_size: int | None = None, *, device: Any = "cpu"
) -> Iterator[tuple[IntArray, dict[str, torch.Tensor]]]:
    """Yield the rows of `prediction_batches` and what `pad` makes of their texts, on a device."""
    for rows in prediction_batches(lengths_of(ids), max_tokens, batch_size):
        batch = pad([ids[row] for row in rows], padding)
        yield rows, {name: tensor.to(device) for name, tensor in batch.items()}


def mask_of(input_ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Return which tokens (B, L) belong to texts of `lengths` tokens."""
    return torch.arange(input_ids.shape[1], device=input_ids.device) < lengths.unsqueeze(1)


class BucketedBatches(Sampler[list[int]]):
    """The batches of `training_batches` as a torch batch sampler; `batch_size` is that of all processes together."""

    def __init__(self, lengths: IntArray, batch_size: int, seed: int, process: int = 0, n_processes: int = 1) -> None:
        self.lengths, self.batch_size, self.seed = lengths, batch_size, seed
        self.process, self.n_processes = process, n_processes
        self.epoch = 0
        self.drop_last = False

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch that the next iteration goes through."""
        self.epoch = epoch

    def __len__(self) -> int:
        return math.ceil(len(self.lengths) / self.batch_size)

    def __iter__(self) -> Iterator[list[int]]:
        # Each process takes its share of every batch, so that the steps are those of one process. If a batch is too
        # small for all of them, a process without a share repeats a text of it.
        for batch in training_batches(self.lengths, self.batch_size, self.seed, self.epoch):
            share = batch[self.process :: self.n_processes]
            yield (share if len(share) else batch[:1]).tolist()
