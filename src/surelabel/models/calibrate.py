"""Calibrate a model: first which texts are filed, then lists and prediction sets for the others.

The filing part fixes the rule of `FilingPolicy`. Given the rule, calibration texts that it does not file and new texts
that it does not file are exchangeable; so are those that it files. Both are categories of the predictor, whose
promise holds for all texts, for filed ones, and for those that people see.
"""

from __future__ import annotations

import dataclasses
import threading
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from surelabel import measures
from surelabel._core.formatting import count
from surelabel.conformal import ConformalLabelSets
from surelabel.corpora import Corpus
from surelabel.exceptions import CalibrationWarning, InvalidInputError
from surelabel.guarantees.decisions import FilingPolicy
from surelabel.guarantees.groups import ByCardinality, ByGroup
from surelabel.models.bundle import Bundle, BundleInfo, with_names
from surelabel.models.evidence import HeldOutTexts
from surelabel.models.seen import hashes_of
from surelabel.models.settings import LEVELS

_LOCK = threading.Lock()
_CHANGES = {*LEVELS, "measure", "max_tags", "group", "cardinality"}


def held_out_texts(pieces: Any, corpus: Corpus) -> HeldOutTexts:
    """Return the figures of texts with labels; `pieces` is a Bundle, or the parts of one that is being made."""
    column = pieces.group_column if hasattr(pieces, "group_column") else pieces.info.group_column
    texts = list(corpus.texts)
    return HeldOutTexts(
        pieces.predict_proba(texts, corpus.scores if pieces.classifier.kind == "scores" else None),
        corpus.label_sets,
        None if pieces.known_words is None else pieces.known_words.share(texts),
        None if column is None else list(corpus.column(column)),
    )


def with_calibration(
    *,
    info: BundleInfo,
    filing: HeldOutTexts,
    calibration: HeldOutTexts,
    measure: Any,
    limits: tuple[int, int],
    cardinality: Sequence[int] = (),
    constraints: Any = None,
    **pieces: Any,
) -> Bundle:
    """Return a bundle of `pieces`, its policy and predictor calibrated on two parts with no text in common."""
    names = tuple(pieces["classifier"].label_names_)
    if calibration.groups is not None and cardinality:
        raise InvalidInputError("Calibrate by groups or by number of labels (cardinality), not by both.")
    levels = info.levels
    common: dict[str, Any] = {"min_labels": limits[0], "max_labels": limits[1], "constraints": constraints}
    policy = FilingPolicy(
        max_wrong=levels["max_wrong"],
        assurance=levels["assurance"],
        max_missed=levels["max_missed"],
        max_false=levels["max_false"],
        max_tags=info.max_tags,
        measure=measure,
        label_names=names,
        **common,
    )
    # Warnings are filtered for the whole process: a service that calibrates in threads must not do so at once.
    with _LOCK, warnings.catch_warnings(action="ignore", category=CalibrationWarning):
        policy.calibrate(filing.evidence, calibration.evidence)
        filed = policy.file(calibration.probabilities, calibration.known_words)
        groups = None
        if calibration.groups is not None or (filed.any() and not cardinality):
            groups = policy.categories(filed, calibration.groups)
        taxonomy: Any = ByGroup() if groups is not None else ByCardinality(tuple(cardinality)) if cardinality else None
        scored, categories = _with_unseen(calibration, groups)
        predictor = ConformalLabelSets(measure, label_names=names, taxonomy=taxonomy, **common).calibrate(
            scored.probabilities, scored.label_sets, groups=categories
        )
    notes = [note for note in info.notes if not note.startswith(_ABOUT_CALIBRATION)]
    notes += _notes(predictor, policy, len(calibration), groups, levels["significance"], bool(cardinality))
    info = dataclasses.replace(
        info,
        categories=() if categories is None else tuple(sorted(set(categories))),
        measure=measures.measure_name(measure),
        notes=tuple(notes),
    )
    return Bundle(predictor=predictor, policy=policy, info=info, filing=filing, calibration=calibration, **pieces)


_ABOUT_CALIBRATION = "Calibration: "
_NOTHING_KNOWN = "\0nothing is known of this category"


def _with_unseen(calibration: HeldOutTexts, groups: list[str] | None) -> tuple[HeldOutTexts, list[str] | None]:
    """Return texts and their categories, where groups whose texts are all filed have a text that people see.

    Its score is infinite. All candidates are then in the prediction sets of this category, of which nothing is known.
    """
    if groups is None:
        return calibration, None
    seen = {one.replace("filed", "seen", 1) for one in groups if one.startswith("filed")} - set(groups)
    if not seen:
        return calibration, groups
    more = dataclasses.replace(calibration.rows([0] * len(seen)), label_sets=[frozenset([_NOTHING_KNOWN])] * len(seen))
    return calibration.joined(more), [*groups, *sorted(seen)]


