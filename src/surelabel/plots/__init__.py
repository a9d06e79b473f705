"""Figures of evaluated predictors: plain values in, a matplotlib figure out, readable in grey.

Figures have no window and no global state. `to_svg` writes them in the text colour of their page.
Importing this package does not import matplotlib (extra `surelabel[plots]`).
"""

from surelabel.plots._canvas import to_svg
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
    "to_svg",
    "watch_path",
]
