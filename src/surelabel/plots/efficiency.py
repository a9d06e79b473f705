"""How large prediction sets are, what finding them takes, and how methods compare."""

from __future__ import annotations

import bisect
import collections
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from surelabel._core.wording import printable
from surelabel.engines.paper import PROHIBITIVE, ball_size
from surelabel.evaluation.compare import Comparison
from surelabel.evaluation.evaluate import Evaluation
from surelabel.exceptions import InvalidInputError
from surelabel.plots._canvas import (
    INK,
    SERIES,
    add_legend,
    count_text,
    drawn,
    format_counts,
    format_shares,
    new_axes,
    new_figure,
    series,
)
from surelabel.plots.validity import Curve, as_curve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Above it, bins of sizes are decades; up to it, doublings.
_LARGEST_DOUBLING = 127
_MAX_RADIUS = 40
# A logarithmic axis has no 0: sets that are all empty stand at its left end.
_LEAST_SIZE = 0.05


def _means(curve: Curve) -> tuple[list[float], list[float]]:
    """Return significance levels and mean sizes."""
    if isinstance(curve, Evaluation):
        return [float(point.significance) for point in curve.curve], [point.sizes.mean for point in curve.curve]
    return as_curve(curve)


@drawn
def size_curve(curves: Mapping[str, Curve]) -> Figure:
    """Draw the mean size of prediction sets, the N criterion, against the significance; both axes logarithmic.

    Parameters
    ----------
    curves : mapping of name to Evaluation, or to (significance levels, mean sizes)
        Levels at which all sets are empty are left out.

    Examples
    --------
    >>> from surelabel import plots
    >>> levels = [0.01, 0.05, 0.1]
    >>> figure = plots.size_curve({"L2": (levels, [5296, 85.2, 1.2]), "LogLoss": (levels, [180, 2.0, 1.25])})
    >>> figure.axes[0].get_ylabel()
    'mean number of label-sets (N)'
    """
    drawn_curves = series(curves, "size_curve")
    figure, axes = new_axes()
    for name, curve, style in drawn_curves:
        levels, sizes = (np.array(values) for values in _means(curve))
        axes.plot(levels[sizes > 0], sizes[sizes > 0], label=name, markevery=0.08, **style)
    axes.axhline(1, color=INK, linewidth=0.6, linestyle=(0, (1, 2)))
    axes.set(xlabel="significance", ylabel="mean number of label-sets (N)", xscale="log", yscale="log")
    axes.set_xticks([0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1])
    least = min(min(_means(curve)[0], default=0.01) for curve in curves.values())
    axes.set_xlim(min(least, 0.05), 1)
    format_counts(axes.yaxis)
    axes.minorticks_off()
    format_shares(axes.xaxis)
    add_legend(axes, loc="upper right")
    return figure


def _bins(largest: int) -> list[tuple[int, int]]:
    """Return inclusive bins of sizes of 2 and more, so that few are needed at any magnitude."""
    factor = 2 if largest <= _LARGEST_DOUBLING else 10
    edges = [2, 4] if factor == 2 else [2, 10]
    while edges[-1] <= largest:
        edges.append(edges[-1] * factor)
    return list(zip(edges[:-1], [edge - 1 for edge in edges[1:]], strict=True))


def _bin_name(first: int, last: int) -> str:
    """Name a bin by its ends; by its first size if they are long."""
    if first < 1000:
        return f"{first:,}\N{EN DASH}{last:,}"
    return f"{count_text(first)}+"


@drawn
def size_histogram(sizes: Sequence[int] | Any) -> Figure:
    """Draw how many prediction sets are empty, hold one label-set, and hold more, in logarithmic bins.

    Parameters
    ----------
    sizes : (n,) array-like of whole numbers of any magnitude

    Examples
    --------
    >>> from surelabel import plots
    >>> figure = plots.size_histogram([0, 1, 1, 1, 2, 7])
    >>> [label.get_text() for label in figure.axes[0].get_xticklabels()][:2]
    ['empty', 'one']
    """
    exact = [int(size) for size in sizes]
    if not exact or min(exact) < 0:
        raise InvalidInputError("The 'sizes' parameter of size_histogram must be numbers of 0 or more, at least one.")
    bins = [(0, 0), (1, 1), *_bins(max(exact))]
    counts = collections.Counter(bisect.bisect_left([last for _, last in bins], size) for size in exact)
    shares = np.array([counts[k] for k in range(len(bins))]) / len(exact)
    figure, axes = new_axes(5.2, 3.0)
    places = np.arange(len(bins))
    for chosen, hatch, colour in (([0], "////", SERIES[1][0]), ([1], "", SERIES[2][0]), (places[2:], "", SERIES[0][0])):
        axes.bar(places[chosen], shares[chosen], width=0.8, color=colour, alpha=0.8, hatch=hatch, edgecolor=INK, lw=0)
    for place, share in zip(places, shares, strict=True):
        if share > 0:
            written = f"{100 * share:.0f} %" if share >= 0.0095 else f"{100 * share:.1g} %"
            axes.annotate(written, (place, share), (0, 2), textcoords="offset points", ha="center", va="bottom", size=8)
    names = ["empty", "one", *(_bin_name(*ends) for ends in bins[2:])]
    turned = len(names) > 8
    axes.set_xticks(places, names, rotation=40 if turned else 0, ha="right" if turned else "center")
    axes.tick_params(axis="x", length=0, **({"pad": 1} if turned else {}))
    axes.set(xlabel="label-sets in the prediction set", ylabel="share of texts", ylim=(0, float(shares.max()) * 1.15))
    format_shares(axes.yaxis)
    return figure


@drawn
def search_load(shapes: Mapping[str, tuple[int, int]], *, limit: int | None = PROHIBITIVE) -> Figure:
    """Draw the label-sets that the paper's Hamming ball considers for one text against its radius t (section 6.4.1).

    Parameters
    ----------
    shapes : mapping of name to (number of labels, max_labels)
        For each, the ball around one label, and, dotted, all candidates: the paper's c^q and c.
    limit : int, optional
        What the paper's machine could hold for one text; None leaves it out.

    Examples
    --------
    >>> from surelabel import plots
    >>> figure = plots.search_load({"Reuters": (90, 15), "Reuters, 20 labels": (20, 7)})
    >>> plots.to_svg(figure, ink="black").startswith("<svg")
    True
    """
    drawn_shapes = series(shapes, "search_load")
    figure, axes = new_axes()
    end = min(max(most for _, most in shapes.values()) + 2, _MAX_RADIUS)
    for name, (n_labels, most), style in drawn_shapes:
        every = sum(math.comb(n_labels, k) for k in range(1, most + 1))
        radii = np.arange(1, min(most + 2, _MAX_RADIUS) + 1)
        sizes = [float(ball_size(n_labels, 1, int(radius), (1, most))) for radius in radii]
        axes.plot(radii, sizes, label=f"{name} (all: {count_text(every)})", **style)
        axes.axhline(float(every), color=style["color"], linewidth=0.8, linestyle=(0, (1, 2)))
    if limit is not None:
        axes.axhline(limit, color=INK, linewidth=0.8, linestyle=(0, (4, 2)), label=f"prohibitive, {count_text(limit)}")
    axes.set(xlabel="radius t", ylabel="label-sets considered", xlim=(0.8, end + 0.2), yscale="log")
    axes.set_xticks(range(1, end + 1, max(1, end // 8)))
    format_counts(axes.yaxis)
    add_legend(axes, loc="lower right")
    return figure


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
