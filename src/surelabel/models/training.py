"""Train, calibrate, evaluate and report, and resume after an interruption."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import logging
import os
import shutil
from pathlib import Path

import numpy as np

from surelabel import text
from surelabel._core import progress
from surelabel._core.storage import atomic_file
from surelabel._core.validation import check_limits
from surelabel.corpora import Corpus
from surelabel.exceptions import ArtifactError, CorpusError, InvalidInputError, TrainingError
from surelabel.labels.constraints import LabelConstraints
from surelabel.measures import Measure, SeparableMeasure, measure_name
from surelabel.models.bundle import Bundle, load_bundle
from surelabel.models.classifying import fitted_kind, made
from surelabel.models.deciding import certified_decisions, uncertified
from surelabel.models.dividing import division_notes
from surelabel.models.evaluating import Limits, calibrated_predictors, details_of, evaluated
from surelabel.models.examples import worked_examples
from surelabel.models.figures import Figures
from surelabel.models.fitting import NEEDS_ALL, Automatic, corrected, fitted_measure
from surelabel.models.folder import check_target
from surelabel.models.info import BundleInfo
from surelabel.models.reporting import try_report
from surelabel.models.settings import TrainingSettings
from surelabel.models.steps import part_probabilities, versions
from surelabel.models.texts import SeenTexts, repeated_texts
from surelabel.models.verdict import judged
from surelabel.models.work import Work
from surelabel.probabilities_file import PartProbabilities
from surelabel.recalibration import Recalibration
from surelabel.taxonomies.kinds import Taxonomy
from surelabel.text import TextClassifier, Thresholds

__all__ = ["train_bundle", "train_to_folder"]

_log = logging.getLogger(__name__)
_DRAWN = ("test", "validation", "calibration")
# Constraints, and texts that break them, that a note names.
_MOST_SHOWN = 3


def train_bundle(corpus: Corpus, settings: TrainingSettings | None = None, work_folder: Path | None = None) -> Bundle:
    """Train a classifier on the training part, calibrate on the calibration part, evaluate on the test part.

    Parameters
    ----------
    corpus : Corpus
        With a training and a calibration part; with a test part the bundle is evaluated, too.
    settings : TrainingSettings, optional
    work_folder : path, optional
        Where checkpoints, the fitted classifier, figures and the report go; with the same corpus and settings a second
        call resumes from what is there. None keeps nothing and makes no report.

    Returns
    -------
    Bundle

    Examples
    --------
    >>> from surelabel import corpora
    >>> corpus = corpora.load("synthetic", n_texts=300, n_labels=5)
    >>> train_bundle(corpus, TrainingSettings(compared={}))
    <Bundle 'synthetic, linear': linear, 5 labels, LogLoss, 45 calibration texts>
    """
    settings = settings or TrainingSettings()
    _check_parts(corpus, needs_validation=settings.needs_validation)
    limits = _limits(corpus, settings)
    _check_limits(corpus, limits, settings.constraints)
    listed = _listed(len(corpus.label_names), settings)
    with progress.step("looking for texts that are in two parts"):
        notes = (*_notes(corpus), *_constraint_notes(corpus, settings.constraints))
    group_column = None if settings.division is None else settings.division.by
    if group_column is not None:
        corpus.part("calibration").column(group_column)  # before training, not after
    _warn(notes)
    work = Work(work_folder, corpus, settings, limits, listed)
    classifier, choice = _classifier(corpus, settings, work)
    names = [name for name in ("calibration", "test") if name in corpus.parts]
    parts = {name: part_probabilities(classifier, corpus.part(name), listed, group_column) for name in names}
    plain = _validation(corpus, classifier, listed, group_column)
    measure, recalibration = _fitted_on_validation(corpus, settings, plain if listed is None else None, work)
    validation = None if plain is None else corrected(plain, recalibration)
    parts = {name: corrected(part, recalibration) for name, part in parts.items()}
    thresholds = None
    if settings.decision != "exact" and validation is not None:
        per_label = True if settings.decision == "macro-f1" else None
        thresholds = Thresholds.fit(
            validation.probabilities, validation.labels, per_label=per_label, seed=settings.seed
        )
    _log.info("calibrating with %d texts", len(parts["calibration"]))
    calibration = parts["calibration"]
    predictors = calibrated_predictors(
        {measure_name(measure): measure, **settings.compared},
        calibration,
        corpus.label_names,
        limits,
        settings.constraints,
        _taxonomy(corpus, settings),
    )
    work.keep(next(iter(predictors.values())), recalibration)
    small = division_notes(next(iter(predictors.values())))
    _warn(small)
    label_texts = _label_texts(corpus)
    details = None
    if "test" in parts:
        details = details_of(label_texts, corpus.label_names, corpus.part("test"), settings.date)
    figures = evaluated(predictors, calibration, parts.get("test"), work.evaluations, thresholds, details)
    decisions = certified_decisions(
        uncertified(settings.decisions.settled(validation), figures.predictor, corpus.label_names),
        calibration,
        classifier.known_words(corpus.part("calibration").texts),
        validation,
        seed=settings.seed,
    )
    info = dataclasses.replace(
        _info(corpus, settings, classifier, (*choice, *notes, *small), figures),
        listed=listed,
        short_lists=settings.decisions.short_lists,
        group_column=group_column,
        label_texts=label_texts,
    )
    trained_on = corpus.part(*(name for name in ("train", "validation") if name in corpus.parts))
    seen = SeenTexts.of(trained_on.texts, corpus.part("calibration").texts)
    bundle = Bundle(
        classifier,
        figures.predictor,
        info,
        evaluation=figures.evaluations,
        recalibration=recalibration,
        forced_totals=figures.forced_totals,
        seen=seen,
        thresholds=thresholds,
        decisions=decisions,
    )
    name, part = ("calibration", calibration) if validation is None else ("validation", validation)
    bundle = judged(bundle, part, corpus.part(name).texts, name)
    return _with_examples(bundle, corpus, figures, parts["test"], work_folder) if "test" in parts else bundle


def _with_examples(
    bundle: Bundle, corpus: Corpus, figures: Figures, part: PartProbabilities, work_folder: Path | None
) -> Bundle:
    """Return the bundle with worked examples of its test texts and, if there is a folder for it, with its report."""
    test = corpus.part("test")
    with progress.step("choosing examples"):
        examples = worked_examples(bundle, part.probabilities, test.texts, groups=part.groups)
        chosen = tuple(test.texts[example.row] for example in examples)
        bundle = dataclasses.replace(bundle, info=dataclasses.replace(bundle.info, examples=chosen))
    if work_folder is None:
        return bundle
    report = try_report(work_folder / "report.html", bundle, figures, part, test, corpus)
    return dataclasses.replace(bundle, report=None if report is None else report.read_bytes())


def train_to_folder(
    corpus: Corpus,
    out: str | os.PathLike[str],
    settings: TrainingSettings | None = None,
    *,
    resume: bool = True,
) -> Bundle:
    """Train a bundle into a folder; the same call resumes after an interruption.

    What is half done lies in a hidden folder beside `out`, which is removed at the end. An older bundle at `out`
    stays as it is until the new one is whole.

    Parameters
    ----------
    corpus, settings
        As in `train_bundle`.
    out : path
        A new or empty folder, or an older bundle.
    resume : bool
        False starts over.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise TrainingError(
            "A bundle is written by one process, and torchrun or accelerate has started several. Call "
            "train_bundle on all of them and save what it returns on the first: docs/scaling.md shows how."
        )
    target = check_target(Path(out))
    work_folder = target.parent / f".{target.name}.training"
    if not resume:
        shutil.rmtree(work_folder, ignore_errors=True)
    bundle = train_bundle(corpus, settings, work_folder)
    with progress.step("saving the model"):
        bundle.save(target)
        shutil.rmtree(work_folder, ignore_errors=True)
        return load_bundle(out)


