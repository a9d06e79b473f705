"""The figures of a report, as SVG, with words for screen readers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from surelabel import plots
from surelabel._core.wording import at_most_words, count_words
from surelabel.evaluation.metrics import same_label_sets
from surelabel.labels.sparse import is_sparse
from surelabel.plots._canvas import drawing
from surelabel.report.content import WATCH_ALPHA, ReportContent
from surelabel.report.inputs import CheckedInput

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CHANCE = f"Chance alone keeps {100 * plots.BAND:.0f} of 100 such experiments within the grey band."

# As many curves as can be told apart.
_MAX_CURVES = 6
# No axis reaches further.
_MAX_DRAWN = 10**300


class _Drawn(NamedTuple):
    """A figure, its caption for all, and for screen readers its title and what is to be seen, with numbers."""

    name: str
    figure: Figure
    title: str
    caption: str
    seen: str


@dataclasses.dataclass(frozen=True)
class ReportFigure:
    """One figure: SVG and the caption below it."""

    svg: str
    caption: str


def _percent(share: float) -> str:
    """Write a share as a percentage."""
    return f"{100 * share:.3g} %"


def _validity(content: ReportContent, checked: CheckedInput) -> Iterator[_Drawn]:
    """Draw whether the guarantee held."""
    evaluations = {measure.name: measure.evaluation for measure in content.measures[:_MAX_CURVES]}
    caption = (
        f"How often the true label-set was missed, against how often it may be. {_CHANCE} A curve above the band means "
        "that the guarantee did not hold."
    )
    rates = [(row.error, float(row.significance)) for row in content.main.rows if row.error is not None]
    said = ", ".join(f"{_percent(error)} at {_percent(level)}" for error, level in rates)
    seen = f"Error rates of {content.main.name}: {said}." if said else caption
    near = plots.error_curve(evaluations, largest=0.2)
    yield _Drawn("error-near", near, "Error rate against significance up to 20 %", caption, seen)
    whole = plots.error_curve(evaluations)
    yield _Drawn("error", whole, "Error rate against significance", "The same up to 100 %.", seen)
    predictor = checked.predicted.predictor
    smoothing = np.random.default_rng(0)
    p_values = predictor.predict_p(checked.predicted.engine, checked.labels, smoothing=smoothing)
    yield _Drawn(
        "p-values",
        plots.p_value_histogram(p_values, n_calibration=predictor.calibration_.n_texts),
        "P-values of true label-sets",
        f"P-values of the true label-sets ({content.main.name}, ties broken at random). Bars of one height mean that "
        f"new texts are like the calibration texts; high bars on the left mean that new texts are stranger. {_CHANCE}",
        f"{_percent(float((p_values <= 0.05).mean()))} of p-values are at most 0.05, half are at most "
        f"{float(np.median(p_values)):.2g}.",
    )


def _efficiency(content: ReportContent, checked: CheckedInput) -> Iterator[_Drawn]:
    """Draw how large prediction sets are."""
    evaluations = {measure.name: measure.evaluation for measure in content.measures[:_MAX_CURVES]}
    level = _percent(float(content.significance))
    main = content.main
    means = [
        f"{at_most_words(row.sizes.mean_lower, row.sizes.mean)} at {_percent(float(row.significance))}"
        for row in main.rows
        if row.sizes
    ]
    yield _Drawn(
        "sizes",
        plots.size_curve(evaluations),
        "Mean size of prediction sets against significance",
        "How many label-sets stay plausible per text, on average (the N criterion), against the significance. Lower "
        "is better; the dotted line is one label-set. Both axes are logarithmic.",
        f"Mean sizes of {main.name}: {', '.join(means)}.",
    )
    sizes = np.array(content.sizes, dtype=np.float64)
    yield _Drawn(
        "size-histogram",
        plots.size_histogram(sizes),
        "Sizes of prediction sets",
        f"How many label-sets stay plausible per text at significance {level} ({main.name}). None means that the text "
        "is unlike the calibration texts.",
        f"{_percent(float(np.mean(sizes == 0)))} of prediction sets are empty, {_percent(float(np.mean(sizes == 1)))} "
        f"hold one label-set, the largest holds {count_words(int(max(sizes)))}.",
    )
    shape = (main.evaluation.n_labels, main.evaluation.max_labels)
    if main.evaluation.demand and main.evaluation.n_candidates < _MAX_DRAWN and not is_sparse(checked.probabilities):
        yield _Drawn(
            "load",
            plots.search_load({f"{shape[0]} labels, at most {shape[1]} in a set": shape}),
            "Label-sets considered against radius",
            "How many label-sets the paper's search by Hamming ball considers for one text, as its radius t grows. The "
            "dotted line is all candidates.",
            f"From 1 at radius 1 to all {count_words(main.evaluation.n_candidates)} candidates.",
        )


def _quality(content: ReportContent, checked: CheckedInput) -> Iterator[_Drawn]:
    """Draw how good the classifier is."""
    forced = checked.predicted.forced
    right = same_label_sets(forced.labels, checked.labels)
    yield _Drawn(
        "confidence",
        plots.confidence_credibility(forced.confidence, forced.credibility, right),
        "Confidence and credibility of best guesses",
        f"Confidence and credibility of the best guesses ({content.main.name}), right and wrong. "
        "Larger squares stand for more texts.",
        f"{_percent(float(right.mean()))} of best guesses are right. Mean confidence is "
        f"{float(forced.confidence.mean()):.3f}, mean credibility {float(forced.credibility.mean()):.3f}.",
    )
    yield _Drawn(
        "reliability",
        plots.reliability(checked.probabilities, checked.labels, checked.label_names),
        "Reliability of the classifier's probabilities",
        "Do the classifier's probabilities mean what they say? Left: on the diagonal they do; above it, labels are "
        "true more often than the classifier says; the bars below count (text, label) pairs. Right: the labels whose "
        "number of texts differs most from what their probabilities add up to. The guarantee does not need reliable "
        "probabilities; small prediction sets do.",
        f"Probabilities add up to {count_words(round(float(checked.probabilities.sum())))} labels, "
        f"{count_words(int(checked.labels.sum()))} are true.",
    )


def _watch(content: ReportContent, checked: CheckedInput) -> Iterator[_Drawn]:
    """Draw the watch, if texts have an order."""
    if content.watch is None:
        return
    state = content.watch
    said = f"alarm at text {state.alarm_at:,}" if state.alarm else "no alarm"
    yield _Drawn(
        "watch",
        plots.watch_path({content.main.name: state.path}, alpha=WATCH_ALPHA),
        "Exchangeability watch",
        f"Evidence that texts are not like the calibration texts ({content.main.name}), text by text, on a logarithmic "
        "axis. Crossing the dashed line raises the alarm.",
        f"Capital ends at 10 to the power {state.log10_martingale:.1f}, {said}.",
    )


def build_figures(content: ReportContent, checked: CheckedInput) -> dict[str, ReportFigure]:
    """Draw the figures of a report, by name."""
    figures = {}
    with drawing():
        for draw in (_validity, _watch, _efficiency, _quality):
            for name, figure, title, caption, seen in draw(content, checked):
                svg = plots.to_svg(figure, name=f"figure-{name}", title=title, description=seen)
                figures[name] = ReportFigure(svg, caption)
    return figures
