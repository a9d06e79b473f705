"""Words and numbers for people: what every text, page and picture writes alike."""

from __future__ import annotations

import math
import re
from typing import Any

__all__ = [
    "bounds_words",
    "count_words",
    "digits_words",
    "label_sets_words",
    "number_word",
    "power_words",
    "printable",
    "share_words",
]

# What XML cannot hold, and single surrogates, which no encoding can.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_NUMBERS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def printable(text: Any) -> str:
    """Return a text without characters that XML or UTF-8 cannot hold.

    Examples
    --------
    >>> printable("oil" + chr(0))
    'oil�'
    """
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", str(text))


def number_word(number: int) -> str:
    """Write a small number as a word, a larger one in digits.

    Examples
    --------
    >>> number_word(1), number_word(12)
    ('one', '12')
    """
    return _NUMBERS[number] if 0 <= number < len(_NUMBERS) else f"{number:,}"


def count_words(count: int) -> str:
    """Write a number of things readably, of any size.

    Examples
    --------
    >>> count_words(1234), count_words(10**12)
    ('1,234', 'about 10^12.0')
    """
    return f"{count:,}" if count < 10**9 else f"about 10^{math.log10(count):.1f}"


def digits_words(count: int) -> str:
    """Write a whole number in digits while a person can read them, else as `power_words` does.

    Examples
    --------
    >>> digits_words(1_234_567_890), digits_words(2**20_000)
    ('1234567890', '4.0 × 10^6020')
    """
    return str(count) if count < 10**30 else power_words(count)


def power_words(count: int) -> str:
    """Write a whole number of any size: in digits, or as two digits times a power of ten.

    Examples
    --------
    >>> power_words(12_345), power_words(1_234_567_890_123_456_789)
    ('12,345', '1.2 × 10^18')
    """
    if count < 10**7:
        return f"{count:,}"
    # In whole numbers: a float ends at 10^308.
    exponent = int((count.bit_length() - 1) * math.log10(2))
    if count >= 10 ** (exponent + 1):
        exponent += 1
    digits = (count + 5 * 10 ** (exponent - 2)) // 10 ** (exponent - 1)
    if digits == 100:
        digits, exponent = 10, exponent + 1
    return f"{digits // 10}.{digits % 10} × 10^{exponent}"


def bounds_words(lower: int, upper: int) -> str:
    """Write a number that is known by bounds; one number where they are equal, or look equal.

    Examples
    --------
    >>> bounds_words(3, 3), bounds_words(3, 5)
    ('3', '3 to 5')
    """
    shown = count_words(lower), count_words(upper)
    return shown[0] if shown[0] == shown[1] else f"{shown[0]} to {shown[1]}"


def label_sets_words(lower: int, upper: int) -> str:
    """Write how many label-sets there are, from certified bounds.

    Examples
    --------
    >>> label_sets_words(1, 1), label_sets_words(2, 2)
    ('1 label-set', '2 label-sets')
    """
    return f"{bounds_words(lower, upper)} label-set{'' if upper == 1 else 's'}"


def share_words(lower: float, upper: float) -> str:
    """Write a share that is known by bounds as a percentage; all and nothing are never rounded to.

    Examples
    --------
    >>> share_words(0.617, 0.617), share_words(0.001, 0.001), share_words(0.5, 0.61), share_words(1.0, 1.0)
    ('62 %', 'under 1 %', '50 to 61 %', '100 %')
    """
    low, high = (_percent(share) for share in (lower, upper))
    if low == high:
        return f"{low} %"
    return f"{low.removeprefix('over ')} to {high.removeprefix('under ')} %"


def _percent(share: float) -> str:
    """Write a share in percent without the sign."""
    if 0.0 < share < 0.01:
        return "under 1"
    if 0.99 < share < 1.0:
        return "over 99"
    return f"{100 * share:.0f}"
