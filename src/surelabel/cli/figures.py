"""What the commands print about evaluations and verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import surelabel
from surelabel._core.levels import MAIN_LEVEL, STANDARD_LEVELS
from surelabel._core.validation import as_level, as_share
from surelabel._core.wording import at_most_words, count_words
from surelabel.cli.application import say
from surelabel.cli.showing import print_table

if TYPE_CHECKING:
    import surelabel.calibration
    from surelabel.conformal import ConformalLabelSets
    from surelabel.evaluation.evaluate import Evaluation
    from surelabel.evaluation.metrics import ClassificationMetrics
    from surelabel.models import Bundle

_MARKS = {"held": "", "chance": "", "above": "yes", "unknown": ""}
# Ids of sure but wrong texts in one line; the report has more.
_MOST_SHOWN = 8


def figures_of(evaluations: Mapping[str, Evaluation] | None) -> list[dict[str, Any]]:
    """Return the figures that a user looks at first, per measure and level."""
    return [
        {
            "measure": name,
            "significance": point.significance,
            "error": point.error,
            "mean_size": point.sizes.mean,
            "mean_size_lower": point.sizes.mean_lower,
            "median_size": point.sizes.median,
            "single": point.sizes.single,
            "empty": point.sizes.empty,
            "n_texts": evaluation.n_texts,
            "by_chance": list(evaluation.band(point)),
            "verdict": evaluation.verdict(point),
        }
        for name, evaluation in (evaluations or {}).items()
        for point in evaluation.standard
    ]


def print_own_evaluation(bundle: Bundle) -> None:
    """Print the figures of a bundle's own measure, without those that it is compared with, and what they mean."""
    if bundle.evaluation:
        name, evaluation = next(iter(bundle.evaluation.items()))
        print_evaluations({name: evaluation})
        say(summary_of(evaluation))
    say(_calibration_words(bundle.predictor))
    print_verdict(bundle.info.verdict)


def _calibration_words(predictor: ConformalLabelSets, assurance: str = "0.95") -> str:
    """Say what a significance acts as with assurance, or how many categories there are."""
    calibration, n_texts = predictor.calibration_, predictor.calibration_.n_texts
    if calibration.categories is not None:
        sizes = sorted(len(totals) for totals in calibration.categories.table.values())
        return (
            f"Calibrated by {calibration.categories.taxonomy!r}: {len(sizes):,} categories of {sizes[0]:,} to "
            f"{sizes[-1]:,} calibration texts."
        )
    level, share = as_level(MAIN_LEVEL, None, who="train"), as_share(assurance, "assurance", who="train")
    rank = surelabel.calibration.rank_of(n_texts, level, share)
    if rank == 0:
        return (
            f"{n_texts:,} calibration texts are too few for {float(share):.0%} assurance at significance {MAIN_LEVEL}: "
            f"{surelabel.calibration.fewest_assured(level, share):,} are needed."
        )
    return (
        f"For this calibration, not only on average over calibrations: predict --assurance {assurance}. Significance "
        f"{MAIN_LEVEL} then acts as {rank / (n_texts + 1):.3f}, with {n_texts:,} calibration texts."
    )


def print_verdict(verdict: Mapping[str, Any], level: str | None = None) -> None:
    """Say what a model is good for; `level` is its default, if that is not the recommended one."""
    if not verdict:
        return
    say("Verdict:")
    *lines, last = verdict["words"]
    for line in lines:
        say(f"  {line}")
    default = "the default of this model" if level in {None, verdict["level"]} else f"the model's default is {level}"
    say(f"  {last[:-1]}; {default}.")


def promise_of(evaluation: Evaluation) -> str:
    """Say in one line whether errors are within what was asked for, or within what chance explains."""
    if not evaluation.broken:
        return "The promise is kept: at no level are there more errors than chance explains."
    point = max(evaluation.broken, key=lambda point: point.error / float(point.significance))
    upper = evaluation.band(point)[1]
    return (
        f"PROMISE BROKEN: asked for {float(point.significance):.0%} errors, the true label-set was missed for "
        f"{point.error:.1%} of {evaluation.n_texts:,} texts; chance explains up to {upper:.1%}. These texts are unlike "
        "the calibration texts: calibrate with texts like them (surelabel calibrate)."
    )


