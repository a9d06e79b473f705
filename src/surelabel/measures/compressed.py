"""Texts with few listed labels as short rows of costs: listed labels, and one group of equal unlisted ones.

All unlisted labels of a text cost the same, absent and present. A label-set with j of them pays for the group
j times the one and g - j times the other, whichever j they are. So for each j the listed labels and a few constants
make a row that every search knows, and what it finds stands for binomial(g, j) label-sets. Products of a number and a
cost are kept as two numbers that need no rounding: totals are the same, to the last bit, as those of dense rows.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from surelabel._core.validation import BoolArray, FloatArray, IntArray
from surelabel._kernels import compressed as kernel
from surelabel._kernels import exact_sum
from surelabel.exceptions import InvalidInputError
from surelabel.labels.sparse import SparseLabels, SparseProbabilities
from surelabel.measures.base import PROBE, SeparableMeasure, costs_of, probe_costs

# Low bits of a float64 that `halves` cuts off: 26 digits stay, 27 go.
_LOW_BITS = np.int64(2**27 - 1)


def check_sparse_measure(measure: Any, *, who: str) -> None:
    """Raise unless a measure's costs depend on a label's probability alone, not on which label it is."""
    if getattr(measure, "takes_sparse", False):
        return
    works = False
    if isinstance(measure, SeparableMeasure):
        with contextlib.suppress(ValueError, IndexError):
            by_column = np.hstack(costs_of(measure, PROBE.T.copy()))
            works = np.array_equal(by_column.T, probe_costs(measure))
    if not works:
        raise InvalidInputError(
            f"The measure of {who} must treat all labels the same for sparse probabilities: its costs must depend on "
            f"probabilities alone. Got {measure!r} instead; give dense probabilities."
        )


@functools.lru_cache(maxsize=64)
def halves(cost: float) -> tuple[float, float]:
    """Split a cost into two parts >= 0 of 26 and 27 digits: times whole numbers below 2^26 both are exact."""
    high = float((np.float64(cost).view(np.int64) & ~_LOW_BITS).view(np.float64))
    return high, cost - high


@dataclasses.dataclass(frozen=True, eq=False)
class CompressedRows:
    """Rows of costs, one per text, of different lengths.

    Row i has the columns starts[i]..starts[i + 1] of `labels` (ascending, -1 for constants, which come last: see
    `_kernels/compressed.py`), `absent` and `present`. Of its unlisted labels, `n_barred` are always absent, and the
    last `n_representatives` of the `n_unlisted` others have columns of their own. `group` has the costs of an unlisted
    label, absent and present.
    """

    starts: IntArray
    labels: IntArray
    absent: FloatArray
    present: FloatArray
    n_listed: IntArray
    n_unlisted: IntArray
    n_barred: IntArray
    n_representatives: IntArray
    group: tuple[float, float]
    is_maximum: bool

    def __len__(self) -> int:
        return len(self.n_unlisted)

    @property
    def _constants(self) -> IntArray:
        """First constant column of each row."""
        return self.n_listed + self.n_representatives + self.starts[:-1]

    def hold(self, n_present: IntArray | int) -> None:
        """Set the constants: of the unlisted labels without columns, `n_present` are present and the others absent."""
        constants = self._constants
        n_absent = self.n_unlisted + self.n_barred - self.n_representatives - n_present
        for first, cost, count in ((0, self.group[1], n_present), (2, self.group[0], n_absent)):
            for place, part in enumerate((cost, 0.0) if self.is_maximum else halves(cost), first):
                times = np.sign(count) if self.is_maximum else count
                self.absent[constants + place] = times * part

    def take(self, rows: IntArray) -> CompressedRows:
        """Return some of the rows, in their order, each as often as it is named; costs are copied."""
        lengths = np.diff(self.starts)[rows]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        columns = np.arange(starts[-1]) + np.repeat(self.starts[:-1][rows] - starts[:-1], lengths)
        return dataclasses.replace(
            self,
            starts=starts,
            **{name: getattr(self, name)[columns] for name in ("labels", "absent", "present")},
            **{name: getattr(self, name)[rows] for name in ("n_listed", "n_unlisted", "n_barred", "n_representatives")},
        )

    def row(self, i: int) -> tuple[FloatArray, FloatArray]:
        """Return (absent, present) of one row's columns."""
        columns = slice(self.starts[i], self.starts[i + 1])
        return self.absent[columns], self.present[columns]

    def _sum(self, values: FloatArray) -> FloatArray:
        """Add up values of columns over rows, which have at least the constants."""
        return np.asarray(np.add.reduceat(values, self.starts[:-1]))

    def base(self) -> FloatArray:
        """Return the running total of each row's cheapest assignment, (n,), constants included."""
        return self._sum(np.minimum(self.absent, self.present))

    def dearest(self) -> FloatArray:
        """Return the running total of each row's dearest assignment, (n,), constants included."""
        constant = np.isinf(self.present)
        return self._sum(np.where(constant, self.absent, np.maximum(self.absent, self.present)))

    def n_free(self) -> IntArray:
        """Count the columns of each row, (n,), whose labels may be present."""
        return self._sum(np.isfinite(self.present).astype(np.float64)).astype(np.int64)

    def within(self, thresholds: FloatArray) -> CompressedRows:
        """Return rows of a *sum* with threshold 0 that has the same members as a maximum within thresholds (n,)."""
        at = np.repeat(thresholds, np.diff(self.starts))
        absent, present = (self.absent > at).astype(np.float64), (self.present > at).astype(np.float64)
        return dataclasses.replace(self, absent=absent, present=present, is_maximum=False)

    def free_and_held(self, thresholds: FloatArray) -> tuple[IntArray, IntArray, BoolArray]:
        """Count the listed labels that are within a maximum's thresholds (n,) either way, and those that must be there.

        Third: whether each label can be within at all, the unlisted ones too.
        """
        at = np.repeat(thresholds, np.diff(self.starts))
        listed = self.labels >= 0
        absent, present = self.absent <= at, self.present <= at
        free = self._sum((listed & absent & present).astype(np.float64)).astype(np.int64)
        held = self._sum((listed & ~absent & present).astype(np.float64)).astype(np.int64)
        impossible = self._sum((listed & ~absent & ~present).astype(np.float64))
        group = (self.n_unlisted + self.n_barred == 0) | (self.group[0] <= thresholds)
        return free, held, (impossible == 0) & group


