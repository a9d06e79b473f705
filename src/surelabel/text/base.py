"""The protocol that every text classifier follows, and the two ways to get one: `make` and `load`."""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import scipy.sparse

from surelabel import exceptions
from surelabel._core.extras import import_extra
from surelabel._core.folders import FolderFormat
from surelabel._core.validation import FloatArray, as_label_names
from surelabel.exceptions import ArtifactError, DataWarning, InvalidInputError
from surelabel.labels.sparse import SparseProbabilities, highest, stacked
from surelabel.text.explaining import Explanation
from surelabel.text.inputs import MANY_LABELS, FitOptions, LabelledTexts, as_labels, as_texts, warn_about_labels

KINDS = {
    "bert": ("surelabel.text.bert", "BertClassifier"),
    "blend": ("surelabel.text.blend", "BlendClassifier"),
    "hybrid": ("surelabel.text.hybrid", "HybridClassifier"),
    "linear": ("surelabel.text.linear", "LinearClassifier"),
    "randinit": ("surelabel.text.cnn", "RandinitClassifier"),
    "word2vec": ("surelabel.text.cnn", "Word2vecClassifier"),
}
"""Module and class of each kind; the module is imported when the kind is first asked for."""

LISTED = 50
"""Labels whose probabilities are listed per text if there are very many and nothing else is set."""

# Cells of the dense array of probabilities that the highest are taken from at a time: 32 MiB.
_DENSE_CELLS = 2**22

History: TypeAlias = list[dict[str, float]]

# The folder of a saved classifier: `classifier.json` describes JSON, safetensors or arrays; nothing of it is run.
_FOLDER = FolderFormat(
    what="saved classifier",
    description="classifier.json",
    format="surelabel text classifier",
    version=2,
    oldest=1,
    advice="Save one with its `save` method.",
    without_checksum=1,
)


