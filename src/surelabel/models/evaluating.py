"""Calibrate and evaluate on the texts of a part; never on texts that a classifier was trained on."""

from __future__ import annotations

import dataclasses
import datetime
import logging
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from surelabel._core import progress
from surelabel._core.validation import BoolArray, FloatArray
from surelabel.conformal import ConformalLabelSets
from surelabel.corpora import Corpus, Part
from surelabel.evaluation.conditional import TextDetails
from surelabel.evaluation.evaluate import Evaluation, evaluate
from surelabel.exceptions import InvalidInputError, MissingDependencyError
from surelabel.guarantees.decisions import Decisions
from surelabel.labels.constraints import LabelConstraints
from surelabel.labels.sparse import is_sparse
from surelabel.measures import MEASURES, Measure, measure_name
from surelabel.models.bundle import Bundle
from surelabel.models.deciding import (
    DecisionSettings,
    certified_decisions,
    label_counts,
    settings_of,
    uncertified,
)
from surelabel.models.dividing import Division, division_notes
from surelabel.models.fitting import fitted_measure, needs_fitting
from surelabel.models.steps import calibrated, part_probabilities
from surelabel.models.verdict import ModelVerdict, judge
from surelabel.probabilities_file import PartProbabilities
from surelabel.taxonomies.kinds import Taxonomy
from surelabel.text import Thresholds

_log = logging.getLogger(__name__)

Limits: TypeAlias = tuple[int, int]
"""Fewest and most labels of a label-set."""


@dataclasses.dataclass(frozen=True, eq=False)
class Figures:
    """Predictors by name of measure, the bundle's own first, and their evaluations if there are test texts.

    `forced_totals` are of the calibration texts' forced predictions, see `Bundle`.
    """

    predictors: Mapping[str, ConformalLabelSets]
    evaluations: Mapping[str, Evaluation] | None
    forced_totals: FloatArray | None = None

    @property
    def predictor(self) -> ConformalLabelSets:
        """The bundle's own predictor."""
        return next(iter(self.predictors.values()))


def calibrated_predictors(
    measures: Mapping[str, Measure],
    calibration: PartProbabilities,
    label_names: tuple[str, ...],
    limits: Limits,
    constraints: LabelConstraints | None = None,
    taxonomy: Taxonomy | None = None,
) -> dict[str, ConformalLabelSets]:
    """Calibrate measures, by name, with the same texts."""
    predictors = {}
    with progress.step("calibrating", len(measures)) as advance:
        for name, measure in measures.items():
            predictors[name] = calibrated(
                measure,
                calibration.probabilities,
                calibration.labels,
                limits[1],
                label_names,
                min_labels=limits[0],
                constraints=constraints,
                taxonomy=taxonomy,
                groups=calibration.groups,
            )
            advance()
    return predictors


def evaluated(
    predictors: Mapping[str, ConformalLabelSets],
    calibration: PartProbabilities,
    test: PartProbabilities | None,
    kept: MutableMapping[str, Evaluation] | None = None,
    thresholds: Thresholds | None = None,
    details: TextDetails | None = None,
) -> Figures:
    """Evaluate predictors if there are test texts; evaluations that were kept are not repeated.

    `details` of the test texts make figures by kind of text.
    """
    with progress.step("scoring the best guesses of calibration texts"):
        forced_totals = next(iter(predictors.values())).totals(calibration.probabilities)
    if test is None:
        return Figures(predictors, None, forced_totals)
    kept = {} if kept is None else kept
    guesses = None if thresholds is None else thresholds.predict(test.probabilities)
    with progress.step(f"evaluating on {len(test):,} texts", len(predictors)) as advance:
        for name, predictor in predictors.items():
            if name not in kept:
                with progress.step(f"evaluating {name} on {len(test):,} texts"):
                    _log.info("evaluating %s on %d texts", name, len(test))
                    kept[name] = evaluate(
                        predictor,
                        test.probabilities,
                        test.labels,
                        criteria=False,
                        best_guesses=guesses,
                        groups=test.groups,
                        details=details,
                        by_kind=name == next(iter(predictors)),
                    )
            advance()
    return Figures(predictors, {name: kept[name] for name in predictors}, forced_totals)


