"""Inputs checked and converted, in one place: `as_*` converts, `check_*` raises.

Every message names the parameter and the function, says what was expected and what came, and gives the first offending
row and column. Columns of data frames are matched by name, and rows by index where both sides have one.
"""

from __future__ import annotations

import numbers
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from surelabel.exceptions import InvalidInputError

FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
IntArray: TypeAlias = npt.NDArray[np.int64]
Names: TypeAlias = tuple[str, ...]

# Decimal places of a level: more cannot matter, and exponents of millions would take all memory.
_MOST_DIGITS = 30


def invalid(parameter: str, who: str, expected: str, got: str) -> InvalidInputError:
    """Build an error in the project's one grammar."""
    return InvalidInputError(f"The '{parameter}' parameter of {who} must be {expected}. Got {got} instead.")


def check_count(parameter: str, value: Any, who: str, least: int = 0, most: int | None = None) -> None:
    """Raise unless `value` is a whole number from `least` to `most`."""
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_))
    if not is_whole or value < least or (most is not None and value > most):
        limits = f", {least} or more" if most is None else f" from {least} to {most:,}"
        raise invalid(parameter, who, f"a whole number{limits}", repr(value))


def as_fraction(value: Any, parameter: str, who: str) -> Fraction:
    """Return a number in (0, 1) as the decimal that was typed: 0.07 is 7/100, not the nearest double."""
    if isinstance(value, bool) or not isinstance(value, (numbers.Real, Decimal, str)):
        raise invalid(parameter, who, "a number in (0, 1)", repr(value))
    try:
        exact = (
            value
            if isinstance(value, Fraction)
            else Decimal(int(value) if isinstance(value, numbers.Integral) else str(value))
        )
    except InvalidOperation as error:
        raise invalid(parameter, who, "a number in (0, 1)", repr(value)) from error
    is_finite = isinstance(exact, Fraction) or exact.is_finite()
    if not is_finite or not 0 < exact < 1:
        raise invalid(parameter, who, "in (0, 1)", _shortly(value))
    if isinstance(exact, Decimal):
        is_long = -int(exact.as_tuple().exponent) > _MOST_DIGITS
    else:
        is_long = exact.denominator > 10**_MOST_DIGITS
    if is_long:
        raise invalid(parameter, who, f"in (0, 1), with at most {_MOST_DIGITS} decimal places", _shortly(value))
    return Fraction(exact)


def _shortly(number: Any) -> str:
    try:
        return str(number)[:50]
    except ValueError:  # Python refuses to write thousands of digits
        return "a number with thousands of digits"


def as_significance(significance: Any, confidence_level: Any, who: str) -> Fraction:
    """Return the significance as an exact fraction, from exactly one of the two ways to give it."""
    if (significance is None) == (confidence_level is None):
        got = "neither" if significance is None else "both"
        raise InvalidInputError(f"{who} takes exactly one of 'significance' and 'confidence_level'. Got {got}.")
    if significance is not None:
        return as_fraction(significance, "significance", who)
    return 1 - as_fraction(confidence_level, "confidence_level", who)


def as_names(names: Iterable[Any] | None, n_labels: int, who: str) -> Names | None:
    """Return label names as a tuple of n_labels different strings, or None."""
    if names is None:
        return None
    if isinstance(names, str):
        raise invalid("label_names", who, "a sequence of names", repr(names))
    checked = tuple(str(name) for name in names)
    if len(checked) != n_labels:
        raise invalid("label_names", who, f"{n_labels} names, one per label", f"{len(checked)}")
    if len(set(checked)) != n_labels:
        twice = Counter(checked).most_common(1)[0][0]
        raise invalid("label_names", who, "different from each other", f"{twice!r} twice")
    return checked


def column_names(values: Any) -> Names | None:
    """Return the column names of a data frame; None for arrays, and for frames whose columns are numbered."""
    columns = _columns(values)
    return None if columns is None or _are_numbers(columns) else tuple(map(str, columns))


def _columns(values: Any) -> list[Any] | None:
    """Return the columns of a data frame, None for anything else."""
    columns = getattr(values, "columns", None)
    return None if columns is None or not hasattr(values, "to_numpy") else list(columns)


def _are_numbers(columns: list[Any]) -> bool:
    """Return whether columns are 0, 1, 2, ... in any order: indices of labels without names."""
    are_whole = all(isinstance(column, numbers.Integral) for column in columns)
    return are_whole and sorted(columns) == list(range(len(columns)))


