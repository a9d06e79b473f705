"""The paper's tables from result files alone, ours next to the paper's figures.

A row is one corpus and classifier; figures are means over seeds, with the standard deviation if there are several. A
stand-in for a corpus that is not available has its own name, never that of the corpus it stands in for.
"""

from __future__ import annotations

import csv
import dataclasses
import importlib.resources
import io
import json
import logging
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from surelabel._core.levels import STANDARD_LEVELS
from surelabel._core.storage import atomic_file
from surelabel._core.wording import bounds_words, count_words, markdown_table
from surelabel.evaluation.evaluate import Evaluation
from surelabel.experiments.run import read_result
from surelabel.experiments.settings import CLASSIFIERS, CORPORA
from surelabel.measures import MEASURES

_log = logging.getLogger(__name__)

Result = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Table:
    """A table ready to be written: a name for files, a title, header and rows of text, a note below."""

    name: str
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def to_markdown(self) -> str:
        """Return the table in Markdown, numbers to the right."""
        n_names = next((i for i, name in enumerate(self.header) if name not in _NAME_COLUMNS), 1) or 1
        return markdown_table(self.header, self.rows, n_names)

    def to_csv(self) -> str:
        """Return the table as comma-separated values."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(self.header)
        writer.writerows(self.rows)
        return stream.getvalue()


_METRICS = {"accuracy": "accuracy", "f1_micro": "F1 micro", "f1_macro": "F1 macro", "hamming_loss": "Hamming loss"}
_ENDS = ("lower", "upper")
_DEMANDS: dict[str, Callable[[float], str]] = {
    "mean_radius": "{:.2f}".format,
    "median_radius": "{:.0f}".format,
    "powerset_label_sets": count_words,
    "ball_label_sets": count_words,
    "prohibitive": lambda share: f"{100 * share:.2f}",
    "exact_label_sets": count_words,
    "exact_seconds": lambda seconds: f"{1e3 * seconds:.1f}",
}
_NAME_COLUMNS = ("corpus", "classifier", "measure", "method", "source", "kind")


def paper_figures() -> dict[str, Any]:
    """Return the figures that the paper has published."""
    text = importlib.resources.files("surelabel.experiments").joinpath("paper.json").read_text(encoding="utf-8")
    figures: dict[str, Any] = json.loads(text)
    return figures


def load_results(folder: Path) -> list[Result]:
    """Read all result files of a folder; damaged ones and those of another version are named and skipped."""
    results = []
    for path in sorted(folder.glob("*.json")):
        try:
            document = read_result(path)
            for values in document.get("evaluations", {}).values():
                Evaluation.from_dict(values)
            results.append(document)
        except (OSError, ValueError) as error:
            _log.warning("%s is skipped: %s", path, error)
    return results


def spread(values: list[float], write: Callable[[float], str]) -> str:
    """Write a mean, with the standard deviation if there are several values."""
    mean = write(float(np.mean(values)))
    return mean if len(values) < 2 else f"{mean} ± {write(float(np.std(values, ddof=1)))}"


def three(value: float) -> str:
    """Write a share with three digits after the point."""
    return f"{value:.3f}"


def by_corpus(results: Iterable[Result], conformal: bool) -> list[tuple[str, str, list[Result]]]:
    """Group results by corpus and classifier, in the order of the paper."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        if result["run"]["conformal"] == conformal:
            groups.setdefault((result["run"]["corpus"], result["run"]["classifier"]), []).append(result)
    return [
        (corpus, classifier, groups[corpus, classifier])
        for corpus in CORPORA
        for classifier in CLASSIFIERS
        if (corpus, classifier) in groups
    ]


def measures_of(group: list[Result]) -> list[str]:
    """Return the measures that every result of a group has, in the usual order."""
    return [name for name in MEASURES if all(name in result["evaluations"] for result in group)]


def resplit_sizes(group: list[Result], measure: str, level: str) -> list[float]:
    """Return the mean number of label-sets of each re-split of a group's results."""
    return [sizes["mean_size"][level] for result in group for sizes in result["resplits"][measure]["sizes"]]


def point_at(result: Result, measure: str, level: str) -> dict[str, Any]:
    """Return what was measured on the own test part at a significance."""
    curve = result["evaluations"][measure]["curve"]
    point: dict[str, Any] = next(point for point in curve if float(point["significance"]) == float(level))
    return point