def _notes(
    predictor: ConformalLabelSets,
    policy: FilingPolicy,
    n_texts: int,
    groups: Sequence[str] | None,
    significance: str,
    by_cardinality: bool,
) -> list[str]:
    """Return remarks on the calibration."""
    notes = []
    needed = int(np.ceil(1 / float(significance))) - 1
    categories = {name for one in groups or () for name in (one, one.replace("filed", "seen", 1))}
    sizes = {category: groups.count(category) for category in categories} if groups else {"all": n_texts}
    small = [f"{category} ({n})" for category, n in sorted(sizes.items()) if n < needed and category != "all"]
    if small or sizes.get("all", needed) < needed:
        which = f" These have fewer: {', '.join(small)}." if small else f" There are {n_texts}."
        notes.append(
            f"{_ABOUT_CALIBRATION}prediction sets at significance {significance} need {needed} texts of a category to "
            f"rule anything out.{which}"
        )
    n_unlisted = round(predictor.calibration_.share_unlisted * predictor.calibration_.n_texts)
    unlisted = (n_unlisted - (predictor.calibration_.n_texts - n_texts)) / n_texts
    if unlisted > float(significance):
        notes.append(
            f"{_ABOUT_CALIBRATION}{100 * unlisted:.1f} % of the texts have a label that is unknown or not listed, more "
            f"than the significance {significance}. Prediction sets at that level hold all candidates."
        )
    if by_cardinality and policy.share_:
        notes.append(
            f"{_ABOUT_CALIBRATION}prediction sets are calibrated by number of labels over all texts, not apart for "
            "texts that people see."
        )
    return notes


def calibrate_bundle(bundle: Bundle, corpus: Corpus | None = None, add: bool = False, **changes: Any) -> Bundle:
    """Return the bundle with a new calibration; its classifier is not trained again.

    Texts of training are left out. Of the file that the model was trained on, the filing and calibration parts are
    taken. Other texts are divided at random into a filing and a calibration part. Texts without labels are left out,
    and texts with unknown labels count as errors. Figures of an evaluation belong to the old calibration and go.

    Parameters
    ----------
    bundle : Bundle
    corpus : Corpus, optional
        Without it the bundle is calibrated on the same texts, with other levels.
    add : bool
        Add the texts to the calibration part. The filing rule stays as it is.
    **changes
        max_wrong, assurance, max_missed, max_false, max_tags, significance, measure, cardinality and, with a new
        calibration, group, as in `TrainingSettings`.
    """
    unknown = sorted(set(changes) - _CHANGES)
    if unknown:
        raise InvalidInputError(f"calibrate_bundle changes {', '.join(sorted(_CHANGES))}. Got {', '.join(unknown)}.")
    if bundle.filing is None or bundle.calibration is None:
        raise InvalidInputError("This model does not have the figures of its calibration texts. Train it again.")
    if "group" in changes:
        if corpus is None or add:
            raise InvalidInputError("Another group column needs a new calibration: give its texts, without add.")
        bundle = dataclasses.replace(bundle, info=dataclasses.replace(bundle.info, group_column=changes["group"]))
    filing, calibration, seen = bundle.filing, bundle.calibration, bundle.seen
    assert filing is not None
    assert calibration is not None
    if corpus is not None:
        labelled = with_names(corpus.rows(np.flatnonzero(corpus.is_labelled)), bundle.vocabulary)
        if add:
            rows = _new_rows(bundle, labelled)
            more = labelled.rows(np.flatnonzero(rows))
            calibration = calibration.joined(held_out_texts(bundle, more))
            seen = seen.calibrated_with(seen.filing, np.concatenate([seen.calibration, hashes_of(more.texts)]))
        else:
            parts = _drawn(bundle, labelled)
            filing, calibration = (held_out_texts(bundle, part) for part in parts)
            seen = seen.calibrated_with(*(hashes_of(part.texts) for part in parts))
    measure = changes.get("measure", bundle.predictor.measure)
    levels = {**bundle.info.levels, **{name: str(changes[name]) for name in LEVELS if name in changes}}
    info = dataclasses.replace(
        bundle.info, levels=levels, max_tags=changes.get("max_tags", bundle.info.max_tags), verdict=()
    )
    return with_calibration(
        info=info,
        filing=filing,
        calibration=calibration,
        measure=measures.measure_from_name(measure) if isinstance(measure, str) else measure,
        limits=(bundle.predictor.calibration_.min_labels, bundle.predictor.calibration_.max_labels),
        cardinality=changes.get("cardinality", getattr(bundle.predictor.taxonomy, "edges", ())),
        constraints=bundle.predictor.constraints,
        **{
            name: getattr(bundle, name)
            for name in ("classifier", "known_words", "recalibration", "thresholds", "vocabulary")
        },
        seen=seen,
    )


def _new_rows(bundle: Bundle, corpus: Corpus) -> Any:
    """Return which texts the model has not been trained or calibrated with, (n,); raise if there is none."""
    used = bundle.seen.used(corpus.texts)
    if used.all():
        raise InvalidInputError(
            f"The model was trained or calibrated with all {count(len(used))} texts already: a text counts once. "
            "Give others."
        )
    return ~used


def _drawn(bundle: Bundle, corpus: Corpus) -> tuple[Corpus, Corpus]:
    """Return the texts for filing and for calibration."""
    seen, texts = bundle.seen, corpus.texts
    filing, calibration = (seen.rows_of(role, texts) for role in ("filing", "calibration"))
    if filing.any() and calibration.any():
        calibration &= ~filing
    else:
        free = np.flatnonzero(~seen.is_in("training", texts))
        if len(free) < 2:
            raise InvalidInputError(
                f"{count(len(texts) - len(free))} of the {count(len(texts))} texts were used to train the model: "
                "calibrated with them, it would promise too much. Give others."
            )
        order = free[np.random.RandomState(bundle.info.seed).permutation(len(free))]
        filing, calibration = np.zeros((2, len(texts)), dtype=bool)
        filing[order[: len(order) // 2]] = True
        calibration[order[len(order) // 2 :]] = True
    return corpus.rows(np.flatnonzero(filing)), corpus.rows(np.flatnonzero(calibration))
