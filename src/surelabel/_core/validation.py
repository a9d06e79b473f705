"""Inputs checked and cast: the only place where that is done.

`as_*` converts, `check_*` raises. Every message names the parameter and the function, says what was expected and what
came, and for arrays the first offending row and column.
"""

from __future__ import annotations

import functools
import numbers
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from surelabel import exceptions
from surelabel.exceptions import InvalidInputError

FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
IntArray: TypeAlias = npt.NDArray[np.int64]


def invalid(parameter: str, who: str, expected: str, got: str) -> InvalidInputError:
    """Build an error in the project's one grammar."""
    return InvalidInputError(f"The '{parameter}' parameter of {who} must be {expected}. Got {got} instead.")


def _first(mask: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """Return the first True of a 2-d mask as (row, column)."""
    row, column = np.unravel_index(int(np.argmax(mask)), mask.shape)
    return int(row), int(column)


def _check_plain(values: Any, parameter: str, who: str, expected: str) -> None:
    """Raise for arrays whose mask or imaginary part a cast would drop silently."""
    if isinstance(values, np.ma.MaskedArray):
        raise invalid(parameter, who, expected, "a masked array; fill it or leave masked texts out")
    if getattr(getattr(values, "dtype", None), "kind", "") == "c":
        raise invalid(parameter, who, expected, f"complex numbers ({values.dtype}); give their real part")


def names_of_columns(values: Any) -> tuple[str, ...] | None:
    """Return the column names of a data frame, None for anything else."""
    columns = getattr(values, "columns", None)
    if columns is None or not hasattr(values, "to_numpy"):
        return None
    return tuple(str(column) for column in columns)


def rows_of(values: Any, rows: Any) -> Any:
    """Return some rows of an array, data frame, sparse matrix or list, by their numbers."""
    if hasattr(values, "iloc"):
        return values.iloc[rows]
    return values[rows] if hasattr(values, "shape") else [values[row] for row in rows]


def _positive_class(values: Any, who: str) -> Any:
    """Reduce what scikit-learn's multi-output classifiers return to the probabilities of the positive class."""
    expected = "a list with one (n_texts, 2) array per label, as scikit-learn's multi-output classifiers return"
    columns: list[npt.NDArray[Any]] = []
    for label, column in enumerate(values):
        array = np.asarray(column)
        if array.ndim != 2 or array.shape[1] != 2:
            raise invalid("probabilities", who, expected, f"an array of shape {array.shape} for label {label}")
        if columns and len(array) != len(columns[0]):
            raise invalid("probabilities", who, expected, f"{len(array)} rows for label {label}")
        columns.append(array[:, 1])
    return np.column_stack(columns) if columns else np.empty((0, 0))


def as_probabilities(values: Any, *, who: str, n_labels: int | None = None) -> FloatArray:
    """Return probabilities as a C-ordered float64 array (n_texts, n_labels), all within [0, 1]."""
    # Accepts arrays and nested sequences (n, d), data frames, and the list of (n, 2) arrays, or that list stacked to
    # (d, n, 2), that scikit-learn's multi-output classifiers return.
    expected = "a (n_texts, n_labels) array of numbers in [0, 1]"
    if hasattr(values, "toarray"):
        raise invalid("probabilities", who, f"{expected}, dense", f"sparse {type(values).__name__}; use its toarray()")
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    _check_plain(values, "probabilities", who, expected)
    if isinstance(values, (list, tuple)) and values and all(np.ndim(part) == 2 for part in values):
        values = _positive_class(values, who)
    try:
        array = np.asarray(values)
        _check_plain(array, "probabilities", who, expected)
        if array.ndim == 3:
            array = _positive_class(array, who)
        array = np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise invalid("probabilities", who, expected, f"{type(values).__name__} ({error})") from error
    if array.ndim != 2:
        hint = "; reshape one text to (1, n_labels)" if array.ndim == 1 else ""
        raise invalid("probabilities", who, expected, f"an array of shape {np.shape(values)}{hint}")
    if array.shape[0] == 0 or array.shape[1] == 0:
        raise invalid("probabilities", who, "at least one text and one label", f"shape {array.shape}")
    if n_labels is not None and array.shape[1] != n_labels:
        raise invalid("probabilities", who, f"an array with {n_labels} labels (columns)", f"{array.shape[1]}")
    if not (array.min() >= 0.0 and array.max() <= 1.0):  # False for NaN, too
        row, column = _first(~((array >= 0.0) & (array <= 1.0)))
        raise invalid("probabilities", who, expected, f"{array[row, column]} in row {row}, column {column}")
    return array


def as_label_names(names: Iterable[Any] | None, n_labels: int, *, who: str) -> tuple[str, ...] | None:
    """Return label names as a tuple of n_labels different strings, or None."""
    if names is None:
        return None
    checked = tuple(str(name) for name in names)
    if len(checked) != n_labels:
        raise invalid("label_names", who, f"{n_labels} names, one per label", f"{len(checked)}")
    if len(set(checked)) != n_labels:
        twice = Counter(checked).most_common(1)[0][0]
        raise invalid("label_names", who, "different from each other", f"{twice!r} twice")
    return checked


def is_named(values: Any) -> bool:
    """Tell whether labels come as one collection of names per text instead of a 0/1 row per text."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Sequence):
        return isinstance(values, np.ndarray) and values.dtype == object and values.ndim == 1
    if values and all(isinstance(row, (list, tuple)) and not row for row in values):
        return True
    collections = (list, tuple, set, frozenset)
    return any(
        isinstance(row, (str, set, frozenset))
        or (isinstance(row, collections) and any(isinstance(item, str) for item in row))
        for row in values
    )


def indices_of_names(
    values: Any, index: Mapping[Any, int] | None, n_labels: int, parameter: str, who: str
) -> list[set[int]]:
    """Turn collections of label names, whose columns `index` has, into columns; if it is None, they hold columns."""
    columns: list[set[int]] = []
    for i, row in enumerate(values):
        if isinstance(row, (str, bytes)) or not isinstance(row, Iterable):
            raise invalid(parameter, who, "one collection of label names per text", f"{row!r} in row {i}")
        columns.append(set())
        for item in row:
            if index is not None:
                column = index.get(item, -1)
            else:
                is_number = isinstance(item, (int, float, np.integer, np.floating))
                is_column = is_number and 0 <= item < n_labels and item == int(item)
                column = int(item) if is_column else -1
            if column < 0:
                of = "names of known labels" if index is not None else f"label indices below {n_labels}"
                raise invalid(parameter, who, of, f"{item!r} in row {i}")
            columns[-1].add(column)
    return columns


def _from_names(values: Any, names: tuple[str, ...] | None, n_labels: int, parameter: str, who: str) -> BoolArray:
    """Turn collections of label names (or of indices, if no names are known) into 0/1 rows."""
    index = None if names is None else {name: k for k, name in enumerate(names)}
    array = np.zeros((len(values), n_labels), dtype=np.bool_)
    for row, columns in zip(array, indices_of_names(values, index, n_labels, parameter, who), strict=True):
        row[list(columns)] = True
    return array


def as_labels(
    values: Any,
    *,
    who: str,
    n_labels: int | None = None,
    n_texts: int | None = None,
    label_names: tuple[str, ...] | None = None,
    parameter: str = "labels",
) -> BoolArray:
    """Return labels as a C-ordered bool array (n_texts, n_labels); rows without labels are data."""
    # Accepts 0/1 or bool arrays, nested sequences, data frames, scipy-sparse matrices, and collections of label names.
    expected = "a (n_texts, n_labels) array of 0 and 1"
    if hasattr(values, "toarray"):
        values = values.toarray()
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    _check_plain(values, parameter, who, expected)
    if n_labels is not None and is_named(values):
        array: Any = _from_names(values, label_names, n_labels, parameter, who)
    else:
        try:
            array = np.asarray(values)
        except ValueError as error:
            raise invalid(parameter, who, expected, f"rows of different lengths ({error})") from error
    if array.ndim != 2:
        hint = "; reshape one text to (1, n_labels)" if array.ndim == 1 else ""
        raise invalid(parameter, who, expected, f"an array of shape {array.shape}{hint}")
    if array.dtype != np.bool_:
        if array.dtype.kind not in "biuf":
            raise invalid(parameter, who, expected, f"values of type {array.dtype}")
        outside = (array != 0) & (array != 1)
        if outside.any():
            row, column = _first(outside)
            raise invalid(parameter, who, expected, f"{array[row, column]} in row {row}, column {column}")
    if array.shape[0] == 0 or array.shape[1] == 0:
        raise invalid(parameter, who, "at least one text and one label", f"shape {array.shape}")
    if n_texts is not None and array.shape[0] != n_texts:
        raise invalid(parameter, who, f"as many rows as there are texts, {n_texts}", f"{array.shape[0]}")
    if n_labels is not None and array.shape[1] != n_labels:
        raise invalid(parameter, who, f"an array with {n_labels} labels (columns)", f"{array.shape[1]}")
    return np.ascontiguousarray(array, dtype=np.bool_)


def as_share(value: Any, parameter: str, *, who: str) -> Fraction:
    """Return a number in (0, 1) as the decimal that was typed: 0.07 is 7/100, not the nearest double."""
    if type(value) in (str, float):
        return _read_decimal(value, parameter, who)
    return _exact_decimal(value, parameter, who)


def _exact_decimal(value: Any, parameter: str, who: str) -> Fraction:
    """Read a number in (0, 1)."""
    if isinstance(value, bool) or not isinstance(value, (numbers.Real, Decimal, str)):
        raise invalid(parameter, who, "a number in (0, 1)", repr(value))
    try:
        exact = Fraction(value) if isinstance(value, (Fraction, int)) else Fraction(Decimal(str(value)))
    except (InvalidOperation, ValueError, OverflowError) as error:
        raise invalid(parameter, who, "a number in (0, 1)", repr(value)) from error
    if not 0 < exact < 1:
        raise invalid(parameter, who, "in (0, 1)", f"{value}")
    return exact


# Most of the levels that are asked for were read before.
_read_decimal = functools.lru_cache(maxsize=256, typed=True)(_exact_decimal)


def as_level(significance: Any, confidence_level: Any, *, who: str) -> Fraction:
    """Return the significance as an exact fraction, from exactly one of the two ways to give it."""
    if (significance is None) == (confidence_level is None):
        got = "neither" if significance is None else "both"
        raise InvalidInputError(
            f"Exactly one of 'significance' and 'confidence_level' must be given to {who}. Got {got}."
        )
    if significance is not None:
        return as_share(significance, "significance", who=who)
    return 1 - as_share(confidence_level, "confidence_level", who=who)


def as_levels(significance: Any, confidence_level: Any, n_texts: int, *, who: str) -> tuple[list[Fraction], IntArray]:
    """Return the distinct significances as exact fractions, and which of them each text has, (n,)."""
    # One number is for all texts; an array or list of numbers has one per text.
    given = significance if significance is not None else confidence_level
    if isinstance(significance, np.ndarray) and significance.ndim == 0:
        significance = given = significance.item()
    if isinstance(confidence_level, np.ndarray) and confidence_level.ndim == 0:
        confidence_level = given = confidence_level.item()
    for_all = given is None or isinstance(given, str) or np.ndim(given) == 0
    if for_all or (significance is not None and confidence_level is not None):
        return [as_level(significance, confidence_level, who=who)], np.zeros(n_texts, dtype=np.int64)
    values = given.tolist() if hasattr(given, "tolist") else list(given)
    parameter = "significance" if significance is not None else "confidence_level"
    if np.ndim(given) != 1 or len(values) != n_texts:
        raise invalid(parameter, who, f"one for all or one per text ({n_texts}), in (0, 1)", f"shape {np.shape(given)}")
    exact: dict[Any, Fraction] = {}
    for value in values:
        if value not in exact:
            level = as_share(value, parameter, who=who)
            exact[value] = level if significance is not None else 1 - level
    levels = sorted(set(exact.values()))
    places = {level: place for place, level in enumerate(levels)}
    return levels, np.array([places[exact[value]] for value in values], dtype=np.int64)


def check_limits(min_labels: Any, max_labels: Any, *, who: str, n_labels: int | None = None) -> None:
    """Check the limits on the number of labels of a candidate, with each other and with the labels there are."""
    for parameter, value in (("min_labels", min_labels), ("max_labels", max_labels)):
        if value is None and parameter == "max_labels":
            continue
        if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 0:
            raise invalid(parameter, who, "a whole number of labels, 0 or more", repr(value))
    if max_labels is not None and max_labels < min_labels:
        raise invalid("max_labels", who, f"at least min_labels, {min_labels}", f"{max_labels}")
    if n_labels is not None and min_labels > n_labels:
        raise invalid("min_labels", who, f"at most the number of labels, {n_labels}", f"{min_labels}")


def check_count(parameter: str, value: Any, *, who: str, least: int = 0, most: int | None = None) -> None:
    """Raise unless `value` is a whole number from `least` to `most`."""
    is_whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not is_whole or value < least or (most is not None and value > most):
        limits = f", {least} or more" if most is None else f" from {least} to {most:,}"
        raise invalid(parameter, who, f"a whole number{limits}", repr(value))


def as_texts(probabilities: Any, labels: Any, *, who: str) -> tuple[FloatArray, BoolArray]:
    """Return the probabilities and the labels of the same texts, both (n_texts, n_labels)."""
    checked = as_probabilities(probabilities, who=who)
    return checked, as_labels(labels, who=who, n_labels=checked.shape[1], n_texts=len(checked))


def not_calibrated(what: object, method: str) -> exceptions.NotCalibratedError:
    """Build the error of a method that was called before `calibrate`."""
    return exceptions.NotCalibratedError(
        f"This {type(what).__name__} is not calibrated yet. Call 'calibrate' before '{method}'."
    )


def check_calibrated(what: object, attribute: str, method: str) -> None:
    """Raise if a method was called before `calibrate`, which sets the attribute."""
    if not hasattr(what, attribute):
        raise not_calibrated(what, method)
