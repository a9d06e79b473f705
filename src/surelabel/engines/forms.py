"""A text as the tree of flips sees it: base total, flips, penalties and rules in arrays."""

from __future__ import annotations

import dataclasses
import math
import weakref
from typing import Any

import numpy as np

from surelabel._core.packing import n_words
from surelabel._core.validation import BoolArray, FloatArray
from surelabel._kernels import tree
from surelabel._kernels.penalties import Penalties
from surelabel._kernels.rules import Rules
from surelabel.calibration import Calibration
from surelabel.engines.sizes import Bounds
from surelabel.exceptions import InvalidInputError
from surelabel.measures import SeparableMeasure, costs_of
from surelabel.measures.mahalanobis import Mahalanobis
from surelabel.measures.penalised import Penalised

_UNIT_ROUNDOFF = 2.0**-53


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """A calibrated measure with interactions, penalties or constraints, as the kernel takes it.

    Attributes
    ----------
    base : SeparableMeasure or Mahalanobis
        The measure without penalties.
    power : float
        total = base^(1 / power) + penalty; 1 without penalties.
    penalties, rules
        `_kernels.penalties.Penalties` and `_kernels.rules.Rules`.
    limits : (int, int)
    least_penalty, most_penalty : float
        Bounds of any candidate's penalty.
    """

    base: SeparableMeasure | Mahalanobis
    power: float
    penalties: Any
    rules: Any
    limits: Bounds
    least_penalty: float
    most_penalty: float

    @property
    def is_maximum(self) -> bool:
        """Whether base totals are the maximum of label costs."""
        return isinstance(self.base, SeparableMeasure) and self.base.aggregate == "max"

    def budget(self, threshold: float, penalty: float) -> float:
        """Return the base total of a label-set with a total of `threshold` and such a penalty, -inf if none has."""
        room = threshold - penalty
        return -math.inf if room < 0 else room if self.power == 1.0 else float(room**self.power)

    def form(self, probabilities: FloatArray, threshold: float, held: tuple[int, bool] | None = None) -> Any:
        """Return `_kernels.tree.Form` of one text (d,).

        `threshold` is the largest total that is of interest; `held` is a label and the value that it must have.
        """
        if isinstance(self.base, Mahalanobis):
            return self._quadratic_form(self.base, probabilities, held)
        return self._separable_form(self.base, probabilities, threshold, held)

    def _separable_form(self, base: SeparableMeasure, row: FloatArray, threshold: float, held: Any) -> Any:
        """Return the form of a base total that is a sum, or a maximum, of costs."""
        absent, present = (costs[0] for costs in costs_of(base, row[None, :]))
        member = _held(present <= absent, held)
        kept, flipped = np.where(member, present, absent), np.where(member, absent, present)
        n_labels = len(row)
        order = np.argsort(np.abs(absent - present), kind="stable")
        nothing = np.empty((0, 0))
        if base.aggregate == "max":
            flips = (flipped, np.empty(0), nothing, nothing, np.zeros(n_labels, dtype=np.int64))
            return _form(member, order, held, flips, float(kept.max()), 0.0, True, self.power)
        largest = min(float(np.maximum(kept, flipped).sum()), self.budget(threshold, 0.0))
        error = 16.0 * (n_labels + 8.0) * _UNIT_ROUNDOFF * max(largest, 0.0)
        flips = (flipped - kept, np.empty(0), nothing, nothing, np.zeros(n_labels, dtype=np.int64))
        return _form(member, order, held, flips, float(kept.sum()), error, False, self.power)

    def _quadratic_form(self, base: Mahalanobis, row: FloatArray, held: Any) -> Any:
        """Return the form of e' M e."""
        matrix = base.kernel_matrix
        member = _held(row >= 0.5, held)
        errors = np.where(member, 1.0 - row, row)
        steps = np.where(member, row, 1.0 - row) - errors
        gradient = matrix @ errors
        gains = steps * (2.0 * gradient + steps * np.diag(matrix))
        largest = np.maximum(row, 1.0 - row)
        error = 16.0 * (len(row) + 8.0) * _UNIT_ROUNDOFF * float(largest @ (np.abs(matrix) @ largest))
        slacks, stages = base.stages
        flips = (gains, steps, matrix, slacks, stages)
        return _form(member, base.order, held, flips, float(errors @ gradient), error, False, self.power)

    def relaxation(self, row: FloatArray, threshold: float) -> tuple[FloatArray, FloatArray, float]:
        """Return costs (d,), twice, and a threshold that every member is within, and maybe others."""
        absent, present = self._costs(row, 0)
        return absent, present, self._wide(self.budget(threshold, self.least_penalty), absent, present)

    def restriction(self, row: FloatArray, threshold: float) -> tuple[FloatArray, FloatArray, float] | None:
        """Return costs and a threshold that only members are within, maybe not all of them; None with constraints."""
        if self.rules.forbidden.shape[0] or self.rules.groups.shape[0]:
            return None
        absent, present = self._costs(row, 1)
        budget = self.budget(threshold * (1.0 - 1e-9), self.most_penalty)
        return absent, present, budget * (1.0 - 1e-9)

    def sides(
        self, row: FloatArray, threshold: float
    ) -> tuple[tuple[FloatArray, FloatArray, float] | None, tuple[FloatArray, FloatArray, float]]:
        """Return the restriction and the relaxation; of a maximum, which has no restriction, as a sum of 0 and 1."""
        absent, present, budget = self.relaxation(row, threshold)
        if not self.is_maximum:
            return self.restriction(row, threshold), (absent, present, budget)
        over = (absent > budget).astype(np.float64), (present > budget).astype(np.float64)
        return None, (*over, 0.0 if budget >= 0 else -math.inf)

    def _costs(self, row: FloatArray, which: int) -> tuple[FloatArray, FloatArray]:
        """Return costs of labels: of the base, or of the diagonal form below (0) or above (1) it."""
        if isinstance(self.base, Mahalanobis):
            diagonal = self.base.diagonals[which]
            return diagonal * row * row, diagonal * (1.0 - row) ** 2
        absent, present = costs_of(self.base, row[None, :])
        return absent[0], present[0]

    @staticmethod
    def _wide(budget: float, absent: FloatArray, present: FloatArray) -> float:
        """Return a budget that rounding cannot make too small, and that is finite."""
        if math.isinf(budget):
            return budget if budget < 0 else 2.0 * float(np.maximum(absent, present).sum()) + 1.0
        return budget * (1.0 + 1e-9)