def compress(
    measure: SeparableMeasure,
    probabilities: SparseProbabilities,
    n_representatives: int = 0,
    barred: BoolArray | None = None,
) -> CompressedRows:
    """Return the costs of texts as short rows, with up to `n_representatives` unlisted labels in columns of their own.

    Labels that are barred, (d,), cannot be present.
    """
    n_labels = probabilities.shape[1]
    values = np.append(probabilities.values, probabilities.unlisted)
    absent, present = (costs[0] for costs in costs_of(measure, values[None, :]))
    group = (float(absent[-1]), float(present[-1]))
    if group[0] > group[1]:
        raise InvalidInputError(
            f"The probability of unlisted labels, {probabilities.unlisted:g}, must be so small that they cost no more "
            f"absent than present. Got costs {group[0]:g} and {group[1]:g} from {measure!r}; list such labels instead."
        )
    n_unlisted, n_barred = n_labels - probabilities.n_listed, np.zeros(len(probabilities), dtype=np.int64)
    if barred is not None:
        is_barred = barred[probabilities.labels]
        present[:-1][is_barred] = np.inf
        text_of = np.repeat(np.arange(len(probabilities)), probabilities.n_listed)
        n_barred = int(barred.sum()) - np.bincount(text_of[is_barred], minlength=len(probabilities))
        n_unlisted = n_unlisted - n_barred
    own = np.minimum(n_unlisted, n_representatives)
    lengths = probabilities.n_listed + own + kernel.N_CONSTANTS
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    size = int(starts[-1])
    columns = np.empty(size, dtype=np.int64), np.empty(size), np.empty(size)
    of_texts = probabilities.n_listed, n_unlisted, n_barred, own
    rows = CompressedRows(starts, *columns, *of_texts, group, measure.aggregate == "max")
    kernel.arrange_rows(
        (probabilities.starts, probabilities.labels),
        (absent, present),
        (*group, own),
        (n_labels, np.empty(0, dtype=np.bool_) if barred is None else barred),
        starts,
        (rows.labels, rows.absent, rows.present),
    )
    rows.hold(0)
    return rows


def _marked(rows: CompressedRows, labels: SparseLabels) -> npt.NDArray[np.uint8]:
    """Return for each column whether its text has that label."""
    member = np.empty(len(rows.labels), dtype=np.uint8)
    kernel.mark_members(
        rows.labels, rows.starts, labels.indices.astype(np.int64), labels.indptr.astype(np.int64), member
    )
    return member


def sparse_totals(measure: SeparableMeasure, probabilities: SparseProbabilities, labels: SparseLabels) -> FloatArray:
    """Return the total of one label-set per text, (n,), as `totals_of` of the dense arrays."""
    rows = compress(measure, probabilities)
    member = _marked(rows, labels)
    listed = np.add.reduceat(member.astype(np.int64), rows.starts[:-1])
    rows.hold(np.diff(labels.indptr) - listed)
    if rows.is_maximum:
        return np.maximum.reduceat(np.where(member, rows.present, rows.absent), rows.starts[:-1])
    totals = np.empty(len(rows))
    exact_sum.totals_of_flat(rows.starts, rows.absent, rows.present, member, totals)
    return totals
