"""A report as one HTML page that needs nothing else."""

from __future__ import annotations

import importlib.resources
import json
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from surelabel._core.extras import require
from surelabel._core.files import atomic_file
from surelabel._core.formatting import bounds, count, plain
from surelabel._version import __version__

if TYPE_CHECKING:
    from surelabel.corpora import Corpus
    from surelabel.evaluation.metrics import SizeStatistics

_POWER = re.compile(r" × 10\^(-?\d+)")
_DASH, _SPACE = "\N{EN DASH}", "\N{NO-BREAK SPACE}"
_MOST_LABELS = 1_000


def _with_powers(text: str) -> Any:
    """Return a number with its powers of ten as markup."""
    markupsafe = require("markupsafe", "plots", "A report")
    safe = _POWER.sub(r"&nbsp;&times;&nbsp;10<sup>\1</sup>", str(markupsafe.escape(text)))
    return markupsafe.Markup(safe)


def _number(value: float | None) -> Any:
    return _DASH if value is None else _with_powers(count(value))


def _mean_size(sizes: SizeStatistics) -> Any:
    """Return a mean number of answers, as a bound unless all were counted."""
    return _with_powers(bounds(sizes.mean_lower, sizes.mean))


def _percent(share: float | None) -> str:
    """Return a percentage to a tenth, smaller ones to one digit."""
    if share is None:
        return _DASH
    value = 100 * float(share)
    return f"{f'{value:.1f}' if value == 0 or value >= 0.05 else f'{value:.1g}'}{_SPACE}%"


def _level(significance: str) -> str:
    return f"{100 * float(significance):.6g}{_SPACE}%"


def _value(value: Any) -> str:
    """Return a setting as text."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_value(inner)}" for name, inner in value.items())
    return plain(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))


def render_report(bundle: Any, corpus: Corpus, evaluation: Any) -> str:
    """Return the report on a bundle as one HTML page; the same input gives the same page.

    Parameters
    ----------
    bundle : Bundle
    corpus : Corpus
        The texts that the evaluation is about. The page has their ids and labels, never their text.
    evaluation : BundleEvaluation
    """
    jinja2, markupsafe = (require(name, "plots", "A report") for name in ("jinja2", "markupsafe"))
    from surelabel.report.content import build_content  # noqa: PLC0415
    from surelabel.report.figures import build_figures  # noqa: PLC0415

    files = importlib.resources.files("surelabel.report")
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(lambda name: files.joinpath(name).read_text(encoding="utf-8")),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=_number, mean_size=_mean_size, percent=_percent, level=_level, value=_value, plain=plain
    )
    content = build_content(bundle, corpus, evaluation)
    figures = build_figures(content)
    for figure in figures.values():
        figure["svg"] = markupsafe.Markup(figure["svg"])  # escaped by plots.to_svg
    page: str = environment.get_template("report.html").render(
        content=content,
        result=content.result,
        figures=figures,
        style=markupsafe.Markup(files.joinpath("report.css").read_text(encoding="utf-8")),
        version=__version__,
        most_labels=_MOST_LABELS,
    )
    return page.strip() + "\n"


def write_report(path: str | os.PathLike[str], bundle: Any, corpus: Corpus, evaluation: Any) -> None:
    """Write the report on a bundle to one HTML file, atomically; see `render_report`."""
    page = render_report(bundle, corpus, evaluation)
    with atomic_file(path) as stream:
        stream.write(page)
