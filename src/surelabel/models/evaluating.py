"""Measure predictors and models on texts with known labels."""

from __future__ import annotations

import logging
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from surelabel._core import progress
from surelabel.conformal import ConformalLabelSets
from surelabel.corpora import Corpus, Part
from surelabel.evaluation.conditional import TextDetails
from surelabel.evaluation.evaluate import Evaluation, evaluate
from surelabel.labels.constraints import LabelConstraints
from surelabel.measures import Measure
from surelabel.models.bundle import Bundle
from surelabel.models.deciding import label_counts
from surelabel.models.figures import Figures
from surelabel.models.held_out import bundle_probabilities, held_out_part, without_training_texts
from surelabel.models.reporting import report_on
from surelabel.models.steps import calibrated
from surelabel.models.verdict import ModelVerdict, verdict_on
from surelabel.probabilities_file import PartProbabilities
from surelabel.taxonomies.kinds import Taxonomy
from surelabel.text import Thresholds

_log = logging.getLogger(__name__)

Limits: TypeAlias = tuple[int, int]
"""Fewest and most labels of a label-set."""


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
        name = held_out.name if corpus.fingerprint() == bundle.info.fingerprint else "held-out"
        verdict = verdict_on(bundle, new, held_out.texts, name)
    if report is not None:
        figures = Figures({bundle.info.measure: bundle.predictor}, {bundle.info.measure: evaluation})
        said = {} if verdict is None else verdict.to_dict()
        report_on(report, bundle, figures, new, held_out, corpus, said)
    return Measured(evaluation, verdict)


def evaluate_bundle(bundle: Bundle, corpus: Corpus, **options: Any) -> Evaluation:
    """Return the figures of `measure_bundle`, with its options, without the verdict."""
    return measure_bundle(bundle, corpus, **options).evaluation
