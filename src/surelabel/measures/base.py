"""Nonconformity measures: how strange a label-set is, given a text's probabilities (paper section 5.3).

A *separable* measure gives each label a cost for being absent and one for being present; the costs of a label-set are
added up (or their maximum is taken) to a *total*, and its score is an increasing function of that total. Totals
rank as scores do, so searches and p-values work on totals.
"""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np

from surelabel._core.validation import BoolArray, FloatArray, invalid
from surelabel._kernels import exact_sum
from surelabel.exceptions import InvalidInputError

Aggregate: TypeAlias = Literal["sum", "max"]
_Class = TypeVar("_Class")


@runtime_checkable
class SeparableMeasure(Protocol):
    """What a separable measure must have; it must not change once it is made.

    Examples
    --------
    A measure of your own, for which a missing label is twice as strange as an extra one:

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


PROBE = np.linspace(0.0, 1.0, 17)[None, :]
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


@dataclasses.dataclass(frozen=True, eq=False)
class Frozen:
    """What dataclasses of arrays share: the arrays do not change, and values are compared, not identities."""

    def _freeze(self, **arrays: Any) -> None:
        """Set fields of a frozen dataclass to arrays that cannot be written to."""
        for name, array in arrays.items():
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def _learnt(self, name: str, texts: str) -> Any:
        """Return a field that `fit` sets; raise if it has not."""
        value = getattr(self, name)
        if value is None:
            raise InvalidInputError(
                f"This {type(self).__name__} measure is not fitted yet. Call 'fit' with {texts}, and use what it "
                "returns."
            )
        return value

    def _values(self) -> dict[str, Any]:
        """Return fields by name, without what was computed from them."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._freeze(**{name: value for name, value in self._values().items() if isinstance(value, np.ndarray)})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Frozen) or type(self) is not type(other):
            return NotImplemented
        pairs = zip(self._values().values(), other._values().values(), strict=True)
        return all(np.array_equal(a, b) if isinstance(a, np.ndarray) else np.all(a == b) for a, b in pairs)

    def __hash__(self) -> int:
        values = self._values().values()
        return hash(tuple(value.tobytes() if isinstance(value, np.ndarray) else value for value in values))


def check_measure(measure: Any, *, who: str) -> None:
    """Raise unless `measure` has what a measure must have, and is fitted if it must be."""
    if isinstance(measure, InteractionMeasure) and not isinstance(measure, type):
        getattr(measure, "n_labels", None)  # raises if it is not fitted
        return
    if isinstance(measure, type) or not isinstance(measure, SeparableMeasure):
        expected = "a measure such as LpNorm(2) or LogLoss(): an object with 'aggregate', 'costs' and 'score'"
        raise invalid("measure", who, expected, repr(measure))
    if measure.aggregate not in ("sum", "max"):
        raise InvalidInputError(
            f"The 'aggregate' of {measure!r} must be 'sum' or 'max'. Got {measure.aggregate!r} instead."
        )


def costs_of(measure: SeparableMeasure, probabilities: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return a measure's costs, cast and checked, since users can write measures."""
    costs = measure.costs(probabilities)
    if type(measure) in _TRUSTED:
        return costs
    absent, present = (np.ascontiguousarray(given, dtype=np.float64) for given in costs)
    for name, array in (("absent", absent), ("present", present)):
        if array.shape != probabilities.shape or not np.all((array >= 0.0) & (array < np.inf)):
            raise InvalidInputError(
                f"The {name} costs of {measure!r} must be finite numbers >= 0 of shape {probabilities.shape}. Got "
                f"shape {array.shape} with values from {np.min(array)} to {np.max(array)} instead."
            )
    return absent, present


def totals_by_costs(measure: SeparableMeasure, probabilities: FloatArray, labels: BoolArray) -> FloatArray:
    """Return the total of one label-set per text, (n,): correctly rounded sums, or maxima, of its costs."""
    absent, present = costs_of(measure, probabilities)
    if measure.aggregate == "max":
        largest: FloatArray = np.where(labels, present, absent).max(axis=1)
        return largest
    totals = np.empty(len(probabilities))
    exact_sum.totals_of_rows(absent, present, labels, totals)
    return totals


def largest_within(thresholds: FloatArray, shift: float) -> FloatArray:
    """Return the largest float x >= 0 with x + shift <= threshold, for each threshold; -1 if there is none."""
    # Found by halving between floats.
    finite = np.isfinite(thresholds) & (thresholds >= shift)
    own = np.where(finite, thresholds, shift)
    # No further from the difference than a few units in the last place of the threshold.
    room, around = own - shift, 4.0 * np.spacing(own)
    low = np.maximum(room - around, 0.0).view(np.int64)
    high = np.minimum(room + around, own).view(np.int64)
    while np.any(low < high):
        middle = low + (high - low + 1) // 2
        within = middle.view(np.float64) + shift <= thresholds
        low, high = np.where(within, middle, low), np.where(within, high, middle - 1)
    return np.asarray(np.where(finite, low.view(np.float64), np.where(np.isposinf(thresholds), np.inf, -1.0)))


def probe_costs(measure: SeparableMeasure) -> FloatArray:
    """Return a measure's costs at a few probabilities, by which files and merges tell measures apart."""
    return np.vstack(costs_of(measure, PROBE.copy()))


def same_measure(first: Measure, second: Measure) -> bool:
    """Tell whether two measures are the same: ours by parameters and what they learnt, others by name and costs."""
    if first is second:
        return True
    if type(first) is not type(second) or measure_to_spec(first) != measure_to_spec(second):
        return False
    if isinstance(first, SeparableMeasure) and isinstance(second, SeparableMeasure):
        return type(first) in _KINDS.values() or np.array_equal(probe_costs(first), probe_costs(second))
    one: dict[str, Any] = getattr(first, "arrays", dict)()
    other: dict[str, Any] = getattr(second, "arrays", dict)()
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
    """Make a separable measure from its description; None for one that a user wrote, which only the user can supply."""
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