def _in_order(values: Any, names: Names | None, parameter: str, who: str) -> Any:
    """Return a data frame's values with columns in the order of the labels; other values as they are."""
    columns = _columns(values)
    if columns is None:
        return values.to_numpy() if hasattr(values, "to_numpy") else values
    own: list[Any] = [str(column) for column in columns]
    array, wanted = values.to_numpy(), list(names) if names is not None else []
    if _are_numbers(columns) and set(own) != set(wanted):
        if names is None:
            return array[:, np.argsort(np.array(columns))]
        if columns == list(range(len(columns))):
            return array
    if names is None:
        raise invalid(parameter, who, "without column names, since the labels have none", f"columns {own[:5]}")
    problems = {
        "missing": set(wanted) - set(own),
        "unknown": set(own) - set(wanted),
        "there twice": {name for name, count in Counter(own).items() if count > 1},
    }
    for problem, found in problems.items():
        if found:
            raise invalid(parameter, who, "a data frame with one column per label", f"{problem}: {sorted(found)[:5]}")
    place = {name: k for k, name in enumerate(own)}
    return array[:, [place[name] for name in wanted]]


def aligned_rows(values: Any, like: Any, parameter: str, who: str) -> Any:
    """Return a data frame or series with its rows in the order of another one's index; other values as they are."""
    own, wanted = (getattr(side, "index", None) for side in (values, like))
    if not all(hasattr(index, "equals") for index in (own, wanted)) or own.equals(wanted):  # type: ignore[union-attr]
        return values
    if len(own) != len(wanted) or not own.is_unique or set(own) != set(wanted):  # type: ignore[arg-type,union-attr]
        some = sorted(map(repr, set(own).symmetric_difference(set(wanted))))[:5]  # type: ignore[arg-type]
        expected = "rows with the index of the probabilities (or use reset_index on both)"
        raise invalid(parameter, who, expected, f"on one side only: {', '.join(some)}" if some else "rows there twice")
    return values.loc[list(wanted)]  # type: ignore[arg-type]


def _as_matrix(values: Any, parameter: str, who: str, expected: str) -> npt.NDArray[Any]:
    """Return values as a 2-d array of real numbers with at least one row and column."""
    if isinstance(values, np.ma.MaskedArray):
        raise invalid(parameter, who, expected, "a masked array; fill it or leave masked texts out")
    try:
        array = np.asarray(values)
        if array.dtype == object:
            array = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise invalid(parameter, who, expected, f"{type(values).__name__} ({error})") from error
    if array.ndim != 2:
        hint = "; reshape one text to (1, n_labels)" if array.ndim == 1 else ""
        raise invalid(parameter, who, expected, f"an array of shape {array.shape}{hint}")
    if 0 in array.shape:
        raise invalid(parameter, who, "at least one text and one label", f"shape {array.shape}")
    if array.dtype.kind not in "biuf":
        raise invalid(parameter, who, expected, f"values of type {array.dtype}")
    return array


def _first(mask: BoolArray) -> tuple[int, int]:
    """Return the first True of a 2-d mask as (row, column)."""
    row, column = np.unravel_index(int(np.argmax(mask)), mask.shape)
    return int(row), int(column)


def _positive_class(values: Any, who: str) -> Any:
    """Reduce the output of scikit-learn's multi-output classifiers to the probabilities of the positive class."""
    expected = "a list with one (n_texts, 2) array per label, as scikit-learn's multi-output classifiers return"
    shapes = [np.shape(part) for part in values]
    for label, shape in enumerate(shapes):
        if len(shape) != 2 or shape[1] != 2 or shape != shapes[0]:
            raise invalid("probabilities", who, expected, f"an array of shape {shape} for label {label}")
    return np.column_stack([np.asarray(part)[:, 1] for part in values])


def as_probabilities(values: Any, names: Names | None, who: str, n_labels: int | None = None) -> FloatArray:
    """Return probabilities as a C-ordered float64 array (n_texts, n_labels), all within [0, 1].

    Also takes the list of (n, 2) arrays, or their stack, that scikit-learn's multi-output classifiers return.
    """
    expected = "a (n_texts, n_labels) array of numbers in [0, 1]"
    if hasattr(values, "toarray"):
        raise invalid("probabilities", who, f"{expected}, or Shortlists", f"sparse {type(values).__name__}")
    is_list = isinstance(values, (list, tuple)) and len(values) and all(np.ndim(part) == 2 for part in values)
    if is_list or (isinstance(values, np.ndarray) and values.ndim == 3):
        values = _positive_class(values, who)
    array = _as_matrix(_in_order(values, names, "probabilities", who), "probabilities", who, expected)
    array = np.ascontiguousarray(array, dtype=np.float64)
    if n_labels is not None and array.shape[1] != n_labels:
        raise invalid("probabilities", who, f"an array with {n_labels} labels (columns)", f"{array.shape[1]}")
    if not (array.min() >= 0.0 and array.max() <= 1.0):  # False for NaN, too
        row, column = _first(~((array >= 0.0) & (array <= 1.0)))
        raise invalid("probabilities", who, expected, f"{array[row, column]} in row {row}, column {column}")
    return array


