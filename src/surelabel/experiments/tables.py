"""The tables of the paper, from result files alone, ours beside the paper's figures."""

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

from surelabel._core.files import atomic_file
from surelabel._core.formatting import bounds, count, markdown_table
from surelabel.evaluation.metrics import STANDARD_LEVELS
from surelabel.exceptions import SurelabelError
from surelabel.experiments.run import CLASSIFIERS, CORPORA, MEASURES, Result, read_result

_log = logging.getLogger(__name__)
_METRICS = {"accuracy": "accuracy", "f1_micro": "F1 micro", "f1_macro": "F1 macro", "hamming_loss": "Hamming loss"}
_DEMANDS: dict[str, Callable[[float], str]] = {
    "mean_radius": "{:.2f}".format,
    "median_radius": "{:.0f}".format,
    "powerset_label_sets": count,
    "ball_label_sets": count,
    "prohibitive": lambda share: f"{100 * share:.2f}",
    "exact_label_sets": count,
    "exact_seconds": lambda seconds: f"{1e3 * seconds:.1f}",
}
_NAME_COLUMNS = ("corpus", "classifier", "measure", "source")


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
        csv.writer(stream, lineterminator="\n").writerows([self.header, *self.rows])
        return stream.getvalue()


def paper_figures() -> dict[str, Any]:
    """Return the figures that the paper has published."""
    text = importlib.resources.files("surelabel.experiments").joinpath("paper.json").read_text(encoding="utf-8")
    figures: dict[str, Any] = json.loads(text)
    return figures


def load_results(folder: Path) -> list[Result]:
    """Read all result files of a folder; log and skip damaged ones."""
    results = []
    for path in sorted(folder.glob("*.json")):
        try:
            results.append(read_result(path))
        except (OSError, ValueError, SurelabelError) as error:
            _log.warning("%s is skipped: %s", path, error)
    return results


def mean_and_std(values: list[float], write: Callable[[float], str]) -> str:
    """Return a mean, with the standard deviation if there are several values."""
    mean = write(float(np.mean(values)))
    return mean if len(values) < 2 else f"{mean} ± {write(float(np.std(values, ddof=1)))}"


def three(value: float) -> str:
    """Return a share with three digits after the point."""
    return f"{value:.3f}"


def by_corpus(results: Iterable[Result], conformal: bool) -> list[tuple[str, str, list[Result]]]:
    """Group results by corpus and classifier, in the order of the paper."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        if result["run"]["conformal"] == conformal:
            groups.setdefault((result["run"]["corpus"], result["run"]["classifier"]), []).append(result)
    pairs = ((corpus, classifier) for corpus in CORPORA for classifier in CLASSIFIERS)
    return [(*pair, groups[pair]) for pair in pairs if pair in groups]


def measures_of(group: list[Result]) -> list[str]:
    """Return the measures that every result of a group has, in the usual order."""
    return [name for name in MEASURES if all(name in result["evaluations"] for result in group)]


def point_at(result: Result, measure: str, level: str) -> dict[str, Any]:
    """Return the figures of the own test part at a significance."""
    curve = result["evaluations"][measure]["curve"]
    point: dict[str, Any] = next(point for point in curve if float(point["significance"]) == float(level))
    return point


def _paper_cells(section: str, corpus: str, classifier: str, names: Iterable[str]) -> list[list[str]]:
    """Return the paper's cells for a corpus and classifier: a dash for a missing figure, no row without figures."""
    paper = paper_figures()[section].get(corpus, {}).get(classifier, {})
    return [[three(paper[name]) if name in paper else "-" for name in names]] if paper else []


def without_icp(results: Iterable[Result]) -> Table:
    """Tabulate the classifiers themselves, trained with the calibration texts too."""
    rows: list[tuple[str, ...]] = []
    for corpus, classifier, group in by_corpus(results, conformal=False):
        ours = [mean_and_std([r["underlying"]["test"][name] for r in group], three) for name in _METRICS]
        rows.append((corpus, classifier, "ours", str(len(group)), *ours))
        paper = _paper_cells("underlying", corpus, classifier, _METRICS)
        rows += [(corpus, classifier, "paper", "-", *cells) for cells in paper]
    header = ("corpus", "classifier", "source", "seeds", *_METRICS.values())
    return Table("without-icp", "Classification results without ICP", header, tuple(rows))


def forced(results: Iterable[Result]) -> Table:
    """Tabulate forced predictions, with confidence and credibility for each measure."""
    kinds = [(kind, name) for kind in ("confidence", "credibility") for name in MEASURES]
    rows: list[tuple[str, ...]] = []
    for corpus, classifier, group in by_corpus(results, conformal=True):
        names = measures_of(group)
        if not names:
            continue
        first = [r["evaluations"][names[0]]["forced"] for r in group]
        ours = [mean_and_std([values[name] for values in first], three) for name in _METRICS]
        for kind, name in kinds:
            has = name in names
            ours.append(mean_and_std([r["evaluations"][name][kind] for r in group], three) if has else "-")
        rows.append((corpus, classifier, "ours", *ours))
        columns = [*_METRICS, *(f"{kind}_{name}" for kind, name in kinds)]
        rows += [(corpus, classifier, "paper", *cells) for cells in _paper_cells("forced", corpus, classifier, columns)]
    header = ("corpus", "classifier", "source", *_METRICS.values(), *(f"{kind[:4]}. {name}" for kind, name in kinds))
    return Table("forced", "Forced prediction with ICP", header, tuple(rows))


