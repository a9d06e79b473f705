"""Does the guarantee hold: error against significance, p-values of true label-sets, and the watch over new texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from surelabel.evaluation.bands import count_band, error_band
from surelabel.exceptions import InvalidInputError
from surelabel.plots._canvas import (
    INK,
    SERIES,
    add_legend,
    as_vector,
    drawn,
    format_shares,
    matplotlib,
    new_axes,
    power_text,
    series,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Curve: TypeAlias = tuple[Sequence[float], Sequence[float]]
"""Significance levels, and a value at each."""


@drawn
def error_curve(
    curves: Mapping[str, Curve],
    *,
    n_texts: int | None = None,
    n_calibration: int | None = None,
    largest: float = 1.0,
) -> Figure:
    """Draw the error rate against the significance, with the diagonal and the band that chance explains.

    `curves` maps names to (significance levels, error rates); the numbers of texts give the band, in which 99 % of
    experiments with exchangeable texts stay at any one level; `largest` is the end of both axes.
    """
    named = series(curves, "error_curve")
    figure, axes = new_axes(5.2, 4.2)
    if n_texts is not None and n_calibration is not None:
        levels = np.minimum(np.concatenate([[largest / 1000], np.linspace(0, largest, 51)[1:]]), 0.999)
        band = [error_band(round(float(level), 12), n_texts, n_calibration) for level in levels]
        axes.fill_between(levels, *np.array(band).T, color=INK, alpha=0.13, linewidth=0, label="by chance")
    axes.plot([0, largest], [0, largest], color=INK, linewidth=0.8, label="error = significance")
    for name, curve, style in named:
        levels, errors = (np.asarray(values, dtype=np.float64) for values in curve)
        shown = levels <= largest * (1 + 1e-9)
        axes.plot(levels[shown], errors[shown], label=name, markevery=max(1, int(shown.sum()) // 10), **style)
    axes.set(xlim=(0, largest), ylim=(0, largest), aspect="equal")
    axes.set(xlabel="significance asked for", ylabel="error rate seen")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(np.linspace(0, largest, 5))
        format_shares(axis)
    add_legend(axes, loc="upper left")
    return figure


@drawn
def p_value_histogram(p_values: Any, *, n_calibration: int | None = None, n_bins: int = 20) -> Figure:
    """Draw the distribution of p-values of true label-sets: even, if texts are exchangeable.

    `p_values` is (n,); without `n_calibration` the band that chance explains is too narrow.
    """
    values = as_vector(p_values, "p_values", "p_value_histogram")
    if values.min() < 0 or values.max() > 1:
        raise InvalidInputError("P-values must be in [0, 1]. Got others.")
    # Bins are open below and closed above, as "p <= significance" is an error.
    bins = np.clip(np.ceil(values * n_bins - 1e-9).astype(np.int64) - 1, 0, n_bins - 1)
    shares = np.bincount(bins, minlength=n_bins) / len(values)
    edges = np.linspace(0, 1, n_bins + 1)
    lower, upper = count_band(1 / n_bins, len(values), n_calibration)
    figure, axes = new_axes(5.2, 3.0)
    axes.bar(edges[:-1], shares, width=1 / n_bins, align="edge", color=SERIES[0][0], alpha=0.4)
    axes.stairs(shares, edges, color=SERIES[0][0], linewidth=1.5, label="texts")
    axes.axhspan(lower, upper, color=INK, alpha=0.13, linewidth=0, label="by chance", zorder=0)
    axes.axhline(1 / n_bins, color=INK, linewidth=0.8, linestyle=(0, (4, 2)), label="even", zorder=1)
    axes.set(xlim=(0, 1), xlabel="p-value of the true label-set", ylabel="share of texts")
    axes.set_ylim(0, max(float(shares.max()), upper) * 1.3)
    format_shares(axes.yaxis)
    add_legend(axes, loc="upper center", ncols=3)
    return figure


@drawn
def watch_path(paths: Mapping[str, Any], *, alpha: float = 0.01) -> Figure:
    """Draw the capital of watches against texts, on a logarithmic axis, with the line of the alarm.

    `paths` maps names to (n,) powers of ten, as in `WatchState.path`; the line is at 1 / alpha.
    """
    named = series(paths, "watch_path")
    figure, axes = new_axes(5.2, 3.0)
    lowest, highest = 0.0, -float(np.log10(alpha))
    axes.axhline(highest, color=INK, linewidth=0.8, linestyle=(0, (4, 2)), label="alarm")
    for name, path, style in named:
        values = as_vector(path, "paths", "watch_path")
        axes.plot(np.arange(len(values) + 1), [0.0, *values], label=name, **(style | {"marker": ""}))
        lowest, highest = min(lowest, float(values.min())), max(highest, float(values.max()))
    axes.set(xlabel="texts in the order of their arrival", ylabel="capital against exchangeability")
    axes.set_xlim(left=0)
    axes.set_ylim(lowest - 0.05 * (highest - lowest), highest + 0.15 * (highest - lowest))
    axes.yaxis.set_major_locator(matplotlib("ticker").MaxNLocator(nbins=7, integer=True))
    axes.yaxis.set_major_formatter(lambda value, _: power_text(round(value)))
    add_legend(axes, loc="upper left")
    return figure
