"""Calibrate a model again, or with more texts, without training it again."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path
from typing import Literal

import numpy as np

from surelabel.conformal import ConformalLabelSets
from surelabel.corpora import Corpus, Part
from surelabel.exceptions import InvalidInputError
from surelabel.guarantees.decisions import Decisions
from surelabel.measures import MEASURES, Measure, measure_name
from surelabel.models.bundle import Bundle
from surelabel.models.deciding import DecisionSettings, certified_decisions, settings_of, uncertified
from surelabel.models.dividing import Division, division_notes
from surelabel.models.evaluating import Limits, calibrated_predictors, details_of, evaluated
from surelabel.models.fitting import fitted_measure, needs_fitting
from surelabel.models.held_out import bundle_probabilities, held_out_part, labels_of, without_training_texts
from surelabel.models.reporting import try_report
from surelabel.models.verdict import judged
from surelabel.probabilities_file import PartProbabilities
from surelabel.taxonomies.kinds import Taxonomy

_log = logging.getLogger(__name__)


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
    has_validation = own and "validation" in corpus.parts and "validation" not in held_out.name.split("+")
    validation = bundle_probabilities(bundle, corpus.part("validation")) if has_validation else None
    certified = _decisions_again(bundle, held_out, parts["calibration"], validation, figures.predictor, decisions)
    where = {"corpus": corpus.name, "fingerprint": corpus.fingerprint()}
    info = dataclasses.replace(
        bundle.info,
        measure=measure_name(chosen),
        calibrated_on={**where, "part": held_out.name, "n_texts": len(held_out)},
        short_lists=settings_of(certified).short_lists,
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
    if validation is None:
        new = judged(new, parts["calibration"], held_out.texts, "calibration")
    else:
        new = judged(new, validation, corpus.part("validation").texts, "validation")
    if work_folder is not None and "test" in parts:
        path = work_folder / "report.html"
        report = try_report(path, new, figures, parts["test"], corpus.part("test"), corpus)
        new = dataclasses.replace(new, report=None if report is None else report.read_bytes())
    return new


def _decisions_again(
    bundle: Bundle,
    held_out: Part,
    calibration: PartProbabilities,
    validation: PartProbabilities | None,
    predictor: ConformalLabelSets,
    settings: DecisionSettings | None,
) -> Decisions:
    """Return decisions that are certified with a new calibration.

    What best guesses are ranked by is chosen on the validation texts of the corpus of training if they are at hand. If
    not, it stays as it was, unless measure or settings are new.
    """
    plan = bundle.decisions
    if plan is None or settings is not None or predictor.measure is not bundle.predictor.measure:
        plan = uncertified(settings or settings_of(plan), predictor, bundle.label_names)
    return certified_decisions(plan, calibration, bundle.classifier.known_words(held_out.texts), validation)


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
            counts = np.asarray(labels_of(bundle, own.part("train")).sum(axis=0))
        column, taxonomy = division.by, division.taxonomy(counts)
    return dataclasses.replace(bundle, info=dataclasses.replace(bundle.info, group_column=column)), taxonomy


def _measure_for(bundle: Bundle, corpus: Corpus, measure: Measure, limits: Limits) -> Measure:
    """Return a measure, fitted on the validation part of the corpus of training if it must be."""
    own = corpus.fingerprint() == bundle.info.fingerprint
    if not (own and needs_fitting(measure) and "validation" in corpus.parts):
        return fitted_measure(measure, None, None, limits)
    validation = bundle_probabilities(bundle, corpus.part("validation"))
    train_labels = labels_of(bundle, corpus.part("train"))
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
    decisions = bundle.decisions
    if decisions is not None:
        decisions = decisions.add(new.probabilities, new.labels, bundle.classifier.known_words(held_out.texts))
    calibrated_on = {**before, "added": [*added, {**where, "n_texts": len(held_out)}]}
    more = dataclasses.replace(
        bundle,
        predictor=predictor,
        info=dataclasses.replace(bundle.info, calibrated_on=calibrated_on, evaluated_on={}),
        evaluation=None,
        report=None,
        forced_totals=forced,
        seen=None if bundle.seen is None else bundle.seen.calibrated_with(held_out.texts, add=True),
        decisions=decisions,
    )
    return more if decisions is None else judged(more, new, held_out.texts, "added")
