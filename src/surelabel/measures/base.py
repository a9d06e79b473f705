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
import numbers
from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np

from surelabel._core.validation import BoolArray, FloatArray
from surelabel._kernels import exact_sum
from surelabel.exceptions import InvalidInputError

Aggregate: TypeAlias = Literal["sum", "max"]
_Class = TypeVar("_Class")


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
    """What a measure whose totals do not add up by label must have; ours: `Mahalanobis`, `Mixture`, `Penalised`."""

    def totals(self, probabilities: Any, labels: Any) -> FloatArray:
        """Return totals of one label-set per text, (n,) float64, finite and >= 0, for arguments (n, d).

        Both are arrays; a measure with a true `takes_sparse` gets sparse ones too.
        """
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


_PROBE = np.linspace(0.0, 1.0, 17)[None, :]
# Measures of ours that are all in their parameters, by the kind that files name them with.
_KINDS: dict[str, type[Any]] = {}
# Measures whose costs need no check.
_TRUSTED: set[type[Any]] = set()


def trusted(measure: type[_Class]) -> type[_Class]:
    """Mark a measure of ours: its costs need no check."""
    _TRUSTED.add(measure)
    return measure


def register(kind: str) -> Callable[[type[_Class]], type[_Class]]:
    """Register a dataclass of float parameters as a measure that files name by `kind`; its costs are trusted."""

    def add(measure: type[_Class]) -> type[_Class]:
        _KINDS[kind] = measure
        return trusted(measure)

    return add


def check_measure(measure: Any, *, who: str) -> None:
    """Raise unless `measure` has what a measure must have, and is fitted if it must be."""
    if isinstance(measure, InteractionMeasure) and not isinstance(measure, type):
        getattr(measure, "n_labels", None)  # raises if it is not fitted
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
    if type(measure) in _TRUSTED:
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
    """Return the total of one label-set per text, (n,): correctly rounded sums, or maxima, of its costs."""
    absent, present = costs_of(measure, probabilities)
    if measure.aggregate == "max":
        largest: FloatArray = np.where(labels, present, absent).max(axis=1)
        return largest
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
    kind = next((kind for kind, ours in _KINDS.items() if type(measure) is ours), None)
    if kind is not None:
        names = [field.name for field in dataclasses.fields(_KINDS[kind])]
        return {"kind": kind, **{name: str(getattr(measure, name)) for name in names}}
    return {"kind": "own", "name": type(measure).__qualname__}


def measure_from_spec(spec: dict[str, Any]) -> SeparableMeasure | None:
    """Make a separable measure from its description; None for a user's own, which only the user can bring."""
    fields = dict(spec)
    kind = fields.pop("kind", None)
    if kind == "own":
        return None
    if kind not in _KINDS:
        raise InvalidInputError(f"The measure {kind!r} is not known: expected one of {sorted(_KINDS)}.")
    expected = {field.name for field in dataclasses.fields(_KINDS[kind])}
    if set(fields) != expected:
        raise InvalidInputError(f"The measure {kind!r} takes {sorted(expected)}. Got {sorted(fields)} instead.")
    made: SeparableMeasure = _KINDS[kind](**{key: float(value) for key, value in fields.items()})
    return made
