"""Are new texts like the calibration texts: the capital of an exchangeability watch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from surelabel.exceptions import InvalidInputError
from surelabel.plots._canvas import INK, add_legend, drawn, import_matplotlib, new_axes, power_text, series

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@drawn
def watch_path(paths: Mapping[str, Any], *, alpha: float = 0.01) -> Figure:
    """Draw the capital of watches against texts, on a logarithmic axis, with the line where the alarm is raised.

    Parameters
    ----------
    paths : mapping of name to (n,) array-like
        Powers of ten, as in `WatchState.path`.
    alpha : float
        Bound of the probability of a false alarm; the line is at 1 / alpha.

    Examples
    --------
    >>> from surelabel import plots
    >>> figure = plots.watch_path({"tickets of June": [0.1, 0.4, 1.2, 2.3]}, alpha=0.01)
    >>> figure.axes[0].get_ylabel()
    'capital against exchangeability'
    """
    drawn_paths = series(paths, "watch_path")
    figure, axes = new_axes(5.2, 3.0)
    lowest, highest = 0.0, -float(np.log10(alpha))
    for name, path, style in drawn_paths:
        values = np.asarray(path, dtype=np.float64)
        if values.ndim != 1 or len(values) == 0 or not np.isfinite(values).all():
            raise InvalidInputError(
                "Each of the 'paths' of watch_path must be a (n,) array of finite numbers, n >= 1. "
                f"Got shape {values.shape} for {name!r} instead."
            )
        axes.plot(np.arange(len(values) + 1), [0.0, *values], label=name, **(style | {"marker": ""}))
        lowest, highest = min(lowest, float(values.min())), max(highest, float(values.max()))
    axes.axhline(-float(np.log10(alpha)), color=INK, linewidth=0.8, linestyle=(0, (4, 2)), label="alarm")
    axes.axhline(0.0, color=INK, linewidth=0.4, alpha=0.5)
    axes.set(xlabel="texts, in the order in which they came", ylabel="capital against exchangeability")
    axes.set_xlim(left=0)
    axes.set_ylim(lowest - 0.05 * (highest - lowest), highest + 0.15 * (highest - lowest))
    axes.yaxis.set_major_locator(import_matplotlib("matplotlib.ticker").MaxNLocator(nbins=7, integer=True))
    axes.yaxis.set_major_formatter(lambda value, _: power_text(round(value)))
    add_legend(axes, loc="upper left")
    return figure