def _held(member: BoolArray, held: tuple[int, bool] | None) -> BoolArray:
    """Return the start label-set, with the held label as it must be."""
    if held is not None:
        member = member.copy()
        member[held[0]] = held[1]
    return member


def _form(
    member: BoolArray, order: Any, held: Any, flips: Any, base: float, error: float, maximum: bool, power: float
) -> Any:
    """Put a form together: members come first in the order, and a held label is not in it."""
    order = np.concatenate([order[member[order]], order[~member[order]]])
    if held is not None:
        order = order[order != held[0]]
    rank = np.full(len(member), -1, dtype=np.int64)
    rank[order] = np.arange(len(order))
    gains, steps, matrix, slacks, stages = flips
    return tree.Form(
        member.astype(np.uint8),
        np.ascontiguousarray(order, dtype=np.int64),
        rank,
        np.ascontiguousarray(gains),
        steps,
        matrix,
        slacks,
        stages,
        base,
        error,
        maximum,
        power,
    )


_PROBLEMS: weakref.WeakKeyDictionary[Calibration, dict[Bounds, Problem]] = weakref.WeakKeyDictionary()


def problem_of(calibration: Calibration, limits: Bounds | None = None) -> Problem:
    """Return the problem of a calibration for limits on the number of labels, its own or others; made once."""
    problems = _PROBLEMS.setdefault(calibration, {})
    limits = calibration.limits if limits is None else limits
    if limits not in problems:
        problems[limits] = _make_problem(calibration, limits)
    return problems[limits]


def _make_problem(calibration: Calibration, limits: Bounds) -> Problem:
    """Take a calibrated measure apart into base, penalties and rules."""
    lo, hi = limits
    n_labels = calibration.n_labels
    width = n_words(n_labels)
    if calibration.constraints is None:
        forbidden, at_most = np.empty((0, 3), dtype=np.int64), np.empty(0, dtype=np.int64)
        groups = np.empty((0, width), dtype=np.uint64)
    else:
        forbidden, groups, at_most = calibration.constraints.arrays(n_labels)
    rules = Rules(forbidden, groups, at_most, lo, hi)
    measure = calibration.measure
    if isinstance(measure, Penalised):
        penalties = measure.kernel_penalties(limits, calibration.is_candidate(measure.fitted_label_sets, limits))
        sizes = penalties.of_size[lo : hi + 1]
        largest = penalties.hamming * n_labels + float(sizes.max()) + penalties.pair * math.comb(hi, 2)
        least = float(min(penalties.unseen + penalties.hamming + sizes.min(), penalties.of_seen.min(initial=math.inf)))
        base, power = measure.measure, measure.power
        return Problem(base, power, penalties, rules, limits, least, largest + penalties.unseen)
    if not isinstance(measure, (SeparableMeasure, Mahalanobis)):
        raise InvalidInputError(
            f"The exact search knows no way to search with {measure!r}: a measure with interactions of your own needs "
            "search='powerset'."
        )
    nothing = np.empty((0, width), dtype=np.uint64)
    from_size = np.full(n_labels + 2, np.inf)
    from_size[: hi + 1] = 0.0
    penalties = Penalties(nothing, np.empty(0), 0.0, 0.0, np.zeros(n_labels + 1), from_size, nothing, 0.0)
    return Problem(measure, 1.0, penalties, rules, limits, 0.0, 0.0)
