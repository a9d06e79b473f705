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

from surelabel._core.extras import require
from surelabel._core.formatting import count, plain
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
_is_styled = False  # read and written under the lock

P = ParamSpec("P")
T = TypeVar("T")
V = TypeVar("V")


def matplotlib(module: str) -> Any:
    """Import a module of matplotlib; name the missing extra otherwise."""
    return require(f"matplotlib.{module}", "plots", "A figure")


@contextlib.contextmanager
def drawing() -> Iterator[None]:
    """Hold the lock, with matplotlib's defaults and the style of the project; may be nested."""
    global _is_styled  # noqa: PLW0603
    style = matplotlib("style")
    with _LOCK:
        if _is_styled:
            yield
            return
        with style.context(["default", _STYLE]), warnings.catch_warnings():
            # Text stays text in SVG: viewers have glyphs that the font of the layout lacks.
            warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
            warnings.filterwarnings("ignore", message="Matplotlib currently does not support", category=UserWarning)
            _is_styled = True
            try:
                yield
            finally:
                _is_styled = False


def drawn(function: Callable[P, T]) -> Callable[P, T]:
    """Run a function that makes a figure in the style of the project."""

    @functools.wraps(function)
    def within(*args: P.args, **kwargs: P.kwargs) -> T:
        with drawing():
            return function(*args, **kwargs)

    return within


def new_figure(width: float = 5.2, height: float = 3.3) -> Figure:
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


def power_text(exponent: int) -> str:
    """Return a power of ten, such as 10⁻²; 1 for the exponent 0."""
    return "10" + str(exponent).translate(_SUPERSCRIPTS) if exponent else "1"


def count_text(value: float) -> str:
    """Return a short count for a tick."""
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:,.10g}"
    exponent = len(str(round(value))) - 1 if value >= 1 else -6
    if value >= 1 and round(value) == 10**exponent:
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


def to_png(figure: Figure, *, dpi: int = 200) -> bytes:
    """Return a figure as PNG on white."""
    stream = io.BytesIO()
    with drawing():
        figure.savefig(stream, format="png", dpi=dpi, facecolor="white", metadata={"Software": None})
    return stream.getvalue()


def to_svg(
    figure: Figure, *, name: str = "figure", title: str = "", description: str = "", ink: str = "currentColor"
) -> str:
    """Return a figure as one SVG element: the same bytes for the same figure.

    Text stays text. Nothing is drawn behind the figure, and text and axes take the colour of the surrounding text, so
    the figure can stand on light and dark pages.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    name : str
        Letters, digits and "-": the element's id and the prefix of all ids within, so that a page can hold several.
    title, description : str
        For screen readers: the short name, and what the figure shows.
    ink : str
        Colour of text and axes; "black" for a file on white.

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
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r'(\sid="|url\(#|href="#)', rf"\g<1>{name}-", svg)
    svg = svg.replace("'DejaVu Sans'", _FONTS).replace(INK, ink)
    # matplotlib's rule for "*" would hold for the whole page.
    svg = svg.replace(">*{", f">#{name} *{{", 1)
    attributes = f'<svg id="{name}" fill="{ink}" role="img" aria-labelledby="{name}-title {name}-desc" '
    texts = (
        f'<title id="{name}-title">{html.escape(plain(title))}</title>'
        f'<desc id="{name}-desc">{html.escape(plain(description))}</desc>'
    )
    head, rest = svg.replace("<svg ", attributes, 1).split(">", 1)
    return f"{head}>{texts}{rest}\n"
