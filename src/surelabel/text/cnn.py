"""The paper's convolutional classifiers, `randinit` and `word2vec` (section 3.1)."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import nn

from surelabel.text.convolution import MaxConvolution
from surelabel.text.inputs import LabelledTexts
from surelabel.text.neural import NeuralClassifier, loss_and_logits, start_bias
from surelabel.text.settings import CnnSettings, Word2vecSettings
from surelabel.text.tokenisation import train_word_tokenizer, words
from surelabel.text.vectors import initial_embedding, load_vectors, train_vectors

if TYPE_CHECKING:
    from surelabel.text.training import Plan

logger = logging.getLogger(__name__)

_PADDING = 0


class ConvolutionalNetwork(nn.Module):
    """Embedding, convolution over words with its maximum, dense layer, one logit per label."""

    def __init__(self, settings: CnnSettings, n_words: int, n_labels: int, embedding_size: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_words, embedding_size, padding_idx=_PADDING)
        self.convolution = MaxConvolution(settings.n_kernels, settings.kernel_words, fused=settings.fused)
        self.hidden = nn.Linear(embedding_size * settings.n_kernels, settings.n_hidden)
        self.output = nn.Linear(settings.n_hidden, n_labels)
        self.dropout = settings.dropout
        self.word_dropout = settings.word_dropout
        with torch.no_grad():
            self.embedding.weight.uniform_(-settings.embedding_range, settings.embedding_range)
            self.embedding.weight[_PADDING] = 0
            for layer in (self.hidden, self.output):
                nn.init.xavier_uniform_(layer.weight)
                nn.init.zeros_(layer.bias)

    def forward(
        self, input_ids: torch.Tensor, lengths: torch.Tensor, labels: torch.Tensor | None = None
    ) -> dict[str, torch.Tensor]:
        """Return logits (B, n_labels), and the loss if labels are given."""
        x = self.embedding(input_ids)
        if self.training and self.word_dropout:
            kept = torch.rand(x.shape[:2], device=x.device) >= self.word_dropout
            x = x * (kept / (1 - self.word_dropout)).unsqueeze(2)
        # No ReLU after the maximum, which is not linear already: with one, training took more epochs for a validation
        # F1 that was hardly higher.
        pooled = self.convolution(x, lengths).flatten(1)
        pooled = nn.functional.dropout(pooled, self.dropout, self.training)
        hidden = torch.relu(self.hidden(pooled))
        hidden = nn.functional.dropout(hidden, self.dropout, self.training)
        return loss_and_logits(self.output(hidden), labels)


class RandinitClassifier(NeuralClassifier):
    """The CNN whose word vectors start at random.

    Examples
    --------
    >>> from surelabel.text import CnnSettings, RandinitClassifier
    >>> texts = ["wheat and corn", "the dollar fell", "corn prices", "dollar and yen"] * 5
    >>> labels = [[1, 0], [0, 1], [1, 0], [0, 1]] * 5
    >>> settings = CnnSettings(embedding_size=8, n_kernels=2, kernel_words=2, n_hidden=8, epochs=1)
    >>> classifier = RandinitClassifier(settings).fit(texts, labels, progress=False)
    >>> classifier.predict_proba(["corn and wheat"]).shape
    (1, 2)
    """

    kind = "randinit"
    settings_class: ClassVar[type[Any]] = CnnSettings

    def _prepare(self, training: LabelledTexts) -> tuple[torch.optim.Optimizer, Plan]:
        settings = self.settings
        self._tokenizer = train_word_tokenizer(training.texts, settings.vocabulary_size, settings.max_words)
        self._network = self._new_network(training)
        start_bias(self._network.output, settings.output_bias, training.labels)
        optimizer = torch.optim.Adam(self._network.parameters(), lr=settings.learning_rate, fused=True)
        return optimizer, self._plan(averaging=settings.averaging)

    def _new_network(self, training: LabelledTexts) -> ConvolutionalNetwork:
        """Return the network before training."""
        n_words, n_labels = self._tokenizer.get_vocab_size(), training.labels.shape[1]
        return ConvolutionalNetwork(self.settings, n_words, n_labels, self.settings.embedding_size)

    def _rebuild(self, folder: Path) -> nn.Module:
        from safetensors import safe_open  # noqa: PLC0415

        with safe_open(str(folder / "weights.safetensors"), framework="pt") as weights:
            n_words, size = weights.get_slice("embedding.weight").get_shape()
        return ConvolutionalNetwork(self.settings, n_words, self.n_labels_, size)


class Word2vecClassifier(RandinitClassifier):
    """The CNN whose word vectors start from pre-trained ones (the `vectors` of its settings) and are fine-tuned.

    Examples
    --------
    >>> from surelabel.text import Word2vecClassifier, Word2vecSettings
    >>> texts = ["wheat and corn", "the dollar fell", "corn prices", "dollar and yen"] * 5
    >>> labels = [[1, 0], [0, 1], [1, 0], [0, 1]] * 5
    >>> settings = Word2vecSettings(embedding_size=8, n_kernels=2, kernel_words=2, n_hidden=8, epochs=1)
    >>> classifier = Word2vecClassifier(settings).fit(texts, labels, progress=False)
    >>> classifier.predict_proba(["corn and wheat"]).shape
    (1, 2)
    """

    kind = "word2vec"
    settings_class = Word2vecSettings

    def _new_network(self, training: LabelledTexts) -> ConvolutionalNetwork:
        settings = self.settings
        if settings.vectors is None:
            vectors = train_vectors(words(training.texts), settings.embedding_size, settings.seed)
        else:
            vectors = load_vectors(settings.vectors, settings.vectors_limit)
        by_id = sorted(self._tokenizer.get_vocab().items(), key=lambda item: item[1])
        vocabulary = [word for word, _ in by_id]
        random = np.random.default_rng(settings.seed)
        embedding, n_found = initial_embedding(vocabulary, vectors, settings.vectors_scale, random)
        logger.info("%d of %d words have a vector", n_found, len(vocabulary))
        size = max(settings.embedding_size, embedding.shape[1])
        network = ConvolutionalNetwork(settings, len(vocabulary), training.labels.shape[1], size)
        with torch.no_grad():
            network.embedding.weight[:, : embedding.shape[1]] = torch.from_numpy(embedding)
            network.embedding.weight[_PADDING] = 0
        return network
