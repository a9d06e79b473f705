"""Sizes of prediction sets: numbers of any size, in arrays of int64 wherever they fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from surelabel._core.validation import BoolArray

__all__ = ["Bounds", "SizeArray", "SizeBounds", "as_sizes"]

Bounds: TypeAlias = tuple[int, int]
SizeArray: TypeAlias = npt.NDArray[np.int64] | npt.NDArray[np.object_]
_UNKNOWN = -1


def as_sizes(values: Sequence[int]) -> SizeArray:
    """Return sizes as int64 where they all fit, as Python integers of any size where not."""
    fits = max(values, default=0) <= np.iinfo(np.int64).max
    return np.array(values, dtype=np.int64 if fits else object)


class SizeBounds(Sequence[Bounds]):
    """Bounds of the sizes of some prediction sets, (lower, upper) per text: two arrays, since texts are many.

    Attributes
    ----------
    lower, upper : (n,) int64 or object
        Equal where a size is exact; -1 where it is not known yet.

    Examples
    --------
    >>> bounds = SizeBounds.unknown(3)
    >>> bounds[0], bounds[2] = (4, 4), (7, 10**30)
    >>> list(bounds), bounds.known.tolist()
    ([(4, 4), (-1, -1), (7, 1000000000000000000000000000000)], [True, False, True])
    """

    def __init__(self, lower: SizeArray, upper: SizeArray) -> None:
        self.lower = lower
        self.upper = upper

    @classmethod
    def unknown(cls, n_texts: int) -> Self:
        """Return bounds that are to be filled in."""
        return cls(np.full(n_texts, _UNKNOWN), np.full(n_texts, _UNKNOWN))

    @classmethod
    def of(cls, bounds: Iterable[Bounds]) -> Self:
        """Return given bounds."""
        pairs = list(bounds)
        return cls(as_sizes([lower for lower, _ in pairs]), as_sizes([upper for _, upper in pairs]))

    @classmethod
    def joined(cls, blocks: Sequence[SizeBounds]) -> Self:
        """Return the bounds of blocks of texts as those of all texts."""
        return cls(np.concatenate([block.lower for block in blocks]), np.concatenate([block.upper for block in blocks]))

    @classmethod
    def summed(cls, parts: Sequence[SizeBounds]) -> Self:
        """Return the sums of the bounds of parts that have no member in common."""
        return cls(_sum([part.lower for part in parts]), _sum([part.upper for part in parts]))

    @property
    def known(self) -> BoolArray:
        """Which sizes, (n,), are known, exactly or not."""
        return np.asarray(self.upper != _UNKNOWN, dtype=np.bool_)

    def __len__(self) -> int:
        return len(self.lower)

    @overload
    def __getitem__(self, index: int) -> Bounds: ...
    @overload
    def __getitem__(self, index: slice) -> SizeBounds: ...
    def __getitem__(self, index: int | slice) -> Bounds | SizeBounds:
        if isinstance(index, slice):
            return type(self)(self.lower[index].copy(), self.upper[index].copy())
        return int(self.lower[index]), int(self.upper[index])

    def __setitem__(self, index: int, bounds: Bounds) -> None:
        self.put(slice(index, index + 1), SizeBounds.of([bounds]))

    def put(self, rows: slice | BoolArray, bounds: SizeBounds) -> None:
        """Fill in the bounds of some texts."""
        self.lower = _with(self.lower, rows, bounds.lower)
        self.upper = _with(self.upper, rows, bounds.upper)


def _with(sizes: SizeArray, rows: Any, values: SizeArray) -> SizeArray:
    """Put values into sizes, which become integers of any size where a value is one."""
    if values.dtype == object and sizes.dtype != object:
        sizes = sizes.astype(object)
    sizes[rows] = values
    return sizes


def _sum(sizes: Sequence[SizeArray]) -> SizeArray:
    """Add up sizes, as Python integers if a sum may not fit into 64 bits."""
    largest = sum(int(one.max(initial=0)) for one in sizes)
    if largest > np.iinfo(np.int64).max:
        return as_sizes([sum(row) for row in zip(*(one.tolist() for one in sizes), strict=True)])
    total: SizeArray = sum((one.astype(np.int64) for one in sizes[1:]), sizes[0].astype(np.int64))
    return total