def details_of(label_texts: Mapping[str, int], names: tuple[str, ...], part: Part, date: str | None) -> TextDetails:
    """Return what figures by kind of text need: ids, dates, and how many training texts each label has."""
    counts = label_counts(label_texts, names)
    return TextDetails(part.ids, None if date is None else part.column(date), counts)


def report_on(
    path: Path,
    bundle: Bundle,
    figures: Figures,
    probabilities: PartProbabilities,
    held_out: Part,
    corpus: Corpus,
    verdict: Mapping[str, Any] | None = None,
) -> Path:
    """Write the report on a bundle's figures on held-out texts; return its path.

    The verdict is that of the bundle if none is given. Who is missed is said by the figures of the report itself.
    """
    from surelabel.report import ReportInput, write_report  # noqa: PLC0415 (matplotlib, which may be missing)

    info = bundle.info
    words = (info.verdict if verdict is None else verdict).get("words", [])
    is_own = corpus.fingerprint() == info.fingerprint
    others = [name for name in corpus.parts if is_own and name not in held_out.name.split("+")]
    content = ReportInput(
        title=info.name if is_own else f"{info.name} on {corpus.name}",
        predictors=figures.predictors,
        probabilities=probabilities.probabilities,
        labels=probabilities.labels,
        texts=held_out.texts,
        ids=held_out.ids,
        date=datetime.date.today().isoformat(),
        verdict=[said for said in words if not said.startswith("The promise of")],
        groups=probabilities.groups,
        settings={"classifier": info.kind, **info.settings, "listed labels": info.listed or "all"},
        provenance={
            "corpus": corpus.name,
            "part": held_out.name,
            "fingerprint": corpus.fingerprint(),
            **dataclasses.asdict(corpus.provenance),
        },
        evaluations=figures.evaluations or {},
        other_texts={name: corpus.part(name).texts for name in others},
    )
    with progress.step("writing the report"):
        write_report(path, content)
    return path


def try_report(
    path: Path, bundle: Bundle, figures: Figures, probabilities: PartProbabilities, held_out: Part, corpus: Corpus
) -> Path | None:
    """Write the report; if what it needs is not installed, say so and continue without."""
    try:
        return report_on(path, bundle, figures, probabilities, held_out, corpus)
    except MissingDependencyError as error:
        _log.warning("there is no report: %s", error)
        return None


def is_same_source(bundle: Bundle, corpus: Corpus) -> bool:
    """Tell whether a corpus comes from the file that the bundle's classifier was trained on."""
    provenance = bundle.info.provenance
    checksum = corpus.provenance.checksum
    if checksum is not None:
        return bool(provenance.get("checksum") == checksum)
    return bool(provenance.get("source") == corpus.provenance.source)


def held_out_part(bundle: Bundle, corpus: Corpus, default: str, part: str | None = None) -> Part:
    """Return the texts of a corpus that may calibrate or evaluate a bundle.

    Of the corpus that the classifier was trained on, its calibration or test part; of another corpus, its own part of
    that name where it has one, else all of it.

    Parameters
    ----------
    bundle : Bundle
    corpus : Corpus
    default : {"calibration", "test"}
        Part to take where none is asked for.
    part : str, optional
        Part to take; "all" for all texts.

    Raises
    ------
    InvalidInputError
        The classifier was trained on texts of that part, or parts were drawn in another way than at training.
    """
    names = tuple(corpus.parts) if part == "all" else (part or default,)
    if corpus.fingerprint() == bundle.info.fingerprint:
        if not set(names) <= {"calibration", "test"}:
            raise InvalidInputError(
                f"The model was trained on the {names[0]} part of {corpus.name!r}: take its calibration or test part."
            )
        return corpus.part(*names)
    if is_same_source(bundle, corpus):
        raise InvalidInputError(
            f"Corpus {corpus.name!r} is what the model was trained on, but its parts were drawn in another way, so "
            f"that training texts would count as new. Use seed {bundle.info.seed} and the columns of training."
        )
    drawn = corpus.split is not None and default in corpus.split.sizes
    if part is None and (drawn or default not in corpus.parts):
        names = tuple(corpus.parts)
    return corpus.part(*names)