def _warn(notes: tuple[str, ...]) -> None:
    """Log what a reader of the figures must know."""
    for note in notes:
        _log.warning("%s", note)


def _validation(
    corpus: Corpus, classifier: TextClassifier, listed: int | None, group_column: str | None
) -> PartProbabilities | None:
    """Return the probabilities of the validation part, if there is one."""
    if "validation" not in corpus.parts or len(corpus.parts["validation"]) == 0:
        return None
    return part_probabilities(classifier, corpus.part("validation"), listed, group_column)


def _fitted_on_validation(
    corpus: Corpus, settings: TrainingSettings, validation: PartProbabilities | None, work: Work
) -> tuple[Measure, Recalibration | None]:
    """Return the measure and the correction of probabilities, fitted on the validation part if they must be."""
    kept = work.fitted()
    if kept is not None:
        return kept
    fits = settings.needs_validation or isinstance(settings.measure, Automatic)
    if not fits or validation is None:
        return fitted_measure(settings.measure, None, None, _limits(corpus, settings)), None
    recalibration = None
    if settings.recalibrate:
        recalibration = Recalibration.fit(validation.probabilities, validation.labels, seed=settings.seed)
        _log.info("recalibrated: %r", recalibration)
    measure = fitted_measure(
        settings.measure,
        corrected(validation, recalibration),
        corpus.part("train").labels,
        _limits(corpus, settings),
        constraints=settings.constraints,
        label_names=corpus.label_names,
        seed=settings.seed,
    )
    return measure, recalibration


