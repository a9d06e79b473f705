"""The protocol that every text classifier follows, and the two ways to get one: `make` and `load`."""

from __future__ import annotations

import abc
import dataclasses
import json
import os
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Self,
    TypeAlias,
    TypeVar,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator

from surelabel._core.extras import require
from surelabel._core.files import atomic_folder, check_manifest, write_manifest
from surelabel._core.validation import FloatArray, IntArray, Names, as_names, column_names, invalid, label_places
from surelabel.exceptions import (
    ArtifactError,
    DataWarning,
    InvalidInputError,
    MissingDependencyError,
    NotCalibratedError,
)
from surelabel.labels.shortlists import Shortlists
from surelabel.text import KINDS, MANY_LABELS
from surelabel.text.explain import Explanation

History: TypeAlias = list[dict[str, float]]
_Kind = TypeVar("_Kind")

_DESCRIPTION = "classifier.json"
_FORMAT = "surelabel text classifier"


class HeldOut(NamedTuple):
    """Probabilities (m, n_labels) of training texts by fits that have not seen them, and their rows (m,)."""

    rows: IntArray
    probabilities: FloatArray | Shortlists


class Labelled(NamedTuple):
    """Checked texts and their labels, bool (n_texts, n_labels), CSR above 1,000; scores of a tagger, one per text."""

    texts: list[str]
    labels: Any
    scores: Any = None


class Within(NamedTuple):
    """Limits of a number, in the annotation of a setting."""

    low: float
    high: float

    def holds(self, value: Any, hint: Any) -> bool:
        """Return whether a value is of the annotated type and within the limits."""
        types = get_args(hint) or (hint,)
        if value is None:
            return type(None) in types
        wanted = (int, float) if float in types else (int,)
        return isinstance(value, wanted) and not isinstance(value, bool) and self.low <= value <= self.high


@dataclass_transform(kw_only_default=True, eq_default=False)
def settings(kind: type[_Kind]) -> type[_Kind]:
    """Make the annotated attributes of a kind its constructor's arguments, as scikit-learn expects them."""
    return dataclasses.dataclass(kw_only=True, eq=False, repr=False)(kind)


