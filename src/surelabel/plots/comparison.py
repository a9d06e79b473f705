"""Methods side by side: error and size of each, at several significances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from surelabel._core.wording import printable
from surelabel.evaluation.compare import Comparison
from surelabel.exceptions import InvalidInputError
from surelabel.plots._canvas import INK, SERIES, drawn, format_counts, format_shares, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LEAST_SIZE = 0.05


@drawn
def comparison(compared: Comparison) -> Figure:
    """Draw, one method per row, the error rate and the mean number of label-sets at each significance.

    Marks are means over splits, lines through them one standard deviation to either side. Upright lines on the left are
    the significances: a mark to the right of its own line is an error rate over what was asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from surelabel import LogLoss, LpNorm, plots
    >>> from surelabel.probabilities_file import PartProbabilities, Probabilities
    >>> from surelabel.evaluation.compare import compare
    >>> rng = np.random.default_rng(0)
    >>> values = rng.uniform(0.2, 1, (400, 3))
    >>> labels = rng.random((400, 3)) < values
    >>> ids = [str(number) for number in range(400)]
    >>> parts = {
    ...     "calibration": PartProbabilities(values[:200], labels[:200], tuple(ids[:200])),
    ...     "test": PartProbabilities(values[200:], labels[200:], tuple(ids[200:])),
    ... }
    >>> measures = {"L2": LpNorm(2), "LogLoss": LogLoss()}
    >>> probabilities = Probabilities(parts, ("a", "b", "c"), 3, {"run": {"corpus": "own", "classifier": "none"}})
    >>> compared = compare(probabilities, measures, levels=["0.1", "0.2"], n_splits=3)
    >>> figure = plots.comparison(compared)
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['L2', 'LogLoss']
    """
    levels, methods = compared.levels, list(compared.guarantees)
    if not 1 <= len(levels) <= len(SERIES):
        raise InvalidInputError(f"comparison draws 1 to {len(SERIES)} significances. Got {len(levels)} instead.")
    figure = new_figure(8.2, 1.4 + 0.32 * len(methods))
    errors, sizes = figure.subplots(1, 2, sharey=True)
    places = np.arange(len(methods))
    for i, (level, (colour, line, marker)) in enumerate(zip(levels, SERIES, strict=False)):
        rows = [compared.row(method, level) for method in methods]
        shifted = places + 0.18 * (i - (len(levels) - 1) / 2)
        style: dict[str, Any] = {"fmt": marker, "color": colour, "linewidth": 1.0}
        errors.axvline(float(level), color=colour, linestyle=line, linewidth=0.9, alpha=0.8, zorder=0)
        means, spread = np.array([row.error for row in rows]).T
        errors.errorbar(means, shifted, xerr=spread, label=f"{100 * float(level):.4g} %", **style)
        # A logarithmic axis has no 0: sets that are all empty stand at its left end.
        means, spread = np.array([row.mean_size for row in rows]).T
        means = np.maximum(means, _LEAST_SIZE)
        sizes.errorbar(means, shifted, xerr=[np.minimum(spread, means - _LEAST_SIZE * 0.9), spread], **style)
    errors.set_yticks(places, [printable(method) for method in methods])
    errors.invert_yaxis()
    errors.set_xlim(left=0)
    errors.set(xlabel="error rate")
    format_shares(errors.xaxis)
    sizes.set(xlabel="label-sets in a set, mean", xscale="log")
    format_counts(sizes.xaxis)
    for axes in (errors, sizes):
        axes.hlines(places + 0.5, 0, 1, transform=axes.get_yaxis_transform(), color=INK, linewidth=0.3, alpha=0.3)
    handles = errors.get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=len(levels), title="significance")
    return figure
