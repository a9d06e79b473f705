"""Fixtures of the text classifiers: made-up texts, and an encoder of two small layers."""

from __future__ import annotations

import json

import pytest

from surelabel import text
from text_cases import CNN, FILLERS, LABELS, SIGNS, made_up


@pytest.fixture(scope="session")
def training():
    return made_up(300, 0)


@pytest.fixture(scope="session")
def validation():
    return made_up(80, 1)


@pytest.fixture(scope="session")
def new():
    return made_up(150, 2)


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory):
    """A folder with a BERT of two layers of 16, and a tokenizer of whole words."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("encoder")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *sorted({*FILLERS, *" ".join(SIGNS.values()).split()})]
    tokenizer = Tokenizer(models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_max_length=64,
    )
    fast.save_pretrained(folder)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = BertConfig(
            vocab_size=len(words),
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=64,
            hidden_dropout_prob=0.0,
        )
        BertModel(config).save_pretrained(folder)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_mean_tokens": True}))
    modules = [{"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    return str(folder)


@pytest.fixture(scope="session")
def fitted_kind(training, validation, tiny_encoder):
    """A function from a kind to a fitted classifier, fitted once."""
    settings = {
        "linear": {},
        "randinit": CNN,
        "word2vec": CNN,
        "bert": {"model": tiny_encoder, "epochs": 2, "encoder_learning_rate": 3e-3, "head_learning_rate": 0.03},
        "hybrid": {"model": tiny_encoder, "C": 1.0},
        "blend": {"members": {"linear": {"C": 1.0}, "randinit": CNN}},
    }
    kept = {}

    def get(kind):
        if kind not in kept:
            kept[kind] = text.make(kind, **settings[kind]).fit(*training, LABELS, validation=validation)
        return kept[kind]

    return get
