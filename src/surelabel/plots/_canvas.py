"""Figures without global state: one style, one lock, SVG that takes the colour of the page it stands in.

matplotlib's settings are global. Everything that reads them, drawing and writing, runs within `drawing`, which sets
all of them and holds a lock, so figures do not depend on a user's settings and can be made in threads. Setting them
takes as long as drawing a small figure: whoever makes several enters `drawing` once around all of them.
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

from surelabel._core.extras import import_extra
from surelabel._core.wording import count_words, printable
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
_STYLE: dict[str, Any] = {
    "axes.edgecolor": INK,
    "axes.facecolor": "none",
    "axes.labelcolor": INK,
    "axes.labelsize": 9.5,
    "axes.linewidth": 0.7,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 9.5,
    "axes.unicode_minus": True,
    "figure.facecolor": "none",
    "font.family": ["DejaVu Sans"],
    "font.size": 9.0,
    "legend.borderaxespad": 0.3,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "legend.handlelength": 2.8,
    "lines.linewidth": 1.5,
    "lines.markersize": 4.0,
    "path.simplify": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "surelabel",
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": INK,
    "xtick.labelsize": 8.5,
    "xtick.major.width": 0.7,
    "ytick.color": INK,
    "ytick.labelsize": 8.5,
    "ytick.major.width": 0.7,
}
_FONTS = "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', Arial, sans-serif"
_LOCK = threading.RLock()
# Resolution at which SVG is written: a point is a pixel.
_SVG_DPI = 72
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

P = ParamSpec("P")
T = TypeVar("T")
V = TypeVar("V")


def import_matplotlib(module: str) -> Any:
    """Import a module of matplotlib; if it is absent, say what to install."""
    return import_extra(module, "plots", "A figure")


_is_styled = False  # read and written by whoever holds the lock


@contextlib.contextmanager
def drawing() -> Iterator[None]:
    """Hold the lock, with matplotlib's defaults and the style of the project; within itself it does nothing more."""
    global _is_styled  # noqa: PLW0603
    style = import_matplotlib("matplotlib.style")
    with _LOCK:
        if _is_styled:
            yield
            return
        with style.context(["default", _STYLE]), warnings.catch_warnings():
            # Text stays text in SVG: a viewer has glyphs that the font of the layout has not.
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
    """Return an empty figure, in inches, that no window or backend knows of."""
    figure: Figure = import_matplotlib("matplotlib.figure").Figure(figsize=(width, height), layout="constrained")
    return figure


def new_axes(width: float = 5.2, height: float = 3.3) -> tuple[Figure, Axes]:
    """Return a figure with one pair of axes."""
    figure = new_figure(width, height)
    return figure, figure.add_subplot()


def series(curves: Mapping[str, V], who: str) -> Iterator[tuple[str, V, dict[str, Any]]]:
    """Return name, value and style of curves; raise unless there are some, and not more than can be told apart."""
    if not 1 <= len(curves) <= len(SERIES):
        raise InvalidInputError(f"{who} draws 1 to {len(SERIES)} curves. Got {len(curves)} instead.")
    styles = [dict(zip(("color", "linestyle", "marker"), style, strict=True)) for style in SERIES]
    return ((printable(name), curve, style) for (name, curve), style in zip(curves.items(), styles, strict=False))


def power_text(exponent: int) -> str:
    """Write a power of ten, such as 10⁻²; 1 for the exponent 0."""
    return "10" + str(exponent).translate(_SUPERSCRIPTS) if exponent else "1"


def count_text(value: float) -> str:
    """Write a count shortly, as tick labels need it.

    Examples
    --------
    >>> count_text(0.1), count_text(1000), count_text(10**16), count_text(30_000), count_text(3 * 10**400)
    ('0.1', '1,000', '10¹⁶', '30,000', '3 × 10⁴⁰⁰')
    """
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:,.10g}"
    digits, _, exponent = count_words(value, in_digits=10**5).partition(" × 10^")
    power = power_text(int(exponent))
    return power if digits == "1.0" else f"{digits.removesuffix('.0')} × {power}"


