"""The classifier, and what is chosen on texts of the training part that its fit has not seen."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from surelabel import measures, text
from surelabel._core.formatting import count
from surelabel._core.progress import step
from surelabel._version import __version__
from surelabel.corpora import Corpus, Vocabulary
from surelabel.corpora.corpus import label_matrix
from surelabel.exceptions import ArtifactError, InvalidInputError
from surelabel.labels.shortlists import Shortlists
from surelabel.measures import LogLoss, Mixture
from surelabel.measures.choose import choose_mixture
from surelabel.models.settings import TrainingSettings
from surelabel.probabilities_file import PartProbabilities, Probabilities
from surelabel.recalibration import Recalibration
from surelabel.text import HeldOut, KnownWords, TextClassifier, Thresholds

_log = logging.getLogger(__name__)
_HELD_OUT = "held_out.npz"
TAGGERS = ("scores", "annif", "http")
# A neural classifier stops by this share of the training texts.
_VALIDATION_SHARE = 0.1
# Training texts on which a measure is chosen: more do not change the choice.
_MOST_CHOSEN_ON = 2_100


class Choices(NamedTuple):
    """Texts of the training part by fits that have not seen them: what is chosen while training is chosen on them.

    `rows` are their rows among the training texts, None if they are validation texts.
    """

    probabilities: Any
    labels: Any
    training_labels: Any
    rows: Any = None


class Fitted(NamedTuple):
    """A classifier and all that is chosen while training.

    `label_texts` has the number of training texts of each label, `known_words` the words of training texts (None for
    a tagger, whose words are not known here).
    """

    classifier: TextClassifier
    n_train: int
    label_texts: dict[str, int]
    limits: tuple[int, int]
    known_words: KnownWords | None
    recalibration: Recalibration | None
    thresholds: Thresholds | None
    measure: Any
    group_column: str | None

    def predict_proba(self, texts: Sequence[str], scores: Any = None) -> Any:
        """Return probabilities as the bundle does."""
        probabilities = self.classifier.predict_proba(texts, scores=scores)
        return probabilities if self.recalibration is None else self.recalibration.transform(probabilities)


def fit(
    corpus: Corpus, settings: TrainingSettings, vocabulary: Vocabulary | None = None, work_folder: Path | None = None
) -> Fitted:
    """Fit the classifier on the training part, and choose measure, thresholds and recalibration inside that part."""
    classifier = make_classifier(corpus, settings)
    training, validation = _training_parts(corpus, settings, classifier)
    label_texts = _label_texts(training, vocabulary)
    names, is_tagger = tuple(label_texts), classifier.kind in TAGGERS
    if vocabulary is not None and is_tagger:
        names = _for_tagger(classifier, names, vocabulary)
    limits = _limits(training, settings, len(names))
    classifier = _fitted(classifier, training, validation, names, work_folder)
    choices = _choices(classifier, training, validation)
    recalibration = _recalibration(choices, settings)
    if recalibration is not None and choices is not None:
        choices = choices._replace(probabilities=recalibration.transform(choices.probabilities))
    with step("choosing the measure"):
        measure = _measure(settings, choices, limits)
    return Fitted(
        classifier=classifier,
        n_train=len(training),
        label_texts=label_texts,
        limits=limits,
        known_words=None if is_tagger else KnownWords.from_texts(training.texts),
        recalibration=recalibration,
        thresholds=_thresholds(choices, settings),
        measure=measure,
        group_column=settings.group,
    )


def make_classifier(corpus: Corpus, settings: TrainingSettings) -> TextClassifier:
    """Return the unfitted classifier: the kind that is set or fits the number of labels, with the seed of training."""
    kind = settings.classifier
    if kind is None:
        n_labels = len(_label_texts(corpus.part("train"), None)) if "train" in corpus.part_sizes else 0
        kind = text.default_kind(n_labels)
    classifier = text.make(kind, **settings.options)
    if "seed" in classifier.get_params(deep=False) and "seed" not in settings.options:
        classifier.set_params(seed=settings.seed)
    return classifier


def _for_tagger(classifier: TextClassifier, names: Sequence[str], vocabulary: Vocabulary) -> tuple[str, ...]:
    """Tell a tagger the other names of concepts; return its labels: all concepts that are not deprecated."""
    classifier.set_params(alternatives=vocabulary.other_names())
    offered = (vocabulary.name(uri) for uri in vocabulary.uris if uri not in vocabulary.deprecated)
    return tuple(dict.fromkeys((*names, *offered)))


def _training_parts(
    corpus: Corpus, settings: TrainingSettings, classifier: TextClassifier
) -> tuple[Corpus, Corpus | None]:
    """Return the training texts of a classifier, and those that it stops by.

    A classifier that needs no validation texts learns from them as well.
    """
    own, has_validation = corpus.part("train"), "validation" in corpus.part_sizes
    if not classifier.needs_validation:
        return (corpus.part("train", "validation") if has_validation else own), None
    if has_validation:
        return own, corpus.part("validation")
    order = np.random.RandomState(settings.seed).permutation(len(own))
    n_held = max(1, round(_VALIDATION_SHARE * len(own)))
    return own.rows(np.sort(order[n_held:])), own.rows(np.sort(order[:n_held]))


def _label_texts(training: Corpus, vocabulary: Vocabulary | None) -> dict[str, int]:
    """Return the labels of training texts, but for deprecated concepts, and how many texts have each."""
    old = set() if vocabulary is None else set(map(vocabulary.name, vocabulary.deprecated))
    counts = np.asarray(training.labels.sum(axis=0)).reshape(-1).tolist()
    return {name: n for name, n in zip(training.label_names, counts, strict=True) if n and name not in old}


def _limits(training: Corpus, settings: TrainingSettings, n_labels: int) -> tuple[int, int]:
    """Return the limits on the number of labels: as set, or those of the training texts."""
    sizes = np.diff(training.labels.indptr)
    fewest = min(1, int(sizes.min())) if settings.min_labels is None else settings.min_labels
    most = max(int(sizes.max()), fewest, 1) if settings.max_labels is None else settings.max_labels
    if not 0 <= fewest <= most or fewest > n_labels:
        raise InvalidInputError(
            f"The limits on the number of labels must be 0 <= min_labels <= max_labels. Got {fewest} and {most}, "
            f"with {n_labels} labels."
        )
    return fewest, min(most, n_labels)


def _fitted(
    classifier: TextClassifier,
    training: Corpus,
    validation: Corpus | None,
    names: Sequence[str],
    work_folder: Path | None,
) -> TextClassifier:
    """Return the fitted classifier; one that was finished with the same settings and texts is loaded."""
    folder = None
    # A tagger is asked again: its curve takes no time, and its scores may have changed.
    if work_folder is not None and classifier.kind not in TAGGERS:
        folder = work_folder / _work_name(classifier, training, validation)
        with contextlib.suppress(ArtifactError):
            return _finished(folder)
    labels = label_matrix(training.label_sets, names)
    options: dict[str, Any] = {"scores": training.scores} if classifier.kind == "scores" else {}
    if validation is not None:
        options["validation"] = list(validation.texts), label_matrix(validation.label_sets, names)
    with step(f"training {classifier.kind} on {count(len(training))} texts"):
        classifier.fit(
            list(training.texts),
            labels,
            names,
            work_folder=None if folder is None else folder / "checkpoints",
            **options,
        )
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        if classifier.held_out_ is not None:
            rows, probabilities = classifier.held_out_
            part = PartProbabilities(probabilities, labels[rows], tuple(map(str, rows)))
            Probabilities({"training": part}, tuple(names), len(names)).save(folder / _HELD_OUT)
        classifier.save(folder / "classifier")
    return classifier


def _finished(folder: Path) -> TextClassifier:
    """Return a classifier that an earlier run has finished; an ArtifactError if there is none."""
    finished = text.load(folder / "classifier")
    if (folder / _HELD_OUT).exists():
        part = Probabilities.load(folder / _HELD_OUT).parts["training"]
        finished.held_out_ = HeldOut(np.array(part.ids, dtype=np.int64), part.probabilities)
    _log.info("The classifier was finished by an earlier run; it is not trained again.")
    return finished


def _work_name(classifier: TextClassifier, training: Corpus, validation: Corpus | None) -> str:
    """Return a name that other settings or other texts do not have."""
    parts = [part.fingerprint() for part in (training, validation) if part is not None]
    key = json.dumps([classifier.kind, classifier.get_params(deep=False), parts, __version__], default=repr)
    return hashlib.sha256(key.encode()).hexdigest()[:16]


def _choices(classifier: TextClassifier, training: Corpus, validation: Corpus | None) -> Choices | None:
    """Return what the measure and the rule for best guesses are chosen on, None if there is nothing."""
    names = classifier.label_names_
    if validation is not None:
        return Choices(
            classifier.predict_proba(list(validation.texts)),
            label_matrix(validation.label_sets, names),
            label_matrix(training.label_sets, names),
        )
    if classifier.held_out_ is None:
        return None
    rows, probabilities = classifier.held_out_
    labels = label_matrix(training.label_sets, names)
    return Choices(probabilities, labels[rows], labels, np.asarray(rows))


def _recalibration(choices: Choices | None, settings: TrainingSettings) -> Recalibration | None:
    """Return the correction of probabilities, if it is asked for."""
    if not settings.recalibrate:
        return None
    if choices is None or isinstance(choices.probabilities, Shortlists):
        raise InvalidInputError("These probabilities cannot be recalibrated: use a classifier that lists all labels.")
    return Recalibration.fit(choices.probabilities, choices.labels.toarray(), seed=settings.seed)


def _thresholds(choices: Choices | None, settings: TrainingSettings) -> Thresholds | None:
    """Return the rule for best guesses, None for the most plausible label-set."""
    if settings.best_guess == "exact":
        return None
    if choices is None:
        raise InvalidInputError(f"Best guesses for {settings.best_guess} need a classifier that is trained here.")
    return Thresholds.fit(choices.probabilities, choices.labels, settings.best_guess)


def _measure(settings: TrainingSettings, choices: Choices | None, limits: tuple[int, int]) -> Any:
    """Return the nonconformity measure: as set, or chosen on texts that the classifier has not seen."""
    if settings.measure != "auto":
        given = settings.measure
        return measures.measure_from_name(given) if isinstance(given, str) else given
    if choices is None or isinstance(choices.probabilities, Shortlists):
        return LogLoss()
    probabilities, labels, seen = choices.probabilities, choices.labels, choices.training_labels
    if choices.rows is not None:
        # A text's own label-set must not count among those seen in training.
        n_chosen = min(_MOST_CHOSEN_ON, len(choices.rows) // 3)
        some = np.sort(np.random.RandomState(settings.seed).permutation(len(choices.rows))[:n_chosen])
        probabilities, labels = probabilities[some], labels[some]
        seen = seen[np.setdiff1d(np.arange(seen.shape[0]), choices.rows[some])]
    chosen = choose_mixture(
        probabilities,
        labels,
        seen,
        (settings.significance,),
        min_labels=limits[0],
        max_labels=limits[1],
        seed=settings.seed,
    )
    return chosen.fit(choices.training_labels) if isinstance(chosen, Mixture) else chosen
