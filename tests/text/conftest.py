"""Small texts with labels that can be learnt, and a tiny encoder."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

# For the processes that tests start: threads that wait for one another make small networks slow.
os.environ["OMP_NUM_THREADS"] = "1"

TOPICS = [
    "wheat corn harvest grain tonnes crop farmer",
    "gold silver mine ounce metal bullion ore",
    "oil barrel crude pipeline opec petrol refinery",
]
FILLER = ["the", "a", "of", "and", "said", "in", "to", "for", "on", "market", "company", "year", "price", "new"]


def topical_texts(n_texts: int, seed: int = 0, max_words: int = 60) -> tuple[list[str], np.ndarray]:
    """Texts of words of their topics and filler; one to two topics each."""
    random = np.random.default_rng(seed)
    labels = np.zeros((n_texts, len(TOPICS)), dtype=bool)
    texts = []
    for row in labels:
        row[random.choice(len(TOPICS), random.integers(1, 3), replace=False)] = True
        pool = [word for topic in np.flatnonzero(row) for word in TOPICS[topic].split()]
        n_words = random.integers(6, max_words)
        texts.append(" ".join(random.choice(pool if random.random() < 0.5 else FILLER) for _ in range(n_words)))
    return texts, labels


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def load_changed():
    """Load a saved classifier whose files were changed, as if it had been written so."""
    from surelabel._core.folders import _fingerprint, own_checksum
    from surelabel.text import load

    def described_again(folder, **changes):
        description = folder / "classifier.json"
        document = json.loads(description.read_text(encoding="utf-8")) | changes
        document["files"] = {name: _fingerprint(folder / name) for name in document["files"]}
        document["sha256"] = own_checksum(document)
        description.write_text(json.dumps(document), encoding="utf-8")
        return load(folder)

    return described_again


@pytest.fixture(scope="session")
def topical():
    return topical_texts(120), topical_texts(40, seed=1)


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory):
    """Folder of a random BERT of two layers of 16, with a word tokenizer."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    vocabulary = special + FILLER + [word for topic in TOPICS for word in topic.split()]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    folder = tmp_path_factory.mktemp("encoder")
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=32,
    )
    fast.save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertModel(config).save_pretrained(folder)
    return folder
