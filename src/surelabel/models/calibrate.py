"""Calibrate a model: first which texts are filed, then lists and prediction sets for the others.

The filing part fixes the rule of `FilingPolicy`. Given the rule, calibration texts that it does not file and new texts
that it does not file are exchangeable; so are those that it files. Both are categories of the predictor, whose
promise holds for all texts, for filed ones, and for those that people see.
"""

from __future__ import annotations

import dataclasses
import math
import threading
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
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
_CHANGES = {*LEVELS, "measure", "max_tags", "never_file", "group", "cardinality"}
_ABOUT_CALIBRATION = "Calibration: "
_NOTHING_KNOWN = "\0nothing is known of this category"


def held_out_texts(model: Any, corpus: Corpus) -> HeldOutTexts:
    """Return the figures of texts with labels by a bundle, or by the `Fitted` model that it is made of."""
    texts, column = list(corpus.texts), model.group_column
    return HeldOutTexts(
        model.predict_proba(texts, corpus.scores if model.classifier.kind == "scores" else None),
        corpus.label_sets,
        None if model.known_words is None else model.known_words.share(texts),
        None if column is None else list(corpus.column(column)),
    )


def with_calibration(
    model: Any,
    info: BundleInfo,
    filing: HeldOutTexts,
    calibration: HeldOutTexts,
    *,
    measure: Any,
    limits: tuple[int, int],
    cardinality: Sequence[int],
    constraints: Any,
    **pieces: Any,
) -> Bundle:
    """Return a bundle of a `Fitted` model or another bundle, calibrated on two parts with no text in common."""
    if calibration.groups is not None and cardinality:
        raise InvalidInputError("Calibrate by groups or by number of labels (cardinality), not by both.")
    promises: dict[str, Any] = {name: level for name, level in info.levels.items() if name != "significance"}
    common: dict[str, Any] = {
        "measure": measure,
        "min_labels": limits[0],
        "max_labels": limits[1],
        "label_names": tuple(model.classifier.label_names_),
        "constraints": constraints,
    }
    policy = FilingPolicy(**promises, max_tags=info.max_tags, never_file=info.never_file, **common)
    # Warnings are filtered for the whole process: a service that calibrates in threads must not do so at once.
    with _LOCK, warnings.catch_warnings(action="ignore", category=CalibrationWarning):
        policy.calibrate(filing.evidence, calibration.evidence)
        filed = policy.file(calibration.probabilities, calibration.known_words)
        groups = None
        if calibration.groups is not None or (filed.any() and not cardinality):
            groups = policy.categories(filed, calibration.groups)
        taxonomy: Any = ByGroup() if groups is not None else ByCardinality(tuple(cardinality)) if cardinality else None
        scored, categories = _with_unseen(calibration, groups)
        predictor = ConformalLabelSets(taxonomy=taxonomy, **common).calibrate(
            scored.probabilities, scored.label_sets, groups=categories
        )
    notes = [note for note in info.notes if not note.startswith(_ABOUT_CALIBRATION)]
    sizes = Counter(groups or ["all texts"] * len(calibration))
    sizes.update(dict.fromkeys(categories or (), 0))
    notes += _notes(predictor, sizes, info.levels["significance"])
    if cardinality and policy.share_:
        notes.append(
            f"{_ABOUT_CALIBRATION}prediction sets are calibrated by number of labels over all texts, not apart for "
            "texts that people see."
        )
    info = dataclasses.replace(
        info,
        categories=() if categories is None else tuple(sorted(set(categories))),
        measure=measures.measure_name(measure),
        notes=tuple(notes),
    )
    pieces |= {name: getattr(model, name) for name in ("classifier", "known_words", "recalibration", "thresholds")}
    return Bundle(predictor=predictor, policy=policy, info=info, filing=filing, calibration=calibration, **pieces)


