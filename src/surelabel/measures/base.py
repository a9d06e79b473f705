"""Separable measures, and their costs in whole units.

A separable measure gives each label a cost for being absent and one for being present. The costs of a label-set add up
to its *total*, and its score is an increasing function of the total, so totals rank label-sets as scores do.

Costs are rounded once, to whole numbers of a unit: 64-bit integers that add up without rounding, whatever the order. So
all searches agree with brute force, and none needs a tolerance. The unit is a power of two, 2^-54 for 90 labels and
costs up to 1, while a float64 total of 1 is rounded to 2^-53.

Powers such as o^8 can be smaller than the unit. Where it matters, in the cheapest label-set of a text, the fraction of
a unit is kept. All label-sets of a text share it, so searches never see it: they work on whole parts, and a total, as
calibration compares it, is the float64 sum of both.
"""

from __future__ import annotations

import math
import numbers
from typing import Any, NamedTuple

import numpy as np

from surelabel._core.validation import BoolArray, FloatArray, IntArray
from surelabel._kernels import EVERYTHING, IMPOSSIBLE
from surelabel.exceptions import InvalidInputError

_FRACTION_BITS = 50
# Probabilities at which the largest cost of a measure of a user's own is looked for.
_PROBES = np.linspace(0.0, 1.0, 17)


class Costs(NamedTuple):
    """Costs of texts in units, sorted.

    empty (n,) is the whole part of the empty label-set's total; changes (n, k) what each label adds to it, ascending;
    order (n, k) the column of each place, of equal changes the last column first, so that the cheapest 0/1 row is also
    the first; fraction (n,) in [0, 1) what the total of every label-set has beside its whole part.
    """

    empty: IntArray
    changes: IntArray
    order: IntArray
    fraction: FloatArray

    @classmethod
    def from_changes(cls, empty: IntArray, changes: IntArray, fraction: FloatArray) -> Costs:
        """Sort changes (n, k) that are in the order of columns."""
        order = changes.shape[1] - 1 - np.argsort(changes[:, ::-1], axis=1, kind="stable")
        return cls(empty, np.sort(changes, axis=1), order, fraction)

    def part(self, rows: Any) -> Costs:
        """Return the costs of some texts."""
        return Costs(self.empty[rows], self.changes[rows], self.order[rows], self.fraction[rows])

    def by_column(self) -> IntArray:
        """Return changes (n, k) in the order of columns."""
        changes = np.empty_like(self.changes)
        np.put_along_axis(changes, self.order, self.changes, axis=1)
        return changes

    def without(self, columns: BoolArray | int) -> Costs:
        """Return the costs with labels made impossible: one column, or those of a mask (n, k)."""
        changes = self.by_column()
        changes[columns if isinstance(columns, np.ndarray) else (slice(None), columns)] = IMPOSSIBLE
        return Costs.from_changes(self.empty, changes, self.fraction)

    def whole(self, members: BoolArray) -> IntArray:
        """Return the whole part of the total of one 0/1 row per text, (n,)."""
        chosen = np.take_along_axis(members, self.order, axis=1)
        whole: IntArray = self.empty + np.where(chosen, self.changes, 0).sum(axis=1)
        return whole

    def totals(self, whole: IntArray, rows: IntArray | None = None) -> FloatArray:
        """Return totals from whole parts, (n,) or (n, m), or (m,) of the texts `rows` (m,); inf where impossible."""
        fraction = self.fraction.reshape(-1, *[1] * (whole.ndim - 1)) if rows is None else self.fraction[rows]
        return np.where(whole < IMPOSSIBLE, whole.astype(np.float64) + fraction, np.inf)

    def within(self, thresholds: FloatArray, row: int | None = None) -> IntArray:
        """Return the largest whole part of a total within each text's threshold, (n,), or within (m,) of one text."""
        largest = np.minimum(thresholds, float(EVERYTHING))
        # A float64 threshold stands for all numbers that are rounded to it.
        whole = largest.astype(np.int64) + (np.spacing(largest) / 2.0).astype(np.int64)
        return whole - (whole.astype(np.float64) + self.fraction[... if row is None else row] > largest)


