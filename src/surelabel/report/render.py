"""A report's content and figures as one HTML page."""

from __future__ import annotations

import importlib.resources
import os
import re
from typing import TYPE_CHECKING

from surelabel._core.extras import of_extra
from surelabel._core.storage import atomic_file
from surelabel._core.wording import at_most_words, bounds_words, count_words
from surelabel._version import __version__
from surelabel.evaluation.metrics import SizeStatistics
from surelabel.plots import BAND
from surelabel.report.content import WATCH_ALPHA, build_content
from surelabel.report.figures import build_figures
from surelabel.report.inputs import ReportInput, check_input

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_POWER = re.compile(r" × 10\^(-?\d+)")
# Labels in the table of all labels.
_MOST_LABELS = 1_000
_SPACE = "\N{NO-BREAK SPACE}"


def _with_powers(text: str) -> Markup:
    """Return a number in words with its powers of ten as markup."""
    from markupsafe import Markup, escape  # noqa: PLC0415

    safe = _POWER.sub(r"&nbsp;&times;&nbsp;10<sup>\1</sup>", str(escape(text))).replace("<sup>-", "<sup>\N{MINUS SIGN}")
    return Markup(safe)  # noqa: S704 (escaped above)


def number(value: float | None) -> str:
    """Write a number for people, a dash if there is none."""
    return "\N{EN DASH}" if value is None else _with_powers(count_words(value))


def bounds(value: tuple[float, float]) -> str:
    """Write certified bounds, once if they look the same."""
    return _with_powers(bounds_words(*value))


def mean_size(sizes: SizeStatistics) -> str:
    """Write a mean number of label-sets, as a bound unless all sets were counted."""
    return _with_powers(at_most_words(sizes.mean_lower, sizes.mean))


def percent(share: float | None) -> str:
    """Write a share as a percentage, to a tenth; smaller ones to one digit; a dash if there is none."""
    if share is None:
        return "\N{EN DASH}"
    value = 100 * float(share)
    written = f"{value:.1f}" if value == 0 or value >= 0.05 else f"{value:.1g}"
    return f"{written}{_SPACE}%"


def level(significance: str | float) -> str:
    """Write a significance as a percentage, with the digits it has."""
    return f"{100 * float(significance):.6g}{_SPACE}%"


def decimal(value: float) -> str:
    """Write a metric in [0, 1] to three digits."""
    return f"{value:.3f}"


def _environment() -> Environment:
    """Return the template engine: everything that is not markup of the template is escaped."""
    with of_extra("plots", "A report"):
        import jinja2  # noqa: PLC0415
    files = importlib.resources.files("surelabel.report")
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(lambda name: files.joinpath(name).read_text(encoding="utf-8")),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=number, bounds=bounds, mean_size=mean_size, percent=percent, level=level, decimal=decimal
    )
    return environment


def render_report(given: ReportInput) -> str:
    """Return the report as one HTML page; the same input gives the same page."""
    environment = _environment()
    from markupsafe import Markup  # noqa: PLC0415

    checked = check_input(given)
    content = build_content(given, checked)
    figures = {
        name: {"svg": Markup(figure.svg), "caption": figure.caption}  # noqa: S704 (made by plots.to_svg, which escapes)
        for name, figure in build_figures(content, checked).items()
    }
    style = importlib.resources.files("surelabel.report").joinpath("report.css").read_text(encoding="utf-8")
    page = environment.get_template("report.html").render(
        content=content,
        main=content.main,
        evaluation=content.main.evaluation,
        figures=figures,
        style=Markup(style),  # noqa: S704 (a file of the package)
        version=__version__,
        inside=BAND,
        watch_alpha=WATCH_ALPHA,
        most_labels=_MOST_LABELS,
    )
    return page.strip() + "\n"


def write_report(path: str | os.PathLike[str], given: ReportInput) -> None:
    """Write the report to one self-contained HTML file, whole or not at all; one that is there is replaced."""
    page = render_report(given)
    with atomic_file(path) as temporary:
        temporary.write_text(page, encoding="utf-8", newline="\n")
