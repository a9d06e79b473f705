"""The prediction sets of many texts at one significance: counted, asked and cut in blocks of rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np

from surelabel._core.validation import BoolArray, FloatArray, check_count
from surelabel.calibration import totals_of
from surelabel.engines import SEARCHES, Cut, SearchReport, SizeArray, SizeBounds, as_sizes, engine_of
from surelabel.engines.cut import BLOCK_ROWS, IntArray, Words, unpack
from surelabel.engines.few import FEW, best_of_few, can_be_listed
from surelabel.labels.label_sets import LabelSet, as_label_set
from surelabel.sets.prediction_set import PredictionSet

__all__ = ["PredictionSets"]


class PredictionSets(Sequence[PredictionSet]):
    """One prediction set a text, at one significance; nothing is computed before it is asked for.

    Made by `ConformalLabelSets.predict_set`. Supports `len`, indexing, slicing and iteration.

    Examples
    --------
    >>> from surelabel import ConformalLabelSets
    >>> predictor = ConformalLabelSets(label_names=["corn", "grain", "wheat"])
    >>> predictor = predictor.calibrate([[0.1, 0.9, 0.4]] * 9, [["grain"]] * 7 + [["grain", "wheat"]] * 2)
    >>> sets = predictor.predict_set([[0.1, 0.95, 0.3], [0.1, 0.9, 0.5]], significance=0.2)
    >>> len(sets), sets.sizes().tolist(), sets.contains([["grain"], ["corn"]]).tolist()
    (2, [1, 2], [True, False])
    >>> sets[0]
    <PredictionSet of text 0: 1 label-set>
    """

    def __init__(self, cut: Cut, search: str, tie_breaks: FloatArray | None = None) -> None:
        self._cut = cut
        self._search = search
        self._tie_breaks = tie_breaks
        self._bounds = SizeBounds.unknown(len(cut.probabilities))

    def __len__(self) -> int:
        return len(self._cut.probabilities)

    @property
    def _set_class(self) -> type[PredictionSet]:
        """What an element is."""
        return PredictionSet

    @overload
    def __getitem__(self, index: int) -> PredictionSet: ...
    @overload
    def __getitem__(self, index: slice) -> PredictionSets: ...
    def __getitem__(self, index: int | slice) -> PredictionSet | PredictionSets:
        if isinstance(index, slice):
            cut = dataclasses.replace(
                self._cut,
                probabilities=self._cut.probabilities[index],
                thresholds=self._cut.thresholds[index],
            )
            ties = None if self._tie_breaks is None else self._tie_breaks[index]
            part = type(self)(cut, self._search, ties)
            part._bounds = self._bounds[index]
            return part
        row = index + len(self) if index < 0 else index
        if not 0 <= row < len(self):
            raise IndexError(f"There are {len(self)} prediction sets; got index {index}.")
        return self._set_class(self, int(row))

    def __iter__(self) -> Iterator[PredictionSet]:
        return (self._set_class(self, row) for row in range(len(self)))

    def __repr__(self) -> str:
        return f"<PredictionSets: {len(self)} texts, search={self._search!r}>"

    def _fill_bounds(self, rows: range) -> None:
        """Count what has not been counted yet."""
        part = slice(rows.start, rows.stop)
        if not self._bounds.known[part].all():
            self._bounds.put(part, self._count(rows))

    def _count(self, rows: range) -> SizeBounds:
        """Count members by the search."""
        return SEARCHES[self._search].bounds(self._cut, rows)

    def sizes(self) -> SizeArray:
        """Return the exact number of label-sets of each prediction set, (n,).

        Returns
        -------
        int64 array, or an object array of Python integers where one does not fit.

        Raises
        ------
        SearchLimitError
            Where a size is known by bounds only; `size_bounds` gives them.
        """
        lower, upper = self.size_bounds()
        inexact = np.flatnonzero(lower != upper)
        if len(inexact):
            self[int(inexact[0])].size  # noqa: B018 (raises, and names the text and its bounds)
        return lower

    def size_bounds(self) -> tuple[SizeArray, SizeArray]:
        """Return certified (lower, upper) bounds of the sizes, each (n,); equal where the size is exact."""
        self._fill_bounds(range(len(self)))
        lower, upper = (
            as_sizes(sizes.tolist()) if sizes.dtype == object else sizes.copy()
            for sizes in (self._bounds.lower, self._bounds.upper)
        )
        return lower, upper

    def contains(self, labels: Any) -> BoolArray:
        """Tell for each text, (n,), whether its prediction set contains the given label-set."""
        calibration = self._cut.calibration
        checked = calibration.as_labels(labels, len(self), who="contains")
        totals = totals_of(calibration.measure, self._cut.probabilities, checked)
        return np.asarray(calibration.is_candidate(checked) & (totals <= self._cut.thresholds))

    def certain_and_possible(self) -> tuple[BoolArray, BoolArray]:
        """Return which labels all members have, and which some have, for each text: two (n, d) bool arrays.

        Certain labels are possible too; of an empty prediction set no label is either.
        """
        reachable = self._reachable(slice(0, len(self)))
        return reachable[:, :, 1] & ~reachable[:, :, 0], reachable[:, :, 1]

    def _reachable(self, rows: slice) -> BoolArray:
        """Return (m, d, 2): whether some member has the label absent, and whether some has it present."""
        return engine_of(self._cut.calibration).reachable(self._cut, rows)

    def top(self, k: int) -> list[list[tuple[LabelSet, float]]]:
        """Return the k best members of each prediction set with their p-values: quicker than asking one by one."""
        check_count("k", k, who="top")
        names = self._cut.calibration.label_names
        return [[(as_label_set(labels, names), p_value) for labels, p_value in best] for best in self.top_indices(k)]

    def top_indices(self, k: int, rows: Iterable[int] | None = None) -> list[list[tuple[list[int], float]]]:
        """Return what `top` returns with ascending label indices in place of label-sets.

        Where `rows` are given, the lists of the other texts are left empty.
        """
        check_count("k", k, who="top_indices")
        tops: list[list[tuple[list[int], float]]] = [[] for _ in range(len(self))]
        if k == 0:
            return tops
        self._fill_bounds(range(len(self)))
        chosen = np.array(range(len(self)) if rows is None else list(rows), dtype=np.int64)
        lower, upper = self._bounds.lower[chosen], self._bounds.upper[chosen]
        listed = (lower == upper) & (upper <= FEW) & (self._search == "exact" and can_be_listed(self._cut))
        for row in chosen[~listed].tolist():
            tops[row] = self[row]._top_indices(int(k))
        few = chosen[listed & (upper > 0)]
        for start in range(0, len(few), BLOCK_ROWS):
            numbers = few[start : start + BLOCK_ROWS]
            sizes = self._bounds.upper[numbers].astype(np.int64)
            which, totals, words = best_of_few(self._cut, numbers, sizes, int(k))
            for row, best in zip(which.tolist(), self._indexed(which, totals, words), strict=True):
                tops[row].append(best)
        return tops

    def _indexed(self, rows: IntArray, totals: FloatArray, words: Words) -> list[tuple[list[int], float]]:
        """Return packed label-sets of rows as ascending label indices, with their p-values."""
        calibration = self._cut.calibration
        ties = None if self._tie_breaks is None else self._tie_breaks[rows]
        p_values = calibration.p_values(totals, ties).tolist()
        label_sets: list[list[int]] = [[] for _ in p_values]
        places, labels = unpack(words, calibration.n_labels).nonzero()
        for place, label in zip(places.tolist(), labels.tolist(), strict=True):
            label_sets[place].append(label)
        return list(zip(label_sets, p_values, strict=True))

    def search_report(self) -> SearchReport:
        """Return what the search has to consider for each text: the paper's table "Computational demand"."""
        return SEARCHES[self._search].report(self._cut)
