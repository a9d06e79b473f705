"""Figures of evaluated predictors: plain values in, a matplotlib figure out, readable in grey.

Figures have no window and no global state. `to_svg` and `to_png` write them; SVG takes the text colour of its page.
Importing this package does not import matplotlib (extra `surelabel[plots]`).
"""

from surelabel.plots._canvas import to_png, to_svg
from surelabel.plots.efficiency import search_load, size_curve, size_histogram
from surelabel.plots.quality import confidence_credibility, reliability
from surelabel.plots.validity import error_curve, p_value_histogram, watch_path

__all__ = [
    "confidence_credibility",
    "error_curve",
    "p_value_histogram",
    "reliability",
    "search_load",
    "size_curve",
    "size_histogram",
    "to_png",
    "to_svg",
    "watch_path",
]