def format_counts(axis: Any) -> None:
    """Label the ticks of an axis with short counts, at most eight of them."""
    ticker = import_matplotlib("matplotlib.ticker")
    axis.set_major_locator(ticker.LogLocator(numticks=8))
    axis.set_minor_locator(ticker.NullLocator())
    axis.set_major_formatter(lambda value, _: count_text(value))


def format_shares(axis: Any) -> None:
    """Label the ticks of an axis as percentages."""
    axis.set_major_formatter(lambda value, _: f"{100 * value:.4g} %")


def add_legend(axes: Axes, **kwargs: Any) -> None:
    """Add a legend if there is more than one thing to name."""
    handles, names = axes.get_legend_handles_labels()
    if len(handles) > 1:
        axes.legend(handles, names, **kwargs)


def to_png(figure: Figure, *, dpi: int = 200) -> bytes:
    """Return a figure as PNG on white.

    Examples
    --------
    >>> from surelabel import plots
    >>> plots.to_png(plots.size_histogram([0, 1, 1, 2]))[1:4]
    b'PNG'
    """
    stream = io.BytesIO()
    with drawing():
        figure.savefig(stream, format="png", dpi=dpi, facecolor="white", metadata={"Software": None})
    return stream.getvalue()


def _as_written(figure: Figure) -> str:
    """Return a figure as matplotlib writes it as SVG.

    Unlike `savefig`, which draws the whole figure a first time to lay it out, this only lays it out.
    """
    stream = io.StringIO()
    nothing = {"Creator": None, "Date": None, "Format": None, "Type": None}
    with drawing():
        canvas = import_matplotlib("matplotlib.backends.backend_svg").FigureCanvasSVG(figure)
        figure.set_dpi(_SVG_DPI)
        layout = figure.get_layout_engine()
        if layout is not None:
            layout.execute(figure)
            figure.set_layout_engine("none")
        canvas.print_svg(stream, metadata=nothing)
        figure.set_layout_engine(layout)
    return stream.getvalue()


def to_svg(
    figure: Figure, *, name: str = "figure", title: str = "", description: str = "", ink: str = "currentColor"
) -> str:
    """Return a figure as one SVG element: the same bytes for the same figure.

    Text stays text. Nothing is drawn behind the figure, and text and axes take the colour of the text around it, so it
    stands on light and dark pages alike.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    name : str
        Letters, digits and "-". Starts every id within, so that several figures can stand in one page.
    title, description : str
        What a screen reader says: the short name and what is to be seen.
    ink : str
        Colour of text and axes; give "black" for a file that is looked at on white.

    Examples
    --------
    >>> from surelabel import plots
    >>> svg = plots.to_svg(plots.size_histogram([0, 1, 1, 2]), title="Sizes of prediction sets")
    >>> svg.startswith("<svg"), "Sizes of prediction sets" in svg
    (True, True)
    """
    svg = _as_written(figure)
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'(\sid="|url\(#|href="#)', rf"\g<1>{name}-", svg)
    svg = svg.replace("'DejaVu Sans'", _FONTS).replace(INK, ink)
    # A rule for "*" would hold for the whole page that the figure stands in; on the root it is inherited.
    svg = re.sub(r"\s*<defs>\s*<style[^>]*>.*?</style>\s*</defs>", "", svg, count=1, flags=re.DOTALL)
    svg = svg.replace("<svg ", '<svg stroke-linejoin="round" ', 1)
    # Text has no colour of its own unless it is set: without this a viewer paints it black.
    svg = re.sub(r"<svg ", f'<svg fill="{ink}" role="img" aria-labelledby="{name}-title {name}-desc" ', svg, count=1)
    spoken = (
        f'<title id="{name}-title">{html.escape(printable(title))}</title>'
        f'<desc id="{name}-desc">{html.escape(printable(description))}</desc>'
    )
    return re.sub(r"(<svg [^>]*>)", lambda match: match.group(1) + spoken, svg, count=1) + "\n"
