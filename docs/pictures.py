"""Draw the pictures of the site: `python docs/pictures.py` writes docs/images/*.svg, the same bytes each time.

A picture shows what its page computes: the page's Python blocks are run, and their values are drawn. So text, code and
picture cannot tell different stories; `tests/docs/test_pictures.py` holds the files to what is drawn here.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from surelabel import plots
from surelabel.plots._canvas import INK, SERIES, add_legend, drawn, format_shares, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOCS = Path(__file__).parent
IMAGES = DOCS / "images"
_PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
_DASHES = (0, (4, 2))


@functools.cache
def values_of(page: str) -> dict[str, Any]:
    """Return the names that a page's Python blocks define."""
    namespace: dict[str, Any] = {"__name__": page}
    with contextlib.redirect_stdout(io.StringIO()):
        for block in _PYTHON.findall((DOCS / page).read_text(encoding="utf-8")):
            exec(compile(block, page, "exec"), namespace)  # noqa: S102  # our own page
    return namespace


def p_values() -> Figure:
    """Draw p-values of true label-sets."""
    return plots.p_value_histogram(values_of("guarantee.md")["true_p_values"], n_calibration=999)


@drawn
def groups() -> Figure:
    """Draw error rates by channel, with one calibration and with one per channel."""
    values = values_of("guarantee.md")
    names, missed, channel = values["CHANNELS"], values["missed"], values["new_channel"]
    together = [*(missed[channel == number].mean() for number in range(len(names))), missed.mean()]
    shares = [(channel == number).mean() for number in range(len(names))]
    apart = [values["by_channel"][name] for name in names]
    apart.append(float(np.dot(shares, apart)))
    figure = new_figure(5.2, 3.0)
    axes = figure.add_subplot()
    places = np.arange(len(together))
    (first, _, _), (second, _, _) = SERIES[:2]
    for shift, heights, name, style in (
        (-0.19, together, "one calibration for all", {"color": first}),
        (0.19, apart, "one for each channel", {"color": "white", "edgecolor": second, "hatch": "///"}),
    ):
        bars = axes.bar(places + shift, heights, 0.36, label=name, **style)
        axes.bar_label(bars, [f"{height:.1%}" for height in heights], padding=4, fontsize=8)
    axes.axhline(0.05, color=INK, linewidth=0.8, linestyle=_DASHES, label="significance")
    named = [f"{name}\n{share:.0%} of texts" for name, share in zip(names, shares, strict=True)]
    axes.set_xticks(places, [*named, "all"])
    axes.set(ylabel="true label-set missed")
    format_shares(axes.yaxis)
    add_legend(axes, loc="upper left")
    return figure


@drawn
def luck() -> Figure:
    """Draw error rates of many calibrations, one dot each, and the beta distribution that they come from."""
    rates = values_of("guarantee.md")["rates"]
    figure = new_figure(5.2, 3.8)
    width = 0.0025
    rows = figure.subplots(len(rates), 1, sharex=True)
    for axes, (n_texts, seen), (colour, _, _) in zip(rows, rates.items(), SERIES, strict=False):
        bins = np.floor(np.array(seen) / width).astype(int)
        heights = [int((bins[:place] == each).sum()) + 1 for place, each in enumerate(bins)]
        k = (n_texts + 1) * 5 // 100
        grid = np.linspace(0.0005, 0.15, 150)
        density = stats.beta.pdf(grid, k, n_texts + 1 - k) * len(seen) * width
        axes.plot(grid, np.round(density, 4), color=INK, linewidth=1.0)
        axes.scatter((bins + 0.5) * width, heights, s=7, color=colour, linewidth=0)
        axes.axvline(0.05, color=INK, linewidth=0.8, linestyle=_DASHES)
        axes.set_title(f"{n_texts} calibration texts", loc="right", y=0.75)
        axes.set(ylabel="calibrations", ylim=(0, None))
        axes.locator_params(axis="y", nbins=4, integer=True)
    rows[-1].set(xlim=(0, 0.15), xlabel="share of all new texts that this calibration misses")
    format_shares(rows[-1].xaxis)
    return figure


def watch() -> Figure:
    """Draw the capital of the watch, before and after a change of the texts."""
    values = values_of("guarantee.md")
    paths = {name: np.round(state.path, 2) for name, state in values["watched"].items()}
    figure = plots.watch_path(paths, alpha=0.01)
    axes = figure.axes[0]
    axes.axvline(600, color=INK, linewidth=0.8, linestyle=_DASHES)
    place = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
    axes.annotate("the texts change", (600, 0.72), (5, 0), fontsize=9, **place)
    for line in axes.lines[: len(paths)]:
        line.set_data(line.get_xdata()[::4], line.get_ydata()[::4])
    return figure