def _listed(n_labels: int, settings: TrainingSettings) -> int | None:
    """Return how many labels are listed per text, None for all; raise if something needs all."""
    listed = settings.listed
    if listed is None:
        listed = made(settings.kind, settings.options).listed_for(n_labels)
    elif listed == "all":
        listed = None
    elif isinstance(listed, bool) or not isinstance(listed, int) or listed < 1:
        raise InvalidInputError(
            f"The 'listed' setting must be a whole number of 1 or more, 'all', or None. Got {listed!r} instead."
        )
    if listed is None:
        return None
    not_sparse = {
        f"The measure {settings.measure!r}": not isinstance(settings.measure, (SeparableMeasure, Automatic)),
        "A prediction under constraints": settings.constraints is not None,
        "Recalibration": settings.recalibrate,
        "The decision 'macro-f1'": settings.decision == "macro-f1",
    }
    for what, is_asked in not_sparse.items():
        if is_asked:
            raise InvalidInputError(f"{what} {NEEDS_ALL}")
    return min(listed, n_labels)


def _check_parts(corpus: Corpus, *, needs_validation: bool) -> None:
    """Raise if a corpus has no texts to train, to calibrate, or to fit something on."""
    for name in ("train", *(("validation",) if needs_validation else ()), "calibration"):
        if name not in corpus.parts or len(corpus.parts[name]) == 0:
            raise CorpusError(
                f"Corpus {corpus.name!r} must have a {name} part to make a model. It has {', '.join(corpus.parts)}."
            )


def _check_limits(corpus: Corpus, limits: Limits, constraints: LabelConstraints | None) -> None:
    """Raise if limits or constraints leave no candidate: before training, not after."""
    n_labels = len(corpus.label_names)
    check_limits(*limits, who="train_bundle", n_labels=n_labels)
    if constraints is not None:
        constraints.check_candidates(corpus.label_names, n_labels, *limits, who="train_bundle")


def _notes(corpus: Corpus) -> tuple[str, ...]:
    """Say which parts hold texts of earlier parts."""
    return tuple(
        f"{count:,} of the {len(corpus.parts[name]):,} {name} texts also appear in an earlier part: "
        "figures on them say nothing about new texts."
        for name, count in repeated_texts(corpus, ("calibration", "test")).items()
        if count
    )


