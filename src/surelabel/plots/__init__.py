"""Figures of evaluated predictors: plain values in, a matplotlib figure out, readable in grey.

Figures have no window and no global state, so they can be made in threads. `to_svg` and `to_png` write them; SVG takes
the text colour of the page it stands in. Importing this module does not import matplotlib, which the extra
`surelabel[plots]` brings.

Examples
--------
>>> from surelabel import plots
>>> svg = plots.to_svg(plots.search_load({"Reuters": (90, 15)}), name="load", title="Label-sets against t")
>>> svg.startswith("<svg"), "currentColor" in svg
(True, True)
>>> plots.BAND  # share of experiments that stay within the bands of figures
0.99
"""

from surelabel._core.wording import printable
from surelabel.evaluation.bands import BAND, error_band
from surelabel.plots._canvas import count_text, to_png, to_svg
from surelabel.plots.efficiency import comparison, search_load, size_curve, size_histogram
from surelabel.plots.quality import confidence_credibility, reliability
from surelabel.plots.validity import error_curve, p_value_histogram, watch_path

__all__ = [
    "BAND",
    "comparison",
    "confidence_credibility",
    "count_text",
    "error_band",
    "error_curve",
    "p_value_histogram",
    "printable",
    "reliability",
    "search_load",
    "size_curve",
    "size_histogram",
    "to_png",
    "to_svg",
    "watch_path",
]
