"""Numbers and text for people, written the same way in every message, page and picture."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any

# Characters that move a terminal's cursor, change its state or turn the reading direction; line feeds stay.
_CONTROLS = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
# Characters that XML cannot hold, and lone surrogates, which no encoding can.
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def plain(text: Any) -> str:
    """Return text for a terminal: control and direction characters become U+FFFD."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", str(text))


def printable(text: Any) -> str:
    """Return text for XML and databases: NUL, other control characters and lone surrogates become U+FFFD."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", str(text))


def encodable(text: str) -> str:
    """Replace lone surrogates, which no encoding can hold, by question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def count(n: float) -> str:
    """Write a number of any size: 1,234 or 0.51 or 5.7 × 10^16."""
    if isinstance(n, float) and not math.isfinite(n):
        return "over 10^308" if n > 0 else str(n)
    if abs(n) >= 10**7:
        return ("-" if n < 0 else "") + _in_powers(abs(int(n)))
    if n == int(n) or abs(n) >= 100:
        return f"{n:,.0f}"
    if abs(n) < 1e-3:
        digits, _, exponent = f"{n:.1e}".partition("e")
        return f"{digits} × 10^{int(exponent)}"
    return f"{n:.2f}" if abs(n) >= 1 else f"{n:.3f}"


def _in_powers(n: int) -> str:
    """Write a large number with two digits; in whole numbers, because a float ends at 10^308."""
    exponent = int((n.bit_length() - 1) * math.log10(2))
    exponent += n >= 10 ** (exponent + 1)
    digits = (n + 5 * 10 ** (exponent - 2)) // 10 ** (exponent - 1)
    if digits == 100:
        digits, exponent = 10, exponent + 1
    return f"{digits // 10}.{digits % 10} × 10^{exponent}"


def bounds(lower: float, upper: float) -> str:
    """Write a number that is known by its bounds; once if they look equal."""
    if lower == upper:
        return count(lower)
    low, high = count(lower), count(upper)
    return f"about {low}" if low == high else f"{low} to {high}"


def percent(share: float, upper: float | None = None) -> str:
    """Write a share, or its bounds, in percent; never round to all or nothing."""
    low, high = (_percentage(x) for x in (share, share if upper is None else upper))
    return f"{low} %" if low == high else f"{low.removeprefix('over ')} to {high.removeprefix('under ')} %"


def _percentage(share: float) -> str:
    """Write a share in percent without the sign."""
    if 0.0 < share < 0.01:
        return "under 1"
    if 0.99 < share < 1.0:
        return "over 99"
    return f"{100 * share:.0f}"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]], n_names: int = 1) -> str:
    """Write a table in Markdown; the columns after the first `n_names` are aligned to the right."""
    rule = "|" + "---|" * n_names + "---:|" * (len(header) - n_names)
    first, *others = ("| " + " | ".join(cells) + " |" for cells in (header, *rows))
    return "\n".join([first, rule, *others])
