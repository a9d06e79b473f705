"""What the runs show about the guarantee and about the measures, as tables from result files alone."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from surelabel._core.levels import STANDARD_LEVELS
from surelabel._core.wording import count_words
from surelabel.experiments.tables import (
    Result,
    Table,
    by_corpus,
    is_counted,
    measures_of,
    point_at,
    resplit_sizes,
    spread,
    three,
)
from surelabel.plots import BAND, error_band
from surelabel.report import judge

__all__ = ["NORMS", "guarantee", "log_loss_against_norms", "mean_size", "mean_size_words"]

NORMS = ("L2", "L4", "L8")
_VERDICTS = {"held": "held", "chance": "within chance", "above": "above"}


def mean_size(group: list[Result], measure: str, level: str) -> float:
    """Return the mean number of label-sets over re-splits, an upper bound unless `is_counted`."""
    return float(np.mean(resplit_sizes(group, measure, level)))


def mean_size_words(group: list[Result], measure: str, level: str) -> str:
    """Write the mean number of label-sets over re-splits, as a bound if it is one."""
    most = "" if is_counted(group, measure, level) else "at most "
    return most + count_words(mean_size(group, measure, level))


def guarantee(results: Iterable[Result]) -> Table:
    """Judge the error on the corpus' own test part, beside that of random re-splits, at each level.

    Re-splits are exchangeable by construction, so there the guarantee must hold: the mean over them is at most
    the significance up to its standard error. The own test part need not be exchangeable with the calibration texts.
    """
    rows = []
    for corpus, classifier, group in by_corpus(results, conformal=True):
        for measure in measures_of(group):
            for level in STANDARD_LEVELS:
                n_texts = group[0]["n_texts"]
                if float(level) * (n_texts["calibration"] + 1) <= 1:
                    continue
                lower, upper = error_band(level, n_texts["test"], n_texts["calibration"])
                own = [point_at(r, measure, level)["error"] for r in group]
                verdicts = [judge(error, level, n_texts["test"], n_texts["calibration"])[2] for error in own]
                redrawn = [error for r in group for error in r["resplits"][measure]["errors"][level]]
                error_of_mean = float(np.std(redrawn, ddof=1)) / len(redrawn) ** 0.5
                rows.append(
                    (
                        corpus,
                        classifier,
                        measure,
                        level,
                        spread(own, three),
                        f"{lower:.3f} to {upper:.3f}",
                        ", ".join(_VERDICTS[verdict] for verdict in verdicts),
                        f"{np.mean(redrawn):.4f} ± {error_of_mean:.4f}",
                    )
                )
    header = (
        "corpus", "classifier", "measure", "significance", "error, own test", "band of chance", "own test",
        "mean error, re-splits",
    )  # fmt: skip
    note = (
        f"The band holds {100 * BAND:.0f} of 100 experiments with exchangeable texts (beta-binomial: it allows for the "
        "draw of the calibration texts too). ± here is the standard error of the mean over re-splits, which share one "
        "pool of texts."
    )
    return Table("guarantee", "The guarantee: own test part and random re-splits", header, tuple(rows), note)


def log_loss_against_norms(results: Iterable[Result]) -> Table:
    """Compare mean N of LogLoss with the best norm's at the same significance, on the own test part and re-splits."""
    rows = []
    for corpus, classifier, group in by_corpus(results, conformal=True):
        if not {"LogLoss", *NORMS} <= set(measures_of(group)):
            continue
        for level in STANDARD_LEVELS:
            if float(level) * (group[0]["n_texts"]["calibration"] + 1) <= 1:
                continue
            means = {name: mean_size(group, name, level) for name in ("LogLoss", *NORMS)}
            best = min(NORMS, key=lambda name: means[name])
            cells = [mean_size_words(group, name, level) for name in (*NORMS, "LogLoss")]
            counted = is_counted(group, best, level) and is_counted(group, "LogLoss", level)
            ratio = count_words(means[best] / means["LogLoss"]) if counted else "-"
            rows.append((corpus, classifier, level, *cells, best, ratio))
    header = ("corpus", "classifier", "significance", *NORMS, "LogLoss", "best norm", "its N over LogLoss'")
    note = (
        "Mean N over re-splits of calibration and test texts; above 1 in the last column LogLoss has smaller sets. "
        "A mean with sets that were not counted is a bound; a ratio of bounds says nothing, so there is none."
    )
    return Table("log-loss", "LogLoss against the norms: mean N", header, tuple(rows), note)
