"""The whole journey: train, calibrate, evaluate and report, and resume after an interruption."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import logging
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from surelabel import corpora, text
from surelabel._core.progress import Report, reporting_to, step
from surelabel._core.storage import atomic_file
from surelabel._core.validation import check_limits
from surelabel.corpora import Corpus
from surelabel.exceptions import ArtifactError, CorpusError, InvalidInputError, TrainingError
from surelabel.labels.constraints import LabelConstraints
from surelabel.measures import MEASURES, Measure, SeparableMeasure, measure_name
from surelabel.models.bundle import Bundle, load_bundle
from surelabel.models.deciding import DecisionSettings, uncertified
from surelabel.models.evaluating import calibrated_predictors, completed, place_of
from surelabel.models.fitting import NEEDS_ALL, Automatic, any_measure_named, corrected, fitted_measure
from surelabel.models.folder import check_target
from surelabel.models.info import BundleInfo
from surelabel.models.settings import TrainingSettings, division_notes
from surelabel.models.steps import fitted_kind, made, part_probabilities, versions
from surelabel.models.texts import SeenTexts, repeated_texts
from surelabel.models.work import Work
from surelabel.probabilities_file import PartProbabilities
from surelabel.recalibration import Recalibration
from surelabel.text import TextClassifier, Thresholds

_log = logging.getLogger(__name__)
_DRAWN = ("test", "validation", "calibration")
# Constraints, and texts that break them, that a note names.
_MOST_SHOWN = 3
_OWN_SETTINGS = {"kind", "measure", "compared", "decisions"}
_SETTINGS = {field.name for field in dataclasses.fields(TrainingSettings)} - _OWN_SETTINGS
_PROMISES = {field.name for field in dataclasses.fields(DecisionSettings)}


def train(
    corpus: Corpus | str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    classifier: str = "linear",
    measure: Measure | str = "auto",
    compare: bool = True,
    progress: Report | None = None,
    **settings: Any,
) -> Bundle:
    """Train a classifier, calibrate it and evaluate it: what `surelabel train` does.

    Parameters
    ----------
    corpus : Corpus, name of a corpus, or file
        A corpus with a training and a calibration part, from `corpora.load`; or what `corpora.load` takes.
    out : path, optional
        Folder for the model; called again after an interruption, training resumes there. None keeps it in memory.
    classifier : {"linear", "hybrid", "auto", "randinit", "word2vec", "bert", "blend"}
        "auto" keeps the better of `linear` and `hybrid`.
    measure : Measure or str
        Nonconformity measure, or its name: "auto", "LogLoss", "L2", "mahalanobis", ...
    compare : bool
        Evaluate the other measures beside it.
    progress : callable, optional
        Called with a step's name, what is done of it, and how much there is (or None).
    **settings
        options (of the classifier), seed, min_labels, max_labels, name, constraints, recalibrate, listed, division,
        date and decision, as in `surelabel.models.TrainingSettings`; what is promised: max_wrong, assurance,
        max_missed, max_false and max_choices, as in `surelabel.models.DecisionSettings`; all others say how a file is
        read, as in `corpora.load`.

    Examples
    --------
    >>> import surelabel
    >>> corpus = surelabel.corpora.load("synthetic", n_texts=300, n_labels=5)
    >>> bundle = surelabel.train(corpus, measure="LogLoss", compare=False)
    >>> bundle
    <Bundle 'synthetic, linear': linear, 5 labels, LogLoss, 45 calibration texts>
    >>> bundle.answers(["Crude, a barrel, petroleum."], significance="0.1")[0].certain
    ('oil',)
    """
    promised = DecisionSettings(**{name: settings.pop(name) for name in list(settings) if name in _PROMISES})
    reading = {name: settings.pop(name) for name in list(settings) if name not in _SETTINGS}
    if isinstance(measure, str):
        chosen: Measure | Automatic = Automatic() if measure.lower() == "auto" else any_measure_named(measure)
    else:
        chosen = measure
    wanted = TrainingSettings(
        kind=classifier, measure=chosen, compared=MEASURES if compare else {}, decisions=promised, **settings
    )
    with reporting_to(progress):
        if not isinstance(corpus, Corpus):
            named = (None if wanted.division is None else wanted.division.by, wanted.date)
            if any(named):
                reading["columns"] = (*reading.get("columns", ()), *filter(None, named))
            with step("reading texts"):
                corpus = corpora.load(corpus, seed=wanted.seed, **reading)
        elif reading:
            raise InvalidInputError(
                f"train got {', '.join(sorted(reading))}, which say how a file is read, but a corpus instead of a file."
            )
        return train_bundle(corpus, wanted) if out is None else train_to_folder(corpus, Path(out), wanted)


def train_bundle(corpus: Corpus, settings: TrainingSettings | None = None, work_folder: Path | None = None) -> Bundle:
    """Train a classifier on the training part, calibrate on the calibration part, evaluate on the test part.

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
    listed = _listed(len(corpus.label_names), settings)
    with step("looking for texts that are in two parts"):
        notes = (*_notes(corpus), *_constraint_notes(corpus, settings.constraints))
    group_column = None if settings.division is None else settings.division.by
    calibration_texts = corpus.part("calibration")
    if group_column is not None:
        calibration_texts.column(group_column)  # before training, not after
    _warn(notes)
    work = Work(work_folder, corpus, settings, limits, listed)
    classifier, choice = _classifier(corpus, settings, work)
    names = [name for name in ("calibration", "test", "validation") if len(corpus.parts.get(name, ()))]
    parts = {name: part_probabilities(classifier, corpus.part(name), listed, group_column) for name in names}
    plain = parts.get("validation") if listed is None else None
    measure, recalibration = work.fitted() or _fitted_on_validation(corpus, settings, plain, limits)
    parts = {name: corrected(part, recalibration) for name, part in parts.items()}
    thresholds, validation = None, parts.get("validation")
    if settings.decision != "exact" and validation is not None:
        per_label = True if settings.decision == "macro-f1" else None
        thresholds = Thresholds.fit(
            validation.probabilities, validation.labels, per_label=per_label, seed=settings.seed
        )
    _log.info("calibrating with %d texts", len(calibration_texts))
    label_counts = np.asarray(corpus.part("train").label_matrix.sum(axis=0)).reshape(-1)
    predictors = calibrated_predictors(
        {measure_name(measure): measure, **settings.compared},
        parts["calibration"],
        min_labels=limits[0],
        max_labels=limits[1],
        label_names=corpus.label_names,
        constraints=settings.constraints,
        taxonomy=None if settings.division is None else settings.division.taxonomy(label_counts),
    )
    predictor = next(iter(predictors.values()))
    work.keep(predictor, recalibration)
    small = division_notes(predictor)
    _warn(small)
    info = dataclasses.replace(
        _info(corpus, settings, classifier, measure_name(predictor.measure)),
        notes=(*choice, *notes, *small),
        listed=listed,
        group_column=group_column,
        label_texts=dict(zip(corpus.label_names, map(int, label_counts), strict=True)),
    )
    trained_on = corpus.part(*(name for name in ("train", "validation") if name in corpus.parts))
    seen = SeenTexts.of(trained_on.texts, calibration_texts.texts)
    bundle = Bundle(classifier, predictor, info, recalibration=recalibration, seen=seen, thresholds=thresholds)
    plan = uncertified(settings.decisions.settled(validation), predictor, corpus.label_names)
    return completed(
        bundle,
        predictors,
        corpus,
        calibration_texts,
        parts,
        plan,
        kept=work.evaluations,
        date=settings.date,
        seed=settings.seed,
        work_folder=work_folder,
    )


