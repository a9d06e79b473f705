"""Files and the marked places of pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from surelabel._core.storage import atomic_file
from surelabel.exceptions import InvalidInputError

__all__ = ["filled", "write"]

_BEGINNING = re.compile(r"<!-- (?P<name>[a-z0-9.-]+): made by `make publish` -->\n")
_PLACE = re.compile(rf"({_BEGINNING.pattern}).*?(<!-- /(?P=name) -->)", re.DOTALL)


def write(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def filled(text: str, parts: Mapping[str, str], page: Path) -> str:
    r"""Return a page with its marked places filled.

    Examples
    --------
    >>> page = "<!-- speed: made by `make publish` -->\nold\n<!-- /speed -->"
    >>> print(filled(page, {"speed": "fast"}, Path("README.md")))
    <!-- speed: made by `make publish` -->
    <BLANKLINE>
    fast
    <BLANKLINE>
    <!-- /speed -->
    """

    def fill(place: re.Match[str]) -> str:
        name = place["name"]
        if name not in parts:
            raise InvalidInputError(f"{page} has a place for {name!r}. Places can be for {', '.join(sorted(parts))}.")
        return f"{place[1]}\n{parts[name].strip()}\n\n{place[3]}"

    made, n_places = _PLACE.subn(fill, text)
    if n_places != len(_BEGINNING.findall(text)):
        raise InvalidInputError(f"{page} has a marked place without its end, such as <!-- /results -->.")
    return made
