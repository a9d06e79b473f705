"""The paper's convolutional classifiers, `randinit` and `word2vec` (section 3.1)."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors import safe_open
from tokenizers import Tokenizer
from torch import nn

from surelabel._core.extras import require
from surelabel.exceptions import InvalidInputError
from surelabel.text.base import Labelled, Within, settings
from surelabel.text.convolution import MaxConvolution
from surelabel.text.neural import WEIGHTS, NeuralClassifier, start_bias, with_loss
from surelabel.text.tokens import train_word_tokenizer, words

_log = logging.getLogger(__name__)

_PADDING = 0
_FASTTEXT = b"\xba\x16\x4f\x2f"


class ConvolutionalNetwork(nn.Module):
    """Embedding, convolution over words with its maximum, dense layer, one logit per label."""

    def __init__(self, settings: RandinitClassifier, n_words: int, n_labels: int, embedding_size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_words, embedding_size, padding_idx=_PADDING)
        self.convolution = MaxConvolution(settings.n_kernels, settings.kernel_words)
        self.hidden = nn.Linear(embedding_size * settings.n_kernels, settings.n_hidden)
        self.output = nn.Linear(settings.n_hidden, n_labels)
        self.dropout, self.word_dropout = settings.dropout, settings.word_dropout
        with torch.no_grad():
            self.embedding.weight.uniform_(-settings.embedding_range, settings.embedding_range)
            self.embedding.weight[_PADDING] = 0
            for layer in (self.hidden, self.output):
                nn.init.xavier_uniform_(layer.weight)
                nn.init.zeros_(layer.bias)

    def forward(
        self,
        input_ids: torch.Tensor,
        lengths: torch.Tensor,
        labels: torch.Tensor | None = None,
        vectors: torch.Tensor | None = None,
    ) -> dict[str, torch.Tensor]:
        """Return logits (B, n_labels), and the loss if labels are given; `vectors` replace those of the tokens."""
        x = self.embedding(input_ids) if vectors is None else vectors
        if self.training and self.word_dropout:
            kept = torch.rand(x.shape[:2], device=x.device) >= self.word_dropout
            x = x * (kept / (1 - self.word_dropout)).unsqueeze(2)
        # No ReLU after the maximum, which is not linear already: with one, training took more epochs for a validation
        # F1 that was hardly higher.
        pooled = nn.functional.dropout(self.convolution(x, lengths).flatten(1), self.dropout, self.training)
        hidden = nn.functional.dropout(torch.relu(self.hidden(pooled)), self.dropout, self.training)
        return with_loss(self.output(hidden), labels)


@settings
class RandinitClassifier(NeuralClassifier):
    """The CNN whose word vectors start at random.

    Parameters
    ----------
    vocabulary_size, max_words, embedding_size : int
        The most frequent words that are kept (the paper's |V|), words of a text that are read, components of a vector.
    n_kernels, kernel_words, n_hidden : int
        Kernels of the convolution, their height in words, neurons of the dense layer.
    dropout, word_dropout : float
        After pooling and after the dense layer; share of words whose vectors are zeroed in training.
    embedding_range : float
        Vectors start uniform in +-embedding_range.
    output_bias : float or None
        Start of the output layer's bias. None takes the log-odds of each label in the training texts.
    learning_rate, batch_size, epochs, patience
        Adam's rate, texts per step, most epochs, epochs without a better validation micro-F1 before training stops.
    averaging : float
        Decay of the running average of the weights that predicts. 0 for none.
    seed : int
    """

    kind = "randinit"

    vocabulary_size: Annotated[int, Within(1, 1e7)] = 20_000
    max_words: Annotated[int, Within(1, 1e7)] = 400
    embedding_size: Annotated[int, Within(1, 1e7)] = 300
    n_kernels: Annotated[int, Within(1, 1e7)] = 40
    kernel_words: Annotated[int, Within(1, 1e7)] = 16
    n_hidden: Annotated[int, Within(1, 1e7)] = 256
    dropout: Annotated[float, Within(0, 0.99)] = 0.2
    word_dropout: Annotated[float, Within(0, 0.99)] = 0.1
    embedding_range: Annotated[float, Within(1e-9, 10)] = 0.01
    output_bias: Annotated[float | None, Within(-100, 100)] = None
    learning_rate: Annotated[float, Within(1e-9, 10)] = 1e-3
    batch_size: Annotated[int, Within(1, 1e6)] = 32
    epochs: Annotated[int, Within(1, 1e6)] = 30
    patience: Annotated[int, Within(1, 1e6)] = 3
    averaging: Annotated[float, Within(0, 0.99999)] = 0.998
    seed: Annotated[int, Within(0, 2**31 - 1)] = 0

    def _prepare(self, training: Labelled) -> tuple[torch.optim.Optimizer, dict[str, Any]]:
        self._tokenizer = train_word_tokenizer(training.texts, self.vocabulary_size, self.max_words)
        self._network = self._new_network(training)
        start_bias(self._network.output, self.output_bias, training.labels)
        optimizer = torch.optim.Adam(self._network.parameters(), lr=self.learning_rate, fused=True)
        return optimizer, {"lr_scheduler_type": "constant", "max_grad_norm": 0.0}

    def _new_network(self, training: Labelled) -> ConvolutionalNetwork:
        """Return the network before training."""
        return ConvolutionalNetwork(
            self, self._tokenizer.get_vocab_size(), training.labels.shape[1], self.embedding_size
        )

    def _rebuild(self, folder: Path, tokenizer: Tokenizer) -> nn.Module:
        with safe_open(str(folder / WEIGHTS), framework="pt") as weights:
            size = weights.get_slice("embedding.weight").get_shape()[1]
        return ConvolutionalNetwork(self, tokenizer.get_vocab_size(), self.n_labels_, size)


@settings
class Word2vecClassifier(RandinitClassifier):
    """The CNN whose word vectors start from trained ones and are fine-tuned.

    Parameters
    ----------
    vectors : str or None
        A word2vec (binary or text), GloVe or fastText file, .gz or not. None trains word2vec on the training texts.
    vectors_limit : int or None
        Vectors read from a file, which lists the most frequent words first. None for all.
    vectors_scale : float or None
        Standard deviation that the vectors are scaled to. Published vectors are 50 times larger than what a random
        start does best with, and train much slower unscaled. None leaves them as they are.
    embedding_size : int
        If the given vectors have fewer components, the rest starts at random. If they have more, theirs count.
    **settings
        Those of RandinitClassifier.
    """

    kind = "word2vec"

    vectors: str | None = None
    vectors_limit: Annotated[int | None, Within(1, 1e9)] = None
    vectors_scale: Annotated[float | None, Within(1e-6, 1e3)] = 0.01

    def _new_network(self, training: Labelled) -> ConvolutionalNetwork:
        if self.vectors is None:
            vectors = train_vectors(words(training.texts), self.embedding_size, self.seed)
        else:
            vectors = read_vectors(Path(self.vectors), self.vectors_limit)
        ids = self._tokenizer.get_vocab()
        vocabulary = sorted(ids, key=ids.__getitem__)
        embedding = initial_embedding(vocabulary, vectors, self.vectors_scale, self.seed)
        size = max(self.embedding_size, embedding.shape[1])
        network = ConvolutionalNetwork(self, len(vocabulary), training.labels.shape[1], size)
        with torch.no_grad():
            network.embedding.weight[:, : embedding.shape[1]] = torch.from_numpy(embedding)
            network.embedding.weight[_PADDING] = 0
        return network


def read_vectors(path: Path, limit: int | None = None) -> Any:
    """Return gensim KeyedVectors, the first `limit`, of a word2vec, GloVe or fastText file."""
    if not path.is_file():
        raise InvalidInputError(f"The 'vectors' setting must be a file of word vectors. There is no file {path}.")
    library = require("gensim", "text", "Reading word vectors")
    try:
        with library.utils.open(str(path), "rb") as file:
            start = file.read(1 << 16)
        if start.startswith(_FASTTEXT):
            return library.models.fasttext.load_facebook_vectors(str(path))
        if not start.strip():
            raise ValueError("it is empty")
        has_header = len(start.split(b"\n", 1)[0].split()) == 2
        return library.models.KeyedVectors.load_word2vec_format(
            str(path), binary=b"\0" in start, limit=limit, unicode_errors="replace", no_header=not has_header
        )
    except (OSError, ValueError, EOFError, IndexError, NotImplementedError) as error:
        raise InvalidInputError(f"{path} cannot be read as word2vec, GloVe or fastText vectors: {error}") from error


def train_vectors(sentences: Sequence[Sequence[str]], size: int, seed: int) -> Any:
    """Return word2vec vectors (skip-gram) trained on the training texts, the same for the same seed."""
    library = require("gensim.models", "text", "The word2vec classifier")
    # One worker, since several make the outcome depend on their timing. Few texts have few words that occur twice.
    least = 2 if len(set(itertools.chain.from_iterable(sentences))) > 1_000 else 1
    how = {"window": 8, "min_count": least, "sg": 1, "negative": 5, "epochs": 5, "workers": 1}
    return library.Word2Vec(list(sentences), vector_size=size, seed=seed, **how).wv


def initial_embedding(
    vocabulary: Sequence[str], vectors: Any, scale: float | None, seed: int
) -> npt.NDArray[np.float32]:
    """Return an embedding (n_words, size) started from gensim KeyedVectors."""
    # A word is looked up as it is, capitalised, and in capitals. Words without a vector start at random with the
    # vectors' spread. All are then brought to a standard deviation of `scale`.
    names = [
        next((form for form in (word, word.capitalize(), word.upper()) if form in vectors), None) for word in vocabulary
    ]
    rows = [row for row, name in enumerate(names) if name is not None]
    if not rows:
        raise InvalidInputError(
            "The 'vectors' have none of the words of the training texts: are they of another language?"
        )
    given = np.stack([vectors[names[row]] for row in rows])
    if not np.isfinite(given).all():
        raise InvalidInputError("The 'vectors' must be finite numbers.")
    spread = float(np.std(given))
    _log.info("%d of %d words have a vector", len(rows), len(vocabulary))
    shape = (len(vocabulary), vectors.vector_size)
    embedding = np.random.default_rng(seed).normal(0, spread, shape).astype(np.float32)
    embedding[rows] = given
    if scale is not None and spread > 0:
        embedding *= scale / spread
    return embedding