def _with_unseen(calibration: HeldOutTexts, groups: list[str] | None) -> tuple[HeldOutTexts, list[str] | None]:
    """Return texts and their categories, where groups whose texts are all filed have a text that people see.

    Its score is infinite. All candidates are then in the prediction sets of this category, of which nothing is known.
    """
    unseen = sorted({one.replace("filed", "seen", 1) for one in groups or ()} - set(groups or ()))
    if groups is None or not unseen:
        return calibration, groups
    more = dataclasses.replace(
        calibration.rows([0] * len(unseen)), label_sets=[frozenset([_NOTHING_KNOWN])] * len(unseen)
    )
    return calibration.joined(more), [*groups, *unseen]


def _notes(predictor: ConformalLabelSets, sizes: Mapping[str, int], significance: str) -> list[str]:
    """Return remarks on a calibration with these numbers of texts by category."""
    notes, needed, n_texts = [], math.ceil(1 / float(significance)) - 1, sum(sizes.values())
    small = [f"{category} ({n})" for category, n in sorted(sizes.items()) if n < needed]
    if small:
        notes.append(
            f"{_ABOUT_CALIBRATION}prediction sets at significance {significance} need {needed} texts of a category to "
            f"rule anything out. These have fewer: {', '.join(small)}."
        )
    totals = np.concatenate(list(predictor.calibration_.totals.values()))
    share_unlisted = (np.isinf(totals).sum() - (len(totals) - n_texts)) / n_texts
    if share_unlisted > float(significance):
        notes.append(
            f"{_ABOUT_CALIBRATION}{100 * share_unlisted:.1f} % of the texts have a label that is unknown or not "
            f"listed, more than the significance {significance}. Prediction sets at that level hold all candidates."
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
    if "group" in changes and (corpus is None or add):
        raise InvalidInputError("Another group column needs a new calibration: give its texts, without add.")
    info = dataclasses.replace(
        bundle.info,
        levels={**bundle.info.levels, **{name: str(changes[name]) for name in LEVELS if name in changes}},
        max_tags=changes.get("max_tags", bundle.info.max_tags),
        never_file=tuple(changes.get("never_file", bundle.info.never_file)),
        group_column=changes.get("group", bundle.info.group_column),
        verdict=(),
    )
    bundle = dataclasses.replace(bundle, info=info)
    filing, calibration, seen = bundle.filing, bundle.calibration, bundle.seen
    if corpus is not None:
        labelled = with_names(corpus.rows(corpus.is_labelled), bundle.vocabulary)
        if add:
            more = _new_texts(bundle, labelled)
            calibration = calibration.joined(held_out_texts(bundle, more))
            seen = seen.calibrated_with(seen.filing, np.concatenate([seen.calibration, hashes_of(more.texts)]))
        else:
            parts = _drawn(bundle, labelled)
            filing, calibration = (held_out_texts(bundle, part) for part in parts)
            seen = seen.calibrated_with(*(hashes_of(part.texts) for part in parts))
    options = {name: changes[name] for name in ("measure", "cardinality") if name in changes}
    return recalibrated(dataclasses.replace(bundle, seen=seen), filing, calibration, **options)


def recalibrated(
    bundle: Bundle,
    filing: HeldOutTexts,
    calibration: HeldOutTexts,
    measure: Any = None,
    cardinality: Sequence[int] | None = None,
) -> Bundle:
    """Return a bundle with the calibration by two parts, and without evaluation and report; all else stays."""
    predictor = bundle.predictor
    if isinstance(measure, str):
        measure = measures.measure_from_name(measure)
    return with_calibration(
        bundle,
        bundle.info,
        filing,
        calibration,
        measure=predictor.measure if measure is None else measure,
        limits=(predictor.calibration_.min_labels, predictor.calibration_.max_labels),
        cardinality=getattr(predictor.taxonomy, "edges", ()) if cardinality is None else cardinality,
        constraints=predictor.constraints,
        seen=bundle.seen,
        vocabulary=bundle.vocabulary,
    )


def _new_texts(bundle: Bundle, corpus: Corpus) -> Corpus:
    """Return the texts that the model has not been trained or calibrated with; raise if there is none."""
    used = bundle.seen.used(corpus.texts)
    if used.all():
        raise InvalidInputError(
            f"The model was trained or calibrated with all {count(len(used))} texts already: a text counts once. "
            "Give others."
        )
    return corpus.rows(~used)


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
    return corpus.rows(filing), corpus.rows(calibration)