def summary_of(evaluation: Evaluation) -> str:
    """Say in two sentences what the figures at significance 0.05 mean, or at the next level that there is."""
    points = [point for point in evaluation.standard if float(point.significance) >= float(MAIN_LEVEL)]
    if not points:
        return (
            f"{evaluation.n_calibration:,} calibration texts are too few for a significance of {STANDARD_LEVELS[-1]}: "
            "sets hold nearly every label-set. More texts, or a larger --calibration, help."
        )
    point = min(points, key=lambda point: float(point.significance))
    return (
        f"At significance {float(point.significance):g} the true label-set was missed for {point.error:.1%} of the "
        f"test texts, and {point.sizes.single:.1%} of them have one plausible label-set. 'By chance' is the range of "
        f"error rates with {evaluation.n_calibration:,} calibration and {evaluation.n_texts:,} test texts, in 99 "
        "of 100 cases."
    )


def print_evaluations(evaluations: Mapping[str, Evaluation] | None) -> None:
    """Print whether the promise is kept, how often label-sets are missed, how large sets are, how good guesses are."""
    if not evaluations:
        return
    first = next(iter(evaluations.values()))
    if first.standard:
        say(promise_of(first), style="bold red" if first.broken else None)
    rows = [
        (
            figures["measure"],
            figures["significance"],
            f"{figures['error']:.3f}",
            "{:.3f} to {:.3f}".format(*figures["by_chance"]),
            at_most_words(figures["mean_size_lower"], figures["mean_size"]),
            count_words(figures["median_size"]),
            f"{figures['single']:.1%}",
            f"{figures['empty']:.1%}",
        )
        for figures in figures_of(evaluations)
    ]
    headings = ("measure", "significance", "error rate", "by chance", "mean N", "median N", "N = 1", "N = 0")
    sampled = "" if first.n_sized in (None, first.n_texts) else f", of {first.n_sized:,} texts"
    print_table(headings, rows, title=f"{first.n_texts:,} test texts; N: plausible label-sets{sampled}")
    say(f"Best guess: {_guess_words(first.guesses or first.forced)}.")
    if first.guesses is not None:
        say(f"The most plausible label-set, the paper's rule: {_guess_words(first.forced)}.")


def _guess_words(metrics: ClassificationMetrics) -> str:
    """Say how good one label-set per text is."""
    return (
        f"exactly right for {metrics.accuracy:.1%} of texts, micro-F1 {metrics.f1_micro:.3f}, "
        f"macro-F1 {metrics.f1_macro:.3f}"
    )


def print_kinds(evaluation: Evaluation) -> None:
    """Print who is missed, and which texts looked sure and were wrong."""
    figures = evaluation.conditional
    if figures is None:
        return
    rows = [
        (division if k == 0 else "", kind.name, f"{kind.n_texts:,}", f"{kind.missed:.1%}", _MARKS[kind.verdict])
        for division, kinds in figures.kinds.items()
        for k, kind in enumerate(kinds)
    ]
    title = f"Who is missed at significance {figures.significance}"
    print_table(("by", "texts with", "texts", "missed", "more than chance"), rows, title=title)
    if figures.n_sure_wrong:
        shown = ", ".join(text.id for text in figures.sure_but_wrong[:_MOST_SHOWN])
        more = ", ..." if figures.n_sure_wrong > _MOST_SHOWN else ""
        say(
            f"Sure but wrong: {figures.n_sure_wrong:,} of the {figures.n_sure:,} texts with one plausible label-set "
            f"({figures.n_sure_wrong / figures.n_sure:.1%}): {shown}{more}."
        )


def print_criteria(evaluation: Evaluation) -> None:
    """Print the paper's criteria and what its searches would have to do."""
    sums = {"S": evaluation.s, "OF": evaluation.of}
    rows = [
        (name, *(at_most_words(*pair) for pair in ((s.floor, s.floor), (s.excess_lower, s.excess_upper), s.mean)))
        for name, s in sums.items()
        if s is not None
    ]
    print_table(("criterion", "floor", "excess", "mean"), rows, title="Sums of p-values over all candidates, per text")
    demand = evaluation.demand
    if demand is not None:
        ball = "-" if demand.ball_label_sets is None else count_words(demand.ball_label_sets)
        say(
            f"Label-sets considered at significance {demand.significance}: {count_words(demand.exact_label_sets)} by "
            f"the exact search, {ball} in the paper's Hamming ball, {count_words(demand.powerset_label_sets)} in all."
        )
