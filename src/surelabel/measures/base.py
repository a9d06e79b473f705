"""Nonconformity measures: how strange a label-set is beside a text's probabilities (paper section 5.3).

A *separable* measure gives each label a cost for being absent and one for being present; the costs of a label-set are
added up (or their maximum is taken) to a *total*, and its score is an increasing function of that total. Totals
rank as scores do, so searches and p-values work on totals.

Examples
--------
A measure of your own is any object with `aggregate`, `costs` and `score`. One that counts a missing label as three
times as strange as a superfluous one:

>>> import dataclasses
>>> import numpy as np
>>> from surelabel import ConformalLabelSets
>>> @dataclasses.dataclass(frozen=True)
... class MissingIsWorse:
...     weight: float = 3.0
...     aggregate = "sum"
...
...     def costs(self, probabilities):
...         return self.weight * probabilities, 1.0 - probabilities
...
...     def score(self, totals):
...         return totals
>>> predictor = ConformalLabelSets(MissingIsWorse())
>>> predictor = predictor.calibrate([[0.9, 0.2], [0.4, 0.7], [0.8, 0.6]], [[1, 0], [0, 1], [1, 1]])
>>> predictor.predict_set([[0.9, 0.1]], significance=0.3)[0].top(3)
[(frozenset({0}), 1.0), (frozenset({0, 1}), 0.5)]
"""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np

from surelabel._core.validation import BoolArray, FloatArray
from surelabel.exceptions import InvalidInputError

__all__ = [
    "MEASURES",
    "InteractionMeasure",
    "LogLoss",
    "LpNorm",
    "Measure",
    "SeparableMeasure",
    "check_measure",
    "costs_of",
    "is_number",
    "measure_from_spec",
    "measure_name",
    "measure_named",
    "measure_to_spec",
    "probe_costs",
    "same_measure",
    "totals_by_costs",
]

Aggregate: TypeAlias = Literal["sum", "max"]