def without_training_texts(bundle: Bundle, corpus: Corpus, part: Part) -> tuple[Part, int]:
    """Return a part without the texts that the model was trained with, and how many those were.

    Parts of the corpus of training are known to be held out, and stay as they are.
    """
    if bundle.seen is None or corpus.fingerprint() == bundle.info.fingerprint:
        return part, 0
    is_seen = bundle.seen.in_training(part.texts)
    return (_rows_of(part, ~is_seen), int(is_seen.sum())) if is_seen.any() else (part, 0)


def _rows_of(part: Part, chosen: BoolArray) -> Part:
    """Return some texts of a part."""
    rows = np.flatnonzero(chosen)
    if len(rows) == 0:
        raise InvalidInputError(
            f"All {len(part):,} texts were used to train the model, so they tell nothing about new texts. Take others."
        )
    return part.rows(rows)


def _check_new(bundle: Bundle, corpus: Corpus, part: Part, *, skip: bool, add: bool) -> Part:
    """Return the texts to calibrate with; raise if the model was trained with some, or calibrated with added ones."""
    new, n_seen = without_training_texts(bundle, corpus, part)
    if n_seen and not skip and bundle.seen is not None:
        seen = bundle.seen.in_training(part.texts)
        first = part.ids[int(np.argmax(seen))]
        raise InvalidInputError(
            f"{n_seen:,} of the {len(part):,} texts were used to train the model, the first of them {first!r}: "
            "calibrated with them, it would promise too much. Remove them, or leave them out with "
            "--skip-training-texts."
        )
    if add and bundle.seen is not None:
        is_repeated = bundle.seen.in_calibration(new.texts)
        if is_repeated.any():
            first = new.ids[int(np.argmax(is_repeated))]
            raise InvalidInputError(
                f"The model is calibrated with {int(is_repeated.sum()):,} of these {len(new):,} texts already, the "
                f"first of them {first!r}: a text counts once. Remove them, and add the others."
            )
    return new


def _labels_of(bundle: Bundle, part: Part) -> Any:
    """Return a part's labels in the order of the bundle's label names, a bool CSR array."""
    columns = {name: k for k, name in enumerate(bundle.label_names)}
    places = np.array([columns.get(name, -1) for name in part.label_names], dtype=np.int64)
    matrix = part.label_matrix
    unknown = np.unique(matrix.indices[places[matrix.indices] < 0])
    if len(unknown):
        raise InvalidInputError(
            f"The labels of the texts must be among the model's {len(columns)}. Got {part.label_names[unknown[0]]!r} "
            f"({len(unknown)} such labels): rename or remove them, or train a model with them."
        )
    return csr_array((matrix.data, places[matrix.indices], matrix.indptr), shape=(len(part), len(columns)))


def bundle_probabilities(bundle: Bundle, part: Part, group_column: str | None = None) -> PartProbabilities:
    """Return the bundle's probabilities for a part, with labels in its own order, and groups if it has them.

    `group_column` is the bundle's own unless it is about to be calibrated by another one.
    """
    made = part_probabilities(bundle, part, group_column=group_column)
    labels = _labels_of(bundle, part)
    return dataclasses.replace(made, labels=labels if is_sparse(made.probabilities) else labels.toarray())