def _constraint_notes(corpus: Corpus, constraints: LabelConstraints | None) -> tuple[str, ...]:
    """Say which training texts do not obey the constraints."""
    if constraints is None:
        return ()
    training = corpus.part("train")
    checked = constraints.check(training.labels, corpus.label_names)
    if not checked.violations:
        return ()
    broken = [f"{rule} ({count:,})" for rule, count in itertools.islice(checked.by_constraint().items(), _MOST_SHOWN)]
    examples = [str(training.ids[row]) for row in checked.rows[:_MOST_SHOWN]]
    note = (
        f"{len(checked.rows):,} of the {checked.n_texts:,} training texts do not obey the constraints: "
        f"{', '.join(broken)}; for example {', '.join(examples)}. Prediction sets never hold such label-sets."
    )
    return (note,)


def _limits(corpus: Corpus, settings: TrainingSettings) -> Limits:
    """Return the limits on the number of labels: as set, or those of the proper training texts."""
    sizes = np.diff(corpus.part("train").label_matrix.indptr)
    fewest = min(1, int(sizes.min())) if settings.min_labels is None else settings.min_labels
    most = max(int(sizes.max()), fewest, 1) if settings.max_labels is None else settings.max_labels
    return fewest, most


def _label_texts(corpus: Corpus) -> dict[str, int]:
    """Return how many training texts each label has."""
    counts = np.asarray(corpus.part("train").label_matrix.sum(axis=0)).reshape(-1).tolist()
    return dict(zip(corpus.label_names, map(int, counts), strict=True))


def _taxonomy(corpus: Corpus, settings: TrainingSettings) -> Taxonomy | None:
    """Return how texts and label-sets are divided."""
    if settings.division is None:
        return None
    return settings.division.taxonomy(np.asarray(corpus.part("train").label_matrix.sum(axis=0)))


def _classifier(corpus: Corpus, settings: TrainingSettings, work: Work) -> tuple[TextClassifier, tuple[str, ...]]:
    """Return the trained classifier, from the work folder if it was finished there, and notes on its choice."""
    if work.folder is None:
        classifier, note = fitted_kind(corpus, settings.kind, work.options)
        return classifier, () if note is None else (note,)
    folder, choice = work.folder / "classifier", work.folder / "choice.txt"
    if folder.is_dir():
        try:
            classifier = text.load(folder)
        except ArtifactError as error:
            _log.warning("%s It is trained again.", error)
        else:
            _log.info("the classifier was trained already; resuming with it")
            return classifier, (choice.read_text(encoding="utf-8"),) if choice.is_file() else ()
    _log.info("training %s on %d texts", settings.kind, len(corpus.part("train")))
    classifier, note = fitted_kind(corpus, settings.kind, work.options, work.folder / "checkpoints")
    if note is not None:
        with atomic_file(choice) as temporary:
            temporary.write_text(note, encoding="utf-8")
    classifier.save(folder)
    return classifier, () if note is None else (note,)


def _info(
    corpus: Corpus,
    settings: TrainingSettings,
    classifier: TextClassifier,
    notes: tuple[str, ...],
    figures: Figures,
) -> BundleInfo:
    """Describe a bundle."""
    fingerprint = corpus.fingerprint()
    where = {"corpus": corpus.name, "fingerprint": fingerprint}
    sizes = {name: len(rows) for name, rows in corpus.parts.items()}
    return BundleInfo(
        name=settings.name or f"{corpus.name}, {classifier.kind}",
        kind=classifier.kind,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        versions=versions(),
        settings=dataclasses.asdict(classifier.settings),
        corpus=corpus.name,
        fingerprint=fingerprint,
        provenance={**dataclasses.asdict(corpus.provenance), "notes": list(corpus.provenance.notes)},
        part_sizes=sizes,
        seed=None if corpus.split is None else corpus.split.seed,
        measure=measure_name(figures.predictor.measure),
        calibrated_on={**where, "part": "calibration", "n_texts": sizes["calibration"]},
        evaluated_on={} if figures.evaluations is None else {**where, "part": "test", "n_texts": sizes["test"]},
        notes=notes,
        drawn={part: corpus.split.sizes.get(part, 0) if corpus.split else 0 for part in _DRAWN},
    )
