"""Calibrate and evaluate on the texts of a part; never on texts that a classifier was trained on."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from surelabel._core.validation import FloatArray
from surelabel.conformal import ConformalLabelSets
from surelabel.corpora import Corpus, Part
from surelabel.evaluation.evaluate import Evaluation, evaluate
from surelabel.exceptions import InvalidInputError, MissingDependencyError
from surelabel.labels.constraints import LabelConstraints
from surelabel.labels.sparse import is_sparse
from surelabel.measures import MEASURES, Measure, measure_name
from surelabel.models.bundle import Bundle
from surelabel.models.fitting import fitted_measure, needs_fitting
from surelabel.models.steps import calibrated, part_probabilities
from surelabel.probabilities_file import PartProbabilities

__all__ = [
    "Figures",
    "Limits",
    "add_to_calibration",
    "bundle_probabilities",
    "calibrate_bundle",
    "calibrated_and_evaluated",
    "evaluate_bundle",
    "held_out_part",
    "is_same_source",
    "try_report",
]

_log = logging.getLogger(__name__)

Limits: TypeAlias = tuple[int, int]
"""Fewest and most labels of a label-set."""


@dataclasses.dataclass(frozen=True, eq=False)
class Figures:
    """Predictors by name of measure, the bundle's own first, and their evaluations where there are test texts.

    `forced_totals` are of the calibration texts' forced predictions, see `Bundle`.
    """

    predictors: Mapping[str, ConformalLabelSets]
    evaluations: Mapping[str, Evaluation] | None
    forced_totals: FloatArray | None = None

    @property
    def predictor(self) -> ConformalLabelSets:
        """The bundle's own predictor."""
        return next(iter(self.predictors.values()))


def calibrated_and_evaluated(
    measure: Measure,
    compared: Mapping[str, Measure],
    parts: Mapping[str, PartProbabilities],
    label_names: tuple[str, ...],
    limits: Limits,
    constraints: LabelConstraints | None = None,
) -> Figures:
    """Calibrate a measure, and those that it is compared with, and evaluate them where there is a test part."""
    calibration, test = parts["calibration"], parts.get("test")
    predictors = {
        name: calibrated(
            each,
            calibration.probabilities,
            calibration.labels,
            limits[1],
            label_names,
            min_labels=limits[0],
            constraints=constraints,
        )
        for name, each in {measure_name(measure): measure, **compared}.items()
    }
    forced_totals = next(iter(predictors.values())).totals(calibration.probabilities)
    if test is None:
        return Figures(predictors, None, forced_totals)
    evaluations = {}
    for name, predictor in predictors.items():
        _log.info("evaluating %s on %d texts", name, len(test))
        evaluations[name] = evaluate(predictor, test.probabilities, test.labels)
    return Figures(predictors, evaluations, forced_totals)