class TextClassifier(BaseEstimator, abc.ABC):
    """From texts to label probabilities. The constructor's arguments are the settings.

    Attributes
    ----------
    n_labels_ : int
    label_names_ : tuple of str
        By default the numbers of the columns.
    history_ : list of dict
        One entry for each epoch or each trial of settings.
    held_out_ : HeldOut or None
        Probabilities of training texts by fits that have not seen them. Not saved.

    Examples
    --------
    >>> from surelabel import text
    >>> texts = ["wheat and corn", "the dollar fell", "corn prices", "dollar and yen"] * 5
    >>> classifier = text.make("linear").fit(texts, [[1, 0], [0, 1], [1, 0], [0, 1]] * 5, ["grain", "money"])
    >>> classifier.predict_proba(["corn and wheat"]).argmax()
    np.int64(0)
    """

    kind: ClassVar[str]
    needs_validation: ClassVar[bool] = False
    """Whether fit needs validation texts."""
    many_labels: ClassVar[bool] = False
    """Whether there may be more than MANY_LABELS labels."""
    learns_labels: ClassVar[bool] = True
    """Whether labels without training texts are worth a warning."""

    held_out_: HeldOut | None = None

    def fit(
        self,
        texts: Iterable[str],
        labels: Any,
        label_names: Sequence[str] | None = None,
        *,
        validation: tuple[Iterable[str], Any] | None = None,
        work_folder: str | os.PathLike[str] | None = None,
        scores: Any = None,
    ) -> Self:
        """Learn from texts and their labels.

        Parameters
        ----------
        texts : iterable of str
            Empty texts are allowed.
        labels : (n_texts, n_labels) 0/1 or bool, dense or sparse, or one collection of label names per text
            A data frame is matched by its columns.
        label_names : sequence of str, optional
        validation : (texts, labels), optional
            Neural kinds stop by their micro-F1, and a blend combines its members on them. Other kinds ignore them.
        work_folder : path, optional
            Where neural kinds keep checkpoints: a killed run continues from the last one.
        scores : sequence, optional
            Scores of a tagger for each text, for the kind `scores` only.
        """
        self._check_settings()
        self._check_scores(scores)
        names = _as_names(label_names, labels)
        if len(names) > MANY_LABELS and not self.many_labels:
            raise InvalidInputError(
                f"The {self.kind} classifier takes at most {MANY_LABELS:,} labels. Got {len(names):,}: "
                "use the 'omikuji' classifier."
            )
        training = as_labelled(texts, labels, names)._replace(scores=scores)
        held = None
        if self.needs_validation:
            if validation is None:
                raise InvalidInputError(
                    f"The {self.kind} classifier needs validation texts. Pass validation=(texts, labels) of texts "
                    "that are neither training nor calibration texts."
                )
            held = as_labelled(*validation, names, "validation")
        if self.learns_labels:
            _warn_about_labels(training.labels)
        self.n_labels_, self.label_names_ = len(names), names
        self.history_ = self._fit(training, held, None if work_folder is None else Path(work_folder))
        return self

    def predict_proba(self, texts: Iterable[str], *, scores: Any = None) -> FloatArray | Shortlists:
        """Return the probability of each label for each text, (n_texts, n_labels) or Shortlists.

        `scores` are those of the `scores` kind.
        """
        checked = self._as_texts(texts)
        self._check_scores(scores)
        return self._predict(checked) if checked else np.empty((0, self.n_labels_))

    def explain(self, text: str, label: str | int) -> Explanation:
        """Return how much each word of a text adds to the log-odds of a label, given by name or number."""
        (checked,) = self._as_texts([text])
        names = self.label_names_
        number = names.index(label) if label in names else label
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or not 0 <= number < self.n_labels_:
            raise InvalidInputError(
                f"The 'label' argument of explain must be one of the {self.n_labels_:,} labels. Got {label!r} instead."
            )
        return self._explain(checked, int(number))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the classifier into a folder, which replaces an older one in one step."""
        self._check_fitted()
        with atomic_folder(folder) as temporary:
            self.write_files(temporary)
            write_manifest(temporary)

    def write_files(self, folder: Path) -> None:
        """Write everything that `read_files` needs into an existing folder."""
        description = {
            "format": _FORMAT,
            "kind": self.kind,
            "label_names": self.label_names_,
            "settings": self.get_params(deep=False),
            "history": self.history_,
        }
        text = json.dumps(description, ensure_ascii=False, indent=1)
        (folder / _DESCRIPTION).write_text(text + "\n", encoding="utf-8")
        self._write(folder)

    def _as_texts(self, texts: Iterable[str]) -> list[str]:
        self._check_fitted()
        return as_texts(texts)

    def _check_scores(self, scores: Any) -> None:
        if scores is not None:
            raise InvalidInputError(
                f"Only the 'scores' classifier takes scores with the texts. This classifier is {self.kind!r}."
            )

    def _check_fitted(self) -> None:
        if not hasattr(self, "n_labels_"):
            raise NotCalibratedError(f"This {self.kind} classifier is not fitted. Call fit first, or load a saved one.")

    def _check_settings(self) -> None:
        """Raise InvalidInputError if a setting is out of the limits in its annotation."""
        for name, hint in get_type_hints(type(self), include_extras=True).items():
            parts, value = get_args(hint), getattr(self, name, None)
            expected = None
            if get_origin(hint) is Literal and value not in parts:
                expected = f"one of {', '.join(parts)}"
            elif get_origin(hint) is Annotated and not parts[1].holds(value, parts[0]):
                what = "a number" if float in (get_args(parts[0]) or parts) else "a whole number"
                expected = f"{what} from {parts[1].low:g} to {parts[1].high:g}"
            if expected:
                raise InvalidInputError(
                    f"The '{name}' setting of the {self.kind} classifier must be {expected}. Got {value!r} instead."
                )

    def _explain(self, text: str, number: int) -> Explanation:
        """Return the explanation of a label's log-odds."""
        raise InvalidInputError(f"The {self.kind} classifier cannot explain its probabilities.")

    @abc.abstractmethod
    def _fit(self, training: Labelled, validation: Labelled | None, work_folder: Path | None) -> History:
        """Learn; return the history."""

    @abc.abstractmethod
    def _predict(self, texts: list[str]) -> FloatArray | Shortlists:
        """Return probabilities of at least one text."""

    @abc.abstractmethod
    def _write(self, folder: Path) -> None:
        """Write what was learnt."""

    @abc.abstractmethod
    def _read(self, folder: Path) -> None:
        """Restore what `_write` wrote. `n_labels_` is set. Any error means that the folder is damaged."""


def make(kind: str, **settings: Any) -> TextClassifier:
    """Return an unfitted classifier of a kind of `KINDS`; `settings` are its constructor's arguments."""
    if kind not in KINDS:
        raise InvalidInputError(f"The kind of a classifier must be one of {', '.join(KINDS)}. Got {kind!r} instead.")
    module, _, name = KINDS[kind].partition(":")
    chosen: type[TextClassifier] = getattr(require(module, "text", f"The {kind} classifier"), name)
    known = chosen._get_param_names()
    unknown = sorted(set(settings) - set(known))
    if unknown:
        raise InvalidInputError(
            f"The {kind} classifier has no setting {', '.join(map(repr, unknown))}. It has {', '.join(known)}."
        )
    classifier = chosen(**settings)
    classifier._check_settings()
    return classifier


