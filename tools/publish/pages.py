"""Every table, figure and marked place of a page, from result files alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

from publish.benchmarks import benchmark_tables
from publish.comparisons import comparisons_table, load_comparisons, sizes_table
from publish.figures import draw_figures
from publish.findings import guarantee, log_loss_against_norms
from publish.statistics import corpora_table
from publish.summary import beside_paper, beside_rivals, beside_speeds, in_short
from publish.writing import filled, write
from surelabel.experiments.run import N_RESPLITS
from surelabel.experiments.tables import Table, all_tables, load_results, write_tables

__all__ = ["publish"]

_OPENINGS = {
    "without-icp": "How good the classifiers are by themselves, without conformal prediction, on the test parts. Rows "
    "marked *paper* are the paper's figures.",
    "sets": "Prediction sets at significance 0.05, that is, with 5 % errors asked for. *Own test* is the corpus' own "
    "test part, which for Reuters is later in time than the training and calibration texts. *Re-splits* are "
    f"{N_RESPLITS} random re-splits of calibration and test texts (mean ± standard deviation; N over the first "
    "ten); the guarantee is about these.",
    "forced": "How good the best guess is, with its confidence and credibility for each measure.",
    "comparisons-at-0.05": "{title} for measures and rivals: the smaller, the more an answer says. {note}",
    "engine": "How fast the exact search is, compared with the paper's. {note}",
    "lean-ball": "{note}",
    "watch": "When the exchangeability watch raises its alarm. {note}",
    "classifiers": "How good the classifiers that come with Surelabel are. {note}",
    "classifiers-without-icp": "The same, trained with the calibration texts, too. {note}",
    "text": "How fast the text classifiers are. {note}",
    "service": "How fast the service answers. {note}",
}
_KINDS = {"error": "error rate against significance", "size": "number of label-sets against significance"}


def _at(table: Table, significance: str) -> Table:
    """Return the rows of a table at one significance."""
    column = table.header.index("significance")
    return dataclasses.replace(table, rows=tuple(row for row in table.rows if row[column] == significance))


def _part(table: Table) -> str:
    """Return a table with its title and its note above it."""
    return f"**{table.title}.** {table.note}\n\n{table.to_markdown()}\n"


def _results(tables: dict[str, Table], figures: list[str]) -> str:
    """Return the page of results: every main table, and two figures of Reuters (or of the first corpus)."""
    lines = []
    for name, opening in _OPENINGS.items():
        if name in tables:
            table = _at(tables[name], "0.05") if name == "sets" else tables[name]
            lines += [opening.format(title=table.title, note=table.note), "", table.to_markdown(), ""]
    shown = [name for name in figures if name.startswith("reuters-")][:1] or figures[:1]
    lines += [
        f"![{text}, {name}](../results/figures/{name}-{kind}.svg)" for name in shown for kind, text in _KINDS.items()
    ]
    return "\n".join([*lines, "", "All tables: `results/tables/`; what they are made from: `results/runs/`."])


def publish(results: Path, out: Path, pages: Iterable[Path] = ()) -> list[Table]:
    """Build all tables and figures from the files in `results`, and fill the marked places of pages."""
    runs = load_results(results / "runs")
    compared = load_comparisons(results / "comparisons")
    tables = [
        corpora_table(results / "corpora.json"),
        *all_tables(runs),
        guarantee(runs),
        log_loss_against_norms(runs),
        comparisons_table(compared),
        sizes_table(compared),
        in_short(runs),
        beside_paper(runs),
        beside_rivals(compared),
        beside_speeds(results),
        *benchmark_tables(results),
    ]
    by_name = {table.name: table for table in tables if table.rows}
    write_tables(by_name.values(), out / "tables")
    figures = draw_figures(runs, out / "figures")
    parts = {name: _part(table) for name, table in by_name.items()}
    parts["results"] = _results(by_name, figures)
    for page in pages:
        before = page.read_text(encoding="utf-8")
        after = filled(before, parts, page)
        if after != before:
            write(page, after)
    return list(by_name.values())
