"""Draw the picture on the page of promises: `python docs/pictures.py` writes docs/images/p-values.svg.

The page's own Python blocks are run, and their values are drawn, so page and picture show the same figures.
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

from surelabel import plots

DOCS = Path(__file__).parent
_PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def values_of(page: str) -> dict[str, Any]:
    """Return the names that a page's Python blocks define."""
    namespace: dict[str, Any] = {"__name__": page}
    with contextlib.redirect_stdout(io.StringIO()):
        for block in _PYTHON.findall((DOCS / page).read_text(encoding="utf-8")):
            exec(compile(block, page, "exec"), namespace)  # noqa: S102  # our own page
    return namespace


def main() -> None:
    """Write the picture."""
    figure = plots.p_value_histogram(values_of("guarantee.md")["true_p_values"], n_calibration=999)
    figure.set_facecolor("white")  # black on white, so that it reads on dark pages too
    title = "p-values of true label-sets"
    description = "Histogram in twenty bins; all shares are near one in twenty, within the band that chance explains."
    svg = plots.to_svg(figure, name="p-values", title=title, description=description, ink="black")
    (DOCS / "images" / "p-values.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
