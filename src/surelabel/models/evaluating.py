"""Measure predictors and models on texts with known labels."""

from __future__ import annotations

import dataclasses
import datetime
import logging
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from surelabel._core import progress
from surelabel.conformal import ConformalLabelSets
from surelabel.corpora import Corpus, Part
from surelabel.evaluation.conditional import TextDetails
from surelabel.evaluation.evaluate import Evaluation, evaluate
from surelabel.evaluation.predicted import Predicted
from surelabel.exceptions import MissingDependencyError
from surelabel.guarantees.decisions import Decisions
from surelabel.measures import Measure
from surelabel.models.bundle import Bundle
from surelabel.models.deciding import certified_decisions, label_counts, settings_of
from surelabel.models.examples import worked_examples
from surelabel.models.held_out import (
    bundle_probabilities,
    held_out_part,
    is_own_corpus,
    without_training_texts,
    without_unknown_labels,
)
from surelabel.models.steps import calibrated
from surelabel.models.verdict import ModelVerdict, judged, verdict_on
from surelabel.probabilities_file import PartProbabilities

_log = logging.getLogger(__name__)


def calibrated_predictors(
    measures: Mapping[str, Measure], calibration: PartProbabilities, **candidates: Any
) -> dict[str, ConformalLabelSets]:
    """Calibrate measures, by name, with the same texts; `candidates` are other parameters of the predictors."""
    predictors = {}
    with progress.step("calibrating", len(measures)) as advance:
        for name, measure in measures.items():
            predictors[name] = calibrated(measure, calibration, **candidates)
            advance()
    return predictors


def place_of(corpus: Corpus, part: str, n_texts: int) -> dict[str, Any]:
    """Say which texts were used."""
    return {"corpus": corpus.name, "fingerprint": corpus.fingerprint(), "part": part, "n_texts": n_texts}


def completed(
    bundle: Bundle,
    predictors: Mapping[str, ConformalLabelSets],
    corpus: Corpus,
    held_out: Part,
    parts: Mapping[str, PartProbabilities],
    plan: Decisions,
    *,
    kept: MutableMapping[str, Evaluation] | None = None,
    date: str | None = None,
    seed: int = 0,
    work_folder: Path | None = None,
) -> Bundle:
    """Return a bundle that was just calibrated with figures, decisions, a verdict and, if there is a folder, a report.

    `predictors` are evaluated on the test texts of `corpus`, if they are among `parts`; evaluations that were `kept`
    are not repeated. `held_out` are the calibration texts, `plan` says what is promised about decisions.
    """
    calibration, validation, test = (parts.get(name) for name in ("calibration", "validation", "test"))
    assert calibration is not None
    with progress.step("scoring the best guesses of calibration texts"):
        forced_totals = bundle.predictor.totals(calibration.probabilities)
    evaluations, predicted = None, None
    if test is not None:
        predicted = Predicted(bundle.predictor, test.probabilities, test.groups, "evaluate")
        evaluations = _evaluations(
            bundle, predictors, test, predicted, corpus.part("test"), {} if kept is None else kept, date
        )
    known_words = bundle.classifier.known_words(held_out.texts)
    decisions = certified_decisions(plan, calibration, known_words, validation, seed=seed)
    info = dataclasses.replace(
        bundle.info,
        short_lists=settings_of(decisions).short_lists,
        evaluated_on={} if test is None else place_of(corpus, "test", len(test)),
    )
    bundle = dataclasses.replace(
        bundle, info=info, evaluation=evaluations, forced_totals=forced_totals, decisions=decisions
    )
    if validation is None:
        bundle = judged(bundle, calibration, held_out.texts, "calibration")
    else:
        bundle = judged(bundle, validation, corpus.part("validation").texts, "validation")
    if test is None or predicted is None:
        return bundle
    if work_folder is not None:
        path = work_folder / "report.html"
        report = try_report(path, bundle, predictors, test, predicted, corpus.part("test"), corpus)
        bundle = dataclasses.replace(bundle, report=None if report is None else report.read_bytes())
    return _with_examples(bundle, predicted, corpus.part("test").texts)


def _with_examples(bundle: Bundle, predicted: Predicted, texts: Sequence[str]) -> Bundle:
    """Return the bundle with worked examples of its test texts."""
    with progress.step("choosing examples"):
        examples = worked_examples(bundle, predicted, texts)
    chosen = tuple(texts[example.row] for example in examples)
    return dataclasses.replace(bundle, info=dataclasses.replace(bundle.info, examples=chosen))