class SeparableMeasure:
    """Base class of measures with a cost per label: subclass it and define `costs`.

    Costs must be finite. Where one would be infinite, clip it, as `LogLoss` does.

    Examples
    --------
    A measure for which a missing label is twice as bad as an extra one:

    >>> class MissingIsWorse(SeparableMeasure):
    ...     def costs(self, probabilities):
    ...         return 2 * probabilities, 1 - probabilities
    >>> MissingIsWorse().largest_cost(3)
    2.0
    """

    def costs(self, probabilities: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (absent, present) costs, each (n, d), finite and >= 0, for probabilities (n, d)."""
        raise NotImplementedError(f"{type(self).__name__} must define costs(probabilities).")

    def score(self, totals: FloatArray) -> FloatArray:
        """Return scores of totals: an increasing function."""
        return totals

    def largest_cost(self, n_labels: int) -> float:
        """Return the largest cost of a label at any probability; this tries 17 probabilities from 0 to 1."""
        absent, present = self._checked_costs(np.repeat(_PROBES[:, None], n_labels, axis=1))
        return float(max(absent.max(), present.max()))

    def units(self, n_labels: int) -> float:
        """Return how many units make 1: the largest power of two for which no total passes 2^61."""
        largest = n_labels * self.largest_cost(n_labels)
        if not 0.0 < largest < 2.0**900:
            raise InvalidInputError(
                f"The costs of {self!r} must be finite, and not all 0. Its largest total is {largest:g}. Clip costs "
                "that would be infinite, as LogLoss does."
            )
        return float(EVERYTHING / 2.0 ** math.frexp(largest)[1])

    def _checked_costs(self, probabilities: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (absent, present) costs; an error if they do not have the right shape or are below 0 or infinite."""
        with np.errstate(all="ignore"):
            absent, present = self.costs(probabilities)
        for name, costs in (("absent", absent), ("present", present)):
            if costs.shape != probabilities.shape or not (costs.min() >= 0.0 and costs.max() < np.inf):
                raise InvalidInputError(
                    f"The {name} costs of {self!r} must have shape {probabilities.shape}, and be finite and 0 or more. "
                    f"Got shape {costs.shape}, from {np.min(costs):g} to {np.max(costs):g}. Clip costs that would be "
                    "infinite, as LogLoss does."
                )
        return absent, present

    def in_units(self, probabilities: FloatArray, units: float, excluded: BoolArray | None = None) -> Costs:
        """Return the costs of texts in whole units; labels of an `excluded` mask (n, d) are impossible and cost 0."""
        absent, present = self._checked_costs(probabilities)
        largest, most = max(float(absent.max()), float(present.max())), EVERYTHING / units / probabilities.shape[1]
        if largest > most:
            raise InvalidInputError(
                f"A cost of {self!r} is {largest:g}, over its largest_cost (a limit of {most:g}). Define largest_cost, "
                "since costs between 17 probabilities from 0 to 1 are larger than at these."
            )
        if excluded is not None:
            absent = np.where(excluded, 0.0, absent)
        changes = np.rint(present * units).astype(np.int64) - np.rint(absent * units).astype(np.int64)
        if excluded is not None:
            changes[excluded] = 0
        cheapest = np.minimum(absent, present) * units
        whole = np.floor(cheapest)
        rest = np.rint((cheapest - whole) * 2.0**_FRACTION_BITS).astype(np.int64).sum(axis=1)
        least = whole.astype(np.int64).sum(axis=1) + (rest >> _FRACTION_BITS)
        fraction = (rest % 2**_FRACTION_BITS) * 2.0**-_FRACTION_BITS
        empty = least - np.minimum(changes, 0).sum(axis=1)
        if excluded is not None:
            changes[excluded] = IMPOSSIBLE
        return Costs.from_changes(empty, changes, fraction)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(type(self))


def is_number(value: Any) -> bool:
    """Return whether a parameter is a finite real number; True and False are not."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        return False
    return math.isfinite(value)
