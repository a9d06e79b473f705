"""Texts ready to be searched: their forced predictions, and their prediction sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel._core.validation import (
    BoolArray,
    FloatArray,
    IntArray,
    Names,
    aligned_rows,
    check_count,
    label_places,
)
from surelabel.calibration import Calibration
from surelabel.exceptions import InvalidInputError, SearchLimitError
from surelabel.labels.label_sets import LabelSet, as_label_sets, order_rows
from surelabel.search.dense import Found, Search, Sizes, add_sizes, ranks
from surelabel.search.paper import Demand, demand_of
from surelabel.sets.prediction_set import PredictionSet

# Texts whose listed members are kept for the next question.
_KEPT_ROWS = 512


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts ready to be searched: a search over their costs, their groups (n,), and the labels of shortlists (n, k).

    Made by `ConformalLabelSets.texts`. Wherever a predictor takes probabilities, it takes these, too.
    """

    calibration: Calibration
    search: Search
    groups: npt.NDArray[Any]
    columns: IntArray | None = None
    # The data frame that the probabilities came in: its index puts rows of labels in order.
    frame: Any = None

    def __len__(self) -> int:
        return len(self.groups)

    def __getitem__(self, rows: Any) -> Texts:
        columns = None if self.columns is None else self.columns[rows]
        return Texts(self.calibration, self.search[rows], self.groups[rows], columns)

    def without(self, column: int) -> Texts:
        """Return the same texts with a column's label made impossible."""
        return replace(self, search=self.search.without(column))

    def label_sets(self, rows: IntArray, members: BoolArray) -> list[LabelSet]:
        """Return 0/1 rows (m, k) of the texts `rows` (m,) as label-sets."""
        columns = None if self.columns is None else self.columns[rows]
        return as_label_sets(members, columns, self.calibration.label_names)

    def members_of(self, labels: Any, who: str) -> tuple[BoolArray, IntArray, BoolArray]:
        """Return one label-set per text as 0/1 rows (n, k), their sizes, and which have an unlisted label, (n,)."""
        n, calibration = len(self), self.calibration
        labels = aligned_rows(labels, self.frame, "labels", who)
        rows, labels, outside = label_places(labels, n, calibration.n_labels, calibration.label_names, who)
        sizes = np.bincount(rows, minlength=n)
        if self.columns is None:
            members = np.zeros((n, calibration.n_labels), dtype=np.bool_)
            members[rows, labels] = True
            return members, sizes, outside
        # Shortlists ascend within a row, so that (row, label) ascend as one number.
        members = np.zeros(self.columns.shape, dtype=np.bool_)
        base = calibration.n_labels + 1
        listed, wanted = (self.columns + np.arange(n)[:, None] * base).ravel(), rows * base + labels
        places = np.minimum(np.searchsorted(listed, wanted), len(listed) - 1)
        is_listed = listed[places] == wanted
        members.ravel()[places[is_listed]] = True
        return members, sizes, outside | (np.bincount(rows[~is_listed], minlength=n) > 0)

    def score(self, labels: Any, who: str) -> tuple[FloatArray, IntArray, BoolArray]:
        """Return total and size of one label-set per text, and which are candidates, (n,) each."""
        calibration = self.calibration
        members, sizes, outside = self.members_of(labels, who)
        candidates = ~outside & (sizes >= calibration.min_labels) & (sizes <= calibration.max_labels)
        if calibration.rules is not None:
            candidates &= calibration.rules.obeyed(members, self.columns)
        totals = self.search.costs.totals(self.search.whole(members))
        return np.where(outside, np.inf, totals), sizes, candidates


