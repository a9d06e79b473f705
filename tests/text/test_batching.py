"""Batches hold texts of like length, every text once, in an order of seed and epoch alone."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from surelabel.text.batching import BucketedBatches, Examples, prediction_batches, training_batches

lengths = st.lists(st.integers(1, 400), min_size=1, max_size=300).map(np.array)


@given(lengths=lengths, batch_size=st.integers(1, 20), seed=st.integers(0, 5), epoch=st.integers(0, 5))
def test_training_batches_hold_every_text_once(lengths, batch_size, seed, epoch):
    batches = training_batches(lengths, batch_size, seed, epoch)
    assert sorted(np.concatenate(batches)) == list(range(len(lengths)))
    assert max(map(len, batches)) <= batch_size
    again = training_batches(lengths, batch_size, seed, epoch)
    assert all(np.array_equal(one, other) for one, other in zip(batches, again, strict=True))


@given(lengths=lengths, max_tokens=st.integers(1, 2000), batch_size=st.none() | st.integers(1, 20))
def test_prediction_batches_hold_every_text_once_within_the_limit(lengths, max_tokens, batch_size):
    batches = list(prediction_batches(lengths, max_tokens, batch_size))
    assert sorted(np.concatenate(batches)) == list(range(len(lengths)))
    for batch in batches:
        if batch_size is not None:
            assert len(batch) <= batch_size
        else:
            assert len(batch) == 1 or len(batch) * lengths[batch].max() <= max_tokens


def test_epochs_differ_and_padding_is_little():
    lengths = np.random.default_rng(0).integers(1, 400, 3_000)
    sampler = BucketedBatches(lengths, 32, seed=0)
    first = list(sampler)
    sampler.set_epoch(1)
    assert first != list(sampler)
    assert len(sampler) == len(first) == 94
    padded = sum(len(batch) * lengths[batch].max() for batch in first)
    assert padded < 1.1 * lengths.sum()


def test_digest_sees_every_change():
    ids = [np.array([1, 2], np.int32), np.array([3], np.int32)]
    labels = np.array([[True, False], [False, True]])
    moved = [np.array([1], np.int32), np.array([2, 3], np.int32)]
    digests = {Examples(ids, labels).digest(), Examples(moved, labels).digest(), Examples(ids, ~labels).digest()}
    assert len(digests) == 3
