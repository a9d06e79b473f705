"""What a report says, as plain values: no markup here, and no numbers in the rendering."""

from __future__ import annotations

import dataclasses
import json
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from surelabel._core.levels import STANDARD_LEVELS
from surelabel.corpora.overlap import hashes_of, is_among
from surelabel.evaluation.bands import Verdict, error_band
from surelabel.evaluation.conditional import REMEDIES, Conditional, TextDetails
from surelabel.evaluation.evaluate import Evaluation, evaluate
from surelabel.evaluation.metrics import SizeStatistics
from surelabel.evaluation.predicted import large_enough
from surelabel.exceptions import CalibrationWarning
from surelabel.guarantees.watch import ExchangeabilityWatch, WatchState
from surelabel.plots import printable
from surelabel.report.examples import LabelDoubt, Reader, TextExample
from surelabel.report.inputs import CheckedInput, ReportInput, check_input

# Bound of the probability that a report's watch raises a false alarm.
WATCH_ALPHA = 0.01
_SUBJECTS = {
    "number of true labels": "Texts with {}",
    "rarest label": "Texts whose rarest label has {}",
    "group": "Texts of {}",
    "month": "Texts of {}",
}


@dataclasses.dataclass(frozen=True)
class GuaranteeRow:
    """The guarantee at one level: error rate, what chance explains, and the sizes of sets; None if not measured.

    `resplits` has mean and standard deviation of the error rate over random re-splits.
    """

    significance: str
    error: float | None
    lower: float
    upper: float
    sizes: SizeStatistics | None
    verdict: Verdict
    resplits: tuple[float, float] | None = None


@dataclasses.dataclass(frozen=True)
class MeasureResults:
    """One predictor: its evaluation and the guarantee at each level; `seconds` if the caller measured them."""

    name: str
    description: str
    evaluation: Evaluation
    rows: tuple[GuaranteeRow, ...]
    seconds: float | None
    n_resplits: int = 0

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all levels."""
        order: tuple[Verdict, ...] = ("above", "chance", "held")
        verdicts = {row.verdict for row in self.rows}
        return next((verdict for verdict in order if verdict in verdicts), "unknown")


@dataclasses.dataclass(frozen=True)
class ReportContent:
    """Everything that a report says, apart from its figures. The first measure is the one that sets are shown of."""

    title: str
    warnings: tuple[str, ...]
    settings: tuple[tuple[str, str], ...]
    provenance: tuple[tuple[str, str], ...]
    significance: str
    measures: tuple[MeasureResults, ...]
    sizes: tuple[int, ...]
    has_texts: bool
    largest: tuple[TextExample, ...]
    empty: tuple[TextExample, ...]
    n_empty: int
    doubts: tuple[LabelDoubt, ...]
    watch: WatchState | None = None
    verdict: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    sure_but_wrong: tuple[TextExample, ...] = ()
    date: str | None = None

    @property
    def n_resplits(self) -> int:
        """Number of random re-splits that were measured."""
        return max((measure.n_resplits for measure in self.measures), default=0)

    @property
    def main(self) -> MeasureResults:
        """The measure that sets, texts and labels are shown of."""
        return self.measures[0]

    @property
    def conditional(self) -> Conditional | None:
        """Figures by kind of text."""
        return self.main.evaluation.conditional

    @property
    def worst(self) -> GuaranteeRow | None:
        """The level at which the promise is broken worst, None if it is kept."""
        broken = [row for row in self.main.rows if row.verdict == "above" and row.error is not None]
        return max(broken, key=lambda row: (row.error or 0.0) / float(row.significance), default=None)

    @property
    def chosen(self) -> GuaranteeRow:
        """The main measure's guarantee at the significance that sets are shown at."""
        return next(row for row in self.main.rows if float(row.significance) == float(self.significance))


