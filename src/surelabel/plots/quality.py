"""How good the classifier is: confidence and credibility of forced predictions, reliability of probabilities."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from surelabel._core.formatting import plain
from surelabel._core.validation import FloatArray, IntArray
from surelabel.exceptions import InvalidInputError
from surelabel.plots._canvas import INK, SERIES, as_vector, count_text, drawn, format_shares, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Cells of the grid on each axis: a point per text would be an ink blot, and a large file.
_CELLS = 20
_MAX_COLUMNS = 20


@drawn
def confidence_credibility(confidence: Any, credibility: Any, correct: Any = None) -> Figure:
    """Draw the confidence of forced predictions against their credibility, as squares that grow with the texts there.

    All are (n,). With `correct`, whether the forced prediction is the true label-set, right and wrong ones have panels
    of their own.
    """
    who = "confidence_credibility"
    credible = as_vector(credibility, "credibility", who)
    points = np.column_stack([credible, as_vector(confidence, "confidence", who, len(credible))])
    panels = {"": np.ones(len(points), dtype=np.bool_)}
    if correct is not None:
        right = as_vector(correct, "correct", who, len(points)).astype(np.bool_)
        panels = {"best guess right": right, "best guess wrong": ~right}
    figure = new_figure(5.2, 3.1)
    columns = figure.subplots(1, len(panels), sharex=True, sharey=True, squeeze=False)[0]
    least = min(0.9, float(np.floor(points[:, 1].min() * 10) / 10))
    margin, steps = 0.03 * (1 - least), np.array([1.0, 1.0 - least]) / _CELLS
    for axes, (name, mask) in zip(columns, panels.items(), strict=True):
        cells, counts = np.unique(np.round(points[mask] / steps), axis=0, return_counts=True)
        sizes = 1.5 + 55.0 * counts / counts.max(initial=1)
        axes.scatter(*(cells * steps).T, s=sizes, color=SERIES[0][0], marker="s", linewidths=0)
        if name:
            axes.set_title(f"{name} ({int(mask.sum()):,})", loc="left")
        axes.set(xlim=(-0.03, 1.03), ylim=(least - margin, 1 + margin), xlabel="credibility")
    columns[0].set_ylabel("confidence")
    return figure


def _draw_pooled(axes: Axes, below: Axes, probabilities: FloatArray, labels: FloatArray, n_bins: int) -> None:
    """Draw the share of true labels in bins of probability with 95 % intervals, and the number of pairs below."""
    values, true = probabilities.ravel(), labels.ravel()
    bins = np.minimum((values * n_bins).astype(np.int64), n_bins - 1)
    counts, sums, hits = (
        np.bincount(bins, weights=weights, minlength=n_bins).astype(np.float64) for weights in (None, values, true)
    )
    some = counts > 0
    means, seen = sums[some] / counts[some], hits[some] / counts[some]
    # Jeffreys' interval.
    ends = [special.betaincinv(hits[some] + 0.5, (counts - hits)[some] + 0.5, tail) for tail in (0.025, 0.975)]
    colour, _, marker = SERIES[0]
    axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8)
    errors = np.abs(np.array(ends) - seen)
    axes.errorbar(means, seen, yerr=errors, color=colour, marker=marker, linewidth=1.2, elinewidth=0.8, clip_on=False)
    axes.set(xlim=(0, 1), ylim=(0, 1), ylabel="share true")
    axes.set_title("all labels", loc="left")
    axes.tick_params(labelbottom=False)
    places = (np.arange(n_bins) + 0.5) / n_bins
    below.bar(places[some], counts[some], width=0.8 / n_bins, color=INK, alpha=0.45, bottom=0.5)
    below.set(xlim=(0, 1), yscale="log", ylim=(0.5, float(counts.max()) * 3), xlabel="probability", ylabel="pairs")
    below.minorticks_off()
    highest = max(1, int(np.ceil(np.log10(counts.max()))))
    below.set_yticks([1, 10**highest], ["1", f"{10**highest:,}"])
    format_shares(axes.yaxis)
    format_shares(below.xaxis)


def _shorten(name: str) -> str:
    """Cut a long name; letters of East Asian scripts are two columns wide."""
    widths = np.cumsum([2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in name] or [0])
    cut = int(np.searchsorted(widths, _MAX_COLUMNS - 1, side="right"))
    return name if widths[-1] <= _MAX_COLUMNS else f"{name[:cut]}…"


def worst_labels(probabilities: FloatArray, labels: FloatArray, n_worst: int) -> IntArray:
    """Return the labels whose number of texts differs most from the sum of their probabilities, worst first."""
    variance = (probabilities * (1.0 - probabilities)).sum(axis=0)
    surprise = np.abs(labels.sum(axis=0) - probabilities.sum(axis=0)) / np.maximum(np.sqrt(variance), 1e-9)
    worst: IntArray = np.argsort(-surprise, kind="stable")[:n_worst]
    return worst


@drawn
def reliability(
    probabilities: Any, labels: Any, label_names: Sequence[str] | None = None, *, n_bins: int = 10, n_worst: int = 8
) -> Figure:
    """Draw how reliable probabilities are: over all labels, and for the least reliable labels.

    Left, the share of true labels among (text, label) pairs of about one probability, on the diagonal if
    probabilities are calibrated, with a 95 % interval, and the number of pairs below. Right, the labels whose number
    of texts is most surprising, next to the sum of their probabilities.

    `probabilities` and `labels` are (n, d).
    """
    given, known = (np.asarray(values, dtype=np.float64) for values in (probabilities, labels))
    if given.ndim != 2 or given.size == 0 or given.shape != known.shape:
        raise InvalidInputError(
            "The 'probabilities' and 'labels' parameters of reliability must be (n, d) arrays of one shape. "
            f"Got shapes {given.shape} and {known.shape} instead."
        )
    names = [f"label {k}" for k in range(given.shape[1])] if label_names is None else list(label_names)
    figure = new_figure(5.2, 3.4)
    grid = figure.add_gridspec(2, 2, height_ratios=[3, 1], width_ratios=[1.15, 1])
    _draw_pooled(figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[1, 0]), given, known, n_bins)
    axes = figure.add_subplot(grid[:, 1])
    worst = worst_labels(given, known, n_worst)
    expected, seen = given.sum(axis=0)[worst], known.sum(axis=0)[worst]
    places = np.arange(len(worst))[::-1]
    axes.hlines(places, np.minimum(expected, seen), np.maximum(expected, seen), color=INK, linewidth=0.8, alpha=0.5)
    axes.plot(expected, places, "o", markerfacecolor="none", color=SERIES[0][0], label="expected", linestyle="none")
    axes.plot(seen, places, "D", color=SERIES[1][0], label="seen", linestyle="none")
    axes.set_yticks(places, [_shorten(plain(names[k])) for k in worst])
    axes.tick_params(axis="y", length=0)
    axes.set_xscale("symlog", linthresh=10)
    axes.minorticks_off()
    most = max(10.0, float(max(expected.max(), seen.max())) * 1.4)
    ticks = [0, *(10**power for power in range(1, 1 + int(np.log10(most))))]
    axes.set_xticks(ticks, [count_text(tick) for tick in ticks])
    axes.set(xlim=(-0.5, most), ylim=(-0.6, len(worst) - 0.4), xlabel="texts with the label")
    axes.set_title("least reliable labels", loc="left", pad=18)
    axes.legend(
        loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=2, handlelength=1, columnspacing=1, handletextpad=0.4
    )
    return figure
