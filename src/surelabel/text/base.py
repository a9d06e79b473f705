"""The protocol that every text classifier follows, and the two ways to come by one: `make` and `load`."""

from __future__ import annotations

import abc
import dataclasses
import os
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse

from surelabel import exceptions
from surelabel._core.extras import import_extra
from surelabel.exceptions import ArtifactError, DataWarning, InvalidInputError
from surelabel.labels.sparse import SparseProbabilities
from surelabel.text.explaining import Explanation
from surelabel.text.inputs import MANY_LABELS, as_label_names, as_labels, as_texts, warn_about_labels
from surelabel.text.saving import opened_folder, write_folder

__all__ = ["KINDS", "FitOptions", "LabelledTexts", "TextClassifier", "load", "make", "probabilities_of"]

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


@dataclasses.dataclass(frozen=True)
class LabelledTexts:
    """Checked texts and their labels, bool (n_texts, n_labels); a CSR array if they are sparse and very many."""

    texts: list[str]
    labels: Any

    def set_aside(self, share: float, seed: int, who: str) -> tuple[LabelledTexts, LabelledTexts]:
        """Return most of the texts, and a share of them, at least one, drawn at random for validation."""
        n_texts = len(self.texts)
        if n_texts < 2:
            raise InvalidInputError(f"{who} needs at least two texts, one of them for validation. Got {n_texts}.")
        order = np.random.default_rng(seed).permutation(n_texts)
        n_held = max(1, round(share * n_texts))
        kept, held = (
            LabelledTexts([self.texts[row] for row in rows], self.labels[rows])
            for rows in (np.sort(order[n_held:]), np.sort(order[:n_held]))
        )
        return kept, held


@dataclasses.dataclass(frozen=True)
class FitOptions:
    """How a fit runs, apart from what it computes."""

    checkpoint_folder: Path | None
    resume: bool
    progress: bool | None


def highest(probabilities: npt.NDArray[np.float64], k: int) -> Any:
    """Return the k highest probabilities of each row as a CSR array; of equal ones the first.

    Examples
    --------
    >>> highest(np.array([[0.1, 0.9, 0.1], [0.2, 0.3, 0.4]]), 2).toarray()
    array([[0.1, 0.9, 0. ],
           [0. , 0.3, 0.4]])
    """
    n_texts, n_labels = probabilities.shape
    k = min(k, n_labels)
    chosen = np.sort(np.argsort(-probabilities, axis=1, kind="stable")[:, :k], axis=1)
    values = np.take_along_axis(probabilities, chosen, axis=1)
    starts = np.arange(n_texts + 1) * k
    return scipy.sparse.csr_array((values.ravel(), chosen.ravel(), starts), shape=probabilities.shape)