def report_on(
    path: Path, bundle: Bundle, figures: Figures, known: PartProbabilities, held_out: Part, corpus: Corpus
) -> Path:
    """Write the report on a bundle's figures on held-out texts; return its path."""
    from surelabel.report import ReportInput, write_report  # noqa: PLC0415 (matplotlib, which may be missing)

    info = bundle.info
    is_own = corpus.fingerprint() == info.fingerprint
    others = [name for name in corpus.parts if is_own and name not in held_out.name.split("+")]
    given = ReportInput(
        title=info.name if is_own else f"{info.name} on {corpus.name}",
        predictors=figures.predictors,
        probabilities=known.probabilities,
        labels=known.labels,
        texts=held_out.texts,
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
    write_report(path, given)
    return path


def try_report(
    path: Path, bundle: Bundle, figures: Figures, known: PartProbabilities, held_out: Part, corpus: Corpus
) -> Path | None:
    """Write the report; where what it needs is not installed, say so and go on without."""
    try:
        return report_on(path, bundle, figures, known, held_out, corpus)
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


def _labels_of(bundle: Bundle, part: Part) -> Any:
    """Return a part's labels in the order of the bundle's label names, a bool CSR array."""
    columns = {name: k for k, name in enumerate(bundle.label_names)}
    places = np.array([columns.get(name, -1) for name in part.label_names], dtype=np.int64)
    known = part.label_matrix
    unknown = np.unique(known.indices[places[known.indices] < 0])
    if len(unknown):
        raise InvalidInputError(
            f"The labels of the texts must be among the model's {len(columns)}. Got {part.label_names[unknown[0]]!r} "
            f"({len(unknown)} such labels): rename or remove them, or train a model with them."
        )
    return csr_array((known.data, places[known.indices], known.indptr), shape=(len(part), len(columns)))


def bundle_probabilities(bundle: Bundle, part: Part) -> PartProbabilities:
    """Return the bundle's probabilities for a part, with labels in its own order."""
    found = part_probabilities(bundle, part)
    labels = _labels_of(bundle, part)
    return dataclasses.replace(found, labels=labels if is_sparse(found.probabilities) else labels.toarray())


def calibrate_bundle(
    bundle: Bundle,
    corpus: Corpus,
    *,
    measure: Measure | None = None,
    part: str | None = None,
    work_folder: Path | None = None,
) -> Bundle:
    """Return the bundle with a new calibration, a new measure, or both; its classifier is not trained again.

    Parameters
    ----------
    bundle : Bundle
    corpus : Corpus
        Texts to calibrate with, see `held_out_part`. The figures of an evaluation go with the old calibration; new
        ones are made where this is the corpus of training, which has test texts.
    measure : Measure, optional
        The bundle's own by default. One that is yet to be fitted needs the corpus of training with its validation part.
    part : str, optional
        Part to calibrate with.
    work_folder : path, optional
        Where a report is written; None makes none.
    """
    held_out = held_out_part(bundle, corpus, "calibration", part)
    parts = {"calibration": bundle_probabilities(bundle, held_out)}
    own = corpus.fingerprint() == bundle.info.fingerprint
    if own and "test" in corpus.parts and "test" not in held_out.name.split("+"):
        parts["test"] = bundle_probabilities(bundle, corpus.part("test"))
    limits = (bundle.predictor.min_labels, bundle.predictor.calibration_.max_labels)
    compared = MEASURES if "test" in parts else {}
    constraints = bundle.predictor.constraints
    chosen = bundle.predictor.measure if measure is None else measure
    if own and needs_fitting(chosen) and "validation" in corpus.parts:
        validation = bundle_probabilities(bundle, corpus.part("validation"))
        train_labels = _labels_of(bundle, corpus.part("train"))
        chosen = fitted_measure(
            chosen, validation, train_labels, limits, constraints=constraints, label_names=bundle.label_names
        )
    else:
        chosen = fitted_measure(chosen, None, None, limits)
    figures = calibrated_and_evaluated(chosen, compared, parts, bundle.label_names, limits, constraints)
    where = {"corpus": corpus.name, "fingerprint": corpus.fingerprint()}
    info = dataclasses.replace(
        bundle.info,
        measure=measure_name(chosen),
        calibrated_on={**where, "part": held_out.name, "n_texts": len(held_out)},
        evaluated_on={} if "test" not in parts else {**where, "part": "test", "n_texts": len(parts["test"])},
    )
    new = dataclasses.replace(
        bundle,
        predictor=figures.predictor,
        info=info,
        evaluation=figures.evaluations,
        report=None,
        forced_totals=figures.forced_totals,
    )
    if work_folder is not None and "test" in parts:
        path = work_folder / "report.html"
        report = try_report(path, new, figures, parts["test"], corpus.part("test"), corpus)
        new = dataclasses.replace(new, report=report)
    return new


def add_to_calibration(bundle: Bundle, corpus: Corpus, *, part: str | None = None) -> Bundle:
    """Return the bundle calibrated with more texts; those that it was calibrated with before are not needed.

    It is what calibrating with all of them at once would give. Figures of an evaluation go with the old calibration.

    Parameters
    ----------
    bundle : Bundle
    corpus : Corpus
        See `held_out_part` for which of its texts count.
    part : str, optional
        Part to calibrate with.

    Raises
    ------
    InvalidInputError
        Texts were used to calibrate the bundle already, or to train its classifier.
    """
    held_out = held_out_part(bundle, corpus, "calibration", part)
    before = dict(bundle.info.calibrated_on)
    added = list(before.pop("added", []))
    where = {
        "corpus": corpus.name,
        "fingerprint": corpus.fingerprint(),
        "part": held_out.name,
        "n_texts": len(held_out),
    }
    for known in (before, *added):
        same_parts = set(str(known.get("part", "")).split("+")) & set(held_out.name.split("+"))
        if known.get("fingerprint") == where["fingerprint"] and same_parts:
            raise InvalidInputError(
                f"The model is calibrated with the {min(same_parts)} part of {corpus.name!r} already: a text counts "
                "once. Add other texts."
            )
    probabilities = bundle_probabilities(bundle, held_out)
    predictor = bundle.predictor.add(probabilities.probabilities, probabilities.labels)
    forced = None
    if bundle.forced_totals is not None:
        forced = np.concatenate([bundle.forced_totals, predictor.totals(probabilities.probabilities)])
    info = dataclasses.replace(bundle.info, calibrated_on={**before, "added": [*added, where]}, evaluated_on={})
    return dataclasses.replace(
        bundle, predictor=predictor, info=info, evaluation=None, report=None, forced_totals=forced
    )


def evaluate_bundle(
    bundle: Bundle, corpus: Corpus, *, part: str | None = None, report: Path | None = None
) -> Evaluation:
    """Measure a bundle on texts with known labels.

    Parameters
    ----------
    bundle : Bundle
    corpus : Corpus
        See `held_out_part` for which of its texts count.
    part : str, optional
        Part to measure on, the test part by default.
    report : path, optional
        File to write a report into; needs surelabel[plots].
    """
    held_out = held_out_part(bundle, corpus, "test", part)
    known = bundle_probabilities(bundle, held_out)
    evaluation = evaluate(bundle.predictor, known.probabilities, known.labels)
    if report is not None:
        name = bundle.info.measure
        report_on(report, bundle, Figures({name: bundle.predictor}, {name: evaluation}), known, held_out, corpus)
    return evaluation
