"""The figures of a report, as SVG, with sentences for screen readers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surelabel import plots
from surelabel._core.formatting import count, plain
from surelabel.evaluation.bands import BAND
from surelabel.plots._canvas import drawing
from surelabel.report.content import Content

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CHANCE = f"Chance alone keeps {100 * BAND:.0f} of 100 experiments within the grey band."


class _Drawn(NamedTuple):
    """A figure with its title, its caption, and a sentence for screen readers."""

    name: str
    figure: Figure
    title: str
    caption: str
    description: str


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _validity(content: Content) -> Iterator[_Drawn]:
    """Draw whether the guarantee held."""
    result = content.result
    levels = [float(level) for level in result.errors]
    curve = plots.error_curve(
        {"errors": (levels, list(result.errors.values()))},
        n_texts=result.n_texts,
        n_calibration=result.n_calibration,
        largest=0.2,
    )
    rates = ", ".join(f"{_percent(row.error)} at {_percent(float(row.significance))}" for row in content.rows)
    yield _Drawn(
        "errors",
        curve,
        "Errors against significance",
        f"How often the true answer was missed against how often it may be, {plain(content.texts)}. {_CHANCE}",
        f"Error rates: {rates}.",
    )
    p_values = content.measured.p_values
    yield _Drawn(
        "p-values",
        plots.p_value_histogram(p_values, n_calibration=result.n_calibration),
        "P-values of true answers",
        "Bars of one height: these texts are like the calibration texts. High bars on the left: they are not. "
        f"{_CHANCE}",
        f"{_percent(float((p_values <= 0.05).mean()))} of p-values are at most 0.05.",
    )


def _efficiency(content: Content) -> Iterator[_Drawn]:
    """Draw how large prediction sets are."""
    points = content.result.curve
    yield _Drawn(
        "sizes",
        plots.size_curve({"sizes": ([float(p.significance) for p in points], [p.sizes.mean for p in points])}),
        "Mean number of plausible answers",
        "Plausible answers per text on average (the N criterion) against the significance; the dotted line is one.",
        f"Means: {', '.join(f'{count(p.sizes.mean)} at {p.significance}' for p in points)}.",
    )
    sizes = np.array(content.measured.sizes, dtype=np.float64)
    level = _percent(float(content.info.levels["significance"]))
    yield _Drawn(
        "size-histogram",
        plots.size_histogram(content.measured.sizes),
        "Numbers of plausible answers",
        f"Texts by their number of plausible answers at significance {level}. Empty: the text is unlike the "
        "calibration texts.",
        f"{_percent(float(np.mean(sizes == 0)))} are empty, {_percent(float(np.mean(sizes == 1)))} hold one answer.",
    )


def _quality(content: Content) -> Iterator[_Drawn]:
    """Draw how good the classifier is."""
    measured = content.measured
    yield _Drawn(
        "confidence",
        plots.confidence_credibility(measured.confidence, measured.credibility, measured.right),
        "Confidence and credibility of best guesses",
        "Best guesses, right and wrong, by confidence and credibility. Larger squares stand for more texts.",
        f"{_percent(float(measured.right.mean()))} of best guesses are right.",
    )
    if not isinstance(measured.probabilities, np.ndarray):  # shortlists: most labels have no probability
        return
    names = tuple(figures.name for figures in content.result.labels)[: measured.probabilities.shape[1]]
    yield _Drawn(
        "reliability",
        plots.reliability(measured.probabilities, measured.labels, names),
        "Reliability of the classifier's probabilities",
        "Left: on the diagonal, probabilities are reliable. Right: the labels whose number of texts differs most from "
        "the sum of their probabilities. The guarantee does not need reliable probabilities; small sets do.",
        f"Probabilities add up to {count(round(float(measured.probabilities.sum())))} labels, "
        f"{count(int(np.sum(measured.labels)))} are true.",
    )


def build_figures(content: Content) -> dict[str, dict[str, Any]]:
    """Return the figures of a report by name: SVG, title and caption."""
    figures = {}
    with drawing():
        for draw in (_validity, _efficiency, _quality):
            for name, figure, title, caption, description in draw(content):
                svg = plots.to_svg(figure, name=f"figure-{name}", title=title, description=description)
                figures[name] = {"svg": svg, "title": title, "caption": caption}
    return figures
