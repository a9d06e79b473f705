"""Texts that are costed and sorted once, for several questions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel._core.validation import BoolArray, FloatArray, IntArray, aligned_rows, label_places
from surelabel.calibration import Calibration, Limits
from surelabel.labels.label_sets import LabelSet, as_label_sets
from surelabel.search.base import Search


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

    @property
    def classes(self) -> list[tuple[int, Limits]]:
        """The classes that have candidates, with their least and most labels."""
        return self.calibration.classes

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