@contextlib.contextmanager
def _reading(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Say that a saved classifier is damaged, whatever the libraries that read its files raise."""
    try:
        yield
    except (ArtifactError, ImportError, MemoryError):
        raise
    except Exception as error:
        raise ArtifactError(f"The saved classifier {folder} is damaged: {error}") from error


class TextClassifier(abc.ABC):
    """From texts to label probabilities.

    Made by `make(kind, **settings)`, or by `load(folder)` from a folder where one was saved.

    Attributes
    ----------
    n_labels_ : int
        Columns of the probabilities; set by `fit`.
    label_names_ : tuple of str or None
        Names of the labels if `fit` was given them.
    history_ : list of dict
        One entry per epoch for neural kinds, one for each way to fit that was tried for linear kinds.

    Examples
    --------
    >>> from surelabel import text
    >>> texts = ["wheat and corn", "the dollar fell", "corn prices", "dollar and yen"] * 5
    >>> labels = [[1, 0], [0, 1], [1, 0], [0, 1]] * 5
    >>> classifier = text.make("linear").fit(texts, labels)
    >>> isinstance(classifier, text.TextClassifier), classifier.n_labels_
    (True, 2)
    """

    kind: ClassVar[str]
    settings_class: ClassVar[type[Any]]

    def __init__(self, settings: Any = None) -> None:
        expected = type(self).settings_class
        if settings is not None and type(settings) is not expected:
            raise InvalidInputError(
                f"The 'settings' argument of {type(self).__name__} must be {expected.__name__}. "
                f"Got {type(settings).__name__} instead."
            )
        self.settings = expected() if settings is None else settings

    def __repr__(self) -> str:
        changed = [
            f"{field.name}={getattr(self.settings, field.name)!r}"
            for field in dataclasses.fields(self.settings)
            if getattr(self.settings, field.name) != field.default
        ]
        return f"make({', '.join([repr(self.kind), *changed])})"

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's arguments, as scikit-learn's `clone` asks for them."""
        return {"settings": self.settings}

    def set_params(self, **params: Any) -> Self:
        """Set the constructor's arguments; what was fitted stays."""
        type(self).__init__(self, **params)
        return self

    def fit(
        self,
        texts: Iterable[str],
        labels: Any,
        *,
        validation: tuple[Iterable[str], Any] | None = None,
        label_names: Sequence[str] | None = None,
        checkpoint_folder: str | os.PathLike[str] | None = None,
        resume: bool = True,
        progress: bool | None = None,
    ) -> Self:
        """Learn from texts and their labels; return the classifier itself.

        Parameters
        ----------
        texts : iterable of str
            Training texts. Empty ones are allowed.
        labels : array-like or scipy sparse, 0/1 or bool, (n_texts, n_labels)
            More than 1,000 sparse ones are never made dense.
        validation : (texts, labels), optional
            Texts apart from training, never calibration texts. Neural kinds stop by their micro-F1, and set aside a
            tenth of the training texts if there are none. Linear kinds choose loss and C on them, and fit the curve
            from scores to probabilities; if there are none, on training texts held out for it.
        label_names : sequence of str, optional
            Kept with the classifier.
        checkpoint_folder : path, optional
            Where neural kinds leave checkpoints. A run that was killed resumes from the last one and ends
            with the same classifier as an uninterrupted run.
        resume : bool
            False starts again and removes the checkpoints in the folder.
        progress : bool, optional
            Show a progress bar; None shows it on a terminal.
        """
        checked = as_texts(texts)
        training = LabelledTexts(checked, as_labels(labels, len(checked)))
        n_labels = training.labels.shape[1]
        held = None
        if validation is not None:
            if not isinstance(validation, tuple) or len(validation) != 2:
                raise InvalidInputError("The 'validation' argument must be a pair (texts, labels).")
            held_texts = as_texts(validation[0], "validation texts")
            held = LabelledTexts(
                held_texts, as_labels(validation[1], len(held_texts), "validation labels", n_labels=n_labels)
            )
        names = as_label_names(label_names, n_labels, who="fit")
        warn_about_labels(training.labels)
        folder = None if checkpoint_folder is None else Path(checkpoint_folder)
        self.history_ = self._fit(training, held, FitOptions(folder, resume, progress))
        self.n_labels_, self.label_names_ = n_labels, names
        return self

    def predict_proba(self, texts: Iterable[str], *, batch_size: int | None = None) -> FloatArray:
        """Return the probability of each label for each text, (n_texts, n_labels).

        Parameters
        ----------
        texts : iterable of str
            Empty ones are allowed.
        batch_size : int, optional
            Most texts that neural kinds compute at a time; None lets their lengths decide. It changes speed
            and memory; the probabilities are the same (to 1e-6 for the CNNs, 1e-5 for bert).
        """
        checked = self._checked_texts(texts, batch_size, "predict_proba")
        return self._predict(checked, batch_size) if checked else np.empty((0, self.n_labels_))

    def predict_proba_sparse(
        self, texts: Iterable[str], k: int = LISTED, *, batch_size: int | None = None
    ) -> SparseProbabilities:
        """Return the k highest label probabilities of each text, at least one; all others are taken as 0.

        For very many labels: no array of all texts and all labels is made, and `ConformalLabelSets` takes what is
        returned in place of one. Of tied labels the first are listed. `batch_size` is as in `predict_proba`.

        Examples
        --------
        >>> classifier = make("linear", min_texts=1).fit(["wheat", "gold", "oil"], [[1, 0, 0], [0, 1, 0], [0, 0, 1]])
        >>> classifier.predict_proba_sparse(["gold", "oil"], k=1).labels
        array([1, 2])
        """
        checked = self._checked_texts(texts, batch_size, "predict_proba_sparse")
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
            raise InvalidInputError(f"The 'k' argument must be a whole number of 1 or more. Got {k!r} instead.")
        if not checked:
            raise InvalidInputError("The 'texts' argument must hold at least one text. Got none.")
        return self._predict_sparse(checked, int(k), batch_size)

    def explain(self, text: str, label: str | int) -> Explanation:
        """Say which words of a text speak for a label, which is given by its name or number.

        For linear kinds these are the exact contributions, which add up to the score; for neural kinds, gradient times
        input. For `hybrid` the contributions of terms are exact, and those of the vectors are the rest.

        Examples
        --------
        >>> texts = ["wheat and corn", "the dollar fell", "corn prices", "dollar and yen"] * 5
        >>> classifier = make("linear").fit(texts, [[1, 0], [0, 1], [1, 0], [0, 1]] * 5)
        >>> classifier.explain("Corn prices fell", 0).speaking_for(1)[0].word
        'Corn'
        """
        (checked,) = self._checked_texts([text], None, "explain")
        names = self.label_names_ or ()
        number = names.index(label) if label in names else label
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or not 0 <= number < self.n_labels_:
            raise InvalidInputError(
                f"The 'label' argument of explain must be one of the {self.n_labels_:,} labels. Got {label!r} instead."
            )
        return self._explain(checked, int(number), names[number] if names else int(number))

    def known_words(self, texts: Iterable[str]) -> FloatArray:
        """Return the share of each text's words that the classifier knows, (n_texts,): nan if a text has no words.

        Linear and hybrid classifiers know the words of their terms, CNNs those of their vocabulary, and encoders those
        of their training texts. A blend asks its first member that can tell. A classifier that cannot tell knows all
        words.

        Examples
        --------
        >>> classifier = make("linear", min_texts=1).fit(["wheat and corn", "gold"], [[1, 0], [0, 1]])
        >>> classifier.known_words(["Corn and asdf", "qwer", "..."])
        array([0.66666667, 0.        ,        nan])
        """
        with warnings.catch_warnings(action="ignore", category=DataWarning):
            texts = self._checked_texts(texts, None, "known_words")
        shares = np.array(self._known(texts), dtype=np.float64)
        shares[[not any(map(str.isalnum, text)) for text in texts]] = np.nan
        return shares

    def _known(self, texts: list[str]) -> list[float]:
        """Return the share of known words of texts; what is returned for texts without words does not count."""
        return [1.0] * len(texts)

    @property
    def knows_words(self) -> bool:
        """Whether the classifier can tell which words it knows."""
        return type(self)._known is not TextClassifier._known

    def listed_for(self, n_labels: int) -> int | None:
        """Return how many labels to list per text if there are `n_labels`; None to keep all probabilities."""
        return LISTED if n_labels > MANY_LABELS else None

    def _predict_sparse(self, texts: list[str], k: int, batch_size: int | None) -> SparseProbabilities:
        """Return the k highest probabilities of at least one text, a part of the texts at a time."""
        step = max(16, _DENSE_CELLS // self.n_labels_)
        parts = [
            highest(self._predict(texts[start : start + step], batch_size), k) for start in range(0, len(texts), step)
        ]
        return stacked(parts)

    def _checked_texts(self, texts: Iterable[str], batch_size: int | None, who: str) -> list[str]:
        """Return texts to predict for; raise if the classifier is not fitted or the batch size is wrong."""
        if not hasattr(self, "n_labels_"):
            raise exceptions.NotCalibratedError(
                f"This {self.kind} classifier is not fitted. Call fit, or load a saved one, before {who}."
            )
        if batch_size is not None and batch_size < 1:
            raise InvalidInputError(f"The 'batch_size' argument must be at least 1. Got {batch_size} instead.")
        return as_texts(texts)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the classifier into a folder; an older saved classifier there is replaced in one step."""
        if not hasattr(self, "n_labels_"):
            raise exceptions.NotCalibratedError(f"This {self.kind} classifier is not fitted: there is nothing to save.")
        description = {
            "kind": self.kind,
            "n_labels": self.n_labels_,
            "label_names": self.label_names_,
            "settings": dataclasses.asdict(self.settings),
            "history": self.history_,
        }
        with _FOLDER.write(Path(folder), description) as temporary:
            self._write(temporary)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> TextClassifier:
        """Return the classifier that was saved in a folder, of whatever kind it is."""
        return load(folder)

    @abc.abstractmethod
    def _fit(self, training: LabelledTexts, validation: LabelledTexts | None, options: FitOptions) -> History:
        """Learn; return the history."""

    @abc.abstractmethod
    def _predict(self, texts: list[str], batch_size: int | None) -> FloatArray:
        """Return probabilities of at least one text."""

    @abc.abstractmethod
    def _explain(self, text: str, number: int, label: str | int) -> Explanation:
        """Return the explanation of the label with a number, which is named `label`."""

    @abc.abstractmethod
    def _write(self, folder: Path) -> None:
        """Write everything that `_read` needs into an empty folder."""

    @abc.abstractmethod
    def _read(self, folder: Path) -> None:
        """Restore what `_write` wrote; `n_labels_` is set. Any error means that the folder is damaged."""


def make(kind: str, **settings: Any) -> TextClassifier:
    """Return an unfitted classifier of a kind: "bert", "blend", "hybrid", "linear", "randinit" or "word2vec".

    `settings` are fields of the kind's: `LinearSettings`, `HybridSettings`, `CnnSettings`, `Word2vecSettings`,
    `BertSettings` or `BlendSettings`.

    Examples
    --------
    >>> texts = ["wheat and corn", "gold and silver", "wheat harvest", "gold price"]
    >>> labels = [[1, 0], [0, 1], [1, 0], [0, 1]]
    >>> classifier = make("linear", min_texts=1).fit(texts, labels)
    >>> classifier.predict_proba(["the wheat harvest"]).argmax()
    np.int64(0)
    """
    if kind not in KINDS:
        raise InvalidInputError(f"The kind of a classifier must be one of {', '.join(KINDS)}. Got {kind!r} instead.")
    module, name = KINDS[kind]
    chosen: type[TextClassifier] = getattr(import_extra(module, "text", f"The {kind} classifier"), name)
    names = [field.name for field in dataclasses.fields(chosen.settings_class)]
    unknown = sorted(set(settings) - set(names))
    if unknown:
        raise InvalidInputError(
            f"The {kind} classifier has no setting {', '.join(map(repr, unknown))}. It has {', '.join(names)}."
        )
    return chosen(chosen.settings_class(**settings))


def probabilities_of(
    classifier: TextClassifier, texts: Iterable[str], listed: int | None
) -> FloatArray | SparseProbabilities:
    """Return what conformal prediction works on: all probabilities, or the `listed` highest of each text.

    What a predictor is calibrated with must be what it is given later, so bundles remember `listed`;
    `TextClassifier.listed_for` says what it should be, None for an array of all.

    Examples
    --------
    >>> classifier = make("linear", min_texts=1).fit(["wheat", "gold", "oil"], [[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    >>> classifier.listed_for(3), classifier.listed_for(100_000)
    (None, 100)
    >>> probabilities_of(classifier, ["gold", "oil"], listed=2)
    <SparseProbabilities: 2 texts, 3 labels, 4 listed, unlisted=0>
    """
    if listed is None:
        return classifier.predict_proba(texts)
    if not isinstance(texts, (str, bytes)):
        texts = list(texts)
        if not texts:
            return SparseProbabilities(scipy.sparse.csr_array((1, classifier.n_labels_)))[:0]
    return classifier.predict_proba_sparse(texts, listed)


def load(folder: str | os.PathLike[str]) -> TextClassifier:
    """Return the classifier that was saved in a folder; no code from the folder is run.

    ArtifactError if the folder is damaged, of a newer format, or not a saved classifier.

    Examples
    --------
    >>> import tempfile
    >>> from surelabel import text
    >>> texts = ["wheat and corn", "the dollar fell", "corn prices", "dollar and yen"] * 5
    >>> labels = [[1, 0], [0, 1], [1, 0], [0, 1]] * 5
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text.make("linear").fit(texts, labels).save(f"{folder}/linear")
    ...     text.load(f"{folder}/linear")
    make('linear')
    """
    with _FOLDER.opened(Path(folder)) as (copy, document), _reading(folder):
        for name, expected in (("kind", str), ("settings", dict), ("n_labels", int)):
            if not isinstance(document.get(name), expected):
                raise TypeError(f"{_FOLDER.description} has no proper '{name}'.")
        try:
            classifier = make(document["kind"], **document["settings"])
            classifier.n_labels_ = document["n_labels"]
            classifier.label_names_ = as_label_names(document.get("label_names"), classifier.n_labels_, who="load")
        except InvalidInputError as error:
            raise ArtifactError(f"The saved classifier {folder} cannot be used: {error}") from error
        classifier.history_ = list(document.get("history", []))
        classifier._read(copy)
    return classifier