def _mean_bounds(group: list[Result], measure: str, level: str) -> tuple[float, float]:
    """Return certified bounds of the mean number of label-sets on the own test part."""
    sizes = [point_at(result, measure, level)["sizes"] for result in group]
    return float(np.mean([size["mean_lower"] for size in sizes])), float(np.mean([size["mean"] for size in sizes]))


def is_counted(group: list[Result], measure: str, level: str) -> bool:
    """Tell whether sizes were counted, up to a hundredth; otherwise they are upper bounds."""
    lower, upper = _mean_bounds(group, measure, level)
    return upper <= 1.01 * lower


def _paper_row(section: str, corpus: str, classifier: str) -> dict[str, float]:
    """Return the paper's figures for a corpus and classifier, none if it has none."""
    row: dict[str, float] = paper_figures()[section].get(corpus, {}).get(classifier, {})
    return row


def _paper_cells(section: str, corpus: str, classifier: str, names: Iterable[str]) -> list[tuple[str, ...]]:
    """Return the paper's row for a corpus and classifier: a dash for a figure that it lacks, no row if it has none."""
    paper = _paper_row(section, corpus, classifier)
    return [tuple(three(paper[name]) if name in paper else "-" for name in names)] if paper else []


def without_icp(results: Iterable[Result]) -> Table:
    """Tabulate the classifiers themselves, trained with the calibration texts too."""
    rows: list[tuple[str, ...]] = []
    for corpus, classifier, group in by_corpus(results, conformal=False):
        ours = [spread([r["underlying"]["test"][name] for r in group], three) for name in _METRICS]
        rows.append((corpus, classifier, "ours", str(len(group)), *ours))
        theirs = _paper_cells("underlying", corpus, classifier, _METRICS)
        rows += [(corpus, classifier, "paper", "-", *cells) for cells in theirs]
    header = ("corpus", "classifier", "source", "seeds", *_METRICS.values())
    return Table("without-icp", "Classification results without ICP", header, tuple(rows))


def forced(results: Iterable[Result]) -> Table:
    """Tabulate forced predictions, with confidence and credibility for each measure."""
    kinds = [(kind, name) for kind in ("confidence", "credibility") for name in MEASURES]
    rows: list[tuple[str, ...]] = []
    for corpus, classifier, group in by_corpus(results, conformal=True):
        at_hand = measures_of(group)
        if not at_hand:
            continue
        first = [r["evaluations"][at_hand[0]]["forced"] for r in group]
        ours = [spread([values[name] for values in first], three) for name in _METRICS]
        ours += [
            spread([r["evaluations"][name][kind] for r in group], three) if name in at_hand else "-"
            for kind, name in kinds
        ]
        rows.append((corpus, classifier, "ours", *ours))
        names = [*_METRICS, *(f"{kind}_{name}" for kind, name in kinds)]
        rows += [(corpus, classifier, "paper", *cells) for cells in _paper_cells("forced", corpus, classifier, names)]
    header = ("corpus", "classifier", "source", *_METRICS.values(), *(f"{kind[:4]}. {name}" for kind, name in kinds))
    return Table("forced", "Forced prediction with ICP", header, tuple(rows))


def _paper_excess(corpus: str, total: float) -> float:
    """Return a sum of p-values that the paper has published above its floor."""
    figures = paper_figures()
    n_labels, n_texts = (figures["corpora"][corpus][name] for name in ("labels", "calibration"))
    most = figures["max_cardinality"][corpus]
    return float(total - sum(math.comb(n_labels, size) for size in range(1, most + 1)) / (n_texts + 1))


def sums(results: Iterable[Result]) -> Table:
    """Tabulate S and OF above their floor, c / (n + 1), which depends on nothing."""
    rows = []
    for corpus, classifier, group in by_corpus(results, conformal=True):
        paper = _paper_row("criteria", corpus, classifier)
        for measure in measures_of(group):
            values = [r["evaluations"][measure] for r in group]
            bounds = [
                bounds_words(*(float(np.mean([value[name][f"excess_{end}"] for value in values])) for end in _ENDS))
                for name in ("s", "of")
            ]
            middles = [float(np.mean(one["s_excess"])) for r in group for one in r["resplits"][measure]["sizes"]]
            theirs = f"S_{measure}"
            rows.append(
                (
                    corpus,
                    classifier,
                    measure,
                    count_words(values[0]["s"]["floor"]),
                    *(cell.removeprefix("about ") for cell in bounds),
                    spread(middles, count_words),
                    count_words(_paper_excess(corpus, paper[theirs])) if theirs in paper else "-",
                )
            )
    header = (
        "corpus", "classifier", "measure", "floor", "S excess", "OF excess", "S excess, re-splits", "paper's S excess",
    )  # fmt: skip
    note = (
        "Sums of p-values over all candidates, above the floor that depends on nothing; certified bounds where they "
        "differ. Re-splits: mean and standard deviation, over ten, of the middle of coarser bounds."
    )
    return Table("s-and-of", "S and OF criteria", header, tuple(rows), note)