class TextClassifier(abc.ABC):
    """From texts to label probabilities.

    Made by `make(kind, **settings)`, or by `load(folder)` from a folder where one was saved.

    Parameters
    ----------
    settings : dataclass, optional
        The settings of the kind; None takes its defaults.

    Attributes
    ----------
    n_labels_ : int
        Columns of the probabilities; there after `fit`.
    label_names_ : tuple of str or None
        Names of the labels if `fit` was given them.
    history_ : list of dict
        For neural kinds one entry an epoch: training loss, validation micro-F1, seconds.

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
        """Set the constructor's arguments anew; what was fitted stays."""
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
        """Learn from texts and their labels.

        Parameters
        ----------
        texts : iterable of str
            Training texts. Empty ones are allowed.
        labels : array-like or scipy sparse, 0/1 or bool, (n_texts, n_labels)
            Their labels. More than 1,000 sparse ones are never made dense.
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
            False starts anew and removes the checkpoints in the folder.
        progress : bool, optional
            Show a progress bar; None shows it on a terminal.

        Returns
        -------
        TextClassifier
            Itself.
        """
        found = as_texts(texts)
        training = LabelledTexts(found, as_labels(labels, len(found)))
        if not found:
            raise InvalidInputError("The 'texts' argument must hold at least one text. Got none.")
        checked = None if validation is None else self._check_validation(validation, training.labels.shape[1])
        names = as_label_names(label_names, training.labels.shape[1])
        warn_about_labels(training.labels)
        folder = None if checkpoint_folder is None else Path(checkpoint_folder)
        history = self._fit(training, checked, FitOptions(folder, resume, progress))
        self.n_labels_ = training.labels.shape[1]
        self.label_names_ = names
        self.history_ = history
        return self

    @staticmethod
    def _check_validation(validation: tuple[Iterable[str], Any], n_labels: int) -> LabelledTexts:
        """Return the validation part checked against the number of labels."""
        if not isinstance(validation, tuple) or len(validation) != 2:
            raise InvalidInputError("The 'validation' argument must be a pair (texts, labels).")
        texts = as_texts(validation[0], "validation texts")
        labels = as_labels(validation[1], len(texts), "validation labels")
        if labels.shape[1] != n_labels:
            raise InvalidInputError(
                f"The validation labels must have as many columns as the training labels, {n_labels}. "
                f"Got {labels.shape[1]} instead."
            )
        if not texts:
            raise InvalidInputError("The 'validation' argument must hold at least one text. Got none.")
        return LabelledTexts(texts, labels)

    def predict_proba(self, texts: Iterable[str], *, batch_size: int | None = None) -> npt.NDArray[np.float64]:
        """Return the probability of each label for each text.

        Parameters
        ----------
        texts : iterable of str
            Texts; an empty one is allowed.
        batch_size : int, optional
            Most texts that neural kinds compute at a time; None lets their lengths decide. It changes speed
            and memory; the probabilities are the same (to 1e-6 for the CNNs, 1e-5 for bert).

        Returns
        -------
        float64 array (n_texts, n_labels)
        """
        found = self._checked_texts(texts, batch_size, "predict_proba")
        if not found:
            return np.empty((0, self.n_labels_))
        return self._predict(found, batch_size)

    def predict_proba_sparse(
        self, texts: Iterable[str], k: int = LISTED, *, batch_size: int | None = None
    ) -> SparseProbabilities:
        """Return the k highest label probabilities of each text; all others are taken as 0.

        For very many labels: no array of all texts and all labels is made.

        Parameters
        ----------
        texts : iterable of str
            At least one.
        k : int
            Labels to list per text; if more are tied, the first are listed.
        batch_size : int, optional
            As in `predict_proba`.

        Returns
        -------
        SparseProbabilities
            What `ConformalLabelSets` takes in place of an array.

        Examples
        --------
        >>> classifier = make("linear", min_texts=1).fit(["wheat", "gold", "oil"], [[1, 0, 0], [0, 1, 0], [0, 0, 1]])
        >>> classifier.predict_proba_sparse(["gold", "oil"], k=1).labels
        array([1, 2])
        """
        found = self._checked_texts(texts, batch_size, "predict_proba_sparse")
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
            raise InvalidInputError(f"The 'k' argument must be a whole number of 1 or more. Got {k!r} instead.")
        if not found:
            raise InvalidInputError("The 'texts' argument must hold at least one text. Got none.")
        return self._predict_sparse(found, int(k), batch_size)

    def explain(self, text: str, label: str | int) -> Explanation:
        """Say which words of a text speak for a label.

        Parameters
        ----------
        text : str
        label : str or int
            Name of the label, or its number.

        Returns
        -------
        Explanation
            Of the linear kinds the exact contributions, which add up to the score; of neural kinds gradient times
            input; of `hybrid` those of its terms are exact, and the vectors' are the rest.

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

    def known_words(self, texts: Iterable[str]) -> npt.NDArray[np.float64]:
        """Return the share of each text's words that the classifier knows, (n_texts,): nan if a text has no words.

        Linear and hybrid classifiers know the words of their terms, CNNs those of their vocabulary. Of an encoder, a
        word counts 1 / (pieces that its tokenizer needs for it), and 0 if it has none. A blend asks its first member
        that can tell. A classifier that cannot tell knows all words.

        Examples
        --------
        >>> classifier = make("linear", min_texts=1).fit(["wheat and corn", "gold"], [[1, 0], [0, 1]])
        >>> classifier.known_words(["Corn and asdf", "qwer", "..."])
        array([0.66666667, 0.        ,        nan])
        """
        with warnings.catch_warnings(action="ignore", category=DataWarning):
            texts = self._checked_texts(texts, None, "known_words")
        shares = np.array(self._known(texts), dtype=np.float64)
        shares[[_has_no_word(text) for text in texts]] = np.nan
        return shares

    def _known(self, texts: list[str]) -> list[float]:
        """Return the share of known words of texts; what is returned for texts without words does not count."""
        return [1.0] * len(texts)

    @property
    def knows_words(self) -> bool:
        """Whether the classifier can tell which words it knows."""
        return type(self)._known is not TextClassifier._known

    def listed_for(self, n_labels: int) -> int | None:
        """Return how many labels to list per text if there are so many; None to keep all probabilities."""
        return LISTED if n_labels > MANY_LABELS else None

    def _predict_sparse(self, texts: list[str], k: int, batch_size: int | None) -> SparseProbabilities:
        """Return the k highest probabilities of at least one text, a part of the texts at a time."""
        step = max(16, _DENSE_CELLS // self.n_labels_)
        parts = [
            highest(self._predict(texts[start : start + step], batch_size), k) for start in range(0, len(texts), step)
        ]
        return SparseProbabilities(scipy.sparse.vstack(parts, format="csr"))

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
        with write_folder(folder, description) as temporary:
            self._write(temporary)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> TextClassifier:
        """Return the classifier that was saved in a folder, of whatever kind it is."""
        return load(folder)

    @abc.abstractmethod
    def _fit(
        self, training: LabelledTexts, validation: LabelledTexts | None, options: FitOptions
    ) -> list[dict[str, float]]:
        """Learn; return the history."""

    @abc.abstractmethod
    def _predict(self, texts: list[str], batch_size: int | None) -> npt.NDArray[np.float64]:
        """Return probabilities of at least one text."""

    @abc.abstractmethod
    def _explain(self, text: str, number: int, label: str | int) -> Explanation:
        """Return the explanation of the label with a number, which is named `label`."""

    @abc.abstractmethod
    def _write(self, folder: Path) -> None:
        """Write everything that `_read` needs into an empty folder."""

    @abc.abstractmethod
    def _read(self, folder: Path) -> None:
        """Take up what `_write` wrote; `n_labels_` is set already."""


def _has_no_word(text: str) -> bool:
    """Tell whether a text has neither a letter nor a digit."""
    return not any(map(str.isalnum, text))


def _class_of(kind: str) -> type[TextClassifier]:
    """Import and return the class of a kind."""
    if kind not in KINDS:
        raise InvalidInputError(f"The kind of a classifier must be one of {', '.join(KINDS)}. Got {kind!r} instead.")
    module, name = KINDS[kind]
    found: type[TextClassifier] = getattr(import_extra(module, "text", f"The {kind} classifier"), name)
    return found


def make(kind: str, **settings: Any) -> TextClassifier:
    """Return an unfitted classifier of a kind.

    Parameters
    ----------
    kind : {"bert", "blend", "hybrid", "linear", "randinit", "word2vec"}
        What it is made of.
    **settings
        Fields of the kind's settings: `LinearSettings`, `HybridSettings`, `CnnSettings`, `Word2vecSettings`,
        `BertSettings` or `BlendSettings`.

    Examples
    --------
    >>> texts = ["wheat and corn", "gold and silver", "wheat harvest", "gold price"]
    >>> labels = [[1, 0], [0, 1], [1, 0], [0, 1]]
    >>> classifier = make("linear", min_texts=1).fit(texts, labels)
    >>> classifier.predict_proba(["the wheat harvest"]).argmax()
    np.int64(0)
    """
    found = _class_of(kind)
    known = [field.name for field in dataclasses.fields(found.settings_class)]
    unknown = sorted(set(settings) - set(known))
    if unknown:
        raise InvalidInputError(
            f"The {kind} classifier has no setting {', '.join(map(repr, unknown))}. It has {', '.join(known)}."
        )
    return found(found.settings_class(**settings))


def probabilities_of(
    classifier: TextClassifier, texts: Iterable[str], listed: int | None
) -> npt.NDArray[np.float64] | SparseProbabilities:
    """Return what conformal prediction works on: all probabilities, or so many of the highest of each text.

    What a predictor is calibrated with must be what it is given later, so bundles remember `listed`;
    `TextClassifier.listed_for` says what it should be.

    Parameters
    ----------
    classifier : TextClassifier
    texts : iterable of str
    listed : int or None
        Labels to list for each text, see `TextClassifier.predict_proba_sparse`; None for an array of all.

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

    Raises
    ------
    ArtifactError
        The folder is damaged, of a newer format, or not a saved classifier.

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
    with opened_folder(folder) as (copy, document):
        try:
            classifier = make(document["kind"], **document["settings"])
            classifier.n_labels_ = document["n_labels"]
            classifier.label_names_ = as_label_names(document.get("label_names"), classifier.n_labels_)
            classifier.history_ = list(document.get("history", []))
        except (InvalidInputError, TypeError, KeyError, ValueError) as error:
            raise ArtifactError(f"The saved classifier {folder} cannot be used: {error}") from error
        classifier._read(copy)
    return classifier