def calibrate_bundle(
    bundle: Bundle,
    corpus: Corpus,
    *,
    measure: Measure | None = None,
    part: str | None = None,
    skip_training_texts: bool = False,
    work_folder: Path | None = None,
    decisions: DecisionSettings | None = None,
    division: Division | Literal["none"] | None = None,
) -> Bundle:
    """Return the bundle with a new calibration, measure or division; its classifier is not trained again.

    Parameters
    ----------
    bundle : Bundle
    corpus : Corpus
        Texts to calibrate with, see `held_out_part`. Figures of an evaluation belong to the old calibration; new ones
        are made if this is the corpus of training and has test texts.
    measure : Measure, optional
        The bundle's own by default. One that is yet to be fitted needs the corpus of training with its validation part.
    part : str, optional
        Part to calibrate with.
    skip_training_texts : bool
        Leave out texts that the model was trained with, instead of refusing them.
    work_folder : path, optional
        Where a report is written; None makes none.
    decisions : DecisionSettings, optional
        What is promised about decisions; what the bundle promises by default.
    division : Division or "none", optional
        Calibrate by a column, by number of labels or by rarity; "none" calibrates all texts together. By default as
        the bundle is.

    Raises
    ------
    InvalidInputError
        The model was trained with some of the texts.
    """
    own = corpus.fingerprint() == bundle.info.fingerprint
    bundle, taxonomy = _divided(bundle, corpus if own else None, division)
    held_out = _check_new(
        bundle, corpus, held_out_part(bundle, corpus, "calibration", part), skip=skip_training_texts, add=False
    )
    parts = {"calibration": bundle_probabilities(bundle, held_out)}
    if own and "test" in corpus.parts and "test" not in held_out.name.split("+"):
        parts["test"] = bundle_probabilities(bundle, corpus.part("test"))
    limits = (bundle.predictor.min_labels, bundle.predictor.calibration_.max_labels)
    constraints = bundle.predictor.constraints
    chosen = _measure_for(bundle, corpus, bundle.predictor.measure if measure is None else measure, limits)
    measures = {measure_name(chosen): chosen, **(MEASURES if "test" in parts else {})}
    predictors = calibrated_predictors(
        measures, parts["calibration"], bundle.label_names, limits, constraints, taxonomy
    )
    for note in division_notes(next(iter(predictors.values()))):
        _log.warning("%s", note)
    details = (
        details_of(bundle.info.label_texts, bundle.label_names, corpus.part("test"), None) if "test" in parts else None
    )
    figures = evaluated(
        predictors, parts["calibration"], parts.get("test"), thresholds=bundle.thresholds, details=details
    )
    certified, verdict = _decisions_again(bundle, corpus, held_out, parts["calibration"], figures.predictor, decisions)
    where = {"corpus": corpus.name, "fingerprint": corpus.fingerprint()}
    info = dataclasses.replace(
        bundle.info,
        measure=measure_name(chosen),
        calibrated_on={**where, "part": held_out.name, "n_texts": len(held_out)},
        short_lists=settings_of(certified).short_lists,
        level=verdict.level,
        verdict=verdict.to_dict(),
        evaluated_on={} if "test" not in parts else {**where, "part": "test", "n_texts": len(parts["test"])},
    )
    new = dataclasses.replace(
        bundle,
        predictor=figures.predictor,
        info=info,
        evaluation=figures.evaluations,
        report=None,
        forced_totals=figures.forced_totals,
        seen=None if bundle.seen is None else bundle.seen.calibrated_with(held_out.texts, add=False),
        decisions=certified,
    )
    if work_folder is not None and "test" in parts:
        path = work_folder / "report.html"
        report = try_report(path, new, figures, parts["test"], corpus.part("test"), corpus)
        new = dataclasses.replace(new, report=None if report is None else report.read_bytes())
    return new


