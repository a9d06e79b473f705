"""A trained and calibrated model: from texts to answers."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surelabel._core.files import atomic_folder, check_manifest, check_overwrite, write_manifest
from surelabel._core.validation import BoolArray, FloatArray, as_fraction
from surelabel.answers import Answer, build_answers
from surelabel.conformal import ConformalLabelSets
from surelabel.corpora import Corpus, Vocabulary
from surelabel.evaluation.evaluate import as_dataclass
from surelabel.exceptions import ArtifactError, InvalidInputError
from surelabel.guarantees.decisions import FilingPolicy
from surelabel.models.evidence import HeldOutTexts, load_held_out, save_held_out
from surelabel.models.seen import SeenTexts
from surelabel.models.settings import LEVELS
from surelabel.recalibration import Recalibration
from surelabel.sets.prediction_sets import ForcedPredictions, PredictionSets, Texts
from surelabel.text import Explanation, KnownWords, TextClassifier, Thresholds
from surelabel.text.base import read_files

if TYPE_CHECKING:
    from surelabel.models.evaluate import BundleEvaluation

_FORMAT = "surelabel bundle"
_DESCRIPTION, _CARD, _REPORT = "bundle.json", "README.md", "report.html"
_CLASSIFIER, _POLICY, _PREDICTOR, _SEEN, _HELD_OUT = "classifier", "policy", "predictor.npz", "seen.npz", "held_out.npz"
# Parts that a bundle may lack: arrays, then JSON.
_WORDS, _RECALIBRATION = "known_words.npz", "recalibration.npz"
_THRESHOLDS, _VOCABULARY, _EVALUATION = "thresholds.json", "vocabulary.json", "evaluation.json"


@dataclasses.dataclass(frozen=True)
class BundleInfo:
    """Where a bundle comes from and how it was made: plain values.

    Attributes
    ----------
    name, classifier, created, corpus, measure : str
        Name of the model, kind of classifier, date and time in UTC, name of the corpus and of the measure.
    versions, settings, provenance : mapping
        Of packages, of the classifier, and of the corpus.
    part_sizes, label_texts : mapping of part or label name to number of texts
        Labels are counted in training texts.
    n_train, seed, max_tags : int
        A text with more tags to consider than max_tags is to be read.
    levels : mapping
        "significance", "max_wrong", "max_missed", "max_false" and "assurance", as they were typed.
    never_file : tuple of str
        Labels that are never filed alone.
    best_guess : str
        "exact", the most plausible label-set, or thresholds for "f1" or "macro-f1".
    group_column : str or None
        Column with the group of each text, if prediction sets keep their promise in every group.
    categories : tuple of str
        Categories of texts that are calibrated apart; empty if all texts are one.
    notes, verdict, examples : tuple of str
        What a user of the model should know, what it is good for, and texts to try it with, if they were asked for.
    """

    name: str
    classifier: str
    created: str
    versions: Mapping[str, str]
    settings: Mapping[str, Any]
    corpus: str
    provenance: Mapping[str, Any]
    part_sizes: Mapping[str, int]
    n_train: int
    seed: int
    measure: str
    levels: Mapping[str, str]
    max_tags: int = 9
    never_file: tuple[str, ...] = ()
    best_guess: str = "exact"
    group_column: str | None = None
    categories: tuple[str, ...] = ()
    label_texts: Mapping[str, int] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()
    verdict: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        values: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self), default=str))
        return values

    @classmethod
    def from_dict(cls, values: Any) -> BundleInfo:
        """Return the inverse of `to_dict`; anything else is an ArtifactError."""
        info: BundleInfo = as_dataclass(cls, values)
        if set(info.levels) != set(LEVELS):
            raise ArtifactError(f"The levels of a bundle must be {', '.join(LEVELS)}. Got {', '.join(info.levels)}.")
        for name, level in info.levels.items():
            as_fraction(level, name, "bundle")
        return info


@dataclasses.dataclass(frozen=True, eq=False)
class Bundle:
    """A text classifier with what is calibrated on its probabilities, made by `surelabel.train` or `load_bundle`.

    Attributes
    ----------
    classifier : TextClassifier
    predictor : ConformalLabelSets
        Calibrated, with label names. If something is filed, it is calibrated apart for filed texts and for texts that
        people see, so that prediction sets keep their promise for both.
    policy : FilingPolicy
        Which texts are filed, and the tags to consider for all others.
    info : BundleInfo
    seen : SeenTexts
        Hashes of the texts of each part.
    filing, calibration : HeldOutTexts
        Figures of the texts that the promises are calibrated on; no text.
    known_words : KnownWords or None
        Words of the training texts.
    recalibration : Recalibration or None
        Correction of the classifier's probabilities.
    thresholds : Thresholds or None
        Rule for the best guess, if it is made for F1.
    evaluation : BundleEvaluation or None
        Figures on test texts.
    vocabulary : Vocabulary or None
        URIs, other names and broader concepts of the labels.
    report : bytes or None
        The HTML report.

    Examples
    --------
    >>> import surelabel
    >>> bundle = surelabel.train(surelabel.corpora.load("synthetic", n_texts=600, n_labels=5))
    >>> bundle.label_names
    ('trade', 'oil', 'elections', 'football', 'medicine')
    """

    classifier: TextClassifier
    predictor: ConformalLabelSets
    policy: FilingPolicy
    info: BundleInfo
    seen: SeenTexts
    filing: HeldOutTexts
    calibration: HeldOutTexts
    known_words: KnownWords | None = None
    recalibration: Recalibration | None = None
    thresholds: Thresholds | None = None
    evaluation: BundleEvaluation | None = None
    vocabulary: Vocabulary | None = None
    report: bytes | None = None

    def __post_init__(self) -> None:
        policy = self.policy.automation.predictor_
        if not tuple(self.classifier.label_names_) == self.label_names == policy.calibration_.label_names:
            raise InvalidInputError("The classifier, predictor and policy of a bundle must have the same labels.")

    def __repr__(self) -> str:
        return (
            f"<Bundle {self.info.name!r}: {self.info.classifier}, {len(self.label_names)} labels, {self.info.measure}, "
            f"{self.predictor.calibration_.n_texts} calibration texts>"
        )

    @property
    def label_names(self) -> tuple[str, ...]:
        """Names of the labels, in the order of the columns of probabilities."""
        return tuple(self.predictor.calibration_.label_names or ())

    @property
    def uris(self) -> tuple[str | None, ...] | None:
        """The URI of each label, in the order of the label names; None without a vocabulary."""
        if self.vocabulary is None:
            return None
        known = dict(zip(self.vocabulary.names, self.vocabulary.uris, strict=True))
        return tuple(known.get(name) for name in self.label_names)

    @property
    def group_column(self) -> str | None:
        """The column with the group of each text, None if the bundle is not calibrated by groups."""
        return self.info.group_column

    @property
    def groups(self) -> tuple[str, ...] | None:
        """The groups that the bundle is calibrated with, None if it is not calibrated by groups."""
        if self.group_column is None:
            return None
        return tuple(sorted({category.partition(": ")[2] for category in self.info.categories}))

    def predict_proba(self, texts: Iterable[str], scores: Any = None) -> Any:
        """Return the probability of each label for each text, (n, d) float64 or Shortlists, recalibrated if asked.

        `scores` are those of a tagger, one mapping of label to score per text, for a bundle of the kind "scores".
        """
        probabilities = self.classifier.predict_proba(texts, scores=scores)
        if self.recalibration is None or len(probabilities) == 0:
            return probabilities
        return self.recalibration.transform(probabilities)

    def share_known(self, texts: Sequence[str]) -> FloatArray | None:
        """Return the share of each text's words that occur in the training texts, (n,); None if that is unknown."""
        return None if self.known_words is None else self.known_words.share(texts)

    def categories(self, probabilities: Any, known_words: Any, groups: Any = None) -> list[str] | None:
        """Return the category of each text, None if all texts are one.

        A filed text of a group that has no filed calibration text is compared with those of the group that people see.
        """
        self._check_groups(groups)
        if not self.info.categories:
            return None
        filed = self.policy.file(probabilities, known_words)
        return self.policy.categories(filed, groups, self.info.categories)

    def _check_groups(self, groups: Any) -> None:
        """Raise unless groups are given where the bundle is calibrated by groups, and only there."""
        if groups is not None and self.group_column is None:
            raise InvalidInputError("This model is not calibrated by groups: leave the groups out, or train with one.")
        if groups is None and self.group_column is not None:
            raise InvalidInputError(
                f"This model is calibrated by groups: give the group of each text, as in {self.group_column!r}."
            )

    def _texts(self, texts: Iterable[str], groups: Any, scores: Any) -> Texts:
        """Return texts ready to be searched by the predictor."""
        given = list(texts) if not isinstance(texts, str) else texts
        probabilities = self.predict_proba(given, scores)
        return self.predictor.texts(probabilities, self.categories(probabilities, self.share_known(given), groups))

    def predict(self, texts: Iterable[str], *, groups: Any = None, scores: Any = None) -> ForcedPredictions:
        """Return the most plausible label-set of each text, with confidence and credibility.

        Here and below `groups` has the group of each text if the bundle is calibrated by groups.
        """
        return self.predictor.predict(self._texts(texts, groups, scores))

    def predict_set(
        self, texts: Iterable[str], *, groups: Any = None, scores: Any = None, **level: Any
    ) -> PredictionSets:
        """Return the prediction set of each text at a level, given as in `ConformalLabelSets.predict_set`."""
        return self.predictor.predict_set(self._texts(texts, groups, scores), **level)

    def predict_p(self, texts: Iterable[str], labels: Any, *, groups: Any = None, scores: Any = None) -> FloatArray:
        """Return the p-value of one given label-set per text, (n,): 0/1 rows, or collections of label names."""
        return self.predictor.predict_p(self._texts(texts, groups, scores), labels)

    def answers(
        self,
        texts: Iterable[str],
        *,
        significance: Any = None,
        confidence_level: Any = None,
        groups: Any = None,
        assurance: Any = None,
        top: int = 5,
        scores: Any = None,
        probabilities: Any = None,
    ) -> list[Answer]:
        """Return what a user reads about each text; see `surelabel.answers.Answer`.

        Parameters
        ----------
        significance, confidence_level, assurance
            As in `ConformalLabelSets.predict_set`; without a level an answer has no prediction set.
        groups : (n,) sequence, optional
        top : int
            Most plausible label-sets to name for each text.
        scores : sequence of mappings, optional
            Scores of a tagger.
        probabilities : optional
            What `predict_proba` returned for the texts.
        """
        given = list(texts) if not isinstance(texts, str) else texts
        if probabilities is None:
            probabilities = self.predict_proba(given, scores)
        if len(probabilities) == 0:
            return []
        self._check_groups(groups)
        answers = build_answers(
            self.predictor,
            probabilities,
            policy=self.policy,
            known_words=self.share_known(given),
            groups=groups,
            by_decision=bool(self.info.categories),
            significance=significance,
            confidence_level=confidence_level,
            assurance=assurance,
            top=top,
            best_guesses=self.best_guesses(probabilities),
        )
        if self.vocabulary is None:
            return answers
        uri_of = dict(zip(self.label_names, self.uris or (), strict=True))
        return [
            dataclasses.replace(one, uris=tuple(uri_of.get(label) or label for label in one.labels)) for one in answers
        ]

    def best_guesses(self, probabilities: Any) -> BoolArray | None:
        """Return the labels of each text by thresholds, None if best guesses are the most plausible label-sets."""
        return None if self.thresholds is None else self.thresholds.predict(probabilities)

    def explain(self, text: str, label: str | int) -> Explanation:
        """Explain which words of a text speak for a label; see `surelabel.text.TextClassifier.explain`."""
        return self.classifier.explain(text, label)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the bundle into a folder, atomically; an older bundle there is replaced."""
        from surelabel.models.card import model_card  # noqa: PLC0415 (cards describe bundles)

        target = check_overwrite(folder)
        documents = {
            _DESCRIPTION: {"format": _FORMAT, **self.info.to_dict()},
            _THRESHOLDS: self.thresholds and self.thresholds.to_dict(),
            _VOCABULARY: self.vocabulary and self.vocabulary.to_record(),
            _EVALUATION: self.evaluation and self.evaluation.to_dict(),
        }
        with atomic_folder(target) as temporary:
            (temporary / _CLASSIFIER).mkdir()
            self.classifier.write_files(temporary / _CLASSIFIER)
            self.predictor.save(temporary / _PREDICTOR)
            self.policy.save(temporary / _POLICY)
            self.seen.save(temporary / _SEEN)
            parts = {"filing": self.filing, "calibration": self.calibration}
            save_held_out(temporary / _HELD_OUT, parts, self.label_names)
            if self.known_words is not None:
                self.known_words.save(temporary / _WORDS)
            if self.recalibration is not None:
                self.recalibration.save(temporary / _RECALIBRATION)
            for name, document in documents.items():
                if document is not None:
                    text = json.dumps(document, ensure_ascii=False, indent=1)
                    (temporary / name).write_text(f"{text}\n", encoding="utf-8")
            if self.report is not None:
                (temporary / _REPORT).write_bytes(self.report)
            (temporary / _CARD).write_text(model_card(self), encoding="utf-8")
            write_manifest(temporary)
        return target


def with_names(corpus: Corpus, vocabulary: Vocabulary | None) -> Corpus:
    """Return a corpus whose labels have their preferred names, whichever of their names or URIs it uses."""
    if vocabulary is None:
        return corpus
    by_uri = vocabulary.apply(corpus)
    return dataclasses.replace(by_uri, label_names=tuple(map(vocabulary.name, by_uri.label_names)))


def load_bundle(path: str | os.PathLike[str]) -> Bundle:
    """Load a bundle from its folder: every file is verified in place, nothing is written, no code is run.

    Raises
    ------
    ArtifactError
        There is no bundle, or it is damaged or changed.
    MissingDependencyError
        The classifier is a neural one, and surelabel[text] is not installed.
    """
    from surelabel.models.evaluate import BundleEvaluation  # noqa: PLC0415 (evaluations need bundles)

    folder = Path(path)
    names = set(check_manifest(folder))
    try:
        document = _read_json(folder / _DESCRIPTION)
        if not isinstance(document, dict) or document.pop("format", None) != _FORMAT:
            raise ArtifactError(f"{folder} is not a model: its {_DESCRIPTION} does not describe one.")

        def optional(name: str, read: Any) -> Any:
            return read(folder / name) if name in names else None

        classifier = read_files(folder / _CLASSIFIER)
        held_out = load_held_out(folder / _HELD_OUT, classifier.label_names_)
        return Bundle(
            classifier=classifier,
            predictor=ConformalLabelSets.load(folder / _PREDICTOR),
            policy=FilingPolicy.load(folder / _POLICY),
            info=BundleInfo.from_dict(document),
            seen=SeenTexts.load(folder / _SEEN),
            filing=held_out["filing"],
            calibration=held_out["calibration"],
            known_words=optional(_WORDS, KnownWords.load),
            recalibration=optional(_RECALIBRATION, Recalibration.load),
            thresholds=optional(_THRESHOLDS, lambda file: Thresholds.from_dict(_read_json(file))),
            vocabulary=optional(_VOCABULARY, lambda file: Vocabulary.from_record(_read_json(file))),
            evaluation=optional(_EVALUATION, lambda file: BundleEvaluation.from_dict(_read_json(file))),
            report=optional(_REPORT, Path.read_bytes),
        )
    except (KeyError, ValueError, OSError) as error:
        if isinstance(error, ArtifactError):
            raise
        raise ArtifactError(f"The model {folder} cannot be used: {error}") from error


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{path} is damaged: {error}.") from error