@drawn
def calibration_size() -> Figure:
    """Draw where the error rate of a calibration lies, against the number of its texts."""
    counts = np.unique(np.round(np.geomspace(20, 10_000, 120) / 20).astype(int) * 20 - 1)
    k = (counts + 1) // 20
    figure = new_figure(5.2, 3.2)
    axes = figure.add_subplot()
    for inside, shade, name in ((0.99, 0.12, "99 of 100 calibrations"), (0.9, 0.22, "9 of 10")):
        low, high = (stats.beta.ppf(tail, k, counts + 1 - k) for tail in ((1 - inside) / 2, (1 + inside) / 2))
        axes.fill_between(
            counts, np.round(low, 4), np.round(high, 4), color=SERIES[0][0], alpha=shade, linewidth=0, label=name
        )
    axes.axhline(0.05, color=INK, linewidth=0.8, linestyle=_DASHES, label="significance")
    for n_texts in (99, 999):
        ends = stats.beta.ppf([0.05, 0.95], (n_texts + 1) // 20, n_texts + 1 - (n_texts + 1) // 20)
        axes.plot([n_texts] * 2, np.round(ends, 4), color=INK, linewidth=1.2, marker="_", markersize=8)
        for end, below in zip(ends, (True, False), strict=True):
            place = {"textcoords": "offset points", "va": "top" if below else "bottom", "fontsize": 8.5}
            axes.annotate(f"{end:.1%}", (n_texts, end), (4, -1 if below else 1), **place)
    axes.set(xscale="log", xlim=(19, 9_999), ylim=(0, 0.2))
    ticks = [19, 99, 199, 499, 999, 4_999, 9_999]
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.minorticks_off()
    axes.set(xlabel="calibration texts", ylabel="true label-sets missed")
    format_shares(axes.yaxis)
    add_legend(axes, loc="upper right")
    return figure


@drawn
def corners() -> Figure:
    """Draw confidence and credibility of texts, and what their corners mean."""
    values = values_of("reading.md")
    forced = values["predictor"].predict(values["draw_texts"](300)[0])
    figure = new_figure(5.2, 3.9)
    axes = figure.add_subplot()
    axes.fill([0, 1, 0], [0, 0, 1], color=INK, alpha=0.1, linewidth=0)
    axes.scatter(forced.confidence, forced.credibility, s=8, color=SERIES[0][0], alpha=0.55, linewidth=0)
    for name, row, (_, _, marker), shift in (
        ("clear", 0, SERIES[1], (-8, -2)),
        ("two ways to see it", 1, SERIES[1], (8, -3)),
        ("strange", 2, SERIES[1], (-8, 3)),
    ):
        place = values["forced"].confidence[row], values["forced"].credibility[row]
        axes.plot(*place, marker=marker, color=SERIES[1][0], markersize=6)
        side = "left" if shift[0] > 0 else "right"
        axes.annotate(f"“{name}”", place, shift, textcoords="offset points", ha=side, fontsize=8.5)
    for place, words, side in (
        ((0.97, 0.83), "one label-set fits:\nfile it", "right"),
        ((0.03, 0.93), "several fit:\na person chooses", "left"),
        ((0.97, 0.13), "none fits:\na person reads", "right"),
        ((0.06, 0.22), "cannot be", "left"),
    ):
        axes.annotate(words, place, ha=side, va="center", fontsize=9.5, fontweight="bold")
    axes.set(xlim=(0, 1.01), ylim=(0, 1.01), xlabel="confidence", ylabel="credibility")
    return figure


@drawn
def cost_curve() -> Figure:
    """Draw the cost per text against the significance, on validation and test texts."""
    values = values_of("routing.md")
    levels = [float(level) for level in values["levels"]]
    tested = [
        values["routed"](values["test_probabilities"], values["test_labels"], level)[0].mean()
        for level in values["levels"]
    ]
    chosen = float(values["chosen"])
    figure = new_figure(5.2, 3.2)
    axes = figure.add_subplot()
    for name, curve, (colour, line, _) in zip(
        ("validation texts", "test texts"), (values["curve"], tested), SERIES, strict=False
    ):
        axes.plot(levels, np.round(curve, 3), color=colour, linestyle=line, label=name)
    nobody = values["WRONG"] * values["is_wrong"].mean()
    axes.axhline(values["READ"], color=INK, linewidth=0.8, linestyle=_DASHES, label="people read everything")
    axes.axhline(nobody, color=INK, linewidth=0.8, linestyle=(0, (1, 2)), label="nobody looks")
    axes.axvline(chosen, color=INK, linewidth=0.6)
    axes.annotate(f"chosen: {chosen:g}", (chosen, 0.2), (5, 0), textcoords="offset points", fontsize=9)
    axes.set(xlim=(0, max(levels)), ylim=(0, 1.35 * max(nobody, values["READ"])))
    axes.set(xlabel="significance", ylabel="cost per text")
    add_legend(axes, loc="upper right", ncols=2)
    return figure


# Name of the file: what draws it, its title, and what a screen reader says of it.
@drawn
def kinds() -> Figure:
    """Draw misses by number of true labels on three corpora, plain and with a promise for each number."""
    results = json.loads((DOCS.parent / "results" / "promises.json").read_text(encoding="utf-8"))
    corpora = {"reuters-linear": "Reuters", "arxiv-20k-linear": "arXiv", "debian-czech-linear": "Czech packages"}
    figure = new_figure(6.4, 2.8)
    names = ("1 label", "2 labels", "3 or more labels")
    (first, _, _), (second, _, _) = SERIES[:2]
    styles = {"plain": {"color": first}, "by cardinality": {"color": "white", "edgecolor": second, "hatch": "///"}}
    for axes, (key, title) in zip(figure.subplots(1, 3, sharey=True), corpora.items(), strict=True):
        for shift, (calibration, style) in zip((-0.19, 0.19), styles.items(), strict=True):
            misses = results[key]["misses"][calibration]["misses"]
            heights = [misses[f"by cardinality: {name}"]["share"] for name in names]
            bars = axes.bar(np.arange(3) + shift, heights, 0.36, label=calibration, **style)
            axes.bar_label(bars, [f"{height:.0%}" for height in heights], padding=2, fontsize=7)
        axes.axhline(0.05, color=INK, linewidth=0.8, linestyle=_DASHES, label="significance")
        axes.set_xticks(range(3), ["1", "2", "3 or more"])
        axes.set(xlabel="true labels")
        axes.set_title(title)
        format_shares(axes.yaxis)
    figure.axes[0].set(ylabel="true label-set missed")
    add_legend(figure.axes[2], loc="upper right")
    return figure


PICTURES: dict[str, tuple[Callable[[], Figure], str, str]] = {
    "p-values": (
        p_values,
        "p-values of true label-sets",
        "Histogram in twenty bins; all shares are near one in twenty, within the band that chance explains.",
    ),
    "groups": (
        groups,
        "Error rates by channel",
        "With one calibration letters are missed least and chats most; with one per channel all are near 5 %.",
    ),
    "luck": (
        luck,
        "Error rates of 200 calibrations",
        "Calibrations of 99 texts scatter widely around 5 %, those of 999 texts narrowly, as beta distributions say.",
    ),
    "watch": (
        watch,
        "The watch's capital",
        "It stays low while texts are exchangeable, and passes the alarm line after the change at text 600.",
    ),
    "kinds": (
        kinds,
        "Misses by number of true labels",
        "Plain, 23 % of arXiv texts and 56 % of Reuters texts with three or more labels are missed.",
    ),
    "calibration-size": (
        calibration_size,
        "Error rate of a calibration against the number of its texts",
        "Nine in ten calibrations miss between 2.0 and 9.0 % with 99 texts, and between 3.9 and 6.2 % with 999.",
    ),
    "corners": (
        corners,
        "Confidence and credibility",
        "Sure texts are top right, those with several answers top left, strange ones bottom right; none bottom left.",
    ),
    "cost-curve": (
        cost_curve,
        "Cost per text against the significance",
        "Lowest at a small level, highest at about 0.06, lower again past 0.1, for validation and test texts alike.",
    ),
}


def svg_of(name: str) -> str:
    """Return a picture as the file has it: black on white, so that it reads on dark pages too."""
    draw, title, description = PICTURES[name]
    figure = draw()
    figure.set_facecolor("white")
    return plots.to_svg(figure, name=name, title=title, description=description, ink="black")


def main(names: Iterable[str]) -> None:
    """Write the pictures that are named, or all of them."""
    IMAGES.mkdir(exist_ok=True)
    for name in names or PICTURES:
        (IMAGES / f"{name}.svg").write_text(svg_of(name), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