def _decisions_again(
    bundle: Bundle,
    corpus: Corpus,
    held_out: Part,
    calibration: PartProbabilities,
    predictor: ConformalLabelSets,
    settings: DecisionSettings | None,
) -> tuple[Decisions, ModelVerdict]:
    """Return decisions that are certified with a new calibration, and the verdict on them.

    What best guesses are ranked by is chosen on the validation texts of the corpus of training if they are at hand. If
    not, it stays as it was, unless measure or settings are new.
    """
    plan = bundle.decisions
    if plan is None or settings is not None or predictor.measure is not bundle.predictor.measure:
        plan = uncertified(settings or settings_of(plan), predictor, bundle.label_names)
    own = corpus.fingerprint() == bundle.info.fingerprint
    has_validation = own and "validation" in corpus.parts and "validation" not in held_out.name.split("+")
    validation = bundle_probabilities(bundle, corpus.part("validation")) if has_validation else None
    known_words = bundle.classifier.known_words(held_out.texts)
    certified = certified_decisions(plan, calibration, known_words, validation)
    name, part = "calibration", calibration
    if validation is not None:
        name, part = "validation", validation
        known_words = bundle.classifier.known_words(corpus.part("validation").texts)
    counts = label_counts(bundle.info.label_texts, bundle.label_names)
    return certified, judge(predictor, certified, part, known_words, name=name, training_counts=counts)


def _divided(
    bundle: Bundle, own: Corpus | None, division: Division | Literal["none"] | None
) -> tuple[Bundle, Taxonomy | None]:
    """Return the bundle with the column of its groups, and its taxonomy; `own` is the corpus of its training."""
    old = bundle.predictor.taxonomy
    if division is None:
        return bundle, old
    column, taxonomy = None, None
    if division != "none":
        counts = old.counts if old is not None and old.rarity else None
        if own is not None:
            counts = np.asarray(_labels_of(bundle, own.part("train")).sum(axis=0))
        column, taxonomy = division.by, division.taxonomy(counts)
    return dataclasses.replace(bundle, info=dataclasses.replace(bundle.info, group_column=column)), taxonomy


def _measure_for(bundle: Bundle, corpus: Corpus, measure: Measure, limits: Limits) -> Measure:
    """Return a measure, fitted on the validation part of the corpus of training if it must be."""
    own = corpus.fingerprint() == bundle.info.fingerprint
    if not (own and needs_fitting(measure) and "validation" in corpus.parts):
        return fitted_measure(measure, None, None, limits)
    validation = bundle_probabilities(bundle, corpus.part("validation"))
    train_labels = _labels_of(bundle, corpus.part("train"))
    constraints = bundle.predictor.constraints
    return fitted_measure(
        measure, validation, train_labels, limits, constraints=constraints, label_names=bundle.label_names
    )


def add_to_calibration(
    bundle: Bundle, corpus: Corpus, *, part: str | None = None, skip_training_texts: bool = False
) -> Bundle:
    """Return the bundle calibrated with more texts; those that it was calibrated with before are not needed.

    It is what calibrating with all of them at once would give. Figures of an evaluation belong to the old calibration.

    Parameters
    ----------
    bundle : Bundle
    corpus : Corpus
        See `held_out_part` for which of its texts count.
    part : str, optional
        Part to calibrate with.
    skip_training_texts : bool
        Leave out texts that the model was trained with, instead of refusing them.

    Raises
    ------
    InvalidInputError
        Texts were used to calibrate the bundle already, or to train its classifier.
    """
    held_out = held_out_part(bundle, corpus, "calibration", part)
    before = dict(bundle.info.calibrated_on)
    added = list(before.pop("added", []))
    where = {"corpus": corpus.name, "fingerprint": corpus.fingerprint(), "part": held_out.name}
    for place in (before, *added):
        same_parts = set(str(place.get("part", "")).split("+")) & set(held_out.name.split("+"))
        if place.get("fingerprint") == where["fingerprint"] and same_parts:
            raise InvalidInputError(
                f"The model is calibrated with the {min(same_parts)} part of {corpus.name!r} already: a text counts "
                "once. Add other texts."
            )
    held_out = _check_new(bundle, corpus, held_out, skip=skip_training_texts, add=True)
    new = bundle_probabilities(bundle, held_out)
    predictor = bundle.predictor.add(new.probabilities, new.labels, groups=new.groups)
    forced = None
    if bundle.forced_totals is not None:
        forced = np.concatenate([bundle.forced_totals, predictor.totals(new.probabilities)])
    decisions, info = bundle.decisions, bundle.info
    if decisions is not None:
        known_words = bundle.classifier.known_words(held_out.texts)
        decisions = decisions.add(new.probabilities, new.labels, known_words)
        counts = label_counts(bundle.info.label_texts, bundle.label_names)
        verdict = judge(predictor, decisions, new, known_words, name="added", training_counts=counts)
        info = dataclasses.replace(info, level=verdict.level, verdict=verdict.to_dict())
    calibrated_on = {**before, "added": [*added, {**where, "n_texts": len(held_out)}]}
    return dataclasses.replace(
        bundle,
        predictor=predictor,
        info=dataclasses.replace(info, calibrated_on=calibrated_on, evaluated_on={}),
        evaluation=None,
        report=None,
        forced_totals=forced,
        seen=None if bundle.seen is None else bundle.seen.calibrated_with(held_out.texts, add=True),
        decisions=decisions,
    )