@runtime_checkable
class SeparableMeasure(Protocol):
    """What a separable measure must have; it must not change once it is made.

    Examples
    --------
    A measure of one's own, for which a label that is missing is twice as strange as one too many:

    >>> import numpy as np
    >>> from surelabel import ConformalLabelSets
    >>> class MissingIsWorse:
    ...     aggregate = "sum"
    ...
    ...     def costs(self, probabilities):
    ...         return 2 * probabilities, 1 - probabilities
    ...
    ...     def score(self, totals):
    ...         return totals
    >>> predictor = ConformalLabelSets(MissingIsWorse()).calibrate([[0.9, 0.2], [0.3, 0.6]], [[1, 0], [0, 1]])
    >>> predictor.predict([[0.4, 0.1]]).label_sets
    [frozenset({0})]
    """

    @property
    def aggregate(self) -> Aggregate:
        """How costs of labels make a total: "sum" or "max"."""
        ...

    def costs(self, probabilities: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (absent, present) costs, each (n, d) float64, finite and >= 0, for probabilities (n, d)."""
        ...

    def score(self, totals: FloatArray) -> FloatArray:
        """Return nonconformity scores, an increasing function of totals."""
        ...


@runtime_checkable
class InteractionMeasure(Protocol):
    """What a measure must have whose totals do not add up label by label; ours are `Mahalanobis` and `Penalised`."""

    def totals(self, probabilities: FloatArray, labels: BoolArray) -> FloatArray:
        """Return totals of one label-set a text, (n,) float64, finite and >= 0, for probabilities and labels (n, d)."""
        ...

    def totals_of_label_sets(self, probabilities: FloatArray, labels: BoolArray) -> FloatArray:
        """Return the same for label-sets (m, d) of one text (d,), to the last bit."""
        ...

    def score(self, totals: FloatArray) -> FloatArray:
        """Return nonconformity scores, an increasing function of totals."""
        ...


Measure: TypeAlias = SeparableMeasure | InteractionMeasure


def is_number(value: Any) -> bool:
    """Tell whether a parameter is a real number; True and False are not."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _power(values: FloatArray, p: float) -> FloatArray:
    """Return values ** p, by squaring where p is 2, 4 or 8: the paper's norms, on the hot path."""
    if p == 1.0:
        return values.copy()
    if p in (2.0, 4.0, 8.0):
        result = values * values
        for _ in range(int(math.log2(p)) - 1):
            result *= result
        return result
    return np.power(values, p)


@dataclasses.dataclass(frozen=True)
class LpNorm:
    """The L_p norm of the difference between probabilities and the 0/1 label-set (paper equation 12).

    Parameters
    ----------
    p : float
        1 or more; `math.inf` takes the largest difference. Larger p looks more at the worst label.

    Examples
    --------
    >>> LpNorm(2).score(np.array([0.25]))
    array([0.5])
    """

    p: float = 2.0

    def __post_init__(self) -> None:
        if not is_number(self.p) or not self.p >= 1:
            raise InvalidInputError(f"The 'p' parameter of LpNorm must be a number >= 1. Got {self.p!r} instead.")

    @property
    def aggregate(self) -> Aggregate:
        """Costs add up; for p = inf the largest counts."""
        return "max" if math.isinf(self.p) else "sum"

    def costs(self, probabilities: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (o^p, (1 - o)^p), for p = inf (o, 1 - o)."""
        p = 1.0 if math.isinf(self.p) else float(self.p)
        return _power(probabilities, p), _power(1.0 - probabilities, p)

    def score(self, totals: FloatArray) -> FloatArray:
        """Return the norm: totals^(1/p)."""
        return totals if math.isinf(self.p) else np.power(totals, 1.0 / self.p)


@dataclasses.dataclass(frozen=True)
class LogLoss:
    """Minus the log-likelihood of the label-set with labels taken as independent.

    Parameters
    ----------
    clip : float
        Probabilities are clipped to [clip, 1 - clip], 0 < clip < 0.5.

    Examples
    --------
    >>> absent, present = LogLoss().costs(np.array([[0.5, 1.0]]))
    >>> absent.round(3), present.round(3)
    (array([[ 0.693, 13.816]]), array([[0.693, 0.   ]]))
    """

    clip: float = 1e-6
    aggregate: ClassVar[Aggregate] = "sum"

    def __post_init__(self) -> None:
        if not is_number(self.clip) or not 0.0 < self.clip < 0.5:
            raise InvalidInputError(
                f"The 'clip' parameter of LogLoss must be a number in (0, 0.5). Got {self.clip!r} instead."
            )

    def costs(self, probabilities: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (-log(1 - o), -log(o)), o clipped."""
        clipped = np.clip(probabilities, self.clip, 1.0 - self.clip)
        return -np.log1p(-clipped), -np.log(clipped)

    def score(self, totals: FloatArray) -> FloatArray:
        """Return the totals: minus the log-likelihood."""
        return totals


_PROBE = np.linspace(0.0, 1.0, 17)[None, :]
_KINDS: dict[str, type[Any]] = {"lp-norm": LpNorm, "log-loss": LogLoss}

MEASURES: Mapping[str, SeparableMeasure] = {
    "L2": LpNorm(2),
    "L4": LpNorm(4),
    "L8": LpNorm(8),
    "LogLoss": LogLoss(),
}
"""Measures by the names that commands, tables and reports have for them."""


def measure_named(name: str) -> SeparableMeasure:
    """Return the measure of a name: LogLoss, or L and a number from 1 on, or Linf.

    Examples
    --------
    >>> measure_named("L2"), measure_named("linf")
    (LpNorm(p=2), LpNorm(p=inf))
    """
    for known, measure in MEASURES.items():
        if name.lower() == known.lower():
            return measure
    try:
        if name[:1] in {"L", "l"}:
            return LpNorm(float(name[1:]))
    except ValueError:
        pass
    raise InvalidInputError(
        f"A measure must be one of {', '.join(MEASURES)}, or L and a number >= 1. Got {name!r} instead."
    )


def measure_name(measure: Measure) -> str:
    """Return the name of a measure for people.

    Examples
    --------
    >>> measure_name(LpNorm(4)), measure_name(LogLoss()), measure_name(LogLoss(clip=0.01))
    ('L4', 'LogLoss', 'LogLoss(clip=0.01)')
    """
    if type(measure) is LpNorm:
        return f"L{measure.p:g}"
    if hasattr(measure, "to_spec"):
        return (
            type(measure).__name__ if not hasattr(measure, "measure") else f"Penalised({measure_name(measure.measure)})"
        )
    return "LogLoss" if measure == LogLoss() else repr(measure) if type(measure) is LogLoss else type(measure).__name__


def check_measure(measure: Any, *, who: str) -> None:
    """Raise unless `measure` has what a measure must have, and is fitted where it must be."""
    if isinstance(measure, InteractionMeasure) and not isinstance(measure, type):
        getattr(measure, "n_labels", None)  # raises where it is not fitted
        return
    if isinstance(measure, type) or not isinstance(measure, SeparableMeasure):
        raise InvalidInputError(
            f"The 'measure' parameter of {who} must be a measure such as LpNorm(2) or LogLoss(): an object with "
            f"'aggregate', 'costs' and 'score'. Got {measure!r} instead."
        )
    if measure.aggregate not in ("sum", "max"):
        raise InvalidInputError(
            f"The 'aggregate' of {measure!r} must be 'sum' or 'max'. Got {measure.aggregate!r} instead."
        )


def costs_of(measure: SeparableMeasure, probabilities: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return a measure's costs, cast and checked: a measure may be a user's own."""
    absent, present = measure.costs(probabilities)
    if type(measure) in _KINDS.values():
        return absent, present
    checked = []
    for name, costs in (("absent", absent), ("present", present)):
        array = np.ascontiguousarray(costs, dtype=np.float64)
        if array.shape != probabilities.shape or not np.all((array >= 0.0) & (array < np.inf)):
            raise InvalidInputError(
                f"The {name} costs of {measure!r} must be finite numbers >= 0 of shape {probabilities.shape}. Got "
                f"shape {array.shape} with values from {np.min(array)} to {np.max(array)} instead."
            )
        checked.append(array)
    return checked[0], checked[1]


def totals_by_costs(measure: SeparableMeasure, probabilities: FloatArray, labels: BoolArray) -> FloatArray:
    """Return the total of one label-set a text, (n,): correctly rounded sums, or maxima, of its costs."""
    absent, present = costs_of(measure, probabilities)
    if measure.aggregate == "max":
        largest: FloatArray = np.where(labels, present, absent).max(axis=1)
        return largest
    from surelabel._kernels import exact_sum  # noqa: PLC0415 (numba is loaded on first use)

    totals = np.empty(len(probabilities))
    exact_sum.totals_of_rows(absent, present, labels, totals)
    return totals


def probe_costs(measure: SeparableMeasure) -> FloatArray:
    """Return a measure's costs at a few probabilities, by which files and merges tell measures apart."""
    return np.vstack(costs_of(measure, _PROBE.copy()))


def same_measure(first: Measure, second: Measure) -> bool:
    """Tell whether two measures are the same: ours by parameters and what they learnt, others by name and costs."""
    if first is second:
        return True
    if type(first) is not type(second) or measure_to_spec(first) != measure_to_spec(second):
        return False
    if isinstance(first, SeparableMeasure) and isinstance(second, SeparableMeasure):
        return type(first) in _KINDS.values() or np.array_equal(probe_costs(first), probe_costs(second))
    learnt: list[dict[str, Any]] = [getattr(measure, "arrays", dict)() for measure in (first, second)]
    one, other = learnt
    return bool(one) and one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def measure_to_spec(measure: Measure) -> dict[str, Any]:
    """Describe a measure in plain values, arrays apart; one that is not ours by its name only."""
    if hasattr(measure, "to_spec"):
        spec: dict[str, Any] = measure.to_spec()
        return spec
    for kind, known in _KINDS.items():
        if type(measure) is known:
            return {"kind": kind, **{key: str(value) for key, value in dataclasses.asdict(measure).items()}}  # type: ignore[call-overload]
    return {"kind": "own", "name": type(measure).__qualname__}


def measure_from_spec(spec: dict[str, Any]) -> SeparableMeasure | None:
    """Make a separable measure from its description; None for a user's own, which only the user can bring."""
    fields = dict(spec)
    kind = fields.pop("kind", None)
    if kind == "own":
        return None
    if kind not in _KINDS:
        raise InvalidInputError(f"The measure {kind!r} is not known: expected one of {sorted(_KINDS)}.")
    known = {field.name for field in dataclasses.fields(_KINDS[kind])}
    if set(fields) != known:
        raise InvalidInputError(f"The measure {kind!r} takes {sorted(known)}. Got {sorted(fields)} instead.")
    made: SeparableMeasure = _KINDS[kind](**{key: float(value) for key, value in fields.items()})
    return made