def load(folder: str | os.PathLike[str]) -> TextClassifier:
    """Return the classifier that was saved in a folder. No code from the folder is run.

    ArtifactError if the folder is damaged or is not a saved classifier.
    """
    check_manifest(Path(folder))
    return read_files(Path(folder))


def read_files(folder: Path) -> TextClassifier:
    """Return the classifier whose files are in a folder that was verified."""
    try:
        document = json.loads((folder / _DESCRIPTION).read_text(encoding="utf-8"))
        if not isinstance(document, dict) or document.get("format") != _FORMAT:
            raise ValueError(f"{_DESCRIPTION} does not describe a text classifier")
        classifier = make(document["kind"], **document["settings"])
        names = document["label_names"]
        if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
            raise ValueError("'label_names' must be a list of strings")
        classifier.label_names_ = as_names(names, len(names), "a saved classifier") or ()
        classifier.n_labels_ = len(names)
        classifier.history_ = [dict(entry) for entry in document["history"]]
        classifier._read(folder)
    except (ArtifactError, MemoryError, MissingDependencyError):
        raise
    except Exception as error:  # libraries raise anything about damaged files
        raise ArtifactError(f"The saved classifier {folder} is damaged: {error}") from error
    return classifier


def as_texts(texts: Iterable[str], name: str = "texts") -> list[str]:
    """Return texts as a list of strings; lone surrogates become question marks."""
    if isinstance(texts, (str, bytes)):
        raise InvalidInputError(f"The '{name}' argument must be a sequence of strings. Put one text into a list.")
    checked = list(texts)
    for index, text in enumerate(checked):
        if not isinstance(text, str):
            raise InvalidInputError(
                f"The '{name}' argument must hold strings. Got {type(text).__name__} at index {index} instead."
            )
    return [text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8") for text in checked]


def as_labelled(texts: Iterable[str], labels: Any, names: Names, name: str = "training") -> Labelled:
    """Return checked texts and labels; warn about empty texts."""
    checked, who = as_texts(texts), f"the {name} part of fit"
    rows, columns, is_unknown = label_places(labels, len(checked), len(names), names, who)
    if not checked or is_unknown.any():
        raise InvalidInputError(f"The labels of {who} must be among the label names, of at least one text.")
    n_empty = sum(not text or text.isspace() for text in checked)
    if n_empty:
        message = f"{n_empty} of {len(checked)} {name} texts are empty. They are kept as texts without words."
        warnings.warn(message, DataWarning, stacklevel=3)
    shape = (len(checked), len(names))
    if len(names) > MANY_LABELS:
        return Labelled(checked, scipy.sparse.csr_array((np.ones(len(rows), bool), (rows, columns)), shape=shape))
    matrix = np.zeros(shape, dtype=bool)
    matrix[rows, columns] = True
    return Labelled(checked, matrix)


def _as_names(names: Iterable[Any] | None, labels: Any) -> Names:
    """Return label names: those given, else the columns of a data frame, else the numbers of the columns."""
    shape = np.shape(labels)
    if names is None and len(shape) != 2:
        raise invalid("labels", "fit", "an array of shape (n_texts, n_labels), or label_names given", f"shape {shape}")
    given = list(column_names(labels) or range(shape[1])) if names is None else list(names)
    return as_names(given, len(given), "fit") or ()


def _warn_about_labels(labels: Any) -> None:
    """Warn about labels that have only one class in the training texts."""
    positive = np.asarray(labels.sum(axis=0)).ravel()
    n_never, n_always = int((positive == 0).sum()), int((positive == labels.shape[0]).sum())
    if n_never or n_always:
        message = (
            f"Of {labels.shape[1]} labels, {n_never} occur in none and {n_always} in all training texts. "
            "Nothing can be learnt about them."
        )
        warnings.warn(message, DataWarning, stacklevel=3)


def check_arrays(*expected: tuple[Any, tuple[int, ...]]) -> None:
    """Raise ValueError unless arrays that were read have these shapes and hold finite numbers."""
    for array, shape in expected:
        if array.shape != shape:
            raise ValueError(f"an array has shape {array.shape} instead of {shape}")
        if array.dtype.kind not in "fiub" or not np.isfinite(array).all():
            raise ValueError("its arrays must hold finite numbers")