def evaluate_bundle(
    bundle: Bundle,
    corpus: Corpus,
    *,
    part: str | None = None,
    report: Path | None = None,
    criteria: bool = False,
    date: str | None = None,
) -> Evaluation:
    """Measure a bundle on texts with known labels: the figures of `measure_bundle`, which has the parameters."""
    return measure_bundle(bundle, corpus, part=part, report=report, criteria=criteria, date=date).evaluation


class Measured(NamedTuple):
    """Figures of a bundle on texts with known labels, and the verdict on its decisions; None if it makes none."""

    evaluation: Evaluation
    verdict: ModelVerdict | None


def measure_bundle(
    bundle: Bundle,
    corpus: Corpus,
    *,
    part: str | None = None,
    report: Path | None = None,
    criteria: bool = False,
    date: str | None = None,
) -> Measured:
    """Measure a bundle on texts with known labels; texts that it was trained with are left out, with a warning.

    Parameters
    ----------
    bundle : Bundle
    corpus : Corpus
        See `held_out_part` for which of its texts count.
    part : str, optional
        Part to measure on, the test part by default.
    report : path, optional
        File to write a report into; needs surelabel[plots].
    criteria : bool
        Compute the paper's S and OF, and the demand of its searches, too: takes minutes.
    date : str, optional
        Column with the date of each text; errors are then shown by month.
    """
    held_out, n_seen = without_training_texts(bundle, corpus, held_out_part(bundle, corpus, "test", part))
    if n_seen:
        _log.warning("%d texts were used to train the model; they are left out, %d are new.", n_seen, len(held_out))
    new = bundle_probabilities(bundle, held_out)
    with progress.step(f"evaluating on {len(held_out):,} texts"):
        guesses = bundle.best_guesses(new.probabilities)
        evaluation = evaluate(
            bundle.predictor,
            new.probabilities,
            new.labels,
            criteria=criteria,
            best_guesses=guesses,
            groups=new.groups,
            details=details_of(bundle.info.label_texts, bundle.label_names, held_out, date),
        )
    verdict = None
    if bundle.decisions is not None:
        verdict = judge(
            bundle.predictor,
            bundle.decisions,
            new,
            bundle.classifier.known_words(held_out.texts),
            name=held_out.name if corpus.fingerprint() == bundle.info.fingerprint else "held-out",
            training_counts=label_counts(bundle.info.label_texts, bundle.label_names),
        )
    if report is not None:
        figures = Figures({bundle.info.measure: bundle.predictor}, {bundle.info.measure: evaluation})
        said = {} if verdict is None else verdict.to_dict()
        report_on(report, bundle, figures, new, held_out, corpus, said)
    return Measured(evaluation, verdict)
