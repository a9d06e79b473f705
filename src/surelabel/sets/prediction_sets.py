"""The prediction sets of many texts at one significance: counted, asked and cut in blocks of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np

from surelabel._core.validation import BoolArray, FloatArray, IntArray, check_count
from surelabel.engines.base import Engine, SearchReport
from surelabel.engines.sizes import SizeArray, SizeBounds, as_sizes
from surelabel.labels.label_sets import LabelSet, as_label_set
from surelabel.sets.prediction_set import PredictionSet


class PredictionSets(Sequence[PredictionSet]):
    """One prediction set per text, at one significance; nothing is computed before it is asked for.

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

    def __init__(self, engine: Engine, thresholds: FloatArray, tie_breaks: FloatArray | None = None) -> None:
        self._engine = engine
        self._thresholds = thresholds
        self._tie_breaks = tie_breaks
        self._bounds = SizeBounds.unknown(len(engine))

    def __len__(self) -> int:
        return len(self._engine)

    @overload
    def __getitem__(self, index: int) -> PredictionSet: ...
    @overload
    def __getitem__(self, index: slice) -> PredictionSets: ...
    def __getitem__(self, index: int | slice) -> PredictionSet | PredictionSets:
        if isinstance(index, slice):
            ties = None if self._tie_breaks is None else self._tie_breaks[index]
            part = PredictionSets(self._engine[index], self._thresholds[index], ties)
            part._bounds = self._bounds[index]
            return part
        row = int(index) + len(self) if index < 0 else int(index)
        if not 0 <= row < len(self):
            raise IndexError(f"There are {len(self)} prediction sets; got index {index}.")
        ties = None if self._tie_breaks is None else self._tie_breaks[row : row + 1]
        return PredictionSet(self._engine, row, self._thresholds[row], ties, self._bounds)

    def __iter__(self) -> Iterator[PredictionSet]:
        return (self[row] for row in range(len(self)))

    def __repr__(self) -> str:
        return f"<PredictionSets: {len(self)} texts, search={self._engine.search!r}>"

    @property
    def thresholds(self) -> FloatArray:
        """The largest total of a member of each set, (n,)."""
        return self._thresholds

    def sizes(self) -> SizeArray:
        """Return the exact number of label-sets of each prediction set, (n,); Python integers if one is past int64.

        SearchLimitError if a size is known by bounds only; `size_bounds` gives them.
        """
        lower, upper = self.size_bounds()
        inexact = np.flatnonzero(lower != upper)
        if len(inexact):
            self[int(inexact[0])].size  # noqa: B018 (raises, and names the text and its bounds)
        return lower

    def size_bounds(self) -> tuple[SizeArray, SizeArray]:
        """Return certified (lower, upper) bounds of the sizes, each (n,); equal if the size is exact."""
        if not self._bounds.known.all():
            self._bounds.put(slice(None), self._engine.bounds(self._thresholds))
        lower, upper = (
            as_sizes(sizes.tolist()) if sizes.dtype == object else sizes.copy()
            for sizes in (self._bounds.lower, self._bounds.upper)
        )
        return lower, upper

    def contains(self, labels: Any) -> BoolArray:
        """Tell for each text, (n,), whether its prediction set contains the given label-set."""
        return self._engine.contains(self._thresholds, self._engine.as_labels(labels, who="contains"))

    def certain_and_possible(self) -> tuple[Any, Any]:
        """Return which labels all members have, and which some have, for each text: two (n, d) bool arrays.

        Certain labels are possible too; of an empty prediction set no label is either. CSR arrays if probabilities were
        sparse; a row in which unlisted labels are possible has all of them.
        """
        certain, still_open, _ = self._engine.certain_and_open(self._thresholds)
        return certain, certain + still_open

    def certain_and_open(self, most: int | None = None) -> tuple[Any, Any, IntArray]:
        """Return which labels all members have, and which some have but not all, without rows of very many labels.

        Two (n, d) bool arrays, CSR arrays if probabilities were sparse; and how many open labels of each text, (n,),
        are not in its row: if more than `most` labels are open, only those that a sparse text lists are.
        """
        return self._engine.certain_and_open(self._thresholds, most)

    def top(self, k: int) -> list[list[tuple[LabelSet, float]]]:
        """Return the k best members of each prediction set with their p-values: quicker than asking one by one."""
        check_count("k", k, who="top")
        names = self._engine.calibration.label_names
        return [[(as_label_set(labels, names), p_value) for labels, p_value in best] for best in self.top_indices(k)]

    def top_indices(self, k: int, rows: Iterable[int] | None = None) -> list[list[tuple[list[int], float]]]:
        """Return what `top` returns with ascending label indices in place of label-sets.

        If `rows` are given, the lists of the other texts are left empty.
        """
        check_count("k", k, who="top_indices")
        tops: list[list[tuple[list[int], float]]] = [[] for _ in range(len(self))]
        chosen = np.array(range(len(self)) if rows is None else list(rows), dtype=np.int64)
        if k == 0 or len(chosen) == 0:
            return tops
        best = self._engine.top(int(k), self._thresholds, chosen)
        scored = [one for members in best for one in members]
        texts = np.repeat(chosen, [len(members) for members in best])
        ties = None if self._tie_breaks is None else self._tie_breaks[texts]
        p_values = self._engine.p_values(texts, scored, ties)
        for row, (_, member), p_value in zip(texts.tolist(), scored, p_values, strict=True):
            tops[row].append((list(member), p_value))
        return tops

    def search_report(self) -> SearchReport:
        """Return what the search has to consider for each text: the paper's table "Computational demand"."""
        return self._engine.report(self._thresholds)
