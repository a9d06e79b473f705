"""What a report shows of single texts and labels."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from surelabel._core.validation import IntArray
from surelabel._core.wording import label_sets_words
from surelabel.engines.sparse import MOST_DESCRIBED
from surelabel.evaluation.conditional import label_figures
from surelabel.evaluation.evaluate import Evaluation
from surelabel.labels.sparse import is_sparse
from surelabel.plots import printable
from surelabel.report.inputs import CheckedInput, ReportInput

_EXCERPT = 280
# Labels of fewer true texts say little.
_FEWEST_TRUE = 5
_MAX_NAMES = _MAX_LABELS = 12


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


def _row(labels: Any, row: int) -> IntArray:
    """Return the labels of one row of a label matrix, ascending."""
    if is_sparse(labels):
        return np.asarray(labels.indices[labels.indptr[row] : labels.indptr[row + 1]])
    return np.flatnonzero(labels[row])


def _excerpt(text: str) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(printable(text).split())
    return line if len(line) <= _EXCERPT else line[: _EXCERPT - 1].rstrip() + "…"


class Reader:
    """Prediction sets of the main predictor at the report's significance, read text by text."""

    def __init__(self, given: ReportInput, checked: CheckedInput) -> None:
        self.given = given
        self.checked = checked
        self.forced = checked.predicted.forced
        self.sets = checked.predicted.sets(given.significance)
        self.sizes = checked.predicted.sizes(given.significance)
        self.covered = self.sets.contains(checked.labels)
        # Of sparse texts, open labels are those that a text lists, and `n_more` counts the others.
        certain, still_open, self.n_more = self.sets.certain_and_open(most=0)
        self.certain, self.open = csr_array(certain), csr_array(still_open)

    def example(self, row: int) -> TextExample:
        """Return what is shown of one text."""
        return TextExample(
            row=row + 1,
            id=printable(str(row + 1) if self.given.ids is None else self.given.ids[row]),
            excerpt=None if self.given.texts is None else _excerpt(self.given.texts[row]),
            true=self._names(self.checked.labels, row),
            forced=self._names(self.forced.labels, row),
            confidence=float(self.forced.confidence[row]),
            credibility=float(self.forced.credibility[row]),
            size=self.sets[row].size_bounds,
            certain=self._names(self.certain, row),
            open=self._names(self.open, row, int(self.n_more[row])),
            description=self._description(row),
            covered=bool(self.covered[row]),
        )

    def _names(self, labels: Any, row: int, n_more: int = 0) -> Names:
        """Name the labels of a text, the most probable first; `n_more` are not among them."""
        chosen = self.checked.most_probable_first(row, _row(labels, row))
        shown = tuple(printable(self.checked.label_names[k]) for k in chosen[:_MAX_NAMES])
        return Names(shown, len(chosen) - len(shown) + n_more)

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
        texts = () if evaluation.conditional is None else evaluation.conditional.sure_but_wrong
        return tuple(self.example(text.row - 1) for text in texts[: self.given.n_examples])

    def empty(self) -> tuple[int, tuple[TextExample, ...]]:
        """Return how many sets are empty, and the texts among them that are least like the calibration texts."""
        rows = [row for row, size in enumerate(self.sizes) if size[1] == 0]
        shown = sorted(rows, key=lambda row: float(self.forced.credibility[row]))[: self.given.n_examples]
        return len(rows), tuple(self.example(row) for row in shown)

    def doubts(self) -> tuple[LabelDoubt, ...]:
        """Return the labels that are certain for the smallest share of the texts that have them."""
        labels = csr_array(self.checked.labels)
        both = [csr_array(labels * part) for part in (self.certain, self.open)]
        # What a sparse text does not list is open if anything unlisted is.
        unlisted = csr_array(labels - both[0] - both[1])[np.flatnonzero(self.n_more > 0)]
        counts = (np.asarray(part.sum(axis=0)).reshape(-1) for part in (labels, *both, unlisted))
        true, certain, still_open, not_listed = counts
        still_open = still_open + not_listed
        figures = label_figures(labels, csr_array(self.forced.labels), self.checked.label_names)
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
