"""The figures of runs: error rate and number of label-sets against significance, the search's load, the overview."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from publish.writing import write
from surelabel import plots
from surelabel._core.levels import STANDARD_LEVELS
from surelabel._core.wording import printable
from surelabel.evaluation.evaluate import Evaluation
from surelabel.experiments.tables import Result, by_corpus, measures_of
from surelabel.plots._canvas import INK, SERIES, drawn, format_counts, format_shares, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_figures", "overview"]

# Visible on white and on black: a page gives a picture no color of its own.
_INK = "#777777"


def _evaluations(result: Result) -> dict[str, Evaluation]:
    """Return a run's evaluations by measure."""
    return {name: Evaluation.from_dict(values) for name, values in result["evaluations"].items()}


def _write_svg(path: Path, figure: Figure, title: str) -> None:
    """Write a figure under the name of its file."""
    write(path, plots.to_svg(figure, name=path.stem, title=title, ink=_INK) + "\n")


def draw_figures(results: list[Result], folder: Path) -> list[str]:
    """Draw the figures of the first seed of each conformal run; return their names."""
    names = []
    conformal = [result for result in results if result["run"]["conformal"]]
    for result in conformal:
        run = result["run"]
        if run["seed"] != 0:
            continue
        evaluations = _evaluations(result)
        name, title = f"{run['corpus']}-{run['classifier']}", f"{run['corpus']}, {run['classifier']}"
        figures = {"error": plots.error_curve(evaluations), "size": plots.size_curve(evaluations)}
        for kind, figure in figures.items():
            _write_svg(folder / f"{name}-{kind}.svg", figure, f"{title}: {kind} against significance")
        names.append(name)
    shapes = {result["run"]["corpus"]: (result["n_labels"], result["max_labels"]) for result in conformal}
    if shapes:
        _write_svg(folder / "load.svg", plots.search_load(shapes), "Label-sets considered against t")
    _draw_overview(results, folder / "overview.svg")
    return names


def _draw_overview(results: list[Result], path: Path) -> None:
    """Draw what the first corpus' classifiers show with LogLoss: errors over re-splits, and sizes of sets."""
    groups = [
        (corpus, classifier, group)
        for corpus, classifier, group in by_corpus(results, conformal=True)
        if "LogLoss" in measures_of(group) and float(STANDARD_LEVELS[0]) * (group[0]["n_texts"]["calibration"] + 1) > 1
    ]
    first = {classifier: group[0] for corpus, classifier, group in groups if corpus == groups[0][0]}
    if not first:
        return
    evaluations = {name: _evaluations(result)["LogLoss"] for name, result in first.items()}
    errors = {
        name: [result["resplits"]["LogLoss"]["errors"][level] for level in STANDARD_LEVELS]
        for name, result in first.items()
    }
    title = f"{groups[0][0]}: errors asked for and seen, and plausible label-sets per text"
    _write_svg(path, overview(evaluations, errors, STANDARD_LEVELS), title)


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
    """Draw median, middle half and middle nine tenths of the numbers of plausible label-sets."""
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
    axes.set(yscale="log", xlabel="errors asked for", ylabel="plausible label-sets per text")
    axes.set_title(f"of {plots.count_text(possible)} possible ones", fontsize=8.5)
    format_counts(axes.yaxis)


def _shifts(curves: Mapping[str, Any]) -> list[float]:
    """Return where the marks of each curve stand beside a level's place."""
    return [0.18 * (i - (len(curves) - 1) / 2) for i in range(len(curves))]


@drawn
def overview(
    evaluations: Mapping[str, Evaluation], errors: Mapping[str, Sequence[Sequence[float]]], levels: Sequence[str]
) -> Figure:
    """Draw the errors seen beside those asked for, and how many label-sets prediction sets hold.

    Bars are the middle half of texts, lines the middle nine tenths, marks the median; `errors` has, for each level, the
    error rates of one or more divisions into calibration and test texts.
    """
    figure = new_figure(8.2, 3.4)
    left, right = figure.subplots(1, 2)
    _draw_errors(left, errors, levels)
    _draw_sizes(right, evaluations, levels)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=len(evaluations))
    return figure
