"""A trained and calibrated model: from texts to answers."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from surelabel import text
from surelabel._core.levels import MAIN_LEVEL
from surelabel._core.npz_file import read_arrays
from surelabel._core.storage import clean_up
from surelabel._core.validation import FloatArray
from surelabel.answers import Answer, answer_probabilities
from surelabel.conformal import ConformalLabelSets, ForcedPredictions
from surelabel.evaluation.evaluate import Evaluation
from surelabel.exceptions import ArtifactError, InvalidInputError
from surelabel.guarantees.decisions import Decisions
from surelabel.labels.sparse import SparseProbabilities
from surelabel.models.card import model_card
from surelabel.models.folder import (
    BUNDLE,
    CARD,
    CLASSIFIER,
    DECISION,
    EVALUATION,
    FORCED,
    PREDICTOR,
    RECALIBRATION,
    REPORT,
    SEEN,
)
from surelabel.models.info import BundleInfo
from surelabel.models.texts import SeenTexts
from surelabel.recalibration import Recalibration
from surelabel.sets.prediction_sets import PredictionSets
from surelabel.text import Explanation, TextClassifier, Thresholds

_Read = TypeVar("_Read")


@dataclasses.dataclass(frozen=True, eq=False)
class Bundle:
    """A text classifier, the predictor calibrated on its probabilities, and what is known of both.

    Made by `surelabel train`, by `surelabel.models.train_bundle`, or by `load_bundle` from a folder. What bundles of
    older versions do not have is None.

    Attributes
    ----------
    classifier : TextClassifier
    predictor : ConformalLabelSets
        Calibrated, with label names.
    info : BundleInfo
    evaluation : mapping of measure name to Evaluation, or None
        Figures on the test texts, those of the bundle's measure first.
    report : bytes or None
        The HTML report about them: of a loaded bundle, the bytes that were checked.
    recalibration : Recalibration or None
        Correction of the classifier's probabilities, before the predictor sees them.
    forced_totals : (n,) float64 or None
        How strange the best guess of each calibration text is, ascending: texts without labels are watched against it.
    seen : SeenTexts or None
        Hashes of the texts of training and calibration, so that none of them counts as new.
    thresholds : Thresholds or None
        Rule for the best guess, fitted on validation texts, if it is made for F1; None takes the most plausible
        label-set. Prediction sets are the same.
    decisions : Decisions or None
        What says whether a text is filed, chosen or read; without it answers have no decision.

    Examples
    --------
    >>> from surelabel import corpora
    >>> from surelabel.models import TrainingSettings, train_bundle
    >>> corpus = corpora.load("synthetic", n_texts=300, n_labels=5)
    >>> bundle = train_bundle(corpus, TrainingSettings(compared={}))
    >>> bundle.label_names
    ('trade', 'oil', 'elections', 'football', 'medicine')
    >>> answer = bundle.answers(["Crude, a barrel, petroleum."], significance="0.1")[0]
    >>> answer.certain, answer.size
    (('oil',), 1)
    """

    classifier: TextClassifier
    predictor: ConformalLabelSets
    info: BundleInfo
    evaluation: Mapping[str, Evaluation] | None = None
    report: bytes | None = None
    recalibration: Recalibration | None = None
    forced_totals: FloatArray | None = None
    seen: SeenTexts | None = None
    thresholds: Thresholds | None = None
    decisions: Decisions | None = None

    def __post_init__(self) -> None:
        names = self.predictor._calibrated("Bundle").label_names
        if names is None or self.classifier.label_names_ != names:
            raise InvalidInputError(
                "The classifier and the predictor of a bundle must have the same label names. "
                f"Got {_first(self.classifier.label_names_)} and {_first(names)}."
            )
        for what, n_labels in (
            ("recalibration", None if self.recalibration is None else self.recalibration.n_labels),
            ("thresholds", None if self.thresholds is None else len(self.thresholds.values)),
            ("decisions", None if self.decisions is None else self.decisions.n_labels),
        ):
            if n_labels is not None and n_labels != len(names):
                raise InvalidInputError(
                    f"The {what} of a bundle must be of its {len(names)} labels. Got {n_labels} instead."
                )
        if self.recalibration is not None and self.info.listed is not None:
            raise InvalidInputError(
                "A bundle that lists probabilities (of very many labels) cannot recalibrate them. Got a recalibration."
            )
        n_texts = self.predictor.calibration_.n_texts
        if self.forced_totals is not None and self.forced_totals.shape != (n_texts,):
            raise InvalidInputError(
                f"The forced totals of a bundle must be of its {n_texts} calibration texts. "
                f"Got shape {self.forced_totals.shape} instead."
            )

    def __repr__(self) -> str:
        return (
            f"<Bundle {self.info.name!r}: {self.info.kind}, {len(self.label_names)} labels, {self.info.measure}, "
            f"{self.predictor.calibration_.n_texts} calibration texts>"
        )

    @property
    def label_names(self) -> tuple[str, ...]:
        """Names of the labels, in the order of the columns of probabilities."""
        names = self.predictor.calibration_.label_names
        assert names is not None
        return names

    @property
    def decision(self) -> str:
        """Rule for the best guess: "exact", the most plausible label-set, or thresholds for "f1" or "macro-f1"."""
        if self.thresholds is None:
            return "exact"
        return "f1" if self.thresholds.average == "micro" else "macro-f1"

    def best_guesses(self, probabilities: Any) -> Any:
        """Return the labels of each text by thresholds; None if best guesses are the most plausible label-sets."""
        return None if self.thresholds is None else self.thresholds.predict(probabilities)

    def predict_proba(self, texts: Iterable[str]) -> FloatArray | SparseProbabilities:
        """Return what the predictor works on: the probability of each label for each text, (n, d).

        Corrected if there is a recalibration. A model of more than 1,000 labels lists the highest of each text and
        makes no array of all labels: `info.listed` says how many. What is returned here is what everything else takes.
        """
        probabilities = text.probabilities_of(self.classifier, texts, self.info.listed)
        if self.recalibration is None or len(probabilities) == 0:
            return probabilities
        return self.recalibration.transform(probabilities)

    @property
    def groups(self) -> tuple[str, ...] | None:
        """The groups that the bundle is calibrated with, None if it is not calibrated by groups."""
        categories = self.predictor.calibration_.categories
        return None if categories is None or not categories.taxonomy.by_group else categories.groups

    def predict(self, texts: Iterable[str], *, groups: Any = None) -> ForcedPredictions:
        """Return the most plausible label-set of each text, with confidence and credibility.

        Here and below `groups` has the group of each text, if the bundle is calibrated by groups.
        """
        return self.predictor.predict(self.predict_proba(texts), groups=groups)

    def predict_set(
        self,
        texts: Iterable[str],
        *,
        significance: Any = None,
        confidence_level: Any = None,
        groups: Any = None,
        assurance: Any = None,
    ) -> PredictionSets:
        """Return the prediction set of each text; exactly one of significance and confidence_level must be given."""
        return self.predictor.predict_set(
            self.predict_proba(texts),
            significance=significance,
            confidence_level=confidence_level,
            groups=groups,
            assurance=assurance,
        )

    def predict_p(self, texts: Iterable[str], labels: Any, *, groups: Any = None) -> FloatArray:
        """Return the p-value of one given label-set per text, (n,): 0/1 rows, or collections of label names."""
        return self.predictor.predict_p(self.predict_proba(texts), labels, groups=groups)

    @property
    def level(self) -> str:
        """The significance that answers are for if none is given."""
        return self.info.level or MAIN_LEVEL

    def answers(
        self,
        texts: Iterable[str],
        *,
        significance: Any = None,
        confidence_level: Any = None,
        top: int = 5,
        describe: bool = False,
        picture: bool = False,
        probabilities: FloatArray | SparseProbabilities | None = None,
        known_words: Any = None,
        groups: Any = None,
        assurance: Any = None,
    ) -> list[Answer]:
        """Return what a user reads about each text, its decision included; see `surelabel.answers.Answer`.

        Parameters
        ----------
        significance, confidence_level
            As in `ConformalLabelSets.predict_set`, at most one of the two; the bundle's own level by default.
        top : int
            Most plausible label-sets to name for each text.
        describe, picture : bool
            Whether to say each prediction set in a sentence, and to draw it.
        probabilities, known_words : optional
            What `predict_proba` and the classifier's `known_words` return for the texts, if they are at hand.
        """
        texts = texts if isinstance(texts, str) else list(texts)
        if probabilities is None:
            probabilities = self.predict_proba(texts)
        if len(probabilities) == 0:
            return []
        if significance is None and confidence_level is None:
            significance = self.level
        return answer_probabilities(
            self.predictor,
            probabilities,
            significance=significance,
            confidence_level=confidence_level,
            top=top,
            describe=describe,
            picture=picture,
            best_guesses=self.best_guesses(probabilities),
            decisions=self.decisions,
            known_words=known_words if self.decisions is None or known_words is not None else self.known_words(texts),
            groups=groups,
            assurance=assurance,
        )

    def known_words(self, texts: Any) -> FloatArray | None:
        """Return the share of each text's words that the classifier knows, (n,); None if nothing is decided by it."""
        return None if self.decisions is None else self.classifier.known_words(texts)

    def explain(self, text: str, label: str | int) -> Explanation:
        """Say which words of a text speak for a label; see `surelabel.text.TextClassifier.explain`."""
        return self.classifier.explain(text, label)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the bundle into a folder, whole or not at all; an older bundle there is replaced in one step."""
        target = Path(folder)
        with BUNDLE.write(target, {"info": self.info.to_dict()}) as temporary:
            self.classifier.save(temporary / CLASSIFIER)
            self.predictor.save(temporary / PREDICTOR)
            if self.recalibration is not None:
                self.recalibration.save(temporary / RECALIBRATION)
            if self.forced_totals is not None:
                # In order: not to tell which text has which.
                np.savez_compressed(temporary / FORCED, totals=np.sort(self.forced_totals))
            if self.seen is not None:
                self.seen.save(temporary / SEEN)
            if self.thresholds is not None:
                (temporary / DECISION).write_text(json.dumps(self.thresholds.to_dict()) + "\n", encoding="utf-8")
            if self.decisions is not None:
                self.decisions.save(temporary)
            (temporary / CARD).write_text(model_card(self), encoding="utf-8")
            if self.evaluation is not None:
                figures = {name: evaluation.to_dict() for name, evaluation in self.evaluation.items()}
                (temporary / EVALUATION).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
            if self.report is not None:
                (temporary / REPORT).write_bytes(self.report)
        return target


def _first(names: tuple[str, ...] | None) -> str:
    """Show the beginning of some label names."""
    return "none" if names is None else f"{len(names)} names ({', '.join(names[:3])}, ...)"


def load_bundle(path: str | os.PathLike[str]) -> Bundle:
    """Load a bundle from its folder: every file is checked, and no code from it is run.

    What is loaded is what was checked, even while the bundle is replaced. What a save that was killed left half-written
    beside it is removed.

    Raises
    ------
    ArtifactError
        There is no bundle, it is damaged, changed or of a newer format, or holds what does not belong there.
    MissingDependencyError
        The classifier is a neural one, and surelabel[text] is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from surelabel import corpora, load_bundle
    >>> from surelabel.models import TrainingSettings, train_bundle
    >>> bundle = train_bundle(corpora.load("synthetic", n_texts=300, n_labels=5), TrainingSettings(compared={}))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     load_bundle(bundle.save(f"{folder}/model"))
    <Bundle 'synthetic, linear': linear, 5 labels, LogLoss, 45 calibration texts>
    """
    folder = Path(path)
    clean_up(folder.resolve())
    try:
        with BUNDLE.opened(folder) as (copy, document):
            info = BundleInfo.from_dict(document.get("info"))
            return Bundle(
                classifier=text.load(copy / CLASSIFIER),
                predictor=ConformalLabelSets.load(copy / PREDICTOR),
                info=info,
                evaluation=read_evaluations(copy / EVALUATION),
                report=_read_if_there(copy / REPORT, Path.read_bytes),
                recalibration=_read_if_there(copy / RECALIBRATION, Recalibration.load),
                forced_totals=_read_if_there(copy / FORCED, _forced_totals),
                seen=_read_if_there(copy / SEEN, SeenTexts.load),
                thresholds=_read_thresholds(copy / DECISION),
                decisions=Decisions.load(copy, **info.short_lists),
            )
    except InvalidInputError as error:
        raise ArtifactError(f"The bundle {folder} cannot be used: {error}") from error


def _read_if_there(path: Path, read: Callable[[Path], _Read]) -> _Read | None:
    """Return what a file of a bundle holds, None if there is no such file; a damaged one is an ArtifactError."""
    if not path.is_file():
        return None
    try:
        return read(path)
    except ArtifactError:
        raise
    except (ValueError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise ArtifactError(f"{path} is damaged: {error}.") from error


def _forced_totals(path: Path) -> FloatArray:
    """Read the totals of the calibration texts' forced predictions."""
    (totals,) = read_arrays(path).values()
    if totals.dtype != np.float64 or totals.ndim != 1 or not np.all((totals >= 0) & (totals < np.inf)):
        raise ValueError(f"{totals.dtype} values in {totals.ndim} dimensions are no totals")
    return totals


def _read_thresholds(path: Path) -> Thresholds | None:
    """Read the rule for best guesses, if a bundle has one."""
    return _read_if_there(path, lambda file: Thresholds.from_dict(json.loads(file.read_text(encoding="utf-8"))))


def read_evaluations(path: Path) -> dict[str, Evaluation] | None:
    """Read the figures of an evaluation by measure, None if there is no such file."""

    def read(file: Path) -> dict[str, Evaluation]:
        figures = json.loads(file.read_text(encoding="utf-8"))
        return {name: Evaluation.from_dict(values) for name, values in figures.items()}

    return _read_if_there(path, read)