@dataclass(frozen=True, eq=False)
class ForcedPredictions:
    """The label-set with the highest p-value for each text (paper section 4.1).

    Attributes
    ----------
    labels : (n, n_labels) bool
    label_sets : list of frozenset
    confidence : (n,) float64
        1 minus the second highest p-value: how unlikely every other label-set is.
    credibility : (n,) float64
        The highest p-value: low if the text is unlike the calibration texts.
    scores : (n,) float64
        The total of the label-set, in the scale of the measure's costs: low if the guess is sure; inf if there is no
        candidate.
    """

    members: BoolArray
    confidence: FloatArray
    credibility: FloatArray
    scores: FloatArray
    columns: IntArray | None
    n_labels: int
    label_names: Names | None

    def __len__(self) -> int:
        return len(self.confidence)

    @property
    def labels(self) -> BoolArray:
        """The label-sets as 0/1 rows (n, n_labels)."""
        if self.columns is None:
            return self.members
        rows = np.zeros((len(self), self.n_labels + 1), dtype=np.bool_)
        np.put_along_axis(rows, self.columns, self.members, axis=1)
        return rows[:, :-1]

    @property
    def label_sets(self) -> list[LabelSet]:
        """The label-sets as frozensets of names, of indices if labels have no names."""
        return as_label_sets(self.members, self.columns, self.label_names)

    @classmethod
    def from_texts(cls, texts: Texts) -> ForcedPredictions:
        """Compare the two best candidates of each class by p-value, then by total, then lexicographically."""
        calibration, n = texts.calibration, len(texts)
        bests = [texts.search.best(limits) for _, limits in calibration.classes]
        whole = np.concatenate([best.whole for best in bests], axis=1)
        totals = texts.search.costs.totals(whole)
        p_values = np.empty(totals.shape)
        for i, (_, limits) in enumerate(calibration.classes):
            two = slice(2 * i, 2 * i + 2)
            p_values[:, two] = calibration.p_values(totals[:, two].ravel(), limits[0], texts.groups.repeat(2)).reshape(
                n, 2
            )
        p_values[np.isinf(totals)] = 0.0
        rows, members, chosen = np.arange(n), bests[0].members, np.zeros(n, dtype=np.int64)
        if len(bests) > 1:
            every = np.concatenate([best.members for best in bests])
            of, by_p, by_total = np.tile(rows, len(bests)), -p_values[:, ::2].T.ravel(), whole[:, ::2].T.ravel()
            order = order_rows(every, of, by_p, by_total)[:: len(bests)]
            members, chosen = every[order], order // n * 2
        credibility, confidence = p_values[rows, chosen], 1.0 - np.sort(p_values, axis=1)[:, -2]
        scores, shared = totals[rows, chosen] / calibration.units, (calibration.n_labels, calibration.label_names)
        return cls(members, confidence, credibility, scores, texts.columns, *shared)


