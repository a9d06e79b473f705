"""Levels as text: exact decimals for people, fractions in files."""

from __future__ import annotations

import functools
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

_STORED = re.compile(r"[0-9]{1,40}/[0-9]{1,40}")


@functools.lru_cache(maxsize=256)
def as_decimal(level: Fraction) -> str:
    """Write a level exactly: as a decimal number if it is one, else as a fraction."""
    # Twos and fives in the denominator are fewer than its bits.
    digits = next((k for k in range(level.denominator.bit_length()) if 10**k % level.denominator == 0), None)
    if digits is None:
        return str(level)
    return f"{Decimal(int(level * 10**digits)).scaleb(-digits):f}"


def from_file(text: Any) -> Fraction:
    """Read a level that a file stores as str(Fraction); ValueError for anything else, exponents included."""
    if not isinstance(text, str) or not _STORED.fullmatch(text) or not 0 < Fraction(text) < 1:
        raise ValueError(f"{text!r:.60} is not a level in (0, 1)")
    return Fraction(text)
