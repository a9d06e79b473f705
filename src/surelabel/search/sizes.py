"""Sizes of prediction sets: numbers of any size, in int64 arrays where they fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

# int64, or Python integers in an object array.
Sizes: TypeAlias = Any


def as_sizes(values: Sequence[int]) -> Sizes:
    """Return sizes as int64 if they fit, else as Python integers."""
    return np.array(values, dtype=object if max(values, default=0) >= 2**63 else np.int64)


def add_sizes(parts: Sequence[Sizes]) -> Sizes:
    """Return the sums of sizes, (n,) each."""
    return as_sizes([sum(sizes) for sizes in zip(*(part.tolist() for part in parts), strict=True)])


def replace_sizes(sizes: Sizes, rows: Sequence[int], values: Sequence[int]) -> Sizes:
    """Return sizes with those of some rows replaced."""
    plain = sizes.tolist()
    for row, value in zip(rows, values, strict=True):
        plain[row] = value
    return as_sizes(plain)
