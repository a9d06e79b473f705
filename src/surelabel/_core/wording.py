"""Words and numbers for people, written the same way in every text, page and picture."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

# What XML cannot hold, and single surrogates, which no encoding can.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
# What moves a terminal's cursor, changes its state, or turns the reading direction round; line feeds may stay.
_CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_NUMBERS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]], n_names: int) -> str:
    """Write a table in Markdown; the columns after the first `n_names` are numbers, aligned to the right."""
    rule = "---|" * n_names + "---:|" * (len(header) - n_names)
    first, *others = ("| " + " | ".join(cells) + " |" for cells in (header, *rows))
    return "\n".join([first, f"|{rule}", *others])


def printable(text: Any) -> str:
    """Return a text without characters that XML or UTF-8 cannot hold.

    Examples
    --------
    >>> printable("oil" + chr(0))
    'oil�'
    """
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", str(text))


def terminal_words(text: Any) -> str:
    """Return a text without characters that control a terminal; line feeds stay."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", str(text))


def encodable(text: str) -> str:
    """Replace lone surrogates, which no encoding can hold, by question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def number_word(number: int) -> str:
    """Write a small number as a word, a larger one in digits."""
    return _NUMBERS[number] if 0 <= number < len(_NUMBERS) else f"{number:,}"


def count_words(count: float, in_digits: int = 10**7) -> str:
    """Write a number of any size for people: the one function that writes large numbers."""
    # Whole numbers below `in_digits` are written in full, other numbers with three or four digits, large and tiny ones
    # as two digits times a power of ten.
    if isinstance(count, float) and not math.isfinite(count):
        return "over 10^308" if count > 0 else str(count)
    if abs(count) >= in_digits:
        return ("-" if count < 0 else "") + _power_words(abs(int(count)))
    if count == int(count) or abs(count) >= 100:
        return f"{count:,.0f}"
    if abs(count) < 1e-3:
        digits, _, exponent = f"{count:.1e}".partition("e")
        return f"{digits} × 10^{int(exponent)}"
    return f"{count:.2f}" if abs(count) >= 1 else f"{count:.3f}"


def _power_words(count: int) -> str:
    """Write a whole number as two digits times a power of ten, in whole numbers: a float ends at 10^308."""
    exponent = int((count.bit_length() - 1) * math.log10(2))
    if count >= 10 ** (exponent + 1):
        exponent += 1
    digits = (count + 5 * 10 ** (exponent - 2)) // 10 ** (exponent - 1)
    if digits == 100:
        digits, exponent = 10, exponent + 1
    return f"{digits // 10}.{digits % 10} × 10^{exponent}"


def bounds_words(lower: float, upper: float) -> str:
    """Write a number that is known by its bounds, once if they are equal or look equal."""
    if lower == upper:
        return count_words(lower)
    shown = count_words(lower), count_words(upper)
    return f"about {shown[0]}" if shown[0] == shown[1] else f"{shown[0]} to {shown[1]}"


def at_most_words(lower: float, upper: float) -> str:
    """Write the upper one of two bounds, and say that it is a bound unless both agree to a hundredth."""
    return f"{'' if 100 * upper <= 101 * lower else 'at most '}{count_words(upper)}"


def label_sets_words(lower: int, upper: int) -> str:
    """Write how many label-sets there are, from certified bounds."""
    return f"{bounds_words(lower, upper)} label-set{'' if upper == 1 else 's'}"


def share_words(lower: float, upper: float) -> str:
    """Write a share that is known by bounds as a percentage; never round to all or nothing."""
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
