"""How large prediction sets are, and how many label-sets the paper's search considers."""

from __future__ import annotations

import bisect
import collections
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

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
    series,
)
from surelabel.plots.validity import Curve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Bins of sizes double up to here and are decades above.
_LARGEST_DOUBLING = 127
_MAX_RADIUS = 40
PROHIBITIVE = 56_000_000
"""Label-sets of one text that the paper's machine could not hold any more (section 6.4.1)."""


@drawn
def size_curve(curves: Mapping[str, Curve]) -> Figure:
    """Draw the mean size of prediction sets, the N criterion, against the significance; both axes logarithmic.

    `curves` maps names to (significance levels, mean sizes); levels at which all sets are empty are left out.
    """
    named = series(curves, "size_curve")
    figure, axes = new_axes()
    least = 0.05
    for name, curve, style in named:
        levels, sizes = (np.asarray(values, dtype=np.float64) for values in curve)
        axes.plot(levels[sizes > 0], sizes[sizes > 0], label=name, markevery=0.08, **style)
        least = min(least, float(levels.min(initial=1.0)))
    axes.axhline(1, color=INK, linewidth=0.6, linestyle=(0, (1, 2)))
    axes.set(xlabel="significance", ylabel="mean number of label-sets (N)", xscale="log", yscale="log")
    axes.set_xticks([0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1])
    axes.set_xlim(least, 1)
    format_counts(axes.yaxis)
    axes.minorticks_off()
    format_shares(axes.xaxis)
    add_legend(axes, loc="upper right")
    return figure


def _bins(largest: int) -> list[tuple[int, int]]:
    """Return inclusive bins of sizes of 2 and more: few at any magnitude."""
    factor = 2 if largest <= _LARGEST_DOUBLING else 10
    edges = [2, 4] if factor == 2 else [2, 10]
    while edges[-1] <= largest:
        edges.append(edges[-1] * factor)
    return [(first, end - 1) for first, end in itertools.pairwise(edges)]


def _bin_name(first: int, last: int) -> str:
    return f"{first:,}\N{EN DASH}{last:,}" if first < 1000 else f"{count_text(first)}+"


@drawn
def size_histogram(sizes: Sequence[int] | Any) -> Figure:
    """Draw how many prediction sets are empty, hold one label-set, and hold more, in logarithmic bins.

    `sizes` is (n,), whole numbers of any magnitude.

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
    colours = [SERIES[1][0], SERIES[2][0], *[SERIES[0][0]] * (len(bins) - 2)]
    hatches = ["////", *[""] * (len(bins) - 1)]
    axes.bar(places, shares, width=0.8, color=colours, alpha=0.8, hatch=hatches, edgecolor=INK, lw=0)
    for place, share in zip(places, shares, strict=True):
        if share > 0:
            written = f"{100 * share:.0f} %" if share >= 0.0095 else f"{100 * share:.1g} %"
            axes.annotate(written, (place, share), (0, 2), textcoords="offset points", ha="center", va="bottom", size=8)
    names = ["empty", "one", *(_bin_name(*ends) for ends in bins[2:])]
    turned = len(names) > 8
    axes.set_xticks(places, names, rotation=40 if turned else 0, ha="right" if turned else "center")
    axes.tick_params(axis="x", length=0)
    axes.set(xlabel="label-sets in the prediction set", ylabel="share of texts", ylim=(0, float(shares.max()) * 1.15))
    format_shares(axes.yaxis)
    return figure


@drawn
def search_load(shapes: Mapping[str, tuple[int, int]], *, limit: int | None = PROHIBITIVE) -> Figure:
    """Draw the label-sets in the paper's Hamming ball for one text against its radius t (section 6.4.1).

    `shapes` maps names to (number of labels, max_labels). For each, the ball around one label, and, dotted, all
    candidates: the paper's c^q and c. `limit` is too much for one text; None draws no line.
    """
    from surelabel.search.paper import ball_size  # noqa: PLC0415 (its kernels take a second)

    named = series(shapes, "search_load")
    figure, axes = new_axes()
    end = min(max(most for _, most in shapes.values()) + 2, _MAX_RADIUS)
    for name, (n_labels, most), style in named:
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