def demand(results: Iterable[Result]) -> Table:
    """Tabulate what the searches consider at significance 0.05."""
    rows: list[tuple[str, ...]] = []
    for corpus, classifier, group in by_corpus(results, conformal=True):
        paper = _paper_row("search_cost_at_5_percent", corpus, classifier)
        for measure in measures_of(group):
            values = [r["evaluations"][measure]["demand"] for r in group]
            mean = {name: float(np.mean([float(value[name]) for value in values])) for name in _DEMANDS}
            ours = [write(mean[name]) for name, write in _DEMANDS.items()]
            rows.append((corpus, classifier, measure, "ours", *ours))
            if f"mean_t_{measure}" in paper:
                names = ("mean_t", "median_t", "label_sets", "prohibitive_percent")
                radius, median, ball, percent = (paper[f"{name}_{measure}"] for name in names)
                powerset = count_words(paper_figures()["powerset_cost"][corpus])
                theirs = (f"{radius:.2f}", f"{median:.0f}", powerset, count_words(ball), f"{percent:.2f}", "-", "-")
                rows.append((corpus, classifier, measure, "paper", *theirs))
    header = (
        "corpus", "classifier", "measure", "source", "mean t", "median t", "powerset", "Hamming ball",
        "prohibitive %", "exact search", "its ms, all texts",
    )  # fmt: skip
    note = "Label-sets considered over all test texts; none is prohibitive for the exact search."
    return Table("demand", "Computational demand at significance 0.05", header, tuple(rows), note)


def _sizes(group: list[Result], measure: str, level: str) -> list[str]:
    """Return error rates, mean and median size at one level."""
    points = [point_at(result, measure, level) for result in group]
    errors = [error for result in group for error in result["resplits"][measure]["errors"][level]]
    if is_counted(group, measure, level):
        most, own = "", spread([point["sizes"]["mean"] for point in points], count_words)
    else:
        most, own = "at most ", bounds_words(*_mean_bounds(group, measure, level))
    return [
        spread([point["error"] for point in points], three),
        spread(errors, three),
        own,
        most + spread(resplit_sizes(group, measure, level), count_words),
        most + count_words(float(np.mean([point["sizes"]["median"] for point in points]))),
    ]


def sets(results: Iterable[Result]) -> Table:
    """Error rates and sizes of prediction sets, on the corpus' own test part and on random re-splits."""
    rows = [
        (corpus, classifier, measure, level, *_sizes(group, measure, level))
        for corpus, classifier, group in by_corpus(results, conformal=True)
        for measure in measures_of(group)
        for level in STANDARD_LEVELS
        if all(float(level) * (r["n_texts"]["calibration"] + 1) > 1 for r in group)
    ]
    header = (
        "corpus", "classifier", "measure", "significance", "error, own test", "error, re-splits",
        "mean N, own test", "mean N, re-splits", "median N",
    )  # fmt: skip
    return Table("sets", "Prediction sets: error rate and N criterion", header, tuple(rows))


def all_tables(results: list[Result]) -> list[Table]:
    """Return every table that there are results for."""
    tables = [without_icp(results), forced(results), sums(results), sets(results), demand(results)]
    return [table for table in tables if table.rows]


def write_tables(tables: Iterable[Table], folder: Path) -> None:
    """Write each table as Markdown and as comma-separated values."""
    for table in tables:
        note = f"\n{table.note}\n" if table.note else ""
        markdown = f"# {table.title}\n\n{table.to_markdown()}\n{note}"
        for suffix, text in ((".md", markdown), (".csv", table.to_csv())):
            with atomic_file(folder / f"{table.name}{suffix}") as temporary:
                temporary.write_text(text, encoding="utf-8")