def _paper_excess(corpus: str, classifier: str, measure: str) -> str:
    """Return the published S above its floor, a dash if there is none."""
    figures = paper_figures()
    total = figures["criteria"].get(corpus, {}).get(classifier, {}).get(f"S_{measure}")
    if total is None:
        return "-"
    n_labels, n_texts = (figures["corpora"][corpus][name] for name in ("labels", "calibration"))
    sizes = range(1, figures["max_cardinality"][corpus] + 1)
    return count(float(total - sum(math.comb(n_labels, size) for size in sizes) / (n_texts + 1)))


def sums(results: Iterable[Result]) -> Table:
    """Tabulate S and OF above their floor, c / (n + 1), which does not depend on the classifier."""
    rows = []
    for corpus, classifier, group in by_corpus(results, conformal=True):
        for measure in measures_of(group):
            values = [r["evaluations"][measure] for r in group]
            ours = []
            for name in ("s", "of"):
                ends = [[value[name][f"excess_{end}"] for value in values] for end in ("lower", "upper")]
                ours.append(bounds(*np.mean(ends, axis=1).tolist()).removeprefix("about "))
            redrawn = [float(np.mean(one["s_excess"])) for r in group for one in r["resplits"][measure]["sizes"]]
            floor, paper = count(values[0]["s"]["floor"]), _paper_excess(corpus, classifier, measure)
            rows.append((corpus, classifier, measure, floor, *ours, mean_and_std(redrawn, count), paper))
    header = (
        "corpus", "classifier", "measure", "floor", "S excess", "OF excess", "S excess, re-splits", "paper's S excess",
    )  # fmt: skip
    note = (
        "Sums of p-values over all candidates, above the floor; certified bounds where they differ. Re-splits: mean "
        "and standard deviation, over ten, of the middle of the bounds."
    )
    return Table("s-and-of", "S and OF criteria", header, tuple(rows), note)


def demand(results: Iterable[Result]) -> Table:
    """Tabulate the label-sets that the searches consider at significance 0.05, and the share out of reach."""
    rows: list[tuple[str, ...]] = []
    figures = paper_figures()
    for corpus, classifier, group in by_corpus(results, conformal=True):
        paper = figures["search_cost_at_5_percent"].get(corpus, {}).get(classifier, {})
        for measure in measures_of(group):
            values = [r["evaluations"][measure].get("demand") for r in group]
            if None in values:
                continue
            ours = [write(float(np.mean([float(value[name]) for value in values]))) for name, write in _DEMANDS.items()]
            rows.append((corpus, classifier, measure, "ours", *ours))
            if f"mean_t_{measure}" in paper:
                names = ("mean_t", "median_t", "label_sets", "prohibitive_percent")
                radius, median, ball, percent = (paper[f"{name}_{measure}"] for name in names)
                powerset = count(figures["powerset_cost"][corpus])
                theirs = (f"{radius:.2f}", f"{median:.0f}", powerset, count(ball), f"{percent:.2f}", "-", "-")
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
    redrawn = [sizes["mean_size"][level] for result in group for sizes in result["resplits"][measure]["sizes"]]
    lower, upper = (float(np.mean([point["sizes"][name] for point in points])) for name in ("mean_lower", "mean"))
    is_counted = upper <= 1.01 * lower
    means = mean_and_std([point["sizes"]["mean"] for point in points], count) if is_counted else bounds(lower, upper)
    most = "" if is_counted else "at most "
    return [
        mean_and_std([point["error"] for point in points], three),
        mean_and_std(errors, three),
        means,
        most + mean_and_std(redrawn, count),
        most + count(float(np.mean([point["sizes"]["median"] for point in points]))),
    ]


def sets(results: Iterable[Result]) -> Table:
    """Tabulate error rates and sizes of prediction sets, on the own test part and on random re-splits."""
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
    """Return every table that has rows."""
    tables = [without_icp(results), forced(results), sums(results), sets(results), demand(results)]
    return [table for table in tables if table.rows]


def write_tables(tables: Iterable[Table], folder: Path) -> None:
    """Write each table as Markdown and as comma-separated values."""
    for table in tables:
        note = f"\n{table.note}\n" if table.note else ""
        markdown = f"# {table.title}\n\n{table.to_markdown()}\n{note}"
        for suffix, text in ((".md", markdown), (".csv", table.to_csv())):
            with atomic_file(folder / f"{table.name}{suffix}") as stream:
                stream.write(text)
