"""Figures without global state: one style, SVG that takes the text colour of its page.

matplotlib's settings are global. Everything that reads them, drawing and writing, runs within `drawing`, which sets
all of them and holds a lock. Figures therefore do not depend on a user's settings and can be made in threads.
"""

from __future__ import annotations

import contextlib
import functools
import html
import io
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from surelabel._core.extras import require
from surelabel._core.formatting import count, plain
from surelabel._core.validation import FloatArray
from surelabel.exceptions import InvalidInputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Ink of text and axes: black to the eye, but distinct from any other colour when SVG is written.
INK = "#010101"
# (colour, line style, marker): distinct in grey by the last two; colours are legible on white and on near-black.
SERIES: tuple[tuple[str, Any, str], ...] = (
    ("#2f7fc1", "-", "o"),
    ("#d1662c", (0, (5, 1.5)), "s"),
    ("#2a9470", (0, (1, 1.2)), "^"),
    ("#9a63b8", (0, (5, 1.5, 1, 1.5)), "D"),
    ("#8a8a8a", (0, (3, 1, 1, 1, 1, 1)), "v"),
    ("#b08a1e", (0, (8, 2)), "P"),
)
_COLOURED = ("axes.edgecolor", "axes.labelcolor", "text.color", "xtick.color", "ytick.color")
_STYLE: dict[str, Any] = {
    **dict.fromkeys(_COLOURED, INK),
    "axes.facecolor": "none",
    "axes.labelsize": 9.5,
    "axes.linewidth": 0.7,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9.5,
    "figure.facecolor": "none",
    "font.family": ["DejaVu Sans"],
    "font.size": 9.0,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "legend.handlelength": 2.8,
    "lines.linewidth": 1.5,
    "lines.markersize": 4.0,
    "svg.fonttype": "none",
    "svg.hashsalt": "surelabel",
    "text.parse_math": False,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
}
_FONTS = "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', Arial, sans-serif"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_LOCK = threading.RLock()

P = ParamSpec("P")
T = TypeVar("T")
V = TypeVar("V")


def matplotlib(module: str) -> Any:
    """Import a module of matplotlib; name the missing extra otherwise."""
    return require(f"matplotlib.{module}", "plots", "A figure")


@contextlib.contextmanager
def drawing() -> Iterator[None]:
    """Hold the lock, with matplotlib's defaults and the style of the project; may be nested."""
    style = matplotlib("style")
    with _LOCK, style.context(["default", _STYLE]), warnings.catch_warnings():
        # Text stays text in SVG: viewers have glyphs that the font of the layout lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support", category=UserWarning)
        yield


def drawn(function: Callable[P, T]) -> Callable[P, T]:
    """Run a function that makes a figure in the style of the project."""

    @functools.wraps(function)
    def within(*args: P.args, **kwargs: P.kwargs) -> T:
        with drawing():
            return function(*args, **kwargs)

    return within


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure, in inches, that belongs to no window or backend."""
    figure: Figure = matplotlib("figure").Figure(figsize=(width, height), layout="constrained")
    return figure


def new_axes(width: float = 5.2, height: float = 3.3) -> tuple[Figure, Axes]:
    """Return a figure with one pair of axes."""
    figure = new_figure(width, height)
    return figure, figure.add_subplot()


def series(curves: Mapping[str, V], who: str) -> Iterator[tuple[str, V, dict[str, Any]]]:
    """Return name, value and style of curves."""
    if not 1 <= len(curves) <= len(SERIES):
        raise InvalidInputError(f"{who} draws 1 to {len(SERIES)} curves. Got {len(curves)} instead.")
    styles = (dict(zip(("color", "linestyle", "marker"), style, strict=True)) for style in SERIES)
    return ((plain(name), curve, style) for (name, curve), style in zip(curves.items(), styles, strict=False))


def as_vector(values: Any, parameter: str, who: str, n: int | None = None) -> FloatArray:
    """Return values as (n,) finite numbers, at least one."""
    vector = np.asarray(values, dtype=np.float64)
    if vector.ndim != 1 or len(vector) != (n or len(vector) or 1) or not np.isfinite(vector).all():
        expected = f"a ({n or 'n'},) array of finite numbers, n >= 1"
        raise InvalidInputError(f"The '{parameter}' parameter of {who} must be {expected}. Got shape {vector.shape}.")
    return vector


def power_text(exponent: int) -> str:
    """Return a power of ten, such as 10⁻²; 1 for the exponent 0."""
    return "10" + str(exponent).translate(_SUPERSCRIPTS) if exponent else "1"


def count_text(value: float) -> str:
    """Return a short count for a tick."""
    if abs(value) < 1e5:
        return f"{value:,.10g}"
    exponent = len(str(round(value))) - 1
    if round(value) == 10**exponent:
        return power_text(exponent)
    return re.sub(r"10\^(-?\d+)", lambda match: power_text(int(match[1])), count(value)).replace(".0 ×", " ×")


def format_counts(axis: Any) -> None:
    """Label the ticks of a logarithmic axis with short counts, at most eight of them."""
    ticker = matplotlib("ticker")
    axis.set_major_locator(ticker.LogLocator(numticks=8))
    axis.set_minor_locator(ticker.NullLocator())
    axis.set_major_formatter(lambda value, _: count_text(value))


def format_shares(axis: Any) -> None:
    """Label the ticks of an axis as percentages."""
    axis.set_major_formatter(lambda value, _: f"{100 * value:.4g} %")


def add_legend(axes: Axes, **kwargs: Any) -> None:
    """Add a legend if there is more than one entry."""
    handles, names = axes.get_legend_handles_labels()
    if len(handles) > 1:
        axes.legend(handles, names, **kwargs)


def to_svg(
    figure: Figure, *, name: str = "figure", title: str = "", description: str = "", ink: str = "currentColor"
) -> str:
    """Return a figure as one SVG element: the same bytes for the same figure.

    Nothing is drawn behind the figure, and text and axes have the colour `ink`, by default that of the surrounding
    text: the figure can stand on light and dark pages. `name`, of letters, digits and "-", is the prefix of all ids, so
    that a page can hold several figures; `title` and `description` are for screen readers.

    Examples
    --------
    >>> from surelabel import plots
    >>> svg = plots.to_svg(plots.size_histogram([0, 1, 1, 2]), title="Sizes of prediction sets")
    >>> svg.startswith("<svg"), "Sizes of prediction sets" in svg
    (True, True)
    """
    stream = io.StringIO()
    with drawing():
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(stream, format="svg", dpi=72, metadata=nothing, facecolor="none")
    svg = stream.getvalue()
    svg = re.sub(r'(\sid="|url\(#|href="#)', rf"\g<1>{name}-", svg[svg.index("<svg") :].strip())
    # matplotlib's rule for "*" would hold for the whole page.
    svg = svg.replace("'DejaVu Sans'", _FONTS).replace(INK, ink).replace(">*{", f">#{name} *{{", 1)
    head, rest = svg.split(">", 1)
    attributes = f'<svg id="{name}" fill="{ink}" role="img" aria-labelledby="{name}-title {name}-desc"'
    title, description = (html.escape(plain(words)) for words in (title, description))
    return (
        f"{head.replace('<svg', attributes, 1)}>"
        f'<title id="{name}-title">{title}</title><desc id="{name}-desc">{description}</desc>{rest}\n'
    )
