"""Who pays for the average: misses by kind of text, figures per label, and texts that looked sure and were wrong."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from surelabel._core.validation import BoolArray, FloatArray, IntArray
from surelabel.evaluation.bands import Verdict, judge
from surelabel.evaluation.predicted import Predicted
from surelabel.exceptions import InvalidInputError
from surelabel.labels.label_sets import label_indices

MOST_LISTED = 50
"""Sure but wrong texts that are listed; all are counted."""

_CARDINALITIES = ((0, "no label"), (1, "1 label"), (2, "2 labels"), (3, "3 or more labels"))
_SIZES = (
    (0, "no plausible label-set"),
    (1, "1 plausible label-set"),
    (2, "2 to 10"),
    (11, "11 to 1,000"),
    (1_001, "more than 1,000"),
)
_RARITIES = ((0, "fewer than 10 training texts"), (10, "10 to 99"), (100, "100 to 999"), (1_000, "1,000 or more"))
_ROUNDING = 1e-12
_DATES = ("%Y-%m", "%d.%m.%Y", "%Y/%m/%d", "%d %b %Y", "%d-%b-%Y")


REMEDIES = {
    "number of true labels": "Calibrate by number of labels (--by-cardinality) to keep it for them too; sets grow.",
    "rarest label": "Calibrate by rarity (--by-rarity) to keep it for them too; sets grow.",
    "group": "Calibrate with more texts of it.",
    "month": "Calibrate with recent texts, or let the level follow the errors (surelabel watch --adapt aci).",
}
"""What keeps the promise for kinds of text that are missed too often, by division."""


@dataclasses.dataclass(frozen=True, eq=False)
class TextDetails:
    """What is known of texts beside probabilities and labels; each may be left out.

    Texts are named by `ids`, by their rows from 1 without them. With `dates`, such as 2026-05-31, errors are shown by
    month; with `training_counts`, (d,), the training texts of each label, by the rarest label of a text.
    """

    ids: Sequence[str] | None = None
    dates: Sequence[str] | None = None
    training_counts: Any = None


@dataclasses.dataclass(frozen=True)
class KindOfText:
    """Texts of one kind: how many, the share whose true label-set was missed, and what chance explains."""

    name: str
    n_texts: int
    missed: float
    verdict: Verdict


@dataclasses.dataclass(frozen=True)
class LabelFigures:
    """One label: texts that have it, precision and recall of best guesses; None if they are not defined."""

    name: str
    support: int
    precision: float | None
    recall: float | None


@dataclasses.dataclass(frozen=True)
class SureButWrong:
    """A text with one plausible label-set that is not the true one."""

    id: str
    row: int
    guessed: tuple[str, ...]
    true: tuple[str, ...]
    confidence: float


@dataclasses.dataclass(frozen=True)
class Conditional:
    """Figures by kind of text at one significance.

    Attributes
    ----------
    significance : str
    kinds : mapping of a division to its kinds of text
        "number of true labels", "plausible label-sets", "rarest label", "group" and "month", as far as they are known.
    labels : tuple of LabelFigures
        In the order of the label names.
    n_sure, n_sure_wrong : int
        Texts with one plausible label-set, and those of them for which it is not the true one.
    sure_but_wrong : tuple of SureButWrong
        The surest of them, at most 50.
    """

    significance: str
    kinds: Mapping[str, tuple[KindOfText, ...]]
    labels: tuple[LabelFigures, ...]
    n_sure: int
    n_sure_wrong: int
    sure_but_wrong: tuple[SureButWrong, ...]

    @property
    def broken(self) -> tuple[tuple[str, KindOfText], ...]:
        """Divisions and kinds of text that are missed more often than chance explains, the worst first."""
        found = [(name, kind) for name, kinds in self.kinds.items() for kind in kinds if kind.verdict == "above"]
        # Sets of some sizes must miss more than others: that is what sizes say.
        return tuple(sorted((pair for pair in found if pair[0] != "plausible label-sets"), key=lambda p: -p[1].missed))


def month_of(date: str) -> str:
    """Return the month of a date, as 2026-05.

    Examples
    --------
    >>> month_of("2026-05-31T12:00:00Z"), month_of("31.5.2026")
    ('2026-05', '2026-05')
    """
    text = date.strip()
    try:
        return datetime.datetime.fromisoformat(text).strftime("%Y-%m")
    except ValueError:
        pass
    for form in _DATES:
        try:
            return datetime.datetime.strptime(text, form).strftime("%Y-%m")
        except ValueError:
            continue
    raise InvalidInputError(f"A date must be like 2026-05-31, or 31.5.2026. Got {date!r:.60} instead.")


def _misses(missed: BoolArray, names: Sequence[str], order: Sequence[str], level: str, n_calibration: int) -> Any:
    """Return the kinds of text in an order, those without texts left out."""
    of = np.array(names)
    kinds = []
    for name in order:
        rows = of == name
        n_texts = int(rows.sum())
        if n_texts:
            share = float(missed[rows].mean())
            kinds.append(KindOfText(name, n_texts, share, judge(share, level, n_texts, n_calibration)[2]))
    return tuple(kinds)


def _named(values: Any, kinds: Sequence[tuple[float, str]]) -> list[str]:
    """Return which kind each value belongs to: the last that begins at or below it."""
    places = np.searchsorted([first for first, _ in kinds], values, side="right") - 1
    return [kinds[place][1] for place in places.tolist()]


def rarest_counts(labels: Any, counts: IntArray) -> IntArray:
    """Return the number of training texts of the rarest label of each text, (n,); -1 if it has none."""
    return np.array([min((int(counts[k]) for k in row), default=-1) for row in label_indices(labels)], dtype=np.int64)


def _months(details: TextDetails, ids: Sequence[str]) -> list[str]:
    """Return the month of each text."""
    months = []
    for identity, date in zip(ids, details.dates or (), strict=True):
        try:
            months.append(month_of(date))
        except InvalidInputError as error:
            raise InvalidInputError(f"Text {identity!r:.60}: {error}") from None
    return months


def conditional(
    predicted: Predicted, labels: Any, level: str, sizes: tuple[IntArray, FloatArray], details: TextDetails | None
) -> Conditional:
    """Return figures by kind of text, for labels (n, d), dense or sparse.

    `sizes` has rows of some texts, (m,), and the sizes of their sets, (m,).
    """
    calibration, forced, groups = predicted.predictor.calibration_, predicted.forced, predicted.groups
    missed = predicted.missed(level, labels)
    label_names = calibration.label_names or tuple(map(str, range(calibration.n_labels)))
    details = details or TextDetails()
    n_texts = labels.shape[0]
    ids = [str(row + 1) for row in range(n_texts)] if details.ids is None else [str(name) for name in details.ids]
    by: dict[str, tuple[KindOfText, ...]] = {}

    def divide(name: str, kinds: Sequence[str], order: Sequence[str], rows: Any = slice(None)) -> None:
        by[name] = _misses(missed[rows], kinds, order, level, calibration.n_texts)

    n_true = np.asarray(labels.sum(axis=1)).reshape(-1)
    divide("number of true labels", _named(n_true, _CARDINALITIES), [name for _, name in _CARDINALITIES])
    divide("plausible label-sets", _named(sizes[1], _SIZES), [name for _, name in _SIZES], sizes[0])
    if details.training_counts is not None:
        rarest = rarest_counts(labels, np.asarray(details.training_counts))
        kinds = _named(rarest, [(-1, "no label"), *_RARITIES])
        divide("rarest label", kinds, [*(name for _, name in _RARITIES), "no label"])
    if groups is not None:
        divide("group", groups, sorted(set(groups)))
    if details.dates is not None:
        months = _months(details, ids)
        divide("month", months, sorted(set(months)))
    # P-values are whole numbers of 1 / (n + 1); confidence is 1 - the second one, rounded.
    rounded = float(level) + _ROUNDING
    single = (forced.credibility > rounded) & (1.0 - forced.confidence <= rounded)
    guessed, true = label_indices(forced.labels), label_indices(labels)
    wrong = [row for row in np.flatnonzero(single).tolist() if list(guessed[row]) != list(true[row])]
    shown = sorted(wrong, key=lambda row: (-float(forced.confidence[row]), row))[:MOST_LISTED]

    def names(row: Sequence[int]) -> tuple[str, ...]:
        return tuple(label_names[k] for k in row)

    return Conditional(
        significance=level,
        kinds=by,
        labels=label_figures(labels, forced.labels, label_names),
        n_sure=int(single.sum()),
        n_sure_wrong=len(wrong),
        sure_but_wrong=tuple(
            SureButWrong(ids[row], row + 1, names(guessed[row]), names(true[row]), float(forced.confidence[row]))
            for row in shown
        ),
    )


def label_figures(labels: Any, guessed: Any, label_names: Sequence[str]) -> tuple[LabelFigures, ...]:
    """Return precision, recall and support of each label, for guessed label-sets (n, d).

    Examples
    --------
    >>> true, guessed = np.array([[1, 0], [1, 1]], dtype=bool), np.array([[1, 1], [0, 1]], dtype=bool)
    >>> label_figures(true, guessed, ["oil", "gold"])[0]
    LabelFigures(name='oil', support=2, precision=1.0, recall=0.5)
    """
    support, n_guessed, both = (
        np.asarray(matrix.sum(axis=0)).reshape(-1).tolist() for matrix in (labels, guessed, labels * guessed)
    )
    rows = zip(label_names, support, n_guessed, both, strict=True)
    return tuple(
        LabelFigures(name, int(n), float(hits / m) if m else None, float(hits / n) if n else None)
        for name, n, m, hits in rows
    )