def are_collections(values: Any) -> bool:
    """Return whether labels come as one collection of labels per text instead of as 0/1 rows."""
    if isinstance(values, np.ndarray):
        return values.dtype == object and values.ndim == 1
    if not isinstance(values, Sequence) or isinstance(values, (str, bytes)):
        return False
    return any(
        isinstance(row, (str, set, frozenset))
        or (isinstance(row, (list, tuple)) and any(isinstance(item, str) for item in row))
        for row in values
    ) or all(isinstance(row, (list, tuple)) and not row for row in values)


def label_places(
    values: Any, n_texts: int | None, n_labels: int, names: Names | None, who: str, parameter: str = "labels"
) -> tuple[IntArray, IntArray, BoolArray]:
    """Return the rows (m,) and label indices (m,) of label-sets, and which texts have an unknown label, (n_texts,).

    Takes 0/1 arrays, data frames, sparse matrices, and one collection of names (indices if labels have none) per text.
    """
    expected = "a (n_texts, n_labels) array of 0 and 1, or one collection of labels per text"
    if not hasattr(values, "tocoo"):
        values = _in_order(values, names, parameter, who)
    if are_collections(values):
        shape, (rows, columns, outside) = (len(values), n_labels), _of_collections(values, n_labels, names, who)
    else:
        shape, rows, columns = _of_matrix(values, parameter, who, expected)
        outside = np.zeros(shape[0], dtype=np.bool_)
    if shape[1] != n_labels:
        raise invalid(parameter, who, f"an array with {n_labels} labels (columns)", f"{shape[1]}")
    if n_texts is not None and shape[0] != n_texts:
        raise invalid(parameter, who, f"as many rows as there are texts, {n_texts}", f"{shape[0]}")
    return rows, columns, outside


def _of_matrix(values: Any, parameter: str, who: str, expected: str) -> tuple[tuple[int, int], IntArray, IntArray]:
    """Return the shape of a 0/1 matrix, dense or sparse, and the places of its ones."""
    if hasattr(values, "tocoo"):
        matrix = values.tocsr(copy=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        matrix = matrix.tocoo()
        wrong = np.flatnonzero(matrix.data != 1)
        if len(wrong):
            got = f"{matrix.data[wrong[0]]} in row {matrix.row[wrong[0]]}, column {matrix.col[wrong[0]]}"
            raise invalid(parameter, who, expected, got)
        return matrix.shape, matrix.row.astype(np.int64), matrix.col.astype(np.int64)
    array = _as_matrix(values, parameter, who, expected)
    if array.dtype != np.bool_:
        wrong = (array != 0) & (array != 1)
        if wrong.any():
            row, column = _first(wrong)
            raise invalid(parameter, who, expected, f"{array[row, column]} in row {row}, column {column}")
    rows, columns = np.nonzero(array)
    return array.shape, rows, columns


def _of_collections(values: Any, n_labels: int, names: Names | None, who: str) -> tuple[IntArray, IntArray, BoolArray]:
    """Return the places of collections of names, or of indices, and mark those with unknown labels."""
    place = {name: k for k, name in enumerate(range(n_labels) if names is None else names)}
    pairs, outside = [], np.zeros(len(values), dtype=np.bool_)
    for row, labels in enumerate(values):
        if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
            raise invalid("labels", who, "one collection of labels per text", f"{labels!r} in row {row}")
        for label in set(labels):
            column = place.get(label, -1)
            if column >= 0:
                pairs.append((row, column))
            else:
                outside[row] = True
    rows, columns = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2).T
    return rows, columns, outside


def as_labels(
    values: Any, n_texts: int | None, n_labels: int, names: Names | None, who: str, parameter: str = "labels"
) -> tuple[BoolArray, BoolArray]:
    """Return label-sets as 0/1 rows (n_texts, n_labels), and which texts have an unknown label, (n_texts,)."""
    rows, columns, outside = label_places(values, n_texts, n_labels, names, who, parameter)
    dense = np.zeros((len(outside), n_labels), dtype=np.bool_)
    dense[rows, columns] = True
    return dense, outside


def as_groups(groups: Any, n_texts: int, who: str) -> npt.NDArray[Any]:
    """Return the group of each text as an array of strings, (n,); 1 and 1.0 are the same group."""
    if groups is None:
        raise invalid("groups", who, "the group of each text, as there is a taxonomy=ByGroup()", "None")
    values = groups.tolist() if hasattr(groups, "tolist") else list(groups)
    if isinstance(groups, str) or len(values) != n_texts:
        raise invalid("groups", who, f"the group of each of {n_texts} texts", f"{len(values)} groups")
    names = [_group_name(value) for value in values]
    for row, name in enumerate(names):
        if name in ("", "nan", "None"):
            raise invalid("groups", who, "a group for each text", f"{values[row]!r} for text {row}")
    return np.array(names, dtype=object)


def _group_name(value: Any) -> str:
    """Return a group as a string, whole numbers without a fraction."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