def train_to_folder(
    corpus: Corpus, out: str | os.PathLike[str], settings: TrainingSettings | None = None, *, resume: bool = True
) -> Bundle:
    """Train a bundle into a folder; the same call resumes after an interruption.

    What is half done lies in a hidden folder beside `out`, which is removed at the end. An older bundle at `out`
    stays as it is until the new one is whole.
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
    with step("saving the model"):
        bundle.save(target)
        shutil.rmtree(work_folder, ignore_errors=True)
        return load_bundle(out)


def _warn(notes: tuple[str, ...]) -> None:
    """Log what a reader of the figures must know."""
    for note in notes:
        _log.warning("%s", note)


def _fitted_on_validation(
    corpus: Corpus, settings: TrainingSettings, validation: PartProbabilities | None, limits: tuple[int, int]
) -> tuple[Measure, Recalibration | None]:
    """Return the measure and the correction of probabilities, fitted on the validation part if they must be."""
    fits = settings.needs_validation or isinstance(settings.measure, Automatic)
    if not fits or validation is None:
        return fitted_measure(settings.measure, None, None, limits), None
    recalibration = None
    if settings.recalibrate:
        recalibration = Recalibration.fit(validation.probabilities, validation.labels, seed=settings.seed)
        _log.info("recalibrated: %r", recalibration)
    measure = fitted_measure(
        settings.measure,
        corrected(validation, recalibration),
        corpus.part("train").labels,
        limits,
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


def _limits(corpus: Corpus, settings: TrainingSettings) -> tuple[int, int]:
    """Return the limits on the number of labels: as set, or those of the proper training texts.

    Raises, before training and not after, if limits or constraints leave no candidate.
    """
    sizes = np.diff(corpus.part("train").label_matrix.indptr)
    fewest = min(1, int(sizes.min())) if settings.min_labels is None else settings.min_labels
    most = max(int(sizes.max()), fewest, 1) if settings.max_labels is None else settings.max_labels
    n_labels = len(corpus.label_names)
    check_limits(fewest, most, who="train_bundle", n_labels=n_labels)
    if settings.constraints is not None:
        settings.constraints.check_candidates(corpus.label_names, n_labels, fewest, most, who="train_bundle")
    return fewest, most


def _classifier(corpus: Corpus, settings: TrainingSettings, work: Work) -> tuple[TextClassifier, tuple[str, ...]]:
    """Return the trained classifier, from the work folder if it was finished there, and notes on its choice."""
    folder = None if work.folder is None else work.folder / "classifier"
    if folder is not None and folder.is_dir():
        choice = folder.with_name("choice.txt")
        try:
            classifier = text.load(folder)
        except ArtifactError as error:
            _log.warning("%s It is trained again.", error)
        else:
            _log.info("the classifier was trained already; resuming with it")
            return classifier, (choice.read_text(encoding="utf-8"),) if choice.is_file() else ()
    _log.info("training %s on %d texts", settings.kind, len(corpus.parts["train"]))
    checkpoints = None if folder is None else folder.with_name("checkpoints")
    classifier, note = fitted_kind(corpus, settings.kind, work.options, checkpoints)
    if folder is not None:
        if note is not None:
            with atomic_file(folder.with_name("choice.txt")) as temporary:
                temporary.write_text(note, encoding="utf-8")
        classifier.save(folder)
    return classifier, () if note is None else (note,)


def _info(corpus: Corpus, settings: TrainingSettings, classifier: TextClassifier, measure: str) -> BundleInfo:
    """Describe where a bundle comes from."""
    split = corpus.split
    return BundleInfo(
        name=settings.name or f"{corpus.name}, {classifier.kind}",
        kind=classifier.kind,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        versions=versions(),
        settings=dataclasses.asdict(classifier.settings),
        corpus=corpus.name,
        fingerprint=corpus.fingerprint(),
        provenance={**dataclasses.asdict(corpus.provenance), "notes": list(corpus.provenance.notes)},
        part_sizes={name: len(rows) for name, rows in corpus.parts.items()},
        seed=None if split is None else split.seed,
        measure=measure,
        calibrated_on=place_of(corpus, "calibration", len(corpus.parts["calibration"])),
        drawn={part: 0 if split is None else split.sizes.get(part, 0) for part in _DRAWN},
    )