class PredictionSets(Sequence[PredictionSet]):
    """One prediction set per text, at one significance. Supports len, indexing, slicing and iteration.

    Nothing is computed before it is asked for. Members that were listed are used again: once all members of a set are
    listed, its size and the status of its labels need no further search.

    Examples
    --------
    >>> from surelabel import ConformalLabelSets
    >>> predictor = ConformalLabelSets(label_names=["corn", "grain", "wheat"])
    >>> predictor = predictor.calibrate([[0.1, 0.9, 0.4]] * 9, [["grain"]] * 7 + [["grain", "wheat"]] * 2)
    >>> sets = predictor.predict_set([[0.1, 0.95, 0.3], [0.1, 0.9, 0.5]], significance=0.2)
    >>> len(sets), sets.sizes().tolist(), sets.contains([["grain"], ["corn"]]).tolist()
    (2, [1, 2], [True, False])
    """

    def __init__(self, texts: Texts, thresholds: FloatArray) -> None:
        self.texts = texts
        self.thresholds = thresholds
        # The largest whole part of a member's total, for each class, (n_classes, n).
        self._within = [texts.search.costs.within(at) for at in thresholds.T]
        self._bounds: tuple[Sizes, Sizes] | None = None
        self._listed: tuple[int, Found, FloatArray] | None = None

    def __len__(self) -> int:
        return len(self.thresholds)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            part = PredictionSets(self.texts[index], self.thresholds[index])
            if self._bounds is not None:
                part._bounds = self._bounds[0][index], self._bounds[1][index]
            return part
        row = int(index) + len(self) if index < 0 else int(index)
        if not 0 <= row < len(self):
            raise IndexError(f"There are {len(self)} prediction sets; got index {index}.")
        return PredictionSet(self if len(self) == 1 else self[row : row + 1], row)

    def _by_class(self, question: str, *arguments: Any) -> list[Any]:
        """Ask the search a question about each class that has candidates."""
        ask, answers = getattr(self.texts.search, question), []
        for place, limits in self.texts.calibration.classes:
            answers.append(ask(limits, self._within[place], *arguments))
        return answers

    def size_bounds(self) -> tuple[Sizes, Sizes]:
        """Return certified (lower, upper) bounds of the sizes, each (n,); equal if the size is exact."""
        if self._bounds is None:
            if self._listed is not None and self._listed[1].complete.all():
                sizes: Any = np.bincount(self._listed[1].rows, minlength=len(self))
                self._bounds = sizes, sizes
            else:
                parts = self._by_class("bounds")
                lower, upper = parts[0] if len(parts) == 1 else map(add_sizes, zip(*parts, strict=True))
                self._bounds = lower, upper
        return self._bounds[0].copy(), self._bounds[1].copy()

    def sizes(self) -> Sizes:
        """Return the exact number of label-sets of each prediction set, (n,); Python integers if one passes int64.

        SearchLimitError if a size is known by bounds only; `size_bounds` gives them.
        """
        lower, upper = self.size_bounds()
        inexact = np.flatnonzero(lower != upper)
        if len(inexact):
            row = int(inexact[0])
            raise SearchLimitError(
                f"The size of the prediction set of text {row} lies between {lower[row]:,} and {upper[row]:,}; "
                "counting it takes more than the work limit. Use size_bounds, or a larger work_limit.",
                (int(lower[row]), int(upper[row])),
            )
        return lower

    def contains(self, labels: Any) -> BoolArray:
        """Return whether each prediction set has the text's given label-set, (n,)."""
        totals, sizes, candidates = self.texts.score(labels, "contains")
        classes = self.texts.calibration.classes_of(sizes)
        return np.asarray(candidates & (totals <= self.thresholds[np.arange(len(self)), classes]))

    def status(self) -> tuple[BoolArray, BoolArray]:
        """Return which labels all members have (certain), and which some have (possible), (n, k) each."""
        if self._listed is not None and self._listed[1].complete.all():
            return self._status_of_listed(self._listed[1])
        parts = self._by_class("status")
        has, lacks = parts[0] if len(parts) == 1 else (np.logical_or.reduce(side) for side in zip(*parts, strict=True))
        return has & ~lacks, has

    def _status_of_listed(self, found: Found) -> tuple[BoolArray, BoolArray]:
        """Return which labels all listed members have, and which some have."""
        possible = np.zeros((len(self), found.members.shape[1]), dtype=np.bool_)
        certain = possible.copy()
        rows, starts = np.unique(found.rows, return_index=True)
        if len(rows):
            possible[rows] = np.logical_or.reduceat(found.members, starts, axis=0)
            certain[rows] = np.logical_and.reduceat(found.members, starts, axis=0)
        return certain, possible

    def first(self, number: int) -> tuple[Found, FloatArray]:
        """Return the first members of each text, by p-value, then total, then lexicographically; and their p-values."""
        if self._listed is not None and (number <= self._listed[0] or self._listed[1].complete.all()):
            return self._cut(number, *self._listed[1:])
        found, p_values = self._list(number)
        if len(self) <= _KEPT_ROWS:
            self._listed = number, found, p_values
        return found, p_values

    def _cut(self, number: int, found: Found, p_values: FloatArray) -> tuple[Found, FloatArray]:
        """Return the first of listed members."""
        kept = ranks(found.rows) < number
        if kept.all():
            return found, p_values
        complete = found.complete & (np.bincount(found.rows, minlength=len(self)) <= number)
        return Found(found.rows[kept], found.whole[kept], found.members[kept], complete), p_values[kept]

    def _list(self, number: int) -> tuple[Found, FloatArray]:
        """List the first members of each class, and merge them."""
        texts, parts, p_values = self.texts, self._by_class("first", number), []
        for found, (_, limits) in zip(parts, texts.calibration.classes, strict=True):
            totals = texts.search.costs.totals(found.whole, found.rows)
            p_values.append(texts.calibration.p_values(totals, limits[0], texts.groups[found.rows]))
        if len(parts) == 1:
            return parts[0], p_values[0]
        rows, whole, members = (np.concatenate(arrays) for arrays in list(zip(*parts, strict=True))[:3])
        together = np.concatenate(p_values)
        order = order_rows(members, rows, -together, whole)
        order = order[ranks(rows[order]) < number]
        complete = np.logical_and.reduce([part.complete for part in parts])
        complete &= np.bincount(rows, minlength=len(self)) <= number
        return Found(rows[order], whole[order], members[order], complete), together[order]

    def top(self, k: int) -> list[list[tuple[LabelSet, float]]]:
        """Return the k best members of each prediction set with their p-values, best first."""
        check_count("k", k, "top")
        found, p_values = self.first(int(k))
        tops: list[list[tuple[LabelSet, float]]] = [[] for _ in range(len(self))]
        pairs = zip(self.texts.label_sets(found.rows, found.members), p_values.tolist(), strict=True)
        for row, pair in zip(found.rows.tolist(), pairs, strict=True):
            tops[row].append(pair)
        return tops

    def without(self, column: int) -> PredictionSets:
        """Return the prediction sets without the members that have a column's label."""
        return PredictionSets(self.texts.without(column), self.thresholds)

    def demand(self) -> Demand:
        """Return how many label-sets the paper's two searches score for these sets; not with classes of sizes."""
        (place, limits), *others = self.texts.calibration.classes
        if others:
            raise InvalidInputError("The demand of the paper's searches is that of predictors without ByCardinality.")
        return demand_of(self.texts.search.costs, limits, self._within[place])

    def label_sets(self, mask: BoolArray) -> list[LabelSet]:
        """Return the labels of a mask (n, k), such as those of `status`, for each text."""
        rows: IntArray = np.arange(len(self))
        return self.texts.label_sets(rows, mask)