def _evaluations(
    bundle: Bundle,
    predictors: Mapping[str, ConformalLabelSets],
    test: PartProbabilities,
    predicted: Predicted,
    held_out: Part,
    kept: MutableMapping[str, Evaluation],
    date: str | None,
) -> dict[str, Evaluation]:
    """Evaluate predictors, the bundle's own by kind of text too; evaluations that were kept are not repeated."""
    with progress.step(f"evaluating on {len(test):,} texts", len(predictors)) as advance:
        for name, predictor in predictors.items():
            if name not in kept:
                with progress.step(f"evaluating {name} on {len(test):,} texts"):
                    _log.info("evaluating %s on %d texts", name, len(test))
                    is_own = predictor is bundle.predictor
                    said = predicted if is_own else Predicted(predictor, test.probabilities, test.groups)
                    kept[name] = _evaluation(bundle, said, test, held_out, date, criteria=False, by_kind=is_own)
            advance()
    return {name: kept[name] for name in predictors}


def _evaluation(
    bundle: Bundle, predicted: Predicted, part: PartProbabilities, held_out: Part, date: str | None, **options: Any
) -> Evaluation:
    """Evaluate a predictor on texts; best guesses are those of the bundle, `date` is a column of the texts."""
    counts = label_counts(bundle.info.label_texts, bundle.label_names)
    return evaluate(
        predicted.predictor,
        predicted,
        part.labels,
        best_guesses=bundle.best_guesses(part.probabilities),
        details=TextDetails(held_out.ids, None if date is None else held_out.column(date), counts),
        **options,
    )


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

    Texts with labels that it does not know count as errors, with a warning; all other figures are of the other texts.
    `part` is the test part by default, see `held_out_part`. `report` is a file to write a report into. `criteria`
    computes the paper's S and OF, and the demand of its searches, too: takes minutes. `date` is a column with the date
    of each text; errors are then shown by month.
    """
    held_out, n_seen = without_training_texts(bundle, corpus, held_out_part(bundle, corpus, "test", part))
    if n_seen:
        _log.warning("%d texts were used to train the model; they are left out, %d are new.", n_seen, len(held_out))
    held_out, n_unknown = without_unknown_labels(bundle, held_out)
    new = bundle_probabilities(bundle, held_out)
    with progress.step(f"evaluating on {len(held_out):,} texts"):
        predicted = Predicted(bundle.predictor, new.probabilities, new.groups, "evaluate")
        evaluation = _evaluation(bundle, predicted, new, held_out, date, criteria=criteria).with_unknown(n_unknown)
    verdict = None
    if bundle.decisions is not None:
        name = held_out.name if is_own_corpus(bundle, corpus) else "held-out"
        verdict = verdict_on(bundle, new, held_out.texts, name, predicted)
    if report is not None:
        info = dataclasses.replace(bundle.info, verdict={} if verdict is None else verdict.to_dict())
        measured = dataclasses.replace(bundle, info=info, evaluation={info.measure: evaluation})
        report_on(report, measured, {info.measure: bundle.predictor}, new, predicted, held_out, corpus)
    return Measured(evaluation, verdict)


def evaluate_bundle(bundle: Bundle, corpus: Corpus, **options: Any) -> Evaluation:
    """Return the figures of `measure_bundle`, with its options, without the verdict."""
    return measure_bundle(bundle, corpus, **options).evaluation


def report_on(
    path: Path,
    bundle: Bundle,
    predictors: Mapping[str, ConformalLabelSets],
    part: PartProbabilities,
    predicted: Predicted,
    held_out: Part,
    corpus: Corpus,
) -> Path:
    """Write the report on a bundle's evaluation on held-out texts; return its path.

    Who is missed is said by the figures of the report itself, not by the verdict.
    """
    from surelabel.report import ReportInput, write_report  # noqa: PLC0415 (matplotlib, which may be missing)

    info = bundle.info
    is_own = is_own_corpus(bundle, corpus)
    others = [name for name in corpus.parts if is_own and name not in held_out.name.split("+")]
    content = ReportInput(
        title=info.name if is_own else f"{info.name} on {corpus.name}",
        predictors=predictors,
        probabilities=part.probabilities,
        labels=part.labels,
        texts=held_out.texts,
        ids=held_out.ids,
        date=datetime.date.today().isoformat(),
        verdict=[said for said in info.verdict.get("words", []) if not said.startswith("The promise of")],
        groups=part.groups,
        predicted=predicted,
        settings={"classifier": info.kind, **info.settings, "listed labels": info.listed or "all"},
        provenance={
            "corpus": corpus.name,
            "part": held_out.name,
            "fingerprint": corpus.fingerprint(),
            **dataclasses.asdict(corpus.provenance),
        },
        evaluations=bundle.evaluation or {},
        other_texts={name: corpus.part(name).texts for name in others},
    )
    with progress.step("writing the report"):
        write_report(path, content)
    return path


def try_report(path: Path, *given: Any) -> Path | None:
    """Write the report, see `report_on`; if what it needs is not installed, say so and continue without."""
    try:
        return report_on(path, *given)
    except MissingDependencyError as error:
        _log.warning("there is no report: %s", error)
        return None
