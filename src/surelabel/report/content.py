"""What a report says, as plain values: no markup here, and no numbers in the rendering."""

from __future__ import annotations

import dataclasses
import json
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from surelabel._core.levels import STANDARD_LEVELS
from surelabel._core.wording import label_sets_words
from surelabel.conformal import ConformalLabelSets, ForcedPredictions
from surelabel.corpora.overlap import seen_before
from surelabel.engines.sparse import MOST_DESCRIBED
from surelabel.evaluation.bands import Verdict, error_band, judge
from surelabel.evaluation.conditional import Conditional, TextDetails, label_figures
from surelabel.evaluation.evaluate import Evaluation, evaluate, rough_sizes
from surelabel.evaluation.metrics import SizeStatistics
from surelabel.exceptions import CalibrationWarning
from surelabel.guarantees.watch import ExchangeabilityWatch, WatchState
from surelabel.labels.sparse import is_sparse
from surelabel.plots import printable
from surelabel.report.inputs import CheckedInput, ReportInput, check_input
from surelabel.sets.prediction_sets import PredictionSets

_EXCERPT = 280
# Labels of fewer true texts say little.
_FEWEST_TRUE = 5
_LARGEST_FLOAT = float(np.finfo(np.float64).max)
_MAX_NAMES = 12
# Bound of the probability that a report's watch raises a false alarm.
WATCH_ALPHA = 0.01
_MAX_LABELS = 12
_SUBJECTS = {
    "number of true labels": "Texts with {}",
    "rarest label": "Texts whose rarest label has {}",
    "group": "Texts of {}",
    "month": "Texts of {}",
}
_REMEDIES = {
    "number of true labels": "Calibrate by number of labels (--by-cardinality) to keep it for them too; sets grow.",
    "rarest label": "Calibrate by rarity (--by-rarity) to keep it for them too; sets grow.",
    "group": "Calibrate with more texts of it.",
    "month": "Calibrate with recent texts, or let the level follow the errors (surelabel watch --adapt aci).",
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
class Names:
    """Names of labels, the first few of them, and how many more there are."""

    shown: tuple[str, ...]
    more: int = 0


@dataclasses.dataclass(frozen=True)
class TextExample:
    """One text, its labels and its prediction set; `row` counts from 1, `id` is what it is called."""

    row: int
    id: str
    excerpt: str | None
    true: Names
    forced: Names
    confidence: float
    credibility: float
    size: tuple[int, int]
    certain: Names
    open: Names
    description: str
    covered: bool


@dataclasses.dataclass(frozen=True)
class LabelDoubt:
    """A label, and what became of it in the texts that truly have it.

    `certain`, `open` and `excluded` are shares of these `true` texts; `precision` and `recall` are of best guesses.
    """

    name: str
    true: int
    certain: float
    open: float
    excluded: float
    precision: float | None
    recall: float | None


@dataclasses.dataclass(frozen=True)
class ReportContent:
    """Everything that a report says, apart from its figures. The first measure is the one that sets are shown of.

    Examples
    --------
    >>> from surelabel import ConformalLabelSets
    >>> from surelabel.report import ReportInput, build_content
    >>> predictor = ConformalLabelSets().calibrate([[0.9, 0.2], [0.1, 0.8]] * 20, [[1, 0], [0, 1]] * 20)
    >>> given = ReportInput("Two labels", {"L2": predictor}, [[0.9, 0.2], [0.1, 0.8]], [[1, 0], [0, 1]])
    >>> content = build_content(given)
    >>> content.main.name, content.chosen.verdict
    ('L2', 'held')
    """

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


def _mean_and_spread(errors: Sequence[float]) -> tuple[float, float] | None:
    """Return mean and standard deviation, None for fewer than two."""
    return (float(np.mean(errors)), float(np.std(errors, ddof=1))) if len(errors) > 1 else None


def _guarantee(
    evaluation: Evaluation, significance: str, resplits: Mapping[str, Sequence[float]]
) -> tuple[GuaranteeRow, ...]:
    """Judge the error rate at each level that was measured."""
    rows = []
    for level in _with_level(STANDARD_LEVELS, significance):
        band = error_band(level, evaluation.n_texts, evaluation.n_calibration)
        try:
            point = evaluation.at(level)
        except KeyError:
            rows.append(GuaranteeRow(level, None, *band, None, "unknown"))
            continue
        *band_seen, verdict = judge(point.error, level, evaluation.n_texts, evaluation.n_calibration)
        redrawn = _mean_and_spread(resplits.get(level, ()))
        rows.append(GuaranteeRow(level, point.error, band_seen[0], band_seen[1], point.sizes, verdict, redrawn))
    return tuple(rows)


def _measure(given: ReportInput, checked: CheckedInput, name: str) -> MeasureResults:
    """Return the results of one predictor, computed if they are not given."""
    predictor = given.predictors[name]
    evaluation = given.evaluations.get(name)
    seconds = None if evaluation is None or evaluation.demand is None else evaluation.demand.exact_seconds
    if evaluation is None:
        fewest = 1 / (predictor.calibration_.n_texts + 1)
        levels = [level for level in _with_level(STANDARD_LEVELS, given.significance) if float(level) > fewest]
        evaluation = evaluate(
            predictor,
            checked.probabilities,
            checked.labels,
            levels=levels,
            criteria=False,
            groups=given.groups,
            details=TextDetails(given.ids),
        )
    resplits = given.resplits.get(name, {})
    rows = _guarantee(evaluation, given.significance, resplits)
    n_resplits = max((len(errors) for errors in resplits.values()), default=0)
    return MeasureResults(printable(name), printable(predictor.measure), evaluation, rows, seconds, n_resplits)


def _names(labels: Any, checked: CheckedInput, row: int, n_more: int = 0) -> Names:
    """Name some labels of a text, the most probable first; `n_more` are not among them."""
    chosen = checked.most_probable_first(row, np.asarray(labels))
    shown = tuple(printable(checked.label_names[k]) for k in chosen[:_MAX_NAMES])
    return Names(shown, len(chosen) - len(shown) + n_more)


def _row(labels: Any, row: int) -> Any:
    """Return the labels of one row of a CSR array, ascending."""
    return labels.indices[labels.indptr[row] : labels.indptr[row + 1]]


def _members(sets: PredictionSets) -> tuple[Any, Any, Any]:
    """Return the certain and the open labels of texts, CSR arrays (n, d), and numbers of open labels beside, (n,).

    Of sparse texts, open labels are those that a text lists.
    """
    certain, still_open, n_more = sets.certain_and_open(most=0)
    return csr_array(certain), csr_array(still_open), n_more


def _excerpt(text: str) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(printable(text).split())
    return line if len(line) <= _EXCERPT else line[: _EXCERPT - 1].rstrip() + "…"


class _Reader:
    """Prediction sets of the main predictor at the report's significance, read text by text."""

    def __init__(self, given: ReportInput, checked: CheckedInput) -> None:
        self.given = given
        self.checked = checked
        self.predictor: ConformalLabelSets = next(iter(given.predictors.values()))
        engine = self.predictor.bind(checked.probabilities, groups=given.groups, who="a report")
        self.forced: ForcedPredictions = self.predictor.predict(engine)
        self.sets: PredictionSets = self.predictor.predict_set(engine, significance=given.significance)
        bounds = np.minimum(rough_sizes(engine, given.significance), _LARGEST_FLOAT)
        self.sizes = [(int(least), int(most)) for least, most in bounds.tolist()]
        self.covered = self.sets.contains(checked.labels)
        self.certain, self.open, self.n_more = _members(self.sets)

    def example(self, row: int) -> TextExample:
        """Return what is shown of one text."""
        forced = self.forced.labels
        given = _row(forced, row) if is_sparse(forced) else np.flatnonzero(forced[row])
        return TextExample(
            row=row + 1,
            id=printable(str(row + 1) if self.given.ids is None else self.given.ids[row]),
            excerpt=None if self.given.texts is None else _excerpt(self.given.texts[row]),
            true=_names(self.checked.true_labels(row), self.checked, row),
            forced=_names(given, self.checked, row),
            confidence=float(self.forced.confidence[row]),
            credibility=float(self.forced.credibility[row]),
            size=self.sets[row].size_bounds,
            certain=_names(_row(self.certain, row), self.checked, row),
            open=_names(_row(self.open, row), self.checked, row, int(self.n_more[row])),
            description=self._description(row),
            covered=bool(self.covered[row]),
        )

    def _description(self, row: int) -> str:
        """Return a set in a sentence; its size if there are too many labels to describe."""
        lower, upper = self.sizes[row]
        if is_sparse(self.checked.probabilities) and len(self.checked.label_names) > MOST_DESCRIBED:
            return label_sets_words(lower, upper)
        return printable(self.sets[row].describe(self.checked.label_names))

    def largest(self) -> tuple[TextExample, ...]:
        """Return the texts with the largest sets of two and more."""
        rows = sorted((row for row, size in enumerate(self.sizes) if size[1] > 1), key=lambda row: -self.sizes[row][1])
        return tuple(self.example(row) for row in rows[: self.given.n_examples])

    def sure_but_wrong(self, evaluation: Evaluation) -> tuple[TextExample, ...]:
        """Return the surest texts whose only plausible label-set is not the true one."""
        found = () if evaluation.conditional is None else evaluation.conditional.sure_but_wrong
        return tuple(self.example(text.row - 1) for text in found[: self.given.n_examples])

    def empty(self) -> tuple[int, tuple[TextExample, ...]]:
        """Return how many sets are empty, and the texts among them that are least like the calibration texts."""
        rows = [row for row, size in enumerate(self.sizes) if size[1] == 0]
        shown = sorted(rows, key=lambda row: float(self.forced.credibility[row]))[: self.given.n_examples]
        return len(rows), tuple(self.example(row) for row in shown)

    def doubts(self) -> tuple[LabelDoubt, ...]:
        """Return the labels that are certain for the smallest share of the texts that have them."""
        known = csr_array(self.checked.labels)
        both = [csr_array(known * csr_array(part)) for part in (self.certain, self.open)]
        # What a sparse text does not list is open if anything unlisted is.
        rest = csr_array(known - both[0] - both[1])
        unlisted = np.asarray(rest[np.flatnonzero(self.n_more > 0)].sum(axis=0)).reshape(-1)
        true, certain, still_open = (np.asarray(part.sum(axis=0)).reshape(-1) for part in (known, *both))
        still_open = still_open + unlisted
        figures = label_figures(known, csr_array(self.forced.labels), self.checked.label_names)
        enough = true >= min(_FEWEST_TRUE, int(true.max(initial=0)))
        rows = [k for k in np.flatnonzero(enough & (true > 0)).tolist() if certain[k] < true[k]]
        rows.sort(key=lambda k: (certain[k] / true[k], figures[k].recall or 0.0, -true[k], k))
        return tuple(
            LabelDoubt(
                name=printable(self.checked.label_names[k]),
                true=int(true[k]),
                certain=float(certain[k] / true[k]),
                open=float(still_open[k] / true[k]),
                excluded=float((true[k] - certain[k] - still_open[k]) / true[k]),
                precision=figures[k].precision,
                recall=figures[k].recall,
            )
            for k in rows[:_MAX_LABELS]
        )


def _advice(evaluation: Evaluation) -> tuple[str, ...]:
    """Say for whom the promise is not kept, and what helps."""
    figures = evaluation.conditional
    said: dict[str, str] = {}
    for division, kind in () if figures is None else figures.broken:
        subject = _SUBJECTS[division].format(kind.name)
        said.setdefault(
            division,
            f"{subject} are missed in {100 * kind.missed:.3g} % of {kind.n_texts:,} cases. {_REMEDIES[division]}",
        )
    return tuple(said.values())


def _notices(given: ReportInput, checked: CheckedInput) -> tuple[str, ...]:
    """Return the caller's warnings, and what is found wrong with the data."""
    found = [printable(warning) for warning in given.warnings]
    n_texts = len(checked.probabilities)
    for part, others in given.other_texts.items() if given.texts is not None else ():
        seen = [] if given.texts is None else seen_before(given.texts, others).tolist()
        overlap = [i for i, is_seen in enumerate(seen) if is_seen]
        if overlap:
            found.append(
                f"{len(overlap):,} of the {n_texts:,} texts of this report ({100 * len(overlap) / n_texts:.2g} %) are "
                f"also among the {printable(part)} texts. On texts that the model has seen, results look "
                "better than they are: expect more errors and larger sets on new texts."
            )
    for name, predictor in given.predictors.items():
        calibration = predictor.calibration_
        outside = int((~calibration.is_candidate(checked.labels)).sum())
        if outside:
            found.append(
                f"{printable(name)}: {outside:,} of {n_texts:,} texts have a true label-set that no prediction set can "
                f"hold, because candidates have {calibration.min_labels} to {calibration.max_labels} labels. They "
                "count as errors."
            )
        fewest = math.ceil(1 / float(given.significance))
        if calibration.n_texts < fewest:
            found.append(
                f"{printable(name)}: {calibration.n_texts:,} calibration texts are too few for significance "
                f"{given.significance}; {fewest:,} or more are needed. Prediction sets hold nearly everything."
            )
    return tuple(dict.fromkeys(found))


def _watched(given: ReportInput, checked: CheckedInput) -> WatchState:
    """Watch the main predictor's texts in their order."""
    predictor = next(iter(given.predictors.values()))
    watch = ExchangeabilityWatch.from_predictor(predictor, alpha=WATCH_ALPHA)
    return watch.update(checked.probabilities, checked.labels)


def build_content(given: ReportInput) -> ReportContent:
    """Compute everything that a report says.

    Examples
    --------
    >>> from surelabel import ConformalLabelSets
    >>> from surelabel.report import ReportInput, build_content
    >>> predictor = ConformalLabelSets().calibrate([[0.9, 0.2], [0.1, 0.8]] * 20, [[1, 0], [0, 1]] * 20)
    >>> given = ReportInput("Two labels", {"L2": predictor}, [[0.9, 0.2], [0.1, 0.8]], [[1, 0], [0, 1]])
    >>> content = build_content(given)
    >>> content.significance, content.n_empty, content.has_texts
    ('0.05', 0, False)
    """
    checked = check_input(given)
    with warnings.catch_warnings():
        # The report says so instead, see _notices.
        warnings.simplefilter("ignore", CalibrationWarning)
        measures = tuple(_measure(given, checked, name) for name in given.predictors)
        reader = _Reader(given, checked)
    n_empty, empty = reader.empty()
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
        watch=_watched(given, checked) if given.in_order else None,
        verdict=tuple(map(printable, given.verdict)),
        advice=tuple(map(printable, _advice(measures[0].evaluation))),
        sure_but_wrong=reader.sure_but_wrong(measures[0].evaluation),
        date=given.date,
    )
