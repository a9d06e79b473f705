"""Does the guarantee hold: error against significance, p-values of true label-sets, and the watch over new texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from surelabel.evaluation.bands import BAND, count_band, error_band
from surelabel.evaluation.evaluate import Evaluation
from surelabel.exceptions import InvalidInputError
from surelabel.plots._canvas import (
    INK,
    SERIES,
    add_legend,
    drawn,
    format_shares,
    import_matplotlib,
    new_axes,
    power_text,
    series,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# An evaluation, or (significance levels, values).
Curve: TypeAlias = Evaluation | tuple[Sequence[float], Sequence[float]]


def _errors(curve: Curve) -> tuple[list[float], list[float]]:
    """Return significance levels and error rates."""
    if isinstance(curve, Evaluation):
        rates = {float(point.significance): point.error for point in curve.curve}
        rates |= {float(level): error for level, error in curve.errors.items()}
        return sorted(rates), [rates[level] for level in sorted(rates)]
    return as_curve(curve)


def as_curve(values: tuple[Sequence[float], Sequence[float]]) -> tuple[list[float], list[float]]:
    """Return the two coordinates of a curve as lists of numbers."""
    levels, heights = (np.asarray(numbers, dtype=np.float64).tolist() for numbers in values)
    return levels, heights


def _counts(curves: Mapping[str, Curve], n_texts: int | None, n_calibration: int | None) -> tuple[int | None, ...]:
    """Return the numbers of texts that are given, otherwise those of the evaluations, which must agree."""
    counts = {(curve.n_texts, curve.n_calibration) for curve in curves.values() if isinstance(curve, Evaluation)}
    if n_texts is None and len(counts) == 1:
        return counts.pop()
    return n_texts, n_calibration


@drawn
def error_curve(
    curves: Mapping[str, Curve],
    *,
    n_texts: int | None = None,
    n_calibration: int | None = None,
    largest: float = 1.0,
    inside: float = BAND,
) -> Figure:
    """Draw the error rate against the significance, with the diagonal and the band that chance explains.

    Parameters
    ----------
    curves : mapping of name to Evaluation, or to (significance levels, error rates)
    n_texts, n_calibration : int, optional
        For the band: by default those of the evaluations, if they agree; no band without them.
    largest : float
        End of both axes.
    inside : float
        Share of experiments with exchangeable texts that stay within the band at any one level.

    Examples
    --------
    >>> from surelabel import plots
    >>> figure = plots.error_curve({"L2": ([0.05, 0.1, 0.2], [0.04, 0.11, 0.19])}, n_texts=500, n_calibration=999)
    >>> figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()
    ('significance asked for', 'error rate seen')
    """
    drawn_curves = series(curves, "error_curve")
    figure, axes = new_axes(5.2, 4.2)
    texts, calibration = _counts(curves, n_texts, n_calibration)
    if texts is not None:
        levels = np.concatenate([[largest / 1000], np.linspace(0, largest, 101)[1:]])
        levels = np.minimum(levels, 0.999)
        band = np.array([error_band(round(float(level), 12), texts, calibration, inside=inside) for level in levels])
        axes.fill_between(levels, band[:, 0], band[:, 1], color=INK, alpha=0.13, linewidth=0, label="by chance")
    axes.plot([0, largest], [0, largest], color=INK, linewidth=0.8, label="error = significance")
    for name, curve, style in drawn_curves:
        levels, errors = (np.array(values) for values in _errors(curve))
        shown = levels <= largest * (1 + 1e-9)
        axes.plot(levels[shown], errors[shown], label=name, markevery=max(1, int(shown.sum()) // 10), **style)
    axes.set(xlim=(0, largest), ylim=(0, largest), aspect="equal")
    axes.set(xlabel="significance asked for", ylabel="error rate seen")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(np.linspace(0, largest, 5 if round(100 * largest) % 4 == 0 else 6))
        format_shares(axis)
    add_legend(axes, loc="upper left")
    return figure


@drawn
def p_value_histogram(
    p_values: Any, *, n_calibration: int | None = None, n_bins: int = 20, inside: float = BAND
) -> Figure:
    """Draw how p-values of true label-sets are spread: evenly, if texts are exchangeable.

    Parameters
    ----------
    p_values : (n,) array-like
        Smoothed if scores tie: otherwise there are too many high values by construction.
    n_calibration : int, optional
        For the band that chance explains, which is too narrow without it.
    n_bins : int
    inside : float
        Share of experiments with exchangeable texts that stay within the band, in any one bin.

    Examples
    --------
    >>> import numpy as np
    >>> from surelabel import plots
    >>> figure = plots.p_value_histogram(np.random.default_rng(0).random(500), n_calibration=999)
    >>> figure.axes[0].get_xlabel()
    'p-value of the true label-set'
    """
    values = np.asarray(p_values, dtype=np.float64)
    if values.ndim != 1 or len(values) == 0 or not np.all((values >= 0) & (values <= 1)):
        raise InvalidInputError(
            "The 'p_values' parameter of p_value_histogram must be a (n,) array of numbers in [0, 1], n >= 1. "
            f"Got shape {values.shape} instead."
        )
    # Bins are open below and closed above, as "p <= significance" is an error.
    bins = np.clip(np.ceil(values * n_bins - 1e-9).astype(np.int64) - 1, 0, n_bins - 1)
    shares = np.bincount(bins, minlength=n_bins) / len(values)
    edges = np.linspace(0, 1, n_bins + 1)
    lower, upper = count_band(1 / n_bins, len(values), n_calibration, inside)
    figure, axes = new_axes(5.2, 3.0)
    colour = SERIES[0][0]
    axes.bar(edges[:-1], shares, width=1 / n_bins, align="edge", color=colour, alpha=0.4)
    axes.stairs(shares, edges, color=colour, linewidth=1.5, label="texts")
    axes.axhspan(lower, upper, color=INK, alpha=0.13, linewidth=0, label="by chance", zorder=0)
    axes.axhline(1 / n_bins, color=INK, linewidth=0.8, linestyle=(0, (4, 2)), label="even", zorder=1)
    axes.set(xlim=(0, 1), xlabel="p-value of the true label-set", ylabel="share of texts")
    axes.set_ylim(0, max(float(shares.max()), upper) * 1.3)
    format_shares(axes.yaxis)
    add_legend(axes, loc="upper center", ncols=3)
    return figure


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
