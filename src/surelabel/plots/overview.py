"""The promise and what it costs, in one picture: errors asked for and seen, and how many label-sets are left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from surelabel.evaluation.evaluate import Evaluation
from surelabel.exceptions import InvalidInputError
from surelabel.plots._canvas import INK, SERIES, count_text, drawn, format_counts, format_shares, new_figure, printable
from surelabel.plots.validity import check_named

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["overview"]


def _draw_errors(axes: Axes, errors: Mapping[str, Sequence[Sequence[float]]], levels: Sequence[str]) -> None:
    """Draw mean and standard deviation of the error rates seen, beside those asked for."""
    places = np.arange(len(levels))
    for place, level in zip(places, levels, strict=True):
        axes.hlines(float(level), place - 0.42, place + 0.42, color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
    for (name, by_level), shift, (colour, _, marker) in zip(errors.items(), _shifts(errors), SERIES, strict=False):
        means = [float(np.mean(values)) for values in by_level]
        spreads = [float(np.std(values, ddof=1)) if len(values) > 1 else 0.0 for values in by_level]
        axes.errorbar(places + shift, means, yerr=spreads, fmt=marker, color=colour, label=printable(name))
    axes.set_xticks(places, [f"{100 * float(level):.4g} %" for level in levels])
    axes.set(xlabel="errors asked for (dashed)", ylabel="errors seen", ylim=(0, None))
    format_shares(axes.yaxis)


def _draw_sizes(axes: Axes, evaluations: Mapping[str, Evaluation], levels: Sequence[str]) -> None:
    """Draw median, middle half and middle nine tenths of the numbers of label-sets that are left."""
    places = np.arange(len(levels))
    for evaluation, shift, (colour, _, marker) in zip(evaluations.values(), _shifts(evaluations), SERIES, strict=False):
        points = {float(point.significance): point.sizes for point in evaluation.curve}
        sizes = [points[float(level)] for level in levels]
        # A logarithmic axis has no 0: empty sets stand below 1.
        low, lower, upper, high = (
            [max(size.quantiles[share], 0.5) for size in sizes] for share in (0.05, 0.25, 0.75, 0.95)
        )
        axes.vlines(places + shift, low, high, color=colour, linewidth=1.0)
        axes.vlines(places + shift, lower, upper, color=colour, linewidth=4.0, alpha=0.55)
        axes.plot(places + shift, [max(size.median, 0.5) for size in sizes], marker, color=colour)
    possible = max(evaluation.n_candidates for evaluation in evaluations.values())
    axes.set_xticks(places, [f"{100 * float(level):.4g} %" for level in levels])
    axes.set(yscale="log", xlabel="errors asked for", ylabel="label-sets left for a text")
    axes.set_title(f"of {count_text(float(possible))} that could be", fontsize=8.5)
    format_counts(axes.yaxis)


def _shifts(curves: Mapping[str, Any]) -> list[float]:
    """Return where the marks of each curve stand beside a level's place."""
    return [0.18 * (i - (len(curves) - 1) / 2) for i in range(len(curves))]


@drawn
def overview(
    evaluations: Mapping[str, Evaluation], errors: Mapping[str, Sequence[Sequence[float]]], levels: Sequence[str]
) -> Figure:
    """Draw the errors seen beside those asked for, and how many label-sets prediction sets hold.

    Parameters
    ----------
    evaluations : mapping of name to Evaluation
        Their curves must have the levels. Bars are the middle half of texts, lines the middle nine tenths, marks
        the median.
    errors : mapping of the same names to error rates
        For each level, those of one or more divisions into calibration and test texts.
    levels : sequence of str
        Significances.

    Examples
    --------
    >>> from surelabel import ConformalLabelSets
    >>> from surelabel.evaluation.evaluate import evaluate
    >>> predictor = ConformalLabelSets().calibrate([[0.9, 0.2], [0.1, 0.8], [0.6, 0.7]], [[1, 0], [0, 1], [1, 1]])
    >>> texts, known, levels = [[0.9, 0.2], [0.4, 0.7]], [[1, 0], [1, 1]], ["0.3", "0.5"]
    >>> seen = evaluate(predictor, texts, known, levels=levels, demand_at="0.3")
    >>> figure = overview({"norm": seen}, {"norm": [[0.5], [0.5]]}, levels)
    >>> len(figure.axes)
    2
    """
    check_named(evaluations, "overview")
    if list(errors) != list(evaluations) or any(len(by_level) != len(levels) for by_level in errors.values()):
        raise InvalidInputError(
            f"overview needs error rates for {', '.join(evaluations)}, each at {len(levels)} levels. Got "
            f"{ {name: len(by_level) for name, by_level in errors.items()} } instead."
        )
    figure = new_figure(8.2, 3.4)
    left, right = figure.subplots(1, 2)
    _draw_errors(left, errors, levels)
    _draw_sizes(right, evaluations, levels)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=len(evaluations))
    return figure
