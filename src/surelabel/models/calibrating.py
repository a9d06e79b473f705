"""Calibrate a model again, or with more texts, without training it again."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path
from typing import Any, Literal

import numpy as np

from surelabel.corpora import Corpus, Part
from surelabel.exceptions import InvalidInputError
from surelabel.measures import MEASURES, Measure, measure_name
from surelabel.models.bundle import Bundle
from surelabel.models.deciding import DecisionSettings, settings_of, uncertified
from surelabel.models.evaluating import calibrated_predictors, completed, place_of
from surelabel.models.fitting import fitted_measure
from surelabel.models.held_out import (
    bundle_probabilities,
    held_out_part,
    is_own_corpus,
    labels_of,
    without_training_texts,
)
from surelabel.models.settings import Division, division_notes
from surelabel.models.verdict import judged
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

    Figures of an evaluation belong to the old calibration; new ones are made if this is the corpus of training and has
    test texts, and a report if there is a `work_folder` for it. A measure that is yet to be fitted needs that corpus
    with its validation part. `part` is the part to calibrate with, see `held_out_part`; texts that the model was
    trained with are an error, or are left out. `division` "none" calibrates all texts together. Measure, promises about
    decisions and division are the bundle's own by default.
    """
    own = is_own_corpus(bundle, corpus)
    bundle, taxonomy = _divided(bundle, corpus if own else None, division)
    held_out = held_out_part(bundle, corpus, "calibration", part)
    held_out = _check_new(bundle, corpus, held_out, skip=skip_training_texts, add=False)
    parts = {"calibration": bundle_probabilities(bundle, held_out)}
    for name in ("test", "validation"):
        if own and name in corpus.parts and name not in held_out.name.split("+"):
            parts[name] = bundle_probabilities(bundle, corpus.part(name))
    old = bundle.predictor
    limits = (old.min_labels, old.calibration_.max_labels)
    rules: dict[str, Any] = {"constraints": old.constraints, "label_names": bundle.label_names}
    train_labels = labels_of(bundle, corpus.part("train")) if "validation" in parts else None
    chosen = fitted_measure(measure or old.measure, parts.get("validation"), train_labels, limits, **rules)
    measures = {measure_name(chosen): chosen, **(MEASURES if "test" in parts else {})}
    predictors = calibrated_predictors(
        measures, parts["calibration"], min_labels=limits[0], max_labels=limits[1], taxonomy=taxonomy, **rules
    )
    predictor = next(iter(predictors.values()))
    for note in division_notes(predictor):
        _log.warning("%s", note)
    # What best guesses are ranked by stays as it was, unless measure or settings are new.
    plan = bundle.decisions
    if plan is None or decisions is not None or predictor.measure is not old.measure:
        plan = uncertified(decisions or settings_of(plan), predictor, bundle.label_names)
    calibrated_on = place_of(corpus, held_out.name, len(held_out))
    new = dataclasses.replace(
        bundle,
        predictor=predictor,
        info=dataclasses.replace(bundle.info, measure=measure_name(chosen), calibrated_on=calibrated_on),
        report=None,
        forced_totals=None,
        seen=None if bundle.seen is None else bundle.seen.calibrated_with(held_out.texts, add=False),
    )
    return completed(new, predictors, corpus, held_out, parts, plan, work_folder=work_folder)


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


def add_to_calibration(
    bundle: Bundle, corpus: Corpus, *, part: str | None = None, skip_training_texts: bool = False
) -> Bundle:
    """Return the bundle calibrated with more texts; those that it was calibrated with before are not needed.

    It is what calibrating with all of them at once would give. Figures of an evaluation belong to the old calibration.
    """
    held_out = held_out_part(bundle, corpus, "calibration", part)
    before = dict(bundle.info.calibrated_on)
    added = list(before.pop("added", []))
    where = place_of(corpus, held_out.name, len(held_out))
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