def _plain(value: Any) -> str:
    """Write a setting as text."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    if isinstance(value, (list, tuple)) and all(isinstance(item, (str, int, float)) for item in value):
        return printable(", ".join(str(item) for item in value)) or "none"
    if isinstance(value, (list, tuple, Mapping)):
        return printable(json.dumps(value, ensure_ascii=False, default=str))
    return printable(value)


def _rows_of(values: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    """Flatten nested settings to (name, text) rows, in their order."""
    for key, value in values.items():
        name = f"{prefix}{printable(key)}"
        if isinstance(value, Mapping) and value:
            yield from _rows_of(value, f"{name}: ")
        else:
            yield name, _plain(value)


def _with_level(levels: Sequence[str], significance: str) -> list[str]:
    """Return levels in ascending order with one more, unless it is there."""
    more = [] if float(significance) in [float(level) for level in levels] else [significance]
    return sorted([*levels, *more], key=float)


def _guarantee(
    evaluation: Evaluation, significance: str, resplits: Mapping[str, Sequence[float]]
) -> tuple[GuaranteeRow, ...]:
    """Judge the error rate at each level that was measured."""
    rows = []
    for level in _with_level(STANDARD_LEVELS, significance):
        try:
            point = evaluation.at(level)
        except KeyError:
            band = error_band(level, evaluation.n_texts, evaluation.n_calibration)
            rows.append(GuaranteeRow(level, None, *band, None, "unknown"))
            continue
        errors = resplits.get(level, ())
        redrawn = (float(np.mean(errors)), float(np.std(errors, ddof=1))) if len(errors) > 1 else None
        band, verdict = evaluation.band(point), evaluation.verdict(point)
        rows.append(GuaranteeRow(level, point.error, *band, point.sizes, verdict, redrawn))
    return tuple(rows)


def _measure(given: ReportInput, checked: CheckedInput, name: str) -> MeasureResults:
    """Return the results of one predictor, computed if they are not given."""
    predictor = given.predictors[name]
    evaluation = given.evaluations.get(name)
    seconds = None if evaluation is None or evaluation.demand is None else evaluation.demand.exact_seconds
    if evaluation is None:
        evaluation = evaluate(
            predictor,
            checked.predicted if predictor is checked.predicted.predictor else checked.probabilities,
            checked.labels,
            levels=large_enough(_with_level(STANDARD_LEVELS, given.significance), predictor.calibration_.n_texts),
            criteria=False,
            groups=given.groups,
            details=TextDetails(given.ids),
        )
    resplits = given.resplits.get(name, {})
    rows = _guarantee(evaluation, given.significance, resplits)
    n_resplits = max((len(errors) for errors in resplits.values()), default=0)
    return MeasureResults(printable(name), printable(predictor.measure), evaluation, rows, seconds, n_resplits)


def _advice(evaluation: Evaluation) -> tuple[str, ...]:
    """Say for whom the promise is not kept, and what helps."""
    figures = evaluation.conditional
    said: dict[str, str] = {}
    for division, kind in () if figures is None else figures.broken:
        subject = _SUBJECTS[division].format(kind.name)
        said.setdefault(
            division,
            f"{subject} are missed in {100 * kind.missed:.3g} % of {kind.n_texts:,} cases. {REMEDIES[division]}",
        )
    return tuple(said.values())


def _notices(given: ReportInput, checked: CheckedInput) -> tuple[str, ...]:
    """Return the caller's warnings, and what is found wrong with the data."""
    notices = [printable(warning) for warning in given.warnings]
    n_texts = len(checked.probabilities)
    hashes = hashes_of(given.texts or ())
    for part, others in given.other_texts.items():
        n_seen = int(is_among(hashes, hashes_of(others)).sum())
        if n_seen:
            notices.append(
                f"{n_seen:,} of the {n_texts:,} texts of this report ({100 * n_seen / n_texts:.2g} %) are "
                f"also among the {printable(part)} texts. On texts that the model has seen, results look "
                "better than they are: expect more errors and larger sets on new texts."
            )
    for name, predictor in given.predictors.items():
        calibration = predictor.calibration_
        outside = int((~calibration.is_candidate(checked.labels)).sum())
        if outside:
            notices.append(
                f"{printable(name)}: {outside:,} of {n_texts:,} texts have a true label-set that no prediction set can "
                f"hold, because candidates have {calibration.min_labels} to {calibration.max_labels} labels. They "
                "count as errors."
            )
        fewest = math.ceil(1 / float(given.significance))
        if calibration.n_texts < fewest:
            notices.append(
                f"{printable(name)}: {calibration.n_texts:,} calibration texts are too few for significance "
                f"{given.significance}; {fewest:,} or more are needed. Prediction sets hold nearly everything."
            )
    return tuple(dict.fromkeys(notices))


def build_content(given: ReportInput, checked: CheckedInput | None = None) -> ReportContent:
    """Compute everything that a report says; `checked` is the input, if it is checked already."""
    checked = checked or check_input(given)
    with warnings.catch_warnings():
        # The report says so instead, see _notices.
        warnings.simplefilter("ignore", CalibrationWarning)
        measures = tuple(_measure(given, checked, name) for name in given.predictors)
        reader = Reader(given, checked)
    n_empty, empty = reader.empty()
    watch = None
    if given.in_order:
        watching = ExchangeabilityWatch.from_predictor(checked.predicted.predictor, alpha=WATCH_ALPHA)
        watch = watching.update(checked.probabilities, checked.labels)
    return ReportContent(
        title=printable(given.title),
        warnings=_notices(given, checked),
        settings=tuple(_rows_of(given.settings)),
        provenance=tuple(_rows_of(given.provenance)),
        significance=given.significance,
        measures=measures,
        has_texts=given.texts is not None,
        sizes=tuple(most for _, most in reader.sizes),
        largest=reader.largest(),
        empty=empty,
        n_empty=n_empty,
        doubts=reader.doubts(),
        watch=watch,
        verdict=tuple(map(printable, given.verdict)),
        advice=tuple(map(printable, _advice(measures[0].evaluation))),
        sure_but_wrong=reader.sure_but_wrong(measures[0].evaluation),
        date=given.date,
    )
